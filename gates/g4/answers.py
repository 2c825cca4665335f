"""How a check of the soak is declared and answered: in one place, so that validity always comes first."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from gates.declared import Declared
from gates.g4.declared import CHECKS
from gates.g4.series import Soak
from gates.model import CheckResult, Verdict
from gates.rules.standing import Standing, refused
from gates.text import Text


def declared_as(ident: str) -> Declared:
    """Return the declaration of a check of the soak by its name without the gate."""
    return next(d for d in CHECKS if d.id == f"g4.{ident}" or ("{" in d.id and f"g4.{ident}".startswith(d.id.partition("{")[0])))


def check(soak: Soak, ident: str, files: tuple[str, ...], *, name: str | Text = "") -> CheckResult:
    """Return the declared check of the soak that is not answered yet; `name` fills the title of a counter, an injection or a window."""
    return replace(declared_as(ident).blank(soak.plan, evidence=files, name=name), id=f"g4.{ident}", quantity=ident)


def answer(blank: CheckResult, standing: Standing, *, met: bool, value: Decimal | None, reason: Text, margin: Decimal | None = None) -> CheckResult:
    """Return a check with its answer, unless validity forbids one."""
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    return replace(blank, verdict=Verdict.PASS if met else Verdict.FAIL, reason=reason, value=value, margin=margin)


def untold(
    blank: CheckResult, standing: Standing, *, reason: Text, change: Text, value: Decimal | None = None, margin: Decimal | None = None
) -> CheckResult:
    """Return a check that cannot be answered: inconclusive, with what would answer it, unless validity already says why."""
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    return replace(blank, verdict=Verdict.INCONCLUSIVE, reason=reason, change=change, value=value, margin=margin)
