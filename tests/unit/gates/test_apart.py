"""Every witness of a run is asked: one that was left untouched, or copied with the rest, keeps a bundle from passing."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Truth, g2_evidence, g3_evidence
from tests.bundles.evidence import ATTEMPT, Evidence


@cache
def _g2() -> Evidence:
    return g2_evidence(Truth(offsets=True))


@cache
def _g3() -> Evidence:
    return g3_evidence(Truth(offsets=True))


def judged(evidence: Evidence, edit: Callable[[Evidence], Any]) -> dict[str, Any]:
    """Return the verdict on a copy of the evidence after an edit in place."""
    mine = copy.deepcopy(evidence)
    edit(mine)
    return judge(mine.bundle())


def said(document: dict[str, Any], check: str = "g2.evidence") -> str:
    """Return what a check of a document says in English."""
    return str(next(c["reason"]["en"] for c in document["checks"] if c["id"] == check))


def rows(step: str, name: str, edit: Callable[[dict[str, Any]], Any]) -> Callable[[Evidence], Any]:
    """Return an edit of every row of a journal in place."""
    return lambda e: e.lines(step, name, lambda found: [edit(row) and row or row for row in found])


def _copy(evidence: Evidence, source: str, to: str) -> None:
    prefix = evidence.path(source, "")
    for path in [path for path in evidence.files if path.startswith(prefix)]:
        data = evidence.files[path].replace(f"{ATTEMPT}-{source}".encode(), f"{ATTEMPT}-{to}".encode())
        evidence.files[evidence.path(to, path.removeprefix(prefix))] = data
    evidence.repack(to)


def _measured_again(evidence: Evidence) -> None:
    mine = [row for row in evidence.rows("run-2", "records.jsonl") if row["phase"] == "measure"]
    evidence.lines("run-3", "records.jsonl", lambda own: [*(r for r in own if r["phase"] != "measure"), *mine], renumber=True)


def test_untouched_runs_pass():
    assert judge(_g2().bundle())["verdict"] == judge(_g3().bundle())["verdict"] == "pass"


@pytest.mark.parametrize("words", ["run-2 and run-3 overlap", "served by one process", "in the same nanosecond"])
def test_a_run_that_is_a_copy_of_another_is_told_by_clock_process_and_requests(words):
    document = judged(_g2(), lambda e: _copy(e, "run-2", "run-3"))
    assert document["verdict"] == "inconclusive"
    assert words in said(document)


def test_measured_lines_of_another_run_lie_outside_their_phase():
    document = judged(_g2(), _measured_again)
    assert document["verdict"] == "inconclusive"
    assert "of the phase measure c2 lie outside its time" in said(document)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (rows("run-2", "phases.jsonl", lambda r: r["phase"] == "measure" and r.update(started_ns=1, ended_ns=2)), "begins before warmup has ended"),
        (rows("run-2", "counters.jsonl", lambda r: r.update(mono_ns=1)), "counters.jsonl: row 0 (before) was not taken on that side"),
        (rows("run-2", "counters.jsonl", lambda r: r.pop("mono_ns")), "counters.jsonl: row 0 (before) was not taken on that side"),
        (rows("run-2", "coldness.jsonl", lambda r: r.update(mono_ns=1)), "coldness.jsonl: row 0 (after_cool) was not taken on that side"),
    ],
)
def test_what_does_not_lie_in_its_phase_is_no_evidence(edit, words):
    document = judged(_g2(), edit)
    assert document["verdict"] == "inconclusive"
    assert words in said(document)


def test_one_process_may_serve_several_runs_where_it_was_reset_for_each():
    def reset(evidence: Evidence) -> None:
        serving = evidence.rows("run-2", "coldness.jsonl")[0]["engine"]
        evidence.json("run-3", "job.json", lambda d: d.update(phases={"cool": "reset"}))
        rows("run-3", "coldness.jsonl", lambda r: r.update(engine=serving, engine_before=serving))(evidence)

    assert "served by one process" not in said(judged(_g2(), reset))


def _not_ok(phase: str, **detail: Any) -> Callable[[Evidence], Any]:
    return rows("run-2", "phases.jsonl", lambda r: r["phase"] == phase and r.update(ok=False, detail=detail))


@pytest.mark.parametrize("phase", ["measure", "cool", "warmup"])
def test_a_phase_that_the_probe_itself_does_not_find_in_order_proves_nothing(phase):
    document = judged(_g2(), _not_ok(phase, error={"kind": "internal", "message": "the loop lost a request"}))
    assert document["verdict"] == "inconclusive"
    failures = next(c for c in document["claims"] if c["claim"] == "failures")
    assert (failures["status"], "the loop lost a request" in failures["reason"]["en"]) == ("unknown", True)


def test_a_canary_of_the_candidate_that_was_not_as_expected_is_no_pass():
    def missed(evidence: Evidence) -> None:
        cooled = next(r for r in evidence.rows("run-2", "phases.jsonl") if r["phase"] == "warmup")
        row = {**cooled, "phase": "canary", "started_ns": cooled["ended_ns"], "ok": False, "detail": {"new": {"hit": True, "as_expected": False}}}
        evidence.lines("run-2", "phases.jsonl", lambda found: [r for p in found for r in ((p, row) if p == cooled else (p,))], renumber=True)

    document = judged(_g3(), missed)
    assert document["verdict"] == "inconclusive"
    assert '"as_expected": false' in said(document, "g3.candidate_failures")


def test_pages_that_were_resident_behind_cooling_are_left_to_the_plans_limit():
    def few(evidence: Evidence) -> None:
        _not_ok("cool", restarted=True)(evidence)
        rows("run-2", "coldness.jsonl", lambda r: r["when"] == "after_cool" and r.update(resident_bytes=4096, resident_pages=1))(evidence)

    assert judged(_g2(), few)["verdict"] == "pass"


def test_a_job_that_is_done_and_has_an_error_is_not_done():
    document = judged(_g2(), lambda e: e.json("run-2", "exit.json", lambda d: d.update(error={"kind": "oom", "message": "boom"})))
    assert document["verdict"] == "inconclusive"
    assert "boom" in said(document)
