"""A verdict.json of each gate, and the manifest of its evidence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gates.canonical import sha256_of
from gates.plan import parse_plan
from gates.text import Text
from tests.unit.reports.samples.checks import CHECKS, claims
from tests.unit.reports.samples.figures import figures

SUMMARIES = {
    "G1": Text("Everything ordered arrived, is what the packing list says, and is healthy.", "订购物品全部到货，与装箱单一致，状态良好。"),
    "G2": Text("Three baseline runs repeat within 3 % at every tier; the baseline is frozen.", "三轮基线在各档位的重复性均在 3 % 以内；基线已冻结。"),
    "G3": Text(
        "TTFT p50 fell by at least 25 % at c8, c16 and c32, and throughput rose inside +29..40 % at c8 and c16.",
        "TTFT p50 在并发 8、16、32 下降幅均不小于 25 %，吞吐提升在并发 8、16 下均落在 +29..40 % 区间内。",
    ),
    "G4": Text("72 hours without a failed request, a restart or a drift beyond the limit.", "72 小时内无失败请求、无重启，漂移未超限。"),
}


@lru_cache
def plan() -> Any:
    return parse_plan(
        {"platform": {"accelerator": "MI308X", "framework": "lab-engine", "model": "lab-480b"}, "rig": {"simulated": True, "time_scale": "2880"}}
    )


def document(gate: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    """A verdict.json of the gate."""
    checks = more.pop("checks", None) or CHECKS[gate]()
    facts: dict[str, Any] = {}
    if gate == "G2":
        tiers = {str(t): {"ttft_p50_ns": int(12.5e6 * t), "output_tokens_per_s": "4218.02"} for t in (8, 16, 32)}
        facts = {"baseline": {"hash": sha256_of(tiers), "tiers": tiers}}
    return {
        "schema": 1,
        "gate": gate,
        "attempt": {"id": f"0199-{gate}", "number": 1, "rehearsal": False},
        "verdict": verdict,
        "because": [],
        "judge_version": "0.1.0",
        "rules_hash": sha256_of("rules"),
        "plan_hash": plan().hash,
        "manifest_hash": sha256_of(manifest(gate)),
        "simulated": True,
        "time_scale": "2880",
        "summary": SUMMARIES[gate].json(),
        "risk": Text(
            "Risk: a product whose true drop is exactly 25 % passes in half of all cases. Two pairs are too few for an interval.",
            "风险：真实降幅恰为 25 % 的产品有一半的可能通过。两对轮次不足以给出区间。",
        ).json(),
        "decision": {"rule": "simple", "comparison": "full", "confidence": "0.95", "pairs": 2},
        "checks": [c.json() for c in checks],
        "claims": [c.json() for c in claims(gate)],
        "not_tested": [],
        "figures": figures(gate),
        "facts": facts,
        **more,
    }


def manifest(gate: str) -> dict[str, Any]:
    steps = {"G1": ("unpacking", "survey", "storage"), "G2": ("deploy", "run-1", "run-2", "run-3"), "G4": ("soak",)}.get(
        gate, ("run-1", "run-2", "run-3", "run-4", "recompute", "placebo")
    )
    files = [
        {
            "path": f"evidence/{step}/gpu01/{name}",
            "size": 20480 + 999 * i,
            "sha256": f"{i:064x}",
            "tool": "probe",
            "version": "0.1.0",
            "argv": [],
            "exit_code": 0,
            "host": "gpu01",
            "step": step,
        }
        for step in steps
        for i, name in enumerate(("coldness.jsonl", "counters.jsonl", "phases.jsonl", "records.jsonl"))
    ]
    return {
        "schema": 1,
        "gate": gate,
        "attempt": {"id": f"0199-{gate}", "number": 1, "rehearsal": False},
        "plan_hash": plan().hash,
        "simulated": True,
        "files": files,
    }
