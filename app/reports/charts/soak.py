"""The soak over time: four panels that share one axis of hours, with limits and events drawn in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.reports.charts.svg import THEMES, Canvas, Scale, Theme, no_data, say, shorten, text_width, ticks, x_axis, y_axis
from app.reports.format import number

LEFT, RIGHT, PANEL, GAP, FIRST = 76.0, 622.0, 86.0, 34.0, 44.0
PANELS: tuple[tuple[str, str, str, float], ...] = (
    ("ttft_p50_ms", "TTFT p50, ms", "TTFT p50，毫秒", 1.0),
    ("output_tokens_per_s", "output throughput, tok/s", "输出吞吐，tok/s", 1.0),
    ("errors", "failed requests an hour", "每小时失败请求数", 1.0),
    ("rss_bytes", "engine memory (RSS), MB", "引擎内存（RSS），MB", 1e6),
)
EVENT_WORDS = {
    "engine_exit": ("engine exit", "引擎退出"),
    "engine_restart": ("engine restart", "引擎重启"),
    "host_rebooted": ("host reboot", "主机重启"),
    "injection": ("injection", "故障注入"),
    "injection_undone": ("injection ended after a reboot", "重启后结束注入"),
    "canary": ("answers changed", "回答变化"),
    "gap": ("gap in the samples", "采样缺口"),
}


def soak(figures: dict[str, Any], language: str = "en", theme: str = "light") -> str:
    """Return TTFT p50, throughput, failed requests and engine memory over the hours of the soak, as SVG text.

    Limits may stand in `figures["limits"]` under a panel's key as a number, or as {low, high}.
    """
    look = THEMES[theme]
    title = say(language, "The soak over time", "稳定性运行过程")
    rows = [row for row in figures.get("soak") or [] if number(row.get("hour")) is not None]
    panels = [panel for panel in PANELS if any(number(row.get(panel[0])) is not None for row in rows)]
    if not panels:
        return no_data(look, language, title)
    events = [e for e in figures.get("events") or [] if number(e.get("hour")) is not None]
    hours = [float(number(row["hour"]) or 0) for row in rows]
    last = max([*hours, *(float(number(e["hour"]) or 0) for e in events)]) or 1.0
    x = Scale(0, last + max(last / 72, 0.02), LEFT, RIGHT)
    canvas = Canvas(640, FIRST + len(panels) * (PANEL + GAP) + 18, look)
    said = []
    for i, (key, en, chinese, unit) in enumerate(panels):
        top = FIRST + i * (PANEL + GAP)
        points = [(float(number(row["hour"]) or 0), float(got) / unit) for row in rows if (got := number(row.get(key))) is not None]
        _panel(canvas, look, x, top, say(language, en, chinese), points, _limits(figures, key, unit), bars=key == "errors")
        values = [v for _, v in points]
        said.append(f"{say(language, en, chinese)}: {min(values):g} .. {max(values):g}")
        end = i == len(panels) - 1
        hour_title = say(language, "hours of the plan's soak clock", "稳定性运行时长（按计划时钟，小时）") if end else ""
        x_axis(canvas, x, top + PANEL, top, ticks(0, x.high, 12), hour_title, labels=end)
    _events(canvas, look, x, events, language, said)
    return canvas.svg(title, "; ".join(said))


def _limits(figures: dict[str, Any], key: str, unit: float) -> list[float]:
    """Return the limit lines of a panel."""
    found = (figures.get("limits") or {}).get(key)
    values = [found.get("low"), found.get("high")] if isinstance(found, dict) else [found]
    return [float(got) / unit for got in map(number, values) if got is not None]


def _panel(
    canvas: Canvas,
    look: Theme,
    x: Scale,
    top: float,
    title: str,
    points: Sequence[tuple[float, float]],
    limits: Sequence[float],
    *,
    bars: bool,
) -> None:
    """Draw one quantity over the hours."""
    values = [v for _, v in points] + list(limits)
    low, high = (0.0, max([*values, 1.0])) if bars else (min(values), max(values))
    air = (high - low) * 0.18 or abs(high) * 0.1 or 1.0
    y = Scale(low - (0 if bars else air), high + air, top + PANEL, top)
    y_axis(canvas, y, LEFT, RIGHT, [v for v in ticks(y.low, y.high, 4) if not bars or v == int(v)], "")
    canvas.text(LEFT, top - 6, title, size=11.5, weight=600)
    for limit in limits:
        canvas.line(LEFT, y(limit), RIGHT, y(limit), look.limit, width=1.4, dash="5 3")
    if bars:
        wide = max((RIGHT - LEFT) / (len(points) + 1) * 0.7, 1.2)
        for hour, value in points:
            canvas.rect(x(hour) - wide / 2, y(value), wide, y(0) - y(value), look.bad)
        return
    canvas.polyline([(x(h), y(v)) for h, v in points], look.arms["candidate"], width=1.8)
    if len(points) <= 100:
        for h, v in points:
            canvas.dot(x(h), y(v), 1.8, look.arms["candidate"])


def _events(canvas: Canvas, look: Theme, x: Scale, events: Sequence[dict[str, Any]], language: str, said: list[str]) -> None:
    """Draw labelled lines through all panels; at most twelve labels, all of them in the description."""
    right_edge = 0.0
    for event in sorted(events, key=lambda e: float(number(e["hour"]) or 0)):
        at = x(float(number(event["hour"]) or 0))
        kind = str(event.get("kind", ""))
        name = say(language, *EVENT_WORDS.get(kind, (kind, kind)))
        text = shorten(f"{float(number(event['hour']) or 0):.1f} h {name}", 28)
        canvas.line(at, 22, at, canvas.height - 52, look.bad, width=1.1, dash="2 2")
        wide = text_width(text, 10.5)
        start = min(at - 2, RIGHT - wide)
        if start > right_edge:
            canvas.text(start, 16, text, size=10.5, colour=look.bad, weight=600)
            right_edge = start + wide + 8
        said.append(f"{text} {shorten(str(event.get('detail', '')), 80)}".strip())
