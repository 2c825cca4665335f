"""What is expected of G3: by the plan, by whoever asks, or by the published reference figures; and how noisy the measurement is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from gates.plan import Plan, load_yaml
from gates.text import Text

_PUBLISHED = Path(__file__).resolve().parents[1] / "reference" / "published.yaml"
_PLACES = Decimal("0.0001")

PLAN = Text("the plan (section expected)", "计划（expected 部分）")
ASKED = Text("as asked", "按所给数值")
PUBLISHED = Text(
    "the published reference figures (reports R2 and R3, another platform may differ; lowest, middle and highest tier by position)",
    "公开的参考数据（报告 R2、R3，其他平台可能不同；按最低、中间、最高档位对应）",
)
DERIVED = Text(
    "derived from the drop, with a constant decode time and the published share of TTFT in a request",
    "由降幅推算（解码时间不变，TTFT 占比取公开数据）",
)


@dataclass(frozen=True)
class Effects:
    """The true effects that are assumed, by tier, as ratios (0.26 is a drop of 26 %), and where each table comes from."""

    drop: dict[int, Decimal]
    gain: dict[int, Decimal]
    drop_source: Text
    gain_source: Text


@dataclass(frozen=True)
class Noise:
    """How much measurements vary: ratios (0.02 is 2 %), on the log scale.

    `run`: from run to run, of a run's median TTFT and of its throughput; a slow run is slow in both. Runs, and the tiers of one run, are
    drawn independently of each other: the careful assumption for the chance of a pass. `request`: from request to request within a run, and
    `autocorrelation` from one request to the next.
    """

    run: float = 0.02
    request: float = 0.05
    autocorrelation: float = 0.5

    def of_median(self, requests: int) -> float:
        """Return the standard deviation that the requests of one run leave in its median.

        For a normal series: the variance of a median is pi/2 that of a mean, times 1 + 2 sum (1 - k/n) (2/pi) asin(phi^k), since signs at
        distance k correlate by (2/pi) asin(phi^k).
        """
        return self.request * math.sqrt(math.pi / 2 * _inflation(requests, self.autocorrelation, of_signs=True) / requests)

    def of_mean(self, requests: int) -> float:
        """Return the standard deviation that the requests of one run leave in its mean, and so in its throughput."""
        return self.request * math.sqrt(_inflation(requests, self.autocorrelation, of_signs=False) / requests)


def _inflation(n: int, phi: float, *, of_signs: bool) -> float:
    terms = ((1 - k / n) * (2 / math.pi * math.asin(phi**k) if of_signs else phi**k) for k in range(1, min(n, 400)))
    return 1 + 2 * math.fsum(terms)


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """Return the published figures of cold recovery, TP8: drops at lowest, middle, highest tier; gains at lowest and middle; baseline TTFT (s)."""
    rows = load_yaml(_PUBLISHED.read_text(encoding="utf-8"))["results"]
    ttft = next(r for r in rows if r["report"] == "R2" and r.get("load") == "cold recovery")
    gains = next(r for r in rows if r["report"] == "R3" and r.get("parallel") == "TP8")["throughput_gain"]
    recompute = next(r for r in rows if r["report"] == "R2" and "ttft_p50_s" in r and r.get("concurrency"))
    before, after = ttft["ttft_p50_s"]["before"], ttft["ttft_p50_s"]["after"]
    drops = [(1 - Decimal(str(a)) / Decimal(str(b))).quantize(_PLACES) for b, a in zip(before, after, strict=True)]
    middle = Decimal(str(max(ttft["published"]["ttft_drop"])))
    return {
        "drop": {"lowest": drops[0], "middle": middle, "highest": drops[1]},
        "gain": {"lowest": Decimal(str(gains["c8"])), "middle": Decimal(str(gains["c16"]))},
        "ttft_s": {"lowest": float(before[0]), "middle": math.sqrt(float(before[0]) * float(before[1])), "highest": float(before[1])},
        "recompute_s": float(recompute["ttft_p50_s"]["before"]) / int(recompute["concurrency"]),  # seconds of prefill for one prefix
    }


def position(tier: int, tiers: tuple[int, ...]) -> str:
    """Return where a tier stands among all: lowest, highest or middle."""
    return "lowest" if tier == min(tiers) else "highest" if tier == max(tiers) else "middle"


def ttft_share() -> float:
    """Return TTFT's share of a request's time in the baseline, as the published drop and gain of the lowest tier imply with constant decode time."""
    known = published()
    return (1 - 1 / (1 + float(known["gain"]["lowest"]))) / float(known["drop"]["lowest"])


def allowed_gain(drop: Decimal, share: float = 1.0) -> Decimal:
    """Return the gain that a drop brings when the decode time stays: 1 / (1 - share x drop) - 1. With share 1 no drop can bring more."""
    return Decimal(repr(1 / (1 - share * float(drop)) - 1)).quantize(_PLACES)


def expected_effects(plan: Plan, *, drop: Decimal | None = None, gain: Decimal | None = None) -> Effects:
    """Return the expected effects: as asked for all tiers, else by the plan, else as published. A gain that nobody states follows from the drop."""
    tiers, known = plan.workload.tiers, published()
    sealed = plan.expected.ttft_p50_drop
    drops: dict[int, Decimal] = {}
    if drop is not None:
        drops, drop_source = dict.fromkeys(tiers, drop), ASKED
    else:
        drops = {t: (sealed or {}).get(t, known["drop"][position(t, tiers)]) for t in tiers}
        drop_source = PUBLISHED if not sealed else PLAN
    stated = plan.expected.throughput_gain or {}
    gains = {t: allowed_gain(drops[t], ttft_share()) for t in tiers}
    gain_source = DERIVED
    if gain is not None:
        gains, gain_source = dict.fromkeys(tiers, gain), ASKED
    elif stated:
        gains, gain_source = {**gains, **stated}, PLAN
    elif drop_source is PUBLISHED:
        gains, gain_source = {t: known["gain"].get(position(t, tiers), gains[t]) for t in tiers}, PUBLISHED
    return Effects(drops, gains, drop_source, gain_source)
