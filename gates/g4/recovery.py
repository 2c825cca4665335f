"""The check of the product's own fault that a soak can show beside failures: it does not give back what was stored."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from gates import remedies
from gates.g4.answers import declared_as
from gates.model import CheckResult, ClaimStatus, Verdict
from gates.plan import Plan
from gates.rules.standing import Standing, refused


def recovery(plan: Plan, standing: Standing, arm: str = "candidate") -> list[CheckResult]:
    """Return the check that the soak recovered what was stored, as its claim `tier_exercised` says; none where both parties left that out.

    What fell short in the rig (it fitted into the GPU cache) breaches validity, and nothing is said about the product.
    """
    claim = standing.get("tier_exercised", arm)
    if claim is None or claim.status is ClaimStatus.NOT_TESTED:
        return []
    verdict = {ClaimStatus.HOLDS: Verdict.PASS, ClaimStatus.BREACHED: Verdict.FAIL}.get(claim.status, Verdict.INCONCLUSIVE)
    check = replace(
        declared_as("recovery").blank(plan, evidence=claim.evidence),
        verdict=verdict,
        reason=claim.reason,
        value=claim.value,
        margin=claim.value - plan.validity.external_hits_min if isinstance(claim.value, Decimal) else None,
        change=(claim.change or remedies.told(claim.evidence)) if verdict is Verdict.INCONCLUSIVE else None,
    )
    refusal = standing.blame()
    return [refused(check, refusal) if refusal else check]
