"""Real polls: the playbook job_poll.yml through the real playbook host on targets of this machine, singly and as a round, and what they took."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.engine import durable, events, runs
from app.engine.runs import PlaybookRun
from app.settings import ROOT, settings
from app.targets.inventory import build
from app.targets.probe_archive import build_probe
from lanes.scale.journal import chunk

HOST = "import sys; from app.engine import host; host.main(host.told_of(sys.argv[1:]))"
COUNTED = "import os; pid = os.fork(); pid or os._exit(0); os.waitpid(pid, 0); print(pid)"  # the next number of a process
JOB = "00000000-0000-7000-8000-00000000005c-soak"
MINUTE_S = 60.0  # of journal that a poll brings


@dataclass(frozen=True)
class Played:
    """Polls of some targets, an attempt each: seconds of CPU (the host processes and all below them) and of the clock, processes and threads that
    were begun (None where nobody could count them), and events and result of the first."""

    targets: int
    cpu_s: float
    wall_s: float
    processes: int | None
    events: list[dict[str, Any]]
    result: dict[str, Any]


def polls(folder: Path, targets: int, rate: float, *, together: bool) -> Played:
    """Poll so many targets, each with a running job and a minute of journal: by one round, or by a playbook each, one after the other.

    Raises RuntimeError with the last lines of a poll that fails.
    """
    with ExitStack() as stack:
        made = [_run(folder, n, rate, stack) for n in range(targets)]
        parts = [_play(one) for one in ([made] if together else [[run] for run in made])]
    for run in made:
        result = durable.read_json(run.folder / "result.json") or {}
        states = [reply.get("state") for reply in (result.get("replies") or {}).values()]
        if result.get("status") != "successful" or states != ["running"]:
            raise RuntimeError(f"a real poll of {targets} targets did not work: {result.get('problem')} {result.get('tail')} {states}")
    first = made[0].folder
    told = events.read_new(first / "events.jsonl", 0)[0], durable.read_json(first / "result.json") or {}
    counted = [part[2] for part in parts if part[2] is not None]
    processes = sum(counted) if len(counted) == len(parts) else None
    for run in made:
        runs.remove(run.folder)
    return Played(targets, sum(part[0] for part in parts), sum(part[1] for part in parts), processes, *told)


def _run(folder: Path, n: int, rate: float, stack: ExitStack) -> PlaybookRun:
    """Return the poll of an attempt of its own, whose engagement has one host on this machine."""
    inventory = build(code=f"REAL{n}", targets={"hosts": {"gpu01": {"groups": ["engine", "loadgen"], "connection": "local"}}}, state_dir=folder)
    stack.enter_context(_job(Path(inventory.hostvars["gpu01"]["qg_root"]), rate))
    attempt = f"{JOB[:-8]}{n:03d}"
    known = {"job": {"id": JOB, "offsets": {}}, "attempt": {"id": attempt, "gate": "G4", "number": 1, "fence": 1}, "plan": {}, "site": {}, "step": {}}
    run = PlaybookRun(attempt, "soak", "poll-1", settings().playbook_dir / "job_poll.yml", inventory, known, 600, settings().node)
    run.folder.mkdir(mode=0o700, parents=True)
    return run


def _play(together: list[PlaybookRun]) -> tuple[float, float, int | None]:
    """Play runs by one host process. Returns the seconds of CPU and of the clock, and how many processes and threads were begun."""
    environment, *_ = [runs.prepare(run) for run in together]
    locks = [os.open(run.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600) for run in together]
    words = [str(word) for run, lock in zip(together, locks, strict=True) for word in (run.folder, lock)]
    began = time.monotonic()
    with (together[0].folder / "host.log").open("w+b") as log:
        argv = [*_counting(), sys.executable, "-c", f"{HOST}; {COUNTED}", *words]
        child = subprocess.Popen(argv, env=environment, pass_fds=locks, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
        log.seek(0)
        last = (log.read().split() or [b""])[-1].decode()
    for lock in locks:
        os.close(lock)
    return used.ru_utime + used.ru_stime, time.monotonic() - began, int(last) - 1 if _counting() and last.isdigit() else None


@lru_cache(maxsize=1)
def _counting() -> tuple[str, ...]:
    """Return what gives a program process numbers that begin at 1, so that the last one tells how many there were; nothing where we may not."""
    argv = ("unshare", "--pid", "--fork", "--mount-proc")
    try:
        return argv if subprocess.run([*argv, "true"], capture_output=True, check=False).returncode == 0 else ()
    except OSError:
        return ()


class _job:  # noqa: N801 - used as a function
    """A job on a target that runs as far as the probe can tell: its lock is held, its journals hold a minute."""

    def __init__(self, root: Path, rate: float) -> None:
        self.root, self.rate, self.lock = root, rate, -1

    def __enter__(self) -> None:
        folder = self.root / "jobs" / JOB
        folder.mkdir(parents=True, exist_ok=True)
        build_probe(self.root / "probe.pyz")
        (folder / "started").touch()
        (folder / "job.json").write_text(json.dumps({"job": JOB, "kind": "soak"}))
        for name in ("records.jsonl", "telemetry.jsonl"):
            (folder / name).write_text(chunk(name, 0, MINUTE_S, self.rate)["data"])
        self.lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.lock)
