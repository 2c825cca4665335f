"""The engine under measurement, as a job sees it: its process, its health, its counters, and how to start and stop it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional

from probe import clock, engine_words, metrics, proc, vitals
from probe.coldness import diskstats, mountstats
from probe.engine_control import is_healthy, process, tail
from probe.engine_family import Family
from probe.errors import ProbeError
from probe.files import canonical, read_json
from probe.idle import Quiet
from probe.selfexec import clean_environment

START_S, STOP_S, IDLE_S = 600.0, 60.0, 60.0  # where the job file says nothing
GRACE_S = 60.0  # a command that starts or stops the engine has that time of its own, and knows better why it did not come about


class Engine:
    """Facts about one engine. Nothing here waits longer than it is told."""

    def __init__(self, spec: Dict[str, Any], folder: str, limits: Optional[Dict[str, Any]] = None) -> None:
        """Take the sections `engine` and `limits` of the job file, and the job's folder for its log."""
        self.spec, self.folder = spec, folder
        self.start_s = float((limits or {}).get("start_timeout_s") or START_S)
        self.stop_s = float((limits or {}).get("stop_timeout_s") or STOP_S)
        self.idle_s = float((limits or {}).get("idle_timeout_s") or IDLE_S)
        self.base: str = spec["base_url"].rstrip("/")
        # Several instances of one model are started and stopped as one; requests and counters go to each.
        self.bases: List[str] = [str(url).rstrip("/") for url in spec.get("base_urls") or [self.base]]
        self.kv_dirs: List[str] = list(spec.get("kv_dirs") or [])
        self.family = Family(spec.get("group"))

    def process(self) -> Optional[Dict[str, Any]]:
        """Return {pid, start_ticks, boot_id} of the living engine, or None."""
        return process(self.spec["pid_file"]) if self.spec.get("pid_file") else None

    def metrics(self) -> Dict[str, str]:
        """Return counters and gauges now; of several instances each series has the label `instance`, by which they add up."""
        return metrics.merged([self._page(base) for base in self.bases])

    def _page(self, base: str) -> Dict[str, str]:
        return metrics.parse(metrics.get(base + (self.spec.get("metrics_path") or "/metrics")).decode("utf-8", "replace"))

    def control(self, verb: str, sleep: Callable[[float], None] = time.sleep, timeout: Optional[float] = None) -> None:
        """Run the start or stop command of the job file; the engine must not inherit anything of ours.

        `timeout` in s; without one it is what the job file allows for that, and GRACE_S. `sleep` may raise: then the command is ended, since
        a job that shall end does not wait for a model to load.
        """
        argv = [str(a) for a in (self.spec.get("control") or {}).get(verb) or []]
        if not argv:
            raise ProbeError("engine", "The job must %s the engine, but engine.control.%s is not given." % (verb, verb))
        env = clean_environment()
        env.update({str(k): str(v) for k, v in ((self.spec.get("control") or {}).get("env") or {}).items()})
        limit = timeout if timeout is not None else (self.start_s if verb == "start" else self.stop_s) + GRACE_S
        log_path, end = os.path.join(self.folder, "job.log"), time.monotonic() + limit
        with open(log_path, "ab") as log:
            child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            try:
                while child.poll() is None:
                    if time.monotonic() > end:
                        raise ProbeError("engine", "The command to %s the engine did not end within %g s: %s" % (verb, limit, tail(log_path)))
                    sleep(0.02)
            except BaseException:
                child.kill()
                child.wait()
                raise
        if child.returncode != 0:
            raise ProbeError("engine", "The command to %s the engine ended with %d: %s" % (verb, child.returncode, tail(log_path)))

    def ensure(self, sleep: Callable[[float], None]) -> None:
        """Start the engine when it does not run and the job may start it; wait until it is healthy."""
        if self.spec.get("pid_file") and (self.spec.get("control") or {}).get("start") and self.process() is None:
            self.control("start", sleep)
        self.wait_healthy(sleep)

    def wait_healthy(self, sleep: Callable[[float], None], timeout: Optional[float] = None) -> None:
        """Wait until the engine answers its health path, for `timeout` s or as long as the job file gives a start."""
        limit = self.start_s if timeout is None else timeout
        end = time.monotonic() + limit
        for url in [base + (self.spec.get("health_path") or "/health") for base in self.bases]:
            while not is_healthy(url):
                if time.monotonic() > end:
                    raise ProbeError("engine", "The engine did not answer %s within %g s." % (url, limit))
                sleep(0.05)

    def wait_idle(self, sleep: Callable[[float], None], stored: bool = False) -> Dict[str, Any]:
        """Wait until no request runs or waits and nothing is stored any more. Return {idle, waited_s, why} (probe.idle); `idle` may be unknown."""
        return Quiet(self.spec, self.metrics).wait(sleep, self.idle_s, stored)

    def counters(self, when: str, phase: str, tier: Optional[int]) -> Dict[str, Any]:
        """Return one line of counters.jsonl: engine, device and array at nearly one moment."""
        pids = self.family.pids(self.process())
        row: Dict[str, Any] = {"when": when, "phase": phase, "tier": tier, "mono_ns": clock.mono_ns()}
        row["engine_io"] = proc.io_counters(pids) if pids else None
        row["diskstats"] = diskstats(self.kv_dirs[0]) if self.kv_dirs and os.path.isdir(self.kv_dirs[0]) else None
        row["nfs"] = mountstats(self.kv_dirs[0]) if self.kv_dirs and os.path.isdir(self.kv_dirs[0]) else None
        row.update(nics=vitals.ports(), drives=vitals.drives(), page_cache=vitals.page_cache())
        array = self.array()
        row["array"] = {k: array.get(k) for k in ("host_read_bytes", "media_read_bytes")} if array else None
        row["metrics"] = self.metrics()
        row["offload"] = {str(url): metrics.page(str(url)) for url in self.spec.get("metrics_urls") or []}
        return row

    def array(self) -> Optional[Dict[str, Any]]:
        """Return what the array's side says, in a file or at an address, or None when it says nothing."""
        where = self.spec.get("array_stats")
        found = None if not where else metrics.get_json(where) if str(where).startswith("http") else read_json(where)
        return found if isinstance(found, dict) else None

    def describe(self) -> Dict[str, Any]:
        """Return engine.json: what the engine reports about itself; `declared` fills only what stays open.

        Of several instances it is what the first reports, with `instances`: the same of each.
        """
        found = self.process()
        pids = engine_words.every(found["pid"], self.family.pids(found) or []) if found else [0]
        rows = [
            self._describe(base, found, pid) for base, pid in zip(self.bases, pids if len(pids) == len(self.bases) else pids[:1] * len(self.bases))
        ]
        if len(rows) == 1:
            return rows[0]
        return dict(rows[0], instances=[dict(row, url=base) for base, row in zip(self.bases, rows)])

    def _describe(self, base: str, found: Optional[Dict[str, Any]], pid: int) -> Dict[str, Any]:
        now = self._page(base)
        info = metrics.get_json(base + "/config") or metrics.get_json(base + "/server_info") or {}
        version = metrics.get_json(base + "/version") or {}
        cache = metrics.labels_of(now, "vllm:cache_config_info")
        config = info.get("config") or info.get("vllm_config") or info or dict(cache)
        argv = proc.command_line(pid) if pid else []
        row: Dict[str, Any] = {"argv": engine_words.without_secrets(argv), "version": version.get("version"), "config": config}
        row["model_config_sha256"] = engine_words.model_config(pid, argv)
        row["hash_seed"] = engine_words.hash_seed(pid) if pid else None
        row["model"] = info.get("model") or self._served_model(base)
        row["kv_bytes_per_token"] = info.get("kv_bytes_per_token")
        row["num_gpu_blocks"] = _whole(info.get("num_gpu_blocks"), cache.get("num_gpu_blocks"))
        row["block_tokens"] = _whole(info.get("block_tokens"), cache.get("block_size"))
        row["config_sha256"] = info.get("config_sha256") or hashlib.sha256(canonical(config)).hexdigest()
        row["started_wall_ns"] = self._started_wall_ns(found, now)
        row["metrics_names"] = sorted({key.partition("{")[0] for key in now})
        for key, value in (self.spec.get("declared") or {}).items():
            if row.get(key) in (None, "", [], {}):
                row[key] = value
        return row

    def hash_seed(self) -> Optional[str]:
        """Return PYTHONHASHSEED of the living engine: what it stores now is named under it."""
        found = self.process()
        return engine_words.hash_seed(engine_words.own(found["pid"], self.family.pids(found) or [])) if found else None

    def _served_model(self, base: str) -> Optional[str]:
        listed = metrics.get_json(base + "/v1/models") or {}
        names = [m.get("id") for m in listed.get("data") or [] if isinstance(m, dict)]
        return self.spec["model"] if self.spec["model"] in names else (names[0] if names else None)

    def _started_wall_ns(self, found: Optional[Dict[str, Any]], now: Dict[str, str]) -> Optional[int]:
        said = metrics.total(now, "process_start_time_seconds")
        if said is not None:
            return int(said * Decimal(1_000_000_000))
        return clock.boot_wall_ns() + found["start_ticks"] * 1_000_000_000 // os.sysconf("SC_CLK_TCK") if found else None


def _whole(*values: Any) -> Optional[int]:
    for value in values:
        try:
            return int(value)
        except (TypeError, ValueError):
            continue
    return None
