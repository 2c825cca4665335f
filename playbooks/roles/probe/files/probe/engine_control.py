"""Start and stop one engine process outside systemd: idempotent, and a reused pid is never killed.

The pid file holds {pid, start_ticks, boot_id}; a plain number, as other tools write it, is read too but proves less.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, Optional

from probe import proc
from probe.clock import boot_id, wall_ns
from probe.engine_log import compact
from probe.errors import ProbeError
from probe.files import read_json, write_json
from probe.selfexec import clean_environment

_TO_STOP = ("stop_argv", "stop_timeout_s", "health_url", "log")


def start(spec: Dict[str, Any]) -> Dict[str, Any]:
    """Start the engine unless exactly it runs, and wait until it is healthy. Return {state, pid, start_ticks, waited_s}."""
    with _guarded(spec["pid_file"]):
        found = process(spec["pid_file"])
        state = "already running"
        if found is None:
            _run_all(spec, float(spec.get("stop_timeout_s") or 10))  # what an earlier client left behind would hold name and port
            _refuse_a_stranger(spec)
            found, state = _spawn(spec), "started"
    began = time.monotonic()
    wait_healthy(spec, found)
    return {"name": spec.get("name"), "state": state, "waited_s": round(time.monotonic() - began, 3), **found}


def stop(spec: Dict[str, Any]) -> Dict[str, Any]:
    """End the engine and all that belongs to it. Stopping what does not run is fine.

    First the commands of `stop_argv` (of a container or a unit: the process of the pid file is only their client, and killing that leaves the
    engine running), each waited for; then SIGTERM, wait, SIGKILL. `stop_argv` and `stop_timeout_s` stand in the pid file too, so that
    whoever has only that can stop the engine as it wants to be stopped.
    """
    with _guarded(spec["pid_file"]):
        given = read_json(spec["pid_file"])
        told = {**(given if isinstance(given, dict) else {}), **spec}
        timeout = float(told.get("stop_timeout_s") or 10)
        found = process(spec["pid_file"])
        killed = False
        family = {pid: proc.start_ticks(pid) for pid in proc.family(found["pid"])} if found else {}
        _run_all(told, timeout)
        if found:
            with suppress(ProcessLookupError):
                os.kill(found["pid"], signal.SIGTERM)
            if not _gone(family, timeout):
                killed = True
                for pid, ticks in family.items():
                    if ticks is not None and proc.is_alive(pid, ticks):
                        _kill(pid)
                if not _gone(family, 5):
                    raise ProbeError(
                        "engine", "The engine %s (pid %d) does not end even by SIGKILL; look for a hung device." % (spec.get("name"), found["pid"])
                    )
        refuse_what_goes_on(told)
        if os.path.exists(spec["pid_file"]):
            os.unlink(spec["pid_file"])
    return {"name": spec.get("name"), "state": "stopped" if found else "was not running", "killed": killed, "pid": found["pid"] if found else None}


def _run_all(spec: Dict[str, Any], timeout: float) -> None:
    """Run the commands that stop a container or a unit. That there is none to stop is no error; what must not be is told afterwards."""
    for argv in spec.get("stop_argv") or []:
        with open(spec.get("log") or os.devnull, "ab") as log, suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [str(word) for word in argv],
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=timeout + 30,
                check=False,
            )


def refuse_what_goes_on(spec: Dict[str, Any]) -> None:
    """Refuse to call an engine stopped that still answers: what is measured next would be it. Only where its group is not ours to kill."""
    url = spec.get("health_url")
    if spec.get("stop_argv") and url and is_healthy(url):
        commands = "; ".join(" ".join(str(word) for word in argv) for argv in spec["stop_argv"])
        raise ProbeError(
            "engine", "The engine %s still answers %s after %s. Stop it by hand, and look at %s." % (spec.get("name"), url, commands, spec.get("log"))
        )


def status(spec: Dict[str, Any]) -> Dict[str, Any]:
    """Return {state: running|stopped, healthy, pid, start_ticks} at once."""
    found = process(spec["pid_file"])
    out = {"name": spec.get("name"), "state": "running" if found else "stopped", "pid": None, "start_ticks": None}
    out.update(found or {})
    out["healthy"] = bool(found) and (not spec.get("health_url") or is_healthy(spec["health_url"]))
    return out


def process(pid_file: str) -> Optional[Dict[str, Any]]:
    """Return {pid, start_ticks, boot_id} of the living process that the pid file names, or None."""
    found = read_json(pid_file)
    if isinstance(found, int):
        found = {"pid": found, "start_ticks": proc.start_ticks(found), "boot_id": boot_id()}
    if not isinstance(found, dict) or found.get("boot_id") != boot_id() or found.get("start_ticks") is None:
        return None
    return {k: found[k] for k in ("pid", "start_ticks", "boot_id")} if proc.is_alive(found["pid"], found["start_ticks"]) else None


def is_healthy(url: str, timeout: float = 2.0) -> bool:
    """Tell whether a GET answers 200."""
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the engine is near; a proxy's answer proves nothing
        with opener.open(url, timeout=timeout) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def wait_healthy(spec: Dict[str, Any], found: Dict[str, Any]) -> None:
    """Wait for the health URL; say so at once when the process ends meanwhile, with the end of its log."""
    timeout = float(spec.get("timeout_s") or 60)
    end = time.monotonic() + timeout
    for url in _urls(spec):
        _wait_for(url, spec, found, end, timeout)


def _urls(spec: Dict[str, Any]) -> List[str]:
    """Return the health URLs of an engine: of each instance, where it has several."""
    return [str(url) for url in (spec.get("health_url"), *(spec.get("more_health_urls") or [])) if url]


def _wait_for(url: str, spec: Dict[str, Any], found: Dict[str, Any], end: float, timeout: float) -> None:
    while not is_healthy(url):
        if not proc.is_alive(found["pid"], found["start_ticks"]):
            raise ProbeError(
                "engine", "The engine %s ended while it started. The end of %s: %s" % (spec.get("name"), spec.get("log"), tail(spec.get("log")))
            )
        if time.monotonic() > end:
            raise ProbeError(
                "engine",
                "The engine %s did not answer %s within %g s. The end of its log: %s" % (spec.get("name"), url, timeout, tail(spec.get("log"))),
            )
        time.sleep(0.05)


def tail(path: Optional[str], size: int = 1500) -> str:
    """Return the last bytes of a log as text."""
    try:
        with open(path or "", "rb") as f:
            f.seek(max(0, f.seek(0, os.SEEK_END) - size))
            return f.read().decode("utf-8", "replace").strip() or "(empty)"
    except OSError:
        return "(no log)"


def _refuse_a_stranger(spec: Dict[str, Any]) -> None:
    """Refuse to start where something else answers already: its measurements would be taken for ours."""
    for url in filter(is_healthy, _urls(spec)):
        raise ProbeError(
            "engine",
            "Another process already answers %s, so %s cannot be started there. End it, or give targets.engine another port."
            % (url, spec.get("name")),
        )


def _spawn(spec: Dict[str, Any]) -> Dict[str, Any]:
    env = clean_environment()
    env.update({str(k): str(v) for k, v in (spec.get("env") or {}).items()})
    argv = [str(a) for a in spec["argv"]]
    if spec.get("log"):
        compact(str(spec["log"]))
    log = os.open(spec.get("log") or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        child = subprocess.Popen(argv, env=env, cwd=spec.get("cwd") or "/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    except OSError as error:
        raise ProbeError("engine", "The engine %s cannot be started: %s: %s." % (spec.get("name"), argv[0], error.strerror)) from error
    finally:
        os.close(log)
    found = {"pid": child.pid, "start_ticks": proc.start_ticks(child.pid), "boot_id": boot_id()}
    child.returncode = 0  # it is on its own from here; we never wait for it
    if found["start_ticks"] is None:
        raise ProbeError("engine", "The engine %s ended at once. The end of its log: %s" % (spec.get("name"), tail(spec.get("log"))))
    write_json(spec["pid_file"], dict(found, argv=argv, started_wall_ns=wall_ns(), **{k: spec[k] for k in _TO_STOP if spec.get(k)}))
    return found


def _gone(family: Dict[int, Optional[int]], timeout: float) -> bool:
    end = time.monotonic() + timeout
    while any(ticks is not None and proc.is_alive(pid, ticks) for pid, ticks in family.items()):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def _guarded(pid_file: str) -> Iterator[None]:
    """One start or stop at a time. The descriptor is close-on-exec, so the engine does not inherit the guard."""
    os.makedirs(os.path.dirname(os.path.abspath(pid_file)), exist_ok=True)
    fd = os.open(pid_file + ".guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
