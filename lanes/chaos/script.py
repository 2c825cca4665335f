"""The soak that every target of the lane replays: evidence of a day on a clock 3600 times as fast, which passes."""

from __future__ import annotations

from pathlib import Path

from gates.plan import Plan
from tests.bundles import Truth, g4_evidence, soak_plan

SOAK_S = 6.0  # in which a target writes it


def plan() -> Plan:
    """Return the plan of all attempts."""
    return soak_plan()


def write(folder: Path) -> Path:
    """Write the files of the soak, and return their folder."""
    evidence = g4_evidence(Truth(baseline_ms=40.0, decode_ms=6.8), plan())
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in evidence.files.items():
        if path.startswith("evidence/soak/"):
            (folder / Path(path).name).write_bytes(data)
    return folder
