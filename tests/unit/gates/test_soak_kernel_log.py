"""The kernel's log of every host of a soak: what failed between two readings of a counter ends the gate; one not read proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gates import g4_soak
from gates.g1.host_log import NAMES
from gates.judge import judge
from gates.readers.kernel_log import FAMILIES
from gates.readers.soak_kernel import FILE, digest
from tests.bundles import Evidence, g4_evidence, record_injection, soak_plan
from tests.bundles.apart import AHEAD, ENGINE_HOST, put_apart
from tests.bundles.evidence import HOST
from tests.bundles.kernel import kernel_says
from tests.unit.gates.breaches_g4 import reboot
from tests.unit.gates.even_soak import WINDOW, S, Soak
from tests.unit.gates.soaks import load

Row = dict[str, Any]
LINES = {
    "nvme_timeout": "nvme nvme0: I/O 12 QID 3 timeout, aborting",
    "nvme_fabric": "nvme nvme4: Reconnecting in 10 seconds...",
    "block_io": "blk_update_request: I/O error, dev nvme1n1, sector 2048 op 0x0:(READ)",
    "pcie_uncorrected": "pcieport 0000:40:01.1: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:41:00.0",
    "machine_check": "mce: [Hardware Error]: Machine check events logged",
    "gpu": "amdgpu 0000:05:00.0: amdgpu: GPU reset begin!",
    "link_down": "mlx5_core 0000:81:00.0 ens8f0np0: Link down",
    "hung_task": "INFO: task fio:4711 blocked for more than 120 seconds.",
    "file_system": "XFS (md0): Filesystem has been shut down due to log error (0x2).",
    "out_of_memory": "Out of memory: Killed process 4242 (python3) total-vm:1kB",
}
CORRECTED = "pcieport 0000:40:01.1: AER: Corrected error received: 0000:41:00.0"
PULL = {"g4": {"injections": [{"label": "pull", "action": "pull-path", "at": "5 h", "lasts": "1 min"}]}}


def answer(evidence: Evidence) -> Row:
    document = judge(evidence.bundle())
    return {**next(c for c in document["checks"] if c["id"] == "g4.kernel_log"), "gate": document["verdict"]}


def rows(edit: Callable[[list[Row]], Any], evidence: Evidence | None = None) -> Evidence:
    return (evidence or load()).lines("soak", FILE, edit, renumber=True)


def emptied(evidence: Evidence) -> Evidence:
    evidence.files[evidence.path("soak", FILE)] = b""
    return evidence.repack("soak")


def at_large() -> Evidence:
    """Return a soak of a load generator and an engine host of its own."""
    evidence = g4_evidence(plan=soak_plan())
    return put_apart(evidence, g4_soak.steps(evidence.plan))


def test_every_family_but_what_mended_itself_has_a_line_here_and_a_name() -> None:
    assert (set(LINES) | {"pcie_corrected"}, set(NAMES)) == (set(FAMILIES), set(FAMILIES))


def test_a_calm_log_passes_and_corrected_errors_are_told() -> None:
    calm = answer(kernel_says(load(), CORRECTED, "veth0: entered promiscuous mode"))
    assert (calm["verdict"], calm["severity"], calm["value"]) == ("pass", "blocking", "0")
    assert "1 hosts, 2 lines under load, tell no fault; corrected PCIe errors: 1" in calm["reason"]["en"]


@pytest.mark.parametrize("family", LINES)
def test_one_line_of_a_fault_between_two_readings_ends_the_gate(family: str) -> None:
    told = answer(kernel_says(load(), LINES[family]))
    assert (told["verdict"], told["value"], told["gate"]) == ("fail", "1", "fail")
    assert LINES[family][:60] in told["reason"]["en"]
    assert "hour 6.0" in told["reason"]["en"]
    assert NAMES[family].zh in told["reason"]["zh-CN"]


@pytest.mark.parametrize(
    ("offset", "verdict"),
    [(-2 * S, "fail"), (S, "pass"), (61 * S, "pass"), (63 * S, "fail")],
    ids=["before", "in", "after", "late"],
)
def test_what_a_planned_injection_brings_about_is_no_break_within_it_and_a_minute_behind(offset: int, verdict: str) -> None:
    soak = Soak(PULL).load().samples()
    begun = soak.start + 5 * WINDOW + S
    evidence = record_injection(soak.evidence, "pull", begun, begun + 2 * S)
    told = answer(kernel_says(evidence, LINES["nvme_fabric"], at_ns=begun + offset))
    assert told["verdict"] == verdict
    assert verdict == "fail" or "both parties approved: 1." in told["reason"]["en"]


def test_stamps_of_the_kernel_that_drift_from_the_clock_stay_between_the_two_readings_that_brought_them() -> None:
    """A line of the second half, said to be of the first hour, is not excused by an injection of the first hour."""
    soak = Soak({"g4": {"injections": [{"label": "pull", "action": "pull-path", "at": "1 min", "lasts": "1 min"}]}}).load().samples()
    evidence = record_injection(soak.evidence, "pull", soak.start + 2 * S, soak.start + 4 * S)

    def edit(found: list[Row]) -> None:
        middle, last = found[-2]["read"]["mono_ns"], found[-1]
        assert middle > soak.start + 4 * S + 60 * S
        last["lines"] = [f"[{(soak.start + 3 * S) / 10**9:.6f}] {LINES['link_down']}"]
        last.update(kept=1, sha256=digest(last["lines"]))

    assert answer(evidence.lines("soak", FILE, edit))["verdict"] == "fail"


DOUBTS: dict[str, tuple[Callable[[], Evidence], str]] = {
    "no journal": (lambda: load().drop(load().path("soak", FILE)).repack("soak"), "no kernel log of the load was brought"),
    "empty": (lambda: emptied(load()), "no kernel log of the load was brought"),
    "not read": (
        lambda: rows(lambda found: [{**r, "problem": "dmesg: read kernel buffer failed: Operation not permitted", "joined": False} for r in found]),
        "Operation not permitted",
    ),
    "begun late": (lambda: rows(lambda found: found[1:]), "behind the begin of the load"),
    "ended early": (lambda: rows(lambda found: found[:-1]), "not read behind the end"),
    "overwritten": (lambda: rows(lambda found: found[-1].update(joined=False)), "overwritten or cleared"),
    "begun anew": (lambda: rows(lambda found: found[-1].update(begins=True)), "overwritten or cleared"),
    "no room": (lambda: rows(lambda found: found[-1].update(left_out=3)), "3 lines found no room"),
    "a line taken out": (lambda: rows(lambda found: found[1].update(lines=[]), kernel_says(load(), LINES["gpu"])), "lacks a field"),
    "another boot": (lambda: rows(lambda found: [r["read"].update(boot_id="b1") for r in found] and None), "no reading of its kernel log in boot"),
    "another host": (lambda: rows(lambda found: [r.update(host="gpu77") for r in found] and None), "gpu01: no kernel log"),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_a_log_that_was_not_read_whole_proves_nothing_and_says_what_would(name: str) -> None:
    make, words = DOUBTS[name]
    told = answer(make())
    assert (told["verdict"], told["gate"]) == ("inconclusive", "inconclusive"), told["reason"]["en"]
    assert words in told["reason"]["en"]
    assert told["change"]["zh-CN"]


def test_a_log_that_may_not_be_read_says_which_right_the_probe_lacks() -> None:
    told = answer(DOUBTS["not read"][0]())
    assert "kernel.dmesg_restrict=0" in told["change"]["en"]
    assert "systemd-journal 组" in told["change"]["zh-CN"]
    assert HOST in told["change"]["en"]


def test_a_fault_stays_one_whatever_else_is_in_doubt() -> None:
    evidence = kernel_says(load(), LINES["machine_check"])
    assert answer(rows(lambda found: found[-1].update(joined=False), evidence))["verdict"] == "fail"


def test_a_plan_that_does_not_ask_for_it_is_told_what_was_brought_and_that_nothing_was() -> None:
    plan = {"evidence": {"required": ["aer"]}}
    told = answer(kernel_says(Soak(plan).load().samples().evidence, LINES["gpu"]))
    assert (told["verdict"], told["severity"], told["gate"]) == ("fail", "advisory", "pass")
    evidence = Soak(plan).load().samples().evidence
    left = {row.get("check") for row in judge(evidence.drop(evidence.path("soak", FILE)).repack("soak").bundle())["not_tested"]}
    assert "g4.kernel_log" in left


@pytest.mark.parametrize("host", [HOST, ENGINE_HOST])
def test_the_load_generator_and_the_engines_host_are_both_asked(host: str) -> None:
    assert answer(at_large())["verdict"] == "pass"
    told = answer(kernel_says(at_large(), LINES["link_down"], host=host))
    assert (told["verdict"], told["value"]) == ("fail", "1")
    assert host in told["reason"]["en"]
    silent = answer(rows(lambda found: [r for r in found if r["host"] != host], at_large()))
    assert silent["verdict"] == "inconclusive"
    assert f"{host}: no kernel log" in silent["reason"]["en"]


def test_an_injection_is_held_against_the_clock_of_the_host_that_wrote_the_line() -> None:
    plan = soak_plan(PULL)
    evidence = put_apart(g4_evidence(plan=plan), g4_soak.steps(plan))
    phase = next(p for p in evidence.rows("soak", "phases.jsonl") if p["phase"] == "soak")
    begun = phase["started_ns"] + int(plan.scaled_seconds(plan.g4.injections[0].at.base) * S)
    pair = evidence.rows("soak", "records.jsonl")[-1]["boot_id"]
    evidence = record_injection(evidence, "pull", begun, begun + S, pair)
    assert answer(kernel_says(evidence, LINES["link_down"], host=ENGINE_HOST, at_ns=begun + AHEAD + S // 2))["verdict"] == "pass"


def test_a_boot_that_a_reboot_ended_needs_no_reading_behind_its_end_and_what_it_told_counts() -> None:
    evidence = reboot()

    def cut_off(found: list[Row]) -> list[Row]:
        first = found[0]["boot_id"]
        mine = [r for r in found if r["boot_id"] == first]
        return [r for r in found if r is not mine[-1]]

    told = answer(rows(cut_off, evidence))
    assert told["verdict"] == "pass", told["reason"]["en"]
