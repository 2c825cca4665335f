"""The checks of labelled injections: was each carried out as agreed, by the probe's own record, and is service whole again behind it."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np

from gates.g4.answers import answer, check, untold
from gates.g4.series import Soak
from gates.g4.timeline import Injection
from gates.model import CheckResult
from gates.readers.strict import at, count
from gates.rules.estimates import NS
from gates.rules.standing import Standing
from gates.text import Text

_HOUR = 3600
_COMMANDS_S = 600  # the probe gives each of the two commands of an injection 300 s
_AGAIN = Text(
    "a soak in which it is carried out as agreed, its commands ending with 0, would tell", "按约定执行注入且命令以 0 结束的稳定性运行方可判定"
)
_UNRECORDED = Text(
    "The probe's record of it is not there exactly once, so whether anything was disturbed is not known.",
    "探针的注入记录缺失或重复，是否真正注入不得而知。",
)


def injection_checks(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return one check for each labelled injection: service is whole again in the window after it.

    One that was agreed and is not on record, whose command failed, that came at another hour or took far too long, says nothing of what it was to
    show: inconclusive.
    """
    out = []
    for number, found in enumerate(soak.injections, 1):
        sent, in_boot = soak.records.sent, np.zeros(len(soak.records), dtype=bool)
        if found.boot_id in soak.records.boots:
            in_boot = soak.records.boot == soak.records.boots.index(found.boot_id)
        after = soak.records.where(in_boot & (sent > found.to_ns) & (sent <= found.to_ns + soak.width_ns))
        failed = len(after) - int(after.good.sum())
        blank = check(soak, f"injection_{number}", soak.files("records.jsonl"), name=found.label)
        reason = Text("{f} of {n} requests sent in the window after it failed.", "其后一个窗口内发出的 {n} 个请求中 {f} 个失败。").fill(
            f=failed, n=len(after)
        )
        doubt, longer, change = _doubtful_record(soak, found), _mistimed(soak, found) or _outlasted(soak, found), None
        if not len(after):
            change = Text("requests sent within {w} after the injection would tell", "注入后 {w} 内发出的请求方可判定").fill(w=soak.plan.g4.window)
        elif not failed and doubt is not None:
            reason, change = doubt, _AGAIN
        if longer is not None and not failed:
            reason, change = longer, _AGAIN
        if change is not None:
            out.append(untold(blank, standing, reason=reason, change=change, value=Decimal(failed), margin=Decimal(-failed)))
        else:
            out.append(answer(blank, standing, met=not failed, value=Decimal(failed), reason=reason, margin=Decimal(-failed)))
    carried_out = Counter(found.label for found in soak.injections)
    for number, planned in enumerate(soak.plan.g4.injections, len(soak.injections) + 1):
        if carried_out[planned.label]:
            carried_out[planned.label] -= 1
            continue
        blank = check(soak, f"injection_{number}", soak.files("events.jsonl"), name=planned.label)
        told = Text("It was agreed for hour {h} and is not on record as carried out.", "约定于第 {h} 小时注入，记录中没有执行完毕。")
        out.append(untold(blank, standing, reason=told.fill(h=format(planned.at.base / _HOUR, "f")), change=_AGAIN))
    return out


def _mistimed(soak: Soak, found: Injection) -> Text | None:
    """Return what to say of an injection that did not begin when it was agreed to, give or take a window, or None.

    Its hour is counted from the first request of the boot in which it began: behind a reboot the job counts anew what had not begun before. One
    that falls due while another goes on waits for the end of that.
    """
    boot = next((b for b in soak.line.boots if b.id == found.boot_id), None)
    planned = [p for p in soak.plan.g4.injections if p.label == found.label]
    if boot is None or not planned:
        return None  # nothing was asked in that boot, or it was never agreed: both have words of their own
    ends = [i.to_ns for i in soak.injections if i.boot_id == found.boot_id and i.from_ns < found.from_ns]
    for p in planned:
        due = boot.start_ns + int(soak.plan.scaled_seconds(p.at.base) * NS)
        if due - soak.width_ns <= found.from_ns <= max([due, *ends]) + soak.width_ns:
            return None
    told = Text(
        "It began at hour {h} of the load, and hour {a} was agreed: what failed then is not what was agreed to.",
        "于加载第 {h} 小时开始，约定为第 {a} 小时：当时的失败不在约定之内。",
    )
    began = Decimal(found.from_ns - boot.start_ns) / NS * soak.line.scale / _HOUR
    return told.fill(h=f"{began:.2f}", a=" / ".join(f"{p.at.base / _HOUR:f}" for p in planned))


def _outlasted(soak: Soak, found: Injection) -> Text | None:
    """Return what to say of an injection that took much longer than agreed (a window, and the real time of its commands, are allowed on top)."""
    agreed = max((p.lasts for p in soak.plan.g4.injections if p.label == found.label), key=lambda lasts: lasts.base, default=None)
    took = found.to_ns - found.from_ns
    if agreed is None or took <= int(soak.plan.scaled_seconds(agreed.base) * NS) + soak.width_ns + _COMMANDS_S * NS:
        return None
    told = Text("It took {t} s where {l} were agreed: too long to say whose time that was.", "历时 {t} s，约定为 {l}：过长，无法判断责任归属。")
    return told.fill(t=f"{Decimal(took) / NS * soak.line.scale:.0f}", l=agreed)


def _doubtful_record(soak: Soak, found: Injection) -> Text | None:
    """Return why the probe's own record does not show that an injection was carried out, or None.

    The record (kind `injection`) holds the exit codes of both commands; null stands only for an end that the job gave no command for.
    """
    details = [at(e, "detail") for e in soak.pack.events if e.get("kind") == "injection"]
    told = [d for d in details if at(d, "label") == found.label and count(at(d, "from_ns")) == found.from_ns and at(d, "boot_id") == found.boot_id]
    if len(told) != 1:
        return _UNRECORDED
    planned = at(soak.pack.job, "soak", "injections")
    ends = [row for row in planned if at(row, "label") == found.label] if isinstance(planned, list) else []
    endless = len(ends) == 1 and not at(ends[0], "stop") and "end_exit" in told[0]
    for name in ("begin_exit",) if endless and told[0]["end_exit"] is None else ("begin_exit", "end_exit"):
        code = at(told[0], name)
        if not isinstance(code, int) or isinstance(code, bool):
            return Text(
                "How its command ended is not told, so whether anything was disturbed is not known.", "未记录其命令的结束状态，是否真正注入不得而知。"
            )
        if code:
            told_so = Text("Its command ended with {c}, so whether anything was disturbed is not known.", "其命令以 {c} 结束，是否真正注入不得而知。")
            return told_so.fill(c=code)
    return None
