"""Stands in for systemctl where systemd is not the first process: `systemctl_standin.py UNITS STATE VERB [OPTION...] UNIT`.

It keeps what systemd keeps, as far as a service of ours shows it: a unit is read when it is first named or at daemon-reload (a file that changed
since is not), its process is in a session and a control group of its own, TERM goes to the first process alone and KILL to what is left of the group
(KillMode=mixed), is-active and MainPID tell of living processes only, and what was never started can be stopped. Type and limits are beyond it, and a
user other than the present one is refused.
"""

from __future__ import annotations

import configparser
import fcntl
import getpass
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

GROUPS = Path("/sys/fs/cgroup/systemd")  # of version 1, beside which version 2 may be mounted without controllers


def main(argv: list[str]) -> int:
    """Carry out one verb under a lock, as one systemd would."""
    units, state, verb, *rest = argv
    names = [word for word in rest if not word.startswith("-")]
    with open(f"{state}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manager = Manager(Path(units), Path(state))
        try:
            if verb == "daemon-reload":
                return manager.reload()
            return {
                "start": manager.start,
                "stop": manager.stop,
                "restart": manager.restart,
                "is-active": manager.is_active,
                "show": manager.show,
            }.get(verb, manager.kill if verb == "kill" else manager.unknown)(names[-1])
        finally:
            manager.keep()


class Manager:
    """What systemd knows: the units as it read them, and the process of each."""

    def __init__(self, units: Path, state: Path) -> None:
        self.units, self.path = units, state
        self.known: dict[str, Any] = json.loads(state.read_text()) if state.exists() else {}

    def keep(self) -> None:
        """Write down what is known, without what is gone."""
        left = {name: row for name, row in self.known.items() if row}
        if left:
            self.path.write_text(json.dumps(left))
        else:
            self.path.unlink(missing_ok=True)

    def reload(self) -> int:
        """Read every unit anew; one whose file is gone is forgotten unless it runs."""
        for name in list(self.known):
            if (self.units / name).exists():
                self.known[name]["text"] = (self.units / name).read_text()
            elif not self._pid(name):
                del self.known[name]
        return 0

    def start(self, name: str) -> int:
        """Start a unit's process in a session, and where the machine lets us a control group, of its own."""
        row = self._row(name)
        if row is None:
            return 5
        if self._pid(name):
            return 0
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(row["text"])
        service = unit["Service"]
        assert service.get("User", getpass.getuser()) == getpass.getuser(), "this stand-in changes no user"
        group = GROUPS / f"quadgate-lab-{os.getpid()}"
        log = service["StandardOutput"].removeprefix("append:")
        with open(log, "ab") as out:
            child = subprocess.Popen(
                shlex.split(service["ExecStart"]), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/"
            )
        try:
            group.mkdir()
            (group / "cgroup.procs").write_text(str(child.pid))
        except OSError:
            group = Path()
        row.update(pid=child.pid, ticks=_ticks(child.pid), group=str(group), stop_s=float(service.get("TimeoutStopSec", "90")))
        child.returncode = 0
        return 0

    def stop(self, name: str) -> int:
        """End it: TERM to the first process, KILL to what is left of its group then."""
        row = self._row(name)
        if row is None:
            print(f"Failed to stop {name}: Unit {name} not loaded.", file=sys.stderr)
            return 5
        pid, end = self._pid(name), time.monotonic() + row.get("stop_s", 90)
        if pid:
            os.kill(pid, signal.SIGTERM)
            while self._pid(name) and time.monotonic() < end:
                time.sleep(0.05)
        self._clear(row)
        return 0

    def restart(self, name: str) -> int:
        """Stop and start."""
        return self.stop(name) or self.start(name)

    def kill(self, name: str) -> int:
        """Kill every process of the group."""
        row = self._row(name)
        if row is not None:
            self._clear(row)
        return 0

    def is_active(self, name: str) -> int:
        """Return 0 where its process lives, else 3."""
        return 0 if self._pid(name) else 3

    def show(self, name: str) -> int:
        """Print MainPID, 0 where none lives."""
        print(self._pid(name))
        return 0

    def unknown(self, name: str) -> int:
        """Refuse a verb that it does not have."""
        print(f"this stand-in cannot do that to {name}", file=sys.stderr)
        return 1

    def _row(self, name: str) -> Any:
        if name not in self.known:
            if not (self.units / name).exists():
                return None
            self.known[name] = {"text": (self.units / name).read_text()}
        return self.known[name]

    def _pid(self, name: str) -> int:
        row = self.known.get(name) or {}
        return row["pid"] if row.get("pid") and _ticks(row["pid"]) == row["ticks"] else 0

    def _clear(self, row: dict[str, Any]) -> None:
        group = Path(row.pop("group", ""))
        if group != Path():
            for _ in range(100):
                left = [int(pid) for pid in (group / "cgroup.procs").read_text().split()] if group.exists() else []
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                if not left:
                    break
                time.sleep(0.05)
            if group.exists():
                group.rmdir()
        elif row.get("pid") and _ticks(row["pid"]) == row["ticks"]:
            os.killpg(row["pid"], signal.SIGKILL)
        row.pop("pid", None)


def _ticks(pid: int) -> int | None:
    """Return when a process was started, or None where it is none or a zombie."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] == "Z" else int(words[19])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
