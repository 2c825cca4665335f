"""Run directories: `runs/<attempt>/<step key>-<name>/`, private to us, one for each try of a playbook.

    lock          held (flock) by the host process as long as it lives; the starter takes it and hands the descriptor over
    started       created exclusively by the host: this run was begun, and can never be begun a second time
    job.json      what the host is to do (0600, removed at the end)     private/   inventory, variables, runner's files (removed)
    staging/      what the playbook fetched     unpacked/<claim>/   its packs
    events.jsonl   every event, redacted     result.json   whole, or not there

Alive, never ran, or lost is told by lock + started + result.json only, never by pids.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.engine import durable, hints, marker, marks, runner
from app.engine.policy import CLEAN_S
from app.kit import traces
from app.settings import settings
from app.targets.inventory import MODULES, Inventory
from app.targets.literal import literal


class Look(StrEnum):
    """What a look at a run directory can tell."""

    NEVER = "never"  # no host process ever began
    ALIVE = "alive"
    DONE = "done"  # result.json is whole
    LOST = "lost"  # it began, is gone, and left no result


@dataclass(frozen=True)
class RunState:
    """What a look told, with the result when there is one."""

    look: Look
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlaybookRun:
    """One try of one playbook, as the engine orders it."""

    attempt_id: str
    step_key: str
    name: str  # e.g. start-1
    playbook: Path
    inventory: Inventory
    variables: dict[str, Any]
    timeout_s: int
    node: str
    hurry: bool = False  # all hosts at once, and none is waited for that does not answer within seconds

    @property
    def folder(self) -> Path:
        """Return the run directory."""
        return folder_of(self.attempt_id, self.step_key, self.name)

    @property
    def urgent(self) -> bool:
        """Return whether it waits for no other: what stops, removes or wipes something."""
        return self.name.startswith("stop") or self.step_key in ("stop", "remove", "wipe")


def folder_of(attempt_id: str, step_key: str, name: str) -> Path:
    """Return the directory of a run. Keys come from the gate's declaration; anything that could leave the tree is refused."""
    for part in (attempt_id, step_key, name):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", part):
            raise ValueError(f"{part!r} cannot be part of a directory name")
    return settings().runs_dir / attempt_id / f"{step_key}-{name}"


def used(attempt_id: str, step_key: str, phase: str) -> list[int]:
    """Return the numbers of a step's runs `<phase>-<number>` whose results were dealt with, the newest last."""
    pattern = re.compile(re.escape(f"{step_key}-{phase}-") + r"(\d+)")
    try:
        names = [path.name for path in (settings().runs_dir / attempt_id).iterdir()]
    except FileNotFoundError:
        return []
    numbers = [int(found[1]) for name in names if (found := pattern.fullmatch(name))]
    return sorted(n for n in numbers if (folder_of(attempt_id, step_key, f"{phase}-{n}") / "used").exists())


def living(attempt_id: str, step_key: str, but: str) -> list[Path]:
    """Return the directories of a step's runs that nobody has dealt with and whose host process lives, all but the run of that name."""
    here = settings().runs_dir / attempt_id
    ours = re.compile(re.escape(step_key) + r"-[a-z]+-\d+")
    found = [path for path in here.glob(f"{step_key}-*-*") if ours.fullmatch(path.name) and path != folder_of(attempt_id, step_key, but)]
    return sorted(path for path in found if not (path / "used").exists() and look(path).look is Look.ALIVE)


def remove(folder: Path) -> None:
    """Take away the directory of a run of which nothing is needed any more. Links in it are removed, not followed."""
    shutil.rmtree(folder, ignore_errors=True)


def look(folder: Path) -> RunState:
    """Tell how a run stands. Changes nothing."""
    if (result := durable.read_json(folder / "result.json")) is not None:
        return RunState(Look.DONE, result)
    try:
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return RunState(Look.NEVER)
    try:
        return _stands(folder, fd)
    finally:
        os.close(fd)


def _stands(folder: Path, fd: int) -> RunState:
    """Take the lock, and tell how a run stands: NEVER means that it is ours to begin."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return RunState(Look.ALIVE)
    if (result := durable.read_json(folder / "result.json")) is not None:  # it ended between two looks
        return RunState(Look.DONE, result)
    return RunState(Look.LOST if (folder / "started").exists() else Look.NEVER)


@dataclass(frozen=True)
class Ready:
    """A run that nobody has begun, prepared, with its lock in our hands: it is to be launched, or let go."""

    run: PlaybookRun
    lock: int
    environment: dict[str, str]

    def let_go(self) -> None:
        """Close our copy of the lock; that of a host that was launched keeps it."""
        os.close(self.lock)


def start(run: PlaybookRun) -> RunState:
    """Start the host process of a run, or adopt the one that a start before this left. Safe to call any number of times."""
    here = ready(run)
    if isinstance(here, RunState):
        return here
    launch([here])
    return RunState(Look.ALIVE)


def ready(run: PlaybookRun) -> Ready | RunState:
    """Prepare a run that was never begun, or tell how it stands. Raises HostsFull or RunnerAway where there is no room for it."""
    folder = run.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock, kept = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), False
    try:
        state = _stands(folder, lock)
        if state.look is not Look.NEVER:
            return state
        if not run.urgent and not runner.room():
            raise runner.HostsFull(f"{settings().hosts_max} playbooks run on this machine already; {folder.name} waits for its turn")
        here, kept = Ready(run, lock, prepare(run)), True
        return here
    finally:
        if not kept:
            os.close(lock)


def launch(boarded: Sequence[Ready]) -> None:
    """Start one host process for runs of the same playbook, and let go of them. Raises RunnerAway or OSError: then none has begun."""
    environment = {**boarded[0].environment, marker.VARIABLE: marker.BETWEEN.join(marks.of(here.run.attempt_id) for here in boarded)}
    try:
        runner.spawn([here.run.folder for here in boarded], [here.lock for here in boarded], environment)
    finally:
        for here in boarded:
            here.let_go()


def prepare(run: PlaybookRun) -> dict[str, str]:
    """Write what the host reads. Returns its environment, which holds no secret; the mark comes with the launch."""
    folder, short = run.folder, short_dir(run.folder)
    private = folder / "private"
    shutil.rmtree(private, ignore_errors=True)
    private.mkdir(mode=0o700)
    (folder / "staging").mkdir(mode=0o700, exist_ok=True)
    for name in ("cp", "home", "local", "remote"):
        (short / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    modules = "" if run.name.startswith("poll") else modules_of(folder)  # a look is over in seconds, and comes by the thousand
    known_hosts = private / "known_hosts"
    durable.write_private(known_hosts, run.inventory.known_hosts)
    told = {**run.variables, "staging": str(folder / "staging")}
    for name, document in (("inventory.json", run.inventory.document(known_hosts, modules)), ("vars.json", told)):
        durable.write_private(private / name, json.dumps(literal(document), ensure_ascii=False))
    job = {
        "attempt": run.attempt_id,
        "playbook": str(run.playbook),
        "timeout_s": run.timeout_s,
        "secrets": list(run.inventory.secrets),
        "control_dir": str(short / "cp"),
        "short_dir": str(short),
        "broker_url": settings().broker_url,
        "queue": (queue := hints.STEPS.format(node=run.node)),
        "nudge": hints.sealed("advance", [run.attempt_id, None], queue=queue),
        "otlp_endpoint": settings().otlp_endpoint,
        "traceparent": traces.carried(),
    }
    durable.write_private(folder / "job.json", json.dumps(job))
    return host_environment(short, len(run.inventory.hosts) if run.hurry else 0)


def host_environment(short: Path, at_once: int = 0) -> dict[str, str]:
    """Return the environment of a host process and of everything below it. `at_once`: so many hosts are in a hurry (PlaybookRun.hurry)."""
    connect_s, alive_s, silent = (5, 4, 2) if at_once else (10, 15, 3)
    kept = ("HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "QUADGATE_SUPERVISED")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return {
        **environment,
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "ANSIBLE_HOME": str(short / "home"),
        "ANSIBLE_LOCAL_TEMP": str(short / "local"),
        "ANSIBLE_REMOTE_TMP": str(short / "remote"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(short / "cp"),
        "ANSIBLE_SSH_ARGS": "-C -o ControlMaster=auto -o ControlPersist=15m "
        f"-o ConnectTimeout={connect_s} -o ServerAliveInterval={alive_s} -o ServerAliveCountMax={silent}",
        **({"ANSIBLE_FORKS": str(at_once)} if at_once else {}),
        "ANSIBLE_SSH_USETTY": "false",
        "ANSIBLE_RETRY_FILES_ENABLED": "false",
        "ANSIBLE_NOCOWS": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def clean(attempt_id: str, folder: Path) -> int:
    """End everything that a lost run left: processes by the attempt's marker, then its SSH masters. Returns how many processes there were."""
    short = short_dir(folder)
    ended = runner.end(marks.of(attempt_id), short / "cp")
    shutil.rmtree(short, ignore_errors=True)
    shutil.rmtree(folder / "private", ignore_errors=True)
    (folder / "job.json").unlink(missing_ok=True)
    return ended


def clean_all(attempt_id: str) -> None:
    """End everything of an attempt, and take away what its playbooks that were ended had been given: inventories hold secrets.

    What still holds a run's lock is just being started, for somebody who died since: ended as it comes. Raises TimeoutError when that does not end.
    """
    deadline = time.monotonic() + CLEAN_S
    runner.end(marks.of(attempt_id))
    while held := [lock.parent.name for lock in (settings().runs_dir / attempt_id).glob("*/lock") if look(lock.parent).look is Look.ALIVE]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the run {held[0]} goes on")
        time.sleep(0.1)
        runner.end(marks.of(attempt_id))
    for private in (settings().runs_dir / attempt_id).glob("*/private"):
        clean(attempt_id, private.parent)


def remote_dirs(attempt_id: str) -> list[str]:
    """Return where, on the targets, the modules of this attempt's playbooks lie that began and left no result: they may go on there.

    Of hosts behind SSH it is the end of the path, since the home that it begins with is known there only.
    """
    found = [started.parent for started in (settings().runs_dir / attempt_id).glob("*/started")]
    lost = [folder for folder in found if durable.read_json(folder / "result.json") is None]
    return sorted(where for folder in lost for where in (str(short_dir(folder) / "remote"), f"{MODULES.removeprefix('~')}/{modules_of(folder)}"))


def modules_of(folder: Path) -> str:
    """Return the name of the folder for a run's modules on hosts behind SSH (targets.inventory.MODULES)."""
    return f"qg-{short_dir(folder).name}"


def short_dir(folder: Path) -> Path:
    """Return the run's directory for sockets, whose paths may have 100 bytes at most: /tmp/qg-<uid>/<hash>, private and ours."""
    base = Path("/tmp") / f"qg-{os.geteuid()}"  # noqa: S108 - checked below
    base.mkdir(mode=0o700, exist_ok=True)
    info = base.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise PermissionError(f"{base} is not a private directory of ours; remove it")
    return base / hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def mark_lost(folder: Path) -> None:
    """Say of a run whose host process was on another machine that it began and is gone: it is never begun again under its name."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("lock", "started"):
        (folder / name).touch(mode=0o600)
