"""The verdict of web_data: a passed G3 in the form of verdict.json, with the data of its charts."""

from __future__ import annotations

import math
import random
from typing import Any

HASH = "sha256:9f2c41d07be35a8816aa0c6cde54b93307f1d2a94ce8b5600f7d3e2a1c9b8476"


def both(en: str, zh: str = "") -> dict[str, str]:
    return {"en": en, "zh-CN": zh or en}


def document() -> dict[str, Any]:
    checks = []
    for tier, drop in ((8, "0.2596"), (16, "0.2713"), (32, "0.2641")):
        checks.append(
            _check(
                f"g3.ttft_p50_drop.c{tier}",
                f"TTFT p50 drop, c = {tier}",
                f"TTFT p50 降幅，并发 {tier}",
                "ttft_p50_drop",
                drop,
                {"op": ">=", "low": "0.25", "high": None},
                tier,
            )
        )
    for tier, gain in ((8, "0.3412"), (16, "0.3655")):
        checks.append(
            _check(
                f"g3.throughput_gain.c{tier}",
                f"Throughput gain, c = {tier}",
                f"吞吐提升，并发 {tier}",
                "throughput_gain",
                gain,
                {"op": "band", "low": "0.29", "high": "0.40"},
                tier,
            )
        )
    checks.append(
        _check(
            "g3.tpot_p99.c16",
            "TPOT p99 ratio, c = 16",
            "TPOT p99 比值，并发 16",
            "tpot_p99_ratio",
            "1.0214",
            {"op": "<=", "low": None, "high": "1.05"},
            16,
        )
        | {"severity": "advisory"}
    )
    claims = []
    for name, en, zh in (
        ("hbm_cold", "GPU cache was cold", "显存缓存为冷态"),
        ("page_cache_cold", "Page cache was cold", "页缓存为冷态"),
        ("external_hits", "Prefixes came from the external tier", "前缀来自外部层"),
        ("equal_work", "All arms did equal work", "各对照组工作量相等"),
        ("littles_law", "Little's law holds", "符合利特尔法则"),
    ):
        for arm in ("baseline", "candidate", "recompute", "placebo"):
            status = (
                "not_applicable"
                if name == "external_hits" and arm in ("recompute", "placebo")
                else "unknown"
                if (name, arm) == ("littles_law", "placebo")
                else "holds"
            )
            claims.append(
                {
                    "claim": name,
                    "arm": arm,
                    "title": both(en, zh),
                    "status": status,
                    "reason": both("Proved by the counters before and after each tier.", "由每档前后的计数器证明。"),
                    "value": "0.0004",
                    "limit": {"op": "<=", "low": None, "high": "0.005"},
                    "unit": "1",
                    "attribution": None,
                    "run": "run-1",
                    "tier": 8,
                    "evidence": [],
                }
            )
    head = {
        "schema": 1,
        "gate": "G3",
        "verdict": "pass",
        "because": [],
        "judge_version": "1.0.0",
        "rules_hash": HASH,
        "plan_hash": HASH,
        "manifest_hash": HASH,
        "simulated": False,
    }
    summary = both(
        "TTFT p50 fell by at least 25 % at every agreed concurrency, and the throughput gain lies inside the band of +29..40 %.",
        "在有效测量上，各约定并发的 TTFT p50 降幅均不小于 25 %，吞吐提升落在 +29..40 % 区间内。",
    )
    risk = both(
        "Simple acceptance: a product whose true value lies on the limit passes in half of all cases.",
        "简单接受：真值恰在限值上的产品，有一半的可能性被判为通过。",
    )
    untested = [{"claim": "model_load", "title": both("Model load time", "模型加载时间"), "reason": both("agreed by both parties", "双方约定不测")}]
    return head | {"summary": summary, "risk": risk, "checks": checks, "claims": claims, "not_tested": untested, "figures": _figures(), "facts": {}}


def _check(name: str, en: str, zh: str, quantity: str, value: str, limit: dict[str, Any], tier: int) -> dict[str, Any]:
    reason = both("Both run pairs agree within 5 %; the estimate clears the limit.", "两对轮次相差在 5 % 以内；估计值越过限值。")
    interval = {"low": None, "high": None, "confidence": "0.95", "n": 2, "note": both("too few pairs for an interval", "配对过少，不给出区间")}
    edge = limit["low"] or limit["high"]
    margin = f"{float(value) - float(edge):.4f}"
    base = {
        "id": name,
        "title": both(en, zh),
        "verdict": "pass",
        "because": None,
        "reason": reason,
        "severity": "blocking",
        "quantity": quantity,
        "unit": "1",
        "value": value,
    }
    return base | {
        "limit": limit,
        "interval": interval,
        "margin": margin,
        "arm": "candidate",
        "tier": tier,
        "host": None,
        "source": f"g3.{quantity}",
        "evidence": [],
    }


def _figures() -> dict[str, Any]:
    rng = random.Random(7)
    ttft: dict[str, Any] = {}
    for tier in ("8", "16", "32"):
        base = 60.0 + 14 * math.log2(int(tier))
        arms = {}
        for arm, factor, runs in (("baseline", 1.0, 2), ("candidate", 0.735, 2), ("recompute", 2.4, 1), ("placebo", 2.42, 1)):
            arms[arm] = []
            for run in range(runs):
                ms = sorted(base * factor * math.exp(rng.gauss(0, 0.09)) for _ in range(120))
                arms[arm].append({"run": f"run-{run + 1}", "ms": [round(v, 3) for v in ms], "p50_ms": f"{(ms[59] + ms[60]) / 2:.3f}"})
        ttft[tier] = arms | {"limit_ms": f"{0.75 * base:.3f}"}
    gain = {
        "8": {"gain": "0.3412", "low": "0.29", "high": "0.40", "arms": {"baseline": ["512.2"], "candidate": ["687.0"]}},
        "16": {"gain": "0.3655", "low": "0.29", "high": "0.40", "arms": {"baseline": ["801.5"], "candidate": ["1094.4"]}},
    }
    return {"ttft": ttft, "throughput": gain}
