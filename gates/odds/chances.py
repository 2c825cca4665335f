"""The chances of G3's verdicts at an expected effect and noise, by trials that the gate's own rules judge."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from gates.model import Verdict
from gates.odds.drawing import draws
from gates.odds.effects import Effects, Noise
from gates.odds.trial import Rules
from gates.plan import Plan

TRIALS = 2000  # a chance of 90 % is then known to 1.3 points


@dataclass(frozen=True)
class Chances:
    """How often each verdict came, of so many trials, and what kept the others from a pass."""

    trials: int
    counts: dict[Verdict, int]
    causes: dict[str, int] = field(default_factory=dict)
    extended: int = 0  # trials that were extended by further run pairs

    def of(self, verdict: Verdict) -> float:
        """Return the chance of a verdict."""
        return self.counts.get(verdict, 0) / self.trials

    def half_width(self, verdict: Verdict) -> float:
        """Return by how much the chance may be off at 95 % confidence: few trials tell it roughly (Wilson, so that none of many is not zero)."""
        p, n, z = self.of(verdict), self.trials, 1.96
        return z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))

    def json(self) -> dict[str, Any]:
        """Return the chances as data: shares with four decimals, and as people read them."""
        shares = {str(v): {"chance": f"{self.of(v):.4f}", "within": f"{self.half_width(v):.4f}", "shown": shown(self.of(v))} for v in Verdict}
        ordered = sorted(self.causes.items(), key=lambda kv: (-kv[1], kv[0]))
        causes = [{"what": what, "share": f"{n / self.trials:.4f}", "shown": shown(n / self.trials)} for what, n in ordered]
        return {"trials": self.trials, "verdicts": shares, "causes": causes, "extended": f"{self.extended / self.trials:.4f}"}


def shown(share: float) -> str:
    """Return a share as people read it: percent with one decimal, which is about what the trials tell."""
    return f"{share * 100:.1f} %"


def chances(plan: Plan, effects: Effects, noise: Noise, *, trials: int = TRIALS, seed: int | None = None, requests: int = 1) -> Chances:
    """Return the chances of the whole G3 gate. The seed is the plan's unless another is given: the same plan, the same figures."""
    rules, pairs, more = Rules(plan), plan.decision.pairs, plan.g3.extension_pairs
    seed = plan.decision.seed if seed is None else seed
    counts: Counter[Verdict] = Counter()
    causes: Counter[str] = Counter()
    extended = 0
    for draw in draws(plan, effects, noise, pairs=pairs + more, trials=trials, seed=seed, requests=requests):
        judged = rules.judge({tier: found.first(pairs) for tier, found in draw.items()})
        if more and judged.verdict is Verdict.INCONCLUSIVE:
            judged, extended = rules.judge(draw), extended + 1
        counts[judged.verdict] += 1
        causes.update(judged.causes)
    return Chances(trials, dict(counts), dict(causes), extended)
