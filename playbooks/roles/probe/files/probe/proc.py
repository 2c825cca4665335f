"""What /proc says about a process. A pid alone proves nothing: with its start ticks and the boot id it names one process."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

PAGE = os.sysconf("SC_PAGE_SIZE")


def stat(pid: int) -> Optional[Dict[str, Any]]:
    """Return {state, ppid, threads, start_ticks, rss_bytes, cpu_ticks} of a process, or None when there is none."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            text = f.read().decode("utf-8", "replace")
    except OSError:
        return None
    rest = text[text.rindex(")") + 2 :].split()
    return {
        "state": rest[0],
        "ppid": int(rest[1]),
        "cpu_ticks": int(rest[11]) + int(rest[12]),
        "threads": int(rest[17]),
        "start_ticks": int(rest[19]),
        "rss_bytes": int(rest[21]) * PAGE,
    }


def start_ticks(pid: int) -> Optional[int]:
    """Return the start time of a live process in clock ticks since boot; None for an absent one or a zombie."""
    found = stat(pid)
    return found["start_ticks"] if found and found["state"] not in "ZX" else None


def is_alive(pid: int, ticks: Optional[int]) -> bool:
    """Tell whether exactly this process lives. Zombies are not alive; a reused pid has other start ticks."""
    now = start_ticks(pid)
    return now is not None and (ticks is None or now == ticks)


def family(pid: int) -> List[int]:
    """Return the pid and all its living descendants."""
    out, todo = [], [pid]
    while todo:
        one = todo.pop()
        children = _children(one)
        if children is None:
            return _family_by_scan(pid)
        out.append(one)
        todo.extend(children)
    return out


def _children(pid: int) -> Optional[List[int]]:
    """Return the children of a process from the kernel's own list; None where the kernel keeps none (it is an option of its build)."""
    found: List[int] = []
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return found
    for thread in threads:
        try:
            with open("/proc/%d/task/%s/children" % (pid, thread), encoding="ascii") as f:
                found += [int(word) for word in f.read().split()]
        except OSError:
            if not os.path.exists("/proc/self/task/%d/children" % os.getpid()):
                return None
    return found


def _family_by_scan(pid: int) -> List[int]:
    """Do the same by looking at every process of the host: tens of milliseconds on a large one."""
    children: Dict[int, List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = stat(int(name))
            if found:
                children.setdefault(found["ppid"], []).append(int(name))
    out, todo = [], [pid]
    while todo:
        one = todo.pop()
        out.append(one)
        todo.extend(children.get(one, ()))
    return out


def io_counters(pids: List[int]) -> Optional[Dict[str, int]]:
    """Return the sum of {read_bytes, write_bytes, rchar} over processes, or None when one of them may not be read.

    A sum that silently leaves a process out would look like fewer device reads, so it is not given at all. A reaped
    child's bytes are added to its parent by the kernel, so the sum over the family does not fall.
    """
    total = {"read_bytes": 0, "write_bytes": 0, "rchar": 0}
    for pid in pids:
        try:
            with open("/proc/%d/io" % pid, encoding="ascii") as f:
                lines = dict(line.split(": ") for line in f.read().splitlines())
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            return None
        for key in total:
            total[key] += int(lines[key])
    return total if pids and start_ticks(pids[0]) is not None else None


def open_files(pid: int) -> Optional[int]:
    """Return the number of open file descriptors, or None when it may not be read."""
    try:
        return len(os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return None


def command_line(pid: int) -> List[str]:
    """Return the argv of a process, empty when it is gone."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return [part.decode("utf-8", "replace") for part in f.read().rstrip(b"\0").split(b"\0") if part]
    except OSError:
        return []
