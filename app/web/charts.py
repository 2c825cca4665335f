"""Which charts a verdict has, and their SVG: the same drawings as in the printed report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.kit.i18n import N_, language_tag, translate
from app.reports import charts

Draw = Callable[[dict[str, Any], str, str], str]


def of_verdict(document: Mapping[str, Any], locale: str) -> list[dict[str, str]]:
    """Return the charts of a verdict: {name, title}, in the order of the report."""
    return [{"name": name, "title": translate(title, locale, **params)} for name, title, params, _ in _charts(document.get("figures") or {})]


def draw(document: Mapping[str, Any], name: str, locale: str, theme: str) -> str | None:
    """Return one chart as SVG text; None when the verdict has no such chart."""
    figures = dict(document.get("figures") or {})
    found = next((chart for chart in _charts(figures) if chart[0] == name), None)
    return found[3](figures, language_tag(locale), theme) if found else None


def _charts(figures: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any], Draw]]:
    """Return name, title with its parameters, and drawing of every chart that the figures feed."""
    found: list[tuple[str, str, dict[str, Any], Draw]] = []
    for tier in sorted(figures.get("ttft") or {}, key=int):
        found.append((f"ttft-{tier}", N_("Distribution of TTFT at concurrency {tier}"), {"tier": tier}, _ttft(tier)))
    if figures.get("throughput"):
        found.append(("throughput", N_("Throughput gain against the agreed band"), {}, charts.throughput_band))
    if figures.get("tiers"):
        found.append(("repeatability", N_("Repeatability of the baseline runs"), {}, charts.repeatability))
    if figures.get("soak"):
        found.append(("soak", N_("The soak over time"), {}, charts.soak))
    return found


def _ttft(tier: str) -> Draw:
    return lambda figures, language, theme: charts.ttft_ecdf(figures, tier, language, theme)
