"""What the charts of G3 show: the same data on web and paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gates.g3.limits import limit_ms
from gates.model import CheckResult
from gates.plan import Plan
from gates.rules.claim import Findings
from gates.rules.estimates import ms, to_decimal

POINTS = 400  # of one distribution: more than a chart can show


def figures(plan: Plan, data: Findings, checks: Sequence[CheckResult]) -> dict[str, Any]:
    """Return TTFT distributions per tier and arm with the limit, and throughput per tier against the band."""
    ttft: dict[str, Any] = {}
    rates: dict[str, Any] = {}
    for tier in plan.workload.tiers:
        shown: dict[str, Any] = {}
        arms: dict[str, list[float]] = {}
        for run in data.runs:
            stats = run.stats.get(tier)
            if stats is None:
                continue
            points = [float(ms(v)) for v in _thin(stats.ttft_sorted)]
            shown.setdefault(run.arm, []).append({"run": run.key, "ms": points, "p50_ms": float(ms(stats.ttft_p50))})
            arms.setdefault(run.arm, []).append(float(to_decimal(stats.output_per_s, 3)))
        shown["limit_ms"] = limit_ms(plan, data, tier)
        ttft[str(tier)] = shown
        check = next((c for c in checks if c.id == f"g3.throughput_gain.c{tier}"), None)
        interval = check.interval if check else None
        rates[str(tier)] = {
            "gain": _text(check.value if check else None),
            "low": _text(interval.low if interval else None),
            "high": _text(interval.high if interval else None),
            "arms": arms,
        }
    band = plan.g3.throughput_gain_band
    return {"ttft": ttft, "throughput": rates, "band": {"low": format(band.low, "f"), "high": format(band.high, "f")}}


def _thin(values: Sequence[int]) -> Sequence[int]:
    """Return at most POINTS of a sorted series, evenly by rank, both ends kept."""
    if len(values) <= POINTS:
        return values
    last = len(values) - 1
    return [values[round(i * last / (POINTS - 1))] for i in range(POINTS)]


def _text(value: Any) -> str | None:
    return None if value is None else format(value, "f")
