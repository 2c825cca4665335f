"""A leak is held against memory whose unit is beyond doubt: the host's total stands beside what is free."""

import pytest

from tests.bundles import Truth, g4_evidence
from tests.unit.gates.damage import GOOD, verdict

CHANGES = {
    "free memory a thousand times as large": lambda host: host.update(mem_available_bytes=host["mem_available_bytes"] * 1000),
    "free memory in another unit, whole KiB all the same": lambda host: host.update(mem_available_bytes=host["mem_available_bytes"] * 1024),
    "no total": lambda host: host.pop("mem_total_bytes"),
    "a total of text": lambda host: host.update(mem_total_bytes="many"),
    "a total that is no whole KiB": lambda host: host.update(mem_total_bytes=host["mem_total_bytes"] + 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_free_memory_that_the_host_cannot_have_hides_no_leak(change):
    def swap(rows):
        for row in rows:
            change(row["host"])

    assert verdict(g4_evidence(Truth(leak_bytes=2e9)).lines("soak", "telemetry.jsonl", swap)) not in GOOD


def test_a_host_whose_total_changes_is_doubted():
    def swap(rows):
        rows[-1]["host"]["mem_total_bytes"] *= 2

    assert verdict(g4_evidence().lines("soak", "telemetry.jsonl", swap)) == "inconclusive"
