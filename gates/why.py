"""Why: a verdict in one sentence that a signatory understands, with value, limit, margin, and what would change it.

The sentence is made from the check that decides: of a pass the one nearest to its limit, of anything else the first that is not a pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from gates.declarations import UNPROVEN, is_share
from gates.model import Because, CheckResult, Severity, Verdict
from gates.rules.estimates import percent
from gates.text import Text, amid

_BECAUSE = {
    Because.GUARD: Text(
        "the estimate meets the limit and its uncertainty does not; run pairs that clear the limit with it would make it a pass",
        "估计值达标，但计入不确定度后未达标；若更多轮次对连同不确定度均达标，则为通过",
    ),
    Because.ABOVE_BAND: Text(
        "the gain lies above the band with every audit clean; inside the band it would be a pass",
        "提升高于约定区间且各项审计无异常；落在区间内则为通过",
    ),
    Because.FRAGILE: Text(
        "one baseline run alone would flip it; baseline runs that agree more closely would make it a pass",
        "仅凭一轮基线即可改变结论；基线各轮更加一致则为通过",
    ),
}
_UNSAID = Text("a new attempt that answers it would change it", "新的尝试予以回答方可改变")  # every check of a gate says more (CheckResult.change)
_SENTENCES = {
    Verdict.PASS: Text("{g} passed: all {n} blocking checks are met; {tail}{beside}.", "{g}通过：{n} 个否决项全部达标；{tail}{beside}。"),
    Verdict.FAIL: Text("{g} failed: {what}; {tail}{more}.", "{g}不通过：{what}；{tail}{more}。"),
    Verdict.CONDITIONAL: Text(
        "{g} passed on conditions, and goes on only with the approval of both parties: {what}; {tail}{more}{beside}.",
        "{g}有条件通过，须经双方确认方可继续：{what}；{tail}{more}{beside}。",
    ),
    Verdict.INCONCLUSIVE: Text("{g} is inconclusive, nothing was proven: {what}; {tail}{more}.", "{g}无法判定，未能证明：{what}；{tail}{more}。"),
    Verdict.INVALID: Text(
        "{g} is invalid, nothing is said about the product: {what}; {tail}{more}.", "{g}无效，对产品不作结论：{what}；{tail}{more}。"
    ),
}

_BESIDE = Text("; of the advisory checks, which decide nothing, {k} of {n} did not hold", "；{n} 个参考项中有 {k} 个未达标，不影响判定")


def why(title: Text, verdict: Verdict, checks: Sequence[CheckResult], way_on: Mapping[str, Any] | None = None) -> Text:
    """Return the verdict of a gate in one sentence in each language. `way_on` is what an extension did or could do (GateSpec.way_on)."""
    blocking = [c for c in checks if c.severity is Severity.BLOCKING]
    if verdict is Verdict.PASS:
        return _SENTENCES[verdict].fill(g=title, n=len(blocking), tail=_nearest(blocking), beside=_beside(checks))
    deciding = [c for c in blocking if c.verdict is verdict]
    if not deciding:
        return _SENTENCES[verdict].fill(
            g=title, what=Text("no check decides", "没有起决定作用的检查项"), tail=_UNSAID, more="", beside=_beside(checks)
        )
    first = _telling(deciding)
    rest = len(deciding) - 1
    more = Text(f" ({rest} more)", f"（另有 {rest} 项）") if rest else Text("", "")
    what = Text(f"{first.title.en}: {_clause(first.reason.en)}", f"{first.title.zh}：{_clause(first.reason.zh)}")
    return _SENTENCES[verdict].fill(g=title, what=what, tail=_change(verdict, first, way_on), more=more, beside=_beside(checks))


def figure(value: Decimal, unit: str, quantity: str, *against: Decimal) -> str:
    """Return a value as people read it: what is declared as a share in percent, counts and factors plainly, everything else with its unit."""
    if not is_share(quantity, unit):
        return _short(value, *against) if unit == "1" else f"{_short(value)} {unit}"
    try:
        return percent(value, *against)
    except ArithmeticError:  # more digits than anybody reads
        return f"{value * 100:.3e} %"


def _telling(deciding: Sequence[CheckResult]) -> CheckResult:
    """Return the check that says most. What was not answered is told by the first: the attempt, completeness and validity come before all else."""
    if deciding[0].verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID):
        return deciding[0]
    return next((c for c in deciding if c.value is not None), deciding[0])


def _nearest(checks: Sequence[CheckResult]) -> Text:
    """Return what was nearest to its limit, and what would make it a fail."""
    measured = [(_distance(c), c) for c in checks]
    ranked = sorted(((d, n) for n, (d, _) in enumerate(measured) if d is not None), key=lambda pair: pair[0])
    if not ranked:
        return Text("one that is missed would make it a fail", "任一项不达标即为不通过")
    found = measured[ranked[0][1]][1]
    value, limit, margin = _numbers(found)
    beyond = _beyond(found)
    return Text(
        "nearest to its limit is {t} with {v} (limit {l}, margin {m}); {b} would make it a fail",
        "最接近限值的是{t}：{v}（限值 {l}，余量 {m}）；{b} 即为不通过",
    ).fill(t=Text(found.title.en, amid(found.title.zh).rstrip()), v=value, l=limit, m=margin, b=beyond)


def _change(verdict: Verdict, check: CheckResult, way_on: Mapping[str, Any] | None) -> Text:
    """Return what would change a verdict that is no pass."""
    if verdict is Verdict.CONDITIONAL and check.because is not None:
        told = _BECAUSE[check.because]
        value, limit, margin = _numbers(check)
        return (
            told
            if not value
            else Text(f"{told.en} (value {value}, limit {limit}, margin {margin.en})", f"{told.zh}（实测 {value}，限值 {limit}，余量 {margin.zh}）")
        )
    if verdict is Verdict.FAIL:
        value, limit, margin = _numbers(check)
        if value:
            return Text(
                f"value {value}, limit {limit}, margin {margin.en}: only a new attempt that meets the limit would change it",
                f"实测 {value}，限值 {limit}，余量 {margin.zh}：仅当新的尝试达到限值方可改变",
            )
        return Text("only a new attempt that meets it would change it", "仅当新的尝试达标方可改变")
    if verdict is Verdict.INCONCLUSIVE and way_on and way_on.get("reason"):
        told, change = Text.parse(way_on["reason"]), check.change
        if change is None or change.en in told.en:
            return Text(_clause(told.en), _clause(told.zh))
        return Text(f"{_clause(change.en)}; {_clause(told.en)}", f"{_clause(change.zh)}；{_clause(told.zh)}")
    change = check.change or _UNSAID
    return Text(_clause(change.en), _clause(change.zh))


def _beside(checks: Sequence[CheckResult]) -> Text:
    """Return how many advisory checks did not hold, as a last clause; nothing where all held: a pass must not hide them."""
    advisory = [c for c in checks if c.severity is Severity.ADVISORY]
    missed = sum(c.verdict is Verdict.FAIL for c in advisory)
    return _BESIDE.fill(k=missed, n=len(advisory)) if missed else Text("", "")


def _distance(check: CheckResult) -> Decimal | None:
    """Return the margin as a share of the limit, or None where there is none to speak of (counts that must be zero, sets, what cannot fail)."""
    edges = [e for e in (check.limit.low, check.limit.high) if isinstance(e, Decimal) and e != 0]
    if check.margin is None or not isinstance(check.value, Decimal) or not edges or check.quantity in UNPROVEN:
        return None
    return abs(check.margin) / min(abs(e) for e in edges)


def _numbers(check: CheckResult) -> tuple[str, str, Text]:
    """Return value, limit and margin as people read them; empty where the check measured nothing."""
    limit = check.limit
    edges = [e for e in (limit.low, limit.high) if isinstance(e, Decimal)]
    if not isinstance(check.value, Decimal) or not edges:
        return "", "", Text("", "")
    shown = {"<=": "≤ {h}", ">=": "≥ {l}", "==": "= {h}", "band": "{l} … {h}"}.get(limit.op, "{l}{h}")
    low = figure(limit.low, check.unit, check.quantity, *edges) if isinstance(limit.low, Decimal) else ""
    high = figure(limit.high, check.unit, check.quantity, *edges) if isinstance(limit.high, Decimal) else ""
    return figure(check.value, check.unit, check.quantity, *edges), shown.format(l=low, h=high), _margin(check)


def _margin(check: CheckResult) -> Text:
    """Return the distance to the limit with its sign: of a share in percentage points, as the report's table has it."""
    if check.margin is None:
        return Text("-", "-")
    text = ("+" if check.margin.is_finite() and check.margin > 0 else "") + figure(check.margin, check.unit, check.quantity, Decimal(0))
    if not is_share(check.quantity, check.unit):
        return Text(text, text)
    number = text.removesuffix(" %")
    return Text(f"{number} pp", f"{number} 个百分点")


def _beyond(check: CheckResult) -> Text:
    limit, unit, quantity = check.limit, check.unit, check.quantity
    low = figure(limit.low, unit, quantity, limit.low) if isinstance(limit.low, Decimal) else ""
    high = figure(limit.high, unit, quantity, limit.high) if isinstance(limit.high, Decimal) else ""
    if limit.op == "<=":
        return Text(f"more than {high}", f"超过 {high}")
    if limit.op == ">=":
        return Text(f"less than {low}", f"低于 {low}")
    return Text(f"less than {low}", f"低于 {low}") if limit.op == "band" else Text("any other value", "任何其他数值")


def _short(value: Decimal, *against: Decimal) -> str:
    """Return a number with three decimals, or with all of its own where they would put it on the wrong side of what it is held against."""
    shown = value.quantize(Decimal("0.001"), ROUND_HALF_EVEN) if value == value and abs(value) < Decimal(10) ** 12 else value
    if value == value and any((shown > a) - (shown < a) != (value > a) - (value < a) for a in against):
        shown = value
    text = format(shown, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _clause(text: str) -> str:
    """Return a sentence, or several, as a part of another: without its last stop, and with semicolons between."""
    return text.strip().rstrip(".。；;").replace(". ", "; ").replace("。", "；")
