"""By how much a failed check missed its limit, where the check itself gave no margin: from its own value and limit."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from gates.model import CheckResult, Verdict


def with_margin(check: CheckResult) -> CheckResult:
    """Return the check with the distance of its value from its limit (in the check's unit, negative: missed by so much).

    Only of a fail that told its value and no margin, and only where that value lies beyond that limit: of a check over many subjects the worst
    value may not be the one that failed.
    """
    limit, value = check.limit, check.value
    if check.verdict is not Verdict.FAIL or check.margin is not None or not isinstance(value, Decimal) or not value.is_finite():
        return check
    over = [value - limit.low] if isinstance(limit.low, Decimal) and limit.op in (">=", "==", "band") else []
    over += [limit.high - value] if isinstance(limit.high, Decimal) and limit.op in ("<=", "==", "band") else []
    return replace(check, margin=min(over)) if over and min(over) < 0 else check
