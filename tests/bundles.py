"""Synthetic but complete evidence bundles, made from a chosen truth: for every test that needs a verdict without a target.

    evidence = g3_evidence(Truth(drop=0.30))       # or g2_evidence, g4_evidence
    evidence.bundle()                              # a Bundle in memory, with a manifest that fits
    evidence.write(tmp_path / "bundle")            # a directory;  evidence.zip(path) a zip
    evidence.lines("run-2", "records.jsonl", fn)   # edit rows; pack.json and exit.json follow unless told not to

The closed loop is simulated request by request: C workers, each sends its next request when its last one ended.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import random
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gates.bundle import Bundle, make_manifest, write_manifest
from gates.canonical import canonical_bytes, sha256_hex
from gates.model import StepKind, StepSpec
from gates.plan import Plan, parse_plan

HOST, ATTEMPT, BOOT = "gpu01", "0193-attempt", "b007-0001"
MODEL_LABELS = '{engine="0",model_name="lab"}'
KV_BYTES, BLOCK, GPU_BLOCKS = 16, 4096, 320
SECOND = 10**9

# A plan of small runs: the same structure, a tenth of the requests. Tests that count requests use the default plan instead.
SMALL = {
    "workload": {"tiers": [2, 4, 8], "requests_per_run": {"min": 24, "per_concurrency": 6}, "identity_repeats": 8, "warmup_requests": 2},
    "g3": {"ttft_p50_drop_min": {"tiers": [2, 4, 8]}, "throughput_gain_band": {"tiers": [2, 4]}},
    "g4": {"tier": 4, "window_requests_min": 10},
}


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return maps merged key by key, later ones winning."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = out.get(key)
            out[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out


def small_plan(differences: Mapping[str, Any] | None = None) -> Plan:
    """Return a plan of small runs with further differences."""
    return parse_plan(merged(SMALL, differences or {}))


def soak_plan(differences: Mapping[str, Any] | None = None) -> Plan:
    """Return a plan with a soak of a day, 3600 times as fast."""
    fast = {"rig": {"simulated": True, "time_scale": "3600"}, "g4": {"duration": "24 h", "gap_max": "30 min", "leak": {"warmup": "4 h"}}}
    return small_plan(merged(fast, differences or {}))


@dataclass(frozen=True)
class Truth:
    """What is true in the simulated world. Times in milliseconds a unit of concurrency."""

    drop: float = 0.30  # of the candidate's TTFT against the baseline's
    baseline_ms: float = 17.0
    recompute_ms: float = 28.0
    decode_ms: float = 17.0 * 0.1696  # with the default drop the gain lies in the middle of the band: +34.5 %
    noise: float = 0.01  # of single requests
    run_noise: float = 0.0  # of whole runs
    seed: int = 1
    offsets: bool = False  # write chunk offsets (bigger files; the judge does not need them)
    noise_floor: float = 0.0  # share of outputs in which recompute differs from itself
    baseline_runs: tuple[float, ...] = ()  # a factor on the TTFT of each baseline run
    candidate_decode: float = 1.0  # a factor on the candidate's decode time
    placebo: float = 1.0  # a factor on the placebo's times over recompute's
    # soak: factor on time by progress 0..1, error predicate by request number, bytes of memory by progress
    drift: Callable[[float], float] = lambda _: 1.0
    fails: Callable[[int], bool] = lambda _: False
    leak_bytes: float = 0.0


@dataclass
class Evidence:
    """The files of a bundle, open for edits."""

    gate: str
    plan: Plan
    files: dict[str, bytes] = field(default_factory=dict)
    attempt: dict[str, Any] = field(default_factory=lambda: {"id": ATTEMPT, "number": 1, "rehearsal": False, "seed": 7, "status": "running"})
    simulated: bool = False

    def path(self, step: str, name: str) -> str:
        """Return the path of a step's file."""
        return f"evidence/{step}/{HOST}/{name}"

    def read(self, step: str, name: str) -> Any:
        """Return a JSON file's data."""
        return json.loads(self.files[self.path(step, name)])

    def rows(self, step: str, name: str) -> list[dict[str, Any]]:
        """Return a journal's rows."""
        return [json.loads(line) for line in self.files[self.path(step, name)].decode().splitlines()]

    def json(self, step: str, name: str, edit: Callable[[dict[str, Any]], Any], *, repack: bool = True) -> Evidence:
        """Edit a JSON file in place; a returned value replaces it."""
        data = self.read(step, name)
        new = edit(data)
        self.files[self.path(step, name)] = _dump(data if new is None else new)
        return self.repack(step) if repack else self

    def lines(self, step: str, name: str, edit: Callable[[list[dict[str, Any]]], Any], *, repack: bool = True, renumber: bool = False) -> Evidence:
        """Edit a journal's rows in place; a returned list replaces them."""
        rows = self.rows(step, name)
        rows = edit(rows) or rows
        if renumber:
            rows = [{**row, "seq": n} for n, row in enumerate(rows)]
        self.files[self.path(step, name)] = _lines(rows, number=False)
        if name == "records.jsonl" and repack:
            end = self.read(step, "exit.json")
            self.files[self.path(step, "exit.json")] = _dump({**end, "records": len(rows), "last_seq": len(rows) - 1})
        return self.repack(step) if repack else self

    def inputs(self, edit: Callable[[dict[str, Any]], Any]) -> Evidence:
        """Edit evidence/inputs.json."""
        data = json.loads(self.files["evidence/inputs.json"])
        edit(data)
        self.files["evidence/inputs.json"] = _dump(data)
        return self

    def drop(self, path: str) -> Evidence:
        """Remove a file."""
        del self.files[path]
        return self

    def repack(self, step: str) -> Evidence:
        """Make pack.json fit the files of a step again."""
        prefix = self.path(step, "")
        names = sorted(p.removeprefix(prefix) for p in self.files if p.startswith(prefix) and not p.endswith("/pack.json"))
        listed = [{"path": n, "size": len(self.files[prefix + n]), "sha256": sha256_hex(self.files[prefix + n])} for n in names]
        self.files[prefix + "pack.json"] = _dump({"schema": 1, "job": f"{ATTEMPT}-{step}", "files": listed})
        return self

    def manifest(self) -> dict[str, Any]:
        """Return a manifest that fits the files as they are now."""
        listed = [
            {"path": p, "size": len(b), "sha256": sha256_hex(b), "step": p.split("/")[1], "host": HOST, "tool": "probe"}
            for p, b in self.files.items()
        ]
        return make_manifest(
            plan=self.plan, gate=self.gate, attempt=self.attempt, simulated=self.simulated, created_at="2026-11-29T00:00:00Z", files=listed
        )

    def bundle(self, verdict: Mapping[str, Any] | None = None) -> Bundle:
        """Return the bundle in memory."""
        return Bundle(self.manifest(), self.files.__getitem__, verdict=verdict)

    def write(self, folder: Path, verdict: Mapping[str, Any] | None = None) -> Path:
        """Write the bundle as a directory, and return it."""
        for path, data in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        write_manifest(folder, self.manifest())
        if verdict is not None:
            (folder / "verdict.json").write_bytes(canonical_bytes(verdict))
        return folder

    def zip(self, path: Path, verdict: Mapping[str, Any] | None = None) -> Path:
        """Write the bundle as a zip, and return its path."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in self.files.items():
                out.writestr(name, data)
            out.writestr("manifest.json", canonical_bytes(self.manifest()))
            if verdict is not None:
                out.writestr("verdict.json", canonical_bytes(verdict))
        return path


def g2_evidence(truth: Truth | None = None, plan: Plan | None = None) -> Evidence:
    """Return the evidence of a G2 attempt."""
    from gates.g2_baseline import steps

    evidence = _runs("G2", truth or Truth(), plan or small_plan(), steps)
    evidence.files[evidence.path("deploy", "host.json")] = _dump({"host": HOST, "boot_id": BOOT, "kernel": "6.1", "python": "3.11.7"})
    evidence.files[evidence.path("deploy", "commands.json")] = _dump([])
    return evidence


def g3_evidence(truth: Truth | None = None, plan: Plan | None = None) -> Evidence:
    """Return the evidence of a G3 attempt, with a frozen G2 baseline that agrees."""
    from gates.g3_main import steps

    truth, plan = truth or Truth(), plan or small_plan()
    evidence = _runs("G3", truth, plan, steps)
    tiers = {}
    for tier in plan.workload.tiers:
        e2e = (truth.baseline_ms + truth.decode_ms) * tier / 1000
        tiers[str(tier)] = {
            "ttft_p50_ns": int(truth.baseline_ms * tier * 10**6),
            "output_tokens_per_s": f"{tier * plan.workload.output_tokens / e2e:.6f}",
        }
    return evidence.inputs(lambda d: d.update(g2_baseline={"hash": "sha256:" + "0" * 64, "tiers": tiers}))


def g4_evidence(truth: Truth | None = None, plan: Plan | None = None, *, hours: float | None = None) -> Evidence:
    """Return the evidence of a G4 attempt on a scaled clock: a day of the plan as 24 s unless the plan says otherwise."""
    from gates.g4_soak import steps

    truth = truth or Truth()
    plan = plan or soak_plan()
    evidence = Evidence("G4", plan, simulated=plan.rig.simulated)
    evidence.files["evidence/inputs.json"] = _inputs(plan)
    spec = next(s for s in steps(plan) if s.kind is StepKind.JOB)
    _Soak(evidence, spec, truth, hours).write()
    return evidence


def _runs(gate: str, truth: Truth, plan: Plan, steps: Callable[[Plan], tuple[StepSpec, ...]]) -> Evidence:
    evidence = Evidence(gate, plan, simulated=plan.rig.simulated)
    evidence.files["evidence/inputs.json"] = _inputs(plan)
    baselines = 0
    for spec in steps(plan):
        if spec.kind is StepKind.JOB:
            factor = 1.0
            if spec.params["arm"] == "baseline":
                factor = truth.baseline_runs[baselines] if baselines < len(truth.baseline_runs) else 1.0
                baselines += 1
            _Run(evidence, spec, truth, factor).write()
    return evidence


def _inputs(plan: Plan) -> bytes:
    return _dump(
        {
            "schema": 1,
            "engagement": {"code": "TEST", "customer": "甲方", "vendor": "乙方", "site": "机房", "contract": "HT-1"},
            "order": {},
            "packing_list": [],
            "hosts": {"engine": [HOST], "loadgen": [HOST], "storage": ["array01"]},
            "simulated": plan.rig.simulated,
            "g2_baseline": None,
            "injections": [],
            "rig_causes": [],
            "interruption": None,
        }
    )


class _Job:
    """What a run and a soak write alike."""

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
            "local_compute": 0,
            "local_cache_hit": 0,
            "external_kv_transfer": 0,
            "loaded": 0,
            "stored": 0,
            "read": 0,
            "written": 0,
        }
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
                "started_wall_ns": began,
                "boot_id": BOOT,
                "ok": True,
                "detail": detail,
            }
        )

    def scrape(self, when: str, phase: str, tier: int | None) -> None:
        c = self.count
        metrics = {f"vllm:prompt_tokens_total{MODEL_LABELS}": f"{c['prompt']}.0"}
        for source in ("local_compute", "local_cache_hit", "external_kv_transfer"):
            metrics[f'vllm:prompt_tokens_by_source_total{{engine="0",model_name="lab",source="{source}"}}'] = f"{c[source]}.0"
        metrics |= {
            f"vllm:external_prefix_cache_hits_total{MODEL_LABELS}": f"{c['external_kv_transfer']}.0",
            f"vllm:prefix_cache_hits_total{MODEL_LABELS}": f"{c['local_cache_hit']}.0",
            f"vllm:kv_offload_load_bytes_total{MODEL_LABELS}": f"{c['loaded']}.0",
            f"vllm:kv_offload_load_failures_total{MODEL_LABELS}": "0.0",
            f"vllm:kv_offload_store_bytes_total{MODEL_LABELS}": f"{c['stored']}.0",
        }
        self.counters.append(
            {
                "when": when,
                "phase": phase,
                "tier": tier,
                "mono_ns": self.now,
                "engine_io": {"read_bytes": c["read"], "write_bytes": c["written"], "rchar": c["read"]},
                "diskstats": {"dev": "vda", "read_sectors": c["read"] // 512, "write_sectors": c["written"] // 512},
                "array": {"host_read_bytes": c["read"], "media_read_bytes": c["read"]},
                "metrics": metrics,
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
                "files": 10 if self.recovers else 0,
                "bytes": stored,
                "resident_bytes": 0,
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
        self.account(phase, length)
        return row

    def account(self, phase: str, length: int) -> None:
        work, c = self.plan.workload, self.count
        hit = work.context_tokens if self.recovers and phase in ("measure", "soak") else 0
        c["prompt"] += length
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
        documents = {
            "job.json": {"schema": 1, "job": f"{ATTEMPT}-{step}", "kind": self.spec.params["kind"], "fence": 1, "host": HOST},
            "engine.json": {
                "argv": ["lab-engine"],
                "version": "1.0",
                "config": {},
                "kv_bytes_per_token": KV_BYTES,
                "num_gpu_blocks": GPU_BLOCKS,
                "block_tokens": BLOCK,
                "model": "lab",
                "config_sha256": "0" * 64,
                "started_wall_ns": 1,
                "metrics_names": ["vllm:prompt_tokens_total", "vllm:kv_offload_load_failures_total"],
            },
            "arm.json": arm,
            "client.json": {
                "cpu_s": 1.5,
                "wall_s": 30.0,
                "loop_lag_p99_ns": 200_000,
                "calibration": {"true_ttft_ns": 50_000_000, "measured_ttft_p50_ns": 50_100_000, "n": 16, "error": 0.002},
                "python": "3.11.7",
                "driver_version": "1",
            },
            "workload.json": {"seed": 7, "set": self.spec.params["set"], "tiers": tiers},
            "exit.json": {
                "job": f"{ATTEMPT}-{step}",
                "ended_wall_ns": self.now + 10**18,
                "ended_ns": self.now,
                "boot_id": BOOT,
                "outcome": "done",
                "error": None,
                "records": len(self.records),
                "last_seq": len(self.records) - 1,
            },
        }
        journals = {"phases": self.phases, "records": self.records, "coldness": self.coldness, "counters": self.counters, **more}
        files = self.evidence.files
        for name, data in documents.items():
            files[self.evidence.path(step, name)] = _dump(data)
        for name, rows in journals.items():
            files[self.evidence.path(step, f"{name}.jsonl")] = _lines(rows)
        self.evidence.repack(step)
        assert work.context_tokens % BLOCK == 0


class _Run(_Job):
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


class _Soak(_Job):
    """The soak of the candidate."""

    def __init__(self, evidence: Evidence, spec: StepSpec, truth: Truth, hours: float | None) -> None:
        super().__init__(evidence, spec, truth)
        whole = float(self.plan.scaled_seconds(self.plan.g4.duration.base))
        self.seconds = whole if hours is None else hours * 3600 / float(self.plan.rig.time_scale)
        self.ttft_ms = truth.baseline_ms * (1 - truth.drop)

    def write(self) -> None:
        tier, period = int(self.spec.params["tier"]), float(self.spec.params["telemetry_s"])
        self.store([(None, index) for index in range(self.plan.workload.requests(tier))])
        self.cool()
        began = self.now
        until = began + int(self.seconds * SECOND)

        def times(_index: int, sent: int) -> tuple[int, int]:
            factor = self.truth.drift((sent - began) / (until - began)) * max(0.1, 1 + self.random.gauss(0, self.truth.noise))
            return int(self.ttft_ms * tier * factor * 10**6), int(self.truth.decode_ms * tier * factor * 10**6)

        self.cold("before_tier", tier)
        self.scrape("before", "soak", tier)
        self.loop("soak", tier, 0, times, until)
        for row in (r for r in self.records if r["phase"] == "soak"):
            if self.truth.fails(row["prompt"]):
                row.update(error={"kind": "stream_error", "message": "KV transfer failed"}, first_text_ns=None, usage=None, finish_reason=None)
        self.scrape("after", "soak", tier)
        telemetry = []
        hits = self.count["external_kv_transfer"]
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
                        "rss_bytes": int(200e6 + self.truth.leak_bytes * progress + self.random.gauss(0, 1e5)),
                        "fds": 40,
                        "threads": 9,
                        "io_read_bytes": 0,
                    },
                    "host": {"mem_available_bytes": 8 * 2**30, "load1": 1.0, "cpu_s": 1.0},
                    "kv_dir_bytes": 10**8,
                    "metrics": {f"vllm:external_prefix_cache_hits_total{MODEL_LABELS}": str(int(hits * min(progress, 1)))},
                    "counters": dict.fromkeys(self.plan.g4.fatal_counters, 0),
                }
            )
        self.now += 10**6
        self.phase("soak", tier, began)
        self.finish([], telemetry=telemetry, events=[])


def _dump(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _lines(rows: list[dict[str, Any]], *, number: bool = True) -> bytes:
    numbered = ({"seq": n, **row} for n, row in enumerate(rows)) if number else iter(rows)
    return b"".join((json.dumps(row, separators=(",", ":")) + "\n").encode() for row in numbered)
