"""RDMA bandwidth of each delivered port, measured against a port of another host (ib_write_bw), against the speed of the port."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_more import RDMA_RATE
from gates.g1.fabric import every_port
from gates.g1.inventory import Inventory
from gates.g1.links import Packs, port_of
from gates.g1.order import Packed
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.estimates import beside
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

TOOL, ROCE_V2 = "perftest", "RoCE v2"
_OVER_THE_WIRE = Text("a measurement between two hosts, over the wire, would tell", "在两台主机之间经线缆测量方可判定")
_OWN_PORT = Text("a measurement by the port's own RDMA device would tell", "以该端口自身的 RDMA 设备测量方可判定")
_OVER_V2 = Text(
    "a measurement over a RoCE v2 address (targets.rdma_bandwidth.gid_index) would tell",
    "经 RoCE v2 地址（targets.rdma_bandwidth.gid_index）测量方可判定",
)
_PAIR = Text("a pair of this port in targets.rdma_bandwidth would let it be measured", "在 targets.rdma_bandwidth 中列出该端口即可测量")
_FAST_END = Text("a measurement against a port that is as fast would tell", "与同等速率的对端测量方可判定")


def bandwidth_check(
    plan: Plan, nics: tuple[Packed, ...], inventory: Inventory, survey: Packs, steps: Sequence[Packs]
) -> CheckResult | dict[str, Any]:
    """Return the check over all ports of the delivered adapters. `steps`: packs of the steps that may have measured; the first that did counts."""
    findings = list(every_port(partial(_of_port, plan, steps), nics, inventory, survey))
    packs = [pack for step in (*steps, survey) for pack in step.values() if pack.trouble is None]
    values = [f.value for f in findings if f.value is not None]
    worst = min(values, default=None)
    result = conclude(
        RDMA_RATE.blank(plan),
        findings,
        passed=Text("Every port reaches the bandwidth ({n} in all).", "全部 {n} 个端口达到带宽要求。"),
        value=worst,
        margin=None if worst is None else worst - plan.g1.link.rdma_share_min,
    )
    return by_agreement(RDMA_RATE, plan, result, brought=any(pack.names(TOOL) for pack in packs))


def _of_port(plan: Plan, steps: Sequence[Packs], nic: Packed, pack: HostPack, interface: str) -> Finding:
    """Hold the largest message's bandwidth against the speed of the port. More than the line rate cannot have crossed it."""
    name = f"{TOOL}.{interface}"
    measured = [held for step in steps if (held := step.get(pack.host)) is not None and held.trouble is None]
    answer = next((held.answer(name) for held in measured if name in held.names(TOOL)), None) or (measured or [pack])[0].answer(name)
    speed, subject = pack.answer(f"ethtool.{interface}").one("net.speed"), f"{nic.serial} {interface}"
    if not answer.tool:
        text = "{s}: its bandwidth was not measured", "{s}：未测量带宽"
        return unknown(*text, answer.path, remedy=_PAIR, s=subject)
    rates = [o.value for o in answer.all("perftest.bandwidth") if isinstance(o.value, Decimal)]
    if answer.problems or not rates or speed is None or not isinstance(speed.value, Decimal) or speed.value <= 0:
        return doubtful(subject, answer.problems, answer.path)
    strange = _not_of_this_port(subject, answer, pack, interface)
    if strange is not None:
        return strange
    share, least = Fraction(max(rates)) / Fraction(speed.value), plan.g1.link.rdma_share_min
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "v": f"{max(rates) / 10**9:.2f}", "line": f"{speed.value / 10**9:f}"}
    text = "{s} {i}: {v} of {line} Gbit/s", "{s} {i}：{v} / {line} Gbit/s"
    if share > 1:
        return unknown(*text, answer.path, remedy=_OVER_THE_WIRE, **words)
    if share >= Fraction(least):
        return good(*text, answer.path, value=beside(share, least, 4), **words)
    return _far_end(steps[0], pack.host, interface, speed.value, words, answer) or bad(*text, answer.path, value=beside(share, least, 4), **words)


def _not_of_this_port(subject: str, answer: Answer, pack: HostPack, interface: str) -> Finding | None:
    """Return the finding of a result that is not proven to be the port's own over RoCE v2; None where device and GID index say so."""
    link, types = pack.answer("rdma-link"), pack.answer("gid-types")
    port, device, gid = port_of(link, interface), answer.one("perftest.device"), answer.one("perftest.gid_index")
    if port is None:
        return doubtful(subject, link.problems, link.path)
    if device is None or gid is None:
        text = "{s}: the result does not tell device and GID index", "{s}：结果未报告设备与 GID 序号"
        return unknown(*text, answer.path, remedy=_OVER_V2, s=subject)
    if device.value != port["device"]:
        text = "{s}: measured on {d}, the port is {p}", "{s}：测量设备为 {d}，该端口为 {p}"
        return unknown(*text, answer.path, remedy=_OWN_PORT, s=subject, d=device.value, p=port["device"])
    told = types.one("rdma.gid_type", **port, index=f"{gid.value}")
    if types.problems or told is None:
        return doubtful(subject, types.problems, types.path)
    if told.value == ROCE_V2:
        return None
    words: dict[str, Any] = {"s": subject, "n": gid.value, "t": told.value}
    return unknown(
        "{s}: measured over GID {n} ({t}), not RoCE v2", "{s}：测量所用 GID {n}（{t}）不是 RoCE v2", answer.path, types.path, remedy=_OVER_V2, **words
    )


def _far_end(measured: Packs, host: str, interface: str, speed: Decimal, words: dict[str, Any], answer: Answer) -> Finding | None:
    """Return the finding of a rate that the far end may have held down: it is slower than the port, or does not tell; None where it is as fast.

    A result that a site brought by itself names no far end; it stands as it is.
    """
    name = f"ethtool.far-of.{host}.{interface}"
    far = next((pack.answer(name) for pack in measured.values() if pack.trouble is None and name in pack.names("ethtool")), None)
    if far is None:
        return None
    told = far.one("net.speed")
    if far.problems or told is None or not isinstance(told.value, Decimal):
        text = "{s} {i}: {v} of {line} Gbit/s, and the speed of the far end is not told", "{s} {i}：{v} / {line} Gbit/s，对端速率未报告"
        return unknown(*text, answer.path, far.path, remedy=_FAST_END, **words)
    if told.value < speed:
        words = {**words, "f": f"{told.value / 10**9:f}"}
        text = "{s} {i}: {v} of {line} Gbit/s against a far end of {f} Gbit/s", "{s} {i}：{v} / {line} Gbit/s，对端仅 {f} Gbit/s"
        return unknown(*text, answer.path, far.path, remedy=_FAST_END, **words)
    return None
