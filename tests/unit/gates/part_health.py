"""A soak whose host tells the health of two drives and a GPU: eleven readings over the load, all of them good."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from tests.bundles import Evidence, g4_evidence, soak_plan
from tests.bundles.evidence import BOOT, journal

SERIALS, READINGS = ("QF26K0A00101", "QF26K0A00102"), 11
DRIVE: dict[str, Any] = {
    "model": "PM9D3a",
    "firmware": "1.2",
    "warning_k": 350,
    "critical_k": 358,
    "temperature_k": 318,
    "critical_warning": 0,
    "spare_percent": 100,
    "spare_least_percent": 10,
    "used_percent": 1,
    "media_errors": 0,
    **dict.fromkeys(("warning_minutes", "critical_minutes", "throttle1_begun", "throttle2_begun", "throttle1_s", "throttle2_s"), 0),
}
GPU: dict[str, Any] = {
    "temperature_c": {"hotspot": 71, "mem": 60},
    "slowdown_c": {"hotspot": 100, "mem": 105},
    "throttle": dict.fromkeys(("prochot", "socket_thermal", "vr_thermal", "hbm_thermal"), 0),
}


def told(evidence: Evidence, edit: Callable[[int, dict[str, Any]], Any] = lambda n, row: None, *, readings: int = READINGS) -> Evidence:
    """Put the readings into a soak, from the begin of its load to the end, each edited by its number (0, 1, ...)."""
    phase = next(p for p in evidence.rows("soak", "phases.jsonl") if p["phase"] == "soak")
    records = [r for r in evidence.rows("soak", "records.jsonl") if r["phase"] == "soak"]
    first, last = phase["started_ns"], max(r["end_ns"] for r in records)
    rows = []
    for n in range(readings):
        row: dict[str, Any] = {"wall_ns": 10**18, "mono_ns": first + (last - first) * n // (readings - 1), "boot_id": BOOT}
        row["drives"] = {serial: {"device": f"nvme{k}", **DRIVE} for k, serial in enumerate(SERIALS)}
        row["gpus"] = {"0": copy.deepcopy(GPU)}
        row["paths"] = {serial: {f"nvme{k}": "live", f"nvme{k + 2}": "live"} for k, serial in enumerate(SERIALS)}
        edit(n, row)
        rows.append(row)
    evidence.files[evidence.path("soak", "health.jsonl")] = journal(rows)
    return evidence.repack("soak")


@functools.cache
def _hour() -> Evidence:
    return g4_evidence(plan=soak_plan(), hours=1)


def an_hour() -> Evidence:
    """Return a soak that is too short to pass and long enough for the health of parts."""
    return Evidence("G4", _hour().plan, dict(_hour().files), simulated=True)


def with_health(edit: Callable[[int, dict[str, Any]], Any]) -> Evidence:
    return told(an_hour(), edit)


def drive_that(**says: Any) -> Evidence:
    """Return a soak whose second drive says so from its middle on."""
    return with_health(lambda n, row: row["drives"][SERIALS[1]].update(says) if n >= READINGS // 2 else None)


def paths_that(edit: Callable[[int, dict[str, str]], Any]) -> Evidence:
    """Return a soak of which `edit` changes the paths to the second drive (number of the reading, {controller: state})."""
    return with_health(lambda n, row: edit(n, row["paths"][SERIALS[1]]))


def lost_for(readings: int) -> Evidence:
    """Return a soak in which a path to the second drive reconnects for so many readings."""
    return paths_that(lambda n, states: states.update(nvme3="connecting") if 4 <= n < 4 + readings else None)


def come(number: int) -> Evidence:
    """Return a soak in which so many drives come while it runs."""
    return with_health(lambda n, row: row["drives"].update({f"NEW{k}": {**DRIVE, "device": f"nvme{7 + k}"} for k in range(number if n >= 5 else 0)}))


def gpu_that(**says: Any) -> Evidence:
    """Return a soak whose GPU says so from its middle on."""
    return with_health(lambda n, row: row["gpus"]["0"].update(says) if n >= READINGS // 2 else None)


def throttled_readings(number: int) -> Evidence:
    """Return a soak of 1000 readings, in so many of which a GPU that counts nothing says that it was throttled."""

    def edit(n: int, row: dict[str, Any]) -> None:
        row["gpus"] = {"0": {"temperature_c": {"gpu": 60}, "throttled": n < number}}

    return told(an_hour(), edit, readings=1000)
