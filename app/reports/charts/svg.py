"""A small drawing board for the charts: themes, scales, axes, legend, text. Units are SVG user units (CSS pixels)."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from app.reports.format import grouped, zh

FONT = "'Noto Sans CJK SC', 'Noto Sans SC', 'Source Han Sans SC', 'PingFang SC', 'Microsoft YaHei', system-ui, sans-serif"


@dataclass(frozen=True)
class Theme:
    """Colours of one surface. `arms` are told apart by dash and width too, so black-and-white print stays readable."""

    ink: str
    muted: str
    grid: str
    surface: str
    limit: str
    band: str
    good: str
    bad: str
    arms: dict[str, str]
    others: tuple[str, ...] = ("#0f766e", "#be185d", "#4d7c0f", "#7c2d12")


_LIGHT = Theme(
    ink="#18212f",
    muted="#5b6675",
    grid="#dfe4ea",
    surface="#ffffff",
    limit="#b3261e",
    band="#d9efe2",
    good="#1a7446",
    bad="#b3261e",
    arms={"baseline": "#5f6b7a", "candidate": "#0b5cad", "recompute": "#a75a08", "placebo": "#7a3db8", "baseline_tuned": "#2f7f86"},
)
_DARK = Theme(
    ink="#e8edf3",
    muted="#9ba8b8",
    grid="#2f3947",
    surface="#141a22",
    limit="#ff8a80",
    band="#173c2a",
    good="#5fd39a",
    bad="#ff8a80",
    arms={"baseline": "#a9b4c2", "candidate": "#6cb4ff", "recompute": "#f0a95b", "placebo": "#c79bff", "baseline_tuned": "#6fd0d8"},
    others=("#5eead4", "#f9a8d4", "#bef264", "#fdba74"),
)


def _css(theme: Theme) -> Theme:
    """Return the theme whose colours a page may set by `--chart-<name>`; without them it is the light theme."""
    named = {name: f"var(--chart-{name}, {getattr(theme, name)})" for name in ("ink", "muted", "grid", "surface", "limit", "band", "good", "bad")}
    arms = {name: f"var(--chart-{name.replace('_', '-')}, {colour})" for name, colour in theme.arms.items()}
    return Theme(**named, arms=arms, others=theme.others)


THEMES: dict[str, Theme] = {"light": _LIGHT, "dark": _DARK, "print": _LIGHT, "css": _css(_LIGHT)}

ARM_NAMES = {
    "baseline": ("baseline", "基线"),
    "candidate": ("candidate", "被测产品"),
    "recompute": ("recompute", "重算"),
    "placebo": ("placebo", "安慰剂"),
    "baseline_tuned": ("baseline, tuned", "基线（同软件参数）"),
}
ARM_STROKES = {
    "baseline": (1.6, ""),
    "candidate": (2.4, ""),
    "recompute": (1.6, "7 3"),
    "placebo": (1.8, "1.5 3"),
    "baseline_tuned": (1.6, "9 3 2 3"),
}


def arm_title(arm: str, language: str) -> str:
    """Return the name of an arm in a language; an arm the default plan does not know keeps its own name."""
    en, chinese = ARM_NAMES.get(arm, (arm, arm))
    return chinese if zh(language) else en


def arm_style(theme: Theme, arm: str, position: int) -> tuple[str, float, str]:
    """Return colour, stroke width and dash pattern of an arm; `position` chooses among the spare colours."""
    width, dash = ARM_STROKES.get(arm, (1.6, "4 2"))
    return theme.arms.get(arm, theme.others[position % len(theme.others)]), width, dash


def say(language: str, en: str, chinese: str) -> str:
    """Return one of two texts by language."""
    return chinese if zh(language) else en


def text_width(text: str, font_size: float) -> float:
    """Return a cautious estimate of a text's width: wide East Asian characters one em, others 0.56 em."""
    return font_size * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.56 for c in text)


def shorten(text: str, most: int) -> str:
    """Return a label of at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class Scale:
    """Maps data to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; values outside are held at the edge, so that nothing is drawn off the plot."""
        value = min(max(value, self.low), self.high)
        a, b, v = (math.log(self.low), math.log(self.high), math.log(value)) if self.log else (self.low, self.high, value)
        share = (v - a) / (b - a) if b > a else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return round tick values inside a range: steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999), 10 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(scale: Scale, room: float = 38) -> list[float]:
    """Return round ticks of a logarithmic scale that stand at least `room` pixels apart; powers of ten, then 2 and 5, come first."""
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    kept: list[float] = []
    for steps in ((1,), (2, 5), (3, 1.5, 7)):
        for value in (m * 10.0**e for m in steps for e in powers):
            if scale.low <= value <= scale.high and all(abs(scale(value) - scale(other)) >= room for other in kept):
                kept.append(round(value, 12))
    return sorted(kept)


def tick_text(value: float) -> str:
    """Return a tick's label: no exponent, no padding zeros."""
    text = grouped(f"{value:.6f}", digits=6)
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass
class Canvas:
    """Collects the elements of one chart."""

    width: float
    height: float
    theme: Theme
    parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dash: str = "") -> None:
        """Draw a straight line."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width:g}"{dashes}/>')

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, stroke: str = "none", opacity: float = 1, radius: float = 0
    ) -> None:
        """Draw a box; a negative size draws nothing."""
        if width <= 0 or height <= 0:
            return
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" '
            f'fill="{fill}" stroke="{stroke}" fill-opacity="{opacity:g}"/>'
        )

    def dot(self, x: float, y: float, radius: float, fill: str, *, stroke: str = "none") -> None:
        """Draw a disc."""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>')

    def path(self, d: str, colour: str, *, width: float = 1.6, dash: str = "", fill: str = "none") -> None:
        """Draw a path."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="{d}" fill="{fill}" stroke="{colour}" stroke-width="{width:g}" stroke-linejoin="round"{dashes}/>')

    def polyline(self, points: Iterable[tuple[float, float]], colour: str, *, width: float = 1.6, dash: str = "") -> None:
        """Draw connected points."""
        text = " ".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
        if text:
            self.path(text, colour, width=width, dash=dash)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 12,
        colour: str = "",
        anchor: str = "start",
        weight: int = 400,
        turned: bool = False,
    ) -> None:
        """Write a text. The weight stands twice: browsers take font-weight, the paper's variable font the variation setting."""
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour or self.theme.ink}" text-anchor="{anchor}" font-weight="{weight}" '
            f"style=\"font-variation-settings:'wght' {weight}\"{turn}>{escape(text)}</text>"
        )

    def label(self, x: float, y: float, text: str, *, size: float = 11.5, colour: str = "", anchor: str = "start", weight: int = 600) -> None:
        """Write a text on a patch of the surface, kept inside the chart, so that lines behind it do not cross it."""
        wide = text_width(text, size)
        left = x - (wide if anchor == "end" else wide / 2 if anchor == "middle" else 0)
        left = min(max(left, 2), self.width - wide - 2)
        self.rect(left - 3, y - size, wide + 6, size * 1.35, self.theme.surface, opacity=0.88)
        self.text(left, y, text, size=size, colour=colour, weight=weight)

    def svg(self, title: str, description: str) -> str:
        """Return the SVG text. Nothing in it refers to anything outside."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}" '
            f'role="img" aria-label={quoteattr(title)} font-family="{FONT}"><title>{escape(title)}</title><desc>{escape(description)}</desc>'
            + "".join(self.parts)
            + "</svg>"
        )


def x_axis(canvas: Canvas, scale: Scale, y: float, top: float, marks: Sequence[float], title: str, *, labels: bool = True) -> None:
    """Draw the horizontal axis with grid lines up to `top` and its title with the unit below."""
    for value in marks:
        x = scale(value)
        canvas.line(x, top, x, y, canvas.theme.grid)
        if labels:
            canvas.text(x, y + 16, tick_text(value), size=11, colour=canvas.theme.muted, anchor="middle")
    canvas.line(scale.start, y, scale.end, y, canvas.theme.muted)
    if title:
        canvas.text((scale.start + scale.end) / 2, y + 34, title, size=11.5, colour=canvas.theme.muted, anchor="middle")


def y_axis(canvas: Canvas, scale: Scale, x: float, right: float, marks: Sequence[float], title: str, *, suffix: str = "") -> None:
    """Draw the vertical axis with grid lines to `right` and its title turned along it."""
    for value in marks:
        y = scale(value)
        canvas.line(x, y, right, y, canvas.theme.grid)
        canvas.text(x - 7, y + 4, tick_text(value) + suffix, size=11, colour=canvas.theme.muted, anchor="end")
    if title:
        canvas.text(13, (scale.start + scale.end) / 2, title, size=11.5, colour=canvas.theme.muted, anchor="middle", turned=True)


def legend(canvas: Canvas, x: float, y: float, entries: Sequence[tuple[str, str, float, str]]) -> None:
    """Draw a legend in one row: (text, colour, stroke width, dash)."""
    for text, colour, width, dash in entries:
        canvas.line(x, y - 4, x + 26, y - 4, colour, width=width, dash=dash)
        canvas.text(x + 32, y, text, size=11.5)
        x += 32 + text_width(text, 11.5) + 22


def no_data(theme: Theme, language: str, title: str) -> str:
    """Return the chart of evidence that holds nothing to draw: it says so instead of looking like zero."""
    canvas = Canvas(640, 90, theme)
    canvas.rect(0.5, 0.5, 639, 89, "none", stroke=theme.grid)
    canvas.text(320, 50, say(language, "no data in the evidence", "证据中没有可绘制的数据"), colour=theme.muted, anchor="middle")
    return canvas.svg(title, say(language, "The evidence holds no data for this chart.", "证据中没有此图的数据。"))
