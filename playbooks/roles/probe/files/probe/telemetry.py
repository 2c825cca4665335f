"""What a soak keeps an eye on, in a thread for each engine host: the engine's process, the host, the KV directories, fatal counters.

A dead or replaced engine is an event. After a crash it is started again through the job's control command, so that the load can go on
and the judge sees the whole window; that it happened stays recorded, and what it means is the judge's question.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Optional

from probe import metrics
from probe.engine import Engine
from probe.engine_counters import IN_USE, LOAD_FAILURES, OWN_HITS, PROMPT, RUNNING, SERVED, STORE_BYTES, STORED_TOKENS, TIER_HITS, WAITING
from probe.engine_host import GRACE_S
from probe.errors import Ended, ProbeError
from probe.job_main import Job
from probe.kernel_log import of_job
from probe.shares import Part

LOOK_S = 0.25
WANTED = (RUNNING, WAITING, IN_USE, PROMPT, OWN_HITS, TIER_HITS, LOAD_FAILURES, STORE_BYTES, STORED_TOKENS, SERVED)
OTHERS = (
    "vllm:external_prefix_cache_queries_total",
    "vllm:kv_offload_load_bytes_total",
    "sglang:kv_evictable_tokens",
    "process_start_time_seconds",
    "process_resident_memory_bytes",
)


class Telemetry:
    """The watching thread of one engine host of a soak. Of several each event bears the host's name; a sample bears it in `on` anyhow."""

    def __init__(self, job: Job, engine: Engine, part: Part) -> None:
        self._job, self._engine, self._host, self._part = job, engine, engine.host, part
        # The load generator reads its own log once, where it is no engine host itself.
        self._own = of_job(job.spec) if part.place == 0 and not engine.host.same_clock else None
        self._ended = threading.Event()
        self._known = engine.process()
        self._down = False
        self._starter: Optional[threading.Thread] = None
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)
        self.problem: Optional[BaseException] = None

    def __enter__(self) -> "Telemetry":
        self._host.watch_begin()
        if self._own:
            self._own.begin()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join(60)
        if self._starter:
            self._starter.join(self._engine.start_s + 2 * GRACE_S)

    def _work(self) -> None:
        period, due = float(self._job.spec["soak"]["telemetry_s"]), time.monotonic()
        try:
            while True:
                self._watch()
                if time.monotonic() >= due:
                    self._sample()
                    due = max(due + period, time.monotonic() - period)
                if self._ended.wait(min(LOOK_S, max(0.0, due - time.monotonic()) + 0.001)):
                    self._host.watch_end()
                    if self._own:
                        self._own.end()
                    self._sample()
                    return
        except BaseException as error:
            self.problem = error

    def _watch(self) -> None:
        now = self._engine.process()
        if now == self._known:
            return
        if self._known is None:  # first seen only now
            self._known = now
            return
        if not self._down:
            self._down = True
            self._event("engine_exit", {"engine": self._known, "replaced": now is not None})
        if now is not None:
            self._event("engine_restart", {"engine_before": self._known, "engine": now})
            self._known, self._down = now, False
        elif not (self._starter and self._starter.is_alive()) and (self._engine.spec.get("control") or {}).get("start"):
            self._starter = threading.Thread(target=self._restart, name="restart", daemon=True)  # samples go on while it loads its model
            self._starter.start()

    def _restart(self) -> None:
        """Start the engine again unless the job is ending; a failed start is an event and is tried again after a while."""
        if self._job.why_stop() or self._ended.is_set():
            return
        try:
            self._engine.control("start", self._job.sleep)
        except Ended:
            return
        except ProbeError as error:
            self._event("engine_start_failed", {"kind": error.kind, "message": str(error)})
            self._ended.wait(5)

    def _event(self, kind: str, detail: Dict[str, Any]) -> None:
        self._job.journals.put("events.jsonl", {"kind": kind, "detail": dict(detail, **self._part.named)})

    def _sample(self) -> None:
        row: Dict[str, Any] = self._host.sample()
        try:
            now = self._engine.metrics()
            row["metrics"] = _kept(now)
        except ProbeError as error:
            row["metrics"] = {}
            row["metrics_problem"] = str(error)
        self._job.journals.put("telemetry.jsonl", row)
        for told in self._host.health():
            self._job.journals.put("health.jsonl", told)
        for told in [*self._host.kernel(), *(self._own.rows() if self._own else [])]:
            self._job.journals.put("kernel.jsonl", told)


def _kept(now: Dict[str, str]) -> Dict[str, str]:
    """Return the few series that a sample keeps: those of the quantities that are looked at over time, and some for people."""
    wanted = [one for quantity in WANTED for one in metrics.series_of(now, quantity)] + [(name, {}) for name in OTHERS]
    return {key: text for key, text in now.items() if any(metrics.carries(key, name, labels) for name, labels in wanted)}
