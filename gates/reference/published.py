"""The published reference figures, held against themselves: what follows from the raw figures, and where text and figures part.

Nothing is looked up by name of a report: each rule takes every row that has the fields it needs, so a corrected or added figure is checked as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

from gates.reference import physics
from gates.reference.raw import Finding, decimals, kept, pairs, shown
from gates.strict_yaml import read_yaml

PUBLISHED = Path(__file__).with_name("published.yaml")

# What a derived or published figure is made of: name -> (the raw field, how). Of a list of tiers the first and the last stand for its ends.
DROP, RATIO, GAIN, SPEEDUP = "drop", "ratio", "gain", "speedup"
_MADE_OF = {
    "ttft_drop": ("ttft_p50_s", DROP),
    "ttft_drop_lowest_tier": ("ttft_p50_s", DROP),
    "ttft_drop_highest_tier": ("ttft_p50_s", DROP),
    "ttft_ratio": ("ttft_p50_s", SPEEDUP),
    "bandwidth_ratio": ("read_bandwidth_gb_s", RATIO),
    "bandwidth_gain": ("sustained_write_gb_s", GAIN),
    "throughput_ratio": ("throughput_tok_s", RATIO),
}
_TIMES = ("save_s", "load_s", "ttft_p50_s")  # a plain `speedup` is of the first of these that a row has


@dataclass(frozen=True)
class Derived:
    """One figure recomputed from raw ones."""

    report: str
    what: str
    name: str
    stated: Decimal
    recomputed: Fraction

    @property
    def agrees(self) -> bool:
        """Return whether the stated figure is the recomputed one, rounded as it is stated (half to even)."""
        return kept(self.recomputed, self.stated) == self.stated


def load() -> dict[str, Any]:
    """Return the published figures, exact."""
    data: dict[str, Any] = read_yaml(PUBLISHED.read_text(encoding="utf-8"))
    return data


def derived(data: Mapping[str, Any]) -> tuple[Derived, ...]:
    """Return every single figure that the file states and that its raw figures give, recomputed."""
    out = []
    for row in data["results"]:
        stated = chain(row.get("derived", {}).items(), row.get("published", {}).items())
        for name, value in stated:
            recomputed = _of(row, name)
            if recomputed and isinstance(value, int | Decimal):
                at = -1 if name.endswith("highest_tier") else 0
                out.append(Derived(row["report"], row["what"], name, Decimal(value), recomputed[at]))
    return tuple(out)


def findings(data: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return everything in which the published figures contradict themselves, or say more than their raw figures do."""
    rules = (_roundings, _ranges, _tiers_without_figures, _gain_beyond_drop, _throughput_beyond_ttft, physics.unequal_bytes)
    more = (physics.kv_beyond_arithmetic, physics.operations_beyond_port, physics.bandwidth_beyond_port, physics.capacities)
    return tuple(chain.from_iterable(rule(data) for rule in (*rules, *more)))


def _of(row: Mapping[str, Any], name: str) -> list[Fraction]:
    """Return a figure recomputed from each raw pair of a row; empty where the row lacks them."""
    field, how = _MADE_OF.get(name, (next((t for t in _TIMES if t in row), ""), SPEEDUP) if name == "speedup" else ("", ""))
    return [_made(before, after, how) for before, after in pairs(row, field)]


def _made(before: Fraction, after: Fraction, how: str) -> Fraction:
    return {DROP: 1 - after / before, RATIO: after / before, GAIN: after / before - 1, SPEEDUP: before / after}[how]


def _roundings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield stated figures that are not the raw ones, rounded."""
    for item in derived(data):
        if not item.agrees:
            yield Finding(
                "figure_differs",
                item.report,
                "{what}: {name} is stated as {a}; the raw figures give {b}.",
                "{what}：{name} 公布为 {a}，由原始数值得 {b}。",
                {"what": item.what, "name": item.name, "a": item.stated, "b": shown(item.recomputed, 4)},
            )


def _ranges(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield published ranges with an end that no raw figure of the row gives."""
    for row in data["results"]:
        for name, ends in row.get("published", {}).items():
            if not isinstance(ends, list):
                continue
            have = _of(row, name)
            if name == "speedup":
                have = have + _of(row, "throughput_ratio")
            missing = [end for end in decimals(ends) if not any(kept(h, end) == end for h in have)]
            if have and missing:
                yield Finding(
                    "range_unsupported",
                    row["report"],
                    "{what}: {name} is published as {ends}, but the raw figures give {have}; nothing supports {missing}.",
                    "{what}：{name} 公布为 {ends}，原始数值只得 {have}；{missing} 没有依据。",
                    {
                        "what": row["what"],
                        "name": name,
                        "ends": " .. ".join(map(str, ends)),
                        "have": ", ".join(shown(h, 4) for h in have),
                        "missing": ", ".join(map(str, missing)),
                    },
                )


def _tiers_without_figures(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield rows that speak of more concurrency tiers than they give raw figures for."""
    for row in data["results"]:
        words = str(row.get("tiers", "")).split()
        told = len(pairs(row, "ttft_p50_s"))
        if words and words[0].isdigit() and told < int(words[0]):
            yield Finding(
                "raw_figures_missing",
                row["report"],
                "{what}: {n} tiers are named, raw TTFT is published for {k} of them.",
                "{what}：提到 {n} 个档位，只公布了其中 {k} 个的原始 TTFT。",
                {"what": row["what"], "n": words[0], "k": told},
            )


def _gain_beyond_drop(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield throughput gains that no published drop of the same model and layout explains.

    In a closed loop of C requests throughput is C / E2E. With a constant decode time a TTFT drop x can raise it by at most 1 / (1 - x) - 1, where
    TTFT is all of E2E.
    """
    same = ("model", "parallel")
    drops = [
        (row, max(_of(row, "ttft_drop")))
        for row in data["results"]
        if "throughput_tok_s" not in row and _of(row, "ttft_drop") and row.get("parallel")
    ]
    for row in data["results"]:
        gains = row.get("throughput_gain")
        if not isinstance(gains, Mapping):
            continue
        best = max((drop for other, drop in drops if all(other.get(k) == row.get(k) for k in same)), default=None)
        for tier, gain in gains.items():
            if best is None or Fraction(gain) <= 1 / (1 - best) - 1:
                continue
            yield Finding(
                "gain_beyond_drop",
                row["report"],
                "{tier}: a throughput gain of {gain} needs a TTFT drop of at least {need}, with constant decode time; the largest drop with raw"
                " figures is {best}, which allows at most {most}.",
                "{tier}：解码时间不变时，吞吐提升 {gain} 至少需要 TTFT 降幅 {need}；有原始数值的最大降幅为 {best}，最多只能带来 {most}。",
                {
                    "tier": tier,
                    "gain": gain,
                    "need": shown(1 - 1 / (1 + Fraction(gain)), 4),
                    "best": shown(best, 4),
                    "most": shown(1 / (1 - best) - 1, 4),
                },
            )


def _throughput_beyond_ttft(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield rows whose throughput grew by more than their TTFT shrank: with a constant decode time E2E cannot shrink by a larger factor than TTFT."""
    for row in data["results"]:
        faster, more = _of(row, "ttft_ratio"), _of(row, "throughput_ratio")
        if faster and more and max(more) > max(faster):
            yield Finding(
                "throughput_beyond_ttft",
                row["report"],
                "{what}: throughput grew {a} times, TTFT p50 shrank {b} times; with constant decode time the first cannot exceed the second.",
                "{what}：吞吐为原来的 {a} 倍，TTFT p50 仅缩短到 1/{b}；解码时间不变时前者不可能大于后者。",
                {"what": row["what"], "a": shown(max(more), 2), "b": shown(max(faster), 2)},
            )
