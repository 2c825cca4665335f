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

    def each(found: list[dict[str, Any]]) -> None:
        for row in found:
            edit(row)

    return lambda e: e.lines(step, name, each)


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


@pytest.mark.parametrize(
    ("file", "changed", "words"),
    [
        ("job.json", {"host": "gpu99"}, "host is gpu99, where gpu01 must stand"),
        ("job.json", {"kind": "soak"}, "kind is soak, where run must stand"),
        ("job.json", {"fence": 0}, "fence is 0"),
        ("job.json", {"workload": {"seed": 99, "set": "g2"}}, "job.json: seed is 99"),
        ("workload.json", {"seed": 99}, "workload.json: seed is 99, where 7 must stand"),
        ("workload.json", {"set": "rehearsal-1"}, "set is rehearsal-1, where g2 must stand"),
    ],
)
def test_a_pack_that_is_not_its_steps_by_its_own_words_is_told(file, changed, words):
    document = judged(_g2(), lambda e: e.json("run-2", file, lambda d: d.update(changed)))
    assert document["verdict"] == "inconclusive"
    assert words in said(document)


def test_prompts_of_another_seed_than_the_attempts_are_told():
    document = judged(_g2(), lambda e: e.attempt.update(seed=8))
    assert document["verdict"] == "inconclusive"
    assert "seed is 7, where 8 must stand" in said(document)


def test_an_engine_seen_in_another_boot_than_its_run_is_told():
    document = judged(_g2(), rows("run-2", "coldness.jsonl", lambda r: r["engine"].update(boot_id="other")))
    assert document["verdict"] == "inconclusive"
    assert "the engine was seen in the boot other" in said(document)


def test_counters_of_another_model_are_told():
    def other(row: dict[str, Any]) -> None:
        row["metrics"] = {name.replace('model_name="lab"', 'model_name="else"'): value for name, value in row["metrics"].items()}

    document = judged(_g2(), rows("run-2", "counters.jsonl", other))
    assert document["verdict"] == "inconclusive"
    assert "its counters are of the model else" in next(c["reason"]["en"] for c in document["claims"] if c["claim"] == "equal_work")


@pytest.mark.parametrize(("word", "factor"), [("request_success", 3), ("generation_tokens", 0.5)])
def test_an_engine_that_counted_other_requests_than_the_journal_holds_makes_a_run_invalid(word, factor):
    def other(row: dict[str, Any]) -> None:
        row["metrics"] |= {name: str(factor * float(value)) for name, value in row["metrics"].items() if word in name}

    document = judged(_g3(), rows("run-2", "counters.jsonl", other))
    assert document["verdict"] == "invalid"
    assert [(c["claim"], c["arm"]) for c in document["claims"] if c["status"] == "breached"] == [("requests_accounted", "candidate")]


@pytest.mark.parametrize("changed", [{"context_tokens": 1}, {"requests": 1}])
def test_declared_work_that_is_not_the_plans_is_no_equal_work(changed):
    document = judged(_g2(), lambda e: e.json("run-2", "workload.json", lambda d: [t.update(changed) for t in d["tiers"]] and None))
    assert document["verdict"] == "invalid"


def test_a_frozen_baseline_that_its_hash_does_not_name_is_no_pass():
    document = judged(_g3(), lambda e: e.inputs(lambda d: d["g2_baseline"].update(hash="sha256:" + "f" * 64)))
    assert document["verdict"] == "inconclusive"
    assert "not the one that its hash names" in next(c["reason"]["en"] for c in document["claims"] if c["claim"] == "g2_agreement")


def _earlier(row: dict[str, Any], *also: str) -> None:
    """Let the first text of a measured request come an eighth of its TTFT earlier, by its own stamp and some others."""
    if row["phase"] == "measure":
        cut = (row["first_text_ns"] - row["sent_ns"]) // 8
        for key in ("first_text_ns", *also):
            row[key] -= cut
        row["server"] = {key: value - cut for key, value in row["server"].items()}


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_earlier, "first_byte_ns contradicts"),
        (lambda r: _earlier(r, "first_byte_ns"), "chunk_offsets_us contradicts"),
        (lambda r: r["phase"] == "measure" and r["chunk_offsets_us"].append(10**9), "chunk_offsets_us contradicts"),
        (lambda r: r["phase"] == "measure" and r.update(chunks={"text": 1, "empty": 0, "role": 1, "bundled": False}), "chunks contradicts"),
        (lambda r: r["phase"] == "measure" and r.pop("first_byte_ns"), "first_byte_ns contradicts"),
    ],
)
def test_a_first_text_that_the_other_receipts_do_not_bear_out_is_no_ttft(edit, words):
    document = judged(_g3(), rows("run-2", "records.jsonl", edit))
    assert document["verdict"] == "inconclusive"
    assert words in said(document, "g3.evidence")


def test_measured_requests_have_the_offsets_that_their_job_was_told_to_record():
    def bare(evidence: Evidence) -> None:
        evidence.json("run-2", "job.json", lambda d: d.update(phases={"chunk_offsets": True}))
        rows("run-2", "records.jsonl", lambda r: r["prompt"] == 3 and r.update(chunk_offsets_us=[]))(evidence)

    assert "lack the offsets of their chunks" in said(judged(_g2(), bare))


def _extra(**changed: Any) -> Callable[[Evidence], Any]:
    """Return an edit that puts measured requests on record once more, under another phase or tier."""

    def edit(evidence: Evidence) -> None:
        def more(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
            again = [{**r, **changed, "sent_ns": r["sent_ns"] + 1, "prompt_sha256": r["prompt_sha256"][::-1]} for r in found if r["tier"] == 2]
            return [*found, *again[:5]]

        evidence.lines("run-2", "records.jsonl", more, renumber=True)

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_extra(phase="measure2", error={"kind": "x"}), "5 rows are of measure2 c2, which this step does not have"),
        (_extra(tier=99), "5 rows are of measure c99, which"),
        (_extra(phase="store", tier=99), "5 rows are of store c99, which"),
        (_extra(phase="warmup", tier=None, error={"kind": "x"}), "5 requests of the phase warmup lie outside its time"),
        (lambda e: e.json("run-2", "workload.json", lambda d: d["tiers"].append({"tier": 99})), "1 rows are of measure c99, which"),
        (rows("run-2", "coldness.jsonl", lambda r: r["tier"] == 8 and r.update(tier=9)), "2 rows are of c9, which"),
    ],
)
def test_a_row_of_a_phase_or_tier_that_the_step_does_not_have_is_told(edit, words):
    document = judged(_g2(), edit)
    assert document["verdict"] == "inconclusive"
    assert words in said(document)


def test_a_cell_beside_the_run_that_could_not_be_measured_leaves_the_run_alone():
    failed = {"phase": "cell", "tier": None, "started_ns": 1, "ended_ns": 2, "ok": False, "detail": {"problem": "no fio"}}
    document = judged(_g2(), lambda e: e.lines("run-2", "phases.jsonl", lambda found: [*found, {**found[-1], **failed}], renumber=True))
    assert next(c["status"] for c in document["claims"] if c["claim"] == "failures") == "holds"
