"""The checks of telemetry: growth of memory and handles, coverage, gaps, and counters that must not grow."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gates.g4.answers import answer, check, declared_as, untold
from gates.g4.over_boots import Step, steps
from gates.g4.series import Soak
from gates.g4.timeline import APPROVED, stamps_of
from gates.model import CheckResult
from gates.rules.estimates import NS, beside, percent, to_decimal
from gates.rules.standing import Standing
from gates.rules.trends import Exact, middle_of, theil_sen, thin
from gates.steps import telemetry_period_ns
from gates.text import Text

_PAGE, _KIB = 4096, 1024  # the kernel counts resident memory in pages (4 KiB or a multiple of it), free memory in KiB
_UNBROKEN = Text(
    "a soak without a reboot, or with the counter where it must be in the first sample of each boot, would tell",
    "没有重启的稳定性运行，或每次开机首个样本中该计数与应有值一致的稳定性运行，方可判定",
)
_HANDLES = ("fds", "threads", "kv")  # kv: bytes of the files of the external tier


def _lives(soak: Soak) -> Text:
    """Return what telemetry it takes for a trend: one engine process, seen behind the warm-up in the planned share of all samples."""
    told = Text(
        "a soak in which one engine process is seen after {w} in at least {s} of all samples would tell",
        "预热 {w} 后至少 {s} 的样本均为同一引擎进程的稳定性运行方可判定",
    )
    return told.fill(w=soak.plan.g4.leak.warmup, s=percent(soak.plan.g4.coverage_min, places=0))


def leak(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check of memory growth after the warm-up.

    The lower bound of the Theil-Sen slope of the engine's resident memory, over the plan's horizon, as a share of the memory that was free
    at the end of the warm-up. Time is the plan's.
    """
    rule = soak.plan.g4.leak
    limit = rule.headroom_share_max
    blank = check(soak, "leak", soak.files("telemetry.jsonl"))
    points, enough = _longest_life(soak, "rss")
    rows = _after_warmup(soak)
    known = soak.telemetry.gauges["free"][rows]
    free = next((int(f) for f in known if f > 0), None)
    fit = theil_sen(points, float(soak.plan.decision.confidence))
    if fit is None or not free or not enough:
        text = Text(
            "{n} samples of one engine process after the warm-up show its memory: too few to tell.",
            "预热后仅有 {n} 个同一引擎进程的内存样本：不足以判断。",
        )
        return untold(blank, standing, reason=text.fill(n=len(points)), change=_lives(soak))
    totals = {int(t) for t in soak.telemetry.gauges["total"][rows]}
    if len(totals) != 1 or max(free, *(value for _, value in points)) > (total := totals.pop()) or total % _KIB:
        # Free memory in another unit would hide a leak, so the host must tell, unchanged, a total that holds both.
        text = Text(
            "The host's total memory is not told, or is less than what is said of it: the unit is doubtful.",
            "未提供主机总内存，或其小于所报用量：单位存疑。",
        )
        change = Text(
            "telemetry that tells the host's total memory, in bytes, in every sample would tell", "每个样本均以字节给出主机总内存的遥测方可判定"
        )
        return untold(blank, standing, reason=text, change=change)
    if any(value % _PAGE for _, value in points) or free % _KIB:
        text = Text("Memory is not told in whole pages: its unit is doubtful.", "内存数值不是整页：单位存疑。")
        return untold(blank, standing, reason=text, change=Text("telemetry that tells memory in bytes would tell", "以字节给出内存的遥测方可判定"))
    growth = _grown(soak, fit[1])
    exact = growth / free
    share = beside(exact, limit)
    reason = Text(
        "Memory grows by at least {g} MiB over {h}, {v} of the {f} MiB that were free (at most {l}); estimate {e} MiB/h.",
        "内存在 {h} 内至少增长 {g} MiB，为可用 {f} MiB 的 {v}（上限 {l}）；估计 {e} MiB/h。",
    ).fill(g=to_decimal(growth / 2**20, 1), h=rule.horizon, v=percent(share, limit), f=free // 2**20, l=percent(limit), e=_mib_per_hour(soak, fit[0]))
    return answer(blank, standing, met=exact <= Fraction(limit), value=share, reason=reason, margin=limit - share)


def handles(soak: Soak, standing: Standing) -> list[CheckResult | dict[str, Any]]:
    """Return the advisory checks of open files, threads and the tier's files: the lower bound of their growth over the horizon against their level.

    A tier whose files nobody sees, for want of a folder, has none to judge.
    """
    rule, out = soak.plan.g4.leak, list[CheckResult | dict[str, Any]]()
    for name in _HANDLES:
        if name == "kv" and not (soak.telemetry.gauges["kv"] > 0).any():
            out.append(declared_as("leak_kv").not_told(soak.plan))
            continue
        limit = rule.handles_growth_max
        files = soak.files("telemetry.jsonl")
        blank = check(soak, f"leak_{name}", files)
        points, enough = _longest_life(soak, name)
        fit = theil_sen(points, float(soak.plan.decision.confidence))
        level = middle_of([v for _, v in points]) if points else Fraction(0)
        if fit is None or not enough or level <= 0:
            text = Text("{n} samples show it: too few to tell.", "仅有 {n} 个样本：不足以判断。").fill(n=len(points))
            out.append(untold(blank, standing, reason=text, change=_lives(soak)))
            continue
        exact = _grown(soak, fit[1]) / level
        share = beside(exact, limit)
        reason = Text(
            "It grows by at least {v} of its level ({n}) over {h} (at most {l}).", "在 {h} 内至少增长为其水平（{n}）的 {v}（上限 {l}）。"
        ).fill(v=percent(share, limit), n=to_decimal(level, 0), h=rule.horizon, l=percent(limit))
        out.append(answer(blank, standing, met=exact <= Fraction(limit), value=share, reason=reason, margin=limit - share))
    return out


def _grown(soak: Soak, per_ns: Fraction) -> Fraction:
    """Return the growth over the plan's horizon, 0 where it shrinks, from a slope per ns of the clock."""
    return max(Fraction(0), per_ns) * Fraction(soak.plan.g4.leak.horizon.base) * NS / Fraction(soak.line.scale)


def _mib_per_hour(soak: Soak, per_ns: Fraction) -> Decimal:
    return to_decimal(per_ns * 3600 * NS / Fraction(soak.line.scale) / 2**20, 3)


def _after_warmup(soak: Soak) -> Any:
    """Return which samples of the counted stretch lie behind the warm-up (a mask)."""
    begun = soak.line.start_ns + int(soak.plan.scaled_seconds(soak.plan.g4.leak.warmup.base) * NS)
    return soak.counted() & (soak.telemetry.mono >= begun)


def _longest_life(soak: Soak, gauge: str) -> tuple[Sequence[tuple[Exact, Exact]], bool]:
    """Return (ns of the clock, value) of the engine process that was seen most often, and whether that is enough of all samples.

    A labelled injection may end the process; then the longest life must hold its share of the samples.
    """
    rows = _after_warmup(soak)
    mono, life, values = soak.telemetry.mono[rows], soak.telemetry.life[rows], soak.telemetry.gauges[gauge][rows]
    known = (values > 0) & (life >= 0)
    if not known.any():
        return (), False
    mine = known & (life == np.bincount(life[known]).argmax())
    points = list(zip((mono[mine] - soak.line.start_ns).tolist(), values[mine].tolist(), strict=True))
    enough = len(points) >= soak.plan.g4.coverage_min * len(mono) / (len(soak.injections) + 1)
    return thin(points), enough


def coverage(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return the checks that telemetry covered the counted stretch: the share of time with a sample near by, and the largest gap.

    Time further than two sampling periods from the sample before it is not covered. Both ends of the stretch count. Missing telemetry is
    never a fail of the product and never a pass; where both parties approved the cause of a gap, the clock restarted behind it.
    """
    files, line = soak.files("telemetry.jsonl"), soak.line
    inside = stamps_of(soak.telemetry, line.boot_id, line.start_ns, line.end_ns)
    gaps = np.diff(np.concatenate([[line.start_ns], inside, [line.end_ns]]))
    period, span = telemetry_period_ns(soak.plan), line.end_ns - line.start_ns
    limit, most = soak.plan.g4.coverage_min, soak.plan.g4.gap_max
    covered = 1 - Fraction(int(np.maximum(gaps - 2 * period, 0).sum()), max(span, 1))
    first = check(soak, "telemetry_coverage", files)
    reason = Text("{n} samples cover {v} of the soak (at least {l}).", "{n} 个样本覆盖全程的 {v}（下限 {l}）。").fill(
        n=len(inside), v=percent(covered, limit), l=percent(limit)
    )
    share = beside(covered, limit, 6)
    longest = Fraction(int(gaps.max()), NS) * Fraction(line.scale)
    second = check(soak, "telemetry_gap", files)
    told = Text("The largest gap is {v} s (at most {l}).", "最大间隔 {v} s（上限 {l}）。").fill(v=beside(longest, most.base, 1), l=most)
    worst = beside(longest, most.base, 3)
    if len(inside) and covered >= Fraction(limit):
        out = [answer(first, standing, met=True, value=share, reason=reason, margin=share - limit)]
    else:
        lacking = to_decimal((Fraction(limit) - covered) * span / NS * Fraction(line.scale) / 3600, 3)
        change = Text(
            "telemetry over {h} h more of the soak would have told; a new attempt must keep it up", "再有 {h} h 的遥测即可判定；新的尝试须保持采集"
        )
        out = [untold(first, standing, reason=reason, change=change.fill(h=lacking), value=share, margin=share - limit)]
    if len(inside) and longest <= Fraction(most.base):
        return [*out, answer(second, standing, met=True, value=worst, reason=told, margin=most.base - worst)]
    change = Text(
        "a soak without a gap of more than {l}, or a cause of it that both parties approve and the whole duration behind it, would tell",
        "样本间隔不超过 {l} 的稳定性运行，或间隔原因经双方确认且其后时长满足要求，方可判定",
    )
    return [*out, untold(second, standing, reason=told, change=change.fill(l=most), value=worst, margin=most.base - worst)]


def fatal_counters(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return one check for each fatal counter of the plan: it was seen from beginning to end of every boot, and never grew.

    Within a boot it may not go back; where it does, that is a gap (gates.g4.timeline), and growth before and behind the gap still counts. Over a
    reboot a drive's counter goes on: more than before is growth, less is in doubt. Any other starts from 0: where its first sample says more, it
    grew with nobody looking, in the boot that the clock counts or while the host came up, and nothing is concluded.
    """
    return [_counter(soak, standing, name) for name in soak.plan.g4.fatal_counters]


def _counter(soak: Soak, standing: Standing, name: str) -> CheckResult:
    blank = check(soak, f"counter_{name}", soak.files("telemetry.jsonl"), name=name)
    values, mono = soak.telemetry.counters[name], soak.telemetry.mono
    total, missing = len(values), int(((values < 0) | (mono < 0) | (soak.telemetry.boot < 0)).sum())
    grown, when, known = 0, None, (values >= 0) & (mono >= 0)
    for boot in soak.line.boots:
        mine = known & soak.in_boot(boot.id)
        kept, stamps = values[mine], mono[mine]
        for n in np.flatnonzero(np.diff(kept) > 0):
            if not soak.injected(boot.id, int(stamps[n + 1])):
                grown += int(kept[n + 1] - kept[n])
                hour = soak.line.hour(int(stamps[n + 1]), boot.id)
                when = hour if when is None else min(when, hour)
    over = steps(soak, name)
    for step in over:
        if step.kept and step.grown:
            grown += step.grown
            hour = soak.line.hour(step.at_ns, step.boot_id)
            when = hour if when is None else min(when, hour)
    if when is not None:
        reason = Text("It grew by {g}, first at hour {h}.", "增长 {g}，首次在第 {h} 小时。").fill(g=grown, h=f"{when:.2f}")
        return answer(blank, standing, met=False, value=Decimal(grown), reason=reason, margin=Decimal(-grown))
    if not total or missing:
        text = Text("It is missing in {m} of {n} samples.", "{n} 个样本中有 {m} 个缺少该计数。").fill(m=missing, n=total)
        change = Text("a soak in which every sample tells {n} would tell", "每个样本均给出 {n} 的稳定性运行方可判定").fill(n=name)
        return untold(blank, standing, reason=text, change=change)
    went_back = [b for b in soak.line.open if b.kind == "counter_reset" and b.host == soak.host and name in b.what.en]
    if went_back:
        return untold(blank, standing, reason=went_back[0].lacks, change=APPROVED)
    if unseen := next((step for step in over if step.went_back or (step.grown and not step.kept)), None):
        return untold(blank, standing, reason=_unseen(unseen), change=_UNBROKEN)
    reason = Text("It stayed at {v} in {n} samples.", "在 {n} 个样本中保持 {v}。").fill(v=int(values[-1]), n=total)
    return answer(blank, standing, met=True, value=Decimal(0), reason=reason, margin=Decimal(0))


def _unseen(step: Step) -> Text:
    """Return why nothing is concluded from what a counter says across a reboot."""
    if step.went_back:
        text = Text(
            "It went from {a} back to {v} over a reboot (boot {b}): another drive, or a log that was cleared.",
            "重启后（开机标识 {b}）由 {a} 回退到 {v}：更换了硬盘，或日志被清除。",
        )
    else:
        text = Text(
            "It starts from 0 with each boot and was {v} in the first sample of boot {b}: it grew with nobody looking.",
            "该计数每次开机从 0 开始，而开机 {b} 的首个样本已为 {v}：其增长过程没有样本。",
        )
    return text.fill(a=step.last, v=step.first, b=step.boot_id)


def rss_by_slice(soak: Soak) -> dict[int, int]:
    """Return the median resident memory of the engine in each window, of several hosts the largest, for the chart."""
    if len(soak.places) > 1:
        rows = [rss_by_slice(view) for view in soak.places]
        return {n: max(row[n] for row in rows if n in row) for n in sorted({n for row in rows for n in row})}
    mine = soak.counted() & (soak.telemetry.gauges["rss"] > 0)
    bins = (soak.telemetry.mono[mine] - soak.line.start_ns) // soak.width_ns
    values = soak.telemetry.gauges["rss"][mine]
    order = np.argsort(bins, kind="stable")
    found, edges = np.unique(bins[order], return_index=True)
    return {int(b): int(np.median(part)) for b, part in zip(found, np.split(values[order], edges[1:]), strict=True)} if len(found) else {}
