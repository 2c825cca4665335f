"""One drawn attempt at G3, judged: the claims that compare runs, the limits tier by tier and the roll-up, each by the rule of the gate itself.

A test holds these verdicts against those of the gate's own checks on the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gates.g3.deciding import AUDITS, of_drop, of_gain
from gates.judge import ORDER
from gates.model import Attribution, ClaimResult, ClaimStatus, Verdict
from gates.odds.drawing import Draw, TierDraw
from gates.plan import Plan
from gates.rules.agreement import agree, from_frozen, near, replayed
from gates.rules.claim import holds
from gates.rules.decision import Effect
from gates.rules.standing import Standing, leave_out, validity_check
from gates.text import Text

_ARM = {"baselines_agree": "baseline", "g2_agreement": "baseline", "placebo": "placebo", "replay": "candidate"}
_NOTHING = Text("", "")


@dataclass(frozen=True)
class Judged:
    """The verdict of a drawn attempt, and what decided it where it is no pass: checks and claims, e.g. `ttft_p50_drop.c8`, `placebo`."""

    verdict: Verdict
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _State:
    """What the claims allow the checks to say: verdicts instead of an answer, or None."""

    validity: Verdict
    drop: Verdict | None
    gain: Verdict | None
    within: Verdict | None  # of a gain inside or below the band
    audits: tuple[ClaimStatus | None, ...]


class Rules:
    """The rules of G3 under one plan, for many drawn attempts."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._states: dict[tuple[tuple[str, bool], ...], _State] = {}

    def _claims(self, pairs: int) -> tuple[str, ...]:
        once, several = self.plan.arms.once, pairs > 1
        wanted = (("placebo", "placebo" in once), ("replay", several), ("baselines_agree", several), ("g2_agreement", True))
        return tuple(name for name, there in wanted if there)

    def held(self, draw: Draw) -> dict[str, bool]:
        """Return for each claim that compares runs whether it holds at every tier."""
        pairs = len(next(iter(draw.values())).baseline_ttft)
        return {name: all(self._holds(name, tier) for tier in draw.values()) for name in self._claims(pairs)}

    def judge(self, draw: Draw) -> Judged:
        """Return the verdict of a drawn attempt. Run pairs beyond the plan's are those of an extension, which asks prompts of its own."""
        plan = self.plan
        found = self.held(draw)
        state = self._state(tuple(found.items()))
        verdicts: dict[str, Verdict] = {"validity": state.validity}
        for tier in plan.g3.ttft_p50_drop_min.tiers:
            verdicts[f"ttft_p50_drop.c{tier}"] = state.drop or self._drop(draw[tier])
        for tier in plan.g3.throughput_gain_band.tiers:
            verdicts[f"throughput_gain.c{tier}"] = state.gain or self._gain(draw[tier], state)
        verdict = next(v for v in ORDER if v in verdicts.values())
        if verdict is Verdict.PASS:
            return Judged(verdict)
        causes = tuple(name for name, v in verdicts.items() if v is verdict)
        return Judged(verdict, tuple(n for n, held in found.items() if not held) if "validity" in causes else causes)

    def _holds(self, claim: str, t: TierDraw) -> bool:
        plan = self.plan
        if claim == "placebo":
            return not Effect(tuple(zip(t.recompute_rate, t.placebo_rate, strict=True)), drop=False).exceeds(plan.validity.placebo_gain_max)
        if claim == "replay":
            together, runs = plan.arms.prompts == "per_block", t.candidate_ttft
            ends = (
                range(0, len(runs), 2) if together else (0, plan.decision.pairs)
            )  # where a prompt set begins: a block, or the order and its extension
            sets = [runs[a:b] for a, b in zip(ends, (*ends[1:], len(runs)), strict=True)]
            repeated = [asked for asked in sets if len(asked) > 1]
            found = [replayed(repeated)] if together and repeated else [replayed([asked]) for asked in repeated]
            return not any(effect.exceeds(plan.validity.replay_gain_max) for effect in found)
        limit = plan.g3.agreement_max
        if claim == "baselines_agree":
            return agree(t.baseline_ttft, limit, plan.decision) and agree(t.baseline_rate, limit, plan.decision)
        means = (from_frozen(t.frozen_ttft, t.baseline_ttft), from_frozen(t.frozen_rate, t.baseline_rate))
        return all(near(effect, limit) for effect in means)

    def _drop(self, t: TierDraw) -> Verdict:
        effect = Effect(tuple(zip(t.baseline_ttft, t.candidate_ttft, strict=True)), drop=True)
        return of_drop(self.plan, effect, t.baseline_ttft).verdict

    def _gain(self, t: TierDraw, state: _State) -> Verdict:
        effect = Effect(tuple(zip(t.baseline_rate, t.candidate_rate, strict=True)), drop=False)
        decided = of_gain(self.plan, effect, t.baseline_rate, state.audits)
        if state.within and (decided.above is None or self.plan.g3.throughput_gain_band.above != "audit"):
            return state.within
        return decided.verdict

    def _state(self, found: tuple[tuple[str, bool], ...]) -> _State:
        """Return what the gate's own standing makes of these claims; there are few combinations."""
        if found not in self._states:
            claims = [_claim(name, held=held) for name, held in found]
            standing = Standing(True, leave_out(self.plan, claims) or (_claim("g2_agreement", held=True),))
            refusals = [standing.performance(), standing.performance(but="g2_agreement")]
            every, but = (refusal.verdict if refusal else None for refusal in refusals)
            audits = [standing.get(*name) for name in AUDITS]
            valid = validity_check("G3", self.plan, standing).verdict
            self._states[found] = _State(valid, every, but, every, tuple(c.status if c else None for c in audits))
        return self._states[found]


def _claim(name: str, *, held: bool) -> ClaimResult:
    fault = None if held else Attribution.RIG
    return ClaimResult(claim=name, arm=_ARM[name], title=_NOTHING, status=holds(held), reason=_NOTHING, value=Decimal(0), attribution=fault)
