"""The simulation is no script: seven bandwidths of the candidate's tier move G3 from fail through pass to above the band, where arithmetic says.

A closed loop keeps the tier busy, so throughput is its bandwidth over the bytes of a request, whatever the concurrency: the gain is the
ratio of the two bandwidths less one. 29 % and 40 % are the ends of the band in the default plan.
"""

from __future__ import annotations

import json
import zipfile

import pytest

BASELINE = 30_900_000  # bytes per second, as in the demo's engagement file
STEPS = [
    (1.05, "fail", []),
    (1.15, "fail", []),
    (1.24, "fail", []),
    (1.335, "pass", []),
    (1.36, "pass", []),
    (1.48, "conditional", ["above_band"]),
    (1.65, "conditional", ["above_band"]),
]


@pytest.mark.parametrize(("ratio", "verdict", "because"), STEPS, ids=[f"{ratio:.3f}" for ratio, _, _ in STEPS])
def test_the_verdict_follows_the_bandwidth_of_the_tier(demo, ratio, verdict, because):
    medium = {"mount_path": "array", "device": "md0", "transport": "rdma", "read_bytes_per_s": round(BASELINE * ratio)}
    summary = demo("--until", "G3", arms={"candidate": medium, "placebo": medium})
    gate = summary["gates"]["G3"]
    assert (gate["verdict"], gate["because"]) == (verdict, because), gate["reasons"]
    with zipfile.ZipFile(summary["folder"] / gate["bundle"]) as bundle:
        checks = json.loads(bundle.read("verdict.json"))["checks"]
    gains = [float(check["value"]) for check in checks if check["id"].startswith("g3.throughput_gain.")]
    assert gains
    for gain in gains:
        assert 1 + gain == pytest.approx(ratio, rel=0.03)  # the rest of a request takes its small share
