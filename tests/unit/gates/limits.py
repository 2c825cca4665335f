"""Which checks of a gate hold a number against a limit, by their declarations: a table of boundaries must have a row for each."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from gates.declarations import DECLARED
from gates.model import CheckResult, Verdict
from gates.plan import Plan


def numeric_limits(gate: str, plan: Plan) -> set[str]:
    """Return the ids of the declared checks whose limit under this plan is a number."""
    return {d.id for d in DECLARED[gate] if (limit := d.limit(plan)).op in ("<=", ">=", "==") and any(map(_is_number, (limit.low, limit.high)))}


def told_on_its_side(found: CheckResult) -> bool:
    """Return whether the printed value stands on the side of the printed limit that the verdict says, and its margin with it."""
    value, low, high = found.value, found.limit.low, found.limit.high
    if not isinstance(value, Decimal) or not (isinstance(low, Decimal) or isinstance(high, Decimal)):
        return True  # a set, or a limit that only the part or the order tells
    kept = (not isinstance(low, Decimal) or value >= low) and (not isinstance(high, Decimal) or value <= high)
    return kept is (found.verdict is Verdict.PASS) and (found.margin is None or (found.margin >= 0) is kept)


def _is_number(bound: Decimal | str | None) -> bool:
    try:
        return bound is not None and Decimal(bound).is_finite()
    except InvalidOperation:
        return False
