"""The host that the engine runs on: everything of it that no endpoint of the engine tells, and how its engine is started and stopped.

Here it is this very host. Where a load generator of its own drives the engine, probe.attended asks the same of the engine's host over the
network, and the attendant there answers with this class. So whoever measures asks an engine host, and never where it is.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from probe import cells_host, clock, engine_words, kv_files, metrics, proc, reset, vitals
from probe.coldness import diskstats, drop_cache, mountstats, residency
from probe.engine_control import process, tail
from probe.engine_family import Family
from probe.errors import ProbeError
from probe.fatal import Watch
from probe.files import read_json
from probe.kernel_log import of_job
from probe.medium import declared_names, mount_told, require_declared, transports
from probe.port_counters import port_counters
from probe.preflight import require_medium
from probe.selfexec import clean_environment

START_S, STOP_S = 600.0, 60.0  # where the job file says nothing
GRACE_S = 60.0  # a command that starts or stops the engine has that time of its own, and knows better why it did not come about
COMMAND_S = 300.0  # of an injection
FOUND = ("fs_type", "source", "mount_point", "dir", "files", "bytes", "resident_bytes", "pages", "resident_pages", "page_bytes")
Sleep = Callable[[float], None]


class LocalHost:
    """The engine's host, where it is this one. Every answer is plain JSON data."""

    same_clock = True  # the engine's stamps are of the clock by which the driver stamps too
    name: Optional[str] = None  # needed of a host elsewhere alone

    def __init__(self, spec: Dict[str, Any], folder: str) -> None:
        """Take a job file (of its sections engine, ports, path_prefix, soak, limits) and the job's folder for its log."""
        self.spec, self.folder, self.engine = spec, folder, spec["engine"]
        limits = spec.get("limits") or {}
        self.start_s = float(limits.get("start_timeout_s") or START_S)
        self.stop_s = float(limits.get("stop_timeout_s") or STOP_S)
        self.kv_dirs: List[str] = list(self.engine.get("kv_dirs") or [])
        self.family = Family(self.engine.get("group"))
        soak = spec.get("soak") or {}
        self.injections: Dict[str, Dict[str, Any]] = {row["label"]: row for row in soak.get("injections") or []}
        self.cells: Dict[str, Dict[str, Any]] = {row["cell"]: row for row in spec.get("cells") or []}
        self.watch = Watch(soak.get("counters"), self.engine.get("array_stats"), spec.get("ports"))
        self.kernel_log = of_job(spec)
        self._last: Optional[Dict[str, Any]] = None
        self._told: List[Dict[str, Any]] = []
        self._lock = threading.Lock()
        self._growth = kv_files.Growth(self.kv_dirs)

    def process(self) -> Optional[Dict[str, Any]]:
        """Return {pid, start_ticks, boot_id} of the living engine, or None."""
        found = process(self.engine["pid_file"]) if self.engine.get("pid_file") else None
        self._last = found or self._last
        return found

    def control(self, verb: str, sleep: Sleep = time.sleep, timeout: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """Run the start or stop command of the job file; the engine must not inherit anything of ours. Return the process that lives behind it.

        `timeout` in s; without one it is what the job file allows for that, and GRACE_S. `sleep` may raise: then the command is ended, since
        a job that shall end does not wait for a model to load.
        """
        control = self.engine.get("control") or {}
        argv = [str(a) for a in control.get(verb) or []]
        if not argv:
            raise ProbeError("engine", "The job must %s the engine, but engine.control.%s is not given." % (verb, verb))
        env = clean_environment()
        env.update({str(k): str(v) for k, v in (control.get("env") or {}).items()})
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
        return self.process()

    def reset(self, sleep: Sleep = time.sleep) -> Dict[str, Any]:
        """Let the engine forget its GPU cache; return what it answered and holds then (probe.reset.post). `sleep` may raise, then it ends."""
        path, base = self.engine.get("reset"), str(self.engine["base_url"]).rstrip("/")
        if not path:
            raise ProbeError("engine", "The job must reset the engine's GPU cache, but engine.reset is not given.")
        pages = base + (self.engine.get("metrics_path") or "/metrics")
        return reset.post(base + str(path), lambda: metrics.parse(metrics.get(pages).decode("utf-8", "replace")), sleep)

    def words(self, instances: int) -> List[Dict[str, Any]]:
        """Return, for each instance, what its process was started with: {argv, model_config_sha256, hash_seed, started_wall_ns}."""
        found = self.process()
        pids = engine_words.every(found["pid"], self.family.pids(found) or []) if found else [0]
        pids = pids if len(pids) == instances else pids[:1] * instances
        begun = clock.boot_wall_ns() + found["start_ticks"] * 1_000_000_000 // os.sysconf("SC_CLK_TCK") if found else None
        rows = []
        for pid in pids:
            argv = proc.command_line(pid) if pid else []
            row: Dict[str, Any] = {"argv": engine_words.without_secrets(argv), "model_config_sha256": engine_words.model_config(pid, argv)}
            rows.append(dict(row, hash_seed=engine_words.hash_seed(pid) if pid else None, started_wall_ns=begun))
        return rows

    def hash_seed(self) -> Optional[str]:
        """Return PYTHONHASHSEED of the living engine: what it stores now is named under it."""
        found = self.process()
        return engine_words.hash_seed(engine_words.own(found["pid"], self.family.pids(found) or [])) if found else None

    def reading(self) -> Dict[str, Any]:
        """Return what a line of counters.jsonl holds of this host: the engine's process, device, mount, ports, drives, array and offload."""
        pids = self.family.pids(self.process())
        row: Dict[str, Any] = {"engine_io": proc.io_counters(pids) if pids else None}
        row["diskstats"] = diskstats(self.kv_dirs[0]) if self.kv_dirs and os.path.isdir(self.kv_dirs[0]) else None
        row["nfs"] = mountstats(self.kv_dirs[0]) if self.kv_dirs and os.path.isdir(self.kv_dirs[0]) else None
        row.update(nics=vitals.ports(), drives=vitals.drives(), page_cache=vitals.page_cache())
        array = self.array()
        row["array"] = {k: array.get(k) for k in ("host_read_bytes", "media_read_bytes")} if array else None
        row["offload"] = self.offload()
        return row

    def array(self) -> Optional[Dict[str, Any]]:
        """Return what the array's side says, in a file or at an address, or None when it says nothing."""
        where = self.engine.get("array_stats")
        found = None if not where else metrics.get_json(where) if str(where).startswith("http") else read_json(where)
        return found if isinstance(found, dict) else None

    def offload(self) -> Dict[str, Optional[Dict[str, str]]]:
        """Return {url: counters and gauges} of the offload software's own endpoints, None for one that does not answer."""
        return {str(url): metrics.page(str(url)) for url in self.engine.get("metrics_urls") or []}

    def kv_size(self) -> Dict[str, int]:
        """Return {files, bytes} of the KV directories."""
        return kv_files.size(self.kv_dirs)

    def sync(self) -> None:
        """Put the files of the KV directories on the medium."""
        kv_files.sync(self.kv_dirs)

    def drop(self) -> List[Dict[str, Any]]:
        """Empty the page cache for every KV directory; return what is resident then."""
        keys = ("dir", "files", "bytes", "resident_bytes", "worst")
        return [{k: found[k] for k in keys} for found in map(drop_cache, self.kv_dirs)]

    def residency(self) -> List[Dict[str, Any]]:
        """Return FOUND, and names and transports of the medium, of each KV directory (one row without directory when the arm has none).

        Each row bears `engine`, the process that lives then.
        """
        found: List[Dict[str, Any]] = [{k: r[k] for k in FOUND} for r in map(residency, self.kv_dirs)]
        media = self.engine.get("media") or []
        for row in found:
            findmnt = next((medium.get("findmnt") for medium in media if medium.get("dir") == row["dir"]), None)
            mount = dict(mount_told(row["dir"], findmnt), dir=row["dir"])
            row.update(names=declared_names(media, mount), transports=transports(mount))
            if findmnt:  # the kernel's word stays beside it: what is cold and what was read are the kernel's
                row["rack"] = {key: mount[key] for key in ("fs_type", "source", "mount_point")}
        found = found or [{"fs_type": None, "dir": None, "files": 0, "bytes": 0, "resident_bytes": 0}]
        engine = self.process()
        return [dict(row, engine=engine) for row in found]

    def medium(self, needed: int) -> List[Dict[str, Any]]:
        """Return what was found of the medium of the KV; refuse one that is not the declared, cannot be made cold or lacks room for `needed` bytes.

        A soak that goes on after a reboot asks again: a mount may not have come back.
        """
        for row in self.engine.get("media") or []:
            require_declared(str(row["dir"]), row)
        return require_medium(self.kv_dirs, needed)

    def ports(self) -> Dict[str, Any]:
        """Return {wall_ns, mono_ns, boot_id, ports}: what the storage ports counted. Programs are asked."""
        told = port_counters(self.spec.get("ports"), self.spec.get("path_prefix"))
        return dict(now(), ports=told)

    def require_counters(self, lacking_array_is_fine: bool = False) -> None:
        """Refuse a soak whose fatal counters have no source on this host."""
        self.watch.require(str(self.spec.get("host")), lacking_array_is_fine)

    def watch_begin(self) -> None:
        """Ask programs and endpoints every minute from now on. A driver whose host rebooted may say so again to an attendant that waited for it."""
        if self.watch.on_health is None:
            self.watch.on_health = self._keep_health
            self.watch.start()
            if self.kernel_log:
                self.kernel_log.begin()

    def watch_end(self) -> None:
        """Ask them once more, so that the last minute counts."""
        self.watch.stop()
        if self.kernel_log:
            self.kernel_log.end()

    def _keep_health(self, told: Dict[str, Any]) -> None:
        with self._lock:
            self._told.append(dict(now(), **told))

    def health(self) -> List[Dict[str, Any]]:
        """Return the lines of health.jsonl that came since the last time, each with the stamps of its moment."""
        with self._lock:
            told, self._told = self._told, []
        return told

    def kernel(self) -> List[Dict[str, Any]]:
        """Return the lines of kernel.jsonl that came since the last time; none where the job does not ask for the kernel's log."""
        return self.kernel_log.rows() if self.kernel_log else []

    def sample(self) -> Dict[str, Any]:
        """Return what a line of telemetry.jsonl holds of this host."""
        found = self.process() or self._last
        row: Dict[str, Any] = {"engine": engine_row(found, self.family), "host": vitals.host_row(), "kv_dir_bytes": self._growth.bytes()}
        row.update(gpus=vitals.accelerators(), nics=vitals.ports(), drives=vitals.drives())
        return dict(row, counters=self.watch.values(), counters_age_s=self.watch.ages())

    def inject(self, label: str, verb: str) -> Optional[int]:
        """Run the start or stop command of a planned disturbance; return its exit code.

        124 where it did not end in time, 127 where it cannot be run, None where there is no such command.
        """
        argv = [str(a) for a in (self.injections.get(label) or {}).get(verb) or []]
        if not argv:
            return None
        with open(os.path.join(self.folder, "job.log"), "ab") as log:
            try:
                child = subprocess.Popen(argv, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            except OSError as error:
                log.write(("The injection's command %s cannot be run: %s\n" % (argv[0], error)).encode("utf-8", "replace"))
                return 127
            try:
                return child.wait(COMMAND_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                return 124

    def cell(self, kind: str, sleep: Sleep = time.sleep) -> Dict[str, Any]:
        """Measure a cell of the job file that needs no request (probe.cells_host); `sleep` may raise, then it ends."""
        return cells_host.measure(self.engine, self.cells[kind], lambda: sleep(0))

    def weights(self, drop: bool) -> Dict[str, Any]:
        """Return what the engine loads and what was read of it so far; with `drop` it is put out of memory before, with the proof."""
        return cells_host.weights(self.engine, self.cells["model_load"], drop)

    def close(self, outcome: str) -> None:
        """Let go of the host at the job's end."""


def now() -> Dict[str, Any]:
    """Return the stamps {wall_ns, mono_ns, boot_id} of this moment on this host."""
    return {"wall_ns": clock.wall_ns(), "mono_ns": clock.mono_ns(), "boot_id": clock.boot_id()}


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
