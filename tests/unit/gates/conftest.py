"""Every verdict that these tests make says of each check without an answer what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

import gates.judge
from gates.model import CheckResult, Verdict
from gates.text import Text
from gates.why import why
from tests.unit.rack.simulate import evidence


@pytest.fixture(autouse=True, scope="session")
def _nothing_stays_unexplained() -> Iterator[None]:
    """Refuse any verdict with a check that is inconclusive or invalid and does not say what would change it, or one that is answered and does."""

    def held(title: Text, verdict: Verdict, checks: Sequence[CheckResult], way_on: Mapping[str, Any] | None = None) -> Text:
        for check in checks:
            unanswered = check.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)
            assert unanswered == (check.change is not None), f"{check.id} is {check.verdict}, change {check.change}"
        return why(title, verdict, checks, way_on)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gates.judge, "why", held)
        yield


@pytest.fixture(scope="module")
def whole() -> dict[str, bytes]:
    """Give the evidence of an arrival where nothing is wrong."""
    return evidence()
