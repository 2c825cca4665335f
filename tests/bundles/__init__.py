"""Synthetic but complete evidence bundles, made from a chosen truth: for every test that needs a verdict without a target.

    evidence = g3_evidence(Truth(drop=0.30))       # or g2_evidence, g4_evidence
    evidence.bundle()                              # a Bundle in memory, with a manifest that fits
    evidence.write(tmp_path / "bundle")            # a directory;  evidence.zip(path) a zip
    evidence.lines("run-2", "records.jsonl", fn)   # edit rows; pack.json and exit.json follow unless told not to

`truth` holds what is chosen, `evidence` the files, `job` what every detached job writes, `jobs` a run and a soak, `gates` whole attempts.
The closed loop is simulated request by request: C workers, each sends its next request when its last one ended.
"""

from __future__ import annotations

from tests.bundles.evidence import Evidence
from tests.bundles.gates import counted_again, g2_evidence, g3_evidence, g4_evidence, record_injection, told_again
from tests.bundles.times import in_time
from tests.bundles.truth import Truth, merged, small_plan, soak_plan

__all__ = [
    "Evidence",
    "Truth",
    "counted_again",
    "g2_evidence",
    "g3_evidence",
    "g4_evidence",
    "in_time",
    "merged",
    "record_injection",
    "small_plan",
    "soak_plan",
    "told_again",
]
