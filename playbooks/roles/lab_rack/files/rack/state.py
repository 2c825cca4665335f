"""The description of this host, what tools changed of it, and which drives are busy at the moment. Python 3.8, standard library only."""

import fcntl
import json
import os
import sys
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional

import nodes

IDLE_AFTER_S = 5.0  # a link goes to its low speed that long after the last I/O


def root() -> str:
    """Return the folder of the zipapp, where rack.json lies."""
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def load() -> Dict[str, Any]:
    """Return the description that the role installed, with what tools set on interfaces since."""
    with open(os.path.join(root(), "rack.json"), encoding="utf-8") as f:
        rack: Dict[str, Any] = json.load(f)
    changed = changes().get("nics", {})
    for nic in rack["nics"]:
        nic.update(changed.get(nic["netdev"], {}))
    return rack


def changes() -> Dict[str, Any]:
    """Return what tools changed on this host since the rack was put there: connections, RAID, file systems, mounts, settings of interfaces."""
    try:
        with open(os.path.join(root(), "changes.json"), encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


@contextmanager
def changing() -> Iterator[Dict[str, Any]]:
    """Give the changes for writing, one tool at a time; they are kept when the block ends without an error."""
    path = os.path.join(root(), "changes.json")
    with open(path + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = changes()
        yield now
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            json.dump(now, f, indent=1, sort_keys=True)
        os.replace(path + ".tmp", path)


def drive_of(rack: Dict[str, Any], path: str) -> Optional[Dict[str, Any]]:
    """Return the drive behind /dev/nvme0, /dev/nvme0n1 or nvme0, or None."""
    name = os.path.basename(path)
    for drive in rack["drives"]:
        if name in (drive["controller"], *nodes.namespaces(drive)):
            return drive
    return None


def device_path(argv: List[str]) -> str:
    """Return the first argument that is not an option and not the value of one."""
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in ("-o", "--output-format", "-d", "-t", "-l"):
            skip = True
        elif not word.startswith("-"):
            return word
    return ""


def mark_busy(controller: str, busy: bool) -> None:
    """Note that a drive is under I/O by this process, or has just come to rest.

    The moment is kept exactly: a rounded one can lie ahead of the clock, and a reader within that half of a millisecond would take it for
    the stamp of another boot. The note is there whole or not at all, whoever reads it meanwhile.
    """
    folder = os.path.join(root(), "busy")
    os.makedirs(folder, exist_ok=True)
    note = os.path.join(root(), "busy-%s.%d" % (controller, os.getpid()))
    with open(note, "w", encoding="utf-8") as f:
        f.write("%d %r" % (os.getpid() if busy else 0, time.monotonic()))
    os.replace(note, os.path.join(folder, controller))


def is_busy(controller: str) -> bool:
    """Tell whether a drive is under I/O, or was within the last moment."""
    try:
        with open(os.path.join(root(), "busy", controller), encoding="utf-8") as f:
            pid, at = f.read().split()
    except (OSError, ValueError):
        return False
    if int(pid) and os.path.exists("/proc/%s" % pid):
        return True
    return 0 <= time.monotonic() - float(at) < IDLE_AFTER_S


def has_json(argv: List[str]) -> bool:
    """Tell whether JSON output was asked for, in any of the tools' spellings."""
    joined = " ".join(argv)
    return any(form in joined for form in ("-o json", "--output-format=json", "--output-format json", "--json", "-j"))
