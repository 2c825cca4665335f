"""The checks of load: duration, soak clock, errors, restarts, drift and excursion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import Any

from gates.bundle import Bundle
from gates.g4.series import Clock, Injection, Slice, theil_sen, worst_shift
from gates.model import CheckResult, Limit, Verdict
from gates.plan import Plan
from gates.readers.run_pack import Pack, Request
from gates.readers.strict import at, count
from gates.rules.estimates import NS, percent, to_decimal
from gates.rules.standing import Standing, refused
from gates.text import Text

_HOUR = 3600


@dataclass(frozen=True)
class Soak:
    """What the soak's checks are made from."""

    plan: Plan
    bundle: Bundle
    pack: Pack
    clock: Clock
    requests: tuple[Request, ...]  # of the last boot
    slices: tuple[Slice, ...]
    injections: tuple[Injection, ...]

    def injected(self, ns: int, boot_id: Any) -> bool:
        """Return whether a moment lies within a labelled injection."""
        return any(i.covers(ns, boot_id) for i in self.injections)

    def files(self, *names: str) -> tuple[str, ...]:
        """Return bundle paths of the pack's files."""
        return tuple(self.pack.path(n) for n in names)


def answer(
    check: CheckResult, standing: Standing, *, met: bool | None, value: Decimal | None, reason: Text, margin: Decimal | None = None
) -> CheckResult:
    """Return a check with its answer, unless validity forbids one. `met` None: it cannot be known."""
    refusal = standing.performance()
    if refusal:
        return refused(check, refusal)
    verdict = Verdict.INCONCLUSIVE if met is None else Verdict.PASS if met else Verdict.FAIL
    return replace(check, verdict=verdict, reason=reason, value=value, margin=margin)


def check(ident: str, title: Text, limit: Limit, source: str, files: tuple[str, ...], unit: str = "1") -> CheckResult:
    """Return a check of the soak that is not answered yet."""
    blank = Text("Not judged.", "未判定。")
    quantity = ident.partition(".")[0]
    return CheckResult(
        f"g4.{ident}", title, Verdict.INCONCLUSIVE, blank, quantity=quantity, unit=unit, limit=limit, arm="candidate", source=source, evidence=files
    )


def duration(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check that the load lasted as long as the plan says, in one boot, on the monotonic clock."""
    wanted, seen = soak.plan.g4.duration, soak.clock.plan_seconds
    hours, least = to_decimal(Fraction(seen) / _HOUR, 3), wanted.base / _HOUR
    blank = check(
        "duration", Text("Soak duration", "稳定性运行时长"), Limit(">=", low=least), "g4.duration", soak.files("records.jsonl", "phases.jsonl"), "h"
    )
    scale = soak.plan.rig.time_scale
    scaled = Text("", "") if scale == 1 else Text(f" (time scaled {scale:f} to 1)", f"（时间按 {scale:f} 比 1 缩放）")
    reason = Text("Under load for {h} h in one boot{s} (at least {l}).", "同一次开机内持续加载 {h} h{s}（下限 {l}）。").fill(
        h=hours, s=scaled, l=wanted
    )
    met = True if seen >= wanted.base else None
    if met is None:
        reason = Text(reason.en + " A soak that is too short proves nothing.", reason.zh + "时长不足，不能证明稳定性。")
    return answer(blank, standing, met=met, value=hours, reason=reason, margin=hours - least)


def soak_clock(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check that the soak's clock did not restart, or restarted only for causes that both parties approved (DESIGN 4.12)."""
    most = soak.plan.g4.clock.restarts_max
    blank = check(
        "clock_restarts",
        Text("Soak clock", "稳定性计时"),
        Limit("<=", high=Decimal(most)),
        "g4.clock",
        ("evidence/inputs.json", *soak.files("records.jsonl")),
    )
    restarts = soak.clock.boots - 1
    causes = soak.bundle.inputs.get("rig_causes")
    approved = sum(1 for c in causes if at(c, "approved") is True) if isinstance(causes, list) else 0
    if restarts == 0:
        reason, met = Text("One boot of the host from beginning to end.", "全程为同一次开机。"), True
    elif approved < restarts:
        reason = Text(
            f"The host booted {restarts} times within the soak, {approved} of them with a cause that both parties approved.",
            f"运行期间主机重启 {restarts} 次，其中 {approved} 次原因经双方确认。",
        )
        return answer(blank, standing, met=None, value=Decimal(restarts), reason=reason, margin=Decimal(most - restarts))
    else:
        reason = Text(
            f"The clock was restarted {restarts} times for approved causes (at most {most}).",
            f"因双方确认的原因重新计时 {restarts} 次（上限 {most}）。",
        )
        return answer(
            blank, standing, met=True if restarts <= most else None, value=Decimal(restarts), reason=reason, margin=Decimal(most - restarts)
        )
    return answer(blank, standing, met=met, value=Decimal(0), reason=reason, margin=Decimal(most))


def error_rate(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check of failed requests over all requests, those within a labelled injection left to its own check."""
    limit = soak.plan.g4.error_rate_max
    blank = check("error_rate", Text("Error rate", "错误率"), Limit("<=", high=limit), "g4.error_rate_max", soak.files("records.jsonl"))
    counted = [
        r for r in soak.requests if not any(i.boot_id == r.boot_id and r.sent_ns <= i.to_ns and r.end_ns >= i.from_ns for i in soak.injections)
    ]
    failed = [r.failure for r in counted if r.failure is not None]
    if not counted:
        return answer(blank, standing, met=None, value=None, reason=Text("There are no requests to count.", "没有可统计的请求。"))
    rate = Fraction(len(failed), len(counted))
    kinds = ", ".join(f"{k} x {failed.count(k)}" for k in sorted(set(failed)))
    reason = Text("{f} of {n} requests failed: {v} (at most {l}){k}.", "{n} 个请求中 {f} 个失败：{v}（上限 {l}）{k}。")
    reason = reason.fill(
        f=len(failed), n=len(counted), v=percent(rate, limit, places=3), l=percent(limit, places=1), k=f" ({kinds})" if kinds else ""
    )
    return answer(blank, standing, met=rate <= Fraction(limit), value=to_decimal(rate, 10), reason=reason, margin=limit - to_decimal(rate, 10))


def engine_restarts(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check that the engine's process never ended: by its identity in every sample, and by the events of the probe."""
    most = soak.plan.g4.engine_restarts_max
    blank = check(
        "engine_restarts",
        Text("Engine restarts", "引擎重启"),
        Limit("<=", high=Decimal(most)),
        "g4.engine_restarts_max",
        soak.files("telemetry.jsonl", "events.jsonl"),
    )
    rows = [t for t in soak.pack.telemetry if t.get("boot_id") == soak.clock.boot_id]
    seen: list[tuple[int, tuple[int, int]]] = []
    unseen = dead = 0
    for row in rows:
        mono, pid, ticks, alive = (
            count(row.get("mono_ns")),
            count(at(row, "engine", "pid")),
            count(at(row, "engine", "start_ticks")),
            at(row, "engine", "alive"),
        )
        if mono is None or not isinstance(alive, bool) or (alive and (pid is None or ticks is None)):
            unseen += 1
        elif not alive:
            dead += not soak.injected(mono, row.get("boot_id"))
        elif pid is not None and ticks is not None:
            seen.append((mono, (pid, ticks)))
    if not seen or unseen:
        reason = Text(f"{unseen} of {len(rows)} samples do not show the engine's process.", f"{len(rows)} 个样本中有 {unseen} 个未显示引擎进程。")
        return answer(blank, standing, met=None, value=None, reason=reason)
    changes = [b for a, b in itertools.pairwise(seen) if a[1] != b[1] and not soak.injected(b[0], soak.clock.boot_id)]
    exits = [e for e in soak.pack.events if e.get("kind") == "engine_exit" and not soak.injected(count(e.get("mono_ns")) or 0, e.get("boot_id"))]
    number = max(len(changes), len(exits), 1 if dead else 0)
    if number:
        when = min([b[0] for b in changes] + [count(e.get("mono_ns")) or soak.clock.start_ns for e in exits] or [seen[-1][0]])
        reason = Text("The engine's process ended {n} times, first at hour {h}.", "引擎进程退出 {n} 次，首次在第 {h} 小时。").fill(
            n=number, h=f"{soak.clock.hour(when):.2f}"
        )
    else:
        reason = Text("One engine process from beginning to end, in {n} samples.", "全程为同一引擎进程，共 {n} 个样本。").fill(n=len(seen))
    return answer(blank, standing, met=number <= most, value=Decimal(number), reason=reason, margin=Decimal(most - number))


def drift(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return the checks of TTFT p50 and throughput over time: no adverse change of level, no adverse trend over the whole soak."""
    usable, few = _usable(soak)
    out = []
    for name, shown, values, upwards in (
        ("ttft_p50", Text("TTFT p50", "TTFT p50"), [float(s.ttft_p50 or 0) for s in usable], True),
        ("throughput", Text("throughput", "吞吐"), [float(s.output_per_s) for s in usable], False),
    ):
        out.append(_level(soak, standing, name, shown, [s.index for s in usable], values, few, upwards=upwards))
        out.append(_trend(soak, standing, name, shown, [(float(s.index), v) for s, v in zip(usable, values, strict=True)], few, upwards=upwards))
    return out


def _usable(soak: Soak) -> tuple[list[Slice], int]:
    """Return the windows that carry a median and no injection, and how many had too few requests."""
    width = int(soak.plan.scaled_seconds(soak.plan.g4.window.base) * NS)
    clean = [
        s
        for s in soak.slices
        if not any(i.boot_id == soak.clock.boot_id and i.from_ns < s.start_ns + width and i.to_ns > s.start_ns for i in soak.injections)
    ]
    usable = [s for s in clean if s.ttft_p50 is not None and s.output_per_s > 0]
    return usable, len(clean) - len(usable)


def _too_few(soak: Soak, usable: int, few: int) -> Text | None:
    """Return why the windows do not carry a judgement, or None."""
    least, share = 2 * soak.plan.g4.change_point.windows_min, soak.plan.g4.coverage_min
    if usable >= least and usable >= share * (usable + few):
        return None
    return Text(
        "{u} of {n} windows of {w} have at least {r} requests; it takes {l} windows, and {s} of all: not judged.",
        "{n} 个 {w} 窗口中有 {u} 个达到 {r} 个请求；至少需 {l} 个窗口且占比 {s}：不作判定。",
    ).fill(u=usable, n=usable + few, w=soak.plan.g4.window, r=soak.plan.g4.window_requests_min, l=least, s=percent(share, places=0))


def _level(
    soak: Soak, standing: Standing, name: str, shown: Text, index: Sequence[int], values: Sequence[float], few: int, *, upwards: bool
) -> CheckResult:
    limit, rule = soak.plan.g4.hourly_drift_max, soak.plan.g4.change_point
    title = Text("No change of level: {n}", "无水平突变：{n}").fill(n=shown)
    blank = check(f"drift_{name}", title, Limit("<=", high=limit), "g4.hourly_drift_max", soak.files("records.jsonl"))
    short = _too_few(soak, len(values), few)
    if short:
        return answer(blank, standing, met=None, value=None, reason=short)
    shift = worst_shift(values, upwards=upwards, least=rule.windows_min, p_max=float(rule.p_max))
    size = Decimal(0) if shift is None else Decimal(repr(round(shift.size, 10)))
    if shift is None:
        reason = Text("{k} windows of {w}: no adverse change of level that can be told from noise.", "{k} 个 {w} 窗口：没有可与噪声区分的不利突变。")
        reason = reason.fill(k=len(values), w=soak.plan.g4.window)
    else:
        hour = soak.clock.hour(soak.slices[index[shift.at]].start_ns)
        reason = Text("{n} is worse by {v} from hour {h} on (at most {l}; p = {p}).", "{n}自第 {h} 小时起变差 {v}（上限 {l}；p = {p}）。")
        reason = reason.fill(n=shown, v=percent(size, limit), h=f"{hour:.1f}", l=percent(limit), p=f"{shift.p:.1e}")
    return answer(blank, standing, met=size <= limit, value=size, reason=reason, margin=limit - size)


def _trend(soak: Soak, standing: Standing, name: str, shown: Text, points: Sequence[tuple[float, float]], few: int, *, upwards: bool) -> CheckResult:
    limit = soak.plan.g4.excursion_max
    title = Text("No trend over the soak: {n}", "全程无趋势：{n}").fill(n=shown)
    blank = check(f"excursion_{name}", title, Limit("<=", high=limit), "g4.excursion_max", soak.files("records.jsonl"))
    short = _too_few(soak, len(points), few)
    fit = theil_sen(points, float(soak.plan.decision.confidence)) if short is None else None
    if short or fit is None:
        return answer(blank, standing, met=None, value=None, reason=short or Text("Too few windows for a trend.", "窗口过少，无法判断趋势。"))
    change = fit[0] * (points[-1][0] - points[0][0]) / median(v for _, v in points)
    adverse = Decimal(repr(round(max(change if upwards else -change, 0.0), 10)))
    reason = Text(
        "A straight line through the windows changes {n} for the worse by {v} over the soak (at most {l}).",
        "各窗口的拟合直线表明{n}全程变差 {v}（上限 {l}）。",
    )
    reason = reason.fill(n=shown, v=percent(adverse, limit), l=percent(limit))
    return answer(blank, standing, met=adverse <= limit, value=adverse, reason=reason, margin=limit - adverse)


def injection_checks(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return one check for each labelled injection: service is whole again in the window after it."""
    width = int(soak.plan.scaled_seconds(soak.plan.g4.window.base) * NS)
    out = []
    for number, found in enumerate(soak.injections, 1):
        after = [r for r in soak.requests if r.boot_id == found.boot_id and found.to_ns < r.sent_ns <= found.to_ns + width]
        failed = sum(r.failure is not None for r in after)
        title = Text("Recovery after injection: {l}", "注入后恢复：{l}").fill(l=found.label)
        blank = check(f"injection_{number}", title, Limit("<=", high=Decimal(0)), "DESIGN 4.12", soak.files("records.jsonl"))
        reason = Text("{f} of {n} requests sent in the window after it failed.", "其后一个窗口内发出的 {n} 个请求中 {f} 个失败。").fill(
            f=failed, n=len(after)
        )
        met = failed == 0 if after else None
        out.append(answer(blank, standing, met=met, value=Decimal(failed), reason=reason, margin=Decimal(-failed)))
    return out
