"""What third-party clients measured on the first run of each arm, beside our own driver's figures of the same runs. It decides nothing.

A client asks prompts of its own of the plan's lengths: once to have them stored, then, the engine new and the page cache empty, once measured. Its
result is read by the reader of its tool and brought to the one definition of gates/importing.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates.bundle import Unreadable
from gates.canonical import sha256_hex
from gates.importing import normalise
from gates.plan_clients import PlannedClient
from gates.readers.registry import read
from gates.readers.strict import Reader
from gates.rules.claim import Findings, Run
from gates.rules.estimates import ms, percent, to_decimal
from gates.rules.standing import Standing
from gates.text import Text

if TYPE_CHECKING:
    from gates.bundle import Bundle
    from gates.plan import Plan

CELLS, CELL = "cells.jsonl", "client"
_TITLE = Text("{c} beside our driver", "{c} 与自有驱动对照")
_BOTH = Text(
    "c{t}: TTFT p50 {a} ms with the baseline, {b} ms with the candidate, a drop of {d} (our driver: {od}); output {x} and {y} tok/s, a gain of {g} "
    "(our driver: {og}).",
    "c{t}：TTFT p50 基线 {a} ms，产品 {b} ms，降幅 {d}（自有驱动：{od}）；输出 {x} 与 {y} tok/s，提升 {g}（自有驱动：{og}）。",
)
_LACKING = Text("c{t}, {r}: {why}", "c{t}，{r}：{why}")
_NOT_THERE = Text("the run brought no result of it.", "该轮次没有带回其结果。")
_FAILED = Text("it could not be run: {p}", "未能运行：{p}")
_NOT_COLD = Text(
    "its prompts were not shown to be cold, so its figures stand beside none of ours.", "未能证明其提示为冷态，故其数值不与自有驱动对照。"
)
_NOT_ITS_OWN = Text(
    "its result is not the one that the run's own account of it names, so it may be of another run.",
    "其结果与该轮次自身记录的摘要不符，可能来自其他轮次。",
)
_NO_FIGURES = Text("its result has no figures that can be compared: {p}", "其结果没有可比较的数值：{p}")


@dataclass(frozen=True)
class _Figures:
    ttft_p50_ns: Fraction
    output_per_s: Fraction


def client_lines(plan: Plan, data: Findings, bundle: Bundle, standing: Standing) -> list[dict[str, Any]]:
    """Return one line of `figures.diagnostics` for each client of the plan; none where the measurement may say nothing about the product."""
    if standing.performance() is not None or not (data.of("baseline") and data.of("candidate")):
        return []
    return [_line(client, data, bundle) for client in plan.workload.clients]


def _line(client: PlannedClient, data: Findings, bundle: Bundle) -> dict[str, Any]:
    runs = [data.of(arm)[0] for arm in ("baseline", "candidate")]
    found = [(run, _figures(client, run, bundle)) for run in runs]
    bad = next(((run, told) for run, told in found if isinstance(told, Text)), None)
    values: dict[str, str | None] = {}
    if bad is not None:
        text = _LACKING.fill(t=client.tier, r=bad[0].shown, why=bad[1])
    else:
        theirs = [told for _, told in found if isinstance(told, _Figures)]
        ours = [_Figures(s.ttft_p50, s.output_per_s) for run in runs if (s := run.stats.get(client.tier)) is not None]
        drop, gain = _effects(theirs)
        own_drop, own_gain = _effects(ours) if len(ours) == len(theirs) else (None, None)
        values = {"ttft_p50_drop": _plain(drop), "throughput_gain": _plain(gain), "own_drop": _plain(own_drop), "own_gain": _plain(own_gain)}
        text = _BOTH.fill(
            t=client.tier,
            a=ms(theirs[0].ttft_p50_ns),
            b=ms(theirs[1].ttft_p50_ns),
            d=_share(drop),
            od=_share(own_drop),
            x=to_decimal(theirs[0].output_per_s, 1),
            y=to_decimal(theirs[1].output_per_s, 1),
            g=_share(gain),
            og=_share(own_gain),
        )
    told = {"title": _TITLE.fill(c=client.tool).json(), "text": text.json(), "values": values}
    return {"kind": "client", "tier": client.tier, "decides": False, **told}


def _figures(client: PlannedClient, run: Run, bundle: Bundle) -> _Figures | Text:
    """Return what a client measured in a run, or a sentence why that is not known."""
    reader = Reader(bundle, run.pack.path("").rstrip("/"))
    rows = reader.journal(CELLS) if bundle.has(run.pack.path(CELLS)) else []
    own = [row for row in rows if row.get("cell") == CELL and row.get("file") == client.file]
    if reader.problems or len(own) != 1:
        return _NOT_THERE
    if own[0].get("problem"):
        return _FAILED.fill(p=str(own[0]["problem"])[:300])
    if own[0].get("cold") is not True:
        return _NOT_COLD
    try:
        data = bundle.bytes(run.pack.path(client.file))
    except (Unreadable, KeyError):
        return _NOT_THERE
    if own[0].get("sha256") != sha256_hex(data):  # a client's file bears no run; rows before it bear no digest
        return _NOT_ITS_OWN
    reading = read(client.tool, data)
    bundle.read_as[run.pack.path(client.file)] = (client.tool, reading)
    figures = normalise(reading)
    wrong = [*(problem.message for problem in reading.problems), *figures.missing]
    if wrong or figures.tier != client.tier or not figures.ttft_p50_ns or not figures.output_per_s:
        other = Text("its concurrency is not {t}.", "其并发不是 {t}。").fill(t=client.tier)
        return _NO_FIGURES.fill(p=wrong[0] if wrong else other)
    return _Figures(figures.ttft_p50_ns, figures.output_per_s)


def _effects(pair: list[_Figures]) -> tuple[Fraction | None, Fraction | None]:
    """Return (drop of TTFT p50, gain of throughput) from the first to the second."""
    if len(pair) != 2 or pair[0].ttft_p50_ns <= 0 or pair[0].output_per_s <= 0:
        return None, None
    return 1 - pair[1].ttft_p50_ns / pair[0].ttft_p50_ns, pair[1].output_per_s / pair[0].output_per_s - 1


def _share(value: Fraction | None) -> str:
    return "-" if value is None else percent(to_decimal(value, 6))


def _plain(value: Fraction | None) -> str | None:
    return None if value is None else format(to_decimal(value, 6), "f")
