"""lsmod, modprobe and systemctl, as far as the kit uses them. Units are files below the rack's own etc."""

import os
import sys
from typing import Any, Dict, List

import state


def main(argv: List[str], _: Dict[str, Any]) -> int:
    """Answer for the tool named in argv[0]."""
    return {"lsmod": _lsmod, "modprobe": _modprobe, "systemctl": _systemctl}[argv[0]](argv[1:])


def _lsmod(_: List[str]) -> int:
    print("Module                  Size  Used by")
    for name in state.changes().get("modules", []):
        print("%-22s 49152  0" % name)
    return 0


def _modprobe(argv: List[str]) -> int:
    removing, name = argv[0] == "-r", argv[-1].replace("-", "_")
    with state.changing() as now:
        loaded = now.setdefault("modules", [])
        if removing and name in loaded:
            loaded.remove(name)
        elif not removing and name not in loaded:
            loaded.append(name)
    return 0


def _systemctl(argv: List[str]) -> int:
    folder = os.path.join(state.root(), "etc", "systemd", "system")
    if argv[0] == "daemon-reload":
        return 0
    link = os.path.join(folder, "multi-user.target.wants", argv[-1])
    if argv[0] == "is-enabled":
        print("enabled" if os.path.islink(link) else "disabled")
        return 0 if os.path.islink(link) else 1
    if argv[0] == "enable":
        if not os.path.exists(os.path.join(folder, argv[-1])):
            sys.stderr.write("Failed to enable unit: Unit file %s does not exist.\n" % argv[-1])
            return 1
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.join(folder, argv[-1]), link)
        return 0
    if argv[0] == "disable":
        if os.path.islink(link):
            os.unlink(link)
        if os.path.isdir(os.path.dirname(link)) and not os.listdir(os.path.dirname(link)):
            os.rmdir(os.path.dirname(link))
        return 0
    sys.stderr.write("Unknown command verb '%s'.\n" % argv[0])
    return 1
