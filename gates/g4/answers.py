"""How a check of the soak is declared and answered: in one place, so that validity always comes first."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from gates.model import CheckResult, Limit, Severity, Verdict
from gates.rules.standing import Standing, refused
from gates.text import Text


def check(
    ident: str, title: Text, limit: Limit, source: str, files: tuple[str, ...], unit: str = "1", severity: Severity = Severity.BLOCKING
) -> CheckResult:
    """Return a check of the soak that is not answered yet."""
    blank = Text("Not judged.", "未判定。")
    quantity = ident.partition(".")[0]
    return CheckResult(
        f"g4.{ident}",
        title,
        Verdict.INCONCLUSIVE,
        blank,
        severity=severity,
        quantity=quantity,
        unit=unit,
        limit=limit,
        arm="candidate",
        source=source,
        evidence=files,
    )


def answer(
    blank: CheckResult, standing: Standing, *, met: bool | None, value: Decimal | None, reason: Text, margin: Decimal | None = None
) -> CheckResult:
    """Return a check with its answer, unless validity forbids one. `met` None: it cannot be known."""
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    verdict = Verdict.INCONCLUSIVE if met is None else Verdict.PASS if met else Verdict.FAIL
    return replace(blank, verdict=verdict, reason=reason, value=value, margin=margin)
