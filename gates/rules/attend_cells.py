"""Are the cells that were measured on an engine host elsewhere what that host says: each answer of its own, by its account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gates.bundle import Bundle
from gates.model import Problem
from gates.readers.run_pack import Pack
from gates.readers.strict import Reader, at, count
from gates.rules.attend_account import CLIENT, Account, digest
from gates.text import Text

CELLS, _LOAD = "cells.jsonl", "model_load"  # the driver measures a load of the model, with the weights' figures of the engine's host
_DRIVERS = frozenset({"seq", "wall_ns", "mono_ns", "boot_id", "cell", "on"})  # of a row of cells.jsonl; the rest that host answered
_WEIGHTS = ("bytes", "weight_files")


def problems(bundle: Bundle, pack: Pack, accounts: Mapping[str, Account]) -> Iterator[Problem]:
    """Yield cells that hold what the engine's host never answered, or weights that were not looked at before and behind the load of the model."""
    where = pack.path(CELLS)
    for row in Reader(bundle, pack.folder).journal(CELLS) if bundle.has(where) else ():
        cell = row.get("cell")
        if cell == CLIENT or (row.get("problem") is not None and row.get("cold") is not True and not {"on", "on_after"} & set(row)):
            continue  # nothing of that host is in it
        if cell == _LOAD:
            known = {key: row.get(key) for key in _WEIGHTS}
            told = {when: {**known, "disk": row.get(f"disk_{when}"), "nfs": row.get(f"nfs_{when}")} for when in ("before", "after")}
            told["before"]["proof"] = row.get("proof")
            borne_out = all(_answered(accounts, "weights", row.get(f"on_{when}"), answer) for when, answer in told.items())
            edges = [count(at(row, *path)) for path in (("on_before", "answered_ns"), ("started_ns",), ("ended_ns",), ("on_after", "asked_ns"))]
            good = borne_out and None not in edges and edges == sorted(e for e in edges if e is not None)
        else:
            good = _answered(accounts, "cell", row.get("on"), {key: value for key, value in row.items() if key not in _DRIVERS})
        if not good:
            text = Text("{p}: the cell {c} is not what {h} measured for this run.", "{p}：测点 {c} 不是 {h} 为本轮测得的结果。")
            yield Problem("host", text.fill(p=where, c=str(cell)[:40], h=" / ".join(accounts)), where)


def _answered(accounts: Mapping[str, Account], verb: str, on: Any, answer: Mapping[str, Any]) -> bool:
    """Return whether the engine host that is named says that it gave this answer, in the boot in which its attendant ran."""
    account, moment, boot = accounts.get(str(at(on, "host"))), count(at(on, "mono_ns")), at(on, "boot_id")
    if account is None or moment is None or not isinstance(boot, str) or boot not in account.boots:
        return False
    return account.answered.get(verb, {}).get((boot, moment)) == digest(answer)
