"""The published table R1 to R9 as golden data: what follows from it, and the contradictions that the tool finds in it by itself."""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from typing import Any

import pytest

from gates.reference.published import derived, findings, load

DATA = load()


def codes(data: dict[str, Any]) -> list[tuple[str, str]]:
    return [(f.code, f.report) for f in findings(data)]


def changed(report: str, what: str, **fields: Any) -> dict[str, Any]:
    data = copy.deepcopy(DATA)
    row = next(r for r in data["results"] if r["report"] == report and r["what"] == what)
    row.update(fields)
    return data


def test_every_stated_figure_follows_from_its_raw_figures() -> None:
    figures = derived(DATA)
    assert [f for f in figures if not f.agrees] == []
    assert len(figures) == 14
    assert {f.report for f in figures} == {"R1", "R2", "R9"}


def test_exactly_the_known_contradictions_are_found() -> None:
    assert codes(DATA) == [
        ("range_unsupported", "R2"),
        ("range_unsupported", "R2"),
        ("raw_figures_missing", "R2"),
        ("gain_beyond_drop", "R3"),
        ("throughput_beyond_ttft", "R2"),
        ("unequal_bytes", "R1"),
        ("kv_beyond_arithmetic", "vendor text"),
        ("operations_beyond_port", "product range"),
        ("operations_beyond_port", "product range"),
        ("bandwidth_beyond_port", "L1"),
    ]


def test_the_numbers_of_the_notes_are_computed_not_quoted() -> None:
    by_code = {f.code: f.values for f in findings(DATA)}
    assert by_code["gain_beyond_drop"]["most"] == "0.3560"
    assert by_code["gain_beyond_drop"]["need"] == "0.2857"
    assert [by_code["kv_beyond_arithmetic"][k] for k in ("two", "one", "n")] == ["33.3", "16.6", "5.5"]
    assert by_code["bandwidth_beyond_port"]["n"] == 3
    first = next(f for f in findings(DATA) if f.code == "operations_beyond_port")
    assert first.values["a"] == "65.5"
    assert next(f for f in findings(DATA) if f.code == "range_unsupported").values["missing"] == "0.32"


def test_what_the_file_marks_as_disputed_is_found_by_arithmetic() -> None:
    found = codes(DATA)
    disputed = [r["report"] for r in DATA["results"] if r.get("disputed")] + [n for n, t in DATA["tiers"].items() if t.get("disputed")]
    assert len(disputed) == 2
    assert {report for _, report in found} >= set(disputed)
    assert "disputed_iops" in DATA["product_range"]
    assert "operations_beyond_port" in {code for code, _ in found}


@pytest.mark.parametrize(
    ("report", "what", "fields", "code"),
    [
        ("R1", "checkpoint save", {"save_s": {"before": Decimal(178), "after": Decimal("90.7")}, "derived": {}, "published": {}}, "unequal_bytes"),
        ("vendor text", "KV cache of one 128K-context instance", {"kv_gb": Decimal("33.3")}, "kv_beyond_arithmetic"),
        ("R3", "tiered KV acceleration", {"throughput_gain": {"c8": Decimal("0.29"), "c16": Decimal("0.35")}}, "gain_beyond_drop"),
        (
            "R2",
            "against recompute without external storage",
            {"throughput_tok_s": {"before": Decimal("4.1"), "after": Decimal("49.2")}},
            "throughput_beyond_ttft",
        ),
        ("R2", "tiered KV acceleration", {"tiers": "2 concurrency tiers"}, "raw_figures_missing"),
    ],
)
def test_a_contradiction_goes_when_the_figure_is_put_right(report: str, what: str, fields: dict[str, Any], code: str) -> None:
    assert code in {c for c, _ in codes(DATA)}
    assert code not in {c for c, _ in codes(changed(report, what, **fields))}


def test_a_figure_that_its_raw_figures_do_not_give_is_named() -> None:
    assert ("figure_differs", "R9") in codes(changed("R9", "model service load", derived={"speedup": Decimal("6.3")}))


def test_prices_of_two_capacities_are_named() -> None:
    data = copy.deepcopy(DATA)
    data["products"][0]["price_cny"] = 400000
    assert ("capacities_differ", "products") in codes(data)


def test_the_published_prices_are_all_of_one_capacity() -> None:
    assert "capacities_differ" not in {code for code, _ in codes(DATA)}


def test_every_finding_speaks_both_languages_and_carries_its_numbers() -> None:
    for finding in findings(DATA):
        assert re.search(r"[0-9]", finding.message.en)
        assert re.search(r"[\u4e00-\u9fff]", finding.message.zh)
        assert finding.json()["values"]
