"""What run and soak share: the engine, the prompts, sending shots with an account, residency, and the client's own health."""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from probe import VERSION
from probe.calibrate import calibrate
from probe.driver import ClosedLoop
from probe.engine import Engine
from probe.engines import Engines, Sleep, all_idle
from probe.errors import ProbeError
from probe.histogram import Histogram
from probe.job_main import Job
from probe.open_loop import Arrivals, OpenLoop
from probe.prompts import Prompts, Shot, tier_label
from probe.receipt import Receipts
from probe.reset import verified_reset
from probe.shares import Apart

CANARY = "canary"
Cooled = Tuple[Dict[str, Any], List[Dict[str, Any]], bool]  # detail of the phase, lines of coldness.jsonl, and whether the engine is as it must be


class Session:
    """One job's work on its engines. `hosts` are the engine hosts: this one, or others that their attendants speak for."""

    def __init__(self, job: Job, hosts: Sequence[Any]) -> None:
        self.job, self.spec = job, job.spec
        self.workload: Dict[str, Any] = self.spec["workload"]
        self.phases: Dict[str, Any] = self.spec["phases"]
        self.engines = Engines(job, hosts)
        self.targets = self.engines.targets()
        self._same_clock = all(host.same_clock for host in hosts)
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
        """Put on record what the storage ports of each engine host counted, where they tell it. Programs are asked: not while it is measured."""
        told = self.engines.each(lambda engine, _: engine.host.ports())
        if self._ports or any(one["ports"] for one in told):
            self._ports += [dict(one, when=when) for one in told]
            self.job.write_own("ports.json", {"readings": self._ports})

    def send(self, shots: Union[Iterable[Shot], Apart], concurrency: int, measured: bool = False, **options: Any) -> List[Dict[str, Any]]:
        """Send shots in a closed loop; every record goes to the journal. Return a short form of each: {error, usage, ...}.

        Shots given as a list are complete bodies; generators, one for each engine host, make them while the loop runs (soak only).
        """
        brief: List[Dict[str, Any]] = []
        journals, progress = self.job.journals, self.job.progress

        def keep(record: Dict[str, Any]) -> None:
            if not self._same_clock:
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
        result = loop.run(shots if isinstance(shots, Apart) else iter(shots))
        if measured:
            self._lags.merge(result["lags"])
            self._receipts.merge(result["receipts"])
            self._cpu_s += result["cpu_s"]
            self._wall_s += result["wall_s"]
        journals.flush()
        self.job.check()
        return brief

    def prefixes(self) -> Iterator[Any]:
        """Yield (label, tier or None, index) of every prefix that the set stores: all tiers in order, then the canary's of each engine host."""
        for tier in self.workload["tiers"]:
            for index in range(int(tier["requests"])):
                yield tier_label(tier["tier"]), tier["tier"], index
        for engine in self.engines if self.phases.get("canary") else ():
            yield CANARY, None, engine.place

    def store(self, wanted: Iterable[Any]) -> None:
        """Send every prefix once with max_tokens 1, wait until storing has ended, and put the files on the disk."""
        todo = list(wanted)
        with self.job.phase("store", total=len(todo)) as row:
            self.engines.ensure()
            self.counters("before", "store", None)
            before = self._kv_sizes()
            briefs: List[Dict[str, Any]] = []
            for start in range(0, len(todo), 64):  # bodies of 64 prompts at a time: the store phase is not measured, memory is
                shots = [self._store_shot(*one) for one in todo[start : start + 64]]
                briefs += self.send(shots, int(self.phases["store_concurrency"]))
            idle = self.engines.wait_idle(stored=True)
            self.engines.each(lambda engine, _: engine.host.sync())
            after, seeds = self._kv_sizes(), self.engines.each(lambda engine, _: engine.hash_seed())
            self.counters("after", "store", None)
            failed = sum(1 for b in briefs if b["error"])
            row["ok"] = failed == 0 and all_idle(idle) is True and len(briefs) == len(todo)
            told = [{"idle": i, "kv_before": b, "kv_after": a, "hash_seed": seed} for i, b, a, seed in zip(idle, before, after, seeds)]
            row["detail"] = {"prefixes": len(todo), "sent": len(briefs), "failed": failed, **self.engines.told(told)}
        self.prompts.forget_heads()

    def _kv_sizes(self) -> List[Dict[str, int]]:
        """Return {files, bytes} of the KV directories of each engine host."""
        sizes: List[Dict[str, int]] = self.engines.each(lambda engine, _: engine.host.kv_size())
        return sizes

    def _store_shot(self, label: str, tier: Optional[int], index: int) -> Shot:
        return self.prompts.shot("store", tier, index, self.prompts.prefix(label, index), label, "store", 1)

    def cool(self) -> None:
        """Stop each engine (GPU cache empty), empty the page cache and prove it, start the engine, and look again: no second emptying.

        With `phases.cool: reset` the engine goes on and forgets its GPU cache (probe.reset). Of several hosts each is made cold, all at once.
        """
        with self.job.phase("cool") as row:
            done = self.engines.each(self._reset_one if self.phases["cool"] == "reset" else self._restart_one)
            for _, lines, _ in done:
                self._keep(lines)
            row["detail"] = self.engines.told([detail for detail, _, _ in done])
            row["ok"] = all(cold and not any(line["resident_bytes"] for line in lines) for _, lines, cold in done)

    def _restart_one(self, engine: Engine, sleep: Sleep) -> Cooled:
        """Start one engine anew, with no page of its KV in memory between. The engine must then say that it serves the job's model, not only 200."""
        if engine.process():
            engine.wait_idle(sleep)
        before = engine.process()
        engine.control("stop", sleep)
        dropped = engine.host.drop()
        engine.control("start", sleep)
        engine.wait_healthy(sleep)
        served = engine.served_model()
        lines = self._look(engine, "after_cool", None, before)
        after = engine.process()
        restarted = after is not None and after != before
        detail: Dict[str, Any] = {"engine_before": before, "engine": after, "restarted": restarted, "served": served, "after_drop": dropped}
        return detail, lines, restarted and served in (None, engine.spec["model"])

    def _reset_one(self, engine: Engine, sleep: Sleep) -> Cooled:
        """Let one engine forget its GPU cache; one that is not shown to be cold ends the job."""
        engine.ensure(sleep)
        engine.wait_idle(sleep)
        before = engine.process()
        canary = self.spec["kind"] == "run" and bool(self.phases.get("canary") and self.phases.get("expect_hits"))
        label, place = CANARY if canary else "reset/" + self.spec["job"], engine.place  # what is stored already, where there is such a thing
        warm = self.prompts.shot("cool", None, place, self.prompts.text(label, place, "prefix", self.prompts.context), label, "store", 1)
        proof = verified_reset(engine, warm, not canary, sleep, self.timeout_s)
        dropped = engine.host.drop()
        lines = self._look(engine, "after_cool", None, before, proof)
        after = engine.process()
        detail = {"engine_before": before, "engine": after, "restarted": after != before, "after_drop": dropped, "reset": proof}
        return detail, lines, after == before

    def residency(self, when: str, tier: Optional[int]) -> None:
        """Append one line to coldness.jsonl for each KV directory of each engine host (one without directory when the arm has none)."""
        for lines in self.engines.each(lambda engine, _: self._look(engine, when, tier)):
            self._keep(lines)

    def _look(
        self,
        engine: Engine,
        when: str,
        tier: Optional[int],
        engine_before: Optional[Dict[str, Any]] = None,
        reset: Optional[Dict[str, Any]] = None,
    ) -> List[Dict[str, Any]]:
        before = {k: engine_before[k] for k in ("pid", "start_ticks")} if engine_before else None
        said: Dict[str, Any] = {"when": when, "tier": tier, "method": "mincore", "engine_before": before}
        return [dict(row, **said, **({"reset": reset} if reset else {})) for row in engine.host.residency()]

    def _keep(self, lines: List[Dict[str, Any]]) -> None:
        for line in lines:
            self.job.journals.put("coldness.jsonl", line)

    def counters(self, when: str, phase: str, tier: Optional[int]) -> None:
        """Append one line to counters.jsonl for each engine host."""
        for row in self.engines.each(lambda engine, _: engine.counters(when, phase, tier)):
            self.job.journals.put("counters.jsonl", dict(row, boot_id=self.job.boot_id), stamped=False)

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
        row["loop_lag_digits"] = self._lags.by_digits()
        row["server_stamps"] = {"answers": self._answers, "stamped": self._stamped}
        row.update(calibration=self.calibration, python=sys.version.split()[0], driver_version=VERSION)
        self.job.write_own("client.json", row)

    def describe(self, tiers: List[Dict[str, Any]]) -> None:
        """Write engine.json and workload.json."""
        self.job.write_own("engine.json", self.engines.describe())
        self.job.write_own("workload.json", {"seed": self.prompts.seed, "set": self.prompts.set, "tiers": tiers})


def tier_facts(session: Session, tier: int, shots: Iterable[Shot]) -> Dict[str, Any]:
    """Return what workload.json says about one tier."""
    hashes = [shot.sha256 for shot in shots]
    joined = "\n".join(hashes).encode("ascii")
    row = {"tier": tier, "requests": len(hashes), "context_tokens": session.prompts.context, "suffix_tokens": session.prompts.suffix}
    row.update(output_tokens=session.prompts.output, prompts_sha256=hashlib.sha256(joined).hexdigest())
    return row
