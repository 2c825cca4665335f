"""Turning what a run brought into evidence, or into a sentence that says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.engine import packs, words
from app.engine.context import Ctx, title_of
from app.engine.outcome import Trouble
from app.evidence import store, usecases


def bring(ctx: Ctx, folder: Path, *, complete: bool = True) -> tuple[list[Callable[[Session], None]], Trouble | None]:
    """Store the files of all packs and return the writes that register them.

    `complete` False: the job broke off; what is there is evidence all the same, and the judge says what it is worth.
    """
    step, inventory = ctx.current, ctx.inventory
    files, found = packs.read_all(folder / "staging", inventory.hosts, unpacked(ctx, folder), ctx.still_ours)
    if found:
        return [], found[0]
    lacking = packs.missing(files, step.spec.get("expects") or {}, inventory.groups)
    if complete and lacking:
        host, names = next(iter(lacking.items()))
        return [], words.missing_files(host, names, title_of(step))
    writes = []
    for file in files:
        ctx.still_ours()
        stored = store.put_file(file.path, ctx.still_ours)
        writes.append(_registering(ctx.attempt.id, step.id, f"evidence/{step.key}/{file.host}/{file.name}", stored, file))
    return writes, None


def unpacked(ctx: Ctx, folder: Path) -> Path:
    """Return where this claim unpacks what a run brought: `<host>/<pack>.d/<file>` below it."""
    return folder / "unpacked" / ctx.claim_id


def _registering(attempt_id: str, step_id: str, path: str, stored: store.Stored, file: packs.PackFile) -> Callable[[Session], None]:
    meta: dict[str, Any] = {"tool": "", **file.meta}

    def write(s: Session) -> None:
        usecases.register(s, attempt_id=attempt_id, step_id=step_id, path=path, stored=stored, host=file.host, **meta)

    return write
