"""A soak whose host rebooted goes on: the same job in another boot, behind all that is on record of the boots before.

It is no second throw. Every request of every boot stays in the journals and counts; the judge sees the reboot by the boot ids, and whether the
soak clock restarts there is for both parties to say. Whatever else ends a job without an exit.json leaves it dead: within one boot nobody can
tell a site's fault from ours.

Of two hosts the reboot of one parts the other's job from it: the driver loses its attendant, or the attendant hears no driver any more. Either
ends by that name, and goes on beside the other once that one does; the driver only where the two boots are no pair that is on record
(Job.beside).
"""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from probe.clock import boot_id
from probe.errors import Refused
from probe.files import read_json, sync_dir

STARTED, EXIT = "started", "exit.json"
PARTED = {"soak": "attendant", "attend": "silence"}  # kind of a job of two hosts: by which name it ends when it loses the other
_EARLIER = re.compile(r"started\.[0-9]+")
_TAIL = 1 << 20  # bytes at the end of a journal that a power cut may have spoilt: a second of lines is far less


class Earlier:
    """What is on record of the boots before the present one."""

    def __init__(self, folder: str, again: bool = False) -> None:
        self.boots = boots_before(folder)
        there = again or bool(self.boots)
        self.phases: Set[str] = {str(row.get("phase")) for row in _rows(folder, "phases.jsonl") if row.get("ok")} if there else set()
        events = list(_rows(folder, "events.jsonl")) if there else []
        begun, ended = (_details(events, kind) for kind in ("injection_begins", "injection"))
        self.labels: Set[str] = {str(row.get("label")) for row in begun}
        # Disturbances that nobody has ended yet: their end is not on record, or its command did not do it.
        self.unended: Set[str] = self.labels - {str(row.get("label")) for row in ended if row.get("end_exit") in (0, None)}
        every = [*events, *(_rows(folder, "phases.jsonl") if there else ())]
        self.stretches: Set[str] = {str(row.get("boot_id")) for row in every}  # boots, of two hosts pairs of them, that are on record

    def name(self, job: str) -> str:
        """Return the job's name with the number of the boot behind it from the second on: what must be new in each boot derives from it."""
        return "%s/boot%d" % (job, self.boots + 1) if self.boots else job


def boots_before(folder: str) -> int:
    """Return in how many boots a job ran before the present one."""
    return len(_marks(folder))


def ever_started(folder: str) -> bool:
    """Tell whether a job began to run, in whichever boot."""
    return os.path.exists(os.path.join(folder, STARTED)) or bool(_marks(folder))


def rebooted(folder: str, spec: Optional[Dict[str, Any]]) -> bool:
    """Tell whether a job that ended without saying so is a soak, or attends to one, and a reboot of the host cut it off.

    The caller knows that nobody runs it.
    """
    if not spec or not _of_a_soak(spec) or os.path.exists(os.path.join(folder, EXIT)):
        return False
    mark = read_json(os.path.join(folder, STARTED))
    if mark is None:
        return bool(_marks(folder))  # killed between giving up the old mark and making its own
    before = mark.get("boot_id") if isinstance(mark, dict) else None
    return bool(before) and bool(boot_id()) and before != boot_id()


def parted(folder: str, spec: Optional[Dict[str, Any]]) -> bool:
    """Tell whether a job of a soak of two hosts ended because it lost the other host, and so goes on beside it when that one rebooted."""
    if not spec or not _of_a_soak(spec) or (spec["kind"] == "soak" and not spec.get("attendants")):
        return False
    end = read_json(os.path.join(folder, EXIT))
    error = end.get("error") if isinstance(end, dict) else None
    return isinstance(error, dict) and error.get("kind") == PARTED[spec["kind"]]


def _of_a_soak(spec: Dict[str, Any]) -> bool:
    """Tell whether a job is a soak or attends to one; what serves a run is never begun again."""
    return spec.get("kind") == "soak" or (spec.get("kind") == "attend" and spec.get("soak") is not None)


def require_medium(folder: str) -> None:
    """Refuse to go on while a directory of stored KV is not there or empty: its file system is not mounted, and another would take its place.

    The driver of an engine elsewhere has none here; the attendant there knows that something was stored by having put it on the medium.
    """
    spec = read_json(os.path.join(folder, "job.json")) or {}
    if spec.get("attendants"):
        return
    synced = any(row.get("verb") == "sync" and row.get("error") is None for row in _rows(folder, "asked.jsonl"))
    stored = synced or "store" in Earlier(folder, again=True).phases
    for place in (spec.get("engine") or {}).get("kv_dirs") or []:
        if not os.path.isdir(place) or (stored and not next(os.scandir(place), None)):
            raise Refused(
                "no_medium",
                "The host rebooted and %s, where the soak stored its KV, is not there or empty. Mount its file system again, then try the step "
                "again; nothing was started, and what was recorded is kept." % place,
            )


def put_mark_aside(folder: str) -> None:
    """Keep the mark of the boot before as `started.N`, so that the present one can make its own; of a job that was parted its end, as `exit.N`."""
    if os.path.exists(os.path.join(folder, STARTED)):
        os.rename(os.path.join(folder, STARTED), os.path.join(folder, "%s.%d" % (STARTED, len(_marks(folder)) + 1)))
        sync_dir(folder)
    if os.path.exists(os.path.join(folder, EXIT)):
        os.rename(os.path.join(folder, EXIT), os.path.join(folder, "exit.%d" % len(_marks(folder))))
        sync_dir(folder)


def mend(path: str) -> int:
    """Cut what a power cut left half written behind the last whole line of a journal. Return how many lines it has.

    A file system may have given blocks to lines that never reached them; such a line is no JSON, or not the one that its number says.
    """
    size, reach = os.path.getsize(path), _TAIL
    with open(path, "rb+") as file:
        while True:
            start = max(0, size - reach)
            file.seek(start)
            tail = file.read(size - start)
            first = tail.find(b"\n") + 1 if start else 0
            lines, whole = _whole_lines(tail[first:])
            if whole or not start:
                break
            reach *= 8
        kept = start + first + whole
        if kept < size:
            file.truncate(kept)
            os.fsync(file.fileno())
    return lines


def _whole_lines(tail: bytes) -> Tuple[int, int]:
    """Return (number of the last good line + 1, bytes up to its end) of lines that follow each other, (0, 0) where the first is not good."""
    lines = kept = 0
    for line in tail.split(b"\n")[:-1]:
        number = _number(line)
        if number is None or (kept and number != lines):
            break
        lines, kept = number + 1, kept + len(line) + 1
    return lines, kept


def sizes(folder: str) -> Dict[str, int]:
    """Return {journal: bytes}."""
    return {os.path.basename(path): os.path.getsize(path) for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.jsonl")))}


def _number(line: bytes) -> Optional[int]:
    try:
        number = json.loads(line.decode("ascii"))["seq"]
    except (ValueError, KeyError, TypeError):
        return None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _details(events: List[Dict[str, Any]], kind: str) -> List[Dict[str, Any]]:
    found = [row.get("detail") for row in events if row.get("kind") == kind]
    return [row for row in found if isinstance(row, dict)]


def _marks(folder: str) -> List[str]:
    try:
        return [name for name in os.listdir(folder) if _EARLIER.fullmatch(name)]
    except OSError:
        return []


def _rows(folder: str, name: str) -> Iterator[Dict[str, Any]]:
    """Yield the whole rows of a journal."""
    try:
        with open(os.path.join(folder, name), encoding="ascii", errors="replace") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield row
    except OSError:
        return
