"""One real poll: the playbook job_poll.yml through the real playbook host on targets of this machine, with its events and the CPU time it took."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engine import durable, events, runs
from app.engine.runs import PlaybookRun
from app.settings import ROOT, settings
from app.targets.inventory import build
from app.targets.probe_archive import build_probe
from lanes.scale.journal import chunk

HOST = "import sys; from pathlib import Path; from app.engine import host; host.main(Path(sys.argv[1]), int(sys.argv[2]))"
ATTEMPT = "01900000-0000-7000-8000-00000000005c"
JOB = f"{ATTEMPT}-soak"
MINUTE_S = 60.0  # of journal that a poll brings


@dataclass(frozen=True)
class Played:
    """A poll of some hosts at once: seconds of CPU (the host process and all below it) and of the clock, its events and its result."""

    hosts: int
    cpu_s: float
    wall_s: float
    events: list[dict[str, Any]]
    result: dict[str, Any]


def poll(folder: Path, hosts: int, rate: float) -> Played:
    """Poll so many hosts, each with a running job and a minute of journal, by one playbook. Raises RuntimeError with its last lines when it fails."""
    names = [f"gpu{n:03d}" for n in range(hosts)]
    described = {name: {"groups": ["engine", "loadgen"], "connection": "local"} for name in names}
    inventory = build(code=f"REAL{hosts}", targets={"hosts": described}, state_dir=folder)
    with ExitStack() as stack:
        for variables in inventory.hostvars.values():
            stack.enter_context(_job(Path(variables["qg_root"]), rate))
        known = {
            "job": {"id": JOB, "offsets": {}},
            "attempt": {"id": ATTEMPT, "gate": "G4", "number": 1, "fence": 1},
            "plan": {},
            "site": {},
            "step": {},
        }
        playbook = settings().playbook_dir / "job_poll.yml"
        run = PlaybookRun(ATTEMPT, "soak", f"poll-{hosts}", playbook, inventory, known, 600, settings().node)
        run.folder.mkdir(mode=0o700, parents=True)
        return _play(run, hosts)


def _play(run: PlaybookRun, hosts: int) -> Played:
    environment = runs.prepare(run)
    lock = os.open(run.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    began = time.monotonic()
    with (run.folder / "host.log").open("ab") as log:
        argv = [sys.executable, "-c", HOST, str(run.folder), str(lock)]
        child = subprocess.Popen(argv, env=environment, pass_fds=[lock], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
    os.close(lock)
    result = durable.read_json(run.folder / "result.json") or {}
    replies = result.get("replies") or {}
    if result.get("status") != "successful" or len(replies) != hosts or any(reply.get("state") != "running" for reply in replies.values()):
        raise RuntimeError(f"the real poll of {hosts} hosts did not work: {result.get('problem')} {result.get('tail')} {replies}")
    found, _ = events.read_new(run.folder / "events.jsonl", 0)
    return Played(hosts, used.ru_utime + used.ru_stime, time.monotonic() - began, found, result)


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
