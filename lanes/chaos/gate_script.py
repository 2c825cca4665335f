"""What the hosts of an engagement through all four gates have: the files that each step brings home and the jobs that it replays.

The evidence is that of the unit tests: G1 of the simulated rack of the demo's engagement, G2 to G4 of one chosen truth in which the product holds its
word. So every gate passes when nothing is lost; what the service makes of it undisturbed is the reference (lane.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.demo.options import dumped
from gates.plan import Plan, load_yaml, parse_plan
from gates.registry import GATES
from tests.bundles import Evidence, Truth, g2_evidence, g3_evidence, g4_evidence, merged
from tests.bundles.truth import FAST, SMALL
from tests.scenes import DEMO, demo_plan
from tests.unit.rack import simulate

SIGNED = {"policy": {"sign_off": dict.fromkeys(GATES, "required")}}  # each gate waits for the signed report of the one before
HOSTS = ("gpu01", "array01")
SITE = "chaos gates"  # a site of its own: polls of one site are made together


def differences() -> dict[str, Any]:
    """Return the plan as differences from the default: the demo's, with small runs, a soak of a day, and no engine or model named."""
    demo = demo_plan()
    platform = {"accelerator": demo["platform"]["accelerator"]}
    return merged({**demo, "platform": platform}, SMALL, FAST, SIGNED)


def plan() -> Plan:
    """Return the plan of these engagements."""
    return parse_plan(differences())


def text(code: str) -> str:
    """Return the engagement file of one."""
    document = load_yaml(DEMO)
    document["engagement"].update(code=code, site=SITE)
    return dumped({**document, "plan": differences()})


def write(folder: Path) -> Path:
    """Write HOST/GATE/STEP/FILE of all gates, and return the folder."""
    for path, data in simulate.evidence().items():
        _put(folder, "G1", path, data)
    soak = Truth(baseline_ms=40.0, decode_ms=6.8)
    for evidence in (g2_evidence(Truth(), plan()), g3_evidence(Truth(), plan()), g4_evidence(soak, plan())):
        _write(folder, evidence)
    return folder


def _write(folder: Path, evidence: Evidence) -> None:
    for path, data in evidence.files.items():
        _put(folder, evidence.gate, path, data)


def _put(folder: Path, gate: str, path: str, data: bytes) -> None:
    """Write one file of a bundle, `evidence/STEP/HOST/FILE`, if a host has it."""
    _, step, host, name = path.split("/") if path.count("/") == 3 else ("", "", "", "")
    if host in HOSTS:
        target = folder / host / gate / step / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
