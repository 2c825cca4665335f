"""Read an engagement file (YAML) into checked parts. All that is wrong is said at once, each sentence naming its field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.engagements.drivers import check_drivers, check_shares
from app.engagements.engine_keys import check_engine_keys
from app.engagements.hardware_shape import check_packages
from app.engagements.network import check_pairs, check_switches, check_with_plan
from app.engagements.placeholders import refuse_placeholders
from app.engagements.shape import FILE, PACKING_LIST
from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_
from app.targets.literal import RESERVED
from gates.canonical import plain
from gates.g1.order import ordered_of
from gates.plan import InvalidPlan, Plan, load_yaml, parse_plan
from gates.schema import BAD, Problems, join
from gates.schema import FieldProblem as SchemaProblem
from gates.text import Text

STAND_INS = ("lab", "vllm_cpu")  # engines where no hardware is; neither runs the product's software
ONLY_SSH = ("address", "port", "user", "credential", "password", "host_key")
LARGEST = 1 << 20  # characters
_SECRET = re.compile(
    r"(^|_)(password|passwd|passphrase|pass|pwd|secret|secrets|token|bearer|apikey|api_key|access_key|private_key|secret_key)(_value)?$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"(^|_)(per_token|per_pass)$", re.IGNORECASE)  # a rate, not a key to anything
_REFERENCES = re.compile(r"targets\.hosts\.[^.\[]+\.(become_)?password(\.(file|env))?")
_KEY_TEXT = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]+:[^/\s@]+@")


@dataclass(frozen=True)
class EngagementFile:
    """A checked engagement file, as plain data, and the plan that follows from it."""

    code: str
    customer: str
    vendor: str
    site: str
    contract: str
    people: dict[str, Any]
    order: dict[str, Any]
    packing_list: list[Any]
    targets: dict[str, Any]
    plan: Plan


def read_file(text: str) -> EngagementFile:
    """Return the checked parts. Raises BadInput with one sentence for each problem."""
    read, plan, found = _checked(_document(text))
    if found or plan is None or read is BAD:
        raise bad_file(found)
    data = plain(read)
    head = data["engagement"]
    return EngagementFile(
        code=head["code"],
        customer=head["customer"],
        vendor=head["vendor"],
        site=head["site"],
        contract=head["contract"],
        people=head["people"],
        order=data["order"],
        packing_list=data["packing_list"],
        targets=data["targets"],
        plan=plan,
    )


def check_document(document: Any) -> Plan:
    """Return the plan of an engagement file that was loaded already. Raises InvalidPlan with all that creating the engagement would refuse."""
    read, plan, found = _checked(document)
    if found or plan is None or read is BAD:
        raise InvalidPlan(tuple(found))
    return plan


def _checked(document: Any) -> tuple[Any, Plan | None, list[SchemaProblem]]:
    """Return what was read (or BAD), the plan (or None), and every problem."""
    problems = Problems()
    _no_secrets(document, problems)
    _no_reserved_keys(document, problems)
    read = FILE.read(document, "", problems)
    if isinstance(document, Mapping):
        check_engine_keys(document.get("targets"), problems)  # beside the shape: what is wrong elsewhere must not hide it
        if read is not BAD:
            _check_together(plain(read), problems)
    plan = _plan(document.get("plan") if isinstance(document, Mapping) else None, problems)
    if plan and read is not BAD and plan.rig.simulated != read["targets"]["simulated"]:
        problems.add(
            "plan.rig.simulated", "differs from targets.simulated; both say the same of the target.", "与 targets.simulated 不一致；两处须相同。"
        )
    if plan and read is not BAD:
        check_with_plan(read["targets"], plan, problems)
        check_shares(read["targets"], plan, problems)
    refuse_placeholders(_walk(document, ""), problems)
    return read, plan, problems.found


def bad_file(found: list[SchemaProblem]) -> BadInput:
    """Return the error for a file with problems. A sentence about the whole file names no field."""
    found = [p if p.path else SchemaProblem("", Text(_unnamed(p.message.en), _unnamed(p.message.zh))) for p in found]
    first = found[0].message if found else Text("it is empty.", "内容为空。")
    return BadInput(
        "bad_engagement_file",
        N_("The engagement file cannot be used. Problems: {count}, the first: {first}"),
        [FieldProblem(pointer(p.path), p.message) for p in found],
        count=len(found),
        first=first,
    )


def pointer(path: str) -> str:
    """Return a dotted path as a JSON pointer: `a.b[0].c` is `/a/b/0/c`."""
    parts = re.sub(r"\[(\d+)\]", r".\1", path).split(".") if path else []
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def _document(text: str) -> Any:
    if len(text) > LARGEST:
        raise BadInput("file_too_large", N_("The engagement file has {size} characters; at most {most} are read."), size=len(text), most=LARGEST)
    try:
        document = load_yaml(text)
    except InvalidPlan as error:
        raise bad_file(list(error.problems)) from None
    return document


def _unnamed(sentence: str) -> str:
    """Drop the leading name that the plan's own reader puts before a sentence about a whole file."""
    return re.sub(r"^plan[:：]\s*", "", sentence)


def _walk(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield path, key and value of every entry of a tree."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield join(path, str(key)), str(key), item
            yield from _walk(item, join(path, str(key)))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield f"{path}[{i}]", "", item
            yield from _walk(item, f"{path}[{i}]")


def _no_secrets(document: Any, problems: Problems) -> None:
    """Refuse secrets in clear, without repeating them: the file is kept and shown as it was written."""
    for path, key, value in _walk(document, ""):
        if _REFERENCES.fullmatch(path):
            continue  # read, and refused where it is no reference, by the shape of a host
        named = _SECRET.search(key) and not _NO_SECRET.search(key)
        if named or (isinstance(value, str) and _KEY_TEXT.search(value)):
            problems.add(
                path,
                "a secret must not stand in this file; store it as a credential and name it under `credential`.",
                "此文件中不得出现明文秘密；请保存为凭据，并在 `credential` 中引用其名称。",
            )


def _no_reserved_keys(document: Any, problems: Problems) -> None:
    """Refuse keys that Ansible would take for a mark of its own in the data that playbooks get."""
    for path, key, _ in _walk(document, ""):
        if key.startswith(RESERVED):
            problems.add(
                path, f"keys that begin with {RESERVED} are Ansible's own; name it otherwise.", f"以 {RESERVED} 开头的键为 Ansible 保留；请改名。"
            )


def _plan(differences: Any, problems: Problems) -> Plan | None:
    """Read the plan's differences; its problems are named below `plan`."""
    try:
        return parse_plan(differences)
    except InvalidPlan as error:
        problems.found += [SchemaProblem(join("plan", p.path) if p.path else "plan", _below_plan(p)) for p in error.problems]
        return None


def _below_plan(problem: SchemaProblem) -> Text:
    prefix = "plan." if problem.path else ""
    return Text(prefix + problem.message.en, prefix + problem.message.zh)


def _check_together(data: dict[str, Any], problems: Problems) -> None:
    """Check what one field alone cannot tell."""
    targets, people = data["targets"], data["engagement"]["people"]
    _check_packing(data["packing_list"], targets["hosts"], problems)
    logins = [(f".{party}[{i}].login", p["login"].lower()) for party in people for i, p in enumerate(people[party])]
    _no_twice("engagement.people", logins, problems)
    for party in people:
        if not any("approver" in p["roles"] for p in people[party]):
            problems.add(
                f"engagement.people.{party}",
                "nobody has the role approver, so nothing could be agreed.",
                "无人具有 approver 角色，无法确认任何事项。",
            )
    order = data["order"]
    named = ordered_of(order["model"], ((line["model"], line["quantity"]) for line in order["lines"]))
    if named != order["quantity"]:
        problems.add(
            "order.quantity",
            f"says {order['quantity']} of {order['model']}, and the lines name {named}; both say the same of the order.",
            f"为 {order['model']} 共 {order['quantity']} 件，而各行合计 {named} 件；两处须相同。",
        )
    _check_hosts(targets, problems)


def _check_packing(packing_list: list[Any], hosts: Iterable[str], problems: Problems) -> None:
    """Refuse a serial number that stands twice, and a host that the engagement does not have."""
    _no_twice("packing_list", [(f"[{i}].serial", p["serial"]) for i, p in enumerate(packing_list) if "serial" in p], problems)
    for i, piece in enumerate(packing_list):
        if piece.get("host") not in (None, *hosts):
            known = ", ".join(hosts)
            problems.add(
                f"packing_list[{i}].host", f"{piece['host']} is not a host of targets: {known}.", f"{piece['host']} 不在 targets 的主机中：{known}。"
            )


def read_packing_list(value: Any, hosts: Iterable[str]) -> tuple[list[Any], list[SchemaProblem]]:
    """Return a packing list as an engagement file's is read, and every problem of it; `hosts` are those of the engagement."""
    problems = Problems()
    _no_secrets({"packing_list": value}, problems)
    read = PACKING_LIST.read(value, "packing_list", problems)
    if read is not BAD:
        _check_packing(plain(read), hosts, problems)
    refuse_placeholders(_walk({"packing_list": value}, ""), problems)
    return ([] if read is BAD else plain(read)), problems.found


def _check_hosts(targets: dict[str, Any], problems: Problems) -> None:
    for name, host in targets["hosts"].items():
        path = f"targets.hosts.{name}"
        if not host["groups"]:
            problems.add(
                f"{path}.groups", "the host is in no group, so nothing would ever run on it.", "该主机不属于任何组，不会在其上执行任何操作。"
            )
        if host["connection"] == "ssh" and "address" not in host:
            problems.add(f"{path}.address", "a host reached by ssh needs an address.", "通过 ssh 连接的主机需要地址。")
        for key in ONLY_SSH if host["connection"] == "local" else ():
            if key in host:
                problems.add(f"{path}.{key}", "a local host is this machine itself and takes no such key.", "本地主机就是本机，不接受此键。")
        for key in ("become_user", "become_password"):
            if key in host and not host.get("become"):
                problems.add(
                    f"{path}.{key}", "this says how to become another user, and become is not true.", "此键说明如何切换用户，但 become 不为 true。"
                )
    for group in ("engine", "loadgen"):
        if not any(group in host["groups"] for host in targets["hosts"].values()):
            problems.add(
                "targets.hosts",
                f"no host is in the group {group}, which every measuring gate needs.",
                f"没有主机属于 {group} 组，而各测量门禁都需要它。",
            )
    check_drivers(targets, problems)
    check_pairs(targets, problems)
    check_switches(targets, problems)
    check_packages(targets, problems)
    if not targets["simulated"]:
        _check_real(targets, problems)


def _check_real(targets: dict[str, Any], problems: Problems) -> None:
    """Refuse what only a simulated target has: a report on it must never read as one on hardware."""
    if targets.get("faults"):
        problems.add("targets.faults", "faults can only be put into a simulated target.", "只能对模拟目标注入故障。")
    if "rack" in targets:
        problems.add(
            "targets.rack",
            "this names a simulated rack, whose tools answer from a description; leave it out, or say simulated: true.",
            "此键指模拟机柜，其工具按描述文件应答；请删去，或写明 simulated: true。",
        )
    kind = targets["engine"].get("kind")
    if kind in STAND_INS:
        problems.add(
            "targets.engine.kind",
            f"{kind} stands in for a real engine and moves KV without the product's software; name vllm, or say simulated: true.",
            f"{kind} 是真实引擎的替代，搬运 KV 时不经过被测产品的软件；请改为 vllm，或写明 simulated: true。",
        )


def _no_twice(base: str, entries: list[tuple[str, str]], problems: Problems) -> None:
    first: dict[str, str] = {}
    for path, value in entries:
        if value in first:
            problems.add(
                base + path, f"{value} stands here again; it is at {base}{first[value]} already.", f"{value} 重复；已出现在 {base}{first[value]}。"
            )
        first.setdefault(value, path)
