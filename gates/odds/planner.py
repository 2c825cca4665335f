"""How many runs and requests a wanted chance of a pass takes: run pairs, runs of recompute and placebo beside them, requests a run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from gates.model import Verdict
from gates.odds.alarms import FALSE_ALARMS, fewest_controls, share_of
from gates.odds.chances import Chances, chances
from gates.odds.effects import Effects, Noise
from gates.plan import Plan
from gates.rules.decision import PAIRS_FOR_AN_INTERVAL

PAIRS = (2, 4, 6, 8, 10, 12, 16, 20)  # whole ABBA blocks, up to what a plan may hold
TIMES = (1, 2, 4)  # the plan's requests a run, multiplied
SEARCH_TRIALS = 1000


@dataclass(frozen=True)
class Need:
    """The cheapest runs that reach the wanted chance. `reached` is False when none does: then these are the most that a plan may hold."""

    plan: Plan  # with these runs; for planning, never sealed
    times: int
    reached: bool
    chances: Chances

    @property
    def pairs(self) -> int:
        """Return the run pairs."""
        return self.plan.decision.pairs

    @property
    def cost(self) -> tuple[int, int]:
        """Return what is kept small: the runs, and the store phases of two media, times their requests; then the run pairs."""
        arms = self.plan.arms
        return (len(arms.order) + len(arms.beside) + 2 * arms.blocks) * self.times, self.pairs


def with_pairs(plan: Plan, pairs: int, *, rule: str | None = None, controls: int | None = None, prompts: str | None = None) -> Plan:
    """Return the plan with another number of run pairs, in ABBA order, and another rule, number of controls or word on prompts if one is named.

    For planning, never sealed.
    """
    block = ("baseline", "candidate", "candidate", "baseline")
    order = (block * (pairs // 2 + 1))[: 2 * (pairs - pairs % 2)] + (("baseline", "candidate") if pairs % 2 else ())
    decision = dataclasses.replace(plan.decision, pairs=pairs, rule=rule or plan.decision.rule)
    arms = dataclasses.replace(plan.arms, order=order, controls=controls or plan.arms.controls, prompts=prompts or plan.arms.prompts)
    return dataclasses.replace(plan, decision=decision, arms=dataclasses.replace(arms, controls=max(arms.controls, arms.blocks)))


def needed(plan: Plan, effects: Effects, noise: Noise, wanted: float, *, seed: int | None = None, trials: int = SEARCH_TRIALS) -> Need:
    """Return the runs, with the fewest requests, whose chance of a pass is at least `wanted`; more runs are taken to be never worse.

    At least: less what so many trials leave open (95 %), else every second plan found at 90 % would truly stand below it.
    Recompute and placebo run as often as keeps the placebo's limit from alarming by chance; blocks ask prompts of their own where the replay's
    limit would alarm so without.
    """
    least = 2 if plan.decision.rule == "simple" else PAIRS_FOR_AN_INTERVAL
    choices = [n for n in PAIRS if n >= least]

    def tried(pairs: int, times: int) -> Need:
        chosen = with_pairs(plan, pairs, controls=fewest_controls(plan, noise, times=times))
        own = with_pairs(chosen, pairs, prompts="per_block")
        if share_of("replay", chosen, noise, times=times) > max(FALSE_ALARMS, share_of("replay", own, noise, times=times)):
            chosen = own
        return Need(chosen, times, True, chances(chosen, effects, noise, trials=trials, seed=seed, requests=times))

    most = tried(choices[-1], TIMES[-1])
    if not _surely(most.chances, wanted):
        return dataclasses.replace(most, reached=False)
    found = [most]
    for times in TIMES:
        low, high, best = 0, len(choices) - 1, None
        while low <= high:
            middle = (low + high) // 2
            need = tried(choices[middle], times)
            if _surely(need.chances, wanted):
                best, high = need, middle - 1
            else:
                low = middle + 1
        found += [best] if best else []
    return min(found, key=lambda need: need.cost)


def _surely(found: Chances, wanted: float) -> bool:
    """Return whether the chance of a pass is at least as wanted also at its lower bound; passes only are as much as trials can show."""
    share = found.of(Verdict.PASS)
    return share == 1 or share - found.half_width(Verdict.PASS) >= wanted


def json_of(need: Need) -> dict[str, Any]:
    """Return a need as data."""
    runs = {"pairs": need.pairs, "controls": need.plan.arms.controls, "prompts": need.plan.arms.prompts, "requests_times": need.times}
    return {**runs, "reached": need.reached, **need.chances.json()}
