"""G1's further evidence: what drives, ports and GPUs remember, judged where the plan requires it, told where it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.g1.declared_more import MORE
from gates.g1.fabric import ERRORS
from gates.g1_arrival import judge
from gates.judge import judge as judge_bundle
from gates.model import CheckResult, GateJudgement, Severity, Verdict
from gates.plan_model import EVIDENCE_GROUPS
from tests.unit.rack.argv import argv_of
from tests.unit.rack.simulate import bundle_of, demo_plan, evidence

Files = dict[str, bytes]
SURVEY = "evidence/survey/array01/"
FIXTURES = Path(__file__).parents[1] / "readers/fixtures"


def judged(files: Files, **differences: Any) -> GateJudgement:
    plan = demo_plan(**differences)
    return judge(plan, bundle_of(files, plan))


def check(judgement: GateJudgement, name: str) -> CheckResult:
    return next(c for c in judgement.checks if c.id == name)


def with_command(files: Files, step: str, host: str, name: str, tool: str, out: bytes, argv: list[str] | None = None) -> Files:
    """Return the files with one more command in a pack."""
    path = f"evidence/{step}/{host}/"
    row = {
        "name": name,
        "tool": tool,
        "argv": argv or argv_of(name, tool),
        "exit_code": 0,
        "timed_out": False,
        "stdout": f"{name}.out",
        "stderr": f"{name}.err",
    }
    return {**files, f"{path}commands.json": json.dumps([*json.loads(files[f"{path}commands.json"]), row]).encode(), f"{path}{name}.out": out}


@pytest.mark.parametrize(
    ("fault", "name", "says", "zh"),
    [
        ("failed-self-test", "g1.drive.self_test", "result 7", "结果为 7"),
        ("no-pfc", "g1.link.pfc", "lossless priority none", "无损优先级"),
        ("link-partner-errors", "g1.pcie.aer", "its port included", "含上游端口"),
        ("gpu-ecc", "g1.gpu.ecc", "GPU 0: 1", "ECC 错误"),
        ("gpu-firmware", "g1.gpu.firmware", "RLC 37 / 38", "各 GPU 固件不同"),
        ("gpu-narrow", "g1.gpu.link", "GPU 7 has x8, rated x16", "额定 x16"),
        ("port-errors", "g1.link.counters", "rx_symbol_err_phy 1", "rx_symbol_err_phy 1"),
        ("interface-errors", "g1.link.counters", "rx_errors 1", "rx_errors 1"),
        ("hot-optic", "g1.link.optics", "raises Module temperature high alarm", "告警：模块温度过高告警"),
    ],
)
def test_a_fault_fails_its_own_check_in_words(fault, name, says, zh):
    result = check(judged(evidence({fault: 1})), name)
    assert (result.verdict, result.severity) == (Verdict.FAIL, Severity.BLOCKING)
    assert says in result.reason.en
    assert zh in result.reason.zh


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("nvme-error-log.nvme0.out", "g1.drive.error_log"),
        ("nvme-self-test-log.nvme1.out", "g1.drive.self_test"),
        ("nvme-list-subsys.out", "g1.drive.paths"),
        ("aer.out", "g1.pcie.aer"),
        ("gid-types.out", "g1.rdma.gid"),
        ("mlnx-qos.ens8f0np0.out", "g1.link.pfc"),
        ("ip-link.out", "g1.link.mtu"),
        ("ethtool-stats.ens8f0np0.out", "g1.link.counters"),
        ("ethtool-module.ens8f0np0.out", "g1.link.optics"),
        ("dmidecode.out", "g1.memory"),
    ],
)
def test_evidence_that_the_plan_requires_and_nobody_brought_is_inconclusive(whole, pattern, name):
    for damaged in (b"", None):
        files = {path: data for path, data in whole.items() if path != SURVEY + pattern} | (
            {SURVEY + pattern: damaged} if damaged is not None else {}
        )
        assert check(judged(files), name).verdict is Verdict.INCONCLUSIVE


def test_a_group_that_the_plan_does_not_require_is_told_for_information_when_it_was_brought():
    result = check(judged(evidence({"gpu-ecc": 1}), evidence={"required": []}), "g1.gpu.ecc")
    assert (result.verdict, result.severity) == (Verdict.FAIL, Severity.ADVISORY)


def test_a_group_that_is_not_required_and_was_not_brought_is_not_tested(whole):
    files = {path: data for path, data in whole.items() if "mlnx-qos" not in path}
    rows = [row for row in json.loads(files[f"{SURVEY}commands.json"]) if row["tool"] != "mlnx-qos"]
    judgement = judged({**files, f"{SURVEY}commands.json": json.dumps(rows).encode()}, evidence={"required": []})
    assert "g1.link.pfc" in [n["check"] for n in judgement.not_tested]
    assert "pfc" in next(n for n in judgement.not_tested if n["check"] == "g1.link.pfc")["reason"]["zh-CN"]


def test_no_self_test_on_record_is_inconclusive_not_a_pass(whole):
    never = (FIXTURES / "nvme-self-test-log/good-never-run.json").read_bytes()
    result = check(judged({**whole, f"{SURVEY}nvme-self-test-log.nvme0.out": never}), "g1.drive.self_test")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "nvme device-self-test" in result.change.en


def test_a_raw_read_faster_than_the_link_is_a_caches_figure_and_proves_nothing(whole):
    path = "evidence/storage/array01/fio.nvme0n1.out"
    document = json.loads(whole[path])
    side = document["jobs"][0]["read"]
    times = 9_000_000_000 / side["bw_bytes"]  # a whole result: totals and rates tell the same
    side.update({key: int(side[key] * times) for key in ("bw_bytes", "io_bytes", "total_ios")}, iops=side["iops"] * times)
    side["bw"] = side["bw_bytes"] // 1024
    result = check(judged({**whole, path: json.dumps(document).encode()}), "g1.raw.ceiling")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "its link carries at most" in result.reason.en


OF_PORT = b" Dual-port       : OFF\t\tDevice         : mlx5_0\n GID index       : 3\n"
PERFTEST = OF_PORT + b" #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 65536 664644 0.00 %s 0.18\n"


@pytest.mark.parametrize(("rate", "verdict"), [(b"93.10", Verdict.PASS), (b"80.00", Verdict.FAIL), (b"128.00", Verdict.INCONCLUSIVE)])
def test_rdma_bandwidth_is_held_against_the_port_and_above_the_line_rate_nothing_is_believed(whole, rate, verdict):
    files = with_command(whole, "storage", "array01", "perftest.ens8f0np0", "perftest", PERFTEST % rate)
    assert check(judged(files, evidence={"required": ["rdma_bandwidth"]}), "g1.rdma.bandwidth").verdict is verdict


def test_perftests_json_takes_its_unit_from_the_command_line_and_without_it_is_no_bandwidth(whole):
    told = json.dumps(
        {"test_info": {"Device": "mlx5_0", "GID_index": 3}, "results": {"MsgSize": 65536, "n_iterations": 5, "BW_average": 93.1}}
    ).encode()
    for argv, verdict in ((["ib_write_bw", "--report_gbits"], Verdict.PASS), (["ib_write_bw"], Verdict.FAIL)):
        files = with_command(whole, "storage", "array01", "perftest.ens8f0np0", "perftest", told, argv)
        assert check(judged(files, evidence={"required": ["rdma_bandwidth"]}), "g1.rdma.bandwidth").verdict is verdict


@pytest.mark.parametrize(
    ("line", "becomes", "says"),
    [
        (b"mlx5_0", b"mlx5_1", "measured on mlx5_1, the port is mlx5_0"),
        (b"index       : 3", b"index       : 2", "measured over GID 2 (IB/RoCE v1), not RoCE v2"),
        (b" GID index       : 3\n", b"", "does not tell device and GID index"),
        (b"Device         : mlx5_0", b"", "does not tell device and GID index"),
        (b"index       : 3", b"index       : 77", "nothing was found"),
    ],
)
def test_a_bandwidth_that_is_not_proven_to_be_the_ports_own_over_roce_v2_is_inconclusive(whole, line, becomes, says):
    out = (PERFTEST % b"93.10").replace(line, becomes)
    files = with_command(whole, "storage", "array01", "perftest.ens8f0np0", "perftest", out)
    result = check(judged(files, evidence={"required": ["rdma_bandwidth"]}), "g1.rdma.bandwidth")
    assert (result.verdict, says in result.reason.en) == (Verdict.INCONCLUSIVE, True), result.reason.en


STEADY = b"".join(b"[RESULT] [ 1%d.0] [gst] [GPU:: 2885%d] GFLOPS 960%d0\n" % (n, gpu, n) for n in range(4) for gpu in range(8))
MET = b"".join(b"[RESULT] [ 99.0] [gst] [GPU:: 2885%d] Target GFLOPS: 90000 met: TRUE\n" % gpu for gpu in range(8))
DIPS = b"[RESULT] [ 14.0] [gst] [GPU:: 28857] GFLOPS 60000\n"


def test_a_stress_run_is_judged_from_its_intervals_not_from_its_peak(whole):
    assert stressed(whole, STEADY + MET) is Verdict.PASS
    assert stressed(whole, STEADY + DIPS + MET) is Verdict.FAIL
    assert stressed(whole, STEADY + DIPS) is Verdict.FAIL
    assert stressed(whole, MET) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("gone", [b"[ 11.0] [gst] [GPU:: 28853]", b"met: TRUE", b"[GPU:: 28857]"])
def test_a_stress_run_that_lacks_a_gpu_an_interval_or_an_answer_says_nothing(whole, gone):
    lines = (STEADY + MET).splitlines(keepends=True)
    first = next(line for line in lines if gone in line)
    kept = [line for line in lines if line != first] if b"28857" not in gone else [line for line in lines if gone not in line]
    assert stressed(whole, b"".join(kept)) is Verdict.INCONCLUSIVE


ACTIONS = ((b"gst-tf32", b"343415"), (b"gst-fp64", b"172333"), (b"gst-i8", b"1040000"))  # as a stock configuration's: targets far from each other
SEVERAL = b"".join((STEADY + MET).replace(b"[gst]", b"[" + name + b"]").replace(b"GFLOPS 960", b"GFLOPS " + target) for name, target in ACTIONS)


def test_actions_of_a_stress_run_with_different_targets_are_not_compared_with_each_other(whole):
    assert stressed(whole, SEVERAL) is Verdict.PASS
    dips = SEVERAL.replace(b"[gst-fp64] [GPU:: 28855] GFLOPS 172333", b"[gst-fp64] [GPU:: 28855] GFLOPS 152333", 1)
    assert stressed(whole, dips) is Verdict.FAIL


@pytest.mark.parametrize("kept", [b"intervals", b"answers", b"neither"])
def test_an_answer_to_one_action_is_none_to_another(whole, kept):
    """The text of the last action of one GPU was cut: its intervals, its answer, or both."""
    lines = SEVERAL.splitlines(keepends=True)
    of_it = [line for line in lines if b"[gst-i8] [GPU:: 28857]" in line]
    lost = [line for line in of_it if kept == b"neither" or (b"met:" in line) == (kept == b"intervals")]
    assert stressed(whole, b"".join(line for line in lines if line not in lost)) is Verdict.INCONCLUSIVE


def stressed(files: Files, out: bytes) -> Verdict:
    """Return what the stress check makes of an output of rvs on the engine host."""
    return check(judged({**files, "evidence/survey/gpu01/rvs.out": out}, evidence={"required": ["gpu_stress"]}), "g1.gpu.stress").verdict


def test_firmware_that_differs_on_one_gpu_of_eight_fails(whole):
    path = "evidence/survey/gpu01/amd-smi-firmware.out"
    document = json.loads(whole[path])
    document["gpu_data"][3]["fw_list"][0]["fw_version"] = "148"
    result = check(judged({**whole, path: json.dumps(document).encode()}), "g1.gpu.firmware")
    assert result.verdict is Verdict.FAIL
    assert "148 / 149" in result.reason.en


@pytest.mark.parametrize(
    ("fault", "name", "taken"),
    [
        ("port-errors", "g1.link.counters", b"     rx_symbol_err_phy: 1\n"),
        ("hot-optic", "g1.link.optics", b"Module temperature high"),
    ],
)
def test_a_line_that_tells_a_fault_of_a_port_is_missed_when_it_is_gone(fault, name, taken):
    files = evidence({fault: 1})
    path = next(p for p, data in files.items() if taken in data and p.endswith(".out"))
    files[path] = b"".join(line for line in files[path].splitlines(keepends=True) if taken not in line)
    assert check(judged(files), name).verdict is Verdict.INCONCLUSIVE


def test_a_self_test_that_is_left_out_of_the_log_is_missed_by_its_place():
    files = evidence({"failed-self-test": 1})
    path = f"{SURVEY}nvme-self-test-log.nvme0.out"
    document = json.loads(files[path])
    document["List of Valid Reports"].pop(0)
    result = check(judged({**files, path: json.dumps(document).encode()}), "g1.drive.self_test")
    assert (result.verdict, "19 places, not 20" in result.reason.en) == (Verdict.INCONCLUSIVE, True)


def test_an_io_error_stays_one_without_the_line_that_fio_wrote_before_its_json():
    files = evidence({"json-prefix": 1})
    path = "evidence/storage/array01/fio.nvme0n1.out"
    assert check(judged(files), "g1.raw.io").verdict is Verdict.FAIL
    assert check(judged({**files, path: files[path].split(b"\n", 1)[1]}), "g1.raw.io").verdict is Verdict.FAIL


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_counter_of_a_port_must_be_told(whole, name):
    path = f"{SURVEY}ethtool-stats.ens8f0np0.out"
    left = b"".join(line for line in whole[path].splitlines(keepends=True) if name.encode() not in line)
    result = check(judged({**whole, path: left}), "g1.link.counters")
    assert (result.verdict, name in result.reason.en) == (Verdict.INCONCLUSIVE, True)


def test_an_interface_without_the_kernels_counters_is_not_free_of_errors():
    files = evidence({"interface-errors": 1})
    path = f"{SURVEY}ip-link.out"
    for gone in ("stats64", "rx"):
        document = json.loads(files[path])
        for row in document:
            (row if gone == "stats64" else row["stats64"]).pop(gone)
        assert check(judged({**files, path: json.dumps(document).encode()}), "g1.link.counters").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("fixture", ["good-passive-copper.txt", "good-no-diagnostics.txt"])
def test_a_cable_without_electronics_names_itself_and_needs_no_alarms(whole, fixture):
    path, told = f"{SURVEY}ethtool-module.ens8f0np0.out", (FIXTURES / "ethtool-module" / fixture).read_bytes()
    assert check(judged({**whole, path: told}), "g1.link.optics").verdict is Verdict.PASS
    silent = b"".join(line for line in told.splitlines(keepends=True) if b"opper" not in line and b"diagnostics" not in line)
    assert check(judged({**whole, path: silent}), "g1.link.optics").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("fault", "output", "index", "name"),
    [
        ("gpu-ecc", "amd-smi-metric", 0, "g1.gpu.ecc"),
        ("gpu-firmware", "amd-smi-firmware", -1, "g1.gpu.firmware"),
    ],
)
def test_the_gpu_that_has_the_fault_is_missed_when_it_is_left_out(fault, output, index, name):
    files = evidence({fault: 1})
    path = f"evidence/survey/gpu01/{output}.out"
    document = json.loads(files[path])
    document["gpu_data"].pop(index)
    result = check(judged({**files, path: json.dumps(document).encode()}), name)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "7 GPUs are told of, 8 are listed" in result.reason.en


def test_the_whole_gate_still_passes_with_all_of_it(whole):
    assert judge_bundle(bundle_of(whole, demo_plan()))["verdict"] == "pass"


def test_every_group_that_a_check_belongs_to_can_be_required():
    assert {declared.group for declared in MORE if declared.group} <= set(EVIDENCE_GROUPS)
