"""What the plan may name of the storage network beside PFC: DSCP of the traffic, transport and number of the NVMe-oF paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gates.declarations import DECLARED
from gates.g1_arrival import judge
from gates.g2_baseline import judge as judge_g2
from gates.model import CheckResult, GateJudgement, Limit, Severity, Verdict
from gates.plan import InvalidPlan, parse_plan
from gates.readers.registry import READERS
from playbooks.filter_plugins.hardware import hardware_survey
from tests.bundles import Evidence, g2_evidence, small_plan
from tests.bundles.evidence import dumped
from tests.unit.rack.simulate import bundle_of, demo_plan, evidence

PASS, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE
PORT, GPU = "evidence/survey/array01/mlnx-qos.ens8f0np0.out", "evidence/survey/gpu01/nvme-list-subsys.out"
TWO = {"transport": "rdma", "paths": 2}


def subsystems(*of: Sequence[tuple[str | None, str]], local: bool = True) -> bytes:
    """Return what `nvme list-subsys -o json` prints of subsystems over a fabric, each by its paths (transport, state), and of a drive of the host."""
    rows: list[dict[str, Any]] = []
    number = 0
    for k, paths in enumerate(of):
        listed = []
        for transport, state in paths:
            path = {"Name": f"nvme{number}", "Transport": transport, "Address": f"traddr=192.168.10.{number},trsvcid=4420", "State": state}
            listed.append({key: value for key, value in path.items() if value is not None})
            number += 1
        rows.append({"Name": f"nvme-subsys{k}", "NQN": f"nqn.2026-01.com.example:kv{k}", "Paths": listed})
    if local:
        rows.append(
            {"Name": "nvme-subsys9", "NQN": "nqn.boot", "Paths": [{"Name": "nvme9", "Transport": "pcie", "Address": "0000:01:00.0", "State": "live"}]}
        )
    return json.dumps([{"HostNQN": "nqn.host", "Subsystems": rows}]).encode()


@pytest.fixture(scope="module")
def whole() -> dict[str, bytes]:
    return unaccounted(evidence())


def unaccounted(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files without the account of what each command wrote, as an edit would need to forge it."""
    out = dict(files)
    for path in [path for path in out if path.endswith("commands.json")]:
        rows = json.loads(out[path])
        out[path] = json.dumps([{k: v for k, v in row.items() if k not in ("stdout_bytes", "stdout_sha256")} for row in rows]).encode()
    return out


def judged(files: dict[str, bytes], **g1: Any) -> GateJudgement:
    plan = demo_plan(g1=g1)
    return judge(plan, bundle_of(files, plan))


def check(judgement: GateJudgement, name: str) -> CheckResult:
    return next(c for c in judgement.checks if c.id == name)


def test_what_the_plan_does_not_name_is_not_asked_and_that_is_said(whole: dict[str, bytes]) -> None:
    unasked = {str(row.get("check")): row["reason"] for row in judged(whole).not_tested}
    assert {"g1.link.dscp", "g1.fabric.transport", "g1.fabric.paths"} <= set(unasked)
    assert "so it was not asked" in unasked["g1.fabric.paths"]["en"]
    assert "未作检查" in unasked["g1.link.dscp"]["zh-CN"]
    told = judge_g2(small_plan(), g2_evidence(plan=small_plan()).bundle()).not_tested
    assert {"g2.fabric.transport", "g2.fabric.paths"} <= {row.get("check") for row in told}


def test_a_plan_that_names_none_of_it_keeps_its_hash_and_one_that_does_has_another() -> None:
    assert parse_plan({"g1": {"link": {"dscp": []}, "fabric": {}}, "g2": {"fabric": {"paths": None}}}).hash == parse_plan().hash
    assert parse_plan({"g1": {"fabric": {"paths": 2}}}).hash != parse_plan().hash
    for wrong in ({"fabric": {"transport": "fc"}}, {"fabric": {"paths": 0}}, {"link": {"dscp": [64]}}):
        with pytest.raises(InvalidPlan):
            parse_plan({"g1": wrong})


@pytest.mark.parametrize(
    ("row", "trust", "verdict", "says"),
    [
        ("prio:3 dscp:31,30,29,28,27,26,25,24,", "dscp", PASS, "maps DSCP 24, 26 to priority 3"),
        ("prio:3 dscp:31,30,29,28,27,\n\tprio:3 dscp:26,25,24,", "dscp", PASS, "to priority 3"),
        ("prio:3 dscp:31,30,29,28,27,25,24,", "dscp", INCONCLUSIVE, "the priority of DSCP 26 is not told"),
        ("prio:3 dscp:31,24,\n\tprio:2 dscp:26,", "dscp", FAIL, "26 -> 2"),
        ("prio:3 dscp:31,26,24,\n\tprio:2 dscp:26,", "dscp", INCONCLUSIVE, "told twice"),
        ("prio:3 dscp:31,30,29,28,27,26,25,24,", "pcp", FAIL, "trust is pcp"),
    ],
)
def test_the_map_from_dscp_to_priority_is_held_against_the_plan(whole: dict[str, bytes], row: str, trust: str, verdict: Verdict, says: str) -> None:
    text = whole[PORT].decode().replace("prio:3 dscp:31,30,29,28,27,26,25,24,", row).replace("state: dscp", f"state: {trust}")
    found = check(judged({**whole, PORT: text.encode()}, link={"dscp": [24, 26]}), "g1.link.dscp")
    assert (found.verdict, found.severity) == (verdict, Severity.BLOCKING), found.reason.en
    assert says in found.reason.en


@pytest.mark.parametrize(
    ("told", "transport", "paths", "says"),
    [
        (subsystems([("rdma", "live")] * 2), PASS, PASS, "Every subsystem has 2 live paths (subsystems: 1)"),
        (subsystems([("rdma", "live")] * 2, [("rdma", "live")] * 2), PASS, PASS, "(subsystems: 2)"),
        (subsystems([("rdma", "live")]), PASS, FAIL, "nqn.2026-01.com.example:kv0 has 1 live paths of 1, planned 2"),
        (subsystems([("rdma", "live")] * 3), PASS, FAIL, "3 live paths of 3, planned 2"),
        (subsystems([("rdma", "live"), ("rdma", "connecting")]), PASS, FAIL, "1 live paths of 2"),
        (subsystems([("rdma", "live")] * 2, [("rdma", "live")]), PASS, FAIL, "kv1 has 1 live paths"),
        (subsystems([("rdma", "live"), ("tcp", "live")]), FAIL, PASS, "2 live paths"),
        (subsystems([(None, "live")] * 2), INCONCLUSIVE, PASS, "2 live paths"),
        (subsystems(), INCONCLUSIVE, INCONCLUSIVE, "no NVMe-oF subsystem is connected"),
        (b"[]", INCONCLUSIVE, INCONCLUSIVE, "no NVMe-oF subsystem is connected"),
        (b"nvme: command not found", INCONCLUSIVE, INCONCLUSIVE, "gpu01"),
    ],
)
def test_transport_and_number_of_paths_are_held_against_the_plan(
    whole: dict[str, bytes], told: bytes, transport: Verdict, paths: Verdict, says: str
) -> None:
    judgement = judged({**whole, GPU: told}, fabric=TWO)
    found = {name: check(judgement, f"g1.fabric.{name}") for name in ("transport", "paths")}
    assert (found["transport"].verdict, found["paths"].verdict) == (transport, paths), found["paths"].reason.en
    assert says in found["paths"].reason.en
    assert {one.severity for one in found.values()} == {Severity.BLOCKING}


def test_an_engine_host_whose_survey_did_not_ask_is_no_pass(whole: dict[str, bytes]) -> None:
    commands = "evidence/survey/gpu01/commands.json"
    kept = json.dumps([row for row in json.loads(whole[commands]) if row["name"] != "nvme-list-subsys"]).encode()
    found = check(judged({**whole, commands: kept}, fabric=TWO), "g1.fabric.paths")
    assert found.verdict is INCONCLUSIVE
    assert "gpu01 did not run nvme-list-subsys" in found.reason.en


ASKED = {"uname": ["uname", "-a"], "nvme-list-subsys": ["nvme", "list-subsys", "-o", "json"]}


def deployed(paths: Sequence[tuple[str | None, str]] | None, differences: dict[str, Any]) -> Evidence:
    """Return a G2 whose deployment read the paths of its engine host; None: it did not ask for them."""
    evidence = g2_evidence(plan=small_plan(differences))
    rows = [("uname", b"Linux\n"), *([] if paths is None else [("nvme-list-subsys", subsystems(paths))])]
    told = {"exit_code": 0, "timed_out": False}
    commands = [{"name": name, "tool": name, "argv": ASKED[name], "stdout": f"{name}.out", "stderr": f"{name}.err", **told} for name, _ in rows]
    evidence.files[evidence.path("deploy", "commands.json")] = dumped(commands)
    evidence.files |= {evidence.path("deploy", f"{name}.out"): data for name, data in rows}
    return evidence


@pytest.mark.parametrize(("paths", "verdict"), [([("rdma", "live")] * 2, PASS), ([("rdma", "live")], FAIL), (None, INCONCLUSIVE)])
def test_g2_asks_the_same_of_the_paths_that_the_deployment_connected(paths: Sequence[tuple[str, str]] | None, verdict: Verdict) -> None:
    bundle = deployed(paths, {"g2": {"fabric": TWO}}).bundle()
    found = next(c for c in judge_g2(bundle.plan, bundle).checks if c.id == "g2.fabric.paths")
    assert found.verdict is verdict, found.reason.en


def test_a_page_of_checks_shows_the_limit_where_the_plan_names_one() -> None:
    one = next(d for d in DECLARED["G1"] if d.id == "g1.fabric.paths")
    assert one.limit(parse_plan()) == Limit("none")
    assert one.limit(parse_plan({"g1": {"fabric": {"paths": 4}}})).high == 4


def test_what_a_deployment_reads_of_the_hardware_has_a_reader_by_its_name() -> None:
    """The volume and the paths are judged from these: under the name of the program (xfs_info, nvme) no check found them."""
    site = {"array": {"nqn": "x"}, "fabric": {"interfaces": [{"netdev": "ens8"}]}, "rack": "lab"}
    rows = hardware_survey(site, "/r", "gpu01")
    assert {"nvme-list-subsys", "mlnx-qos", "ethtool", "rdma-link", "ip-link"} <= {row["tool"] for row in rows}
    assert {row["tool"] for row in rows} <= set(READERS)
