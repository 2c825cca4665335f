"""The storage network beyond state and speed: RoCE v2, PFC and trust, MTU, error counters, transceivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_more import COUNTERS, DSCP, GID, NET_MTU, OPTICS, PFC
from gates.g1.inventory import Inventory
from gates.g1.links import Packs, port_of
from gates.g1.order import Packed
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, left_out, unknown
from gates.text import Text, joined

if TYPE_CHECKING:
    from gates.plan import Plan

# Counters that are errors of the port or of the flow control; pauses themselves are how a lossless network works (kernel, mlx5 counters).
ERRORS = (
    *("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy", "rx_discards_phy", "tx_discards_phy"),
    *("link_down_events_phy", "tx_pause_storm_error_events", "module_high_temp"),
)
FLAGS = frozenset(f"{side} {level}" for side in ("high", "low") for level in ("alarm", "warning"))
# What a module measures must raise its flags too: quantity -> what ethtool calls the flags. Other families (laser bias, laser power) as they come.
FLAGGED = {"optics.temperature": "Module temperature", "optics.voltage": "Module voltage", "optics.rx_power": "Laser rx power"}
FAMILIES = {
    "Module temperature": Text("Module temperature", "模块温度"),
    "Module voltage": Text("Module voltage", "模块电压"),
    "Laser bias current": Text("Laser bias current", "激光器偏置电流"),
    "Laser rx power": Text("Laser rx power", "接收光功率"),
    "Laser tx power": Text("Laser tx power", "发射光功率"),
    "Laser output power": Text("Laser output power", "发射光功率"),
}
LEVELS = {
    "high alarm": Text("high alarm", "过高告警"),
    "low alarm": Text("low alarm", "过低告警"),
    "high warning": Text("high warning", "过高预警"),
    "low warning": Text("low warning", "过低预警"),
}
Ask = Callable[["Plan", Packed, HostPack, str], Finding]


def fabric_checks(plan: Plan, nics: tuple[Packed, ...], inventory: Inventory, survey: Packs) -> Iterator[CheckResult | dict[str, Any]]:
    """Return one check a question over all ports of the delivered adapters."""
    for declared, tools, ask, passed in (
        (GID, ("gid-types",), _gid, Text("Every port offers RoCE v2 ({n} in all).", "全部 {n} 个端口均提供 RoCE v2。")),
        (PFC, ("mlnx-qos",), _pfc, Text("PFC and trust of every port are as planned ({n} in all).", "全部 {n} 个端口的 PFC 与信任模式符合约定。")),
        (NET_MTU, ("ip-link",), _mtu, Text("Every interface keeps the MTU ({n} in all).", "全部 {n} 个接口的 MTU 符合要求。")),
        (COUNTERS, ("ethtool-stats",), _counters, Text("No error was counted on any port ({n} in all).", "{n} 个端口均无错误计数。")),
        (
            OPTICS,
            ("ethtool-module",),
            _optics,
            Text("The module of every port is known and raises no alarm ({n} in all).", "全部 {n} 个端口的模块可识别且无告警。"),
        ),
    ):
        findings = list(every_port(partial(ask, plan), nics, inventory, survey))
        packs = [p for p in survey.values() if p.trouble is None]
        values = [f.value for f in findings if f.value is not None]
        higher = declared.direction == "higher"
        worst = (min(values) if higher else max(values)) if values and declared is not PFC else None
        limit = declared.limit(plan)
        bound = limit.low if higher else limit.high
        margin = None
        if worst is not None and isinstance(bound, Decimal):
            margin = worst - bound if higher else bound - worst
        result = conclude(declared.blank(plan), findings, passed=passed, value=worst, margin=margin)
        yield by_agreement(declared, plan, result, brought=any(p.names(tool) for p in packs for tool in tools))


def dscp_check(plan: Plan, nics: tuple[Packed, ...], inventory: Inventory, survey: Packs) -> CheckResult | dict[str, Any]:
    """Return the check of the map from DSCP to priority of every port; the entry of one that was not asked where the plan names no code point."""
    if not plan.g1.link.dscp:
        unasked = Text(
            "The plan names no DSCP of the storage traffic (g1.link.dscp), so it was not asked.",
            "计划未约定存储流量的 DSCP（g1.link.dscp），未作检查。",
        )
        return left_out(DSCP.id, DSCP.heading(plan), unasked)
    findings = list(every_port(partial(_dscp, plan), nics, inventory, survey))
    values = [f.value for f in findings if f.value is not None]
    worst = max(values, default=None)
    passed = Text("Every port maps DSCP {d} to priority {p} ({n} in all).", "全部 {n} 个端口均将 DSCP {d} 映射到优先级 {p}。")
    words = {"d": ", ".join(map(str, plan.g1.link.dscp)), "p": plan.g1.link.pfc_priority}
    return conclude(DSCP.blank(plan), findings, passed=passed, words=words, value=worst, margin=None if worst is None else -worst)


def every_port(ask: Callable[[Packed, HostPack, str], Finding], nics: tuple[Packed, ...], inventory: Inventory, survey: Packs) -> Iterator[Finding]:
    """Ask of every interface of every delivered adapter: (piece, survey of its host, interface)."""
    for nic in nics:
        seen = inventory.find("nic", nic.serial)
        if seen is None:
            yield unknown("{s} was not seen", "未见到 {s}", s=nic.serial)
            continue
        for interface in seen.name.split():
            yield ask(nic, survey[seen.host], interface)


def _gid(_: Plan, nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer, port = pack.answer("gid-types"), port_of(pack.answer("rdma-link"), interface)
    types = [o.value for o in answer.all("rdma.gid_type", **port)] if port else []
    if answer.problems or not types:
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    missing = Decimal(int("RoCE v2" not in types))
    text = ("{s} {i}: RoCE v2", "{s} {i}：RoCE v2") if not missing else ("{s} {i} offers no RoCE v2 address", "{s} {i} 没有 RoCE v2 地址")
    return (bad if missing else good)(*text, answer.path, value=missing, s=nic.serial, i=interface)


def _pfc(plan: Plan, nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer = pack.answer(f"mlnx-qos.{interface}")
    bits = {o.labels["priority"]: o.value for o in answer.all("qos.pfc")}
    trust = answer.one("qos.trust")
    if answer.problems or not bits or trust is None:
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    lossless = ", ".join(p for p, bit in sorted(bits.items()) if bit == 1)
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "p": Text(lossless or "none", f" {lossless}" if lossless else "：无"), "t": trust.value}
    words |= {"wp": plan.g1.link.pfc_priority, "wt": plan.g1.link.trust}
    if lossless == str(plan.g1.link.pfc_priority) and trust.value == plan.g1.link.trust:
        return good("{s} {i}: priority {p}, trust {t}", "{s} {i}：优先级{p}，信任 {t}", answer.path, **words)
    return bad(
        "{s} {i}: lossless priority {p} with trust {t}, planned {wp} with {wt}",
        "{s} {i}：无损优先级{p}、信任 {t}，约定 {wp}、{wt}",
        answer.path,
        **words,
    )


def _dscp(plan: Plan, nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer, planned = pack.answer(f"mlnx-qos.{interface}"), str(plan.g1.link.pfc_priority)
    trust = answer.one("qos.trust")
    if answer.problems or trust is None:
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "p": planned}
    if trust.value != "dscp":
        text = "{s} {i}: trust is {t}, so no DSCP counts", "{s} {i}：信任模式为 {t}，DSCP 不起作用"
        return bad(*text, answer.path, value=Decimal(len(plan.g1.link.dscp)), t=trust.value, **words)
    reached: dict[int, list[str]] = {}
    for row in answer.all("qos.dscp"):
        for code in str(row.value).split(","):
            reached.setdefault(int(code), []).append(row.labels["priority"])
    wrong = {code: reached[code][0] for code in plan.g1.link.dscp if planned not in reached.get(code, [planned])}
    if wrong:
        listed = ", ".join(f"{code} -> {priority}" for code, priority in wrong.items())
        text = "{s} {i}: DSCP with another priority than {p}: {w}", "{s} {i}：以下 DSCP 的优先级不是 {p}：{w}"
        return bad(*text, answer.path, value=Decimal(len(wrong)), w=listed, **words)
    untold = [str(code) for code in plan.g1.link.dscp if len(reached.get(code, ())) != 1]
    if untold:
        text = "{s} {i}: the priority of DSCP {w} is not told, or told twice", "{s} {i}：DSCP {w} 的优先级未报告或重复"
        return unknown(*text, answer.path, w=", ".join(untold), **words)
    return good("{s} {i}: DSCP to priority {p}", "{s} {i}：DSCP 映射到优先级 {p}", answer.path, value=Decimal(0), **words)


def _mtu(plan: Plan, nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer, least = pack.answer("ip-link"), plan.g1.link.net_mtu_min.base
    mtu = answer.one("net.mtu", interface=interface)
    if answer.problems or mtu is None or not isinstance(mtu.value, Decimal):
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    words = {"s": nic.serial, "i": interface, "v": f"{mtu.value:f}", "l": f"{least:f}"}
    text = "{s} {i}: MTU {v} B, at least {l} B", "{s} {i}：MTU {v} B，至少 {l} B"
    return (good if mtu.value >= least else bad)(*text, answer.path, value=mtu.value, **words)


def _counters(_: Plan, nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer, link = pack.answer(f"ethtool-stats.{interface}"), pack.answer("ip-link")
    counted = {o.labels["name"]: o.value for o in answer.all("nic.counter") if isinstance(o.value, Decimal)}
    if answer.problems or link.problems:
        return doubtful(f"{nic.serial} {interface}", answer.problems or link.problems, answer.path)
    told = {name: counted.get(name) for name in ERRORS}
    for direction in ("rx", "tx"):
        seen = link.one(f"net.{direction}_errors", interface=interface)
        told[f"{direction}_errors"] = seen.value if seen is not None and isinstance(seen.value, Decimal) else None
    errors = {name: value for name, value in told.items() if value}
    total = sum(errors.values(), Decimal(0))
    silent = [name for name, value in told.items() if value is None]
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "e": ", ".join(f"{k} {v:f}" for k, v in errors.items()) or "0", "n": ", ".join(silent)}
    if silent and not total:  # what an adapter does not count, nobody knows: the parties may agree not to test it
        return unknown("{s} {i}: {n} is not told", "{s} {i}：未报告 {n}", answer.path, link.path, **words)
    return (bad if total else good)("{s} {i}: {e}", "{s} {i}：{e}", answer.path, value=total, **words)


def _optics(_: Plan, nic: Packed, pack: HostPack, interface: str) -> Finding:
    answer = pack.answer(f"ethtool-module.{interface}")
    serial = answer.one("optics.serial")
    if answer.problems or serial is None:
        return doubtful(f"{nic.serial} {interface}", answer.problems, answer.path)
    raised = [_flag(o.labels["family"], o.labels["level"], o.labels["channel"]) for o in answer.all("optics.alarm") if o.value == 1]
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "m": serial.value, "a": joined(raised)}
    if raised:
        return bad("{s} {i}: module {m} raises {a}", "{s} {i}：模块 {m} 告警：{a}", answer.path, value=Decimal(len(raised)), **words)
    gaps = _silent_flags(answer)
    if gaps:
        words["n"] = joined(gaps)
        return unknown("{s} {i}: module {m} does not tell {n}", "{s} {i}：模块 {m} 未报告{n}", answer.path, **words)
    return good("{s} {i}: module {m}", "{s} {i}：模块 {m}", answer.path, value=Decimal(0), **words)


def _flag(family: str, level: str, channel: str) -> Text:
    """Return what a flag is called in both languages; a family that only its module names keeps the module's words."""
    name, side = FAMILIES.get(family, Text(family, f" {family} ")), LEVELS.get(level, Text(level, f" {level} "))
    return Text(
        " ".join(filter(None, (name.en, side.en, f"(channel {channel})" if channel else ""))),
        f"{name.zh}{side.zh}{f'（通道 {channel}）' if channel else ''}".strip(),
    )


def _silent_flags(answer: Answer) -> list[Text]:
    """Return the flags that a module should tell and does not. None only where all are told, or the module itself says that it has none.

    Each family (laser bias, one a channel) has high and low, alarm and warning; what the module measures has a family.
    """
    flags: dict[tuple[str, str], set[str]] = {}
    for quantity, family in FLAGGED.items():
        for o in answer.all(quantity):
            flags.setdefault((family, o.labels.get("channel", "")), set())
    for o in answer.all("optics.alarm"):
        flags.setdefault((o.labels["family"], o.labels["channel"]), set()).add(o.labels["level"])
    without = any(o.value == "No" for what in ("optics.flags", "optics.diagnostics") for o in answer.all(what)) or answer.all("optics.passive")
    if without and not answer.all("optics.alarm"):
        return []
    if not flags:
        return [Text("alarm flags", "告警标志")]
    return [_flag(family, level, channel) for (family, channel), told in flags.items() for level in sorted(FLAGS - told)]
