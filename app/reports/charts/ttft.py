"""The distribution of TTFT per tier: one step curve a run, the limit drawn where the median must lie."""

from __future__ import annotations

from typing import Any

from app.reports.charts.svg import THEMES, Canvas, Scale, arm_style, arm_title, legend, log_ticks, no_data, say, ticks, x_axis, y_axis
from app.reports.format import ms, number

LEFT, RIGHT, TOP, BOTTOM = 62.0, 622.0, 62.0, 258.0
LOG_FROM = 3.0  # a spread wider than this factor is drawn on a logarithmic axis


def ttft_ecdf(figures: dict[str, Any], tier: int | str, language: str = "en", theme: str = "light") -> str:
    """Return the cumulative distribution of TTFT (milliseconds) of every run at one tier, as SVG text."""
    look = THEMES[theme]
    data = (figures.get("ttft") or {}).get(str(tier)) or {}
    title = say(language, f"TTFT distribution at concurrency {tier}", f"并发 {tier} 的首词元延迟（TTFT）分布")
    arms = {arm: [run for run in runs if run.get("ms")] for arm, runs in data.items() if isinstance(runs, list)}
    arms = {arm: runs for arm, runs in arms.items() if runs}
    if not arms:
        return no_data(look, language, title)
    canvas = Canvas(640, 298, look)
    limit = number(data.get("limit_ms"))
    x = _scale([float(v) for runs in arms.values() for run in runs for v in run["ms"]] + ([float(limit)] if limit is not None else []))
    y = Scale(0, 1, BOTTOM, TOP)
    unit = say(language, "TTFT, milliseconds", "TTFT，毫秒")
    scale_note = say(language, " (logarithmic)", "（对数坐标）") if x.log else ""
    x_axis(canvas, x, BOTTOM, TOP, log_ticks(x) if x.log else ticks(x.low, x.high), unit + scale_note)
    y_axis(canvas, Scale(0, 100, BOTTOM, TOP), LEFT, RIGHT, [0, 25, 50, 75, 100], say(language, "share of requests, %", "请求占比，%"))
    canvas.line(LEFT, y(0.5), RIGHT, y(0.5), look.muted, dash="2 3")
    said = []
    entries = []
    for position, (arm, runs) in enumerate(arms.items()):
        colour, width, dash = arm_style(look, arm, position)
        for run in runs:
            canvas.path(_steps(run["ms"], x, y), colour, width=width, dash=dash)
            median = number(run.get("p50_ms"))
            if median is not None:
                canvas.dot(x(float(median)), y(0.5), 4, look.surface, stroke=colour)
                said.append(f"{arm_title(arm, language)} {run.get('run', '')} p50 {ms(median)}")
        entries.append((arm_title(arm, language), colour, width, dash))
    legend(canvas, LEFT, 18, entries)
    if limit is not None:
        at = x(float(limit))
        canvas.line(at, TOP - 6, at, BOTTOM, look.limit, width=1.8, dash="5 3")
        canvas.label(at, TOP - 12, say(language, f"p50 limit {ms(limit)}", f"p50 限值 {ms(limit)}"), colour=look.limit, anchor="middle")
        said.append(say(language, f"the candidate's p50 must not exceed {ms(limit)}", f"被测产品 p50 不得超过 {ms(limit)}"))
    return canvas.svg(title, "; ".join(said))


def _scale(values: list[float]) -> Scale:
    """Choose the axis: from zero when the spread is small, logarithmic when one arm is far away."""
    low, high = min(values), max(values)
    if low > 0 and high / low > LOG_FROM:
        return Scale(low * 0.9, high * 1.08, LEFT, RIGHT, log=True)
    return Scale(max(0.0, low - (high - low) * 0.12), high + (high - low) * 0.05 or 1.0, LEFT, RIGHT)


def _steps(values: list[Any], x: Scale, y: Scale) -> str:
    """Return the step curve of sorted values: it rises by 1/n at each."""
    found = sorted(float(v) for v in values)
    parts = [f"M{x(found[0]):.1f} {y(0):.1f}"]
    for i, value in enumerate(found):
        parts.append(f"H{x(value):.1f}V{y((i + 1) / len(found)):.1f}")
    return "".join(parts) + f"H{x.end:.1f}"
