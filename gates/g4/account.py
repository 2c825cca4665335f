"""Are all requests of the soak on record, each once: the journal against the engine's own counters, and against the loop that must stay full."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gates.engine_counters import GENERATED, PROMPT, SERVED
from gates.g4.series import Soak
from gates.g4.witnesses import witnesses
from gates.model import ClaimResult, ClaimStatus
from gates.readers.prometheus import called, exposes, growth
from gates.readers.soak_records import SoakRecords
from gates.rules.accounted import counted
from gates.rules.claim import Finding, Run, fold, holds, unknown
from gates.rules.estimates import percent, to_decimal
from gates.text import Text

_FILES = ("records.jsonl", "counters.jsonl", "telemetry.jsonl")
_COUNTED = Text(
    "a soak over which the engine counts requests and tokens, in one process, would tell", "引擎在同一进程内全程统计请求与词元的稳定性运行方可判定"
)


def requests_accounted(soak: Soak, run: Run) -> ClaimResult:
    """Return the claim that the journal holds what the engine served, no request twice and none left out, those that failed neither (`witnesses`).

    In one process from before the load until after it, the engine's counts of requests, prompt tokens and output tokens must be those of the
    journal (`counted`). Over several processes (an agreed restart, a reboot) the counters begin anew: then the samples of each are held against
    the requests that ended between them, give or take those in flight at both ends, and what ended between the last sample of one and the first
    of the next is known to nobody.
    """

    def findings() -> Iterator[Finding]:
        twice = _doubled(soak.records)
        if twice:
            reason = Text(
                "{n} requests are on record twice: the same prompt sent at the same moment.", "{n} 个请求被记录两次：同一提示在同一时刻发出。"
            )
            yield Finding(ClaimStatus.BREACHED, reason.fill(n=twice), Decimal(twice), run.key, None, tuple(run.pack.path(name) for name in _FILES))
        yield from witnesses(soak, run)
        for view in soak.places:
            own = run if view.host is None else replace(run, pack=view.pack, host=view.host)
            one = len(view.line.boots) == 1 and len(view.telemetry.lives) == 1
            pair = own.pack.counter_pair("soak", soak.plan.g4.tier)
            for found in _around(view, own, pair) if one and pair is not None else _by_process(view, own):
                yield replace(found, host=view.host)

    return fold(soak.plan, "requests_accounted", run.arm, findings())


def _doubled(records: SoakRecords) -> int:
    """Return how many requests have the prompt, boot and moment of another one."""
    order = np.argsort(records.sent, kind="stable")
    same = np.diff(records.sent[order]) == 0
    near = order[np.concatenate([same, [False]]) | np.concatenate([[False], same])] if len(order) else order
    rows = list(zip(records.boot[near].tolist(), records.prompt[near].tolist(), records.sent[near].tolist(), strict=True))
    return len(rows) - len(set(rows))


def _around(soak: Soak, run: Run, pair: tuple[dict[str, Any], dict[str, Any]]) -> Iterator[Finding]:
    """Hold the journal against the counters before and after the load."""
    names, good = run.metrics_names, soak.records.where(soak.records.good)
    failed = len(soak.records) - len(good)
    work = soak.plan.workload
    most_output = max([work.output_tokens, int(good.tokens.max()) if len(good) else 0])
    journal = {
        SERVED: (len(good), len(soak.records)),
        PROMPT: (int(good.prompt_tokens.sum()), int(good.prompt_tokens.sum()) + failed * (work.context_tokens + work.suffix_tokens)),
        GENERATED: (int(good.tokens.sum()), int(good.tokens.sum()) + failed * most_output),
    }
    told = 0
    for name, bounds in journal.items():
        grown = growth(pair[0].get("metrics"), pair[1].get("metrics"), name)
        if grown is None and names is not None and not exposes(names, name):
            continue  # an engine that has no such counter
        told += 1
        if grown is None:
            series = called(names or (), (name,)).en or name
            yield unknown(
                run, f"the engine's counter {series} does not tell.", f"引擎计数器 {series} 未给出数值。", files=("counters.jsonl",), change=_COUNTED
            )
        else:
            yield counted(run, name, grown, bounds, _FILES)
    if not told:
        yield unknown(
            run,
            "the engine counts neither requests nor tokens, so nothing shows that none is missing.",
            "引擎既不统计请求也不统计词元，无法证明没有遗漏。",
            files=("engine.json", "counters.jsonl"),
            change=_COUNTED,
        )


def _by_process(soak: Soak, run: Run) -> Iterator[Finding]:
    """Hold the samples of each process against the requests that ended between its first and its last."""
    seen = list(_processes(soak))
    if not seen:
        yield unknown(
            run,
            "no two samples of one process of the engine tell what it served.",
            "没有同一引擎进程的两个样本给出其已服务的请求数。",
            files=("telemetry.jsonl",),
            change=_COUNTED,
        )
    for one in seen:
        records = soak.records
        ended = (records.boot == records.boots.index(one.boot)) & (records.end > one.from_ns) & (records.end <= one.to_ns)
        edge = 2 * soak.plan.g4.tier  # so many may end while a sample is taken: counted and not yet on record, or the other way round
        bounds = (int((ended & records.good).sum()) - edge, int(ended.sum()) + edge)
        yield counted(run, SERVED, Decimal(one.served), bounds, _FILES)
        if one.went_back:
            yield unknown(
                run,
                "what one process of the engine had served went back.",
                "同一引擎进程的已服务请求数出现回退。",
                files=("telemetry.jsonl",),
                change=_COUNTED,
            )


@dataclass(frozen=True)
class _Process:
    """What one process of the engine served between its first and its last sample that tells it."""

    boot: str
    from_ns: int
    to_ns: int
    served: int
    went_back: bool


def _processes(soak: Soak) -> Iterator[_Process]:
    t = soak.telemetry
    known = (t.served >= 0) & (t.life >= 0) & (t.mono >= 0) & (t.boot >= 0)
    served, life, boot, mono = (column[known] for column in (t.served, t.life, t.boot, t.mono))
    for part in np.split(np.arange(len(served)), np.flatnonzero((np.diff(life) != 0) | (np.diff(boot) != 0)) + 1):
        name = t.boots[int(boot[part[0]])] if len(part) else ""
        if len(part) > 1 and name in soak.records.boots:
            grown = np.diff(served[part])
            yield _Process(name, int(mono[part[0]]), int(mono[part[-1]]), int(served[part[-1]] - served[part[0]]), bool((grown < 0).any()))


def littles_law(soak: Soak, run: Run) -> ClaimResult:
    """Return how far the requests in flight were from C on average, by time (Little's law).

    A closed loop keeps C under way; one that pauses, drops or doubles requests does not. Injections and breaks of the run have checks of their
    own and are left out. A loop whose requests break cannot be kept full: where it was not, only the windows in which none failed are asked.
    """
    tier, limit, files = soak.plan.g4.tier, soak.plan.validity.littles_law_max, (run.pack.path("records.jsonl"),)

    def findings() -> Iterator[Finding]:
        windows = list(_windows(soak, tier))
        held, clean = _mean(windows), _mean([w for w in windows if not w.failed])
        if held is None:
            yield unknown(run, f"there is no window with {tier} requests in flight.", f"没有 {tier} 个请求同时在途的窗口。", files=("records.jsonl",))
            return
        mean = held if abs(held / tier - 1) <= limit or clean is None else clean
        off = to_decimal(abs(mean / tier - 1), 12)
        reason = Text(
            "{n} requests in flight on average where {c} must be: off by {v} (at most {l}).", "平均在途 {n} 个请求，应为 {c}：偏差 {v}（上限 {l}）。"
        ).fill(n=to_decimal(mean, 3), c=tier, v=percent(off, limit), l=percent(limit))
        if off > limit and clean is None:
            yield _all_break(soak, run, off, reason)
            return
        yield Finding(holds(off <= limit), reason, off, run.key, None, files)

    return fold(soak.plan, "littles_law", run.arm, findings())


def _all_break(soak: Soak, run: Run, off: Decimal, reason: Text) -> Finding:
    """Return what it means that requests failed in every window: the error rate says so itself, or else the loop remains in doubt."""
    failed = len(soak.records) - int(soak.records.good.sum())
    if Fraction(failed, len(soak.records)) > soak.plan.g4.error_rate_max:
        broken = Text(
            "requests failed in every window, so no loop could stay full; the error rate tells.", "每个窗口均有请求失败，循环无法保持满载；见错误率。"
        )
        return Finding(ClaimStatus.NOT_APPLICABLE, broken, None, run.key)
    change = Text("a soak with a window in which no request fails would tell", "至少有一个窗口无请求失败的稳定性运行方可判定")
    return Finding(ClaimStatus.UNKNOWN, reason, off, run.key, None, (run.pack.path("records.jsonl"),), change=change)


@dataclass(frozen=True)
class _Flight:
    """One stretch of time (ns) under full load: how much time requests spent in it, added up, and whether one failed."""

    length: int
    time: int
    failed: bool


def _mean(windows: Sequence[_Flight]) -> Fraction | None:
    length = sum(w.length for w in windows)
    return Fraction(sum(w.time for w in windows), length) if length else None


def _windows(soak: Soak, tier: int) -> Iterator[_Flight]:
    """Yield windows of each boot from its C-th request on to the first end behind its last one, without those that a mark or a reboot touches."""
    marks = [(i.boot_id, i.from_ns, i.to_ns) for i in soak.injections] + [(b.boot, b.from_ns, b.to_ns) for b in soak.line.breaks]
    marks += [b.tail for b in soak.line.breaks if b.tail]
    for boot in soak.line.boots:
        mine = soak.records.boot == soak.records.boots.index(boot.id) if boot.id in soak.records.boots else np.zeros(len(soak.records), dtype=bool)
        sent, end, good = soak.records.sent[mine], soak.records.end[mine], soak.records.good[mine]
        if len(sent) <= tier:
            continue
        order = np.argsort(sent, kind="stable")
        sent, end, good = sent[order], end[order], good[order]
        first, last = int(sent[tier - 1]), int(end[end >= sent[-1]].min())
        edges = [*range(first, last, soak.width_ns), last]
        pairs = list(itertools.pairwise(edges))
        longest = int((end - sent).max())
        for low, high in pairs if boot is soak.line.last else pairs[:-1]:  # what was under way when the host went down was never written
            if any(name == boot.id and begin < high and until > low for name, begin, until in marks):
                continue
            part = slice(int(np.searchsorted(sent, low - longest, "left")), int(np.searchsorted(sent, high, "left")))
            time = np.minimum(end[part], high) - np.maximum(sent[part], low)
            yield _Flight(high - low, int(time[time > 0].sum()), bool((~good[part])[time > 0].any()))
