"""The detached job itself: holds the lock, keeps journals and heartbeat, ends with exactly one exit.json. No controller is needed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Optional

from probe import VERSION, clock, proc
from probe.attend_seal import KEY
from probe.engine_log import bound_of
from probe.errors import Ended, ProbeError
from probe.files import dumps, load_spec, reserve, write_json
from probe.journal import Journals
from probe.reboot import PARTED, Earlier

COMMON = ("phases.jsonl", "records.jsonl", "coldness.jsonl", "counters.jsonl")
SOAK = ("telemetry.jsonl", "events.jsonl", "health.jsonl", "kernel.jsonl")
ATTEND = ("asked.jsonl",)
HEARTBEAT_S = 1.0


class Job:
    """What phases need of their job: specification, journals, progress, and whether to go on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.spec: Dict[str, Any] = load_spec(os.path.join(folder, "job.json"))
        self.kind: str = self.spec["kind"]
        names = COMMON + (SOAK if self.kind == "soak" else ()) + (("cells.jsonl",) if self.spec.get("cells") else ())
        names = ATTEND if self.kind == "attend" else names
        self.earlier = Earlier(folder)  # boots of the host before this one
        self.name = self.earlier.name(self.spec["job"])
        self.journals = Journals(folder, names, int(self.spec["limits"]["disk_quota_bytes"]))
        self.stop_asked = False
        self._given_up: Optional[Ended] = None
        self.deadline_ns = 0
        self.start_deadline()
        self.progress: Dict[str, Any] = {"phase": "begin", "tier": None, "done": 0, "total": 0}

    def start_deadline(self, seconds: float = 0.0) -> None:
        """Give the job limits.deadline_s from now on, beside `seconds` of load: what came before a soak's load takes nothing from it."""
        self.deadline_ns = clock.mono_ns() + int((float(self.spec["limits"]["deadline_s"]) + seconds) * 1e9)

    def why_stop(self) -> Optional[str]:
        """Return the reason for ending now, or None. Cheap: the driver asks every 10 ms."""
        if self.stop_asked:
            return "stopped"
        if self.journals.failed:
            return "journal"
        if self._given_up:
            return "given_up"
        return "deadline" if clock.mono_ns() > self.deadline_ns else None

    def check(self) -> None:
        """Raise the named end when there is a reason for one."""
        reason = self.why_stop()
        if reason == "stopped":
            raise Ended("stopped", "The job was asked to stop.")
        if reason == "deadline":
            raise Ended(
                "deadline", "The job used up its %s s before it was done; it was in phase %s." % (self.spec["limits"]["deadline_s"], self.where())
            )
        if self._given_up:
            raise self._given_up
        self.journals.check()

    def give_up(self, why: Ended) -> None:
        """Let the job end by this name: what it needs is gone for good. May be called from any thread; the first word counts."""
        self._given_up = self._given_up or why

    @property
    def boot_id(self) -> str:
        """Return the boot that what is recorded belongs to: the host's, of a soak of several hosts those of all (probe.clock.together)."""
        return self.journals.boot_id

    def beside(self, *there: str) -> None:
        """Let a soak stamp its rows by the boots of the engine hosts, too: what a reboot of any host parts is no stretch of one clock.

        Boots that are on record together already end the job: within one boot of all hosts nobody can tell a site's fault from ours.
        """
        pair = clock.together(clock.boot_id(), *there)
        if pair in self.earlier.stretches:
            raise ProbeError(
                "attendant",
                "The attendant was lost and no host has rebooted since. Within one boot nobody can tell a site's fault from the product's, so "
                "the soak does not go on; what was recorded is kept and judged.",
            )
        self.journals.boot_id = pair

    @property
    def records(self) -> int:
        """Return how many requests are on record; an attendant makes none."""
        return self.journals.counts.get("records.jsonl", 0)

    def where(self) -> str:
        """Return phase and tier in words."""
        tier = self.progress["tier"]
        return "%s%s" % (self.progress["phase"], " at concurrency %s" % tier if tier else "")

    def write(self, name: str, obj: Any) -> None:
        """Write one evidence file of the job."""
        write_json(os.path.join(self.folder, name), obj)

    def write_own(self, name: str, facts: Dict[str, Any]) -> None:
        """Write one evidence file that names the job: that of another run, which looks alike, is told from it."""
        self.write(name, dict(facts, job=self.spec["job"]))

    def sleep(self, seconds: float) -> None:
        """Sleep, but end early with the named end."""
        end = time.monotonic() + seconds
        while True:
            self.check()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(0.1, left))

    @contextlib.contextmanager
    def phase(self, name: str, tier: Optional[int] = None, total: int = 0) -> Any:
        """Record one phase: yields {ok, detail} to be filled in; also a phase that raised is recorded, with its error."""
        self.check()
        self.progress.update(phase=name, tier=tier, done=0, total=total)
        row: Dict[str, Any] = {"phase": name, "tier": tier, "started_ns": clock.mono_ns(), "ended_ns": 0, "started_wall_ns": clock.wall_ns()}
        row.update(boot_id=self.boot_id, ok=True, detail={})
        try:
            yield row
        except BaseException as error:
            row["ok"] = False
            row["detail"]["error"] = _error(error)
            raise
        finally:
            row["ended_ns"] = clock.mono_ns()
            self.journals.put("phases.jsonl", row, stamped=False)
            self.journals.flush()


def run(folder: str, lock_fd: int) -> int:
    """Run the job in `folder`. The lock's descriptor came from the starter; when this process ends, however it ends, the lock is free."""
    fcntl.fcntl(lock_fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # the engine that we start must not hold our lock
    try:
        _mark_started(folder)
    except FileExistsError:
        return 0
    reserve(os.path.join(folder, "reserve"))
    try:
        key = _key()
        job = Job(folder)
    except (ProbeError, OSError, KeyError, ValueError) as error:
        _exit(folder, None, "error", _error(error))
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(job, "stop_asked", True))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.setswitchinterval(0.001)
    ended = threading.Event()
    beat = threading.Thread(target=_heartbeat, args=(job, ended), name="heartbeat", daemon=True)
    beat.start()
    outcome, error = _work(job, key)
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, "reserve"))
    job.journals.close()
    if outcome == "done" and job.journals.failed:
        try:
            job.journals.check()
        except Ended as late:
            outcome, error = "error", _error(late)
    ended.set()
    beat.join(5)
    _exit(folder, job, outcome, error)
    return 0 if outcome == "done" else 1


def _key() -> bytes:
    """Return the key that the starter wrote to our stdin: it stands in no file, argument or environment. Empty for a job on the engine's host."""
    given = os.read(0, 4 * 64).decode("ascii", "replace")
    return bytes.fromhex(given) if KEY.fullmatch(given) else b""


def _work(job: Job, key: bytes) -> Any:
    try:
        _KINDS[job.kind](job, key)
        return "done", None
    except Ended as error:
        return ("stopped", None) if error.kind == "stopped" else ("error", _error(error))
    except ProbeError as error:
        return "error", _error(error)
    except BaseException as error:
        traceback.print_exc()
        return "error", _error(error)


def _attend(job: Job, key: bytes) -> None:
    from probe.attend import run_attend

    run_attend(job, key)


def _run(job: Job, key: bytes) -> None:
    from probe.run_job import run_job

    _on_the_engines_hosts(job, key, run_job)


def _soak(job: Job, key: bytes) -> None:
    from probe.soak_job import run_soak

    _on_the_engines_hosts(job, key, run_soak)


_KINDS: Dict[str, Callable[[Job, bytes], None]] = {"run": _run, "soak": _soak, "attend": _attend}


def _on_the_engines_hosts(job: Job, key: bytes, work: Callable[[Job, List[Any]], None]) -> None:
    """Do the work of a job with its engine hosts: this one, unless the job file names attendants; let go of them however that ends."""
    from probe.attended import AttendedHost
    from probe.engine_host import LocalHost

    away = job.spec.get("attendants") or []
    hosts: List[Any] = []
    outcome = "error"
    try:
        for where in away:
            hosts.append(AttendedHost(job, where, key))
        if not away:
            hosts.append(LocalHost(job.spec, job.folder))
        if away and job.kind == "soak":
            job.beside(*(host.boot_id for host in hosts))
        work(job, hosts)
        outcome = "done"
    except ProbeError as error:
        outcome = "stopped" if isinstance(error, Ended) and error.kind == "stopped" else "error"
        if job.kind == "soak" and error.kind == PARTED["soak"]:
            outcome = "parted"  # a host was lost: the others wait with us for whether it rebooted
        raise
    finally:
        for host in hosts:
            host.close(outcome)


def _error(error: BaseException) -> Dict[str, str]:
    kind = error.kind if isinstance(error, ProbeError) else "internal"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        kind = "disk_full"
    return {"kind": kind, "message": str(error) if isinstance(error, ProbeError) else "%s: %s" % (type(error).__name__, error)}


def _mark_started(folder: str) -> None:
    row = {"pid": os.getpid(), "start_ticks": proc.start_ticks(os.getpid()), "boot_id": clock.boot_id(), "version": VERSION}
    row.update(wall_ns=clock.wall_ns(), mono_ns=clock.mono_ns(), python=sys.version.split()[0])
    fd = os.open(os.path.join(folder, "started"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, (dumps(row) + "\n").encode("ascii"))
        os.fsync(fd)
    finally:
        os.close(fd)


def _heartbeat(job: Job, ended: threading.Event) -> None:
    n = 0
    while True:
        row = {"job": job.spec["job"], "pid": os.getpid(), "n": n, "wall_ns": clock.wall_ns(), "mono_ns": clock.mono_ns(), "boot_id": job.boot_id}
        row.update(job.progress, records=job.records)
        with contextlib.suppress(OSError, ProbeError):
            write_json(os.path.join(job.folder, "heartbeat.json"), row, durable=False)
            bound_of(job.spec["engine"].get("pid_file"))
        n += 1
        if ended.wait(HEARTBEAT_S):
            return


def _exit(folder: str, job: Optional[Job], outcome: str, error: Optional[Dict[str, str]]) -> None:
    records = job.records if job else 0
    row: Dict[str, Any] = {"job": os.path.basename(folder), "ended_wall_ns": clock.wall_ns(), "ended_ns": clock.mono_ns()}
    row["boot_id"] = job.boot_id if job else clock.boot_id()
    row.update(outcome=outcome, error=error, records=records, last_seq=records - 1)
    failures: List[str] = []
    for _ in range(5):
        try:
            write_json(os.path.join(folder, "exit.json"), row)
            return
        except (OSError, ProbeError) as problem:
            failures.append(str(problem))
            time.sleep(0.2)
    print("exit.json could not be written: %s" % failures[-1], file=sys.stderr)
