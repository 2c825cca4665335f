"""A printed number never says something else than the compared one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports import format as f
from app.reports.checks import limit_text, margin_text, value_text
from gates.declarations import DECLARED, SHARES, claim_rows, is_share, rows
from gates.plan import parse_plan


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        ("0.2596", "0.25", "25.96 %"),
        ("0.25", "0.25", "25.00 %"),
        ("0.249996", "0.25", "24.9996 %"),
        ("0.2500001", "0.25", "25.00001 %"),
        ("0.4001", "0.40", "40.01 %"),
        ("0.00004", "0.001", "0.004 %"),
        ("0", "0.001", "0.00 %"),
        ("-0.0000000001", "0.05", "-0.00000001 %"),
    ],
)
def test_a_percentage_keeps_enough_digits_to_stay_on_its_side_of_the_limit(value: str, limit: str, shown: str) -> None:
    assert f.percent(value, limits=[limit]) == shown


@given(st.decimals("-2", "2", places=24), st.decimals("-2", "2", places=4))
def test_no_printed_percentage_ever_crosses_or_touches_its_limit(value: Decimal, limit: Decimal) -> None:
    printed = Decimal(f.percent(value, limits=[limit]).removesuffix(" %")) / 100
    assert (printed > limit) - (printed < limit) == (value > limit) - (value < limit)


def test_rounding_is_half_to_even_as_the_standard_asks() -> None:
    assert f.percent("0.12345") == "12.34 %"
    assert f.percent("0.12355") == "12.36 %"


@pytest.mark.parametrize("nothing", [None, "", "N/A", "NaN", "inf", float("nan"), True])
def test_what_is_no_number_is_printed_as_missing_and_never_as_zero(nothing: object) -> None:
    assert f.percent(nothing) == f.ms(nothing) == f.tok_s(nothing) == f.size(nothing) == f.duration(nothing) == "n/a"


def test_times_rates_sizes_and_durations_carry_their_unit() -> None:
    assert f.ms_of_ns(98_765_432) == "98.77 ms"
    assert f.ms("1234.56") == "1234.6 ms"
    assert f.tok_s("5640.104") == "5640.1 tok/s"
    assert f.tok_s("12345.6") == "12,345.6 tok/s"
    assert f.size(7_680_000_000_000) == "7.68 TB"
    assert f.size(4096) == "4096 B"
    assert f.size(7_681_501_126_656) == "7.68 TB"
    assert f.size(7_680_000_000_001, limits=[7_680_000_000_000]) == "7.680000000001 TB"
    assert f.bit_rate(100_000_000_000) == "100 Gbit/s"
    assert f.duration(259_200) == "72 h"
    assert f.duration(5400, "zh_CN") == "1 小时 30 分钟"
    assert f.duration("4.25") == "4.2 s"


def test_a_limit_is_printed_with_the_digits_it_was_agreed_with() -> None:
    assert limit_text({"op": ">=", "low": "0.25", "high": None}, "1", "ttft_p50_drop") == "≥ 25 %"
    assert limit_text({"op": "band", "low": "0.29", "high": "0.4"}, "1", "throughput_gain") == "+29 % .. +40 %"
    assert limit_text({"op": "<=", "low": None, "high": "1.05"}, "1", "ttft_p99_ratio") == "≤ 1.05"
    assert limit_text({"op": "==", "low": "EDA57F1Q", "high": None}, "1", "firmware") == "= EDA57F1Q"
    assert limit_text({"op": "<=", "low": None, "high": "200"}, "h", "power_on_hours") == "≤ 200 h"
    assert limit_text({"op": ">=", "low": "rated", "high": None}, "lanes", "lowest PCIe width", "zh-CN") == "≥ 额定值"
    assert limit_text({"op": ">=", "low": "4", "high": None}, "lanes", "lowest PCIe width", "zh-CN") == "≥ 4 通道"
    assert limit_text({"op": "set", "low": "4", "high": "4"}, "1", "serial numbers found") == "= 4"
    assert limit_text({"op": ">=", "low": "4096", "high": None}, "B", "smallest active MTU") == "≥ 4096 B"
    assert limit_text({"op": "none", "low": None, "high": None}, "1", "x") == ""


def test_ratios_are_percent_and_counts_stay_counts() -> None:
    assert is_share("ttft_p50_cv", "1")
    assert not is_share("media_errors", "1")
    assert not is_share("tpot_p99_ratio", "1")
    assert value_text("0", "1", "media_errors") == "0"
    assert value_text("0.8123", "1", "ttft_p99_ratio", ("1.05",)) == "0.8123"
    assert value_text("N/A", "1", "ttft_p50_drop") == "N/A"
    assert margin_text("-0.0001", "1", "ttft_p50_drop") == "-0.01 pp"
    assert margin_text("0.0096", "1", "ttft_p50_drop", "zh-CN") == "+0.96 个百分点"


def _declared_without_unit() -> list[tuple[str, str, dict[str, Any]]]:
    """Return (id, quantity or claim, limit) of every check and claim of the four gates that has no unit."""
    plan = parse_plan()
    checks = [(row["id"], row["quantity"], row["limit"]) for gate in DECLARED for row in rows(gate, plan) if row["unit"] == "1"]
    claims = [(row["claim"], row["claim"], row["limit"]) for gate in DECLARED for row in claim_rows(gate, plan)]
    return checks + claims


# What is divided and is still no part of something: one figure as a multiple of another, and a bit error ratio, which is told in powers of ten.
_FACTORS = {"corrected_bit_ratio", "ttft_p99_ratio", "tpot_p99_ratio", "device_bytes"}


def test_over_all_gates_a_limit_that_is_a_count_or_a_name_is_never_a_percentage_and_a_share_always_is() -> None:
    seen = set()
    for ident, quantity, limit in _declared_without_unit():
        ends = [f.number(end) for end in (limit["low"], limit["high"]) if f.number(end) is not None]
        shown = limit_text(limit, "1", quantity)
        broken = any(end != end.to_integral_value() for end in ends)
        assert ("%" in shown) == (bool(ends) and is_share(quantity, "1")), (ident, shown)
        assert not broken or "%" in shown or quantity in _FACTORS, f"{ident}: {shown} is neither a share nor a known factor"
        assert "%" not in shown or (limit["op"] != "==" and max(ends) <= 1), f"{ident}: {shown} cannot be a share"
        seen.add(quantity)
    assert seen >= SHARES  # no share of a quantity that no check asks for
    assert limit_text({"op": "==", "low": "3", "high": "3"}, "1", "lossless priority") == "= 3"
