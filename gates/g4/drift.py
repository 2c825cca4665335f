"""The checks of change over time: level, trend, steadiness.

A window without enough requests is a gap and stays one, but where it was under load: then its requests took too long, and it is a slow one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from gates.g4.answers import answer, check, untold
from gates.g4.series import Slice, Soak
from gates.model import CheckResult
from gates.rules.beside_best import Beside, beside_best
from gates.rules.estimates import NS, beside, percent
from gates.rules.levels import Stretch, bad_start, late_fall, worst_stretch
from gates.rules.standing import Standing
from gates.rules.trends import middle_of, spread_and_slope, steady_state, theil_sen
from gates.text import Text, amid

_SHOWN = {"ttft_p50": Text("TTFT p50", "TTFT p50"), "throughput": Text("throughput", "吞吐")}
_TAIL = Text("TTFT p99", "TTFT p99")
_LATE = Text("{w}; with so few windows at the end nothing tells whether it stays.", "{w}；末尾窗口过少，无法判断此后是否仍然如此。")
_EARLY = Text("{w}, and got better: which of the two is its level, nothing tells.", "{w}，此后好转：无法判断何者为其水平。")
_BESIDE = Text("{w}, held against hour {f} to hour {e}: the soak did not keep to one level.", "{w}，对照第 {f} 至 {e} 小时：全程未保持同一水平。")
_MORE = Text("{n} more windows of {w} would tell", "再有 {n} 个 {w} 窗口方可判定")
_BEGINS = Text("a soak that begins at its level would tell", "自始即处于其水平的稳定性运行方可判定")
_ONE_LEVEL = Text("a soak that keeps to one level from beginning to end would tell", "自始至终保持同一水平的稳定性运行方可判定")


def drift(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return the checks of TTFT and throughput over time: no adverse change of level, no adverse trend, and whether it was steady.

    The level of TTFT p99 only informs: no limit of it is agreed, and it is held against that of the medians.
    """
    usable, few = usable_windows(soak)
    slow = slow_windows(soak, usable)
    shown, short = sorted([*usable, *slow], key=lambda s: s.index), too_few(soak, len(usable), few)
    out = []
    for name, upwards in (("ttft_p50", True), ("throughput", False)):
        values = _values(soak, shown, name)
        out.append(_level(soak, standing, name, shown, values, short, upwards=upwards))
        out.append(_trend(soak, standing, name, shown, values, short, upwards=upwards))
    out.append(_level(soak, standing, "ttft_p99", shown, _values(soak, shown, "ttft_p99"), short, upwards=True))
    return [*out, *(_steady(soak, standing, name, {s.index for s in usable}) for name in _SHOWN)]


def _value(window: Slice, name: str) -> Fraction | None:
    return {"ttft_p50": window.ttft_p50, "ttft_p99": window.ttft_p99, "throughput": window.output_per_s}[name]


def _values(soak: Soak, windows: Sequence[Slice], name: str) -> list[Fraction]:
    """Return a figure of each window, of a slow one by however few requests ended in it.

    Where none did, no figure may be a better one: its TTFT is the window's whole length, or the largest on record, its throughput one token.
    """
    if name == "throughput":
        return [w.output_per_s or Fraction(NS, soak.width_ns) for w in windows]
    told = [w.few_p50 if name == "ttft_p50" else w.few_p99 for w in windows]
    most = max([Fraction(soak.width_ns), *(v for v in told if v is not None)])
    return [most if v is None else v for v in told]


def slow_windows(soak: Soak, usable: Sequence[Slice]) -> list[Slice]:
    """Return the windows with too few requests that were under load all the time, where others have enough: the requests took too long.

    What broke the run of the load (a gap, an outage) leaves a gap: the soak's clock says what it was. Fewer windows with enough requests than
    a level takes are nothing to hold a slow one against.
    """
    least = soak.window_requests
    stops = [b for b in soak.line.breaks if b.boot == soak.line.boot_id and b.kind in ("load_gap", "outage")]
    slow = [
        s
        for s in soak.slices
        if s.requests < least
        and not soak.injected(soak.line.boot_id, s.start_ns, s.start_ns + soak.width_ns)
        and not any(b.from_ns < s.start_ns + soak.width_ns and b.to_ns > s.start_ns for b in stops)
    ]
    return slow if len(usable) >= soak.plan.g4.change_point.windows_min else []


def _full(windows: Sequence[Slice]) -> bool:
    """Return whether there is no slow window among them."""
    return all(w.ttft_p50 is not None for w in windows)


def usable_windows(soak: Soak) -> tuple[list[Slice], int]:
    """Return the windows that carry a median and no injection, and how many had too few requests."""
    clean = [s for s in soak.slices if not soak.injected(soak.line.boot_id, s.start_ns, s.start_ns + soak.width_ns)]
    usable = [s for s in clean if s.ttft_p50 is not None and s.output_per_s > 0]
    return usable, len(clean) - len(usable)


def too_few(soak: Soak, usable: int, few: int) -> Text | None:
    """Return why the windows do not carry a judgement, or None."""
    least, share = 2 * soak.plan.g4.change_point.windows_min, soak.plan.g4.coverage_min
    if usable >= least and usable >= share * (usable + few):
        return None
    return Text(
        "{u} of {n} windows of {w} have at least {r} requests; it takes {l} windows, and {s} of all: not judged.",
        "{n} 个 {w} 窗口中有 {u} 个达到 {r} 个请求；至少需 {l} 个窗口且占比 {s}：不作判定。",
    ).fill(u=usable, n=usable + few, w=soak.plan.g4.window, r=soak.window_requests, l=least, s=percent(share, places=0))


def more_windows(soak: Soak) -> Text:
    """Return how many more requests, and in how many windows, it would have taken."""
    least = soak.window_requests
    short = [least - s.requests + s.errors for s in soak.slices if s.requests - s.errors < least]
    windows = max(0, 2 * soak.plan.g4.change_point.windows_min - len(soak.slices))
    if windows:
        return Text("{n} more windows of {w} would tell", "再有 {n} 个 {w} 窗口方可判定").fill(n=windows, w=soak.plan.g4.window)
    return Text("{r} more good requests, spread over {n} windows of {w}, would tell", "在 {n} 个 {w} 窗口内再有共 {r} 个成功请求方可判定").fill(
        r=sum(short), n=len(short), w=soak.plan.g4.window
    )


def _level(
    soak: Soak, standing: Standing, name: str, windows: Sequence[Slice], values: Sequence[Fraction], short: Text | None, *, upwards: bool
) -> CheckResult:
    """Hold the level against its limit. Too few windows with enough requests are no pass, and yet a fail where they, with the slow ones, show it."""
    limit, rule, shown = soak.plan.g4.hourly_drift_max, soak.plan.g4.change_point, _SHOWN.get(name, _TAIL)
    blank = check(soak, f"drift_{name}", soak.files("records.jsonl"))

    def ask(find: Callable[..., Stretch | None]) -> Stretch | None:
        return find(values, upwards=upwards, least=rule.windows_min, p_max=float(rule.p_max), over=Fraction(limit))

    enough = len(values) >= 2 * rule.windows_min
    found = ask(worst_stretch) if enough else None
    exact = Fraction(0) if found is None else found.size
    if short and (exact <= limit or _full(windows)):
        return untold(blank, standing, reason=short, change=more_windows(soak))
    # Requests count where they end, so the window in which the load begins lacks those that were under way: no level of throughput by itself.
    begins = int(name == "throughput" and windows[0].index == 0)
    if exact <= limit:
        doubts = ((late_fall, _LATE, _MORE), (bad_start, _EARLY, _BEGINS), (partial(beside_best, first=begins), _BESIDE, _ONE_LEVEL))
        for find, said, change in doubts:
            doubt = ask(find)
            if doubt is not None and doubt.size > limit:
                size, told = beside(doubt.size, limit), said.fill(w=_worse(soak, shown, windows, doubt), **_reference(soak, windows, doubt))
                change = change.fill(n=rule.windows_min - (doubt.end - doubt.at), w=soak.plan.g4.window)
                return untold(blank, standing, reason=told, change=change, value=size, margin=limit - size)
    size, met = beside(exact, limit), exact <= Fraction(limit)
    if found is None:
        reason = Text("{k} windows of {w}: none of them worse than the rest beyond noise.", "{k} 个 {w} 窗口：没有任何时段的恶化超出噪声。")
        reason = reason.fill(k=len(values), w=soak.plan.g4.window)
    else:
        told = _worse(soak, shown, windows, found)
        reason = Text(f"{told.en}.", f"{told.zh}。")
    return answer(blank, standing, met=met, value=size, reason=reason, margin=limit - size)


def _worse(soak: Soak, shown: Text, windows: Sequence[Slice], found: Stretch) -> Text:
    """Say from when to when a figure was worse than in the rest of the soak, and by how much."""
    limit, begin = soak.plan.g4.hourly_drift_max, _hour(soak, windows, found.at)
    if found.end == len(windows):
        when = Text("from hour {h} on", "自第 {h} 小时起").fill(h=begin)
    else:
        when = Text("from hour {h} to hour {e}", "第 {h} 至 {e} 小时").fill(h=begin, e=_hour(soak, windows, found.end))
    return Text("{n} is worse by {v} {t} (at most {l}; p {p})", "{n}{t}变差 {v}（上限 {l}；p {p}）").fill(
        n=Text(shown.en, amid(shown.zh).lstrip()),
        v=percent(found.size, limit),
        t=when,
        l=percent(limit),
        p=f"= {found.p:.1e}" if found.p > 1e-16 else "< 1e-16",
    )


def _reference(soak: Soak, windows: Sequence[Slice], found: Stretch) -> dict[str, str]:
    """Return from which hour (f) to which (e) the windows lie that others were held against, where these are not all others."""
    if not isinstance(found, Beside):
        return {}
    return {"f": _hour(soak, windows, found.reference_at), "e": _hour(soak, windows, found.reference_end)}


def _hour(soak: Soak, windows: Sequence[Slice], n: int) -> str:
    """Return the hour of the plan at which a window begins, or the last one ends."""
    at = windows[n].start_ns if n < len(windows) else windows[-1].start_ns + soak.width_ns
    return f"{soak.line.hour(at):.1f}"


def _trend(
    soak: Soak, standing: Standing, name: str, windows: Sequence[Slice], values: Sequence[Fraction], short: Text | None, *, upwards: bool
) -> CheckResult:
    limit, shown = soak.plan.g4.excursion_max, _SHOWN[name]
    blank = check(soak, f"excursion_{name}", soak.files("records.jsonl"))
    points = [(s.index, v) for s, v in zip(windows, values, strict=True)]
    fit = theil_sen(points, float(soak.plan.decision.confidence)) if len(points) >= 2 * soak.plan.g4.change_point.windows_min else None
    if fit is None:
        few_windows = Text("Too few windows for a trend.", "窗口过少，无法判断趋势。")
        return untold(blank, standing, reason=short or few_windows, change=more_windows(soak))
    change = fit[0] * (points[-1][0] - points[0][0]) / middle_of([v for _, v in points])
    exact = max(Fraction(0), change if upwards else -change)
    if short and (exact <= limit or _full(windows)):
        return untold(blank, standing, reason=short, change=more_windows(soak))
    adverse = beside(exact, limit)
    reason = Text(
        "A straight line through the windows changes {n} for the worse by {v} over the soak (at most {l}).",
        "各窗口的拟合直线表明{n}全程变差 {v}（上限 {l}）。",
    )
    reason = reason.fill(n=Text(shown.en, amid(shown.zh)), v=percent(adverse, limit), l=percent(limit))
    return answer(blank, standing, met=exact <= Fraction(limit), value=adverse, reason=reason, margin=limit - adverse)


def _steady(soak: Soak, standing: Standing, name: str, usable: set[int]) -> CheckResult:
    """Return the advisory check that the series was steady in SNIA's sense: early on, and still at the end."""
    rule, shown = soak.plan.g4.steady_state, _SHOWN[name]
    blank = check(soak, f"steady_{name}", soak.files("records.jsonl"))
    values = [_value(s, name) if s.index in usable else None for s in soak.slices]
    if len(values) < rule.rounds:
        few = Text("{n} windows; it takes {r} in a row.", "仅 {n} 个窗口，需连续 {r} 个。").fill(n=len(values), r=rule.rounds)
        more = Text("{n} more windows of {w} would tell", "再有 {n} 个 {w} 窗口方可判定").fill(n=rule.rounds - len(values), w=soak.plan.g4.window)
        return untold(blank, standing, reason=few, change=more)
    limits = {"spread_max": Fraction(rule.spread_max), "slope_max": Fraction(rule.slope_max)}
    found = steady_state(values, rounds=rule.rounds, within=rule.within, **limits)
    tail = spread_and_slope(values[-rule.rounds :])
    if tail is None:
        gap = Text("One of the last {r} windows has too few requests.", "最后 {r} 个窗口中有窗口请求过少。").fill(r=rule.rounds)
        return untold(blank, standing, reason=gap, change=more_windows(soak))
    spread, slope = tail
    still = spread <= limits["spread_max"] and slope <= limits["slope_max"]
    said = Text(
        "In the last {r} windows {n} spread over {v} of its mean (at most {l}) and its fitted line moved {s} (at most {m}); ",
        "最后 {r} 个窗口内{n}的极差为均值的 {v}（上限 {l}），拟合直线变化 {s}（上限 {m}）；",
    ).fill(
        r=rule.rounds,
        n=Text(shown.en, amid(shown.zh)),
        v=percent(spread, rule.spread_max),
        l=percent(rule.spread_max),
        s=percent(slope, rule.slope_max),
        m=percent(rule.slope_max),
    )
    if found is None:
        never = Text("no {r} of the first {w} windows in a row were steady.", "前 {w} 个窗口中没有连续 {r} 个处于稳态。")
        first = never.fill(r=rule.rounds, w=rule.within)
    else:
        hour = soak.line.hour(soak.slices[found.at].start_ns + soak.width_ns)
        first = Text("it was steady first at hour {h}.", "首次于第 {h} 小时达到稳态。").fill(h=f"{hour:.1f}")
    reason = Text(said.en + first.en, said.zh + first.zh)
    value = beside(spread, rule.spread_max)
    return answer(blank, standing, met=found is not None and still, value=value, reason=reason, margin=rule.spread_max - value)
