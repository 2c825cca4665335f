"""mkfs.xfs, xfs_info, blkid and wipefs over the rack's devices: what each device holds is kept in the rack's folder."""

import hashlib
import re
import sys
from typing import Any, Dict, List

import state

BLOCK = 4096


def main(argv: List[str], _: Dict[str, Any]) -> int:
    """Answer for the tool named in argv[0]."""
    return {"mkfs.xfs": _mkfs, "xfs_info": _info, "blkid": _blkid, "wipefs": _wipefs}[argv[0]](argv[1:])


def _mkfs(argv: List[str]) -> int:
    device, label, geometry = argv[-1], argv[argv.index("-L") + 1], argv[argv.index("-d") + 1] if "-d" in argv else ""
    found = re.match(r"su=(\d+)k,sw=(\d+)$", geometry)
    with state.changing() as now:
        signatures = now.setdefault("signatures", {})
        if device in signatures:
            sys.stderr.write("mkfs.xfs: %s appears to contain an existing filesystem (%s).\n" % (device, signatures[device]["TYPE"]))
            return 1
        uuid = hashlib.sha256((device + label).encode()).hexdigest()
        dashed = "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:32]))
        signatures[device] = {"TYPE": "xfs", "LABEL": label, "UUID": dashed, "stripe": [int(n) for n in found.groups()] if found else None}
    return 0


def _blkid(argv: List[str]) -> int:
    if argv[-1] == "export":  # no device: all of them
        rows = [
            ["DEVNAME=%s" % name, *("%s=%s" % (k, row[k]) for k in ("LABEL", "UUID", "TYPE") if k in row)]
            for name, row in sorted(_signatures().items())
        ]
        print("\n\n".join("\n".join(row) for row in rows))
        return 0
    found = _signatures().get(argv[-1])
    if found is None:
        return 2
    print("\n".join(["DEVNAME=%s" % argv[-1]] + ["%s=%s" % (key, found[key]) for key in ("LABEL", "UUID", "TYPE") if key in found]))
    return 0


def _signatures() -> Dict[str, Any]:
    found: Dict[str, Any] = state.changes().get("signatures", {})
    return found


def _wipefs(argv: List[str]) -> int:
    with state.changing() as now:
        now.get("signatures", {}).pop(argv[-1], None)
    return 0


def _info(argv: List[str]) -> int:
    now = state.changes()
    mount = next((m for m in now.get("mounts", []) if m["target"] == argv[-1]), None)
    if mount is None:
        sys.stderr.write("%s: is not a mounted XFS filesystem\n" % argv[-1])
        return 1
    unit, width = now["signatures"][mount["source"]].get("stripe") or (0, 0)
    blocks = unit * 1024 // BLOCK
    print("meta-data=%-22s isize=512    agcount=32, agsize=1048576 blks" % mount["source"])
    print("data     =                       bsize=%d   blocks=33554432, imaxpct=25" % BLOCK)
    print("         =                       sunit=%-6d swidth=%d blks" % (blocks, blocks * width))
    print("naming   =version 2              bsize=4096   ascii-ci=0, ftype=1")
    return 0
