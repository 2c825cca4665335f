"""How often a check decides wrongly, from single requests: autocorrelated within a run, runs that differ, the gate's own medians and rules."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates.g3.deciding import of_drop
from gates.model import Verdict
from gates.odds.drawing import TierDraw, draws
from gates.odds.effects import ASKED, Effects, Noise
from gates.odds.planner import PAIRS, with_pairs
from gates.odds.trial import Rules
from gates.plan import Plan
from gates.rules.decision import PAIRS_FOR_AN_INTERVAL, Effect, decide
from gates.rules.estimates import median
from gates.rules.within_run import within_run

REQUESTS = 160  # of one run at one tier: c16 of the default plan
_BLOCK = 250  # attempts drawn at once
_BASE_NS = 10**10

Medians = tuple[Fraction, ...]


def check_shares(
    plan: Plan, drop: float, noise: Noise, *, trials: int, seed: int, requests: int = REQUESTS, rule_alone: bool = False
) -> dict[Verdict, float]:
    """Return how often the check of the TTFT drop gives each verdict at a true drop; an inconclusive one is extended as the plan says.

    `rule_alone` leaves out what stands beside the decision rule (the fragile rule).
    """
    pairs, more = plan.decision.pairs, plan.g3.extension_pairs

    def answer(base: Medians, new: Medians) -> Verdict:
        effect = Effect(tuple(zip(base, new, strict=True)), drop=True)
        if rule_alone:
            return decide(effect, plan.g3.ttft_p50_drop_min.limit, plan.decision)[0]
        return of_drop(plan, effect, base).verdict

    counts: Counter[Verdict] = Counter()
    for base, new in attempts(drop, noise, pairs=pairs + more, requests=requests, trials=trials, seed=seed):
        verdict = answer(base[:pairs], new[:pairs])
        if verdict is Verdict.INCONCLUSIVE and more:
            verdict = answer(base, new)
        counts[verdict] += 1
    return {verdict: counts[verdict] / trials for verdict in Verdict}


def check_needs(plan: Plan, drop: float, noise: Noise, wanted: float, *, trials: int, seed: int) -> tuple[int, float] | None:
    """Return the fewest run pairs with which the check passes a true drop often enough, and how often it does; None where no number does."""
    for pairs in PAIRS:
        if pairs >= (2 if plan.decision.rule == "simple" else PAIRS_FOR_AN_INTERVAL):
            share = check_shares(with_pairs(plan, pairs), drop, noise, trials=trials, seed=seed)[Verdict.PASS]
            if share >= wanted:
                return pairs, share
    return None


def attempts(drop: float, noise: Noise, *, pairs: int, requests: int, trials: int, seed: int) -> Iterator[tuple[Medians, Medians]]:
    """Yield (baseline, candidate) medians of the runs of each drawn attempt, made from single requests with the gate's own median."""
    for times in request_times(drop, noise, pairs=pairs, requests=requests, trials=trials, seed=seed):
        yield tuple(median(run) for run in times[0]), tuple(median(run) for run in times[1])


def request_times(drop: float, noise: Noise, *, pairs: int, requests: int, trials: int, seed: int) -> Iterator[list[list[list[int]]]]:
    """Yield the TTFT in ns of every request: by arm (baseline, candidate), run, request."""
    import numpy as np

    rng = np.random.default_rng([seed, pairs, requests])
    shift = np.array([0.0, math.log1p(-drop)]).reshape(1, 2, 1, 1)
    for begin in range(0, trials, _BLOCK):
        shape = (min(_BLOCK, trials - begin), 2, pairs)
        logs = shift + noise.run * rng.standard_normal((*shape, 1)) + noise.request * _series(rng, (*shape, requests), noise.autocorrelation)
        yield from np.rint(_BASE_NS * np.exp(logs)).astype(np.int64).tolist()


def _series(rng: Any, shape: tuple[int, ...], phi: float) -> Any:
    """Return stationary first-order autoregressive series of unit variance along the last axis."""
    values = rng.standard_normal(shape)
    values[..., 1:] *= math.sqrt(1 - phi * phi)
    for i in range(1, shape[-1]):
        values[..., i] += phi * values[..., i - 1]
    return values


def bootstrap_share(drop: float, noise: Noise, *, trials: int, seed: int, requests: int = REQUESTS, pairs: int = 2) -> float:
    """Return how often the bound of the within-run diagnostic would clear 25 %, if it decided: what an interval over requests is worth."""
    passed, limit, confidence = 0, Decimal("0.25"), Decimal("0.95")
    for arms in request_times(drop, noise, pairs=pairs, requests=requests, trials=trials, seed=seed):
        ordered = [[sorted(run) for run in arm] for arm in arms]
        base, new = ([median(run) for run in arm] for arm in ordered)
        effect = Effect(tuple(zip(base, new, strict=True)), drop=True)
        found = within_run(effect, [run for arm in ordered for run in arm], confidence)
        passed += found is not None and found.low is not None and found.low >= limit
    return passed / trials


def alarm_shares(plan: Plan, noise: Noise, *, trials: int, seed: int, warm: float = 0.0, placebo: float = 0.0, requests: int = 1) -> dict[str, float]:
    """Return how often each claim that compares runs is breached where something is wrong: what the limits of validity still catch.

    `warm`: by how much TTFT is truly lower wherever a prompt is asked again, since a cache was not emptied; `placebo`: by how much the placebo
    is truly faster than recompute. Baselines that differ are a large noise.
    """
    rules, own = Rules(plan), plan.arms.prompts == "per_block"
    effects = Effects(dict.fromkeys(plan.workload.tiers, Decimal("0.3")), dict.fromkeys(plan.workload.tiers, Decimal("0.345")), ASKED, ASKED)
    breached: Counter[str] = Counter()
    for draw in draws(plan, effects, noise, pairs=plan.decision.pairs, trials=trials, seed=seed, requests=requests):
        held = rules.held({tier: _spoiled(found, own, Fraction(1 - warm), Fraction(1 + placebo)) for tier, found in draw.items()})
        breached.update(name for name, holds in held.items() if not holds)
    return {name: breached[name] / trials for name in ("placebo", "replay", "baselines_agree", "g2_agreement")}


def _spoiled(t: TierDraw, own: bool, warm: Fraction, placebo: Fraction) -> TierDraw:
    again = [v * (warm if (n % 2 if own else n) else 1) for n, v in enumerate(t.candidate_ttft)]  # a block's second run, or every later run
    return dataclasses.replace(t, candidate_ttft=tuple(again), placebo_rate=tuple(v * placebo for v in t.placebo_rate))


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
