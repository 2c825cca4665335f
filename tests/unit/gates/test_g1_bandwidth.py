"""RDMA bandwidth in G1: a step of its own where the plan asks for it, judged against the port and never blamed on it for a slower far end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.g1_arrival import GATE, judge
from gates.judge import judge as judge_bundle
from gates.model import CheckResult, StepKind, Verdict
from tests.unit.rack.simulate import PAIR, bundle_of, demo_plan, rdma_files, rdma_pairs

Files = dict[str, bytes]
ASKED = {"evidence": {"required": ["rdma_bandwidth"]}}
PORT = "evidence/rdma/array01/perftest.ens8f0np0.out"


def bandwidth(files: Files) -> CheckResult:
    plan = demo_plan(**ASKED)
    return next(c for c in judge(plan, bundle_of(files, plan)).checks if c.id == "g1.rdma.bandwidth")


def test_the_step_is_there_only_where_the_plan_asks_for_it_and_stands_before_the_judgement():
    assert "rdma" not in [step.key for step in GATE.steps(demo_plan())]
    keys = [step.key for step in GATE.steps(demo_plan(**ASKED))]
    assert keys == ["unpacking", "survey", "storage", "rdma", "judge", "report"]
    step = GATE.steps(demo_plan(**ASKED))[3]
    assert (step.kind, step.playbook, set(step.expects)) == (StepKind.PLAYBOOK, "rdma.yml", {"engine", "storage"})


def test_a_port_that_reaches_the_share_of_its_speed_passes_and_the_gate_with_it(whole):
    plan = demo_plan(**ASKED)
    bundle = bundle_of(whole | rdma_files(), plan)
    assert (bandwidth(whole | rdma_files()).verdict, judge_bundle(bundle)["verdict"]) == (Verdict.PASS, "pass")


def test_a_slow_port_fails_with_both_figures(whole):
    slow = {"rdma_share": 0.5}
    result = bandwidth(whole | rdma_files({"slow-rdma": 1}))
    assert (result.verdict, "of 100 Gbit/s" in result.reason.en) == (Verdict.FAIL, True)
    assert bandwidth(whole | rdma_files(far=slow)).verdict is Verdict.FAIL  # as fast a port at the far end, and between them half of it


@pytest.mark.parametrize("far", [{"speed_mbit": 25_000}, {"up": False, "speed_mbit": 25_000}])
def test_a_far_end_that_is_slower_than_the_port_says_nothing_against_the_port(whole, far):
    files = whole | rdma_files(far=far)
    result = bandwidth(files)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "as fast would tell" in result.change.en
    assert judge_bundle(bundle_of(files, demo_plan(**ASKED)))["verdict"] == "inconclusive"


def test_without_its_step_or_its_output_nothing_passes(whole):
    measured = whole | rdma_files()
    for files in (whole, {k: v for k, v in measured.items() if k != PORT}, {**measured, PORT: b""}, whole | rdma_files(pairs=())):
        assert bandwidth(files).verdict is Verdict.INCONCLUSIVE
    assert "targets.rdma_bandwidth" in bandwidth(whole | rdma_files(pairs=())).change.en


def test_a_tool_that_failed_is_no_bandwidth_whatever_it_printed(whole):
    files = whole | rdma_files()
    path = "evidence/rdma/array01/commands.json"
    rows = [{**row, "exit_code": 1} if row["tool"] == "perftest" else row for row in json.loads(files[path])]
    assert bandwidth({**files, path: json.dumps(rows).encode()}).verdict is Verdict.INCONCLUSIVE


def spec_of(host: str, pairs: Any, links: str = '[{"ifname": "mlx5_0", "netdev": "ens8f0np0"}]', **test: Any) -> dict[str, Any]:
    return {c["name"]: c for c in rdma_pairs.rdma_survey({**test, "pairs": pairs}, host, links, [])["commands"]}


def test_each_pair_has_a_port_of_its_own_on_both_ends_and_the_device_behind_its_interface():
    pairs = [{**PAIR, "host": "array02"}, PAIR]
    near = spec_of("array01", pairs, gid_index=3, seconds=5)["perftest.ens8f0np0"]
    assert near["argv"] == [
        *["ib_write_bw", "-d", "mlx5_0", "-p", "18516", "-s", "65536", "-q", "4", "-D", "5", "-F", "--report_gbits", "-x", "3"],
        "127.0.0.1",
    ]
    assert "127.0.0.1" not in json.dumps(spec_of("gpu01", pairs))
    ends = rdma_pairs.rdma_far_ends({"pairs": pairs, "seconds": 5}, "gpu01", '[{"ifname": "mlx5_4", "netdev": "ens3f0np0"}]', "/q", ["/rack/bin"])
    assert [end["argv"][4:9] for end in ends] == [["ib_write_bw", "-d", "mlx5_4", "-p", "18515"], ["ib_write_bw", "-d", "mlx5_4", "-p", "18516"]]
    assert all(end["argv"][:3] == ["timeout", "-k", "5"] and end["pid_file"].startswith("/q/rdma/") for end in ends)
    assert rdma_pairs.rdma_far_ends({"pairs": pairs}, "array01", "", "/q", []) == []


@pytest.mark.parametrize("links", ["", "nonsense", "{}", '[{"netdev": "ens8f0np0"}]'])
def test_an_interface_without_a_device_is_handed_to_the_tool_which_refuses_it_by_name(links):
    assert spec_of("array01", [PAIR], links)["perftest.ens8f0np0"]["argv"][2] == "ens8f0np0"
