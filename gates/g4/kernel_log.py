"""What the kernels of the soak's hosts wrote under load: paths, links, drives and memory that failed between two readings of any counter."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from gates.declared import by_agreement
from gates.g1.host_log import NAMES
from gates.g4.declared_parts import KERNEL_LOG
from gates.g4.series import Soak
from gates.g4.timeline import Boot
from gates.model import CheckResult
from gates.readers.boots import driver_of, engine_of
from gates.readers.kernel_log import FAMILIES, TOLD_ONLY
from gates.readers.soak_kernel import FILE, KernelLogs, KernelReading, read_kernel_logs
from gates.readers.strict import at
from gates.rules.estimates import NS
from gates.rules.findings import Finding, bad, conclude, good, unknown
from gates.rules.standing import Standing, refused
from gates.text import Text

# Real time on any rig: what a disturbance began may be told for so long behind its end. A command that hung times out after 30 s
# (nvme_core.io_timeout), a lost controller is tried again every 10 s (nvme connect --reconnect-delay).
_AFTER_NS = 60 * NS
_SHOWN = 120  # characters of a line in a sentence
_READABLE = Text(
    "a soak during which the account of the probe may read the kernel's log of {h} would tell: run it as root, or set sysctl "
    "kernel.dmesg_restrict=0, or add it to the group systemd-journal; `dmesg` or `journalctl -k -b` under that account must print lines",
    "探针账户可读取 {h} 内核日志的稳定性运行方可判定：以 root 运行，或设置 sysctl kernel.dmesg_restrict=0，或将其加入 systemd-journal 组；"
    "以该账户执行 `dmesg` 或 `journalctl -k -b` 应有输出",
)
_AGAIN = Text(
    "a soak whose kernel logs were brought whole from begin to end of the load would tell", "从加载开始到结束完整带回内核日志的稳定性运行方可判定"
)


@dataclass
class _Seen:
    """What one host's log told under load."""

    faults: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    hour: Decimal | None = None
    mended: int = 0
    excused: int = 0
    lines: int = 0
    doubts: list[Finding] = field(default_factory=list)


def kernel_log_check(soak: Soak, standing: Standing) -> CheckResult | dict[str, Any]:
    """Return the check over every host of the soak: the one that drove the load, and the engine's where that is another."""
    logs = read_kernel_logs(soak.bundle, soak.pack.folder)
    path = soak.pack.path(FILE)
    blank = KERNEL_LOG.blank(soak.plan, evidence=(path,))
    refusal = standing.performance()
    if refusal:
        return by_agreement(KERNEL_LOG, soak.plan, refused(blank, refusal), brought=logs is not None)
    seen = {host: _of_host(soak, host, logs or KernelLogs((), ()), path) for host in _hosts(soak)}
    findings = [finding for host, found in seen.items() for finding in _findings(host, found, path)]
    if logs is not None and logs.problems:
        findings.append(unknown("{w}", "{w}", path, remedy=_AGAIN, w=logs.problems[0].message))
    faults = sum(found.faults.total() for found in seen.values())
    passed = Text(
        "The kernel logs of {h} hosts, {l} lines under load, tell no fault; corrected PCIe errors: {m}; fault lines within planned injections or "
        "outages that both parties approved: {x}.",
        "{h} 台主机加载期间的内核日志共 {l} 行，无故障记录；已纠正 PCIe 错误：{m}；计划内注入或双方确认的中断之内的故障行：{x}。",
    ).fill(h=len(seen), l=sum(s.lines for s in seen.values()), m=sum(s.mended for s in seen.values()), x=sum(s.excused for s in seen.values()))
    told = logs is not None and not any(f.doubts for f in seen.values())
    result = conclude(blank, findings, passed=passed, value=Decimal(faults) if told or faults else None)
    result = replace(result, margin=None if result.value is None else -Decimal(faults), evidence=(path,))
    return by_agreement(KERNEL_LOG, soak.plan, result, brought=logs is not None)


def _hosts(soak: Soak) -> tuple[str, ...]:
    """Return the hosts of the soak by the job: the load generator first."""
    return tuple(dict.fromkeys((soak.pack.host, *_attended(soak))))


def _attended(soak: Soak) -> list[str]:
    given = soak.pack.job.get("attendants")
    return [str(at(row, "host")) for row in given] if isinstance(given, list) else []


def _findings(host: str, seen: _Seen, path: str) -> Iterator[Finding]:
    if seen.faults:
        rows = [
            Text("{n} x {f} (“{line}”)", "{f} {n} 条（“{line}”）").fill(n=n, f=NAMES[family], line=seen.first[family][:_SHOWN])
            for family, n in seen.faults.items()
        ]
        listed = Text(", ".join(row.en for row in rows), "，".join(row.zh for row in rows))
        text = "{h}, first at hour {t}: {f}", "{h}，首次在第 {t} 小时：{f}"
        yield bad(*text, path, value=Decimal(seen.faults.total()), h=host, t="?" if seen.hour is None else f"{seen.hour:.2f}", f=listed)
    yield from seen.doubts
    if not seen.faults and not seen.doubts:
        yield good("{h}: no fault", "{h}：无故障记录", path, value=Decimal(0), h=host)


def _of_host(soak: Soak, host: str, logs: KernelLogs, path: str) -> _Seen:
    seen, mine = _Seen(), [reading for reading in logs.readings if reading.host == host]
    if not mine:
        text = "{h}: no kernel log of the load was brought", "{h}：未带回加载期间的内核日志"
        seen.doubts.append(unknown(*text, path, remedy=_READABLE.fill(h=host), h=host))
        return seen
    for boot in soak.line.boots:
        _of_boot(soak, boot, host, mine, seen, path)
    return seen


def _of_boot(soak: Soak, boot: Boot, host: str, mine: Sequence[KernelReading], seen: _Seen, path: str) -> None:
    """Go through the readings of one boot from the last one before its load to the first one behind it."""
    drives, here = host == soak.pack.host, [r for r in mine if r.pair == boot.id]
    own = driver_of(boot.id) if drives else engine_of(boot.id, _attended(soak).index(host)) or next((r.boot for r in here), "")
    shifts = [0] if drives else [r.shift_ns for r in here if r.shift_ns is not None]
    readings = sorted((r for r in mine if r.boot == own), key=lambda r: r.at_ns)

    def doubt(en: str, zh: str, remedy: Text = _AGAIN, **words: Any) -> None:
        seen.doubts.append(unknown(en, zh, path, remedy=remedy, h=host, **words))

    if boot.end_ns <= boot.start_ns:
        return  # a boot without load
    if not readings or not shifts:
        doubt("{h}: no reading of its kernel log in boot {b}", "{h}：开机 {b} 内没有内核日志读数", b=boot.id)
        return
    shift = shifts[0]
    start, end = boot.start_ns + shift, boot.end_ns + shift
    before = [n for n, r in enumerate(readings) if r.at_ns <= start]
    behind = [n for n, r in enumerate(readings) if r.at_ns >= end]
    low, high = (before[-1] if before else 0), (behind[0] if behind else len(readings) - 1)
    if not before:
        doubt("{h}: its log was first read behind the begin of the load (boot {b})", "{h}：首次读取日志晚于加载开始（开机 {b}）", b=boot.id)
    if not behind and boot is soak.line.last:
        doubt("{h}: its log was not read behind the end of the load", "{h}：加载结束后未再读取日志")
    for n in (n for n in range(low, high + 1) if readings[n].problem is not None):
        why = str(readings[n].problem)[:200]
        doubt("{h}: its kernel log could not be read (“{w}”)", "{h}：无法读取内核日志（“{w}”）", _READABLE.fill(h=host), w=why)
        break
    for earlier, reading in itertools.pairwise(readings[low : high + 1]):
        _of_reading(soak, boot, shift, earlier, reading, seen)
        if reading.problem is None and (reading.begins or not reading.joined):
            doubt("{h}: lines were overwritten or cleared between two readings", "{h}：两次读取之间有日志行被覆盖或清除")
        if reading.left_out:
            doubt("{h}: {n} lines found no room in the evidence", "{h}：有 {n} 行日志超出证据容量", n=reading.left_out)


def _of_reading(soak: Soak, boot: Boot, shift: int, earlier: KernelReading, reading: KernelReading, seen: _Seen) -> None:
    """Count what is new in one reading. What came within an injection, or an outage that both parties approved, is no break."""
    for told in reading.lines:
        seen.lines += 1
        if told.family in TOLD_ONLY:
            seen.mended += 1
        if told.family not in FAMILIES or told.family in TOLD_ONLY:
            continue
        moment = reading.moment(told, earlier) - shift
        if _excused(soak, boot, moment):
            seen.excused += 1
            continue
        seen.faults[told.family] += 1
        seen.first.setdefault(told.family, told.line)
        hour = max(Decimal(0), soak.line.hour(moment, boot.id))
        seen.hour = hour if seen.hour is None else min(seen.hour, hour)


def _excused(soak: Soak, boot: Boot, moment: int) -> bool:
    outage = any(place == boot.id and low <= moment <= high + _AFTER_NS for place, low, high in soak.line.excused)
    return outage or soak.injected(boot.id, moment - _AFTER_NS, moment)
