"""What the world outside saw of an attempt: the target's diary and files, the store, the rows, the processes. Nothing of the engine is asked."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Sample, Step, StepEvent, Transition, VerdictRevision
from app.attempts.moves import CREATE
from app.audit import chain
from app.engine import durable, marker
from app.engine.models import HostLock
from app.evidence.models import EvidenceFile
from app.kit.db import read_session
from app.settings import settings
from gates.transitions import Event, RunStatus, apply
from lanes.chaos import ends
from lanes.chaos.findings import DOUBLED, LOST, WRONG, Finding
from lanes.chaos.soak import Soak
from lanes.chaos.witness import EMITTED, WITNESSED, notebook
from tests.processes import mentions

__all__ = ["DOUBLED", "LOST", "WRONG", "Finding", "of_all", "of_attempt", "patience"]
GOOD_BYE_S = 5.0
KILLED = "inconclusive"  # of a job that was killed: evidence without an end. Of one whose target was rebooted: no agreed cause


def of_attempt(soak: Soak, reference: str, struck: Sequence[ends.Struck] = ()) -> list[Finding]:
    """Return all that is wrong with an attempt that should have ended. `reference`: the substance of the undisturbed verdict; `struck`: by what."""
    with read_session() as s:
        attempt = s.get_one(Attempt, soak.id)
        if soak.ended_s is None:
            why = f"{attempt.status} at step {soak.seen}, generation {attempt.generation}, due {attempt.next_due_at}"
            return [Finding(LOST, f"it did not come to an end: {why}")]
        found = [*ends.status(attempt, soak, struck), *_starts(attempt, soak), *_verdict(s, attempt, soak, reference), *_path(s, attempt)]
        found += _events(s, soak, full=any(one.fault == ends.FULL[1] for one in struck))
        if attempt.status == RunStatus.FINISHED:
            found += [*_journals(s, soak), *_evidence(s, soak)]
        return found + _left(s, soak)


def of_all() -> list[Finding]:
    """Return what is wrong with the audit chain."""
    with read_session() as s:
        return [Finding(LOST, f"audit chain: {problem.en}") for problem in chain.verify(s).problems]


def patience() -> float:
    """Return by how much this machine is slower than one that is ours alone (QUADGATE_CHAOS_SLOWER)."""
    return float(os.environ.get("QUADGATE_CHAOS_SLOWER", "1"))


def _starts(attempt: Attempt, soak: Soak) -> list[Finding]:
    """Return whether the work of each job began once in each boot. Preparing may be repeated, so it is not counted."""
    found, diary = [], soak.root / "diary"
    said = diary.read_text().splitlines() if diary.exists() else []
    for step in soak.jobs:
        boots = [line.partition(" in ")[2] for line in said if line.startswith(f"began {soak.job_of(step)} in ")]
        wanted = 1 + (step == "soak" and "reboot" in soak.facts)  # a soak goes on in the other boot, once
        if len(boots) != len(set(boots)) or len(boots) > wanted:
            found.append(Finding(DOUBLED, f"the job {step} began {len(boots)} times on its target, in {len(set(boots))} boots"))
        elif len(boots) < wanted and attempt.status == RunStatus.FINISHED:
            found.append(Finding(LOST, f"it finished, and its job {step} began in {len(boots)} of {wanted} boots"))
    return found


def _verdict(s: Session, attempt: Attempt, soak: Soak, reference: str) -> list[Finding]:
    rows = list(s.scalars(select(VerdictRevision).where(VerdictRevision.attempt_id == soak.id)))
    if len(rows) > 1:
        return [Finding(DOUBLED, f"{len(rows)} verdicts")]
    if attempt.status == RunStatus.CANCELED:
        return [Finding(WRONG, f"canceled, and judged {rows[0].verdict}")] if rows else []
    if not rows:
        return [Finding(LOST, "it has no verdict")]
    if attempt.verdict != rows[0].verdict:
        return [Finding(WRONG, f"the attempt says {attempt.verdict}, its judgement {rows[0].verdict}")]
    if "reboot" in soak.facts:
        return _rebooted(rows[0])
    if "probe" in soak.facts:
        return [] if rows[0].verdict == KILLED else [Finding(WRONG, f"{rows[0].verdict} and not {KILLED}, although its job was killed")]
    if reference and rows[0].substance != reference:
        return [Finding(WRONG, f"{rows[0].verdict}, and not in every check as undisturbed")]
    return []


def _rebooted(row: VerdictRevision) -> list[Finding]:
    """Hold the verdict of a soak that went on in another boot against the only right one: the whole load is there, and the cause is for people.

    Of what blocks; the clocks of a replayed load are not those of its job, which is told beside, with and without a reboot.
    """
    breaks = [one["kind"] for one in (row.document.get("figures") or {}).get("breaks") or []]
    answers = {str(one["verdict"]) for one in row.document.get("checks") or [] if one.get("severity") == "blocking"}
    if (row.verdict, breaks) == (KILLED, ["reboot"]) and answers == {"pass", KILLED}:
        return []
    return [Finding(WRONG, f"{row.verdict} with breaks {breaks} and answers {sorted(answers)} after a reboot, and not {KILLED} for want of a cause")]


def _path(s: Session, attempt: Attempt) -> list[Finding]:
    """Walk the transitions again: each must be legal, and begin where the one before ended."""
    status = RunStatus.QUEUED
    rows = list(s.scalars(select(Transition).where(Transition.attempt_id == attempt.id).order_by(Transition.generation)))
    if rows and (rows[0].from_status, rows[0].event, rows[0].to_status) == ("", CREATE, status):
        rows.pop(0)  # of an attempt that a person started
    for row in rows:
        if row.from_status != status or apply(status, Event(row.event)) != row.to_status:
            return [Finding(DOUBLED, f"transition {row.event} from {row.from_status} to {row.to_status} follows {status}")]
        status = RunStatus(row.to_status)
    return [] if status == attempt.status else [Finding(LOST, f"the transitions end in {status}, the attempt is {attempt.status}")]


def _events(s: Session, soak: Soak, *, full: bool) -> list[Finding]:
    """Compare what the playbooks emitted with what is stored: of a run that ended all, of one that was killed all that it could write.

    `full`: its file system was full for a while; a run whose result says that events found no room is refused by the engine, and kept what it has.
    """
    found = []
    steps = {step.id: step.key for step in s.scalars(select(Step).where(Step.attempt_id == soak.id))}
    stored: dict[str, list[str]] = {}
    kinds: dict[str, Counter[str]] = {}
    for row in s.execute(select(StepEvent.step_id, StepEvent.run, StepEvent.uuid, StepEvent.kind).where(StepEvent.attempt_id == soak.id)):
        name = f"{steps[row.step_id]}-{row.run}"
        stored.setdefault(name, []).append(row.uuid)
        kinds.setdefault(name, Counter())[row.kind] += 1
    for folder in sorted((settings().runs_dir / soak.id).glob("*-*")):
        written = [json.loads(line)["uuid"] for line in _lines(folder / "events.jsonl")]
        here = stored.pop(folder.name, [])
        emitted = _lines(notebook(folder, EMITTED)) if not soak.real else written
        if len(here) != len(set(here)):
            found.append(Finding(DOUBLED, f"{folder.name}: an event is stored twice"))
        result = durable.read_json(folder / "result.json")
        ended = result is not None and not (full and result.get("events_lost"))
        if set(here) != set(written) or (ended and set(here) != set(emitted)):
            numbers = f"{len(emitted)} emitted, {len(written)} written, {len(here)} stored, {'ended' if ended else 'killed'}"
            found.append(Finding(LOST, f"events of {folder.name}: {numbers}"))
        missed = Counter(_lines(notebook(folder, WITNESSED))) - kinds.get(folder.name, Counter())
        if soak.real and ended and missed:
            found.append(Finding(LOST, f"events of {folder.name} that Ansible emitted and nobody stored: {dict(missed)}"))
    return found + [Finding(DOUBLED, f"events of a run that is not there: {name}") for name in stored]


def _lines(path: Path) -> list[str]:
    """Return the whole lines of a file."""
    data = path.read_bytes() if path.exists() else b""
    return [line.decode() for line in data[: data.rfind(b"\n") + 1].splitlines()]


def _journals(s: Session, soak: Soak) -> list[Finding]:
    """Hold the target's journals against their numbers, and the stored samples against the journals."""
    found = []
    for step, stream in product(soak.jobs, ("records", "telemetry")):
        numbers = [json.loads(line)["seq"] for line in _lines(soak.root / "jobs" / soak.job_of(step) / f"{stream}.jsonl")]
        if numbers != list(range(len(numbers))):
            found.append(Finding(LOST, f"{stream}.jsonl of {step} on the target has a gap or a repeat"))
        ours = (Step.attempt_id == soak.id, Step.key == step, Sample.stream == stream)
        kept = list(s.scalars(select(Sample.seq).join(Step, Step.id == Sample.step_id).where(*ours).order_by(Sample.seq)))
        if kept != numbers:
            found.append(Finding(LOST if len(kept) < len(numbers) else DOUBLED, f"{step} {stream}: {len(numbers)} lines, {len(kept)} samples"))
    return found


def _evidence(s: Session, soak: Soak) -> list[Finding]:
    """Hold the registered evidence against what lies on the target, byte by byte."""
    known = {row.path: row.sha256 for row in s.scalars(select(EvidenceFile).where(EvidenceFile.attempt_id == soak.id))}
    found = []
    for step, name in product(soak.jobs, ("records.jsonl", "telemetry.jsonl", "phases.jsonl")):
        path = soak.root / "jobs" / soak.job_of(step) / name
        if name == "telemetry.jsonl" and not path.exists():
            continue  # of a run
        whole = "".join(f"{line}\n" for line in _lines(path)).encode()
        if known.get(f"evidence/{step}/{soak.root.name}/{name}") != hashlib.sha256(whole).hexdigest():
            found.append(Finding(LOST, f"the evidence {name} of {step} is not what the target has"))
    return found


def _left(s: Session, soak: Soak) -> list[Finding]:
    """Look for processes and locks of an attempt that has ended; its last playbook host may need a moment to say good-bye."""
    deadline = time.monotonic() + GOOD_BYE_S * patience()
    while (pids := {*marker.carriers(soak.id), *mentions(soak.root)}) and time.monotonic() < deadline:
        time.sleep(0.2)
    found = [Finding(LOST, f"process {pid} is left") for pid in pids]
    found += [Finding(LOST, f"the lock of {row.target} is left") for row in s.scalars(select(HostLock).where(HostLock.attempt_id == soak.id))]
    for lock in soak.root.glob("jobs/*/lock"):
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(Finding(LOST, f"the job's lock {lock.parent.name} is held"))
    return found
