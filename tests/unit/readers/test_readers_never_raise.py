"""Whatever bytes come, a reader answers with observations or problems; it never raises and never takes half a file for a whole one."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.readers.registry import READERS, read
from tests.unit.rack.simulate import evidence


def samples() -> dict[str, bytes]:
    """Return one good output for each reader that the rack has."""
    files, found = evidence(), {}
    for path, data in files.items():
        if path.endswith("/commands.json"):
            for row in json.loads(data):
                told = files[path.replace("commands.json", row["stdout"])]
                if read(row["tool"], found.get(row["tool"], b"")).problems:  # a host that has none of a thing tells nothing of it
                    found[row["tool"]] = told
    return found


GOOD = samples()
names = st.sampled_from(sorted(READERS))
keys = [
    *("Devices", "Subsystems", "Controllers", "Controller", "SerialNumber", "jobs", "read", "clat_ns", "N", "gpu", "gpu_data", "asic"),
    *("results", "form", "receiver_vendor", "ifname", "port", "smartctl", "exit_status", "temperature"),
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["N/A", "{", "{x}", "nvme0", "/dev/nvme0n1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=4),
    max_leaves=10,
)


LINES = ("kernel-log", "rvs")  # no document, though it begins with a bracket: a text that ends with a line is whole as far as it goes


def usable(data: bytes, name: str) -> None:
    reading = read(name, data)
    assert reading.observations or reading.problems
    for o in reading.observations:
        assert isinstance(o.value, str) or (isinstance(o.value, Decimal) and o.value.is_finite() and o.value >= 0)
        assert o.unit
    for p in reading.problems:
        assert len(p.message.en) < 600


@settings(max_examples=150, deadline=None)
@given(names, st.binary(max_size=200))
def test_any_bytes_are_answered(name, data):
    usable(data, name)


@settings(max_examples=120, deadline=None)
@given(names, json_values)
def test_any_json_is_answered(name, value):
    usable(json.dumps(value).encode(), name)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_good_output_cut_anywhere_is_answered_and_a_cut_document_is_never_complete(name, data):
    whole = GOOD[name]
    cut = whole[: data.draw(st.integers(0, len(whole.rstrip()) - 1))]
    usable(cut, name)
    if whole.lstrip()[:1] in b"[{" and name not in LINES:
        assert read(name, cut).problems


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_good_output_with_changed_bytes_is_answered(name, data):
    whole = bytearray(GOOD[name])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    usable(bytes(whole), name)


@pytest.mark.parametrize("name", sorted(GOOD))
def test_the_racks_own_output_is_read_without_a_problem(name):
    assert read(name, GOOD[name]).problems == ()
