"""The unpacking inspection (开箱检验): its form, as data, and what is judged from the answers of two named people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gates.g1.declared import PHOTOS, RECEIVERS, UNPACKING
from gates.g1.order import Order, same_model
from gates.model import CheckResult, Observation, Reading
from gates.readers.common import available
from gates.readers.registry import read
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text, seen

if TYPE_CHECKING:
    from gates.bundle import Bundle
    from gates.plan import Plan

ROOT = "evidence/unpacking/site/"
FORM = ROOT + "form.json"
PARTIES = ("vendor", "customer")
# field -> its label, and answer -> (label, whether it is free of blocking damage). The first answer of each is the good one.
CHOICES: dict[str, tuple[Text, dict[str, tuple[Text, bool]]]] = {
    "packaging": (
        Text("Packaging", "外包装"),
        {"intact": (Text("intact", "完好"), True), "minor": (Text("minor marks", "轻微磨损"), True), "damaged": (Text("damaged", "破损"), False)},
    ),
    "shock_tag": (
        Text("Shock and tilt tags", "防震、防倾标签"),
        {
            "untripped": (Text("not tripped", "未触发"), True),
            "none": (Text("none fitted", "未配置"), True),
            "tripped": (Text("tripped", "已触发"), False),
        },
    ),
    "appearance": (
        Text("Appearance of the items", "设备外观"),
        {"intact": (Text("intact", "完好"), True), "minor": (Text("minor marks", "轻微划痕"), True), "damaged": (Text("damaged", "损坏"), False)},
    ),
    "accessories": (
        Text("Accessories and documents", "附件与随机文件"),
        {"complete": (Text("complete", "齐全"), True), "incomplete": (Text("incomplete", "缺失"), False)},
    ),
}


_FORM = Text("the unpacking form filled in and signed would change it (form.json)", "填写并签字的开箱检验表（form.json）方可改变")
_PHOTO = Text("photos of the unpacking would change it", "补充开箱照片方可改变")


def form_params(plan: Plan) -> dict[str, Any]:
    """Return the form as data: the pages render it, whatever it holds, and the first choice of each field is the good state."""
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": "choice",
            "label": label.json(),
            "choices": [{"value": value, "label": text.json(), "good": fine} for value, (text, fine) in answers.items()],
            "required": True,
        }
        for name, (label, answers) in CHOICES.items()
    ]
    fields.append(
        {
            "name": "serials_match",
            "type": "bool",
            "label": Text(
                "Serial labels, and the numbers of items without one, match the packing list", "序列号标签及无序列号物品的数量与装箱单一致"
            ).json(),
            "required": True,
        }
    )
    damaged = Text(
        "Items with damage or something missing (serial numbers, or the model where there is none; empty: no such item)",
        "有损坏或缺失的物品（填序列号，无序列号的填型号；没有则留空）",
    )
    fields.append({"name": "exceptions", "type": "text", "label": damaged.json(), "required": False})
    fields.append({"name": "notes", "type": "text", "label": Text("Notes", "备注").json(), "required": False})
    labels = {"vendor": Text("Received: vendor", "签收人（供方）"), "customer": Text("Received: customer", "签收人（需方）")}
    for party in receivers(plan):
        label = labels.get(party) or Text("Received: person {n}", "签收人 {n}").fill(n=party)
        fields.append(
            {"name": f"receiver_{party}", "type": "person", "label": label.json(), "required": True, "party": party if party in PARTIES else None}
        )
    return {"form": fields, "photos_min": 1}


def receivers(plan: Plan) -> tuple[str, ...]:
    """Return who must sign for receipt: one of each party from two on, then numbered persons; one alone is the customer's."""
    count = plan.g1.receivers_min
    return ("customer",) if count == 1 else (*PARTIES, *(str(n) for n in range(3, count + 1)))


def people_checks(plan: Plan, bundle: Bundle, order: Order) -> Iterator[CheckResult]:
    """Judge the form: complete, no blocking damage, enough distinct receivers, photos (advisory)."""
    reading = read("unpacking", bundle.bytes(FORM)) if bundle.has(FORM) else None
    if reading is not None:
        bundle.read_as[FORM] = ("unpacking", reading)
    photos = [path for path in bundle.under(ROOT) if path != FORM]
    yield conclude(
        UNPACKING.blank(plan),
        _condition(reading, order),
        passed=Text("The form is complete and names no blocking damage.", "检验表填写完整，无影响验收的损坏。"),
    )
    names = _receivers(reading)
    yield conclude(
        RECEIVERS.blank(plan),
        _receiver_findings(plan, reading, names),
        passed=Text("Received by {names}.", "签收人：{names}。"),
        words={"names": ", ".join(names.values())},
        value=str(len({_person(n) for n in names.values()})),
    )
    shots = [good("{p}", "{p}", path, p=path.removeprefix(ROOT)) for path in photos] or [
        unknown("no photo was attached", "未附照片", FORM, remedy=_PHOTO)
    ]
    yield conclude(PHOTOS.blank(plan), shots, passed=Text("Photos attached: {n}.", "已附 {n} 张照片。"), value=str(len(photos)))


def _condition(reading: Reading | None, order: Order) -> Iterator[Finding]:
    if reading is None:
        yield unknown("the form was not filled in", "未填写检验表", remedy=_FORM)
        return
    if reading.problems:
        yield doubtful("form.json", reading.problems, FORM)
    for name, (label, answers) in CHOICES.items():
        told = [o for o in reading.observations if o.quantity == f"unpacking.{name}"]
        if not told:
            yield unknown("{what} was not answered", "未填写{what}", FORM, what=label)
        for o in told:
            yield _answered(o, label, answers)
    yield from _exceptions(reading, order)
    match = [o.value for o in reading.observations if o.quantity == "unpacking.serials_match"]
    if not match:
        yield unknown("whether serial labels and numbers match was not answered", "未填写序列号标签与数量是否一致", FORM)
    elif match != ["yes"]:
        yield bad("serial labels or numbers of items do not match the packing list", "序列号标签或物品数量与装箱单不一致", FORM)
    else:
        yield good("labels match", "标签一致", FORM)


def _answered(o: Observation, label: Text, answers: dict[str, tuple[Text, bool]]) -> Finding:
    answer = answers.get(str(o.value))
    if answer is None:
        return unknown("{what}: the answer {v} is not one of the form's", "{what}：答案 {v} 不在选项中", FORM, what=label, v=str(o.value)[:60])
    text, fine = answer
    return (good if fine else bad)("{what}: {v}", "{what}：{v}", FORM, what=label, v=text)


def _exceptions(reading: Reading, order: Order) -> Iterator[Finding]:
    """Turn the serial numbers that the inspectors named into breaches; words that name no delivered item cannot be judged."""
    told = " ".join(str(o.value) for o in reading.observations if o.quantity == "unpacking.exceptions" and available(str(o.value)))
    tokens = re.split(r"[\s,;，；、]+", told.casefold())
    named = [item for item in order.packed if (item.serial.casefold() in tokens if item.serial else same_model(item.model, told))]
    for item in named:
        yield bad("{what} arrived damaged or incomplete", "{what}到货时有损坏或缺失", FORM, what=item.name)
    if told and not named:
        words = "the field of damaged items names nothing that was delivered: {told}", "损坏物品栏未列出任何到货物品：{told}"
        yield unknown(*words, FORM, told=told[:80])


def _receivers(reading: Reading | None) -> dict[str, str]:
    rows = [o for o in (reading.observations if reading else ()) if o.quantity == "unpacking.receiver"]
    return {o.labels["party"]: str(o.value) for o in rows if available(str(o.value)) and seen(str(o.value))}


def _receiver_findings(plan: Plan, reading: Reading | None, names: dict[str, str]) -> Iterator[Finding]:
    if reading is None:
        yield unknown("the form was not filled in", "未填写检验表", remedy=_FORM)
        return
    known: dict[str, str] = {}
    for party in receivers(plan):
        name = names.get(party)
        if name is None:
            yield unknown("no receiver is named for {party}", "未填写 {party} 的签收人", FORM, party=party)
        elif (before := known.setdefault(_person(name), party)) != party:
            yield bad("{name} is named for {a} and for {b}", "{name} 同时为 {a} 与 {b} 签收", FORM, name=name, a=before, b=party)
        else:
            yield good("{name}", "{name}", FORM, name=name)


def _person(name: str) -> str:
    """Return what tells one person from another: what of the name can be seen, in whatever case."""
    return seen(name).casefold()
