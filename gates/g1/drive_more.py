"""What the drives and their links remember: error log, self-test, paths, AER counters; and whether a raw read was possible at all."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates.declared import Declared, by_agreement
from gates.g1.declared import CEILING
from gates.g1.declared_more import AER, PATHS, SELF_TEST
from gates.g1.error_log import errors_check
from gates.g1.inventory import Inventory, Item
from gates.g1.links import KINDS, UNDER_LOAD, Packs
from gates.g1.order import Packed
from gates.g1.raw import read_rates
from gates.model import CheckResult
from gates.rules.estimates import beside
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text
from gates.units import convert

if TYPE_CHECKING:
    from gates.plan import Plan

SIDES = {"device": Text("own link", "自身"), "port": Text("upstream port", "上游端口")}
# What a lane carries of each transfer: 8b/10b below 8 GT/s, 128b/130b from there on (PCI Express base specification).
_ENCODING = {True: Decimal(8) / 10, False: Decimal(128) / 130}


_TEST_RUN = Text(
    "a self-test of {s} (nvme device-self-test), and a new attempt once it has ended, would tell",
    "对 {s} 执行自检（nvme device-self-test），结束后由新的尝试判定",
)
_TEST_ENDED = Text("a new attempt once the self-test has ended would tell", "待自检结束后由新的尝试判定")
_READ = Text("a raw read of {s}, with its link read under load, would tell", "对 {s} 裸盘读取并在负载下读取其链路方可判定")
_NO_CACHE = Text("a new attempt whose raw reads no cache answers would tell", "新的尝试进行不经缓存的裸盘读取方可判定")


def drive_log_checks(
    plan: Plan, drives: tuple[Packed, ...], inventory: Inventory, survey: Packs, storage: Packs
) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the checks of error log, self-test and paths of every delivered drive."""
    yield errors_check(plan, drives, inventory, survey, storage)
    findings = [_self_test(item, inventory, survey) for item in drives]
    values = [f.value for f in findings if f.value is not None]
    passed = Text("The newest self-test of every drive is without error ({n} in all).", "全部 {n} 块硬盘最近一次自检无错误。")
    yield _answer(SELF_TEST, plan, findings, passed, brought=_brought(survey, "nvme-self-test-log"), value=max(values, default=None))
    findings = [_path(item, inventory, survey) for item in drives]
    down = sum((f.value for f in findings if f.value is not None), Decimal(0))
    passed = Text("Every path to every drive is live ({n} in all).", "{n} 块硬盘的各路径均为 live。")
    yield _answer(PATHS, plan, findings, passed, brought=_brought(survey, "nvme-list-subsys"), value=down)


def aer_check(plan: Plan, parts: tuple[Packed, ...], inventory: Inventory, survey: Packs) -> CheckResult | dict[str, Any]:
    """Return the check of the PCIe error counters of every delivered drive and adapter, and of the port that each hangs on."""
    findings = [_counted(item, inventory, survey) for item in parts]
    values = [f.value for f in findings if f.value is not None]
    passed = Text("No fatal or non-fatal error was counted on any device or its port ({n} in all).", "{n} 个设备及其端口均无致命或非致命错误计数。")
    return _answer(AER, plan, findings, passed, brought=_brought(survey, "aer"), value=sum(values, Decimal(0)) if values else None)


def ceiling_check(plan: Plan, drives: tuple[Packed, ...], inventory: Inventory, storage: Packs) -> CheckResult:
    """Hold each drive's raw read against what its link can carry: more than that came from a cache, so nothing is known."""
    rates = read_rates(drives, storage)
    findings, shares = [], []
    for item in drives:
        seen, rate = inventory.find("drive", item.serial), rates.get(item.serial)
        capacity = _link_rate(seen, storage) if seen else None
        if rate is None or capacity is None:
            findings.append(
                unknown("{s}: its read rate or its link is not known", "{s}：读取速率或链路未知", remedy=_READ.fill(s=item.serial), s=item.serial)
            )
            continue
        share, path = Fraction(rate) / Fraction(capacity), storage[seen.host].path("commands.json") if seen else ""
        shares.append(share)
        words: dict[str, Any] = {"s": item.serial, "v": f"{convert(rate, 'B/s', 'GB/s'):.3f}", "most": f"{convert(capacity, 'B/s', 'GB/s'):.3f}"}
        text = "{s}: {v} GB/s, its link carries at most {most}", "{s}：{v} GB/s，链路上限 {most}"
        findings.append(good(*text, path, **words) if share <= 1 else unknown(*text, path, remedy=_NO_CACHE, **words))
    passed = Text("Every drive reads at no more than its link carries ({n} in all).", "全部 {n} 块硬盘读取速率未超过链路上限。")
    worst = beside(max(shares), Decimal(1), 4) if shares else None
    return conclude(CEILING.blank(plan), findings, passed=passed, value=worst, margin=None if worst is None else 1 - worst)


def _answer(
    declared: Declared, plan: Plan, findings: list[Finding], passed: Text, *, brought: bool, value: Decimal | None
) -> CheckResult | dict[str, Any]:
    return by_agreement(declared, plan, conclude(declared.blank(plan), findings, passed=passed, value=value), brought=brought)


def _brought(packs: Packs, tool: str) -> bool:
    return any(pack.trouble is None and pack.names(tool) for pack in packs.values())


def _self_test(item: Packed, inventory: Inventory, survey: Packs) -> Finding:
    serial, seen = item.serial, inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=serial)
    answer = survey[seen.host].answer(f"nvme-self-test-log.{seen.name}")
    if answer.problems:
        return doubtful(serial, answer.problems, answer.path)
    newest, running = answer.one("selftest.result", record="0"), answer.one("selftest.running")
    if running is not None and running.value != 0:
        return unknown("{s}: a self-test is still running", "{s}：自检仍在进行", answer.path, remedy=_TEST_ENDED, s=serial)
    if newest is None:
        return unknown("{s}: no self-test is on record", "{s}：没有自检记录", answer.path, remedy=_TEST_RUN.fill(s=serial), s=serial)
    if not isinstance(newest.value, Decimal):
        return doubtful(serial, answer.problems, answer.path)
    text = "{s}: the newest self-test ended with result {r}", "{s}：最近一次自检结果为 {r}"
    return (good if newest.value == 0 else bad)(*text, answer.path, value=newest.value, s=serial, r=f"{newest.value:f}")


def _path(item: Packed, inventory: Inventory, survey: Packs) -> Finding:
    seen = inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=item.serial)
    answer = survey[seen.host].answer("nvme-list-subsys")
    states = answer.all("drive.path_state", controller=seen.name)
    if len(states) == 1 and "subsystem" in states[0].labels:  # every path to the drive, not only by the controller that it is named after
        states = answer.all("drive.path_state", subsystem=states[0].labels["subsystem"])
    if answer.problems or not states:
        return doubtful(item.serial, answer.problems, answer.path)
    down = [str(o.value) for o in states if o.value != "live"]
    ports = {str(o.value) for o in survey[seen.host].answer("nvme-list").all("drive.port", serial=item.serial)} or {seen.name}
    silent = sorted(ports - {o.labels["controller"] for o in states})
    if down:
        return bad("{s}: a path is {d}", "{s}：有路径处于 {d}", answer.path, value=Decimal(len(down)), s=item.serial, d=", ".join(down))
    if silent:
        words: dict[str, Any] = {"s": item.serial, "p": ", ".join(silent)}
        return unknown("{s}: the path by {p} is not told", "{s}：未报告经 {p} 的路径", answer.path, **words)
    return good("{s}: {n} paths live", "{s}：{n} 条路径 live", answer.path, value=Decimal(0), s=item.serial, n=len(states))


def _counted(item: Packed, inventory: Inventory, survey: Packs) -> Finding:
    seen = inventory.find(item.kind, item.serial)
    if seen is None or not seen.address:
        return unknown("{s} was not seen, or not its PCI address", "未见到 {s} 或其 PCI 地址", s=item.serial)
    answer = survey[seen.host].answer("aer")
    if answer.problems:
        return doubtful(item.serial, answer.problems, answer.path)
    total = Decimal(0)
    for side in ("device", "port"):
        for kind in ("fatal", "nonfatal"):
            told = answer.one(f"aer.{kind}", address=seen.address, side=side)
            if told is None or not isinstance(told.value, Decimal):
                return unknown(
                    "{s}: {kind} errors of its {side} are not told",
                    "{s}：未报告其{side}的{kind}错误",
                    answer.path,
                    s=item.serial,
                    kind=KINDS[kind],
                    side=SIDES[side],
                )
            total += told.value
    words = {"s": item.serial, "at": seen.address, "n": f"{total:f}"}
    text = "{s} ({at}): {n} fatal or non-fatal errors, its port included", "{s}（{at}）：致命或非致命错误 {n} 次（含上游端口）"
    return (good if total == 0 else bad)(*text, answer.path, value=total, **words)


def _link_rate(seen: Item, storage: Packs) -> Decimal | None:
    """Return the bytes per second that a drive's link can carry as it was trained under load, or None."""
    pack = storage.get(seen.host)
    if pack is None or pack.trouble:
        return None
    answer = pack.answer(UNDER_LOAD)
    speed, width = answer.one("pci.speed", address=seen.address), answer.one("pci.width", address=seen.address)
    if (
        speed is None
        or width is None
        or not isinstance(speed.value, Decimal)
        or not isinstance(width.value, Decimal)
        or not speed.value * width.value
    ):
        return None
    return convert(speed.value * width.value * _ENCODING[speed.value < 8], "Gbit/s", "B/s")
