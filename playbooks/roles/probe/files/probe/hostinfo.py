"""Which machine this is: the fingerprint that goes with every survey."""

from __future__ import annotations

import os
import platform
import socket
import sys
from typing import Any, Dict, Optional

from probe import VERSION, clock


def host_info(host: Optional[str] = None) -> Dict[str, Any]:
    """Return {host, boot_id, machine_id, kernel, python, wall_ns, mono_ns, ...}; `host` is the inventory's name when given."""
    return {
        "host": host or socket.gethostname(),
        "hostname": socket.gethostname(),
        "boot_id": clock.boot_id(),
        "machine_id": _first_line("/etc/machine-id"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "python_path": sys.executable,
        "cpus": os.cpu_count(),
        "uid": os.getuid(),
        "probe_version": VERSION,
        "wall_ns": clock.wall_ns(),
        "mono_ns": clock.mono_ns(),
    }


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as f:
            return f.readline().strip()
    except OSError:
        return ""
