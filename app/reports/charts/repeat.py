"""How well the runs of the single-node baseline repeat: every run as a dot, as its distance from the mean of its tier."""

from __future__ import annotations

from typing import Any

from app.reports.charts.svg import THEMES, Canvas, Scale, Theme, no_data, say, ticks, x_axis
from app.reports.format import ms_of_ns, number, tok_s

LEFT, RIGHT, ROW = 92.0, 610.0, 34.0
QUANTITIES = (
    ("ttft_p50_ns", ("TTFT p50", "TTFT p50")),
    ("output_tokens_per_s", ("output throughput", "输出吞吐")),
)


def repeatability(figures: dict[str, Any], language: str = "en", theme: str = "light") -> str:
    """Return dots of TTFT p50 and throughput of each run, in percent of the mean of their tier, as SVG text."""
    look = THEMES[theme]
    title = say(language, "Repeatability of the baseline runs", "基线各轮次的重复性")
    tiers = {tier: (data or {}).get("runs") or [] for tier, data in (figures.get("tiers") or {}).items()}
    panels = [(names, _distances(tiers, key), key) for key, names in QUANTITIES]
    values = [d for _, rows, _ in panels for _, runs in rows for _, d, _ in runs]
    if not values:
        return no_data(look, language, title)
    reach = max(max(abs(v) for v in values) * 1.25, 0.5)
    height = sum(28 + ROW * len(rows) + 44 for _, rows, _ in panels if rows)
    canvas = Canvas(640, height, look)
    x = Scale(-reach, reach, LEFT, RIGHT)
    top = 0.0
    said: list[str] = []
    for names, rows, key in panels:
        if rows:
            top = _panel(canvas, look, x, top, say(language, *names), rows, key, language, said)
    return canvas.svg(title, "; ".join(said))


def _distances(tiers: dict[str, list[dict[str, Any]]], key: str) -> list[tuple[str, list[tuple[str, float, Any]]]]:
    """Return for each tier the runs as (name, distance from the tier's mean in percent, value)."""
    rows = []
    for tier, runs in sorted(tiers.items(), key=lambda item: int(item[0])):
        found = [(str(run.get("run", "")), float(got), run[key]) for run in runs if (got := number(run.get(key))) is not None]
        if not found:
            continue
        mean = sum(v for _, v, _ in found) / len(found)
        if mean > 0:
            rows.append((tier, [(name, 100 * (v / mean - 1), raw) for name, v, raw in found]))
    return rows


def _panel(
    canvas: Canvas,
    look: Theme,
    x: Scale,
    top: float,
    name: str,
    rows: list[tuple[str, list[tuple[str, float, Any]]]],
    key: str,
    language: str,
    said: list[str],
) -> float:
    """Draw one quantity and return where the next begins."""
    canvas.text(LEFT, top + 16, name, weight=700)
    start = top + 28
    end = start + ROW * len(rows)
    x_axis(canvas, x, end, start, ticks(x.low, x.high, 8), say(language, "distance from the mean of the runs, %", "与各轮次均值的偏差，%"))
    canvas.line(x(0), start, x(0), end, look.muted, width=1.4)
    for i, (tier, runs) in enumerate(rows):
        y = start + ROW * (i + 0.5)
        canvas.text(LEFT - 12, y + 4, say(language, f"c = {tier}", f"并发 {tier}"), anchor="end", weight=600)
        canvas.line(x(min(d for _, d, _ in runs)), y, x(max(d for _, d, _ in runs)), y, look.arms["baseline"], width=2)
        shown = []
        for j, (run, distance, raw) in enumerate(runs):
            _mark(canvas, j, x(distance), y, look.arms["candidate"])
            shown.append(f"{run} {ms_of_ns(raw) if key == 'ttft_p50_ns' else tok_s(raw)}")
        said.append(f"{name}, c = {tier}: " + ", ".join(shown))
    return end + 44


def _mark(canvas: Canvas, position: int, x: float, y: float, colour: str) -> None:
    """Draw the mark of a run: disc, square, triangle, then discs again; filled with the surface so that equal runs show."""
    kind = position % 3
    if kind == 0:
        canvas.dot(x, y, 5, canvas.theme.surface, stroke=colour)
    elif kind == 1:
        canvas.path(f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z", colour, fill=canvas.theme.surface)
    else:
        canvas.path(f"M{x:.1f} {y - 6:.1f}l5.5 10h-11z", colour, fill=canvas.theme.surface)
