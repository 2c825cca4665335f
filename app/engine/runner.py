"""Where playbook hosts live: in this process's own container, or in a service of their own that outlives every worker.

With QUADGATE_RUNNER_SOCKET a worker hands the run directory, the environment and the locked descriptor over a Unix socket to the
runner (`quadgate runner`), which starts the host: replacing a worker then ends no playbook. The lock travels with the request
(SCM_RIGHTS), so "alive, never ran, lost" is told by the same flock, `started` and `result.json` as everywhere (see runs.py).
A request is one JSON line `{op, folder?, folders?, environment?, attempt?}` (`attempt`: its mark);
the answer is one JSON line `{ok, ended?, room?, together?, over?, why?}`.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.engine import marker
from app.engine.control import close_masters
from app.engine.policy import ROUND_MAX
from app.kit import alive
from app.settings import settings

log = logging.getLogger("quadgate.runner")
HOST_PROGRAM = Path(__file__).with_name("host.py")
SPAWN_S, ASK_S, SHOW_S, WORD_S = 15.0, 30.0, 10.0, 60.0
REQUEST_MAX = 256 * 1024


class RunnerAway(Exception):  # noqa: N818 - a state of the house, like QuadgateError's children
    """The runner does not answer, as while it is replaced: whoever asked tries again later, and nothing has begun."""


class HostsFull(RunnerAway):
    """As many playbook hosts live as this machine may have; nothing has begun."""


def room() -> int:
    """Return how many runs the next playbook host may be given, 0 when none may be started. Raises RunnerAway when the runner does not answer."""
    if settings().runner_socket:
        try:
            answer = _ask({"op": "room"})
        except OSError:  # a runner of an earlier version, which does not know the question
            return 1
        return int(answer.get("together") or 1) if answer.get("room") else 0
    return ROUND_MAX if len(living_here()) < settings().hosts_max else 0


def living_here() -> list[int]:
    """Return the ids of the playbook hosts of this state directory that live in this process's container."""
    ours, program = os.fsencode(settings().runs_dir) + b"/", os.fsencode(HOST_PROGRAM)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if program in words and any(word.startswith(ours) for word in words) and marker.state(int(entry.name)) not in ("Z", "X", ""):
            found.append(int(entry.name))
    return found


def spawn(folders: Sequence[Path], locks: Sequence[int], environment: dict[str, str]) -> None:
    """Start one detached host for these runs. Raises RunnerAway when the runner does not answer, OSError when it could not start one."""
    if settings().runner_socket:
        names = [str(folder) for folder in folders]
        which: dict[str, Any] = {"folder": names[0]} if len(names) == 1 else {"folders": names}  # the former is what earlier versions know
        _ask({"op": "spawn", **which, "environment": environment}, locks)
    else:
        spawn_here(folders, locks, environment)


def end(mark: str, control_dir: Path | None = None) -> int:
    """End all that an attempt left where hosts live: processes by its mark (marks.of), then SSH masters. Returns how many processes there were."""
    if settings().runner_socket:
        answer = _ask({"op": "end", "attempt": mark, "control_dir": str(control_dir or "")})
        return int(answer.get("ended") or 0)
    return _end_here(mark, control_dir)


def spawn_here(folders: Sequence[Path], locks: Sequence[int], environment: dict[str, str]) -> None:
    """Start the host from this process. The launcher forks and ends at once, so that there is no child to reap.

    A launcher that was killed, or that took too long, says nothing: whether a host lives is told by the lock and `started`, as always.
    """
    folder, words = folders[0], [str(word) for pair in zip(folders, locks, strict=True) for word in pair]
    with (folder / "host.log").open("ab") as output:
        try:
            done = subprocess.run(
                [sys.executable, "-P", str(HOST_PROGRAM), *words],
                env=environment,
                pass_fds=locks,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                check=False,
                timeout=SPAWN_S,
            )
        except subprocess.TimeoutExpired:
            log.warning("the launcher of a playbook host in %s took more than %s s; its lock tells how the run stands", folder.name, SPAWN_S)
            return
    if done.returncode > 0:
        raise subprocess.CalledProcessError(done.returncode, done.args)
    if done.returncode < 0:
        log.warning("the launcher of a playbook host in %s was killed by signal %s; its lock tells how the run stands", folder.name, -done.returncode)


def _end_here(mark: str, control_dir: Path | None) -> int:
    ended = marker.end_all(mark)
    if control_dir is not None:
        close_masters(control_dir)
    return ended


def _ask(request: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(ASK_S)
            wire.connect(settings().runner_socket)
            data = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(wire, [data], list(fds))
            if sent < len(data):  # sending nothing to a runner that has already answered is a broken pipe
                wire.sendall(data[sent:])
            with wire.makefile("rb") as lines:
                answer: dict[str, Any] = json.loads(lines.readline(REQUEST_MAX))
    except (OSError, ValueError) as error:
        raise RunnerAway(f"the runner at {settings().runner_socket} does not answer ({type(error).__name__})") from error
    if answer.get("over"):
        raise RunnerAway("the runner is being replaced and begins nothing any more")
    if not answer.get("ok"):
        raise OSError(str(answer.get("why") or "the runner could not do it"))
    return answer


def answers() -> bool:
    """Tell whether the runner of the settings answers."""
    try:
        return bool(_ask({"op": "ping"}).get("ok"))
    except (RunnerAway, OSError):
        return False


class Runner:
    """The service: one thread a request, until it is told to end and no host lives any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.over = threading.Event()
        self._hosts: list[int] = []  # processes that were started here
        self._starting = 0
        self._guard = threading.Lock()
        self._next_show = self._next_word = 0.0

    def serve(self) -> None:
        """Serve until `over` is set, and then as long as a host lives: who stops the runner waits for its playbooks, or kills them."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(self.path))
            self.path.chmod(0o600)
            door.listen(64)
            door.settimeout(0.5)
            while not (self.over.is_set() and self._idle()):
                self._show_that_it_can()
                self._say_what_it_waits_for()
                try:
                    wire, _ = door.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=self._answer, args=(wire,), daemon=True).start()
        self.path.unlink(missing_ok=True)

    def _show_that_it_can(self) -> None:
        """Every ten seconds, start a program: whoever cannot any more is not alive, however long it lives."""
        if time.monotonic() < self._next_show:
            return
        self._next_show = time.monotonic() + SHOW_S
        try:
            subprocess.run(["/bin/true"], check=True, timeout=SPAWN_S)
            alive.touch()
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("no program can be started: %s", error)

    def _say_what_it_waits_for(self) -> None:
        """Once a minute, tell whoever stops the runner why it does not end."""
        if not self.over.is_set() or time.monotonic() < self._next_word:
            return
        self._next_word = time.monotonic() + WORD_S
        log.warning("told to end: waiting for %s playbook(s) that still run; a kill would cut them off midway on their targets", self.living())

    def _idle(self) -> bool:
        return self.living() == 0 and self._starting == 0

    def living(self) -> int:
        """Return how many of the hosts that were started here still live."""
        with self._guard:
            self._hosts = [pid for pid in self._hosts if marker.state(pid) not in ("Z", "X", "")]
            return len(self._hosts)

    def _answer(self, wire: socket.socket) -> None:
        with wire:
            wire.settimeout(ASK_S)
            fds: list[int] = []
            try:
                request, fds = _read(wire)
                answer: dict[str, Any] = {"ok": True, **self._do(request, fds)}
            except Exception as error:
                log.warning("a request failed: %s: %s", type(error).__name__, error)
                answer = {"ok": False, "why": f"{type(error).__name__}: {error}"}
            finally:
                for fd in fds:
                    os.close(fd)
            try:
                wire.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                log.warning("whoever asked is gone; what was asked was done")

    def _do(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if request["op"] == "ping":
            return {}
        if request["op"] == "room":
            return {"room": self.living() < settings().hosts_max, "together": ROUND_MAX}
        if request["op"] == "end":
            control = request.get("control_dir")
            return {"ended": _end_here(str(request["attempt"]), Path(control) if control else None)}
        folders = [Path(folder) for folder in request.get("folders") or [request["folder"]]]
        outside = any(not folder.is_relative_to(settings().runs_dir) or ".." in folder.parts for folder in folders)
        if request["op"] != "spawn" or len(fds) != len(folders) or outside:
            raise ValueError("no request of ours")
        with self._guard:  # told to end before this: refused; after this: waited for
            if self.over.is_set():
                return {"ok": False, "over": True}
            self._starting += 1
        try:
            environment = {str(key): str(value) for key, value in request["environment"].items()}
            before = set(marker.carriers(environment[marker.VARIABLE]))
            spawn_here(folders, fds, environment)
            with self._guard:
                self._hosts += sorted(set(marker.carriers(environment[marker.VARIABLE])) - before)
        finally:
            self._starting -= 1
        log.info("started a playbook host in %s", ", ".join(folder.name for folder in folders))
        return {}


def _read(wire: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Read a request of our own user: one line, with the descriptors that came along."""
    credentials = wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", credentials)[1] != os.geteuid():
        raise PermissionError("another user asks")
    data, fds = b"", []
    while not data.endswith(b"\n") and len(data) < REQUEST_MAX:
        more, new, _, _ = socket.recv_fds(wire, 65536, ROUND_MAX)
        fds += new
        if not more:
            break
        data += more
    request: dict[str, Any] = json.loads(data)
    return request, fds
