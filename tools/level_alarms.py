"""How often noise alone, and a true plateau, fails the checks of level of a soak: the figures of docs/false-decisions.md.

    .venv/bin/python -m tools.level_alarms --trials 2000      # prints two tables; two minutes of one core

Windows of an hour over 72 h, whose levels scatter by 2 or 3 % with an autocorrelation of 0.5 from window to window, judged by gates.rules.levels
with the default plan's limits. Nothing of a request is drawn: a window's median of thousands of requests moves with its hour.
"""

from __future__ import annotations

import argparse
import math
import random
from fractions import Fraction

from gates.plan import Plan, parse_plan
from gates.rules.beside_best import beside_best
from gates.rules.levels import bad_start, late_fall, worst_stretch

HOURS, RHO = 72, 0.5


def series(rng: random.Random, spread: float) -> list[int]:
    """Return the levels of a stationary soak, in parts of a million of its mean."""
    value, out = rng.gauss(0, 1), []
    for _ in range(HOURS):
        value = RHO * value + math.sqrt(1 - RHO * RHO) * rng.gauss(0, 1)
        out.append(int(10**6 * math.exp(spread * value)))
    return out


def judged(plan: Plan, values: list[int]) -> str:
    """Return what the check of one figure says of levels: fail, inconclusive or pass."""
    rule, limit = plan.g4.change_point, plan.g4.hourly_drift_max
    found = worst_stretch(values, upwards=True, least=rule.windows_min, p_max=float(rule.p_max), over=Fraction(limit))
    if found is not None and found.size > limit:
        return "fail"
    doubts = [
        f(values, upwards=True, least=rule.windows_min, p_max=float(rule.p_max), over=Fraction(limit)) for f in (late_fall, bad_start, beside_best)
    ]
    return "inconclusive" if any(d is not None and d.size > limit for d in doubts) else "pass"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    trials, plan, rng = parser.parse_args().trials, parse_plan(), random.Random(20261129)
    print("| a stationary soak | fail | inconclusive |\n| --- | --- | --- |")
    for spread in (0.02, 0.03):
        said = [judged(plan, series(rng, spread)) for _ in range(trials)]
        print(f"| {spread:.0%} | " + " | ".join(f"{said.count(word) / trials:.2%}" for word in ("fail", "inconclusive")) + " |", flush=True)
    print("\n| windows scatter by 2 %, a plateau of | 6 h | 12 h | 32 h |\n| --- | --- | --- | --- |")
    for share in (0.08, 0.10, 0.15):
        row = []
        for hours in (6, 12, 32):
            raised = ([int(v * (1 + share)) if 20 <= n < 20 + hours else v for n, v in enumerate(series(rng, 0.02))] for _ in range(trials // 10))
            row.append(sum(judged(plan, values) == "fail" for values in raised) / (trials // 10))
        print(f"| {share:.0%} | " + " | ".join(f"{share_:.0%}" for share_ in row) + " |")


if __name__ == "__main__":
    main()
