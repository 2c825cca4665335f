"""What parts and hosts bring along: wear and heat of drives, the kernel's log, governors, NUMA nodes and command lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.g1.declared_arrival import ARRIVED
from gates.g1_arrival import judge
from gates.judge import judge as judge_bundle
from gates.model import CheckResult, GateJudgement, Severity, Verdict
from gates.plan import InvalidPlan, parse_plan
from gates.plan_model import EVIDENCE_GROUPS
from tests.unit.gates.test_g1_more import with_command
from tests.unit.rack.simulate import bundle_of, demo_plan, evidence

Files = dict[str, bytes]
ARRAY, GPUS = "evidence/survey/array01/", "evidence/survey/gpu01/"


def judged(files: Files, **differences: Any) -> GateJudgement:
    plan = demo_plan(**differences)
    return judge(plan, bundle_of(files, plan))


def check(judgement: GateJudgement, name: str) -> CheckResult:
    return next(c for c in judgement.checks if c.id == name)


def without(files: Files, step: str, host: str, name: str) -> Files:
    """Return the files of a host that did not run a command."""
    path = f"evidence/{step}/{host}/"
    rows = [row for row in json.loads(files[f"{path}commands.json"]) if row["name"] != name]
    return {p: d for p, d in files.items() if p != f"{path}{name}.out"} | {f"{path}commands.json": json.dumps(rows).encode()}


@pytest.fixture(scope="module")
def faulty() -> Files:
    """Give the evidence of an arrival whose parts and hosts have all of these faults, and no other."""
    return evidence(dict.fromkeys(("written-drive", "power-losses", "hot-drive", "kernel-faults", "slow-governor", "bare-node"), 1))


@pytest.mark.parametrize(
    ("name", "says", "zh"),
    [
        ("g1.drive.written", "2 times its capacity, at most 1", "为容量的 2"),
        ("g1.drive.unsafe_shutdowns", "21 unsafe shutdowns, at most 20", "非正常断电 21 次"),
        ("g1.drive.temperature", "°C, at most 70 °C", "限 70 °C"),
        ("g1.drive.overheated", "60 s too hot", "过热 60 s"),
        ("g1.kernel.log", "1 x NVMe time-outs (“nvme nvme0: I/O 0 QID 3 timeout, aborting”)", "NVMe 超时 1 条"),
        ("g1.host.governor", "policies have powersave, planned performance", "个为 powersave"),
        ("g1.host.numa", "has processors and no memory", "有处理器而无内存"),
    ],
)
def test_a_fault_is_told_by_its_own_check_and_decides_where_the_plan_requires_it(faulty, name, says, zh):
    result = check(judged(faulty), name)
    assert (result.verdict, result.severity) == (Verdict.FAIL, Severity.ADVISORY)
    assert (says in result.reason.en, zh in result.reason.zh) == (True, True), result.reason
    group = next(declared.group for declared in ARRIVED if declared.id == name)
    assert check(judged(faulty, evidence={"required": [group]}), name).severity is Severity.BLOCKING


def test_a_rack_without_fault_passes_all_of_them_and_says_what_the_hosts_have(whole):
    judgement = judged(whole)
    assert {c.id: c.reason.en for c in judgement.checks if c.id in {d.id for d in ARRIVED} and c.verdict is not Verdict.PASS} == {}
    assert len([c for c in judgement.checks if c.id in {d.id for d in ARRIVED}]) == len(ARRIVED) - 1  # nobody asked a switch
    assert "gpu01: performance on 4 policies" in check(judgement, "g1.host.governor").reason.en
    assert "gpu01: 2 NUMA nodes, 250 GiB" in check(judgement, "g1.host.numa").reason.en
    assert "gpu01：启动参数为 ro iommu=pt pci=realloc=off；array01" in check(judgement, "g1.host.cmdline").reason.zh


def test_a_fault_that_only_informs_leaves_the_gate_a_pass_and_one_that_decides_fails_it(faulty):
    assert judge_bundle(bundle_of(faulty, demo_plan()))["verdict"] == "pass"
    for group in ("drive_wear", "kernel_log", "host_tuning"):
        assert judge_bundle(bundle_of(faulty, demo_plan(evidence={"required": [group]})))["verdict"] == "fail", group


@pytest.mark.parametrize(
    ("step", "host", "command", "names"),
    [
        (
            "survey",
            "array01",
            "nvme-smart-log.nvme1",
            ["g1.drive.written", "g1.drive.unsafe_shutdowns", "g1.drive.temperature", "g1.drive.overheated"],
        ),
        ("storage", "array01", "nvme-smart-log.nvme1", ["g1.drive.unsafe_shutdowns", "g1.drive.temperature", "g1.drive.overheated"]),
        ("survey", "gpu01", "kernel-log", ["g1.kernel.log"]),
        ("survey", "gpu01", "host-tuning", ["g1.host.governor", "g1.host.numa", "g1.host.cmdline"]),
    ],
)
def test_what_one_host_did_not_bring_is_inconclusive(whole, step, host, command, names):
    path = f"evidence/{step}/{host}/{command}.out"
    for files in (without(whole, step, host, command), {**whole, path: b""}, {**whole, path: b"garbage\n"}):
        judgement = judged(files, evidence={"required": ["drive_wear", "kernel_log", "host_tuning"]})
        assert {n: check(judgement, n).verdict for n in names} == dict.fromkeys(names, Verdict.INCONCLUSIVE)
        assert all(check(judgement, n).change for n in names)


def test_evidence_from_before_these_checks_leaves_them_not_tested(whole):
    files = whole
    for host in ("gpu01", "array01"):
        files = without(without(files, "survey", host, "kernel-log"), "survey", host, "host-tuning")
    assert {"g1.kernel.log", "g1.host.governor", "g1.host.numa", "g1.host.cmdline"} <= {row["check"] for row in judged(files).not_tested}


def edited(files: Files, path: str, **fields: Any) -> Files:
    return {**files, path: json.dumps({**json.loads(files[path]), **fields}).encode()}


def test_tools_that_disagree_on_what_was_written_prove_nothing(whole):
    files = edited(whole, f"{ARRAY}nvme-smart-log.nvme0.out", data_units_written=9_000_000)
    result = check(judged(files), "g1.drive.written")
    assert (result.verdict, "the tools disagree" in result.reason.en) == (Verdict.INCONCLUSIVE, True)


def test_a_drive_that_is_cool_at_rest_and_hot_after_the_raw_reads_is_hot(whole):
    assert (
        check(judged(edited(whole, "evidence/storage/array01/nvme-smart-log.nvme3.out", temperature=344)), "g1.drive.temperature").verdict
        is Verdict.FAIL
    )


def test_a_log_whose_beginning_is_lost_proves_nothing_and_a_fault_in_it_still_counts(whole):
    path = f"{ARRAY}kernel-log.out"
    cut = b"".join(whole[path].splitlines(keepends=True)[2:])
    result = check(judged({**whole, path: cut}), "g1.kernel.log")
    assert (result.verdict, "journalctl -k -b" in result.change.en) == (Verdict.INCONCLUSIVE, True)
    fault = b"[  900.000000] array01 kernel: mce: [Hardware Error]: Machine check events logged\n"
    assert check(judged({**whole, path: cut + fault}), "g1.kernel.log").verdict is Verdict.FAIL


def test_a_corrected_pcie_error_is_counted_and_is_no_fault(whole):
    path, line = f"{GPUS}kernel-log.out", b"[  900.000000] gpu01 kernel: pcieport 0000:40:01.1: AER: Corrected error received: 0000:41:00.0\n"
    result = check(judged({**whole, path: whole[path] + line}), "g1.kernel.log")
    assert (result.verdict, "corrected: 1" in result.reason.en) == (Verdict.PASS, True)


def test_a_planned_parameter_must_stand_on_every_command_line(whole):
    missing = check(judged(whole, g1={"host": {"cmdline": ["iommu=pt", "pci=realloc=off"]}}), "g1.host.cmdline")
    assert (missing.verdict, "array01: started without pci=realloc=off" in missing.reason.en) == (Verdict.FAIL, True)
    assert check(judged(whole, g1={"host": {"cmdline": ["iommu=pt"]}}), "g1.host.cmdline").verdict is Verdict.PASS


def second_engine(files: Files, cmdline: bytes) -> Files:
    """Return the evidence of two engine hosts, the second of which is a copy but for its command line."""
    told = json.loads(files["evidence/inputs.json"])
    told["hosts"]["engine"] = ["gpu01", "gpu02"]
    out = {**files, "evidence/inputs.json": json.dumps(told).encode()}
    out |= {path.replace("/gpu01/", "/gpu02/"): data for path, data in files.items() if "/gpu01/" in path}
    out["evidence/survey/gpu02/host.json"] = json.dumps({"host": "gpu02", "boot_id": "c", "kernel": "k"}).encode()
    path = "evidence/survey/gpu02/host-tuning.out"
    out[path] = b"".join(cmdline if b"/proc/cmdline" in line else line for line in out[path].splitlines(keepends=True))
    return out


def test_engine_hosts_that_were_started_otherwise_are_named_and_their_own_disks_are_no_difference(whole):
    alike = b"/proc/cmdline:BOOT_IMAGE=/vmlinuz-6 root=UUID=ffff console=ttyS1 ro iommu=pt pci=realloc=off\n"
    assert check(judged(second_engine(whole, alike)), "g1.host.cmdline").verdict is Verdict.PASS
    result = check(judged(second_engine(whole, alike.replace(b"iommu=pt", b"iommu=off {x}"))), "g1.host.cmdline")
    assert (result.verdict, "gpu01: iommu=pt; gpu02: iommu=off {x}" in result.reason.en) == (Verdict.FAIL, True)


def asked(files: Files, fixture: str) -> Files:
    """Return the files of a survey in which one host asked a switch."""
    out = (Path(__file__).parents[1] / "readers/fixtures/sonic-pfcwd" / fixture).read_bytes()
    return with_command(files, "survey", "array01", "sonic-pfcwd.leaf1", "sonic-pfcwd", out)


@pytest.mark.parametrize(
    ("fixture", "verdict", "says"),
    [
        ("good-calm.txt", Verdict.PASS, "no storm (1 in all)"),
        ("good-stormed.txt", Verdict.FAIL, "leaf1: pause storms on Ethernet0:3 1, Ethernet4:3 2"),
        ("bad-empty_inventory-no-queue.txt", Verdict.INCONCLUSIVE, "no watched queue"),
    ],
)
def test_a_switch_that_saw_a_pause_storm_is_named_with_its_queues_and_one_that_watches_nothing_proves_nothing(whole, fixture, verdict, says):
    result = check(judged(asked(whole, fixture)), "g1.link.pfc_storms")
    assert (result.verdict, says in result.reason.en) == (verdict, True), result.reason.en


def test_a_switch_that_nobody_asks_is_not_tested_and_inconclusive_where_the_plan_requires_it(whole):
    assert "g1.link.pfc_storms" in {row["check"] for row in judged(whole).not_tested}
    result = check(judged(whole, evidence={"required": ["pfc_watchdog"]}), "g1.link.pfc_storms")
    assert (result.verdict, "targets.pfc_watchdog" in result.change.en) == (Verdict.INCONCLUSIVE, True)


def test_every_group_of_theirs_can_be_required_and_their_limits_can_be_agreed(faulty):
    assert {declared.group for declared in ARRIVED} <= set(EVIDENCE_GROUPS)
    assert check(judged(faulty, g1={"drive": {"writes_max": "2"}}), "g1.drive.written").verdict is Verdict.PASS
    with pytest.raises(InvalidPlan):
        parse_plan({"g1": {"host": {"governor": "Fast!"}}})


def test_a_plan_that_names_none_of_it_keeps_its_hash():
    assert "host" not in parse_plan().data["g1"]
    assert "writes_max" not in parse_plan().data["g1"]["drive"]
    named = parse_plan({"g1": {"host": {"cmdline": ["iommu=pt"]}}})
    assert (named.data["g1"]["host"], named.hash == parse_plan().hash) == ({"cmdline": ["iommu=pt"]}, False)
