"""The volume that carries KV, from the deploy step: RAID members, stripe geometry, mount. Judged where a host brings it or the plan requires it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import Declared, by_agreement
from gates.g1.pack import Answer, HostPack
from gates.g2.declared import MOUNT, RAID, STRIPE
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.bundle import Bundle
    from gates.plan import Plan

Hosts = dict[str, HostPack]


def volume_checks(plan: Plan, bundle: Bundle) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the checks of the KV volume of every engine host."""
    packs = {host: HostPack(bundle, "deploy", host) for host in bundle.hosts("engine")}
    for declared, tool, ask, passed in (
        (RAID, "mdadm", _raid, Text("The RAID of {n} volumes is whole.", "{n} 个卷的 RAID 完整。")),
        (STRIPE, "xfs-info", _stripe, Text("{n} file systems follow the stripes of their RAID.", "{n} 个文件系统与 RAID 条带一致。")),
        (MOUNT, "findmnt", _mount, Text("Every host has the volume mounted as XFS, writable (hosts: {n}).", "{n} 台主机以 XFS 可写挂载该卷。")),
    ):
        yield _over(declared, plan, packs, tool, ask, passed)


def _over(
    declared: Declared, plan: Plan, packs: Hosts, tool: str, ask: Callable[[str, Answer, HostPack], Finding], passed: Text
) -> CheckResult | dict[str, Any]:
    findings: list[Finding] = []
    brought = False
    for host, pack in packs.items():
        names = [] if pack.trouble else pack.names(tool)
        brought = brought or bool(names)
        if not names:
            findings.append(unknown("{h} did not run {t}", "{h} 未执行 {t}", h=host, t=tool))
        for answer in map(pack.answer, names):
            findings.append(doubtful(host, answer.problems, answer.path) if answer.problems else ask(host, answer, pack))
    values = [f.value for f in findings if f.value is not None]
    return by_agreement(declared, plan, conclude(declared.blank(plan), findings, passed=passed, value=max(values, default=None)), brought=brought)


def _raid(host: str, answer: Answer, _: HostPack) -> Finding:
    level, devices, failed = answer.one("md.level"), answer.one("md.devices"), answer.one("md.failed")
    members = answer.all("md.member")
    if level is None or devices is None or not members:
        return unknown("{h}: level, number or members of the RAID are not told", "{h}：未报告 RAID 级别、数量或成员", answer.path, h=host)
    missing = abs(Decimal(str(devices.value)) - len(members)) + (Decimal(str(failed.value)) if failed else 0)
    words: dict[str, Any] = {"h": host, "l": level.value, "n": len(members), "d": f"{devices.value:f}"}
    text = "{h}: {l} with {n} of {d} members", "{h}：{l}，成员 {n}/{d}"
    return (good if level.value == "raid0" and missing == 0 else bad)(*text, answer.path, value=missing, **words)


def _stripe(host: str, answer: Answer, pack: HostPack) -> Finding:
    unit, width = answer.one("xfs.stripe_unit"), answer.one("xfs.stripe_width")
    raids = [pack.answer(name) for name in pack.names("mdadm")]
    devices = raids[0].one("md.devices") if len(raids) == 1 else None
    chunk = raids[0].one("md.chunk") if len(raids) == 1 else None
    if unit is None or width is None or devices is None or not all(isinstance(o.value, Decimal) for o in (unit, width, devices)):
        return unknown("{h}: the stripes, or the one RAID below them, are not told", "{h}：未报告条带或其唯一的下层 RAID", answer.path, h=host)
    u, w, n = (Decimal(str(o.value)) for o in (unit, width, devices))
    words = {"h": host, "u": f"{u:f}", "w": f"{w:f}", "n": f"{n:f}", "c": f"{chunk.value:f}" if chunk else "-"}
    text = "{h}: stripe unit {u} B, width {w} B, {n} members, chunk {c} B", "{h}：条带单元 {u} B，宽度 {w} B，成员 {n}，chunk {c} B"
    ratio = w / (u * n) if u * n else Decimal(0)
    fits = ratio == 1 and (chunk is None or chunk.value == u)
    return (good if fits else bad)(*text, answer.path, value=ratio, **words)


def _mount(host: str, answer: Answer, _: HostPack) -> Finding:
    kinds, options = answer.all("mount.fstype"), answer.all("mount.options")
    if not kinds or len(kinds) != len(options):
        return unknown("{h}: the mount is not told", "{h}：未报告挂载", answer.path, h=host)
    wrong = [o.labels["target"] for o in kinds if o.value != "xfs"]
    wrong += [o.labels["target"] for o in options if "rw" not in str(o.value).split(",")]
    words = {"h": host, "t": ", ".join(dict.fromkeys(wrong)) or ", ".join(o.labels["target"] for o in kinds)}
    if wrong:
        return bad("{h}: {t} is not XFS, or not writable", "{h}：{t} 不是 XFS 或不可写", answer.path, value=Decimal(len(set(wrong))), **words)
    return good("{h}: {t}", "{h}：{t}", answer.path, value=Decimal(0), **words)
