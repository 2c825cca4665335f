"""The throughput gain of every tier against the agreed band, and the bar that sets one estimate against its limit."""

from __future__ import annotations

from typing import Any

from app.reports.charts.svg import THEMES, Canvas, Scale, arm_title, no_data, say, text_width, ticks, x_axis
from app.reports.format import limit_percent, number, percent, tok_s

LEFT, RIGHT = 92.0, 622.0
ROW = 52.0


def throughput_band(figures: dict[str, Any], language: str = "en", theme: str = "light") -> str:
    """Return the throughput gain per tier (percent) against the band, as SVG text.

    The band stands in `figures["band"]` ({low, high}). Of a tier are read: `gain`, `low` and `high` (the ends of its interval, null
    where there are too few pairs), `arms` (tok/s of each run).
    """
    look = THEMES[theme]
    title = say(language, "Throughput gain against the agreed band", "吞吐提升与约定区间")
    tiers = {tier: data for tier, data in (figures.get("throughput") or {}).items() if number((data or {}).get("gain")) is not None}
    if not tiers:
        return no_data(look, language, title)
    top = 30.0
    bottom = top + ROW * len(tiers) + 6
    canvas = Canvas(640, bottom + 46, look)
    band = figures.get("band") or {}
    x = _scale(tiers, band)
    x_axis(
        canvas,
        x,
        bottom,
        top,
        ticks(x.low, x.high, 8),
        say(language, "gain in output tokens per second over the baseline, %", "输出吞吐（tok/s）相对基线的提升，%"),
    )
    said = []
    for i, (tier, data) in enumerate(sorted(tiers.items(), key=lambda item: int(item[0]))):
        said.append(_row(canvas, x, top + ROW * i, tier, data, band, language))
    return canvas.svg(title, "; ".join(said))


def _scale(tiers: dict[str, Any], band: dict[str, Any]) -> Scale:
    """Cover the band, every estimate and its interval, with some air. Dots need no zero."""
    values: list[float] = []
    for data in tiers.values():
        found = [data.get("gain"), data.get("low"), data.get("high"), band.get("low"), band.get("high")]
        values += [float(100 * got) for got in map(number, found) if got is not None]
    low, high = min(values), max(values)
    air = (high - low) * 0.3 or 5.0
    return Scale(low - air, high + air, LEFT, RIGHT)


def _row(canvas: Canvas, x: Scale, top: float, tier: str, data: dict[str, Any], limits: dict[str, Any], language: str) -> str:
    """Draw one tier and return its sentence."""
    look = canvas.theme
    middle = top + 27
    gain, low, high = number(data.get("gain")), number(limits.get("low")), number(limits.get("high"))
    assert gain is not None  # noqa: S101  (only tiers with a gain are drawn)
    canvas.text(LEFT - 12, middle + 4, say(language, f"c = {tier}", f"并发 {tier}"), anchor="end", weight=600)
    band = ""
    if low is not None and high is not None:
        a, b = x(float(100 * low)), x(float(100 * high))
        canvas.rect(a, top + 8, b - a, ROW - 14, look.band)
        for edge in (a, b):
            canvas.line(edge, top + 8, edge, top + ROW - 6, look.good, width=1.6)
        band = f"{limit_percent(low, sign=True)} .. {limit_percent(high, sign=True)}"
        canvas.text((a + b) / 2, top + 19, band, size=10, colour=look.good, anchor="middle")
    left, right = number(data.get("low")), number(data.get("high"))
    at = x(float(100 * gain))
    reach = at
    if left is not None or right is not None:
        a = x(float(100 * left)) if left is not None else at
        b = x(float(100 * right)) if right is not None else at
        reach = max(at, b)
        canvas.line(a, middle + 7, b, middle + 7, look.ink, width=2)
        for edge in ([a] if left is not None else []) + ([b] if right is not None else []):
            canvas.line(edge, middle + 3, edge, middle + 11, look.ink, width=2)
    inside = low is None or high is None or low <= gain <= high
    colour = look.arms["candidate"] if inside else look.bad
    canvas.path(f"M{at:.1f} {middle:.1f}l6 7l-6 7l-6 -7z", colour, width=1, fill=colour)
    shown = percent(gain, limits=[v for v in (low, high) if v is not None], sign=True)
    beside = reach + 12 if reach + 12 + text_width(shown, 12) < RIGHT else at - 12
    canvas.label(beside, middle + 11, shown, size=12, weight=700, colour=colour, anchor="start" if beside > at else "end")
    arms = "; ".join(
        f"{arm_title(arm, language)} " + ", ".join(tok_s(v) for v in values)
        for arm, values in (data.get("arms") or {}).items()
        if isinstance(values, list)
    )
    return say(language, f"c = {tier}: gain {shown}", f"并发 {tier}：提升 {shown}") + (f" ({band})" if band else "") + (f" [{arms}]" if arms else "")


def interval_bar(check: dict[str, Any], language: str = "en", theme: str = "light") -> str:
    """Return a slim bar that sets the estimate of one ratio check, and its interval if any, against its limit; SVG text.

    `check` is one of verdict.json: value, limit {op, low, high}, interval. The allowed side is shaded.
    """
    look = THEMES[theme]
    value = number(check.get("value"))
    limit = check.get("limit") or {}
    low, high = number(limit.get("low")), number(limit.get("high"))
    title = say(language, "Estimate against its limit", "估计值与限值")
    if value is None or (low is None and high is None):
        return no_data(look, language, title)
    interval = check.get("interval") or {}
    ends = [number(interval.get("low")), number(interval.get("high"))]
    points = [float(100 * v) for v in (value, low, high, *ends) if v is not None]
    air = (max(points) - min(points)) * 0.35 or abs(points[0]) * 0.2 or 1.0
    # What cannot be below zero and is only bounded above is drawn from zero, so that nothing looks like something.
    least = 0.0 if low is None and min(points) >= 0 else min(points) - air
    x = Scale(least, max(points) + air, 8, 292)
    canvas = Canvas(300, 46, look)
    a = x(float(100 * low)) if low is not None else x.start
    b = x(float(100 * high)) if high is not None else x.end
    canvas.rect(x.start, 12, x.end - x.start, 12, look.grid, opacity=0.7, radius=2)
    canvas.rect(a, 12, b - a, 12, look.band)
    for edge, ratio in ((a, low), (b, high)):
        if ratio is not None:
            canvas.line(edge, 7, edge, 29, look.good, width=1.8)
            canvas.text(edge, 42, limit_percent(ratio), size=11.5, colour=look.good, anchor="middle", weight=600)
    at = x(float(100 * value))
    spread = [x(float(100 * v)) if v is not None else at for v in ends]
    if any(v is not None for v in ends):
        canvas.line(spread[0], 18, spread[1], 18, look.ink, width=2)
        for edge, end in zip(spread, ends, strict=True):
            if end is not None:
                canvas.line(edge, 13, edge, 23, look.ink, width=2)
    inside = (low is None or value >= low) and (high is None or value <= high)
    colour = look.arms["candidate"] if inside else look.bad
    canvas.path(f"M{at:.1f} 9l7 9l-7 9l-7 -9z", look.surface, width=1.5, fill=colour)
    bounds = " .. ".join(limit_percent(v) for v in (low, high) if v is not None)
    return canvas.svg(title, f"{percent(value, limits=[v for v in (low, high) if v is not None])}; {say(language, 'limit', '限值')} {bounds}")
