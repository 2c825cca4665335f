"""What the cells fio, ib_write_bw and checkpoint tell beside the checks: one line of `figures.diagnostics` for each arm and cell. It decides nothing.

Nothing is published for them that states its block size, queue depth and ports, so no published figure stands beside one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates.readers.strict import Reader, at, count, exact
from gates.rules.claim import Findings, Run
from gates.rules.estimates import NS, to_decimal
from gates.rules.standing import Standing
from gates.text import Text

if TYPE_CHECKING:
    from gates.bundle import Bundle

FILE = "cells.jsonl"
WINDOW = 5  # rounds of fio's steady state (SNIA SSS PTS 2.0)

Row = dict[str, Any]
Told = tuple[Text, str] | None  # what one row says, and its figure as decimal text

_LINE = Text("{a}: {s}.", "{a}：{s}。")
_ONE = Text("{r} {t}", "{r} {t}")
_NOT = Text("not measured ({p})", "未测得（{p}）")
_ODD = Text("its row lacks what is needed", "该行缺少所需内容")
_FIO = Text("{v} IOPS ({w} {b}, queue depth {d}; mean of {n} steady rounds)", "{v} IOPS（{w} {b}，队列深度 {d}；{n} 轮稳态均值）")
_IB = Text("{l} to {h} Gbit/s over {n} pairs, the slowest {d} to {p} with {s} B", "{n} 组端口 {l} 至 {h} Gbit/s，最慢为 {d} 至 {p}（{s} B）")
_CHECKPOINT = Text("at least {v} GB/s in every second, the last sync took {f} s", "任一秒内不低于 {v} GB/s，最后一次同步耗时 {f} s")


def cell_lines(data: Findings, bundle: Bundle, standing: Standing) -> list[dict[str, Any]]:
    """Return the lines in the order of cells and arms; none where the measurement may say nothing about the product, or no run has such a cell."""
    if standing.performance() is not None:
        return []
    rows = {run.key: _rows(bundle, run) for run in data.runs}
    return [line for cell in _TELLS for arm in data.arms for line in _line(cell, arm, data.of(arm), rows)]


def _rows(bundle: Bundle, run: Run) -> list[Row]:
    if not bundle.has(run.pack.path(FILE)):
        return []
    reader = Reader(bundle, run.pack.path("").rstrip("/"))
    rows = reader.journal(FILE)
    return [] if reader.problems else rows


def _line(cell: str, arm: str, runs: tuple[Run, ...], rows: dict[str, list[Row]]) -> Iterator[dict[str, Any]]:
    title, tell = _TELLS[cell]
    said: list[Text] = []
    values: dict[str, str | None] = {"arm": arm}
    for run in runs:
        for row in (row for row in rows[run.key] if row.get("cell") == cell):
            problem = row.get("problem")
            told = tell(row) if problem is None and row.get("cold") is True else None
            name = " ".join([run.key, *([str(row["host"])] if "host" in row else [])])  # of several engine hosts each by itself
            values[name] = told[1] if told else None
            said.append(_ONE.fill(r=name, t=told[0] if told else _NOT.fill(p=str(problem)[:200] if problem else _ODD)))
    if said:
        whole = Text("; ".join(one.en for one in said), "；".join(one.zh for one in said))
        text = _LINE.fill(a=arm, s=whole)
        yield {"kind": f"cell_{cell}", "tier": None, "decides": False, "title": title.json(), "text": text.json(), "values": values}


def _fio(row: Row) -> Told:
    """Return the mean of the last rounds, worked out from the rounds themselves; only a steady row has one figure."""
    given = row.get("rounds_iops")
    last = [exact(value) for value in given[-WINDOW:]] if isinstance(given, list) else []
    known = [value for value in last if value is not None and value > 0]
    if row.get("steady") is not True or len(known) != WINDOW:
        return None
    argv = row.get("argv")
    words = (
        dict(word[2:].split("=", 1) for word in argv if isinstance(word, str) and word.startswith("--") and "=" in word)
        if isinstance(argv, list)
        else {}
    )
    mean = to_decimal(Fraction(sum(known, Decimal(0))) / WINDOW, 1)
    return _FIO.fill(v=mean, w=words.get("rw", "?"), b=words.get("bs", "?"), d=words.get("iodepth", "?"), n=WINDOW), format(mean, "f")


def _ib_write_bw(row: Row) -> Told:
    """Return the slowest and the fastest of all pairs and sizes; a matrix with a hole has neither."""
    matrix = row.get("matrix")
    cells = [(exact(at(one, "gbit_per_s")), one) for one in matrix] if isinstance(matrix, list) else []
    known = [(rate, one) for rate, one in cells if rate is not None and rate > 0]
    if not known or len(known) != len(cells):
        return None
    low, slowest = min(known, key=lambda found: found[0])
    high = max(rate for rate, _ in known)
    names = {key: str(slowest.get(name))[:60] for key, name in (("d", "device"), ("p", "peer"), ("s", "size"))}
    return _IB.fill(l=low, h=high, n=len({(one.get("device"), one.get("peer")) for _, one in known}), **names), format(low, "f")


def _checkpoint(row: Row) -> Told:
    rate, sync = count(row.get("slowest_bytes_per_s")), count(row.get("fsync_ns"))
    if not rate or sync is None:
        return None
    return _CHECKPOINT.fill(v=to_decimal(Fraction(rate, 10**9), 3), f=to_decimal(Fraction(sync) / NS, 3)), str(rate)


_TELLS: dict[str, tuple[Text, Callable[[Row], Told]]] = {
    "fio": (Text("Raw fio", "裸盘 fio"), _fio),
    "ib_write_bw": (Text("RDMA write bandwidth", "RDMA 写带宽"), _ib_write_bw),
    "checkpoint": (Text("Sustained checkpoint write", "检查点持续写入"), _checkpoint),
}
