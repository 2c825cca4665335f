"""End an engine at once, for a cancel: nothing that it holds is worth waiting for. `engine_control.stop` is for whoever goes on measuring.

A graceful stop of a container may take two minutes, since the engine writes back what it holds. After a cancel nobody reads that any more,
and people wait: here everything takes KILL_S in all, or a sentence says what goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any, Dict, List, Tuple

from probe import engine_control, proc
from probe.errors import ProbeError
from probe.files import read_json
from probe.selfexec import clean_environment

KILL_S = 5.0  # for everything
TERM_S = 1.0  # of these, for processes of our own that end when they are asked to
Begun = Tuple[List[str], "subprocess.Popen[bytes]"]


def kill(spec: Dict[str, Any]) -> Dict[str, Any]:
    """End the engine that `pid_file` names within seconds. Return {name, state, killed, pid}; raise ProbeError where something goes on.

    `stop_argv` stands in the pid file, as for a stop: of each command the one that does not wait is run instead.
    """
    end = time.monotonic() + KILL_S
    given = read_json(spec["pid_file"])
    told = {**(given if isinstance(given, dict) else {}), **spec}
    found = engine_control.process(spec["pid_file"])
    slow: List[str] = []
    for commands in hurried(told.get("stop_argv") or []):
        slow += _run(commands, end)
    left = _end_family(found["pid"], end) if found else []
    if left:
        raise ProbeError("engine", "The engine %s goes on (pid %s) in spite of SIGKILL; look for a hung device." % (spec.get("name"), left[0]))
    if slow:
        raise ProbeError("engine", "The engine %s may go on: %s. End it by hand." % (spec.get("name"), "; ".join(slow)))
    engine_control.refuse_what_goes_on(told)
    with suppress(FileNotFoundError):
        os.unlink(spec["pid_file"])
    return {
        "name": spec.get("name"),
        "state": "stopped" if found else "was not running",
        "killed": bool(found),
        "pid": found["pid"] if found else None,
    }


def hurried(stop_argv: List[List[Any]]) -> List[List[List[str]]]:
    """Return the commands that end at once what `stop_argv` ends with patience, in two rounds: first what kills, then what clears away.

    A container is killed before it is removed (podman's `rm --force` waits otherwise), a unit before systemd is told that it shall stay down.
    """
    kills, rest = [], []
    for words in ([str(word) for word in argv] for argv in stop_argv):
        if words[1:2] != ["stop"]:
            rest.append(words)
        elif os.path.basename(words[0]) == "systemctl":
            kills.append([words[0], "kill", "--signal=KILL", *words[2:]])
            rest.append(words)
        else:
            kills.append([words[0], "kill", *words[-1:]] if len(words) > 2 else [words[0], "kill"])
    return [kills, rest]


def _run(commands: List[List[str]], end: float) -> List[str]:
    """Run commands side by side; return a sentence for each that had not ended by then. That there is nothing to kill is no error."""
    begun: List[Begun] = []
    for argv in commands:
        with suppress(OSError):  # a program that is not there started no engine either
            begun.append((argv, _begin(argv)))
    slow = []
    for argv, process in begun:
        try:
            process.wait(max(0.1, end - TERM_S - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            slow.append("`%s` did not end" % " ".join(argv))
    return slow


def _begin(argv: List[str]) -> "subprocess.Popen[bytes]":
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(argv, env=clean_environment(), **quiet)  # type: ignore[call-overload,no-any-return]


def _end_family(pid: int, end: float) -> List[int]:
    """End a process and all below it: asked, then killed. Return those that live on."""
    family = {one: proc.start_ticks(one) for one in proc.family(pid)}
    asked_until = min(end, time.monotonic() + TERM_S)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while True:
        for one in [one for head in list(family) for one in proc.family(head)]:  # what it starts while it ends
            family.setdefault(one, proc.start_ticks(one))
        left = [one for one, ticks in family.items() if ticks is not None and proc.is_alive(one, ticks)]
        if not left or time.monotonic() > end:
            return left
        if time.monotonic() > asked_until:
            for one in left:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        time.sleep(0.02)
