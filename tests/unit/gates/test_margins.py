"""A check that failed tells by how much, wherever its own value and limit tell it; nothing else gets a margin that it did not give."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gates.model import CheckResult, Limit, Verdict
from gates.rules.margins import with_margin
from gates.text import Text

D = Decimal


def failed(value: Decimal | str | None, limit: Limit, verdict: Verdict = Verdict.FAIL, margin: Decimal | None = None) -> CheckResult:
    return CheckResult("g3.x", Text("x", "x"), verdict, Text("It was measured.", "已实测。"), value=value, limit=limit, margin=margin)


@pytest.mark.parametrize(
    ("value", "limit", "margin"),
    [
        ("0.10", Limit(">=", low=D("0.99")), "-0.89"),
        ("3", Limit("<=", high=D(0)), "-3"),
        ("2", Limit("==", low=D(1), high=D(1)), "-1"),
        ("0", Limit("==", low=D(1), high=D(1)), "-1"),
        ("0.5", Limit("band", low=D("0.29"), high=D("0.40")), "-0.10"),
    ],
)
def test_a_fail_without_a_margin_gets_that_of_its_value_and_limit(value: str, limit: Limit, margin: str) -> None:
    assert with_margin(failed(D(value), limit)).margin == D(margin)


@pytest.mark.parametrize(
    "check",
    [
        failed(D("0.10"), Limit(">=", low=D("0.99")), Verdict.INCONCLUSIVE),
        failed(D(1), Limit("<=", high=D(3))),  # the worst value of a check that failed by another subject
        failed(None, Limit(">=", low=D(1))),
        failed("text", Limit(">=", low=D(1))),
        failed(D("NaN"), Limit(">=", low=D(1))),
        failed(D(1), Limit("none")),
        failed(D(1), Limit(">=", low=D(2)), margin=D("-7")),
    ],
)
def test_everything_else_stays_as_it_is(check: CheckResult) -> None:
    assert with_margin(check) == check
