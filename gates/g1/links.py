"""Are the links what the parts are rated for? PCIe under load, and the ports of the storage network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.g1.declared import FLAGS, PORT_MTU, PORT_SPEED, PORT_STATE, SPEED, WIDTH
from gates.g1.inventory import Inventory, Item
from gates.g1.order import Order, Packed
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.readers.pci_link import LINK_UNTOLD
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text, joined

if TYPE_CHECKING:
    from gates.plan import Plan

UNDER_LOAD, IDLE = "lspci-under-load", "lspci"
Packs = dict[str, HostPack]
KEYS = {"width": Text("width", "宽度"), "speed": Text("speed", "速率")}
UNITS = {"lanes": Text("lanes", "通道")}
KINDS = {"fatal": Text("fatal", "致命"), "nonfatal": Text("non-fatal", "非致命")}


def pcie_checks(plan: Plan, order: Order, inventory: Inventory, survey: Packs, storage: Packs) -> Iterator[CheckResult]:
    """Compare current and rated width and speed of each delivered drive and adapter; report error flags."""
    load = plan.g1.pcie.read_under == "load"
    packs, name = (storage, UNDER_LOAD) if load else (survey, IDLE)
    parts = [item for item in order.packed if item.kind in ("drive", "nic")]
    for key, declared in (("width", WIDTH), ("speed", SPEED)):
        unit = declared.unit
        findings = [_link_finding(key, unit, part, inventory, packs, name, load=load) for part in parts]
        values = [f.value for f in findings if f.value is not None]
        yield conclude(
            declared.blank(plan),
            findings,
            passed=Text("Every link runs at what the parts are rated for, read under load ({n} in all).", "全部 {n} 条链路在负载下均达到部件额定值。")
            if load
            else Text("Every link runs at what the parts are rated for ({n} in all).", "全部 {n} 条链路均达到部件额定值。"),
            value=min(values) if values else None,
        )
    yield conclude(
        FLAGS.blank(plan),
        [_flag_finding(part, inventory, packs, name) for part in parts],
        passed=Text("No fatal or non-fatal error is flagged on any device ({n} in all).", "{n} 个设备均无致命或非致命错误标志。"),
    )


def _reading(part: Packed, inventory: Inventory, packs: Packs, name: str) -> tuple[Item, Answer] | Finding:
    seen = inventory.find(part.kind, part.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=part.serial)
    if not seen.address:
        return unknown("{s}: its PCI address is not known", "{s}：PCI 地址未知", *seen.evidence, s=part.serial)
    pack = packs.get(seen.host)
    if pack is None or pack.trouble:
        return unknown("{s}: its link was not read under load", "{s}：未在负载下读取链路", s=part.serial)
    answer = pack.answer(name)
    troubles = [p for p in answer.problems if p.code != LINK_UNTOLD]  # what one device does not tell says nothing against another's link
    if troubles:
        return doubtful(part.serial, troubles, answer.path)
    return seen, answer


def _link_finding(key: str, unit: str, part: Packed, inventory: Inventory, packs: Packs, name: str, *, load: bool) -> Finding:
    found = _reading(part, inventory, packs, name)
    if isinstance(found, Finding):
        return found
    seen, answer = found
    if load and not all((o := answer.one(f"load.alive_{when}")) is not None and o.value == "yes" for when in ("before", "after")):
        idle = "{s}: the load was not running before and after the reading", "{s}：读取前后负载未持续运行"
        remedy = Text("a reading of the link while the load goes on would tell", "在负载持续期间读取链路方可判定")
        return unknown(*idle, answer.path, remedy=remedy, s=part.serial)
    rated, current = answer.one(f"pci.{key}_rated", address=seen.address), answer.one(f"pci.{key}", address=seen.address)
    if rated is None or current is None or not isinstance(rated.value, Decimal) or not isinstance(current.value, Decimal):
        text = "{s}: PCIe {key} is not told for {at}", "{s}：未报告 {at} 的 PCIe {key}"
        return unknown(*text, answer.path, s=part.serial, key=KEYS[key], at=seen.address)
    words: dict[str, Any] = {"s": part.serial, "key": KEYS[key], "is_": f"{current.value:f}", "rated": f"{rated.value:f}"}
    words["unit"] = UNITS.get(unit, unit)
    if current.value >= rated.value > 0:
        return good("{s}: {is_} {unit}", "{s}：{is_} {unit}", answer.path, value=current.value, **words)
    return bad(
        "{s}: PCIe {key} is {is_} {unit}, rated {rated} {unit}",
        "{s}：PCIe {key} 为 {is_} {unit}，额定 {rated} {unit}",
        answer.path,
        value=current.value,
        **words,
    )


def _flag_finding(part: Packed, inventory: Inventory, packs: Packs, name: str) -> Finding:
    found = _reading(part, inventory, packs, name)
    if isinstance(found, Finding):
        return found
    seen, answer = found
    flags = {key: answer.one(f"pci.{key}_error", address=seen.address) for key in ("fatal", "nonfatal")}
    if any(flag is None for flag in flags.values()):
        return unknown("{s}: its error flags are not told", "{s}：未报告错误标志", answer.path, s=part.serial)
    raised = [KINDS[key] for key, flag in flags.items() if flag is not None and flag.value != 0]
    if raised:
        return bad("{s} flags {raised} errors", "{s} 报告{raised}错误", answer.path, s=part.serial, raised=joined(raised))
    return good("{s}: none", "{s}：无", answer.path, s=part.serial)


def port_checks(plan: Plan, order: Order, inventory: Inventory, survey: Packs) -> Iterator[CheckResult]:
    """Judge each port of the delivered adapters: state, active MTU, speed."""
    nics = order.of("nic")
    mtu_min = plan.g1.link.mtu_min.base

    def every(ask: Callable[[Packed, HostPack, str], Finding]) -> list[Finding]:
        rows: list[Finding] = []
        for nic in nics:
            seen = inventory.find("nic", nic.serial)
            if seen is None:
                rows.append(unknown("{s} was not seen", "未见到 {s}", s=nic.serial))
            else:
                rows += [ask(nic, survey[seen.host], interface) for interface in seen.name.split()]
        return rows

    def mtu(nic: Packed, pack: HostPack, interface: str) -> Finding:
        return _mtu(nic, pack, interface, mtu_min)

    def speed(nic: Packed, pack: HostPack, interface: str) -> Finding:
        line = order.line_of(nic)
        return _speed(nic, pack, interface, line.speed if line else None)

    states, mtus, speeds = every(_state), every(mtu), every(speed)
    yield conclude(
        PORT_STATE.blank(plan),
        states,
        passed=Text("Every port is ACTIVE with LINK_UP ({n} in all).", "全部 {n} 个端口均为 ACTIVE 且 LINK_UP。"),
    )
    seen = [f.value for f in mtus if f.value is not None]
    yield conclude(
        PORT_MTU.blank(plan),
        mtus,
        passed=Text("Every port keeps the MTU ({n} in all).", "全部 {n} 个端口的 MTU 符合要求。"),
        value=min(seen) if seen else None,
        margin=min(seen) - mtu_min if seen else None,
    )
    rates = [f.value for f in speeds if f.value is not None]
    yield conclude(
        PORT_SPEED.blank(plan),
        speeds,
        passed=Text("Every port runs at its rated speed ({n} in all).", "全部 {n} 个端口均达到额定速率。"),
        value=min(rates) if rates else None,
    )


def _state(nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer = pack.answer("rdma-link")
    port = port_of(answer, interface)
    if answer.problems or port is None:
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    state, physical = answer.one("rdma.state", **port), answer.one("rdma.physical_state", **port)
    if state is None or physical is None:
        return unknown("{s} {i}: the port's state is not told", "{s} {i}：未报告端口状态", answer.path, s=nic.serial, i=interface)
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "a": state.value, "b": physical.value}
    if (state.value, physical.value) == ("ACTIVE", "LINK_UP"):
        return good("{s} {i} is ACTIVE", "{s} {i} 为 ACTIVE", answer.path, **words)
    return bad("{s} {i}: the port is {a}, {b}", "{s} {i}：端口为 {a}，{b}", answer.path, **words)


def _mtu(nic: Packed, pack: HostPack, interface: str, least: Decimal) -> Finding:
    link, detail = pack.answer("rdma-link"), pack.answer("ibv-devinfo")
    port = port_of(link, interface)
    if detail.problems or link.problems or port is None:
        return doubtful(f"{nic.serial} {interface}", detail.problems or link.problems, detail.path)
    mtu = detail.one("rdma.mtu_active", **port)
    if mtu is None or not isinstance(mtu.value, Decimal):
        return unknown("{s} {i}: no active MTU is told", "{s} {i}：未报告活动 MTU", detail.path, s=nic.serial, i=interface)
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "v": f"{mtu.value:f}", "least": f"{least:f}"}
    if mtu.value >= least:
        return good("{s} {i}: {v} B", "{s} {i}：{v} B", detail.path, value=mtu.value, **words)
    return bad("{s} {i}: active MTU {v} B, at least {least} B", "{s} {i}：活动 MTU {v} B，至少 {least} B", detail.path, value=mtu.value, **words)


def _speed(nic: Packed, pack: HostPack, interface: str, ordered: Decimal | None) -> Finding:
    answer = pack.answer(f"ethtool.{interface}")
    link, speed = answer.one("net.link"), answer.one("net.speed")
    rated = ordered if ordered is not None else (r.value if (r := answer.one("net.speed_rated")) else None)
    words: dict[str, Any] = {"s": nic.serial, "i": interface}
    if link is not None and link.value == "no":
        return bad("{s} {i}: no link is detected", "{s} {i}：未检测到链路", answer.path, **words)
    if answer.problems or link is None or speed is None or not isinstance(speed.value, Decimal) or not isinstance(rated, Decimal):
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    figures: dict[str, Any] = {"v": f"{speed.value / 10**9:f}", "rated": f"{rated / 10**9:f}"}
    if speed.value >= rated:
        return good("{s} {i}: {v} Gbit/s", "{s} {i}：{v} Gbit/s", answer.path, value=speed.value, **words, **figures)
    return bad("{s} {i}: {v} Gbit/s, rated {rated}", "{s} {i}：{v} Gbit/s，额定 {rated}", answer.path, value=speed.value, **words, **figures)


def port_of(answer: Answer, interface: str) -> dict[str, str] | None:
    """Return the labels of the RDMA port behind an interface."""
    ports = [o.labels for o in answer.all("rdma.netdev") if o.value == interface]
    return dict(ports[0]) if len(ports) == 1 else None
