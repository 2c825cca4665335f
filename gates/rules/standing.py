"""Validity before performance: what the claims allow a check to say (DESIGN 4.2, 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gates import declared_common, remedies
from gates.model import MORE_PAIRS, Attribution, CheckResult, ClaimResult, ClaimStatus, Verdict
from gates.plan import Plan, default_data
from gates.rules.claim_table import TITLES
from gates.steps import arm_name
from gates.text import Text, clauses

# A disagreement of baselines says that the environment moved, not that the rig is broken: inconclusive, not invalid (DESIGN 4.8).
AGREEMENT = ("baselines_agree", "g2_agreement")
# What must hold for the candidate before its own faults are laid at its door (DESIGN 4.3).
BEFORE_BLAME = (
    "hbm_cold",
    "page_cache_cold",
    "engine_restarted_cold",
    "array_cold",
    "on_its_medium",
    "device_bytes",
    "store_complete",
    "calibration",
    "equal_work",
)

_COMPLETE = Text(
    "a new attempt with complete evidence would change it; what is missing stands under completeness",
    "证据齐全的新尝试方可改变；所缺内容见证据完整性",
)
_AGREE = Text("more run pairs over which the baseline runs agree would change it", "更多轮次对使各基线轮次一致方可改变")


@dataclass(frozen=True)
class Refusal:
    """Why a check may not be answered, and what it is worth instead."""

    verdict: Verdict
    reason: Text
    change: Text
    remedy: str = ""


@dataclass(frozen=True)
class Standing:
    """Whether checks may speak, given completeness and claims."""

    complete: bool
    claims: tuple[ClaimResult, ...]

    def broken(self) -> tuple[ClaimResult, ...]:
        """Return the breaches that are the rig's: with one of them nothing is said about the product."""
        return tuple(
            c for c in self.claims if c.status is ClaimStatus.BREACHED and c.attribution is not Attribution.PRODUCT and c.claim not in AGREEMENT
        )

    def doubtful(self, wanted: Callable[[ClaimResult], bool]) -> tuple[ClaimResult, ...]:
        """Return the claims, of those wanted, that are unknown, or on which the baselines disagree."""
        return tuple(
            c for c in self.claims if wanted(c) and (c.status is ClaimStatus.UNKNOWN or (c.claim in AGREEMENT and c.status is ClaimStatus.BREACHED))
        )

    def blame(self) -> Refusal | None:
        """Return why a check of the product's own faults may not be answered, or None."""
        return self._refuse(lambda c: c.arm == "candidate" and c.claim in BEFORE_BLAME)

    def performance(self, *, but: str = "") -> Refusal | None:
        """Return why a check of performance may not be answered, or None: every claim must be known, `but` one that the check handles itself."""
        return self._refuse(lambda c: c.claim != but)

    def get(self, claim: str, arm: str) -> ClaimResult | None:
        """Return one claim of one arm."""
        return next((c for c in self.claims if c.claim == claim and c.arm == arm), None)

    def _refuse(self, needed: Callable[[ClaimResult], bool]) -> Refusal | None:
        if not self.complete:
            return Refusal(Verdict.INCONCLUSIVE, Text("The evidence is incomplete, so this is not judged.", "证据不完整，故不作判定。"), _COMPLETE)
        broken = self.broken()
        if broken:
            reason = Text("Not judged, the measurement is invalid: {c}", "测量无效，不作判定：{c}").fill(c=_named(broken))
            return Refusal(Verdict.INVALID, reason, remedies.mended(_files(broken)))
        doubtful = self.doubtful(needed)
        if doubtful:
            return Refusal(
                Verdict.INCONCLUSIVE,
                Text("Not judged, validity is not proven: {c}", "有效性未证明，不作判定：{c}").fill(c=_named(doubtful)),
                _settled(doubtful),
                _remedy(doubtful),
            )
        return None


def validity_check(gate: str, plan: Plan, standing: Standing) -> CheckResult:
    """Return the check that the measurement is valid: every claim of every arm holds, is not applicable, or is left out by agreement."""
    blank = declared_common.validity(gate).blank(plan)
    broken, doubtful = standing.broken(), standing.doubtful(lambda _: True)
    if not standing.claims:
        return replace(blank, reason=Text("No claim could be examined.", "没有可检验的断言。"), change=_COMPLETE)
    if not standing.complete:
        return replace(blank, reason=Text("Validity cannot be decided on incomplete evidence.", "证据不完整，无法判断有效性。"), change=_COMPLETE)
    if broken:
        files = _files(broken)
        return replace(
            blank, verdict=Verdict.INVALID, reason=_named(broken), value=Decimal(len(broken)), change=remedies.mended(files), evidence=files[:20]
        )
    if doubtful:
        files, reason, remedy = _files(doubtful), _named(doubtful), _remedy(doubtful)
        if files and not remedy:
            shown = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
            reason = Text("{r} To look at: {f}", "{r}相关证据：{f}").fill(r=reason, f=shown)
        return replace(blank, reason=reason, value=Decimal(len(doubtful)), remedy=remedy, change=_settled(doubtful), evidence=files[:20])
    held = sum(c.status is ClaimStatus.HOLDS for c in standing.claims)
    out = sum(c.status is ClaimStatus.NOT_TESTED for c in standing.claims)
    reason = Text("{n} claims hold, {o} were left out by agreement.", "{n} 项断言成立，{o} 项按约定不测。").fill(n=held, o=out)
    return replace(blank, verdict=Verdict.PASS, reason=reason, value=Decimal(0))


def refused(check: CheckResult, refusal: Refusal) -> CheckResult:
    """Return a check that may not speak: the verdict of the refusal, no value, no margin."""
    silent = replace(check, value=None, margin=None, interval=None, because=None)
    return replace(silent, verdict=refusal.verdict, reason=refusal.reason, remedy=refusal.remedy, change=refusal.change)


def leave_out(plan: Plan, claims: Iterable[ClaimResult]) -> tuple[ClaimResult, ...]:
    """Return the claims with those that both parties agreed not to test marked so, whatever was found."""
    out = []
    for claim in claims:
        reason = plan.leaves_out(claim.claim)
        if reason is None or claim.status is ClaimStatus.NOT_APPLICABLE:
            out.append(claim)
        else:
            said = Text("Not tested, by agreement: {r}", "双方约定不测：{r}").fill(r=reason)
            out.append(ClaimResult(claim=claim.claim, arm=claim.arm, title=claim.title, status=ClaimStatus.NOT_TESTED, reason=said))
    return tuple(out)


def not_tested(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Return what page 1 prints as not tested, by agreement."""
    return tuple(
        {
            "claim": n.claim,
            "title": TITLES[n.claim].json() if n.claim in TITLES else Text(n.claim, n.claim).json(),
            "reason": Text(n.reason, n.reason).json(),
            "agreed": True,
        }
        for n in plan.not_tested
    )


def counters_left_out(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Return the rows for fatal counters of the default plan that this plan does not watch: leaving one out is an agreement, and is printed."""
    title = Text("Fatal counter of the soak: {name}", "稳定性运行的致命计数器：{name}")
    reason = Text("g4.fatal_counters of the plan does not name it.", "计划的 g4.fatal_counters 未列入。")
    names = [name for name in default_data()["g4"]["fatal_counters"] if name not in plan.g4.fatal_counters]
    return tuple({"claim": f"counter_{name}", "title": title.fill(name=name).json(), "reason": reason.json(), "agreed": True} for name in names)


def _remedy(doubtful: Sequence[ClaimResult]) -> str:
    """Return MORE_PAIRS where further run pairs can answer all doubts.

    They can where baseline runs disagree, with each other or with G2: what is compared there are means over runs. They cannot where
    something is unknown, since that takes the evidence of it, nor where the claim itself names another way out.
    """
    return MORE_PAIRS if doubtful and all(c.claim in AGREEMENT and c.status is ClaimStatus.BREACHED and not c.change for c in doubtful) else ""


def _settled(doubtful: Sequence[ClaimResult]) -> Text:
    """Return what would settle the first of some doubts: so many more requests, run pairs, an act, or the evidence that tells it."""
    first = doubtful[0]
    if first.status is ClaimStatus.BREACHED:
        return first.change or _AGREE
    return first.change or remedies.told(first.evidence)


def _files(claims: Sequence[ClaimResult]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for c in claims for path in c.evidence))


def _named(claims: Sequence[ClaimResult]) -> Text:
    shown = claims[:3]
    more = len(claims) - len(shown)
    said = clauses(Text(f"{c.title.en} ({c.arm}): {c.reason.en}", f"{c.title.zh}（{arm_name(c.arm).zh}）：{c.reason.zh}") for c in shown)
    return Text(said.en + (f"; and {more} more." if more else "."), said.zh + (f"；另有 {more} 项。" if more else "。"))
