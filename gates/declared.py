"""What a check is, said once: the judge takes titles, limits and severity from here, and so do `quadgate gate show` and docs/checks.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gates.model import CheckResult, Limit, Severity, Verdict
from gates.quantities import quantity_name
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

DIRECTIONS = ("higher", "lower", "equal", "band", "set", "told")  # told: for information, no limit
_SOME = Text("NAME", "名称")
_OPEN = Text("Not judged.", "未判定。")

NONE_BAD = Text("none may breach; anything unknown is inconclusive", "不得有任何违反；有未知则无法判定")
EXACT = Text("exact comparison, ends included", "精确比较，含端点")
_NOT_TOLD = Text("Nothing that this attempt brought tells it; for information only.", "本次尝试的证据未给出此项；仅供参考的项目。")
INFORMS = Text("for information", "仅供参考")


@dataclass(frozen=True)
class Declared:
    """One check of a gate. `id` and `title` may hold placeholders in braces, e.g. {tier}, which `blank` fills."""

    id: str
    title: Text
    direction: str  # one of DIRECTIONS: which way is good
    evidence: tuple[str, ...]  # "step: what", as the packs name it
    source: str  # the plan's field, or the section that asks for it
    quantity: str = ""
    unit: str = "1"
    rule: Text = NONE_BAD
    limit: Callable[[Plan], Limit] = lambda _: Limit("none")
    severity: Severity | Callable[[Plan, int], Severity] = Severity.BLOCKING
    arm: str | None = None
    over_tiers: bool = False
    shown_as: Text = _SOME  # what tables put for the placeholder {name}
    at_large: Text | None = None  # the title where no single name is meant, of a title that holds {name}
    share: bool = False  # of a quantity without a unit: a part of something, which people read in percent; all others are counts, names or factors
    unproven: bool = False  # short of its limit nothing is proven: inconclusive, never a fail
    group: str = ""  # of the plan's evidence.required: judged as declared when it is named there, else as information or not at all

    def blank(self, plan: Plan, *, tier: int | None = None, host: str | None = None, evidence: tuple[str, ...] = (), **words: Any) -> CheckResult:
        """Return the check with no answer yet (inconclusive), for one tier, host or name."""
        texts = {"tier": tier, **{k: v.en if isinstance(v, Text) else v for k, v in words.items()}}
        ident = self.id.format(**texts)
        return CheckResult(
            id=ident,
            title=self.title.fill(tier=tier, **words) if "{" in self.title.en else self.title,
            verdict=Verdict.INCONCLUSIVE,
            reason=_OPEN,
            severity=self.weight(plan, tier),
            quantity=self.quantity.format(**texts),
            unit=self.unit,
            limit=self.limit(plan),
            arm=self.arm,
            tier=tier,
            host=host,
            source=self.source,
            evidence=evidence,
        )

    def weight(self, plan: Plan, tier: int | None = None) -> Severity:
        """Return whether the check decides under this plan (at this tier): a group that the plan does not require only informs."""
        if self.group and not plan.requires(self.group):
            return Severity.ADVISORY
        return self.severity if isinstance(self.severity, Severity) else self.severity(plan, tier or 0)

    def tiers(self, plan: Plan) -> tuple[int | None, ...]:
        """Return the tiers that it is asked at; (None,) for a check of the whole gate."""
        return tuple(plan.workload.tiers) if self.over_tiers else (None,)

    def quantity_named(self) -> Text:
        """Return the quantity as people read it, for no single name."""
        return quantity_name(self.quantity, name=self.shown_as)

    def left_out(self, plan: Plan) -> dict[str, Any]:
        """Return the entry of a check that the plan does not ask for: its group is not required and its evidence was not brought."""
        reason = Text("The plan does not require this evidence ({g}), and none was brought.", "计划未要求此项证据（{g}），且未提供。")
        return {"check": self.id, "title": self.heading(plan).json(), "reason": reason.fill(g=self.group).json()}

    def not_told(self, plan: Plan) -> dict[str, Any]:
        """Return the entry of an advisory check that nothing in this attempt tells."""
        return {"check": self.id, "title": self.heading(plan).json(), "reason": _NOT_TOLD.json()}

    def heading(self, plan: Plan) -> Text:
        """Return the title of the check as a whole, as people read it: over all its tiers, and for no single name."""
        if self.at_large is not None:
            return self.at_large
        return self.title.fill(tier="/".join(str(tier) for tier in plan.workload.tiers), name=self.shown_as)


def by_agreement(declared: Declared, plan: Plan, result: CheckResult, *, brought: bool) -> CheckResult | dict[str, Any]:
    """Return the result where its evidence is required or was brought all the same (then for information), else the entry under not tested."""
    if plan.requires(declared.group):
        return result
    return replace(result, severity=Severity.ADVISORY) if brought else declared.left_out(plan)


def at_most(value: Callable[[Plan], Any]) -> Callable[[Plan], Limit]:
    """Return an upper limit that the plan gives."""
    return lambda plan: Limit("<=", high=value(plan))


def at_least(value: Callable[[Plan], Any]) -> Callable[[Plan], Limit]:
    """Return a lower limit that the plan gives."""
    return lambda plan: Limit(">=", low=value(plan))


def exactly(value: Callable[[Plan], Any]) -> Callable[[Plan], Limit]:
    """Return the only allowed value."""
    return lambda plan: Limit("==", low=value(plan), high=value(plan))
