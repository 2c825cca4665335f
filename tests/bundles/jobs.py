"""The two kinds of detached jobs: one run of one arm, and the soak."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from gates.model import StepSpec
from tests.bundles import sglang
from tests.bundles.evidence import BOOT, Evidence
from tests.bundles.job import MODEL_LABELS, SECOND, SERVED, WALL, Job
from tests.bundles.truth import Truth


class Run(Job):
    """One run of one arm."""

    def __init__(self, evidence: Evidence, spec: StepSpec, truth: Truth, factor: float) -> None:
        super().__init__(evidence, spec, truth)
        ttft = {"recompute": truth.recompute_ms, "placebo": truth.recompute_ms * truth.placebo, "candidate": truth.baseline_ms * (1 - truth.drop)}
        wobble = factor * (1 + self.random.gauss(0, truth.run_noise))
        self.ttft_ms = ttft.get(self.arm, truth.baseline_ms) * wobble
        decode = {"candidate": truth.candidate_decode, "placebo": truth.placebo}
        self.decode_ms = truth.decode_ms * decode.get(self.arm, 1.0)

    def times(self, tier: int) -> Callable[[int, int], tuple[int, int]]:
        def pick(_index: int, _sent: int) -> tuple[int, int]:
            ttft = self.ttft_ms * tier * max(0.1, 1 + self.random.gauss(0, self.truth.noise))
            decode = self.decode_ms * tier * max(0.1, 1 + self.random.gauss(0, self.truth.noise))
            return int(ttft * 10**6), int(decode * 10**6)

        return pick

    def write(self) -> None:
        work, wanted = self.plan.workload, [(int(t["tier"]), int(t["requests"])) for t in self.spec.params["tiers"]]
        if self.spec.params["store"]:
            self.store([(tier, index) for tier, count in wanted for index in range(count)])
        self.cool()
        began = self.now
        for index in range(int(self.spec.params["warmup"])):
            self.records.append(self.request("warmup", None, index, self.now, 10**7, 10**6))
            self.now += 2 * 10**7
        self.phase("warmup", None, began)
        tiers = []
        for tier, count in wanted:
            began = self.now
            self.cold("before_tier", tier)
            self.scrape("before", "measure", tier)
            self.loop("measure", tier, count, self.times(tier))
            self.scrape("after", "measure", tier)
            self.cold("after_tier", tier)
            self.phase("measure", tier, began)
            hashes = [
                r["prompt_sha256"]
                for r in sorted((r for r in self.records if r["phase"] == "measure" and r["tier"] == tier), key=lambda r: r["prompt"])
            ]
            tiers.append(
                {
                    "tier": tier,
                    "requests": count,
                    "context_tokens": work.context_tokens,
                    "suffix_tokens": work.suffix_tokens,
                    "output_tokens": work.output_tokens,
                    "prompts_sha256": hashlib.sha256("\n".join(hashes).encode()).hexdigest(),
                }
            )
        if self.spec.params["repeat"]:
            began, (tier, most) = self.now, wanted[0]
            self.loop("repeat", tier, min(int(self.spec.params["repeat"]), most), self.times(tier))
            self.phase("repeat", tier, began)
        self.finish(tiers)


def planned_disturbances(spec: StepSpec) -> dict[str, Any]:
    """Return what the job of a soak is told of the plan's injections, with the commands that a site has for them."""
    rows = [{**row, "start": ["begin"], "stop": ["end"]} for row in spec.params.get("injections") or []]
    return {"injections": rows} if rows else {}


def asked(n: int, spec: StepSpec, hosts: int = 1) -> int:
    """Return the prompt number of the n-th request of a soak: a window of the sentinel of each engine host, then the rotation, round and round."""
    rotating, window = sum(int(t["requests"]) for t in spec.params["tiers"]), hosts * (int(spec.params["sentinel"]["prefixes"]) + 1)
    return -(-rotating // hosts) * hosts + n if n < window else (n - window) % rotating


class Soak(Job):
    """The soak of the candidate."""

    def __init__(self, evidence: Evidence, spec: StepSpec, truth: Truth, hours: float | None) -> None:
        super().__init__(evidence, spec, truth)
        whole = float(self.plan.scaled_seconds(self.plan.g4.duration.base))
        self.seconds = whole if hours is None else hours * 3600 / float(self.plan.rig.time_scale)
        self.ttft_ms = truth.baseline_ms * (1 - truth.drop)

    def write(self) -> None:
        tier, period = int(self.spec.params["tier"]), float(self.spec.params["telemetry_s"])
        rotating, hosts = self.plan.workload.requests(tier), self.truth.engine_hosts
        behind, prefixes = -(-rotating // hosts) * hosts, int(self.spec.params["sentinel"]["prefixes"])
        self.store([(None, index) for index in (*range(rotating), *range(behind, behind + hosts * prefixes))])
        self.cool()
        began = self.now
        until = began + int(self.seconds * SECOND)

        def times(_index: int, sent: int) -> tuple[int, int]:
            factor = self.truth.drift((sent - began) / (until - began)) * max(0.1, 1 + self.random.gauss(0, self.truth.noise))
            return int(self.ttft_ms * tier * factor * 10**6), int(self.truth.decode_ms * tier * factor * 10**6)

        self.soak = {"seconds": self.seconds, "tier": tier, "telemetry_s": period, "rotate_prefixes": rotating, "request_cap": None}
        self.soak |= {"sentinel": self.spec.params["sentinel"], **planned_disturbances(self.spec)}
        self.cold("before_tier", tier)
        self.scrape("before", "soak", tier)
        before = self.count["served"]
        self.loop("soak", tier, 0, times, until)
        for row in (r for r in self.records if r["phase"] == "soak"):
            if self.truth.fails(row["prompt"]):
                row.update(error={"kind": "stream_error", "message": "KV transfer failed"}, first_text_ns=None, usage=None, finish_reason=None)
            row["prompt"] = asked(row["prompt"], self.spec, hosts)
        self.scrape("after", "soak", tier)
        ends = sorted(row["end_ns"] for row in self.records if row["phase"] == "soak")
        telemetry = []
        hits = self.count["external_kv_transfer"]
        tier_hits, served = f"vllm:external_prefix_cache_hits_total{MODEL_LABELS}", SERVED
        if self.truth.engine == "sglang":
            tier_hits, served = sglang.TIER_HITS, sglang.SERVED
        for n in range(int((self.now - began) / SECOND / period) + 1):
            progress = n * period / self.seconds
            telemetry.append(
                {
                    "wall_ns": 10**18,
                    "mono_ns": began + int(n * period * SECOND),
                    "boot_id": BOOT,
                    "engine": {
                        **{k: v for k, v in self.engine.items() if k != "boot_id"},
                        "alive": True,
                        "rss_bytes": int(200e6 + self.truth.leak_bytes * progress + self.random.gauss(0, 1e5)) // 4096 * 4096,
                        "fds": 40,
                        "threads": 9,
                        "io_read_bytes": 0,
                    },
                    "host": {"mem_total_bytes": 16 * 2**30, "mem_available_bytes": 8 * 2**30, "load1": 1.0, "cpu_s": 1.0},
                    "kv_dir_bytes": 10**8,
                    "metrics": {
                        tier_hits: str(int(hits * min(progress, 1))),
                        served: str(before + bisect_right(ends, began + int(n * period * SECOND))),
                    },
                    "counters": dict.fromkeys(self.plan.g4.fatal_counters, 0),
                }
            )
        self.now += 10**6
        soak = [row for row in self.records if row["phase"] == "soak"]
        sentinel = [row for row in soak if row["prompt"] >= rotating]
        self.phase("soak", tier, began, seconds=self.seconds, requests=len(soak), rotate_prefixes=rotating, spacing_ns=0)
        seen = []
        for place in range(hosts):
            own = [row for row in sentinel if row["prompt"] % hosts == place]
            window = {
                "window": 0,
                "from_ns": began,
                "requests": len(own),
                "failed": sum(row["error"] is not None for row in own),
                "ttft_p50_ns": 5_000_000,
                "compared": 16,
                "other_answers": [],
                "hits_of_never_stored": [],
            }
            seen.append({"wall_ns": WALL + began, "mono_ns": began, "boot_id": BOOT, "kind": "sentinel", "detail": window})
        self.finish([], telemetry=telemetry, events=seen)
