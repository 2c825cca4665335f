"""What run and soak share: the engine, the prompts, sending shots with an account, residency, and the client's own health."""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from probe import VERSION
from probe.calibrate import calibrate
from probe.driver import ClosedLoop
from probe.engine import Engine
from probe.errors import ProbeError
from probe.histogram import Histogram
from probe.job_main import Job
from probe.open_loop import Arrivals, OpenLoop
from probe.prompts import Prompts, Shot, tier_label
from probe.receipt import Receipts
from probe.reset import verified_reset
from probe.slot import Target

CANARY = "canary"


class Session:
    """One job's work on one engine. `host` is the engine's host: this one, or another that its attendant speaks for."""

    def __init__(self, job: Job, host: Any) -> None:
        self.job, self.spec, self.host = job, job.spec, host
        self.workload: Dict[str, Any] = self.spec["workload"]
        self.phases: Dict[str, Any] = self.spec["phases"]
        self.engine = Engine(self.spec["engine"], job.folder, self.spec["limits"], host)
        self.targets = [Target(base) for base in self.engine.bases]
        self.prompts = Prompts(self.workload, self.spec["engine"]["model"])
        self.timeout_s = float(self.spec["limits"]["request_timeout_s"])
        self.calibration: Optional[Dict[str, Any]] = None
        self._lags, self._receipts = Histogram(), Receipts()
        self._answers = self._stamped = 0
        self._cpu_s = self._wall_s = 0.0
        self._ports: List[Dict[str, Any]] = []

    def begin(self) -> None:
        """Write what is known before the first request, and hold the ruler to the truth."""
        if isinstance(self.spec.get("arm"), dict):
            self.job.write("arm.json", self.spec["arm"])
        self.job.progress.update(phase="calibration", tier=None)
        try:
            self.calibration = calibrate(busy=self._largest_tier())
        except ProbeError as error:
            self.calibration = {"true_ttft_ns": None, "measured_ttft_p50_ns": None, "n": 0, "error": None, "problem": str(error)}
        self.job.check()

    def ports(self, when: str) -> None:
        """Put on record what the storage ports counted, where they tell it. Programs are asked: only before and after what is measured."""
        told = self.host.ports()
        if told["ports"] or self._ports:
            self._ports.append(dict(told, when=when))
            self.job.write("ports.json", {"readings": self._ports})

    def send(self, shots: Iterable[Shot], concurrency: int, measured: bool = False, **options: Any) -> List[Dict[str, Any]]:
        """Send shots in a closed loop; every record goes to the journal. Return a short form of each: {error, usage, ...}.

        Shots given as a list are complete bodies; a generator makes them while the loop runs (soak only).
        """
        brief: List[Dict[str, Any]] = []
        journals, progress = self.job.journals, self.job.progress

        def keep(record: Dict[str, Any]) -> None:
            if not self.host.same_clock:
                record["server"] = None  # stamps of another host's clock say nothing beside ours
            journals.put("records.jsonl", record)
            progress["done"] += 1
            if measured and record["error"] is None:
                self._answers += 1
                self._stamped += (record["server"] or {}).get("send_ns") is not None
            if options_keep:
                brief.append({k: record[k] for k in ("error", "usage", "first_text_ns", "sent_ns")})

        options_keep = options.pop("keep", True)
        place = (self.targets, concurrency, self.timeout_s, keep, self.job.why_stop)
        arrivals = self.workload.get("arrivals") if measured else None
        loop = OpenLoop(Arrivals(arrivals, self.prompts.seed), *place, **options) if arrivals else ClosedLoop(*place, **options)
        result = loop.run(iter(shots))
        if measured:
            self._lags.merge(result["lags"])
            self._receipts.merge(result["receipts"])
            self._cpu_s += result["cpu_s"]
            self._wall_s += result["wall_s"]
        journals.flush()
        self.job.check()
        return brief

    def prefixes(self) -> Iterator[Any]:
        """Yield (label, tier or None, index) of every prefix that the set stores: all tiers in order, then the canary's."""
        for tier in self.workload["tiers"]:
            for index in range(int(tier["requests"])):
                yield tier_label(tier["tier"]), tier["tier"], index
        if self.phases.get("canary"):
            yield CANARY, None, 0

    def store(self, wanted: Iterable[Any]) -> None:
        """Send every prefix once with max_tokens 1, wait until storing has ended, and put the files on the disk."""
        todo = list(wanted)
        with self.job.phase("store", total=len(todo)) as row:
            self.engine.ensure(self.job.sleep)
            self.counters("before", "store", None)
            before = self.host.kv_size()
            briefs: List[Dict[str, Any]] = []
            for start in range(0, len(todo), 64):  # bodies of 64 prompts at a time: the store phase is not measured, memory is
                shots = [self._store_shot(*one) for one in todo[start : start + 64]]
                briefs += self.send(shots, int(self.phases["store_concurrency"]))
            idle = self.engine.wait_idle(self.job.sleep, stored=bool(self.engine.kv_dirs))
            self.host.sync()
            after = self.host.kv_size()
            self.counters("after", "store", None)
            failed = sum(1 for b in briefs if b["error"])
            row["ok"] = failed == 0 and idle["idle"] is True and len(briefs) == len(todo)
            row["detail"] = {"prefixes": len(todo), "sent": len(briefs), "failed": failed, "idle": idle, "kv_before": before, "kv_after": after}
            row["detail"]["hash_seed"] = self.engine.hash_seed()
        self.prompts.forget_heads()

    def _store_shot(self, label: str, tier: Optional[int], index: int) -> Shot:
        return self.prompts.shot("store", tier, index, self.prompts.prefix(label, index), label, "store", 1)

    def cool(self) -> None:
        """Stop the engine (GPU cache empty), empty the page cache and prove it, start the engine, and look again: no second emptying.

        With `phases.cool: reset` the engine goes on and forgets its GPU cache (probe.reset).
        """
        with self.job.phase("cool") as row:
            if self.phases["cool"] == "reset":
                row["detail"], row["ok"] = self._cool_by_reset()
                return
            if self.engine.process():
                self.engine.wait_idle(self.job.sleep)
            before = self.engine.process()
            self.engine.control("stop", self.job.sleep)
            dropped = self.host.drop()
            self.engine.control("start", self.job.sleep)
            self.engine.wait_healthy(self.job.sleep)
            after = self.engine.process()
            lines = self.residency("after_cool", None, before)
            row["ok"] = restarted = after is not None and after != before
            row["ok"] = restarted and not any(line["resident_bytes"] for line in lines)
            detail: Dict[str, Any] = {"engine_before": before, "engine": after, "restarted": restarted}
            detail["after_drop"] = dropped
            row["detail"] = detail

    def _cool_by_reset(self) -> Tuple[Dict[str, Any], bool]:
        """Return the detail of the phase, and whether no page of the KV is resident; an engine that is not shown to be cold ends the job."""
        self.engine.ensure(self.job.sleep)
        self.engine.wait_idle(self.job.sleep)
        before = self.engine.process()
        canary = self.spec["kind"] == "run" and bool(self.phases.get("canary") and self.phases.get("expect_hits"))
        label = CANARY if canary else "reset/" + self.spec["job"]  # what is stored already, where there is such a thing
        warm = self.prompts.shot("cool", None, 0, self.prompts.text(label, 0, "prefix", self.prompts.context), label, "store", 1)
        proof = verified_reset(self.engine, warm, not canary, self.job.sleep, self.timeout_s)
        dropped = self.host.drop()
        lines = self.residency("after_cool", None, before, proof)
        after = self.engine.process()
        detail = {"engine_before": before, "engine": after, "restarted": after != before, "after_drop": dropped, "reset": proof}
        return detail, after == before and not any(line["resident_bytes"] for line in lines)

    def residency(
        self, when: str, tier: Optional[int], engine_before: Optional[Dict[str, Any]] = None, reset: Optional[Dict[str, Any]] = None
    ) -> List[Dict[str, Any]]:
        """Append one line to coldness.jsonl for each KV directory (one without directory when the arm has none)."""
        rows: List[Dict[str, Any]] = self.host.residency()
        engine = self.engine.process()
        before = {k: engine_before[k] for k in ("pid", "start_ticks")} if engine_before else None
        for row in rows:
            row.update(when=when, tier=tier, method="mincore", engine=engine, engine_before=before)
            if reset:
                row["reset"] = reset
            self.job.journals.put("coldness.jsonl", row)
        return rows

    def counters(self, when: str, phase: str, tier: Optional[int]) -> Dict[str, Any]:
        """Append one line to counters.jsonl and return it."""
        row = dict(self.engine.counters(when, phase, tier), boot_id=self.job.boot_id)
        self.job.journals.put("counters.jsonl", row, stamped=False)
        return row

    def warm_up(self) -> None:
        """Send throw-away prompts of the measured lengths: new ones in every job, so that none was ever stored."""
        count = int(self.phases.get("warmup") or 0)
        if not count:
            return
        label = "warmup/" + self.job.name
        with self.job.phase("warmup", total=count) as row:
            shots = [self.prompts.shot("warmup", None, n, self.prompts.prefix(label, n), label, "m", self.prompts.output) for n in range(count)]
            briefs = self.send(shots, min(count, self._largest_tier()))
            row["detail"] = {"requests": count, "failed": sum(1 for b in briefs if b["error"])}
            row["ok"] = row["detail"]["failed"] == 0

    def _largest_tier(self) -> int:
        tiers = [int(t["tier"]) for t in self.workload["tiers"]] + ([int(self.spec["soak"]["tier"])] if self.spec.get("soak") else [])
        return max(tiers)

    def client(self) -> None:
        """Write client.json: what the client itself cost and how late its loop was while it measured."""
        lag = self._lags.percentile(0.99) if self._lags.count else None
        row: Dict[str, Any] = {"cpu_s": round(self._cpu_s, 6), "wall_s": round(self._wall_s, 6), "loop_lag_p99_ns": lag}
        row.update(loop_ticks=self._lags.count, loop_lag_max_ns=self._lags.max if self._lags.count else None, receipts=self._receipts.facts())
        row["server_stamps"] = {"answers": self._answers, "stamped": self._stamped}
        row.update(calibration=self.calibration, python=sys.version.split()[0], driver_version=VERSION)
        self.job.write("client.json", row)

    def describe(self, tiers: List[Dict[str, Any]]) -> None:
        """Write engine.json and workload.json."""
        self.job.write("engine.json", self.engine.describe())
        self.job.write("workload.json", {"seed": self.prompts.seed, "set": self.prompts.set, "tiers": tiers})


def tier_facts(session: Session, tier: int, shots: Iterable[Shot]) -> Dict[str, Any]:
    """Return what workload.json says about one tier."""
    hashes = [shot.sha256 for shot in shots]
    joined = "\n".join(hashes).encode("ascii")
    row = {"tier": tier, "requests": len(hashes), "context_tokens": session.prompts.context, "suffix_tokens": session.prompts.suffix}
    row.update(output_tokens=session.prompts.output, prompts_sha256=hashlib.sha256(joined).hexdigest())
    return row
