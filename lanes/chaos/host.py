"""The playbook host of the lane: the engine's own, with the stand-in for ansible-runner unless the target asks for the real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import host
from lanes.chaos import standin

if __name__ == "__main__":
    host.detach()
    runs = host.told_of(sys.argv[1:])  # a round is of one kind: attempts by the real one are of a site of their own (fleet.py)
    folder = runs[0][0]
    job = folder / "job.json"
    if job.exists() and not json.loads((folder / "private" / "vars.json").read_text())["site"].get("real_ansible"):
        standin.install()
    host.main(runs)
