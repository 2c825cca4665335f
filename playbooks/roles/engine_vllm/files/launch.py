"""Start the processes of an engine in their order, and end them together: `launch.py PROCESSES.json [--unit NAME]`. Python 3.8, standard library.

The file holds {processes: [{name, argv, env, wait: {tcp: HOST:PORT}, timeout_s}]}; the last one is the engine. When any of them ends, all end,
with the exit code of the first that did. With --unit systemd starts what the file says, and this process lives as long as the unit does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List, NoReturn

STOP_S, LOOK_S = 110.0, 0.2  # the engine gives back accelerators and pinned memory; the unit allows 120 s


class Ended(Exception):  # noqa: N818 - a signal, not an error
    """SIGTERM or SIGINT came."""


def stop_all(running: List["subprocess.Popen[bytes]"]) -> None:
    """End the processes, the engine first; what does not go is killed with everything that it started."""
    for child in reversed(running):
        if child.poll() is None:
            child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def wait_tcp(address: str, child: "subprocess.Popen[bytes]", timeout: float) -> None:
    """Wait until somebody listens there; end when the process ends or the time is over."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            if child.poll() is not None or time.monotonic() > end:
                raise SystemExit("%s does not listen on %s (%s)" % (child.args, address, child.poll())) from None
            time.sleep(LOOK_S)


def start(process: Dict[str, Any]) -> "subprocess.Popen[bytes]":
    """Start one process in a session of its own and wait until it listens."""
    env = dict(os.environ)
    env.update({str(key): str(value) for key, value in (process.get("env") or {}).items()})
    print("launch: starting %s" % process["name"], flush=True)
    child = subprocess.Popen(process["argv"], env=env, stdin=subprocess.DEVNULL, start_new_session=True)
    if process.get("wait"):
        wait_tcp(process["wait"]["tcp"], child, float(process.get("timeout_s") or 60))
    return child


def run(path: str) -> int:
    """Start all, wait for the first end, stop all."""
    with open(path, encoding="utf-8") as stream:
        processes = json.load(stream)["processes"]
    running: List[subprocess.Popen[bytes]] = []
    try:
        for process in processes:
            running.append(start(process))
        while True:
            for process, child in zip(processes, running):
                if child.poll() is not None:
                    print("launch: %s ended with %d, so all end" % (process["name"], child.returncode), flush=True)
                    return child.returncode or 1
            time.sleep(LOOK_S)
    except Ended:
        return 0
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stop_all(running)


def run_unit(path: str, unit: str) -> int:
    """Let systemd run the processes; live as long as the unit is active."""
    current = os.path.join(os.path.dirname(os.path.abspath(__file__)), "current.json")
    shutil.copyfile(path, current + ".tmp")
    os.replace(current + ".tmp", current)
    subprocess.run(["systemctl", "restart", unit], check=True)
    try:
        while subprocess.run(["systemctl", "is-active", "--quiet", unit], check=False).returncode == 0:
            time.sleep(1)
        return 1
    except Ended:
        subprocess.run(["systemctl", "stop", unit], check=True)
        return 0


def on_signal(*_: Any) -> NoReturn:
    """Let the main loop know."""
    raise Ended


def main(argv: List[str]) -> int:
    """Run what the arguments say."""
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return run_unit(argv[0], argv[2]) if argv[1:2] == ["--unit"] else run(argv[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
