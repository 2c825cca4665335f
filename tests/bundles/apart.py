"""The same evidence from two hosts: the load generator where the runs were, and an engine host with a boot and a clock of its own."""

from __future__ import annotations

from typing import Any

from gates.model import StepKind, StepSpec
from gates.rules.attended import ANSWERED, digest
from tests.bundles.evidence import ATTEMPT, Evidence, dumped, journal

ENGINE_HOST, THERE = "gpu09", "b009-0007"
AHEAD = 7_777 * 10**9  # by so much (ns) the engine host's monotonic clock is ahead
SPAN = 10_000  # ns between asking and answer; a look comes 1 ms behind the last request


def put_apart(evidence: Evidence, steps: tuple[StepSpec, ...]) -> Evidence:
    """Move what rests on the engine's host to a host of its own, with the account that its attendant keeps. Edits in place."""
    evidence.inputs(lambda d: d["hosts"].update(engine=[ENGINE_HOST]))
    for path in [path for path in evidence.files if path.startswith("evidence/deploy/")]:
        evidence.files[path.replace("/gpu01/", f"/{ENGINE_HOST}/")] = evidence.files.pop(path)
    for step in (step for step in steps if step.kind is StepKind.JOB):
        _put_apart(evidence, step.key)
    return evidence


def _put_apart(evidence: Evidence, step: str) -> None:
    account: list[dict[str, Any]] = []
    counters = evidence.rows(step, "counters.jsonl")
    cooled = next((p["ended_ns"] for p in evidence.rows(step, "phases.jsonl") if p["phase"] == "cool"), 0)
    moments = {(row["when"], row["tier"]): row["mono_ns"] for row in counters}

    def on(verb: str, answered: int, row: dict[str, Any]) -> dict[str, Any]:
        held = {key: row[key] for key in ANSWERED[verb] if key in row}
        stamps = {"wall_ns": 10**18 + answered, "mono_ns": answered + AHEAD + len(account), "boot_id": THERE}  # no two answers at one moment
        account.append({**stamps, "verb": verb, "error": None, "sha256": digest([held] if verb == "residency" else held)})
        return {**stamps, "host": ENGINE_HOST, "asked_ns": answered - SPAN, "answered_ns": answered}

    for row in counters:
        row["on"] = on("reading", row["mono_ns"], row)
    cold = evidence.rows(step, "coldness.jsonl")
    for row in cold:
        row["on"] = on("residency", cooled if row["when"] == "after_cool" else moments[row["when"].partition("_")[0], row["tier"]], row)
        row["engine"]["boot_id"] = THERE
    evidence.lines(step, "counters.jsonl", lambda _: counters)
    evidence.lines(step, "coldness.jsonl", lambda _: cold)
    if evidence.path(step, "telemetry.jsonl") in evidence.files:
        place = {"host": ENGINE_HOST, "boot_id": THERE}
        stamps = [{"mono_ns": row["mono_ns"] + AHEAD, "wall_ns": 10**18, "boot_id": THERE} for row in evidence.rows(step, "telemetry.jsonl")]
        account += [{**stamp, "verb": "sample", "error": None} for stamp in stamps]
        evidence.lines(step, "telemetry.jsonl", lambda rows: [{**row, "on": {**place, "mono_ns": row["mono_ns"] + AHEAD}} for row in rows])
    job = evidence.read(step, "job.json")
    folder, name = f"evidence/{step}/{ENGINE_HOST}", f"{ATTEMPT}-{step}"
    attend = {"schema": 1, "job": name, "kind": "attend", "fence": 1, "host": ENGINE_HOST, "engine": job["engine"]}
    end = {"job": name, "outcome": "done", "error": None, "boot_id": THERE, "records": 0, "last_seq": -1}
    for file, data in (("job.json", attend), ("started", {"boot_id": THERE}), ("exit.json", end), ("pack.json", {"job": name, "files": []})):
        evidence.files[f"{folder}/{file}"] = dumped(data)
    account.sort(key=lambda row: int(row["mono_ns"]))
    evidence.files[f"{folder}/asked.jsonl"] = journal(account)
