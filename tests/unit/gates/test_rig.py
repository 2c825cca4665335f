"""What is told of the rig: pauses of the storage ports, steps of the wall clock. Neither decides; neither is fine when it is not told whole."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from gates.plan import parse_plan
from tests.bundles import Evidence, g2_evidence, g4_evidence, soak_plan
from tests.unit.gates.rig import paused, stepped
from tests.unit.gates.test_told import found, left_out

RUNS = ("run-1", "run-2", "run-3")


def told(evidence: Evidence, name: str) -> tuple[str, str]:
    check = found(judge(evidence.bundle()), name)
    assert check["severity"] == "advisory"
    return check["verdict"], check["reason"]["en"]


def without(evidence: Evidence, step: str) -> Evidence:
    evidence.drop(evidence.path(step, "ports.json"))
    return evidence.repack(step)


def test_a_host_whose_ports_tell_nothing_is_named_and_one_silent_run_of_several_is_no_pass() -> None:
    assert {"g2.pauses", "g2.port_errors"} <= left_out(judge(g2_evidence().bundle()))
    assert told(paused(g2_evidence(), RUNS, 40), "g2.pauses")[0] == "pass"
    verdict, words = told(without(paused(g2_evidence(), RUNS, 40), "run-2"), "g2.pauses")
    assert (verdict, "1 of 3 runs" in words) == ("inconclusive", True)


@pytest.mark.parametrize("way", ["rx_prio0", "rx_global"])
def test_a_pause_of_another_priority_is_a_fault_however_short(way: str) -> None:
    verdict, words = told(paused(g2_evidence(), RUNS, 1, way), "g2.pauses")
    assert (verdict, f"paused in {way}" in words, "priority 3" in words) == ("fail", True, True)


def edited(edit: Any) -> Evidence:
    return paused(g2_evidence(), RUNS, 40).json("run-2", "ports.json", lambda d: {**d, "readings": edit(d["readings"]) or d["readings"]})


def later(edit: Any) -> Any:
    def change(rows: list[dict[str, Any]]) -> None:
        edit(rows[1], rows[1]["ports"]["ens3f0np0"])

    return change


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: rows[:1],
        lambda rows: rows[::-1],
        later(lambda row, port: row.update(boot_id="another")),
        later(lambda row, port: row.update(mono_ns=0)),
        later(lambda row, port: row.update(ports={})),
        later(lambda row, port: row["ports"].update(ens3f0np0="45")),
        later(lambda row, port: (port["pauses_us"].pop("tx_prio3"), port["errors"].pop("rx_discards_phy"))),
        later(lambda row, port: (port["pauses_us"].update(tx_prio3=6), port["errors"].update(rx_crc_errors_phy=2))),
        later(lambda row, port: (port["pauses_us"].update(tx_prio3="7"), port["errors"].update(rx_crc_errors_phy=None))),
    ],
)
def test_readings_that_cannot_be_compared_are_inconclusive(edit: Any) -> None:
    for name in ("g2.pauses", "g2.port_errors"):
        assert told(edited(edit), name)[0] == "inconclusive"


def test_errors_that_a_port_counts_while_something_is_measured_are_told() -> None:
    verdict, words = told(paused(g2_evidence(), RUNS, 40, errors=2), "g2.port_errors")
    assert (verdict, "6 errors" in words, "rx_crc_errors_phy of ens3f0np0: 2 during run-" in words) == ("fail", True, True)


def test_a_port_that_counts_no_time_of_pauses_still_tells_its_errors() -> None:
    def frames_only(document: dict[str, Any]) -> None:
        for row in document["readings"]:
            row["ports"]["ens3f0np0"]["pauses_us"] = {}

    evidence = paused(g2_evidence(), RUNS, 40)
    for step in RUNS:
        evidence.json(step, "ports.json", frames_only)
    assert told(evidence, "g2.port_errors")[0] == "pass"
    assert "g2.pauses" in left_out(judge(evidence.bundle()))


def test_a_wall_clock_that_is_set_shows_in_runs_and_soaks_and_decides_nothing() -> None:
    assert told(g2_evidence(), "g2.clock_steps") == ("pass", "The wall clock was never set by more than 0 s (at most 128 ms).")
    back = stepped(g2_evidence(), "run-3", -3 * 10**9)
    assert told(back, "g2.clock_steps") == ("fail", "The wall clock was set by 3 s during run-3 (at most 128 ms).")
    assert judge(back.bundle())["verdict"] == "pass"

    def hop(rows: list[dict[str, Any]]) -> None:
        rows[0]["wall_ns"] += 10**9

    assert told(g4_evidence(plan=soak_plan()), "g4.clock_steps")[0] == "pass"
    assert told(g4_evidence(plan=soak_plan()).lines("soak", "events.jsonl", hop), "g4.clock_steps")[0] == "fail"
    followed = g2_evidence().json("run-1", "client.json", lambda d: d["receipts"].update(clock_steps=2))
    assert "followed 2 changes" in told(followed, "g2.clock_steps")[1]


def test_two_boots_are_two_clocks() -> None:
    def boots(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "boot_id": "b007-0000", "started_wall_ns": row["started_wall_ns"] + 10**15} if n < 2 else row for n, row in enumerate(rows)]

    assert told(g2_evidence().lines("run-1", "phases.jsonl", boots), "g2.clock_steps")[0] == "pass"


def test_a_run_that_stamps_one_clock_only_is_no_pass_and_none_that_does_is_named() -> None:
    silent = g2_evidence()
    for step in RUNS:
        silent.lines(step, "phases.jsonl", lambda rows: [{k: v for k, v in row.items() if k != "started_wall_ns"} for row in rows])
        if step == "run-2":
            assert told(silent, "g2.clock_steps")[0] == "inconclusive"
    assert "g2.clock_steps" in left_out(judge(silent.bundle()))


def test_a_plan_that_keeps_the_limits_of_the_rig_keeps_its_hash() -> None:
    assert parse_plan({"validity": {"pause_share_max": "0.01", "clock_step_max": "128 ms"}}).hash == parse_plan().hash
    assert parse_plan({"validity": {"clock_step_max": "1 s"}}).hash != parse_plan().hash


def corrected(edit: Any) -> tuple[str, str]:
    """Say what a change of the port's row at the second reading of one run makes of the check of corrected bits."""
    evidence = paused(g2_evidence(), RUNS, 40, bits=7)
    return told(evidence.json("run-2", "ports.json", lambda d: edit(d["readings"][1]["ports"]["ens3f0np0"]) and None), "g2.corrected_bits")


def test_the_bits_that_fec_corrected_are_told_with_the_lane_that_has_most() -> None:
    verdict, words = corrected(lambda port: True)
    assert (verdict, "7.00e-10" in words, "most on rx_err_lane_1_phy" in words) == ("pass", True, True)
    assert "g2.corrected_bits" in left_out(judge(g2_evidence().bundle()))


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda port: port.pop("bit_per_s"), "does not tell one speed"),
        (lambda port: port.update(bit_per_s=2 * 10**9), "does not tell one speed"),
        (lambda port: port.update(corrected={}), "1 of 3 runs"),
        (lambda port: port["corrected"].update(rx_corrected_bits_phy=1), "1 of 3 runs"),
        (lambda port: port["corrected"].update(rx_corrected_bits_phy="907"), "1 of 3 runs"),
    ],
)
def test_corrected_bits_that_are_not_told_whole_are_no_pass(edit: Any, says: str) -> None:
    verdict, words = corrected(edit)
    assert (verdict, says in words) == ("inconclusive", True)


def test_a_port_that_counts_lanes_and_no_total_is_said() -> None:
    evidence = paused(g2_evidence(), RUNS, 40)
    for run in RUNS:
        evidence.json(
            run, "ports.json", lambda d: [r["ports"]["ens3f0np0"]["corrected"].pop("rx_corrected_bits_phy") for r in d["readings"]] and None
        )
    assert told(evidence, "g2.corrected_bits") == ("inconclusive", "ens3f0np0 does not tell rx_corrected_bits_phy.")


@pytest.mark.parametrize("job", [None, "0193-attempt-run-1"])
def test_ports_of_another_run_or_of_none_that_is_named_tell_nothing_of_this_one(job: str | None) -> None:
    evidence = paused(g2_evidence(), RUNS, 40).json("run-2", "ports.json", lambda d: {**d, "job": job})
    for name in ("g2.pauses", "g2.port_errors", "g2.corrected_bits"):
        verdict, words = told(evidence, name)
        assert (verdict, "1 of 3 runs" in words) == ("inconclusive", True)
