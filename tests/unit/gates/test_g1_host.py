"""Processors, partitions and links of GPUs, and error logs that lose what they counted: told at every site, deciding where the plan names them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gates.g1_arrival import judge
from gates.model import CheckResult, Severity, Verdict
from gates.plan import parse_plan
from tests.unit.rack.simulate import bundle_of, check, demo_plan, evidence, judged

Files = dict[str, bytes]
GPUS, FIRST, SECOND = "evidence/survey/gpu01/", "evidence/survey/array01/", "evidence/storage/array01/"
EPYC = {"model": "EPYC 9654", "sockets": 2, "cores": 96}
PASS, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


def under(files: Files, name: str, **platform: Any) -> CheckResult:
    """Return a check under the demo's plan whose platform names more."""
    plan = demo_plan(platform={"accelerator": "MI308X", "framework": "lab-engine", "model": "lab-480b", **platform})
    return check(judge(plan, bundle_of(files, plan)), name)


@pytest.mark.parametrize(
    ("fault", "name", "verdict", "says", "zh"),
    [
        ("cores-off", "g1.cpu", FAIL, "cores are switched off: P0 95/96", "核心未启用"),
        ("gpu-partition", "g1.gpu.partition", FAIL, "GPU 7: CPX, NPS4", "分区方式不同"),
        ("gpu-link-off", "g1.gpu.mesh", FAIL, "2 links between GPUs", "GPU 间链路异常"),
        ("gpu-weak", "g1.gpu.stress", FAIL, "differ by 10", "各时段相差"),
    ],
)
def test_a_fault_is_told_in_words_and_ends_nothing_that_the_plan_does_not_name(fault, name, verdict, says, zh):
    judgement = judged(evidence({fault: 1}))
    result = check(judgement, name)
    assert (result.verdict, result.severity) == (verdict, Severity.ADVISORY)
    assert says in result.reason.en
    assert zh in result.reason.zh
    assert {c.verdict for c in judgement.checks if c.severity is Severity.BLOCKING} == {PASS}


@pytest.mark.parametrize(
    ("cpu", "verdict"),
    [
        (EPYC, PASS),
        ({**EPYC, "model": "AMD EPYC 9654"}, PASS),
        ({**EPYC, "cores": 64}, FAIL),
        ({**EPYC, "sockets": 1}, FAIL),
        ({**EPYC, "model": "EPYC 965"}, FAIL),
    ],
)
def test_processors_that_the_plan_names_decide(whole, cpu, verdict):
    result = under(whole, "g1.cpu", cpu=cpu)
    assert (result.verdict, result.severity) == (verdict, Severity.BLOCKING)
    if verdict is FAIL:
        assert "gpu01: 2 x AMD EPYC 9654 96-Core Processor, 96 cores; the plan names" in result.reason.en


def test_sockets_that_the_firmware_gives_one_name_are_two_processors(whole):
    path = f"{GPUS}dmidecode-cpu.out"
    names = sorted(set(re.findall(rb"Socket Designation: \S+", whole[path])))
    alike = {**whole, path: whole[path].replace(names[1], names[0])}
    assert len(names) == 2
    assert under(alike, "g1.cpu", cpu=EPYC).verdict is PASS
    mixed = whole[path].replace(names[1], names[0]).replace(b"9654 96-Core", b"9754 96-Core", 1)
    assert "its processors differ" in under({**whole, path: mixed}, "g1.cpu", cpu=EPYC).reason.en


def test_engine_hosts_with_other_processors_than_each_other_are_told(whole):
    other = {path.replace("/gpu01/", "/gpu02/"): data for path, data in whole.items() if "/gpu01/" in path}
    other[f"{GPUS}dmidecode-cpu.out".replace("gpu01", "gpu02")] = whole[f"{GPUS}dmidecode-cpu.out"].replace(b"9654 96-Core", b"9754 96-Core")
    told = json.loads(whole["evidence/inputs.json"])
    told["hosts"]["engine"].append("gpu02")
    host = json.dumps({"host": "gpu02", "boot_id": "c", "kernel": "k"}).encode()
    files = {**whole, **other, "evidence/inputs.json": json.dumps(told).encode(), "evidence/survey/gpu02/host.json": host}
    result = check(judged(files), "g1.cpu")
    assert result.verdict is FAIL
    assert "gpu02: 2 x AMD EPYC 9754" in result.reason.en


@pytest.mark.parametrize(("partition", "verdict"), [(("SPX", "NPS1"), PASS), (("SPX", "NPS4"), FAIL), (("DPX", "NPS1"), FAIL)])
def test_partitions_that_the_plan_names_decide(whole, partition, verdict):
    result = under(whole, "g1.gpu.partition", partition=dict(zip(("compute", "memory"), partition, strict=True)))
    assert (result.verdict, result.severity) == (verdict, Severity.BLOCKING)


@pytest.mark.parametrize(
    ("fault", "verdict", "says"),
    [("lost-log", INCONCLUSIVE, "it counted 1 errors in its life, its log holds 0"), ("logged-error", FAIL, "1 failed commands")],
)
def test_a_failed_command_that_a_drive_counted_ends_the_arrival_whether_its_log_names_it_or_not(fault, verdict, says):
    judgement = judged(evidence({fault: 1}))
    result = check(judgement, "g1.drive.error_log")
    assert (result.verdict, result.severity, says in result.reason.en) == (verdict, Severity.BLOCKING, True)
    assert {c.verdict for c in judgement.checks if c.severity is Severity.BLOCKING and c.id != result.id} == {PASS}


def cut(files: Files, path: str, edit: Any) -> Files:
    document = json.loads(files[path])
    edit(document)
    return {**files, path: json.dumps(document).encode()}


@pytest.mark.parametrize(
    ("name", "path", "edit"),
    [
        ("g1.gpu.partition", f"{GPUS}amd-smi-partition.out", lambda d: d["current_partition"].pop()),
        ("g1.gpu.partition", f"{GPUS}amd-smi-partition.out", lambda d: d["current_partition"][0].update(memory="N/A")),
        ("g1.gpu.mesh", f"{GPUS}amd-smi-topology.out", lambda d: d["gpu_data"][2]["links"].pop(5)),
        ("g1.gpu.mesh", f"{GPUS}amd-smi-topology.out", lambda d: d["gpu_data"].pop()),
        ("g1.gpu.mesh", f"{GPUS}amd-smi-topology.out", lambda d: d["gpu_data"][2]["links"][5].pop("link_status")),
        ("g1.gpu.mesh", f"{GPUS}amd-smi-topology.out", lambda d: d["gpu_data"][2]["links"][5].update(link_status="N/A")),
    ],
)
def test_what_is_not_told_of_every_gpu_is_inconclusive(whole, name, path, edit):
    assert check(judged(cut(whole, path, edit)), name).verdict is INCONCLUSIVE


def test_heat_and_throttling_of_gpus_are_told_by_card_and_sensor_and_never_a_pass_where_the_tool_does_not_say(whole):
    metric, static = f"{GPUS}amd-smi-metric.out", f"{GPUS}amd-smi-static.out"
    hot = check(judged(cut(whole, metric, lambda d: d["gpu_data"][2]["temperature"]["mem"].update(value=105))), "g1.gpu.heat")
    assert (hot.verdict, hot.severity, "GPU 2 is 0.00 K from its slowdown limit at mem" in hot.reason.en) == (FAIL, Severity.ADVISORY, True)
    silent = cut(whole, static, lambda d: d["gpu_data"][2].update(limit="N/A"))
    assert check(judged(silent), "g1.gpu.heat").verdict is INCONCLUSIVE
    without = cut(whole, metric, lambda d: d["gpu_data"][2].pop("throttle"))  # a release that tells no causes says only whether
    assert check(judged(without), "g1.gpu.throttle").verdict is PASS
    slowed = cut(without, metric, lambda d: d["gpu_data"][2]["power"].update(throttle_status="THROTTLED"))
    assert check(judged(slowed), "g1.gpu.throttle").verdict is FAIL
    untold = cut(without, metric, lambda d: d["gpu_data"][2]["power"].update(throttle_status="N/A"))
    assert check(judged(untold), "g1.gpu.throttle").verdict is INCONCLUSIVE


def test_packets_that_a_gpus_link_repeated_are_told_by_card_and_a_tool_that_counts_none_is_not_judged(whole):
    metric = f"{GPUS}amd-smi-metric.out"
    result = check(judged(cut(whole, metric, lambda d: d["gpu_data"][2]["pcie"].update(replay_count=5, nak_sent_count=2))), "g1.gpu.replays")
    assert (result.verdict, result.severity, result.value) == (FAIL, Severity.ADVISORY, 7)
    assert ("GPU 2: 7 PCIe packets" in result.reason.en, "GPU 2 的 PCIe 报文重传或拒收 7 次" in result.reason.zh) == (True, True)
    assert check(judged(cut(whole, metric, lambda d: d["gpu_data"][2]["pcie"].pop("replay_count"))), "g1.gpu.replays").verdict is INCONCLUSIVE

    def silent(document: Any) -> None:
        for gpu in document["gpu_data"]:
            gpu["pcie"].update(replay_count="N/A", nak_sent_count="N/A")

    assert "g1.gpu.replays" in {row["check"] for row in judged(cut(whole, metric, silent)).not_tested}


def test_a_link_over_pcie_between_modules_that_have_xgmi_is_a_fault_and_between_cards_that_have_none_it_is_not(whole):
    path, listed = f"{GPUS}amd-smi-topology.out", f"{GPUS}amd-smi-static.out"

    def pcie(document: Any) -> None:
        for gpu in document["gpu_data"]:
            for link in gpu["links"]:
                link.update(link_type=link["link_type"].replace("XGMI", "PCIE"))

    def cards(document: Any) -> None:
        for gpu in document["gpu_data"]:
            gpu["asic"].update(market_name="AMD Radeon PRO W7900")

    assert check(judged(cut(whole, path, pcie)), "g1.gpu.mesh").verdict is FAIL
    assert check(judged(cut(cut(whole, path, pcie), listed, cards)), "g1.gpu.mesh").verdict is PASS


def entries(*numbers: int, places: int = 64) -> bytes:
    row = {"error_count": 0, "sqid": 0, "cmdid": 0, "status_field": 0x4004, "nsid": 1}
    return json.dumps({"errors": [{**row, "error_count": n} for n in (*numbers, *[0] * (places - len(numbers)))]}).encode()


def logged(files: Files, first: tuple[int, ...], second: tuple[int, ...], counted: tuple[int, int], places: int = 64) -> Files:
    out = dict(files)
    for folder, numbers, life in ((FIRST, first, counted[0]), (SECOND, second, counted[1])):
        out[f"{folder}nvme-error-log.nvme1.out"] = entries(*numbers, places=places)
        out = cut(out, f"{folder}nvme-smart-log.nvme1.out", lambda d, life=life: d.update(num_err_log_entries=life))
    return out


@pytest.mark.parametrize(
    ("first", "second", "counted", "places", "verdict", "says"),
    [
        ((), (), (0, 0), 64, PASS, ""),
        ((3, 2, 1), (3, 2, 1), (3, 3), 64, PASS, ""),
        ((3, 2, 1), (3, 2), (3, 3), 64, FAIL, "entries 1 of its error log are gone"),
        ((3, 2, 1), (), (3, 0), 64, FAIL, "counted 3 errors in its life, and later 0"),
        ((3, 2, 1), (), (3, 3), 64, FAIL, "entries 1, 2, 3"),
        ((), (), (3, 3), 64, INCONCLUSIVE, "its log holds 0"),
        ((3, 2, 1), (4, 3, 2, 1), (3, 4), 64, FAIL, "1 commands failed while it was read"),
        ((9, 8, 7), (9, 8, 7), (9, 9), 3, PASS, ""),  # full: older ones were pushed out
        ((9, 8, 7), (10, 9, 8), (9, 10), 3, FAIL, "1 commands failed while it was read"),
    ],
)
def test_an_error_log_that_lost_entries_between_two_readings_is_never_silently_fine(whole, first, second, counted, places, verdict, says):
    result = check(judged(logged(whole, first, second, counted, places)), "g1.drive.error_log_kept")
    assert result.verdict is verdict
    assert says in result.reason.en


@pytest.mark.parametrize(
    ("first", "second", "counted", "places", "verdict", "says"),
    [
        ((), (), (0, 0), 64, PASS, ""),
        ((1,), (1,), (1, 1), 64, FAIL, "1 failed commands"),
        ((), (), (1, 1), 64, INCONCLUSIVE, "counted 1 errors in its life, its log holds 0"),
        ((), (), (0, 0), 63, INCONCLUSIVE, "63 places of its error log are told, it has 64"),
        ((), (1,), (0, 1), 64, INCONCLUSIVE, "nothing in the first reading and 1 commands in the second"),
    ],
)
def test_an_empty_error_log_passes_only_where_neither_count_nor_places_nor_the_second_reading_say_otherwise(
    whole, first, second, counted, places, verdict, says
):
    result = check(judged(logged(whole, first, second, counted, places)), "g1.drive.error_log")
    assert (result.verdict, result.severity, says in result.reason.en) == (verdict, Severity.BLOCKING, True)


@pytest.mark.parametrize("path", [f"{SECOND}nvme-error-log.nvme1.out", f"{SECOND}nvme-smart-log.nvme1.out", f"{FIRST}nvme-smart-log.nvme1.out"])
def test_a_reading_that_is_missing_is_no_pass(whole, path):
    result = check(judged({name: data for name, data in whole.items() if name != path}), "g1.drive.error_log_kept")
    assert result.verdict is INCONCLUSIVE


def older(files: Files, *words: str) -> Files:
    """Return the files as a survey of an earlier release brought them: without the commands whose names begin so."""
    out = {path: data for path, data in files.items() if not any(f"/{word}" in path for word in words)}
    for path in [p for p in out if p.endswith("commands.json")]:
        out[path] = json.dumps([row for row in json.loads(out[path]) if not row["name"].startswith(words)]).encode()
    return out


def test_evidence_of_an_earlier_survey_is_named_as_not_told_and_where_the_plan_names_it_it_is_missed(whole):
    files = older(whole, "dmidecode-cpu", "amd-smi-partition", "amd-smi-topology", "nvme-error-log")
    left = {row["check"] for row in judged(files).not_tested}
    assert {"g1.cpu", "g1.gpu.partition", "g1.gpu.mesh", "g1.drive.error_log_kept"} <= left
    for name, planned in (("g1.cpu", {"cpu": EPYC}), ("g1.gpu.partition", {"partition": {"compute": "SPX", "memory": "NPS1"}})):
        result = under(files, name, **planned)
        assert (result.verdict, result.severity) == (INCONCLUSIVE, Severity.BLOCKING)


def test_a_plan_that_names_neither_processors_nor_partitions_keeps_its_hash():
    assert parse_plan({"platform": {"cpu": None, "partition": None}}).hash == parse_plan().hash
    assert parse_plan({"platform": {"cpu": EPYC}}).hash != parse_plan().hash
