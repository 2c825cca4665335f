"""Starting, watching and stopping the parts of the service on one machine. The same parts as in production; only the URLs differ."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import OperationalError

from app.engine import hints, marker, nodes
from app.engine.runner import HOST_PROGRAM
from app.kit import alive
from app.kit.db import read_session
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_
from app.kit.migrate import upgrade
from app.settings import ROOT, settings
from app.up import broker, ending, leftovers
from app.up import web as web_server
from app.up.part import Part, kill
from gates.text import Text

log = logging.getLogger("quadgate.up")
START_S, CANARY_LATE_S, BROKER_MUTE_S, LOOK_S, AGAIN_S = 60.0, 90.0, 5.0, 0.3, 2.0
BEAT_LATE_S = 30.0  # without a tick: sooner than the worker is blamed for hearing none


@dataclass(frozen=True)
class Health:
    """`ok` means that work gets done: a canary task came back lately. Living processes alone prove nothing."""

    ok: bool
    canary_age_s: float | None
    parts: dict[str, bool]


class Supervisor:
    """One supervisor a state directory. `start`, then `stop` in any case; usable in the process of a caller."""

    def __init__(self) -> None:
        self._settings = settings()
        self._state: Path = self._settings.state_dir
        self._parts: dict[str, Part] = {}
        self._lock_fd: int | None = None
        self._guard = threading.RLock()  # the watch and a caller never touch the parts at once
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None
        self._began = 0.0
        self._written: dict[str, int] = {}  # the parts as the record of them on the disk says
        self._answered = 0.0  # when the broker was last known to answer
        self._worker_silence, self._beat_silence = alive.Silence(), alive.Silence()
        self._beat_unheard: tuple[int | None, int | None] = (None, None)  # beat's process id and its file, before this process sent anything

    def start(self, *, web: bool = True, wait: bool = True) -> None:
        """Start everything and, with `wait`, return when a canary came back and the pages answer.

        Raises Refused when another supervisor has this state directory, or another program the port.
        """
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock()
        try:
            self._end_what_was_left()
            if web:
                web_server.require_free(self._settings.web_host, self._settings.web_port)
            upgrade()
            self._began = time.monotonic()
            self._start_broker()
            self._start("worker", worker_argv(self._settings.node))
            self._start("beat", beat_argv(self._state), QUADGATE_ALIVE_FILE=str(self._beat_file))
            if web:
                self._start("web", web_server.argv(self._settings.web_host, self._settings.web_port))
            self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
            self._watcher.start()
            if wait:
                self._wait_until_healthy()
        except BaseException:
            self.stop(cancel=False)
            raise

    def stop(self, *, cancel: bool = True, leave: bool = False, tell: Callable[[Text], object] = lambda _: None) -> None:
        """Cancel what runs, end hosts and local probes, then worker, beat, web, broker. Nothing is left running here.

        `leave`: cancel nothing and leave jobs and engines on their targets alone, also on local ones, for whoever goes on with them.
        `tell` gets a sentence when the targets take their time to stop, and one for everything that may still run on them.
        """
        if self._lock_fd is None:
            return
        try:
            if cancel and not leave and "worker" in self._parts:
                ending.cancel(tell)
        except Exception:
            log.exception("running attempts could not be canceled; their processes are ended all the same")
        self._over.set()
        if self._watcher is not None:
            self._watcher.join(10)
        with self._guard:
            kill(self.host_pids())
            self._end_local_lab(leave)
            for name, patience in (("worker", 25.0), ("beat", 5.0), ("web", 8.0), ("broker", 10.0)):
                if name in self._parts:
                    self._parts[name].stop(patience)
            marker.end_all(str(self._state), leftovers.SUPERVISED)
            self._end_local_lab(leave)
            self._parts.clear()
            self._record.unlink(missing_ok=True)
            self._unlock()

    def end_leftovers(self) -> None:
        """End what an earlier supervisor of this state directory left running. Raises Refused when one is alive: its state is in use."""
        if not self._state.is_dir():
            return
        self._lock()
        try:
            self._left.unlink(missing_ok=True)
            self._end_what_was_left()
        finally:
            self._unlock()

    def pids(self) -> dict[str, int]:
        """Return the process ids of the living parts."""
        with self._guard:
            return {name: part.pid for name, part in self._parts.items() if part.pid is not None}

    def restarts(self) -> dict[str, int]:
        """Return how often each part was started again."""
        return {name: part.restarts for name, part in self._parts.items()}

    def kill_worker(self) -> list[int]:
        """SIGKILL the worker and its children, as a crash would; it is started again. Returns their ids."""
        with self._guard:
            return self._parts["worker"].kill_family()

    def host_pids(self) -> list[int]:
        """Return the ids of the living playbook hosts of this service."""
        wanted = os.fsencode(HOST_PROGRAM)
        found = []
        for pid in marker.carriers(str(self._state), leftovers.SUPERVISED):
            try:
                if wanted in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    found.append(pid)
            except OSError:
                continue
        return found

    def kill_hosts(self) -> list[int]:
        """SIGKILL the playbook hosts, and only them: what they started lives on, as it would after a crash. Returns their ids."""
        pids = self.host_pids()
        kill(pids)
        return pids

    def health(self) -> Health:
        """Return whether work gets done."""
        with read_session() as s:
            age = nodes.canary_age_s(s)
        ours = age is not None and age < time.monotonic() - self._began  # not one of an earlier service
        parts = {name: part.alive() for name, part in self._parts.items()}
        return Health(bool(ours and age is not None and age < CANARY_LATE_S and all(parts.values())), age, parts)

    @property
    def _record(self) -> Path:
        return self._state / "supervisor.json"

    def _end_what_was_left(self) -> None:
        # By the record first: a broker overwrites its environment with its title, so the marker does not find it.
        leftovers.end_recorded(self._record)
        marker.end_all(str(self._state), leftovers.SUPERVISED)
        self._end_local_lab(self._left.exists())
        self._left.unlink(missing_ok=True)

    def _end_local_lab(self, leave: bool) -> None:
        """End what runs on targets that are this machine, or note that it is left for the next start to go on with."""
        if leave:
            self._left.touch(mode=0o600)
        else:
            leftovers.end(leftovers.local_lab(self._state))

    @property
    def _left(self) -> Path:
        return self._state / "left-running"

    def _unlock(self) -> None:
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _lock(self) -> None:
        fd = os.open(self._state / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise Refused(
                "already_up",
                N_("Quadgate is already running with the state directory {path}. Stop it first, or set QUADGATE_STATE_DIR."),
                path=str(self._state),
            ) from None
        self._lock_fd = fd
        self._over.clear()

    def _start_broker(self) -> None:
        ours = f"redis+socket://{self._state / 'broker' / 'redis.sock'}"
        sock = broker.socket_path(self._state)
        url = f"redis+socket://{sock}"
        if self._settings.broker_url not in (ours, url):
            return  # a broker of its own, which somebody else looks after
        self._settings.broker_url = url
        self._start("broker", broker.argv(broker.server_program(), sock, self._state / "broker"))
        deadline = time.monotonic() + START_S
        while not broker.answers(sock):
            if time.monotonic() > deadline or not self._parts["broker"].alive():
                raise self._failed("broker")
            time.sleep(0.02)

    def _start(self, name: str, argv: list[str], **more: str) -> None:
        environment = {
            **os.environ,
            leftovers.SUPERVISED: str(self._state),
            "QUADGATE_STATE_DIR": str(self._state),
            "QUADGATE_BROKER_URL": self._settings.broker_url,
            "PYTHONUNBUFFERED": "1",
            **more,
        }
        part = Part(name, argv, environment=environment, cwd=ROOT, log=self._state / "log" / f"{name}.log")
        with self._guard:
            part.start()
            self._parts[name] = part
            self._written = self.pids()
            leftovers.write_down(self._record, self._written)

    def _watch(self) -> None:
        """Look after the parts until the end. A disk that is full, or a process that cannot be started now, must not end the watch itself."""
        pause = LOOK_S
        while not self._over.wait(pause):
            pause = LOOK_S
            try:
                with self._guard:
                    self._look_after()
            except Exception as error:
                pause = AGAIN_S
                log.warning("the parts could not all be looked after, which is tried again in %s s: %s", AGAIN_S, error)

    def _look_after(self) -> None:
        """Start parts again that ended, a broker that lives out of reach, and a scheduler or a worker that lives and does nothing."""
        again = [part.name for part in self._parts.values() if part.look_after()]  # each of them, not only up to the first
        if again:
            log.warning("ended and started again: %s", ", ".join(again))
        if self._mute():
            log.warning("the broker lives and has not answered on its socket for %s s: it is started again", BROKER_MUTE_S)
            self._parts["broker"].stop(5)
        if self._stuck():
            log.warning("the scheduler lives and has sent nothing for %s s: it is started again", BEAT_LATE_S)
            self._parts["beat"].kill_family()
        elif self._deaf():
            log.warning("no canary came back for %s s: the worker is started again", CANARY_LATE_S)
            self._parts["worker"].stop(5)
        pids = self.pids()
        if pids != self._written:  # at last, since a full disk refuses it
            leftovers.write_down(self._record, pids)
            self._written = pids

    def _mute(self) -> bool:
        """Tell whether our broker lives but cannot be reached, as when its socket was removed under it."""
        part = self._parts.get("broker")
        if part is None or not part.alive() or part.lived_s() < BROKER_MUTE_S or broker.answers(broker.socket_path(self._state)):
            self._answered = time.monotonic()
            return False
        return time.monotonic() - self._answered > BROKER_MUTE_S

    @property
    def _beat_file(self) -> Path:
        return self._state / "beat.alive"

    def _stuck(self) -> bool:
        """Tell whether beat lives and sends nothing. One that has just been started has more time for its first tick."""
        beat = self._parts.get("beat")
        if beat is None or not beat.alive():
            return False
        sign = beat.pid, alive.touched(self._beat_file)
        if sign[0] != self._beat_unheard[0]:
            self._beat_unheard = sign
        return self._beat_silence.seconds(sign) > (CANARY_LATE_S if sign == self._beat_unheard else BEAT_LATE_S)

    def _deaf(self) -> bool:
        """Tell whether the worker lives and does nothing, though beat sends. All its children in long work are none: they renew their leases."""
        worker = self._parts.get("worker")
        if worker is None or not worker.alive():
            return False
        try:
            with read_session() as s:
                signs = nodes.signs(s, self._settings.node)
        except OperationalError:  # the database is away or busy: that says nothing about the worker, and the watch goes on
            return False
        pids = self.pids()
        return self._worker_silence.seconds((*signs, pids.get("worker"), pids.get("beat"))) > CANARY_LATE_S  # one that is new gets its time

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_S
        while not (works := self.health().ok) or not self._pages_answer():
            if time.monotonic() > deadline:
                dead = next((name for name, part in self._parts.items() if not part.alive()), "web" if works else "worker")
                raise self._failed(dead)
            time.sleep(0.1)

    def _pages_answer(self) -> bool:
        return "web" not in self._parts or web_server.answers(self._settings.web_host, self._settings.web_port)

    def _failed(self, name: str) -> QuadgateError:
        return QuadgateError(
            "part_failed",
            N_("The {part} did not come up within {seconds} s. Its log {path} ends with:\n{tail}"),
            part=name,
            seconds=round(START_S),
            path=str(self._state / "log" / f"{name}.log"),
            tail=self._parts[name].tail(),
        )


def beat_argv(state: Path) -> list[str]:
    """Return the command of the scheduler: it keeps no schedule file, since there is one static entry."""
    options = ["-s", str(state / "beat"), "--scheduler", "app.worker.steady:Steady", "--pidfile=", "--loglevel", "WARNING"]
    return [sys.executable, "-m", "celery", "-q", "-A", "app.worker.app", "beat", *options]


def worker_argv(node: str) -> list[str]:
    """Return the command of the worker of a node."""
    queues = ",".join((hints.TICK, hints.STEPS.format(node=node), hints.HEAVY.format(node=node)))  # one message of each in turn
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
    return [
        sys.executable,
        "-m",
        "celery",
        "-q",  # no banner: each line of a log is an event
        "-A",
        "app.worker.app",
        "worker",
        "-Q",
        queues,
        "-c",
        str(settings().worker_children),
        "-n",
        f"quadgate@{node}",
        *quiet,
    ]
