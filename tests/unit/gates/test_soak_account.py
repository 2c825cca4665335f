"""Every request of a soak is on record once: against what the engine counted, against itself, and against a loop that must stay full."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Evidence, counted_again, g4_evidence, record_injection, soak_plan, told_again
from tests.bundles.job import SERVED

Row = dict[str, Any]
HOUR = 10**9  # of the plan, in nanoseconds of a clock that is 3600 times as fast
PLANNED = {"label": "restart", "action": "engine-restart", "at": "5 h", "lasts": "30 min"}


@functools.cache
def whole() -> Evidence:
    return g4_evidence(plan=soak_plan({"g4": {"injections": [PLANNED]}}))


def soak(*, restarted: bool = False) -> Evidence:
    """Give a soak with its agreed restart on record; the engine is another process behind it, if asked for."""
    evidence = Evidence("G4", whole().plan, dict(whole().files), simulated=True)
    begun = next(r["started_ns"] for r in evidence.rows("soak", "phases.jsonl") if r["phase"] == "soak")
    low, high = begun + 5 * HOUR, begun + int(5.5 * HOUR)
    record_injection(evidence, "restart", low, high)
    if restarted:
        new = {"pid": 4711, "start_ticks": 5}

        def anew(rows: list[Row]) -> list[Row]:
            base = next(int(r["metrics"][SERVED]) for r in rows if r["mono_ns"] > high)
            return [
                {**r, "engine": {**r["engine"], **new}, "metrics": {**r["metrics"], SERVED: str(int(r["metrics"][SERVED]) - base)}}
                if r["mono_ns"] > high
                else r
                for r in rows
                if not low <= r["mono_ns"] <= high
            ]

        evidence.lines("soak", "telemetry.jsonl", anew, renumber=True)
    return evidence


def claim(evidence: Evidence, name: str = "requests_accounted") -> tuple[str, str]:
    document = judge(evidence.bundle())
    return next(c["status"] for c in document["claims"] if c["claim"] == name), document["verdict"]


def records(evidence: Evidence, edit: Callable[[list[Row]], list[Row]]) -> Evidence:
    """Change the requests of the load; those of the store phase stay."""

    def split(rows: list[Row]) -> list[Row]:
        return [r for r in rows if r["phase"] != "soak"] + edit([r for r in rows if r["phase"] == "soak"])

    return evidence.lines("soak", "records.jsonl", split, renumber=True)


def metrics(evidence: Evidence, edit: Callable[[dict[str, str]], Any]) -> Evidence:
    def change(rows: list[Row]) -> None:
        for row in rows:
            if (row["when"], row["phase"]) == ("after", "soak"):
                edit(row["metrics"])

    return evidence.lines("soak", "counters.jsonl", change)


def test_a_journal_that_holds_what_the_engine_counted_holds():
    assert claim(soak()) == ("holds", "pass")
    assert claim(soak(), "littles_law") == ("holds", "pass")


def test_one_request_left_out_of_the_journal_is_missed():
    assert claim(records(soak(), lambda rows: [*rows[:100], *rows[101:]])) == ("breached", "invalid")


def test_one_good_request_twice_is_seen_whether_or_not_the_moment_is_moved():
    assert claim(records(soak(), lambda rows: [*rows[:100], rows[100], *rows[100:]])) == ("breached", "invalid")
    moved = records(soak(), lambda rows: [*rows[:100], {**rows[100], "sent_ns": rows[100]["sent_ns"] + 1}, *rows[100:]])
    assert claim(moved) == ("breached", "invalid")


def test_the_same_prompt_at_the_same_moment_is_one_request_even_where_the_engine_counted_two():
    twice = counted_again(records(soak(), lambda rows: [*rows[:100], rows[100], *rows[100:]]))
    assert claim(twice) == ("breached", "invalid")


@pytest.mark.parametrize(("more", "status"), [(-1, "breached"), (0, "holds"), (1, "holds"), (2, "breached")])
def test_whether_the_engine_counts_a_request_that_failed_is_its_own_affair(more, status):
    """One request of the load failed: so many requests more than those without failure were counted."""
    broken = {"error": {"kind": "timeout", "message": "x"}, "first_text_ns": None, "usage": None, "finish_reason": None}
    evidence = told_again(records(soak(), lambda rows: [{**rows[0], **broken}, *rows[1:]]))
    good = sum(r["error"] is None for r in evidence.rows("soak", "records.jsonl") if r["phase"] == "soak")
    before = next(r["metrics"] for r in evidence.rows("soak", "counters.jsonl") if (r["when"], r["phase"]) == ("before", "soak"))
    assert claim(metrics(evidence, lambda m: m.update({SERVED: str(int(float(before[SERVED])) + good + more)})))[0] == status


@pytest.mark.parametrize("word", ["request_success", "prompt_tokens_total", "generation_tokens"])
@pytest.mark.parametrize("factor", [2, 1000, 0.001])
def test_a_counter_in_another_unit_breaches(word, factor):
    assert claim(metrics(soak(), lambda m: m.update({k: str(int(float(v) * factor)) for k, v in m.items() if word in k})))[0] in (
        "breached",
        "unknown",
    )


@pytest.mark.parametrize("word", ["request_success", "prompt_tokens_total", "generation_tokens"])
def test_a_counter_that_the_engine_has_and_nobody_read_is_a_doubt(word):
    def gone(m: dict[str, str]) -> None:
        for name in [k for k in m if word in k]:
            del m[name]

    assert claim(metrics(soak(), gone)) == ("unknown", "inconclusive")


def test_an_engine_that_counts_no_output_tokens_is_held_to_what_it_counts():
    evidence = metrics(soak(), lambda m: m.pop(next(k for k in m if "generation_tokens" in k)))
    evidence.json("soak", "engine.json", lambda d: d["metrics_names"].remove("vllm:generation_tokens_total"))
    assert claim(evidence) == ("holds", "pass")


def test_over_an_agreed_restart_the_samples_of_each_process_tell():
    assert claim(soak(restarted=True))[0] == "holds"


def test_requests_that_one_process_never_served_are_seen_over_a_restart_too():
    evidence = soak(restarted=True)
    low = evidence.rows("soak", "telemetry.jsonl")[0]["mono_ns"]
    kept = records(evidence, lambda rows: [r for n, r in enumerate(rows) if not (r["end_ns"] < low + 4 * HOUR and n % 5 == 0)])
    assert claim(kept)[0] == "breached"


def test_a_process_whose_count_goes_back_is_a_doubt():
    def back(rows: list[Row]) -> None:
        half = len(rows) // 2
        for row in rows[half:]:
            row["metrics"][SERVED] = str(int(row["metrics"][SERVED]) // 2)

    assert claim(soak(restarted=True).lines("soak", "telemetry.jsonl", back))[0] in ("unknown", "breached")


def pausing(share: float) -> Evidence:
    """Let each worker of the loop pause for a share of the time that its request took."""

    def later(rows: list[Row]) -> list[Row]:
        return [{**r, "sent_ns": r["end_ns"] - int((r["end_ns"] - r["sent_ns"]) * (1 - share))} for r in rows]

    return records(soak(), later)


def test_a_loop_that_pauses_is_not_the_load_that_was_agreed():
    assert claim(pausing(0.2), "littles_law") == ("breached", "invalid")


def test_a_loop_that_pauses_is_seen_whatever_its_job_was_told():
    spaced = pausing(0.2).json("soak", "job.json", lambda d: d["soak"].update(request_cap=10**6))
    assert claim(spaced, "littles_law") == ("breached", "invalid")
