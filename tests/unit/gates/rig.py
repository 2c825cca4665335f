"""Evidence of the rig beside a measurement: pauses of the storage ports, and a wall clock that somebody sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.bundles import Evidence
from tests.bundles.evidence import BOOT, dumped

GIGABIT = 10**9  # bit/s of the port: 2.4e-4 of its bits in that span are 2,400,000
SPAN = 10**10  # ns between the two readings of the ports: 1 % of it is 100,000 us


def paused(
    evidence: Evidence, steps: Iterable[str], us: int, way: str = "rx_prio3", port: str = "ens3f0np0", errors: int = 0, bits: int = 0
) -> Evidence:
    """Let a port be paused for so many microseconds in each of these steps, no other way of it at all, and count so many errors.

    FEC corrects so many bits on it, all on one lane.
    """
    for step in steps:
        base = {"rx_prio3": 5, "tx_prio3": 7, "rx_prio0": 0, "rx_global": 0}
        rows = [
            {
                "when": when,
                "wall_ns": at,
                "mono_ns": at,
                "boot_id": BOOT,
                "ports": {
                    port: {
                        "pauses_us": {**base, way: base[way] + more},
                        "errors": {"rx_crc_errors_phy": 3 + wrong, "rx_discards_phy": 0},
                        "corrected": {"rx_corrected_bits_phy": 900 + flipped, "rx_err_lane_0_phy": 300, "rx_err_lane_1_phy": 600 + flipped},
                        "bit_per_s": GIGABIT,
                    }
                },
            }
            for when, at, more, wrong, flipped in (("before", 10**12, 0, 0, 0), ("after", 10**12 + SPAN, us, errors, bits))
        ]
        evidence.files[evidence.path(step, "ports.json")] = dumped({"job": evidence.read(step, "job.json")["job"], "readings": rows})
        evidence.repack(step)
    return evidence


def cached(evidence: Evidence, steps: Iterable[str], grown: int) -> Evidence:
    """Let the page cache of the host grow by so many bytes in each measured phase of these steps."""

    def edit(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["page_cache"] = {"cached_bytes": 10**9 + grown * (row["when"] == "after"), "paged_in_bytes": 0}

    for step in steps:
        evidence.lines(step, "counters.jsonl", edit)
    return evidence


def stepped(evidence: Evidence, step: str, ns: int) -> Evidence:
    """Set the wall clock forward by so many nanoseconds before the job of a step ends."""
    return evidence.json(step, "exit.json", lambda d: d.update(ended_wall_ns=d["ended_wall_ns"] + ns))
