"""mount, umount and findmnt: a table of mounts in the rack's folder; nothing is really mounted, but what lies on a medium comes and goes with it."""

import hashlib
import json
import os
import sys
from typing import Any, Dict, List

import state


def main(argv: List[str], _: Dict[str, Any]) -> int:
    """Answer for the tool named in argv[0]."""
    return {"mount": _mount, "umount": _umount, "findmnt": _findmnt}[argv[0]](argv[1:])


def _mount(argv: List[str]) -> int:
    source, target = argv[-2], argv[-1]
    fstype, options = argv[argv.index("-t") + 1], argv[argv.index("-o") + 1]
    if not os.path.isdir(target):
        sys.stderr.write("mount: %s: mount point does not exist.\n" % target)
        return 32
    with state.changing() as now:
        if fstype == "xfs" and now.get("signatures", {}).get(source, {}).get("TYPE") != "xfs":
            sys.stderr.write("mount: %s: wrong fs type, bad option, bad superblock on %s.\n" % (target, source))
            return 32
        now.setdefault("mounts", []).append(
            {"target": target, "source": source, "fstype": "nfs4" if fstype == "nfs" else fstype, "options": _in_force(options)}
        )
        _move(_contents(source), target)
    return 0


def _in_force(options: str) -> str:
    """Return options as the kernel shows them: without what only mount(8) and systemd read, and a version under its one name."""
    shown = [word.replace("nfsvers=", "vers=") for word in options.split(",") if word not in ("defaults", "nofail", "_netdev", "rw")]
    return ",".join(["rw", *shown])


def _umount(argv: List[str]) -> int:
    with state.changing() as now:
        left = [mount for mount in now.get("mounts", []) if mount["target"] != argv[-1]]
        if len(left) == len(now.get("mounts", [])):
            sys.stderr.write("umount: %s: not mounted.\n" % argv[-1])
            return 32
        for mount in now["mounts"]:
            if mount["target"] == argv[-1]:
                _move(argv[-1], _contents(mount["source"]))
        now["mounts"] = left
    return 0


def _contents(source: str) -> str:
    """Return the folder that keeps what lies on a medium while it is not mounted."""
    return os.path.join(state.root(), "media", hashlib.sha256(source.encode()).hexdigest()[:16])


def _move(here: str, there: str) -> None:
    """Move all that lies in one folder to another."""
    if os.path.isdir(here) and os.listdir(here):
        os.makedirs(there, exist_ok=True)
        for name in os.listdir(here):
            os.rename(os.path.join(here, name), os.path.join(there, name))


def _findmnt(argv: List[str]) -> int:
    if "-M" not in argv and "-S" not in argv:
        print(json.dumps({"filesystems": state.changes().get("mounts", [])}, indent=3))
        return 0
    key, value = ("target", argv[argv.index("-M") + 1]) if "-M" in argv else ("source", argv[argv.index("-S") + 1])
    rows = [mount for mount in state.changes().get("mounts", []) if mount[key] == value]
    if not rows:
        return 1
    if "-J" in argv:
        print(json.dumps({"filesystems": rows}, indent=3))
    else:
        print("\n".join(row[argv[argv.index("-o") + 1].lower()] for row in rows))
    return 0
