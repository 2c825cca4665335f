"""The shortest engagement that ends in a verdict of G3: one run pair at one tier, recompute against cold recovery; G1 and G2 come before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lanes.conftest import ROOT, SHORT, merged
from tests.ports import free_port
from tests.scenes import demo_plan

TIERS = [2]
# One pair of runs says nothing about the scatter of runs, and the machine may be shared: what speaks of its calm is out of reach here. What tells a
# cold cache from a warm one, recovered KV from none, and equal work from unequal is the default plan's.
PLAN: dict[str, Any] = {
    "validity": {**SHORT["validity"], "gain_explained_max": "0.60"},  # twenty requests of one run pair, and whatever else the machine does
    "decision": {"pairs": 1},
    "arms": {"order": ["baseline", "candidate"], "once": [], "baseline": {"kind": "recompute"}},
    "not_tested": [{"claim": claim, "reason": "the shortest engagement"} for claim in ("placebo", "output_identity")],
    "workload": {"tiers": TIERS, "requests_per_run": {"min": 20, "per_concurrency": 1}, "warmup_requests": 2},
    "g2": {"runs": 2, "repeatability_cv_max": "0.50"},
    "g3": {
        "extension_pairs": 0,
        "agreement_max": "0.50",
        "ttft_p50_drop_min": {"limit": "0.25", "tiers": TIERS},
        "throughput_gain_band": {"low": "0.10", "high": "50", "tiers": TIERS, "above": "accept"},
    },
    "g4": {"tier": 2},
}
# The simulated engine in vLLM's place computes a prompt in 18 ms; its tier gives the prompt's KV in 5.
SIMULATED = {"mount_path": "disk", "device": "disk", "transport": "local", "read_bytes_per_s": 100_000_000}


def write_short(path: Path, engine: str, **targets: Any) -> Path:
    """Write the engagement file for an engine, with changes to its targets; returns the path."""
    text = (ROOT / "app/demo/engagement-vllm-cpu.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    document["plan"] = merged(demo_plan(text), PLAN)
    if engine == "sim":
        lab = yaml.safe_load((ROOT / "app/demo/engagement.yaml").read_text(encoding="utf-8"))
        document["targets"]["engine"] = lab["targets"]["engine"]
        document["targets"]["arms"].update(candidate=SIMULATED, placebo=SIMULATED)
        document["plan"] = merged(document["plan"], {"platform": lab["plan"]["platform"], "workload": {"context_tokens": 32768}})
    document["targets"] = merged(document["targets"], {"engine": {"port": free_port()}})  # of its own: what else runs here may have the shipped one
    document["targets"] = merged(document["targets"], targets)
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path
