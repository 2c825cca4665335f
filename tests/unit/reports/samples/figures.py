"""Figures of the charts, from a fixed seed."""

from __future__ import annotations

import random
from typing import Any


def figures(gate: str) -> dict[str, Any]:
    rng = random.Random(7)
    if gate == "G2":
        return {
            "tiers": {
                str(t): {
                    "runs": [
                        {
                            "run": f"run-{i}",
                            "ttft_p50_ns": int(12.5e6 * t * (1 + rng.gauss(0, 0.006))),
                            "output_tokens_per_s": f"{4200 * (1 + rng.gauss(0, 0.004)):.3f}",
                        }
                        for i in (1, 2, 3)
                    ]
                }
                for t in (8, 16, 32)
            }
        }
    if gate == "G3":
        ttft, speed = {}, {}
        for t in (8, 16, 32):
            base = 12.5 * t

            def run(name: str, scale: float, base: float = base) -> dict[str, Any]:
                ms = sorted(round(max(base * scale * (1 + rng.gauss(0, 0.06)), 1), 3) for _ in range(160))
                return {"run": name, "ms": ms, "p50_ms": f"{(ms[79] + ms[80]) / 2:.4f}"}

            ttft[str(t)] = {
                "baseline": [run("run-1", 1.0), run("run-4", 1.004)],
                "candidate": [run("run-2", 0.741), run("run-3", 0.738)],
                "recompute": [run("recompute", 2.6)],
                "placebo": [run("placebo", 2.65)],
                "limit_ms": f"{base * 0.75:.3f}",
            }
            gain = {8: "0.3412", 16: "0.3350", 32: "0.3105"}[t]
            speed[str(t)] = {
                "gain": gain,
                "low": f"{float(gain) - 0.01:.4f}",
                "high": f"{float(gain) + 0.01:.4f}",
                "arms": {"baseline": ["4210.11", "4225.92"], "candidate": ["5640.10", "5655.02"]},
            }
        return {"ttft": ttft, "throughput": speed, "band": {"low": "0.29", "high": "0.4"}}
    if gate == "G4":
        return {
            "soak": [
                {
                    "hour": h,
                    "requests": 8123 + rng.randint(-40, 40),
                    "errors": 1 if h in (17, 51) else 0,
                    "ttft_p50_ms": f"{148.2 * (1 + rng.gauss(0, 0.004) + 0.0001 * h):.3f}",
                    "output_tokens_per_s": f"{5650 * (1 + rng.gauss(0, 0.003)):.2f}",
                    "rss_bytes": int(1.9e9 + 2.1e5 * h),
                }
                for h in range(72)
            ],
            "limits": {"ttft_p50_ms": {"high": "155.6"}},
            "events": [{"hour": 24.5, "kind": "injection", "detail": "link down for 20 s, labelled"}],
        }
    return {}
