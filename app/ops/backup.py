"""A copy of all that must not be lost, made while the service runs, and verified before it is called one.

    DIR/backup.json     what this is: revision, head of the audit chain, every file with size and SHA-256, what is damaged in the source,
                        which stored files no row refers to
    DIR/database.sqlite, or DIR/tables/*.copy     the database as one transaction saw it
    DIR/evidence/ab/cdef...     the evidence store: evidence, manifests, reports, scans
    DIR/credentials/    only when asked for: they are secrets

The database comes first: whatever it refers to was stored before its row was committed, so it is among the files that are copied after.
Damage to a stored file that no row refers to is a warning: nothing is lost with it, so it must not cost the rest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

import app
from app.accounts.actor import Actor
from app.audit import chain
from app.engine import durable
from app.evidence import store
from app.kit.clock import now
from app.kit.db import require_database, write_session
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_, pair
from app.ops import database_copy, maintenance, references
from app.ops.metrics import BACKUP_NOTE
from app.settings import settings
from gates.system_words import said
from gates.text import Text

NOTE, EVIDENCE, CREDENTIALS = "backup.json", "evidence", "credentials"
SCHEMA = 1


@dataclass(frozen=True)
class Backup:
    """What a backup says of itself, and what is wrong with it: sentences in `problems`, none when it is whole.

    `warnings`: damaged files that nothing refers to. `broken`: those of the problems that are of the database itself, without which there is
    nothing to restore. `bad`: the listed files that are not there as they were written.
    """

    note: dict[str, Any]
    problems: list[Text] = field(default_factory=list)
    warnings: list[Text] = field(default_factory=list)
    broken: list[Text] = field(default_factory=list)
    bad: frozenset[str] = frozenset()

    @property
    def files(self) -> int:
        """Return how many files it has."""
        return len(self.note["files"])


def make(dest: Path, *, credentials: bool, actor: Actor) -> Backup:
    """Write a backup into a new or empty folder and verify it. Safe while everything runs.

    Evidence that the store itself has lost or altered is named in `problems`, or in `warnings` where nothing refers to it; everything else is
    copied all the same.
    Raises Refused when the folder holds something or there is no database, QuadgateError when it cannot be written.
    """
    dest = dest.resolve()
    if dest.is_relative_to(settings().state_dir):
        raise Refused("backup_inside", N_("{path} lies in the state directory. A backup belongs on another disk."), path=str(dest))
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        raise Refused("backup_exists", N_("{path} is not empty; a backup is written into a new folder."), path=str(dest))
    require_database()
    with maintenance.alone():
        try:
            _write(dest, credentials)
        except OSError as error:
            raise QuadgateError(
                "backup_failed", N_("The backup could not be written to {path}: {reason}. Remove the folder."), path=str(dest), reason=said(error)
            ) from error
        backup = verify(dest)
        if not backup.problems:
            durable.write_json(settings().state_dir / BACKUP_NOTE, {"made_at": backup.note["made_at"], "files": backup.files})
    data = {"audit_head": backup.note["audit_head"], "files": backup.files, "problems": len(backup.problems), "note": _entry(dest, NOTE)["sha256"]}
    with write_session() as s:
        chain.record(s, actor=actor, action="service.backup", object_kind="service", object_id=settings().node, data=data)
    return backup


def verify(folder: Path) -> Backup:
    """Hash every file of a backup again, walk the audit chain of its database where that is possible, and say what does not fit.

    Raises QuadgateError when it cannot be read at all.
    """
    note = read_note(folder)
    bad = {path: pair(N_("{path} of the backup is missing, or is not what was written."), path=path) for path in _altered(folder, note)}
    loose = set(note.get("loose", ()))  # older backups do not say it: then every file counts
    warnings = [*_texts(note, "left_out"), *(bad[path] for path in bad if path in loose)]
    listed = {entry["path"] for entry in note["files"]}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {NOTE}
    problems = [*_texts(note, "damaged"), *(bad[path] for path in bad if path not in loose)]
    problems += [pair(N_("{path} does not belong to the backup."), path=path) for path in sorted(there - listed)]
    broken = [*_texts(note, "broken"), *(bad[path] for path in bad if not path.startswith((f"{EVIDENCE}/", f"{CREDENTIALS}/")))]
    if note["database"]["dialect"] == "sqlite" and not broken:
        seen = Seen()
        database_copy.look_into(folder / database_copy.SQLITE_FILE, seen.look)
        problems += seen.problems(listed - set(bad))
        broken += seen.chain
        if seen.head != note["audit_head"]:
            broken.append(
                pair(N_("The audit chain of the copy ends at {found}, and backup.json says {said}."), found=seen.head, said=note["audit_head"])
            )
    return Backup(note, list(dict.fromkeys([*problems, *broken])), warnings, broken, frozenset(bad))


def read_note(folder: Path) -> dict[str, Any]:
    """Return backup.json. Raises QuadgateError when the folder holds no backup that this program knows."""
    note = durable.read_json(folder / NOTE)
    if not isinstance(note, dict) or note.get("schema") != SCHEMA:
        raise QuadgateError("no_backup", N_("{path} holds no whole backup: {name} is missing or of another version."), path=str(folder), name=NOTE)
    return note


class Seen:
    """What a look into a database found: the audit chain and the stored files that rows refer to."""

    def __init__(self) -> None:
        self.head = ""
        self.chain: list[Text] = []
        self.referred: set[str] = set()

    def look(self, s: Session) -> None:
        """Walk the chain and gather the references."""
        check = chain.verify(s)
        self.head, self.chain = f"{check.head.seq}:{check.head.hash}", check.problems
        self.referred = references.referred(s)

    def lost(self, files: Iterable[str]) -> list[str]:
        """Return the SHA-256 of what rows refer to and is not among these files of the backup."""
        return sorted(self.referred - {sha256_of(name) for name in files})

    def problems(self, files: Iterable[str]) -> list[Text]:
        """Return what does not fit, given the names of all good files of the backup."""
        return [*self.chain, *map(gone, self.lost(files))]


def gone(sha256: str) -> Text:
    """Return the sentence on a stored file that rows refer to and nobody has."""
    return pair(N_("The database refers to the stored file {sha256}, and there is no such file."), sha256=sha256)


def sha256_of(name: str) -> str:
    """Return the SHA-256 that a file of the backup has by its name, "" where it is none of the evidence store."""
    return name.removeprefix(f"{EVIDENCE}/").replace("/", "") if name.startswith(f"{EVIDENCE}/") else ""


def _write(dest: Path, credentials: bool) -> None:
    dest.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = Seen()
    made = database_copy.save(dest, seen.look)
    files = [_entry(dest, name) for name in made.pop("files")]
    damaged: list[Text] = []
    left_out: list[Text] = []
    for path in store.stored_files():
        sha256, name = path.parent.name + path.name, f"{EVIDENCE}/{path.parent.name}/{path.name}"
        (dest / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            store.copy_to(sha256, dest / name)
        except QuadgateError as error:
            (dest / name).unlink(missing_ok=True)
            (damaged if sha256 in seen.referred else left_out).append(error.pair())
        else:
            files.append({"path": name, "size": (dest / name).stat().st_size, "sha256": sha256})
    if credentials and (settings().state_dir / CREDENTIALS).is_dir():
        shutil.copytree(settings().state_dir / CREDENTIALS, dest / CREDENTIALS)
        files += [_entry(dest, str(path.relative_to(dest))) for path in sorted((dest / CREDENTIALS).rglob("*")) if path.is_file()]
    names = [entry["path"] for entry in files]
    damaged += seen.problems(names)
    note = {
        "schema": SCHEMA,
        "made_at": now().isoformat(),
        "program": app.__version__,
        "node": settings().node,
        "database": made,
        "audit_head": seen.head,
        "damaged": [problem.json() for problem in damaged],
        "broken": [problem.json() for problem in seen.chain],
        "left_out": [problem.json() for problem in left_out],
        "loose": [name for name in names if (sha256 := sha256_of(name)) and sha256 not in seen.referred],
        "files": files,
    }
    os.sync()
    durable.write_json(dest / NOTE, note)


def _texts(note: dict[str, Any], key: str) -> list[Text]:
    return [Text.parse(problem) for problem in note.get(key, ())]


def _altered(folder: Path, note: dict[str, Any]) -> list[str]:
    """Hash every listed file again, and return those that are not there as they were written."""
    found = []
    for entry in note["files"]:
        try:
            good = _entry(folder, entry["path"]) == entry
        except OSError:
            good = False
        if not good:
            found.append(entry["path"])
    return found


def _entry(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    with path.open("rb") as file:
        return {"path": name, "size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
