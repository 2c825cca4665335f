"""Quantities: exact conversions between units of one kind, nothing between two kinds, nothing without a unit."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gates.readers.common import Collector
from gates.readers.plausible import RANGES
from gates.units import UNITS, BadQuantity, convert


@pytest.mark.parametrize(
    ("value", "unit", "to", "expected"),
    [
        ("1", "GiB", "B", "1073741824"),
        ("1", "GB", "B", "1000000000"),
        ("2", "Gbit/s", "MB/s", "250"),
        ("2569047", "KiB/s", "B/s", "2630704128"),
        ("28", "degC", "K", "301.15"),
        ("301.15", "K", "degC", "28"),
        ("1500", "us", "ms", "1.5"),
        ("72", "h", "s", "259200"),
        ("1", "s", "ns", "1000000000"),
        ("8", "bit/s", "B/s", "1"),
    ],
)
def test_a_value_is_converted_exactly(value, unit, to, expected):
    assert convert(Decimal(value), unit, to) == Decimal(expected)


def test_blocks_become_bytes_only_by_the_size_of_a_block():
    assert convert(Decimal(128), "blocks", "KiB", block=Decimal(4096)) == 512
    for block in (None, Decimal(0), Decimal(-1)):
        with pytest.raises(BadQuantity, match="size of a block"):
            convert(Decimal(128), "blocks", "B", block=block)


@pytest.mark.parametrize(("unit", "to"), [("B", "B/s"), ("K", "s"), ("%", "B"), ("GB", "Gbit"), ("", "B"), ("MB", "mb")])
def test_units_of_two_kinds_and_unknown_ones_are_refused(unit, to):
    with pytest.raises(BadQuantity):
        convert(Decimal(1), unit, to)


def test_every_conversion_goes_back_to_where_it_came_from():
    for unit, (kind, _) in UNITS.items():
        for to, (other, _) in UNITS.items():
            if kind == other:
                there = convert(Decimal("12345.678"), unit, to)
                assert abs(convert(there, to, unit) - Decimal("12345.678")) < Decimal("1e-15"), (unit, to)


@pytest.mark.parametrize(
    ("quantity", "value", "unit", "code"),
    [
        ("anything", 5, "", "unknown_unit"),
        ("health.temperature", 301, "degC", "unknown_unit"),
        ("health.temperature", 65535, "K", "impossible_value"),
        ("health.media_errors", 2**64 - 1, "1", "sentinel_value"),
        ("health.media_errors", 2**63 - 14, "1", "sentinel_value"),
        ("gpu.ecc_deferred", 2**32 - 1, "1", "sentinel_value"),
        ("gpu.ecc_deferred", 2**31 - 14, "1", "sentinel_value"),
        ("drive.capacity", 2**64 - 1, "B", "sentinel_value"),
        ("io.bandwidth", 2 * 10**12, "B/s", "impossible_value"),
        ("perftest.bandwidth", 2000 * 10**9, "bit/s", "impossible_value"),
        ("pci.width", 65535, "lanes", "impossible_value"),
    ],
)
def test_what_stands_for_not_known_or_cannot_be_gives_a_problem_and_no_observation(quantity, value, unit, code):
    found = Collector()
    found.see(quantity, Decimal(value), unit)
    reading = found.reading()
    assert reading.observations == ()
    assert [p.code for p in reading.problems] == [code]


def test_a_size_that_is_a_power_of_two_is_an_ordinary_value():
    found = Collector()
    found.see("memory.size", Decimal(2**31), "B")
    assert found.reading().problems == ()


def test_minus_one_is_never_converted_into_a_small_number():
    found = Collector()
    found.scaled({"x": Decimal(-1)}, "x", "perftest.bandwidth", "bit/s", 8)
    assert [p.code for p in found.reading().problems] == ["impossible_value"]


def test_every_range_is_in_the_unit_that_its_reader_gives():
    assert all(low < high for _, low, high in RANGES.values())
