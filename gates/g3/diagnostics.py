"""What G3 shows beside its checks, and what decides nothing: scatter within runs, the overhead of storing, the shares of software and array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates.g3.limits import geometric
from gates.model import Interval
from gates.plan import Plan
from gates.rules.across import tier_pairs
from gates.rules.claim import Findings
from gates.rules.decision import Effect, interval
from gates.rules.estimates import TierStats, percent
from gates.rules.standing import Standing
from gates.rules.within_run import within_run
from gates.text import Text

_WITHIN = Text("Scatter within runs (diagnostic)", "轮内离散（诊断）")
_STORE = Text("Store overhead", "写入开销")
_SPLIT = Text("Software and array", "软件与阵列的贡献")
_BOOTSTRAP = Text(
    "c{t}: by the {n} requests within the runs alone (bootstrap, as if requests were independent and runs alike) the TTFT p50 drop lies between {l} "
    "and {h}; {pairs}.",
    "c{t}：仅按轮内 {n} 个请求（自助法，假定请求相互独立、各轮无差异），TTFT p50 降幅在 {l} 至 {h} 之间；{pairs}。",
)
_BY_PAIRS = Text("by the run pairs between {l} and {h}", "按轮次对则在 {l} 至 {h} 之间")
_NO_PAIRS = Text("there are too few run pairs for an interval", "轮次对不足，无法给出区间")
_LOSS = Text(
    "c{t}: storing new prefixes costs {v} of throughput (placebo {b} tok/s, recompute {a} tok/s).",
    "c{t}：写入新前缀使吞吐降低 {v}（安慰剂 {b} tok/s，重算 {a} tok/s）。",
)
_NO_LOSS = Text(
    "c{t}: storing new prefixes costs no throughput that shows ({v} against recompute).", "c{t}：写入新前缀未见吞吐损失（相对重算 {v}）。"
)
_SHARES = Text(
    "c{t}: {what} {all} in all: the software settings alone {s} (baseline with the candidate's settings), the array beyond them {a}{share}.",
    "c{t}：{what}合计 {all}：其中仅软件设置 {s}（基线采用产品的软件设置），阵列在此之上 {a}{share}。",
)
_SHARE = Text("; the array's share of the effect is {p}", "；阵列占全部效果的 {p}")
_DROP, _GAIN = Text("TTFT p50 drop", "TTFT p50 降幅"), Text("throughput gain", "吞吐提升")


@dataclass(frozen=True)
class Diagnostic:
    """One line beside the checks: what it is about, at which tier, its values as decimal text, and the sentence."""

    kind: str
    tier: int
    title: Text
    text: Text
    values: dict[str, str | None]

    def json(self) -> dict[str, Any]:
        """Return the form that stands in verdict.json (figures.diagnostics)."""
        said = {"title": self.title.json(), "text": self.text.json()}
        return {"kind": self.kind, "tier": self.tier, "decides": False, **said, "values": self.values}


def diagnostics(plan: Plan, data: Findings, standing: Standing) -> list[dict[str, Any]]:
    """Return the lines of all tiers, in order; none where the measurement may say nothing about the product."""
    if standing.performance() is not None:
        return []
    return [line.json() for make in (_within_runs, _store_overhead, _software) for tier in plan.workload.tiers for line in make(data, tier)]


def _within_runs(data: Findings, tier: int) -> Iterator[Diagnostic]:
    found = tier_pairs(data, tier)
    if found is None or any(s.ttft_p50 <= 0 for pair in found for s in pair):
        return
    effect = Effect(tuple((a.ttft_p50, b.ttft_p50) for a, b in found), drop=True)
    inner = within_run(effect, [s.ttft_sorted for pair in found for s in pair], data.plan.decision.confidence)
    if inner is None:
        return
    outer = interval(effect, data.plan.decision)
    pairs = _BY_PAIRS.fill(**_ends(outer)) if outer.low is not None else _NO_PAIRS
    text = _BOOTSTRAP.fill(t=tier, n=inner.n, pairs=pairs, **_ends(inner))
    yield Diagnostic("within_run", tier, _WITHIN, text, {"low": _plain(inner.low), "high": _plain(inner.high), "n": str(inner.n)})


def _store_overhead(data: Findings, tier: int) -> Iterator[Diagnostic]:
    """Say what storing costs: the placebo stores prefixes that nobody asks for again, recompute stores nothing (DESIGN 4.7)."""
    found = [(a.stats.get(tier), b.stats.get(tier)) for a, b in data.control_pairs()]
    known = [(a.output_per_s, b.output_per_s) for a, b in found if a is not None and b is not None]
    if not known or len(known) < len(found) or data.plan.leaves_out("placebo") is not None:
        return
    gain = Effect(tuple(known), drop=False).value(Decimal(0))
    rates = {name: f"{float(geometric(side)):.1f}" for name, side in zip("ab", zip(*known, strict=True), strict=True)}
    text = _LOSS.fill(t=tier, v=percent(-gain), **rates) if gain < 0 else _NO_LOSS.fill(t=tier, v="+" + percent(gain))
    yield Diagnostic("store_overhead", tier, _STORE, text, {"gain": _plain(gain)})


def _software(data: Findings, tier: int) -> Iterator[Diagnostic]:
    """Split the effect by the arm baseline_tuned: baseline -> baseline_tuned is software, baseline_tuned -> candidate is the array (DESIGN 3)."""
    found, tuned = tier_pairs(data, tier), data.of("baseline_tuned")
    middle = tuned[0].stats.get(tier) if tuned else None
    if found is None or middle is None or any(s.ttft_p50 <= 0 for s in (middle, *(s for pair in found for s in pair))):
        return
    for key, what, drop, of in (("ttft_p50_drop", _DROP, True, _ttft), ("throughput_gain", _GAIN, False, _output)):
        between = of(middle)
        whole = Effect(tuple((of(a), of(b)) for a, b in found), drop=drop)
        parts = [Effect(tuple((of(a), between) for a, _ in found), drop=drop), Effect(tuple((between, of(b)) for _, b in found), drop=drop)]
        total, software, array = (effect.value() for effect in (whole, *parts))
        share = _share_of_array(whole, parts)
        told = _SHARE.fill(p=percent(share, places=0)) if share is not None else Text("", "")
        text = _SHARES.fill(t=tier, what=what, all=percent(total), s=percent(software), a=percent(array), share=told)
        values = {"quantity": key, "total": _plain(total), "software": _plain(software), "array": _plain(array), "array_share": _plain(share)}
        yield Diagnostic("software_split", tier, _SPLIT, text, values)


def _share_of_array(whole: Effect, parts: Sequence[Effect]) -> Decimal | None:
    """Return the array's share on the log scale, where the two parts add up; None where they pull in different directions."""
    logs = [math.fsum(effect.logs()) for effect in (whole, *parts)]
    if logs[0] == 0 or logs[1] * logs[0] < 0 or logs[2] * logs[0] < 0:
        return None
    return Decimal(repr(round(logs[2] / logs[0], 6)))


def _ttft(stats: TierStats) -> Fraction:
    return stats.ttft_p50


def _output(stats: TierStats) -> Fraction:
    return stats.output_per_s


def _ends(found: Interval) -> dict[str, str]:
    return {"l": percent(found.low or Decimal(0)), "h": percent(found.high or Decimal(0))}


def _plain(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")
