"""Which processes are the engine: those whose bytes, memory and handles are its own.

A process that the probe started itself has them below it. A container's are children of its runtime's daemon and a unit's are children of
systemd: the process of the pid file is then only a client, and what it reads and holds says nothing about the engine. Their control group
lists them. Where that cannot be told the answer is None, never a part of them: a sum that leaves a process out would look like less.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any, Dict, List, Optional, Tuple

from probe import proc
from probe.selfexec import clean_environment

ASK_S = 10.0
_HIERARCHIES = ("", "pids", "memory", "name=systemd")  # of version 2, else of version 1


class Family:
    """The processes of one engine. `group`: {kind: "container", runtime, names: [...]}, {kind: "unit", name}, or None for a process tree."""

    def __init__(self, group: Optional[Dict[str, Any]], procfs: str = "/proc", sysfs: str = "/sys/fs/cgroup") -> None:
        self._group, self._procfs, self._sysfs = group, procfs, sysfs
        self._heads: Dict[str, Tuple[int, Optional[int]]] = {}  # who the group's first process is, asked again when it is gone

    def pids(self, found: Optional[Dict[str, Any]]) -> Optional[List[int]]:
        """Return the engine's processes, its first ones first, or None when that cannot be told. `found` is the process of the pid file."""
        if found is None:
            return None
        if not self._group:
            return proc.family(found["pid"])
        heads = [self._head(name) for name in self._names()]
        if not heads or None in heads:
            return None
        members: List[int] = [pid for pid in heads if pid is not None]
        for pid in list(members):
            below = procs_of(pid, self._procfs, self._sysfs)
            if below is None:
                return None
            members += [one for one in below if one not in members]
        return members

    def _names(self) -> List[str]:
        group = self._group or {}
        return [str(name) for name in (group.get("names") or [])] if group.get("kind") == "container" else [str(group.get("name") or "")]

    def _head(self, name: str) -> Optional[int]:
        pid, ticks = self._heads.get(name, (0, None))
        if pid and ticks is not None and proc.is_alive(pid, ticks):
            return pid
        self._heads.pop(name, None)
        pid = self._ask(name)
        ticks = proc.start_ticks(pid) if pid else None
        if not pid or ticks is None:
            return None
        self._heads[name] = (pid, ticks)
        return pid

    def _ask(self, name: str) -> int:
        """Return the pid of the first process of a container or unit, 0 where there is none or nobody says."""
        group = self._group or {}
        if group.get("kind") == "container":
            argv = [str(group.get("runtime") or "docker"), "inspect", "--format", "{{.State.Pid}}", name]
        else:
            argv = ["systemctl", "show", "--property=MainPID", "--value", name]
        try:
            done = subprocess.run(
                argv,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=ASK_S,
                check=False,
            )
            return int(done.stdout.split()[0]) if done.returncode == 0 else 0
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            return 0


def procs_of(pid: int, procfs: str = "/proc", sysfs: str = "/sys/fs/cgroup") -> Optional[List[int]]:
    """Return every process of the control group of a process and of the groups below it; None when it has no group of its own.

    The root group holds the whole host, and a group that holds the probe too is no engine's.
    """
    for base in _places(pid, procfs, sysfs):
        found = _listed(base)
        if found is not None and pid in found and os.getpid() not in found:
            return found
    return None


def _places(pid: int, procfs: str, sysfs: str) -> List[str]:
    """Return the directories of the groups of a process, the best hierarchy first."""
    try:
        with open("%s/%d/cgroup" % (procfs, pid), encoding="utf-8", errors="replace") as f:
            rows = [line.rstrip("\n").split(":", 2) for line in f]
    except OSError:
        return []
    paths = {name: row[2] for row in rows if len(row) == 3 for name in row[1].split(",")}
    out: List[str] = []
    for name in _HIERARCHIES:
        path = paths.get(name, "/")
        if path == "/" or "/.." in path:  # of the host, or seen from inside another container
            continue
        roots = [sysfs, sysfs + "/unified"] if not name else [sysfs + "/" + name.partition("=")[2] if "=" in name else sysfs + "/" + name]
        out += [root + path for root in roots if os.path.isfile(root + path + "/cgroup.procs")]
    return out


def _listed(base: str) -> Optional[List[int]]:
    out: List[int] = []
    for folder, _, names in os.walk(base):
        if "cgroup.procs" not in names:
            continue
        try:
            with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as f:
                out += [int(line) for line in f if line.strip()]
        except (OSError, ValueError):
            return None
    return out
