"""The checks of time and service: duration, soak clock, errors, their budget, restarts, injections."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

import numpy as np

from gates.g4.answers import answer, check, untold
from gates.g4.series import Soak
from gates.g4.timeline import APPROVED
from gates.model import CheckResult
from gates.readers.soak_records import SoakRecords
from gates.readers.soak_telemetry import DEAD, UNSEEN
from gates.readers.strict import at, count
from gates.rules.estimates import NS, beside, percent
from gates.rules.standing import Standing
from gates.rules.trends import worst_burn
from gates.text import Text

_HOUR = 3600
CRASHES = ("engine_exit", "oom", "oom_kill", "core_dump")  # events of the probe that say that the product ended by itself
RESTART = "engine_restart"  # its event for each process that it found in the place of another: it follows an exit, and tells of the same end
_OUTSIDE = Text("requests outside the labelled injections would tell", "标记的注入之外的请求方可判定")
_SHORT = 12  # a window of the error budget must still burn in its last twelfth (SRE workbook: 1 h with 5 min, 6 h with 30 min)


def duration(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check that the load lasted as long as the plan says, in one boot since the last restart, on the monotonic clock."""
    wanted, seen = soak.plan.g4.duration, soak.line.plan_seconds
    least = wanted.base / _HOUR
    hours = beside(Fraction(seen) / _HOUR, least, 3)
    files = soak.files("records.jsonl", "phases.jsonl")
    blank = check(soak, "duration", files)
    scale = soak.plan.rig.time_scale
    scaled = Text("", "") if scale == 1 else Text(f" (time scaled {scale:f} to 1)", f"（时间按 {scale:f} 比 1 缩放）")
    restarted = soak.line.start_ns > soak.line.boots[0].start_ns or len(soak.line.boots) > 1
    since = Text(" since the clock last restarted", "（自最近一次重新计时起）") if restarted else Text("", "")
    reason = Text("Under load for {h} h in one boot{r}{s} (at least {l}).", "同一次开机内持续加载 {h} h{r}{s}（下限 {l}）。").fill(
        h=hours, r=since, s=scaled, l=wanted
    )
    if seen < wanted.base:
        lacking = ((wanted.base - seen) / _HOUR).quantize(Decimal("0.001"), ROUND_CEILING)
        reason = Text(
            f"{reason.en} {lacking} h are missing; a soak that is too short proves nothing.",
            f"{reason.zh}尚缺 {lacking} h；时长不足，不能证明稳定性。",
        )
        change = Text(
            f"a soak that goes on for {lacking} h more in the same boot would have told",
            f"同一次开机内再持续 {lacking} h 方可判定",
        )
        return untold(blank, standing, reason=reason, change=change, value=hours, margin=hours - least)
    return answer(blank, standing, met=True, value=hours, reason=reason, margin=hours - least)


def soak_clock(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check that nothing broke the run, or only what has a cause that both parties approved (DESIGN 4.12)."""
    most, line = soak.plan.g4.clock.restarts_max, soak.line
    files = ("evidence/inputs.json", *soak.files("records.jsonl", "telemetry.jsonl"))
    blank = check(soak, "clock_restarts", files)
    value, margin = Decimal(len(line.breaks)), Decimal(most - len(line.breaks))
    if line.open:
        first, more = line.open[0], len(line.open) - 1
        others = Text(f" ({more} more such events.)", f"（另有 {more} 个此类事件。）") if more else Text("", "")
        reason = Text(first.lacks.en + others.en, first.lacks.zh + others.zh)
        return untold(blank, standing, reason=reason, change=APPROVED, value=value, margin=margin)
    reboots, seen = _reboots_told(soak)
    if reboots >= seen:
        reason = Text(
            "The probe recorded {r} reboots of the host, and the soak's files are of {n} boots: which of the two is so, nothing tells.",
            "探针记录主机重启 {r} 次，而稳定性运行的文件仅来自 {n} 次开机：二者何者属实无法判断。",
        ).fill(r=reboots, n=seen)
        change = Text("files of every boot, as the host wrote them, would tell", "由主机原样写下的各次开机文件方可判定")
        events = replace(blank, evidence=(*files, *soak.files("events.jsonl", "phases.jsonl")))
        return untold(events, standing, reason=reason, change=change, value=value, margin=margin)
    restarts = [b for b in line.breaks if b.approved]
    if not restarts:
        labelled = len(line.boots) - 1
        reason = Text("One boot of the host from beginning to end, no gap.", "全程为同一次开机，无间断。")
        if labelled:
            reason = Text(f"The host booted {labelled} times within labelled injections.", f"主机在已标记的注入中重启 {labelled} 次。")
        return answer(blank, standing, met=True, value=Decimal(0), reason=reason, margin=Decimal(most))
    told = "; ".join(f"{b.what.en} ({b.cause.text})" for b in restarts if b.cause)
    told_zh = "；".join(f"{b.what.zh}（{b.cause.text}）" for b in restarts if b.cause)
    reason = Text(
        f"The clock restarted {len(restarts)} times for causes that both parties approved (at most {most}): {told}.",
        f"因双方确认的原因重新计时 {len(restarts)} 次（上限 {most}）：{told_zh}。",
    )
    if len(restarts) > most:
        change = Text("a new attempt whose clock restarts at most {m} times would tell", "重新计时不超过 {m} 次的新尝试方可判定").fill(m=most)
        return untold(blank, standing, reason=reason, change=change, value=value, margin=margin)
    return answer(blank, standing, met=True, value=value, reason=reason, margin=margin)


def _reboots_told(soak: Soak) -> tuple[int, int]:
    """Return how many reboots the probe's own events tell of, and how many boots any of the soak's journals names."""
    events = [e for e in soak.pack.events if e.get("kind") == "host_rebooted"]
    before = [count(at(e, "detail", "boots_before")) or 0 for e in events]
    stored = soak.pack.stored.boots if soak.pack.stored is not None else ()
    boots = {*soak.records.boots, *soak.telemetry.boots, *stored}
    boots |= {str(row["boot_id"]) for row in soak.pack.phases if row.get("boot_id") is not None}
    return max([len(events), *before]), len(boots)


def error_rate(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check of failed requests over all requests of all boots, and over the stretch that proves the duration: the worse decides.

    Those within a labelled injection are left to its own check, those within an outage to its cause when both parties approved one. A stretch
    behind a restart must keep the limit by itself: the hours before would dilute its failures.
    """
    limit = soak.plan.g4.error_rate_max
    blank = check(soak, "error_rate", soak.files("records.jsonl"))
    counted = soak.records.where(soak.outside())
    if not len(counted):
        return untold(blank, standing, reason=Text("There are no requests to count.", "没有可统计的请求。"), change=_OUTSIDE)
    boots = len(soak.line.boots)
    where = Text(f" in {boots} boots", f"（{boots} 次开机合计）") if boots > 1 else Text("", "")
    stretch = soak.records.where(soak.outside() & soak.proven())
    if len(stretch) and _failed(stretch) > _failed(counted):
        counted, where = stretch, Text(" since the clock last restarted", "（自最近一次重新计时起）")
    rate = _failed(counted)
    told = beside(rate, limit)
    failed, kinds = len(counted) - int(counted.good.sum()), ", ".join(f"{kind} x {n}" for kind, n in sorted(counted.kinds().items()))
    reason = Text("{f} of {n} requests{w} failed: {v} (at most {l}){k}.", "{n} 个请求{w}中 {f} 个失败：{v}（上限 {l}）{k}。")
    reason = reason.fill(
        f=failed, n=len(counted), w=where, v=percent(rate, limit, places=3), l=percent(limit, places=1), k=f" ({kinds})" if kinds else ""
    )
    return answer(blank, standing, met=rate <= Fraction(limit), value=told, reason=reason, margin=limit - told)


def _failed(records: SoakRecords) -> Fraction:
    return Fraction(len(records) - int(records.good.sum()), len(records))


def error_budget(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return the checks of how fast failures use up what the error rate allows over the whole soak, in a short and in a long window.

    A rate over 72 h can hide an hour that a user would call an outage. The budget is error_rate_max times all requests; a window counts
    with at least `failures_min` failures, and only while its last twelfth still burns. Behind a restart the whole soak is the stretch that
    proves the duration, once there is one.
    """
    rule, limit = soak.plan.g4.error_budget, soak.plan.g4.error_rate_max
    counted = soak.records.where(soak.outside())
    whole = int((soak.outside() & soak.proven()).sum()) or len(counted)
    out = []
    for name, window, most in (("short", rule.window, rule.share_max), ("long", rule.long_window, rule.long_share_max)):
        blank = check(soak, f"error_budget_{name}", soak.files("records.jsonl"), name=str(window))
        budget = Fraction(limit) * whole
        if not len(counted):
            nothing = Text("There are no requests to count.", "没有可统计的请求。")
            out.append(untold(blank, standing, reason=nothing, change=_OUTSIDE))
            continue
        if not budget:
            nothing = Text("The plan allows no failure, so there is no budget to use up.", "计划不允许任何失败，故无预算可言。")
            out.append(answer(blank, standing, met=True, value=None, reason=nothing))
            continue
        worst, hour = None, Decimal(0)
        width = max(1, int(soak.plan.scaled_seconds(window.base / _SHORT) * NS))
        for boot in soak.line.boots:
            if boot.id not in counted.boots:
                continue
            mine = counted.boot == counted.boots.index(boot.id)
            bins = (counted.end[mine] - boot.start_ns) // width
            total = int(bins.max()) + 1 if len(bins) else 0
            requests = np.bincount(bins, minlength=total)
            failed = np.bincount(bins[~counted.good[mine]], minlength=total)
            found = worst_burn(requests.tolist(), failed.tolist(), bins=_SHORT, short=1, budget=budget, fewest=rule.failures_min)
            if found is not None and (worst is None or found.share > worst.share):
                worst, hour = found, soak.line.hour(boot.start_ns + (found.at + 1) * width, boot.id)
        share = beside(worst.share, most, 6) if worst else Decimal(0)
        if worst is None:
            reason = Text("No window of {w} has {n} failures.", "任何 {w} 窗口内的失败均少于 {n} 个。").fill(w=window, n=rule.failures_min)
        else:
            reason = Text(
                "The {w} up to hour {h} used {v} of the failures that the whole soak may have ({f} of {n} requests failed; at most {l}).",
                "截至第 {h} 小时的 {w} 用去全程允许失败数的 {v}（{n} 个请求中 {f} 个失败；上限 {l}）。",
            ).fill(w=window, h=f"{hour:.1f}", v=percent(worst.share, most), f=worst.failed, n=worst.requests, l=percent(most))
        met = worst is None or worst.share <= Fraction(most)
        out.append(answer(blank, standing, met=met, value=share, reason=reason, margin=most - share))
    return out


def engine_restarts(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check that the engine's process never ended, in any boot: by its identity in every sample, and by the events of the probe.

    What the host's own end took along is not the engine's: a process that is another one after a reboot counts by the reboot's cause.
    """
    most = soak.plan.g4.engine_restarts_max
    files = soak.files("telemetry.jsonl", "events.jsonl")
    blank = check(soak, "engine_restarts", files)
    ends: list[tuple[Decimal, str]] = []
    changes = unseen = seen = dead = 0
    for n, boot in enumerate(soak.line.boots):
        mine = soak.in_boot(boot.id)
        life, mono = soak.telemetry.life[mine], soak.telemetry.mono[mine]
        unseen += int((life == UNSEEN).sum())
        alive = life >= 0
        seen += int(alive.sum())
        begun = int(np.argmax(alive)) if n and alive.any() else 0  # after a reboot the engine has yet to be started
        gone = [int(ns) for ns in mono[begun:][life[begun:] == DEAD] if not soak.injected(boot.id, int(ns))]
        lives, when = life[alive], mono[alive]
        other = [int(when[k + 1]) for k in np.flatnonzero(np.diff(lives)) if not soak.injected(boot.id, int(when[k + 1]))]
        dead += bool(gone)
        changes += len(other)
        ends += [(soak.line.hour(ns, boot.id), boot.id) for ns in (*gone[:1], *other[:1])]
    told = [e for e in soak.pack.events if not soak.injected(str(e.get("boot_id")), count(e.get("mono_ns")) or 0)]
    crashes, again = [e for e in told if e.get("kind") in CRASHES], [e for e in told if e.get("kind") == RESTART]
    ends += [(soak.line.hour(count(e.get("mono_ns")) or soak.line.start_ns, str(e.get("boot_id"))), "") for e in (*crashes, *again)]
    number = max(changes, len(crashes), len(again), dead)
    if number:
        reason = Text("The engine's process ended {n} times, first at hour {h}.", "引擎进程退出 {n} 次，首次在第 {h} 小时。").fill(
            n=number, h=f"{min(ends)[0]:.2f}"
        )
    elif not seen or unseen:
        total = len(soak.telemetry)
        reason = Text(f"{unseen} of {total} samples do not show the engine's process.", f"{total} 个样本中有 {unseen} 个未显示引擎进程。")
        change = Text("a soak in which every sample shows the engine's process would tell", "每个样本均显示引擎进程的稳定性运行方可判定")
        return untold(blank, standing, reason=reason, change=change)
    else:
        reason = Text("One engine process in each boot, in {n} samples.", "每次开机期间均为同一引擎进程，共 {n} 个样本。").fill(n=seen)
        if len(soak.line.boots) == 1:
            reason = Text("One engine process from beginning to end, in {n} samples.", "全程为同一引擎进程，共 {n} 个样本。").fill(n=seen)
    return answer(blank, standing, met=number <= most, value=Decimal(number), reason=reason, margin=Decimal(most - number))
