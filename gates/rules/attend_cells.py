"""Are the cells that were measured on an engine host elsewhere what that host says: each answer of its own, by its account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gates.bundle import Bundle
from gates.model import Problem
from gates.readers.places import cells_of, host_of_cell, hosts_of
from gates.readers.run_pack import Pack
from gates.readers.strict import Reader, at, count
from gates.rules.attend_account import CLIENT, Account, digest
from gates.text import Text

CELLS, _LOAD = "cells.jsonl", "model_load"  # the driver measures a load of the model, with the weights' figures of the engine's host
_DRIVERS = frozenset({"seq", "wall_ns", "mono_ns", "boot_id", "cell", "host", "on"})  # of a row of cells.jsonl; the rest that host answered
_WEIGHTS = ("bytes", "weight_files")


def problems(bundle: Bundle, pack: Pack, accounts: Mapping[str, Account]) -> Iterator[Problem]:
    """Yield cells that hold what the engine's host never answered, or weights that were not looked at before and behind the load of the model."""
    where = pack.path(CELLS)
    rows = list(Reader(bundle, pack.folder).journal(CELLS)) if bundle.has(where) else []
    yield from _lacking(pack, rows, where)
    for row in rows:
        cell = row.get("cell")
        if cell == CLIENT or (row.get("problem") is not None and row.get("cold") is not True and not {"on", "on_after"} & set(row)):
            continue  # nothing of that host is in it
        if cell == _LOAD:
            known = {key: row.get(key) for key in _WEIGHTS}
            told = {when: {**known, "disk": row.get(f"disk_{when}"), "nfs": row.get(f"nfs_{when}")} for when in ("before", "after")}
            told["before"]["proof"] = row.get("proof")
            borne_out = all(_answered(accounts, "weights", row.get(f"on_{when}"), answer) for when, answer in told.items())
            edges = [count(at(row, *path)) for path in (("on_before", "answered_ns"), ("started_ns",), ("ended_ns",), ("on_after", "asked_ns"))]
            one_host = at(row, "on_before", "host") == at(row, "on_after", "host")
            good = borne_out and one_host and None not in edges and edges == sorted(e for e in edges if e is not None)
        else:
            good = _answered(accounts, "cell", row.get("on"), {key: value for key, value in row.items() if key not in _DRIVERS})
        if not good:
            named = host_of_cell(row)
            text = Text("{p}: the cell {c} is not what {h} measured for this run.", "{p}：测点 {c} 不是 {h} 为本轮测得的结果。")
            yield Problem("host", text.fill(p=where, c=str(cell)[:40], h=named if named in accounts else " / ".join(accounts)), where)


def _lacking(pack: Pack, rows: list[dict[str, Any]], where: str) -> Iterator[Problem]:
    """Yield each cell that is not once on record of an engine host, of several; a row that names another host than answered is nobody's."""
    hosts = hosts_of(pack)
    for host in hosts if len(hosts) > 1 else ():
        own = [row.get("cell") for row in rows if row.get("host") == host and host_of_cell({**row, "host": None}) in (None, host)]
        for cell in (str(at(row, "cell")) for row in cells_of(pack, host)):
            if own.count(cell) != 1:
                text = Text("{p}: the cell {c} is not on record of {h} exactly once.", "{p}：{h} 的测点 {c} 记录缺失或重复。")
                yield Problem("host", text.fill(p=where, c=cell[:40], h=host), where)


def _answered(accounts: Mapping[str, Account], verb: str, on: Any, answer: Mapping[str, Any]) -> bool:
    """Return whether the engine host that is named says that it gave this answer, in the boot in which its attendant ran."""
    account, moment, boot = accounts.get(str(at(on, "host"))), count(at(on, "mono_ns")), at(on, "boot_id")
    if account is None or moment is None or not isinstance(boot, str) or boot not in account.boots:
        return False
    return account.answered.get(verb, {}).get((boot, moment)) == digest(answer)
