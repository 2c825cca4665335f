"""How a check of the soak is declared and answered: in one place, so that validity always comes first."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from gates.g4.declared import CHECKS
from gates.g4.series import Soak
from gates.model import CheckResult, Verdict
from gates.rules.standing import Standing, refused
from gates.text import Text


def check(soak: Soak, ident: str, files: tuple[str, ...], *, name: str | Text = "") -> CheckResult:
    """Return the declared check of the soak that is not answered yet; `name` fills the title of a counter, an injection or a window."""
    declared = next(d for d in CHECKS if d.id == f"g4.{ident}" or ("{" in d.id and f"g4.{ident}".startswith(d.id.partition("{")[0])))
    return replace(declared.blank(soak.plan, evidence=files, name=name), id=f"g4.{ident}", quantity=ident)


def answer(
    blank: CheckResult,
    standing: Standing,
    *,
    met: bool | None,
    value: Decimal | None,
    reason: Text,
    margin: Decimal | None = None,
    change: Text | None = None,
) -> CheckResult:
    """Return a check with its answer, unless validity forbids one. `met` None: it cannot be known, and `change` says what would tell."""
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    verdict = Verdict.INCONCLUSIVE if met is None else Verdict.PASS if met else Verdict.FAIL
    return replace(blank, verdict=verdict, reason=reason, value=value, margin=margin, change=change if met is None else None)
