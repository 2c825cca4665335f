"""What a demo that was struck by SIGKILL must account for: each job ran once, and each line it wrote arrived once, in the bundle and live."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

JOBS = "SELECT s.id, s.key, s.result FROM step s JOIN attempt a ON a.id = s.attempt_id WHERE a.gate = ? AND s.kind = 'job' ORDER BY s.position"
REPLIES = "SELECT stdout FROM step_event WHERE step_id = ? AND task = 'reply' AND kind = 'runner_on_ok' AND run LIKE 'start-%' ORDER BY id"
LIVE = "SELECT seq FROM sample WHERE step_id = ? AND stream = ? ORDER BY id"


def complaints(folder: Path, gate: str) -> Iterator[str]:
    """Yield a sentence for everything that a gate of a demo below `folder` lost, doubled, or began twice."""
    with (
        zipfile.ZipFile(folder / "bundles" / f"{gate}.zip") as bundle,
        closing(sqlite3.connect(f"file:{folder / 'state' / 'quadgate.db'}?mode=ro", uri=True)) as database,
    ):
        jobs = database.execute(JOBS, (gate,)).fetchall()
        if not jobs:
            yield f"{gate} has no job"
        for step, key, result in jobs:
            names = [name for name in bundle.namelist() if name.startswith(f"evidence/{key}/")]
            replies = [reply_of(text) for (text,) in database.execute(REPLIES, (step,))]
            yield from begun_twice(f"{gate} {key}", replies, int(json.loads(result)["runs"]["start"]))
            yield from ran_twice(f"{gate} {key}", bundle, names)
            shown = {stream: live(database, step, stream) for stream in ("records", "telemetry")}
            yield from journals(f"{gate} {key}", bundle, names, shown, thinned=key == "soak")


def reply_of(stdout: str) -> str:
    """Return what a start answered, of the line by which Ansible prints it: started or adopted."""
    return str(json.loads(stdout[stdout.index("{") :])["msg"]["state"])


def begun_twice(job: str, replies: list[str], starts: int) -> Iterator[str]:
    """Yield what is wrong with the answers to a job's starts: at most one began it, the last to answer has it, and a lost one may be silent."""
    if not replies:
        yield f"{job}: no start was answered"
    if replies.count("started") > 1 or "started" in replies[1:]:
        yield f"{job}: the starts were answered {replies}: it was begun more than once"
    if "started" not in replies and starts <= len(replies):
        yield f"{job}: the starts were answered {replies}, and none of {starts} was lost: nobody began it"


def ran_twice(job: str, bundle: zipfile.ZipFile, names: list[str]) -> Iterator[str]:
    """Yield what tells of a second process: another than began the job has the last heartbeat, or a phase of the work is there twice."""
    begun, beat = (json.loads(bundle.read(only(names, file))) for file in ("started", "heartbeat.json"))
    if (begun["pid"], begun["boot_id"]) != (beat["pid"], beat["boot_id"]):
        yield f"{job}: process {begun['pid']} began it and {beat['pid']} went on with it"
    phases = [(row["phase"], row["tier"]) for row in rows(bundle, only(names, "phases.jsonl"))]
    if twice := sorted({str(phase) for phase in phases if phases.count(phase) > 1}):
        yield f"{job}: it went through {', '.join(twice)} more than once"


def journals(job: str, bundle: zipfile.ZipFile, names: list[str], shown: dict[str, list[int]], *, thinned: bool = False) -> Iterator[str]:
    """Yield what is missing or double in the journals of a job, and where the live rows are not the same lines in the same order.

    Of a soak a poll keeps some lines only (`thinned`): its live rows are lines of the bundle, each once and in order, from the first to the last.
    """
    for stream, seen in shown.items():
        name = only(names, f"{stream}.jsonl", there=stream == "records")
        if name is None:  # only a soak writes telemetry
            if seen:
                yield f"{job}: {len(seen)} live rows of {stream}, of which the bundle knows nothing"
            continue
        numbers = [row["seq"] for row in rows(bundle, name)]
        if not numbers or numbers != list(range(len(numbers))):
            yield f"{job}: {name} does not count from 0 to its last line without a gap or a double"
        whole = seen == sorted(set(seen) & set(numbers)) and seen[:1] + seen[-1:] == numbers[:1] + numbers[-1:] if thinned else seen == numbers
        if not whole:
            yield f"{job}: {len(seen)} live rows of {stream} are not the {len(numbers)} lines of the bundle"


def live(database: sqlite3.Connection, step: str, stream: str) -> list[int]:
    """Return the numbers of a step's live rows as they were stored."""
    return [seq for (seq,) in database.execute(LIVE, (step, stream))]


def only(names: list[str], file: str, *, there: bool = True) -> Any:
    """Return the one name that ends in a file; None for none where it need not be there."""
    found = [name for name in names if name.rsplit("/", 1)[1] == file]
    assert len(found) == 1 or not (found or there), f"{file} among {names}"
    return found[0] if found else None


def rows(bundle: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    """Return the lines of a journal of the bundle."""
    return [json.loads(line) for line in bundle.read(name).splitlines()]
