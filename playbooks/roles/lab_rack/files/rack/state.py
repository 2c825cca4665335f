"""The description of this host, and which drives are busy at the moment. Python 3.8, standard library only."""

import json
import os
import sys
import time
from typing import Any, Dict, List, Optional

IDLE_AFTER_S = 5.0  # a link goes to its low speed that long after the last I/O


def root() -> str:
    """Return the folder of the zipapp, where rack.json lies."""
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def load() -> Dict[str, Any]:
    """Return the description that the role installed."""
    with open(os.path.join(root(), "rack.json"), encoding="utf-8") as f:
        return json.load(f)


def drive_of(rack: Dict[str, Any], path: str) -> Optional[Dict[str, Any]]:
    """Return the drive behind /dev/nvme0, /dev/nvme0n1 or nvme0, or None."""
    name = os.path.basename(path)
    for drive in rack["drives"]:
        if name in (drive["controller"], drive["namespace"]):
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
    """Note that a drive is under I/O by this process, or has just come to rest."""
    folder = os.path.join(root(), "busy")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, controller), "w", encoding="utf-8") as f:
        f.write("%d %.3f" % (os.getpid() if busy else 0, time.monotonic()))


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
