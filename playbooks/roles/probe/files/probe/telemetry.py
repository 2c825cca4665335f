"""What a soak keeps an eye on, in a thread of its own: the engine's process, the host, the KV directories, fatal counters.

A dead or replaced engine is an event. After a crash it is started again through the job's control command, so that the load can go on
and the judge sees the whole window; that it happened stays recorded, and what it means is the judge's question.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Dict, Optional

from probe import proc, vitals
from probe.engine import GRACE_S
from probe.engine_family import Family
from probe.errors import Ended, ProbeError
from probe.fatal import Watch
from probe.files import walk_files
from probe.job_main import Job
from probe.session import Session

LOOK_S = 0.25
SCAN_SHARE = 20  # the KV directory is walked at most a twentieth of the time
WANTED = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:external_prefix_cache_queries_total",
    "vllm:external_prefix_cache_hits_total",
    "vllm:prefix_cache_hits_total",
    "vllm:kv_offload_load_bytes_total",
    "vllm:kv_offload_load_failures_total",
    "vllm:kv_offload_store_bytes_total",
    "vllm:request_success_total",
    "process_start_time_seconds",
    "process_resident_memory_bytes",
)


class Telemetry:
    """The watching thread of one soak."""

    def __init__(self, job: Job, session: Session, counters: Watch) -> None:
        self._job, self._session, self._engine, self._counters = job, session, session.engine, counters
        self._ended = threading.Event()
        self._known = session.engine.process()
        self._down = False
        self._starter: Optional[threading.Thread] = None
        self._kv: Dict[str, Any] = {"bytes": None, "next": 0.0}
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)
        self.problem: Optional[BaseException] = None

    def __enter__(self) -> "Telemetry":
        self._counters.on_health = lambda told: self._job.journals.put("health.jsonl", told)
        self._counters.start()
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
                    self._counters.stop()
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
        self._job.journals.put("events.jsonl", {"kind": kind, "detail": detail})

    def _sample(self) -> None:
        found = self._engine.process() or self._known
        row: Dict[str, Any] = {"engine": engine_row(found, self._engine.family), "host": vitals.host_row(), "kv_dir_bytes": self._kv_bytes()}
        row["gpus"] = vitals.accelerators()
        row.update(nics=vitals.ports(), drives=vitals.drives())
        try:
            now = self._engine.metrics()
            row["metrics"] = {k: v for k, v in now.items() if k.partition("{")[0] in WANTED}
        except ProbeError as error:
            row["metrics"] = {}
            row["metrics_problem"] = str(error)
        row.update(counters=self._counters.values(), counters_age_s=self._counters.ages())
        self._job.journals.put("telemetry.jsonl", row)

    def _kv_bytes(self) -> Optional[int]:
        began = time.monotonic()
        if began >= self._kv["next"]:
            total = 0
            for folder in self._engine.kv_dirs:
                for n, name in enumerate(walk_files(folder)):
                    try:
                        total += os.path.getsize(name)
                    except OSError:
                        continue
                    if n % 100 == 99:
                        time.sleep(0)  # lets the load go first
            self._kv = {"bytes": total, "next": time.monotonic() + SCAN_SHARE * (time.monotonic() - began)}
        value: Optional[int] = self._kv["bytes"]
        return value


def engine_row(found: Optional[Dict[str, Any]], family: Family) -> Dict[str, Any]:
    """Return the row `engine` of a sample. Where nobody tells which processes are the engine, memory and handles are null: a client's are not its."""
    row: Dict[str, Any] = {"pid": None, "start_ticks": None, "alive": False, "rss_bytes": None, "fds": None, "threads": None, "io_read_bytes": None}
    if not found:
        return row
    row.update(pid=found["pid"], start_ticks=found["start_ticks"], alive=proc.is_alive(found["pid"], found["start_ticks"]))
    if not row["alive"]:
        return row
    pids = family.pids(found)
    if not pids:
        return row
    stats = [s for s in map(proc.stat, pids) if s]
    fds = [proc.open_files(pid) for pid in pids]
    row.update(rss_bytes=sum(s["rss_bytes"] for s in stats), threads=sum(s["threads"] for s in stats))
    row["fds"] = None if None in fds else sum(n for n in fds if n is not None)
    io = proc.io_counters(pids)
    row["io_read_bytes"] = io["read_bytes"] if io else None
    return row
