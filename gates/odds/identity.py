"""How often the comparison of outputs decides wrongly: drawn with recompute's own noise, which the repeats tell within bounds only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gates.model import ClaimStatus, Verdict
from gates.plan import Plan
from gates.rules.outputs import Divergence, proven


@dataclass(frozen=True)
class Engine:
    """How often (share of outputs) two computations of one prompt differ by the engine's own noise, as a whole and in their first tokens."""

    noise: float
    noise_of_heads: float = 0.0


def identity_shares(plan: Plan, engine: Engine, *, pairs: int = 2, damaged: float = 0.0, trials: int = 2000, seed: int = 1) -> dict[Verdict, float]:
    """Return the shares of pass, fail and inconclusive of the candidate's outputs, over all its runs and tiers.

    `damaged`: share of the outputs of the first tier whose recovered KV was wrong, which shows in their first tokens.
    """
    draw = np.random.default_rng(seed)
    limits, work = plan.validity, plan.workload
    repeats = min(work.identity_repeats, work.requests(work.tiers[0]))
    found = dict.fromkeys((Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE), 0)
    for _ in range(trials):
        base_heads = int(draw.binomial(repeats, engine.noise_of_heads))
        base = base_heads + int(draw.binomial(repeats - base_heads, _later(engine)))
        states = set()
        for tier in work.tiers:
            for _run in range(pairs):
                requests = work.requests(tier)
                wrong = int(draw.binomial(requests, damaged)) if tier == work.tiers[0] else 0
                heads = wrong + int(draw.binomial(requests - wrong, engine.noise_of_heads))
                whole = heads + int(draw.binomial(requests - heads, _later(engine)))
                told, first = (Divergence(off, requests, own, repeats) for off, own in ((whole, base), (heads, base_heads)))
                states.add(proven(told, first, limits.divergence_excess_max, limits.noise_floor_max)[0])
        worst = Verdict.FAIL if ClaimStatus.BREACHED in states else Verdict.INCONCLUSIVE if ClaimStatus.UNKNOWN in states else Verdict.PASS
        found[worst] += 1
    return {verdict: count / trials for verdict, count in found.items()}


def _later(engine: Engine) -> float:
    """Return the chance that an output differs whose first tokens do not."""
    return max(engine.noise - engine.noise_of_heads, 0.0) / (1 - engine.noise_of_heads)
