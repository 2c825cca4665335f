"""Where the events of a run are counted by another than the runner: beside its directory, whose file system the lane fills.

The stand-in writes what it emits; of the real Ansible playbooks/callback_plugins/witness.py writes. checks.py reads.
"""

from __future__ import annotations

from pathlib import Path

EMITTED = "emitted"  # the identity of each event, a line each
WITNESSED = "witnessed"  # the kind of each event of a play, a line each


def notebook(run: Path, name: str) -> Path:
    """Return the file of a run directory STATE/runs/ATTEMPT/RUN: STATE/NAME/ATTEMPT/RUN; its folder is made."""
    path = run.parents[2] / name / run.parent.name / run.name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
