"""What a run and a soak write alike: phases, requests, counters, coldness, and the documents at the end."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable
from typing import Any

from gates.model import StepSpec
from tests.bundles import sglang
from tests.bundles.evidence import ATTEMPT, BOOT, HOST, SEED, Evidence, dumped, journal
from tests.bundles.truth import Truth

MODEL_LABELS = '{engine="0",model_name="lab"}'
SERVED = 'vllm:request_success_total{engine="0",finished_reason="length",model_name="lab"}'
KV_BYTES, BLOCK, GPU_BLOCKS = 16, 4096, 320
PAGE_BYTES = 4096  # of the kernel
MEDIUM: dict[str, Any] = {"dir": "/kv", "mount_point": "/", "fs_types": ["xfs"], "sources": ["/dev/md/qg-array"]}
SECOND = 10**9
WALL = 10**18  # ns by which the wall clock is ahead of the monotonic one


def lag_digits(p99: int, most: int, ticks: int) -> dict[str, int]:
    """Return ticks by the binary digits of their lag (ns): one of the largest, all others of the p99."""
    few, many = str(p99.bit_length()), str(most.bit_length())
    return {few: ticks} if few == many else {few: ticks - 1, many: 1}


def ticked(ticks: int) -> dict[str, Any]:
    """Return what a sound loop of so many ticks tells of them in client.json."""
    told = {"loop_lag_p99_ns": 200_000, "loop_lag_max_ns": 3_000_000, "loop_ticks": ticks}
    return {**told, "loop_lag_digits": lag_digits(200_000, 3_000_000, ticks)}


class Job:
    """One detached job on a simulated clock."""

    def __init__(self, evidence: Evidence, spec: StepSpec, truth: Truth) -> None:
        self.evidence, self.spec, self.truth, self.plan = evidence, spec, truth, evidence.plan
        self.arm = str(spec.params["arm"])
        self.random = random.Random(f"{truth.seed}-{spec.key}")
        self.now = int(spec.params["run_index"]) * 10**12 + 5 * SECOND
        self.records: list[dict[str, Any]] = []
        self.phases: list[dict[str, Any]] = []
        self.coldness: list[dict[str, Any]] = []
        self.counters: list[dict[str, Any]] = []
        self.count = {
            "prompt": 0,
            "served": 0,
            "generated": 0,
            "local_compute": 0,
            "local_cache_hit": 0,
            "external_kv_transfer": 0,
            "loaded": 0,
            "stored": 0,
            "read": 0,
            "written": 0,
        }
        self.soak: dict[str, Any] | None = None  # what the job of a soak is told
        self.engine = {"pid": 100 + int(spec.params["run_index"]), "start_ticks": self.now // 10**7, "boot_id": BOOT}

    @property
    def recovers(self) -> bool:
        return self.arm in ("baseline", "candidate", "baseline_tuned")

    def phase(self, name: str, tier: int | None, began: int, **detail: Any) -> None:
        self.phases.append(
            {
                "phase": name,
                "tier": tier,
                "started_ns": began,
                "ended_ns": self.now,
                "started_wall_ns": began + WALL,
                "boot_id": BOOT,
                "ok": True,
                "detail": detail,
            }
        )

    def page(self) -> dict[str, str]:
        """Return the engine's counters now."""
        c = self.count
        if self.truth.engine == "sglang":
            return sglang.page(c, kv_bytes=KV_BYTES, recovers=self.recovers)
        metrics = {f"vllm:prompt_tokens_total{MODEL_LABELS}": f"{c['prompt']}.0"}
        for source in ("local_compute", "local_cache_hit", "external_kv_transfer"):
            metrics[f'vllm:prompt_tokens_by_source_total{{engine="0",model_name="lab",source="{source}"}}'] = f"{c[source]}.0"
        return metrics | {
            SERVED: f"{c['served']}.0",
            f"vllm:generation_tokens_total{MODEL_LABELS}": f"{c['generated']}.0",
            f"vllm:external_prefix_cache_hits_total{MODEL_LABELS}": f"{c['external_kv_transfer']}.0",
            f"vllm:prefix_cache_hits_total{MODEL_LABELS}": f"{c['local_cache_hit']}.0",
            f"vllm:kv_offload_load_bytes_total{MODEL_LABELS}": f"{c['loaded']}.0",
            f"vllm:kv_offload_load_failures_total{MODEL_LABELS}": "0.0",
            f"vllm:kv_offload_store_bytes_total{MODEL_LABELS}": f"{c['stored']}.0",
        }

    def scrape(self, when: str, phase: str, tier: int | None) -> None:
        c = self.count
        self.counters.append(
            {
                "when": when,
                "phase": phase,
                "tier": tier,
                "mono_ns": self.now,
                "engine_io": {"read_bytes": c["read"], "write_bytes": c["written"], "rchar": c["read"]},
                "diskstats": {"dev": "vda", "read_sectors": c["read"] // 512, "write_sectors": c["written"] // 512},
                "array": {"host_read_bytes": c["read"], "media_read_bytes": c["read"]},
                "metrics": self.page(),
            }
        )

    def cold(self, when: str, tier: int | None, before: dict[str, Any] | None = None) -> None:
        stored = (
            sum(self.plan.workload.requests(t) for t in self.plan.workload.tiers) * self.plan.workload.context_tokens * KV_BYTES
            if self.recovers
            else 0
        )
        self.coldness.append(
            {
                "when": when,
                "tier": tier,
                "fs_type": "xfs" if self.recovers else None,
                "dir": "/kv" if self.recovers else None,
                "source": "/dev/md127" if self.recovers else None,
                "names": MEDIUM["sources"] if self.recovers else [],
                "mount_point": "/" if self.recovers else None,
                "files": 10 if self.recovers else 0,
                "bytes": stored,
                "resident_bytes": 0,
                "pages": -(-stored // PAGE_BYTES),
                "resident_pages": 0,
                "page_bytes": PAGE_BYTES,
                "method": "mincore",
                "engine": dict(self.engine),
                "engine_before": before,
            }
        )

    def request(self, phase: str, tier: int | None, index: int, sent: int, ttft: int, decode: int, **over: Any) -> dict[str, Any]:
        work = self.plan.workload
        length, limit = work.context_tokens + work.suffix_tokens, 1 if phase == "store" else work.output_tokens
        kind = "measure" if phase == "repeat" else phase
        group = "" if self.arm == "placebo" else str(self.spec.params["set"])
        private = self.spec.key if self.arm == "placebo" or phase in ("warmup", "canary") else ""
        prompt = hashlib.sha256(f"{group}|{private}|{kind}|{tier}|{index}".encode()).hexdigest()
        noisy = phase == "repeat" and self.random.random() < self.truth.noise_floor
        row = {
            "wall_ns": sent + 10**18,
            "mono_ns": sent + ttft + decode,
            "boot_id": BOOT,
            "phase": phase,
            "tier": tier,
            "prompt": index,
            "prompt_sha256": prompt,
            "prompt_tokens_sent": length,
            "max_tokens": limit,
            "scheduled_ns": sent,
            "sent_ns": sent,
            "first_byte_ns": sent + ttft - 1000,
            "first_text_ns": sent + ttft,
            "end_ns": sent + ttft + decode,
            "chunk_offsets_us": [(ttft + decode * i // max(limit - 1, 1)) // 1000 for i in range(limit)] if self.truth.offsets else [],
            "usage": {"prompt_tokens": length, "completion_tokens": limit, "cached_tokens": work.context_tokens if self.recovers else 0},
            "finish_reason": "length",
            "http_status": 200,
            "error": None,
            "output_sha256": hashlib.sha256(f"{prompt}{'x' if noisy else ''}".encode()).hexdigest(),
            "output_head": [" 1"],
            "server": {"recv_ns": sent + 1000, "first_ns": sent + ttft - 3000, "send_ns": sent + ttft - 2000},
        }
        row.update(over)
        self.account(phase, length, limit)
        return row

    def account(self, phase: str, length: int, output: int) -> None:
        work, c = self.plan.workload, self.count
        hit = work.context_tokens if self.recovers and phase in ("measure", "soak") else 0
        c["prompt"] += length
        c["served"] += 1
        c["generated"] += output
        c["external_kv_transfer"] += hit
        c["local_compute"] += length - hit
        c["loaded"] += hit * KV_BYTES
        c["read"] += hit * KV_BYTES
        if phase == "store":
            c["stored"] += work.context_tokens * KV_BYTES
            c["written"] += work.context_tokens * KV_BYTES

    def store(self, prompts: list[tuple[int | None, int]]) -> None:
        began = self.now
        self.scrape("before", "store", None)
        for tier, index in prompts:
            self.records.append(self.request("store", tier, index, self.now, 10**6, 0))
            self.now += 2 * 10**6
        self.scrape("after", "store", None)
        self.phase("store", None, began)

    def cool(self) -> None:
        before, began = {k: v for k, v in self.engine.items() if k != "boot_id"}, self.now
        self.count = dict.fromkeys(self.count, 0)
        self.now += SECOND
        self.engine = {"pid": self.engine["pid"] + 1000, "start_ticks": self.now // 10**7, "boot_id": BOOT}
        self.now += SECOND
        self.cold("after_cool", None, before)
        self.phase("cool", None, began)

    def loop(self, phase: str, tier: int, count: int, times: Callable[[int, int], tuple[int, int]], until: int | None = None) -> None:
        """Run a closed loop of `tier` workers over `count` requests (or until a time); each worker needs 20 us between two requests."""
        workers = [(self.now + i * 1000, i) for i in range(tier)]
        heapq.heapify(workers)
        rows = []
        index = 0
        while (index < count) if until is None else (workers[0][0] < until):
            sent, worker = heapq.heappop(workers)
            ttft, decode = times(index, sent)
            rows.append(self.request(phase, tier, index, sent, ttft, decode))
            heapq.heappush(workers, (sent + ttft + decode + 20_000, worker))
            index += 1
        rows.sort(key=lambda r: r["end_ns"])
        self.records += rows
        self.now = max(r["end_ns"] for r in rows) + 10**6

    def finish(self, tiers: list[dict[str, Any]], **more: list[dict[str, Any]]) -> None:
        step, work = self.spec.key, self.plan.workload
        medium = {"baseline": "nfs", "baseline_tuned": "nfs", "candidate": "array", "placebo": "array"}.get(self.arm)
        arm = {"engine.prefix_caching": True, "engine.max_model_len": 65536}
        if medium:
            arm |= {"engine.tier.threads": 8, "engine.tier.mount_path": f"/mnt/{medium}", "engine.tier.device": medium}
        measured = [r for r in self.records if r["phase"] in ("measure", "soak") and r["error"] is None]
        documents = {
            "job.json": {
                "schema": 1,
                "job": f"{ATTEMPT}-{step}",
                "kind": self.spec.params["kind"],
                "fence": 1,
                "host": HOST,
                "engine": {"kv_dirs": ["/kv"] if self.recovers else [], "media": [MEDIUM] if self.recovers else []},
                "arm": arm,
                "workload": {
                    "seed": SEED,
                    "vocab": [100, 999],
                    "unique": True,
                    **{key: self.spec.params[key] for key in ("context_tokens", "suffix_tokens", "output_tokens", "set", "tiers")},
                },
                "soak": self.soak,
            },
            "engine.json": {
                "argv": ["lab-engine"],
                "version": "1.0",
                "config": {},
                "kv_bytes_per_token": KV_BYTES,
                "num_gpu_blocks": GPU_BLOCKS,
                "block_tokens": BLOCK,
                "model": "lab",
                "config_sha256": "0" * 64,
                "model_config_sha256": None,
                "hash_seed": None,
                "started_wall_ns": 1,
                "metrics_names": sorted({series.partition("{")[0] for row in self.counters for series in row["metrics"]}),
            },
            "arm.json": arm,
            "client.json": {
                "cpu_s": 1.5,
                "wall_s": 30.0,
                **ticked(2_995),
                "calibration": {
                    "true_ttft_ns": 50_000_000,
                    "measured_ttft_p50_ns": 50_100_000,
                    "n": 16,
                    "error": 0.002,
                    "concurrency": 2,
                    "receipt": {
                        "concurrency": 8,
                        "n": 32,
                        "late_min_ns": 3_000,
                        "late_p50_ns": 4_000,
                        "late_p99_ns": 40_000,
                        "late_max_ns": 40_000,
                        "tokens_exact": True,
                    },
                    "kinds": [{"kind": "good", "as_expected": True}],
                    "told_apart": True,
                },
                "receipts": {
                    "kernel": 10 * len(measured),
                    "loop": 0,
                    "clock_steps": 0,
                    "read_delay_p50_ns": 9_000,
                    "read_delay_p99_ns": 90_000,
                    "read_delay_max_ns": 900_000,
                },
                "server_stamps": {"answers": len(measured), "stamped": len(measured)},
                "python": "3.11.7",
                "driver_version": "1",
            },
            "workload.json": {"seed": SEED, "set": self.spec.params["set"], "tiers": tiers},
            "exit.json": {
                "job": f"{ATTEMPT}-{step}",
                "ended_wall_ns": self.now + WALL,
                "ended_ns": self.now,
                "boot_id": BOOT,
                "outcome": "done",
                "error": None,
                "records": len(self.records),
                "last_seq": len(self.records) - 1,
            },
        }
        for name in ("engine.json", "client.json", "workload.json"):
            documents[name]["job"] = documents["job.json"]["job"]
        journals = {"phases": self.phases, "records": self.records, "coldness": self.coldness, "counters": self.counters, **more}
        files = self.evidence.files
        for name, data in documents.items():
            files[self.evidence.path(step, name)] = dumped(data)
        for name, rows in journals.items():
            files[self.evidence.path(step, f"{name}.jsonl")] = journal(rows)
        self.evidence.repack(step)
        assert work.context_tokens % BLOCK == 0
