"""Bit errors of the links: what FEC corrected is told with its encoding, what it could not correct is a fault (acceptance 3 and 4).

A PAM4 link always corrects some bits (IEEE 802.3 lets it have 2.4e-4 of them before FEC), so no count of those is one too many at arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_arrival import FEC
from gates.g1.fabric import every_port
from gates.g1.inventory import Inventory
from gates.g1.links import Packs, port_of
from gates.g1.order import Packed
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text, joined

if TYPE_CHECKING:
    from gates.plan import Plan

TOOL = "ethtool-fec"
_NONE = ("off", "none")
_BITS, _BLOCKS = Text("bits", "比特"), Text("blocks", "码块")
_LANES = "rx_err_lane_"  # mlx5: raw errors of one lane, before FEC


def fec_check(plan: Plan, nics: tuple[Packed, ...], inventory: Inventory, survey: Packs) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the check over all ports of the delivered adapters: 0 blocks and symbols that FEC did not correct."""
    findings = list(every_port(_port, nics, inventory, survey))
    values = [f.value for f in findings if f.value is not None]
    worst = max(values, default=None)
    passed = Text("No port has bit errors that FEC did not correct ({n} in all).", "全部 {n} 个端口均无 FEC 未能纠正的误码。")
    result = conclude(FEC.blank(plan), findings, passed=passed, value=worst, margin=None if worst is None else -worst)
    yield by_agreement(FEC, plan, result, brought=any(pack.names(TOOL) for pack in survey.values() if pack.trouble is None))


def _port(nic: Packed, pack: HostPack, interface: str) -> Finding:
    fec, stats = pack.answer(f"{TOOL}.{interface}"), pack.answer(f"ethtool-stats.{interface}")
    active = fec.one("fec.active")
    if fec.problems or stats.problems or active is None:
        return doubtful(f"{nic.serial} {interface}", fec.problems or stats.problems, fec.path)
    lost = {**_uncorrected(fec, stats), **_symbols(pack, interface)}
    bits = next((b for b in (_counted(stats, "rx_corrected_bits_phy"), _figure(fec, "fec.corrected_bits")) if b is not None), None)
    corrected = bits if bits is not None else _figure(fec, "fec.corrected_blocks")
    words: dict[str, Any] = {"s": nic.serial, "i": interface, "f": active.value, "u": _listed(lost)}
    words |= {
        "c": Text("not told", "未报告") if corrected is None else f"{corrected:f}",
        "k": _BLOCKS if bits is None else _BITS,
        "l": _worst_lane(stats),
    }
    total = sum(lost.values(), Decimal(0))
    if total:
        text = "{s} {i}: FEC {f} did not correct {u}; it corrected {c} {k}{l}", "{s} {i}：FEC {f} 未能纠正 {u}；已纠正 {c} {k}{l}"
        return bad(*text, fec.path, stats.path, value=total, **words)
    if not lost:
        nothing = "{s} {i}: what FEC {f} could not correct is not told", "{s} {i}：未报告 FEC {f} 未能纠正的误码"
        return unknown(*nothing, fec.path, stats.path, **words)
    if corrected is None and str(active.value).lower() not in _NONE:
        nothing = "{s} {i}: what FEC {f} corrected is not told", "{s} {i}：未报告 FEC {f} 已纠正的误码"
        return unknown(*nothing, fec.path, stats.path, **words)
    return good("{s} {i}: FEC {f} corrected {c} {k}{l}", "{s} {i}：FEC {f} 已纠正 {c} {k}{l}", fec.path, stats.path, value=Decimal(0), **words)


def _listed(lost: dict[str, Decimal]) -> Text:
    """Return what was counted, but for zeros."""
    rows = [f"{name} {value:f}" for name, value in lost.items() if value]
    return joined(Text(row, row) for row in rows)


def _uncorrected(fec: Answer, stats: Answer) -> dict[str, Decimal]:
    told = {"uncorrectable_blocks": _figure(fec, "fec.uncorrectable_blocks"), "rx_pcs_symbol_err_phy": _counted(stats, "rx_pcs_symbol_err_phy")}
    return {name: value for name, value in told.items() if value is not None}


def _symbols(pack: HostPack, interface: str) -> dict[str, Decimal]:
    """Return the symbol errors that the RDMA device behind an interface counts, where it tells them."""
    answer, port = pack.answer("ib-counters"), port_of(pack.answer("rdma-link"), interface)
    found = answer.one("ib.counter", name="symbol_error", **port) if port and not answer.problems else None
    return {"symbol_error": found.value} if found is not None and isinstance(found.value, Decimal) else {}


def _figure(fec: Answer, quantity: str) -> Decimal | None:
    found = fec.one(quantity, lane="")
    return found.value if found is not None and isinstance(found.value, Decimal) else None


def _counted(stats: Answer, name: str) -> Decimal | None:
    found = stats.one("nic.counter", name=name)
    return found.value if found is not None and isinstance(found.value, Decimal) else None


def _worst_lane(stats: Answer) -> Text:
    """Return which lane has most raw errors and its share of them, where lanes are counted: a bad lane is a bad contact or a bad laser."""
    lanes = {o.labels["name"]: o.value for o in stats.all("nic.counter") if o.labels["name"].startswith(_LANES) and isinstance(o.value, Decimal)}
    total = sum(lanes.values(), Decimal(0))
    if not total:
        return Text("", "")
    name, most = max(lanes.items(), key=lambda row: row[1])
    lane, share = name.removeprefix(_LANES).removesuffix("_phy"), f"{100 * most / total:.1f} %"
    return Text(f", most on lane {lane} ({share} of its raw errors)", f"，其中通道 {lane} 最多（占原始误码 {share}）")
