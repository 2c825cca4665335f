"""The error log of the drives: what it names, and whether it keeps what was counted.

Two readings, before and after the raw reads. An empty log proves nothing where the drive's life-long count, its number of places or the other
reading says that an entry is missing: a log that lost entries is never silently fine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_host import LOG_KEPT
from gates.g1.declared_more import ERROR_LOG
from gates.g1.inventory import Inventory
from gates.g1.order import Packed
from gates.g1.pack import HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

LOG, HEALTH, IDENTITY = "nvme-error-log", "nvme-smart-log", "nvme-id-ctrl"
ASKED = Decimal(64)  # entries that nvme-cli asks for where nobody says how many (its default of --log-entries), or as many as the drive has
_EMPTIED = Text(
    "the drive's own account of when its log was emptied, or a drive without such errors, would tell", "硬盘日志清空记录，或无此类错误的硬盘方可判定"
)


@dataclass(frozen=True)
class Seen:
    """One reading of one drive: errors counted in its life, the numbers of those in its log, and how many the log can hold."""

    counted: Decimal
    numbers: frozenset[Decimal]
    places: Decimal
    paths: tuple[str, ...]

    @property
    def full(self) -> bool:
        """Return whether newer errors may have pushed out older ones."""
        return len(self.numbers) >= self.places


def errors_check(
    plan: Plan, drives: tuple[Packed, ...], inventory: Inventory, survey: Mapping[str, HostPack], storage: Mapping[str, HostPack]
) -> CheckResult | dict[str, Any]:
    """Return the check of what the error logs name, over every delivered drive: none may name a failed command."""
    findings = [_named_in_log(item, inventory, survey, storage) for item in drives]
    values = [f.value for f in findings if f.value is not None]
    passed = Text("No drive has logged a failed command ({n} in all).", "全部 {n} 块硬盘均无失败命令记录。")
    brought = any(pack.names(LOG) for pack in survey.values() if not pack.trouble)
    result = conclude(ERROR_LOG.blank(plan), findings, passed=passed, value=max(values, default=None))
    return by_agreement(ERROR_LOG, plan, result, brought=brought)


def _named_in_log(item: Packed, inventory: Inventory, survey: Mapping[str, HostPack], storage: Mapping[str, HostPack]) -> Finding:
    """Return what a drive's log names; where it names nothing, whether that is all that there was to name."""
    seen = inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=item.serial)
    pack, later = survey[seen.host], storage.get(seen.host)
    log = pack.answer(f"{LOG}.{seen.name}")
    entries = log.one("errorlog.entries")
    if log.problems or entries is None or not isinstance(entries.value, Decimal):
        return doubtful(item.serial, log.problems, log.path)
    if entries.value:
        text = "{s}: {n} failed commands", "{s}：{n} 条失败命令"
        return bad(*text, log.path, value=entries.value, s=item.serial, n=f"{entries.value:f}")
    read = _reading(item.serial, seen.name, pack)
    if isinstance(read, Finding):
        return read
    identity = pack.answer(f"{IDENTITY}.{seen.name}")
    own = identity.one("drive.error_log_places")  # a drive or a tool that does not tell it is held against its count alone
    if own is not None and isinstance(own.value, Decimal) and read.places < min(ASKED, own.value):
        text = "{s}: {n} places of its error log are told, it has {m}", "{s}：错误日志只报告了 {n} 个位置，应有 {m} 个"
        return unknown(*text, log.path, identity.path, s=item.serial, n=f"{read.places:f}", m=f"{own.value:f}")
    short = _short(item.serial, read)
    if short is not None:
        return short
    if later is not None and not later.trouble and later.names(LOG):  # an earlier survey read the logs once
        after = _reading(item.serial, named(later, item.serial) or seen.name, later)
        if isinstance(after, Finding):
            return after
        if after.numbers != read.numbers:
            text_en = "{s}: its error log names nothing in the first reading and {n} commands in the second"
            text = text_en, "{s}：错误日志首次读取为空，第二次为 {n} 条"
            return unknown(*text, *read.paths, *after.paths, s=item.serial, n=len(after.numbers))
    return good("{s}: 0 failed commands", "{s}：0 条失败命令", *read.paths, value=Decimal(0), s=item.serial)


def log_check(
    plan: Plan, drives: tuple[Packed, ...], inventory: Inventory, survey: Mapping[str, HostPack], storage: Mapping[str, HostPack]
) -> CheckResult | dict[str, Any]:
    """Return the check over every delivered drive. The error count only grows and is kept over power cycles (NVMe base specification)."""
    if not any(pack.names(LOG) for pack in (*survey.values(), *storage.values()) if not pack.trouble):
        return LOG_KEPT.not_told(plan)
    findings = [_of_drive(item, inventory, survey, storage) for item in drives]
    values = [f.value for f in findings if f.value is not None]
    passed = Text("Every error log holds what its drive counted, in both readings ({n} in all).", "全部 {n} 块硬盘两次读取的错误日志均与其计数一致。")
    return conclude(LOG_KEPT.blank(plan), findings, passed=passed, value=max(values, default=None))


def _of_drive(item: Packed, inventory: Inventory, survey: Mapping[str, HostPack], storage: Mapping[str, HostPack]) -> Finding:
    seen = inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=item.serial)
    readings: list[Seen] = []
    for pack in (survey.get(seen.host), storage.get(seen.host)):
        if pack is None or pack.trouble:
            return unknown("{s}: its log was not read twice", "{s}：未两次读取其日志", s=item.serial)
        # A drive may bear another name in the later step: its serial number there says which.
        read = _reading(item.serial, named(pack, item.serial) or seen.name, pack)
        if isinstance(read, Finding):
            return read
        readings.append(read)
    before, after = readings
    paths, words = (*before.paths, *after.paths), {"s": item.serial, "a": f"{before.counted:f}", "b": f"{after.counted:f}"}
    if after.counted < before.counted:
        text = "{s}: it counted {a} errors in its life, and later {b}", "{s}：累计错误数由 {a} 变为 {b}"
        return bad(*text, *paths, value=before.counted - after.counted, **words)
    lost = sorted(before.numbers - after.numbers)
    if lost and not after.full:
        text = "{s}: entries {l} of its error log are gone in the second reading", "{s}：第二次读取时错误日志条目 {l} 已消失"
        return bad(*text, *paths, value=Decimal(len(lost)), s=item.serial, l=", ".join(f"{n:f}" for n in lost[:8]))
    for one in readings:
        short = _short(item.serial, one)
        if short is not None:
            return short
    if after.counted > before.counted:
        text = "{s}: {n} commands failed while it was read", "{s}：读取期间有 {n} 条命令失败"
        return bad(*text, *paths, value=after.counted - before.counted, s=item.serial, n=f"{after.counted - before.counted:f}")
    return good("{s}: {a} errors, all in its log", "{s}：{a} 条错误均在日志中", *paths, value=Decimal(0), **words)


def _short(serial: str, read: Seen) -> Finding | None:
    """Return the finding of a log that holds fewer entries than were counted and have room in it, or None."""
    if len(read.numbers) >= min(read.counted, read.places):
        return None
    text = "{s}: it counted {c} errors in its life, its log holds {n}", "{s}：累计错误 {c} 条，日志中仅有 {n} 条"
    return unknown(*text, *read.paths, remedy=_EMPTIED, s=serial, c=f"{read.counted:f}", n=len(read.numbers))


def named(pack: HostPack, serial: str) -> str | None:
    """Return the controller behind a serial number as this step saw it, or None."""
    names = {o.labels["controller"] for o in pack.answer("nvme-list").all("drive.serial") if o.value == serial and "controller" in o.labels}
    return names.pop() if len(names) == 1 else None


def _reading(serial: str, controller: str, pack: HostPack) -> Seen | Finding:
    log, health = pack.answer(f"{LOG}.{controller}"), pack.answer(f"{HEALTH}.{controller}")
    for answer in (log, health):
        if answer.problems:
            return doubtful(serial, answer.problems, answer.path)
    counted, places = health.one("health.error_log_entries"), log.one("errorlog.places")
    numbers = frozenset(o.value for o in log.all("errorlog.number") if isinstance(o.value, Decimal))
    if counted is None or places is None or not isinstance(counted.value, Decimal) or not isinstance(places.value, Decimal):
        return unknown("{s}: what it counted is not told", "{s}：未报告累计错误数", log.path, health.path, s=serial)
    return Seen(counted.value, numbers, places.value, (log.path, health.path))
