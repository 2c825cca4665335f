"""Are the drives new and healthy? The SMART log by two tools, which must agree, against the plan's limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.g1.declared import AGREEMENT, HEALTH, OWN_VERDICT
from gates.g1.inventory import Inventory, Item
from gates.g1.order import Packed
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, State, bad, conclude, doubtful, good, unknown
from gates.text import Text, joined

if TYPE_CHECKING:
    from gates.plan import Plan

TOOLS = ("nvme-smart-log", "smartctl")
# How far two readings of one drive, seconds apart, may differ for physical reasons. A kelvin read as a degree differs by 273.
APART = {"health.temperature": Decimal(10), "health.power_on_hours": Decimal(1)}
SAME = ("health.critical_warning", "health.media_errors", "health.percentage_used", "health.available_spare")
# What the readers' quantities are called in a sentence.
NAMES = {
    "health.critical_warning": Text("critical warning", "严重告警"),
    "health.media_errors": Text("number of media errors", "介质错误数"),
    "health.power_on_hours": Text("power-on time", "通电时间"),
    "health.percentage_used": Text("endurance used", "寿命已用比例"),
    "health.available_spare": Text("available spare", "可用备用空间"),
    "health.temperature": Text("temperature", "温度"),
    "drive.serial": Text("serial number", "序列号"),
    "drive.firmware": Text("firmware", "固件"),
}


@dataclass(frozen=True)
class Rule:
    """One limit of the plan on one health figure, in the unit that the tools report: hours, percent, counts."""

    key: str
    blank: CheckResult
    op: str
    limit: Decimal

    @property
    def quantity(self) -> str:
        """Return what the readers call the figure."""
        return f"health.{self.key}"

    @property
    def unit(self) -> str:
        """Return the unit of figure and limit."""
        return self.blank.unit


def rules_of(plan: Plan) -> tuple[Rule, ...]:
    """Return the plan's limits on the health of a drive."""
    rules = []
    for declared in HEALTH:
        limit = declared.limit(plan)
        bound = limit.high if limit.op == "<=" else limit.low
        rules.append(Rule(declared.quantity, declared.blank(plan), limit.op, Decimal(str(bound))))
    return tuple(rules)


def health_checks(plan: Plan, packed: tuple[Packed, ...], inventory: Inventory, packs: dict[str, HostPack]) -> Iterator[CheckResult]:
    """Return one check for each limit over all delivered drives, and one for the agreement of the two tools."""
    for rule in rules_of(plan):
        findings = [_limit_finding(rule, item, inventory, packs) for item in packed]
        values = [f.value for f in findings if f.value is not None]
        worst = (max(values) if rule.op == "<=" else min(values)) if values else None
        yield conclude(
            rule.blank,
            findings,
            passed=Text("Every drive keeps the limit by both tools ({n} in all).", "两种工具读数均显示全部 {n} 块硬盘符合限值。"),
            value=worst,
            margin=None if worst is None else (rule.limit - worst if rule.op == "<=" else worst - rule.limit),
        )
    yield conclude(
        AGREEMENT.blank(plan),
        [_agreement(item, inventory, packs) for item in packed],
        passed=Text("nvme-cli and smartctl agree on all {n} drives.", "nvme-cli 与 smartctl 对全部 {n} 块硬盘的读数一致。"),
    )
    verdicts = [_own_verdict(item, inventory, packs) for item in packed]
    unsound = Decimal(sum(f.state is State.BAD for f in verdicts))
    yield conclude(
        OWN_VERDICT.blank(plan),
        verdicts,
        passed=Text("No drive calls itself unsound ({n} in all).", "全部 {n} 块硬盘自身健康结论均无异常。"),
        value=unsound,
        margin=-unsound,
    )


def _answers(item: Packed, inventory: Inventory, packs: dict[str, HostPack]) -> tuple[Item, list[Answer]] | Finding:
    """Return the part and both tools' answers, or why there are none."""
    seen = inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=item.serial)
    answers = [packs[seen.host].answer(f"{tool}.{seen.name}") for tool in TOOLS]
    for answer in answers:
        if answer.problems:
            return doubtful(item.serial, answer.problems, answer.path)
    return seen, answers


# What smartctl(8) says of a drive in bits 3, 4, 5 and 7 of its exit status. Bit 6, an error log with entries, is judged by what the log says.
_UNSOUND = (
    (0, Text("it is failing", "即将失效")),
    (1, Text("an attribute is below its threshold", "有属性低于阈值")),
    (2, Text("an attribute was below its threshold", "曾有属性低于阈值")),
    (4, Text("a self-test failed", "自检失败")),
)


def _own_verdict(item: Packed, inventory: Inventory, packs: dict[str, HostPack]) -> Finding:
    """Hold a drive by its own word, as smartctl passes it on: the overall health, and the bits of the exit status that speak of the drive."""
    found = _answers(item, inventory, packs)
    if isinstance(found, Finding):
        return found
    answer = found[1][TOOLS.index("smartctl")]
    passed, bits = answer.one("health.passed"), answer.one("health.exit_verdict")
    if passed is None or bits is None:
        return unknown("{s}: smartctl does not tell its verdict", "{s}：smartctl 未给出健康结论", answer.path, s=item.serial)
    said = [text for bit, text in _UNSOUND if int(bits.value) >> bit & 1]
    said += [Text("the overall health is FAILED", "整体健康结论为 FAILED")] if passed.value != 1 else []
    if said:
        return bad("{s}: smartctl says that {w}", "{s}：smartctl 报告{w}", answer.path, s=item.serial, w=joined(said))
    return good("{s}: sound", "{s}：正常", answer.path, s=item.serial)


def _limit_finding(rule: Rule, item: Packed, inventory: Inventory, packs: dict[str, HostPack]) -> Finding:
    found = _answers(item, inventory, packs)
    if isinstance(found, Finding):
        return found
    paths = [answer.path for answer in found[1]]
    values = [o.value for answer in found[1] if (o := answer.one(rule.quantity)) and isinstance(o.value, Decimal) and o.unit == rule.unit]
    if len(values) != len(TOOLS):
        return unknown("{s}: {key} is not reported by both tools", "{s}：{key}未被两种工具同时报告", *paths, s=item.serial, key=NAMES[rule.quantity])
    worst = max(values) if rule.op == "<=" else min(values)
    words: dict[str, Any] = {
        "s": item.serial,
        "key": NAMES[rule.quantity],
        "v": f"{worst:f}",
        "unit": "" if rule.unit == "1" else f" {rule.unit}",
        "op": rule.op,
        "limit": f"{rule.limit:f}",
    }
    met = worst <= rule.limit if rule.op == "<=" else worst >= rule.limit
    if met:
        return good("{s}: {v}{unit}", "{s}：{v}{unit}", *paths, value=worst, **words)
    return bad("{s}: {key} is {v}{unit}, limit {op} {limit}{unit}", "{s}：{key}为 {v}{unit}，限值 {op} {limit}{unit}", *paths, value=worst, **words)


def _agreement(item: Packed, inventory: Inventory, packs: dict[str, HostPack]) -> Finding:
    found = _answers(item, inventory, packs)
    if isinstance(found, Finding):
        return found
    seen, (first, second) = found
    paths = (first.path, second.path)
    identity = packs[seen.host].answer(f"nvme-id-ctrl.{seen.name}")
    if identity.problems:
        return doubtful(item.serial, identity.problems, identity.path)
    for answer in (identity, second):
        for quantity, mine in (("drive.serial", item.serial), ("drive.firmware", seen.firmware)):
            told = answer.one(quantity)
            if told is None or told.value != mine:
                shown = told.value if told else "-"
                words = "{s}: {name} reports {what} {v}, nvme list {mine}", "{s}：{name} 报告的{what}为 {v}，nvme list 为 {mine}"
                return bad(*words, answer.path, s=item.serial, name=answer.name, what=NAMES[quantity], v=shown, mine=mine)
    for quantity in (*SAME, *APART):
        one, two = first.one(quantity), second.one(quantity)
        if one is None or two is None or not isinstance(one.value, Decimal) or not isinstance(two.value, Decimal) or one.unit != two.unit:
            words = "{s}: {what} is not told by both tools in one unit", "{s}：两种工具未以同一单位报告{what}"
            return unknown(*words, *paths, s=item.serial, what=NAMES[quantity])
        if abs(one.value - two.value) > APART.get(quantity, Decimal(0)):
            words = "{s}: the tools disagree on {what} ({a} and {b})", "{s}：两种工具的{what}不一致（{a} 与 {b}）"
            return unknown(*words, *paths, s=item.serial, what=NAMES[quantity], a=f"{one.value:f}", b=f"{two.value:f}")
    return good("{s} agrees", "{s} 一致", *paths, s=item.serial)
