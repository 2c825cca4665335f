"""The charts are well-formed, say what they show, and never draw what is not there."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from app.reports import charts
from app.reports.charts.svg import Scale, log_ticks, ticks
from tests.unit.reports import samples

SVG = "{http://www.w3.org/2000/svg}"


def draw(language: str, theme: str) -> dict[str, str]:
    g3 = samples.figures("G3")
    return {
        "ttft": charts.ttft_ecdf(g3, 16, language, theme),
        "throughput": charts.throughput_band(g3, language, theme),
        "repeatability": charts.repeatability(samples.figures("G2"), language, theme),
        "soak": charts.soak(samples.figures("G4"), language, theme),
        "bar": charts.interval_bar(samples.g3_checks()[0].json(), language, theme),
    }


@pytest.mark.parametrize("theme", sorted(charts.THEMES))
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_every_chart_is_well_formed_and_carries_title_and_description(language: str, theme: str) -> None:
    for name, svg in draw(language, theme).items():
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        assert root.findtext(f"{SVG}title"), name
        assert root.findtext(f"{SVG}desc"), name
        assert "nan" not in svg.lower(), name


def test_the_description_holds_the_numbers_of_the_figures() -> None:
    figures = samples.figures("G3")
    svg = charts.ttft_ecdf(figures, "16", "en")
    assert "p50 limit 150.0 ms" in svg
    for run in figures["ttft"]["16"]["candidate"]:
        assert f"candidate {run['run']} p50 {float(run['p50_ms']):.1f} ms" in svg
    assert "+33.50 %" in charts.throughput_band(figures, "en")


def test_a_curve_rises_by_one_step_for_every_request() -> None:
    figures = {"ttft": {"8": {"baseline": [{"run": "run-1", "ms": [10, 20, 30, 40], "p50_ms": "25"}], "limit_ms": "20"}}}
    root = ElementTree.fromstring(charts.ttft_ecdf(figures, 8))
    curve = next(p.get("d") for p in root.iter(f"{SVG}path"))
    assert curve is not None
    assert curve.count("V") == 4


def test_without_data_a_chart_says_so_instead_of_looking_like_zero() -> None:
    for empty in (
        charts.ttft_ecdf({}, 8),
        charts.throughput_band({}),
        charts.repeatability({"tiers": {"8": {"runs": []}}}),
        charts.soak({"soak": []}),
    ):
        assert "no data in the evidence" in empty
    assert "证据中没有" in charts.soak({}, "zh_CN")


def test_an_unknown_arm_keeps_its_own_name_and_hostile_names_stay_text() -> None:
    figures = {"ttft": {"8": {"<script>&": [{"run": '"><x', "ms": [1.0, 2.0], "p50_ms": "1.5"}]}}}
    svg = charts.ttft_ecdf(figures, 8)
    root = ElementTree.fromstring(svg)
    assert any(t.text == "<script>&" for t in root.iter(f"{SVG}text"))
    assert root.find(f".//{SVG}script") is None


def test_the_css_theme_takes_its_colours_from_the_page_and_the_print_theme_from_nowhere() -> None:
    assert "var(--chart-limit" in draw("en", "css")["ttft"]
    assert all("var(" not in svg for svg in draw("en", "print").values())


def test_a_gain_outside_the_band_is_drawn_in_the_colour_of_a_miss() -> None:
    band = {"low": "0.29", "high": "0.40"}
    inside = {"throughput": {"8": {"gain": "0.30", "low": None, "high": None}}, "band": band}
    outside = {"throughput": {"8": {"gain": "0.2899", "low": None, "high": None}}, "band": band}
    bad = charts.THEMES["light"].bad
    assert bad in charts.throughput_band(outside)
    assert bad not in charts.throughput_band(inside)
    assert "+28.99 %" in charts.throughput_band(outside)


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0, 72, 12) == [0, 10, 20, 30, 40, 50, 60, 70]
    assert all(3.1 <= v <= 8.9 for v in ticks(3.1, 8.9))
    found = log_ticks(Scale(60, 320, 60, 620, log=True))
    assert 100 in found
    assert len(found) >= 3
    assert found == sorted(found)
