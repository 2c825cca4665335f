"""Does a folder lie on the medium that the engagement declares: the mount point, the kind of file system, and the device or server behind it.

A mount that did not come back after a reboot leaves an empty folder on the system disk, and whoever makes folders there stores on that disk.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

from probe.coldness import mount_of
from probe.errors import Refused
from probe.fatal_sources import ask


def mount_told(folder: str, findmnt: Optional[str]) -> Dict[str, Any]:
    """Return the mount that holds a folder, as mount_of() does, by the word of this program `findmnt`; None for the kernel's own word.

    A simulated rack mounts nothing that the kernel knows. What its table does not hold lies where the kernel has it, on the system disk.
    """
    try:
        rows = json.loads(ask([findmnt, "-J"]) or "{}").get("filesystems") if findmnt else None
    except (ValueError, AttributeError):
        rows = None
    real, best = os.path.realpath(folder), None
    for row in rows if isinstance(rows, list) else []:
        point = os.path.realpath(str(row.get("target"))) if isinstance(row, dict) else ""
        if point and (real == point or real.startswith(point.rstrip("/") + "/")) and (best is None or len(point) > len(best["mount_point"])):
            best = {"fs_type": str(row.get("fstype")), "source": str(row.get("source")), "mount_point": point, "dev": "0:0"}
            best["options"] = str(row.get("options") or "")
    return best or mount_of(folder)


def names_of(mount: Dict[str, Any], wanted: List[str]) -> List[str]:
    """Return which of the `wanted` names are the source of a mount: its own name, a link to its device, or the file behind a loop device."""
    return [name for name in wanted if _same(mount, name)]


def _same(mount: Dict[str, Any], name: str) -> bool:
    source = str(mount["source"])
    if name.rstrip("/") == source.rstrip("/"):
        return True
    try:
        found, device = os.stat(name), os.stat(source).st_rdev
        backing = "/sys/dev/block/%d:%d/loop/backing_file" % (os.major(device), os.minor(device))
        if found.st_rdev:
            return found.st_rdev == device
        with open(backing, encoding="utf-8", errors="surrogateescape") as f:
            return os.path.samefile(f.read().strip(), name)
    except OSError:
        return False


def declared_names(media: Optional[List[Dict[str, Any]]], mount: Dict[str, Any]) -> List[str]:
    """Return which names that `engine.media` of a job file gives for the medium of `mount["dir"]` are those of this mount: source and mount point."""
    found: List[str] = []
    for row in media or []:
        if row.get("dir") == mount["dir"]:
            point = row.get("mount_point")
            found += names_of(mount, [str(name) for name in row.get("sources") or []])
            found += [str(point)] if point and os.path.realpath(str(point)) == mount["mount_point"] else []
    return found


def transports(mount: Dict[str, Any], sys: str = "/sys") -> List[str]:
    """Return how the kernel reaches what is mounted: tcp or rdma of an NFS mount, of NVMe drives also pcie or fc; none where it does not tell."""
    if mount["fs_type"].startswith("nfs"):
        return sorted({word[6:].rstrip("6") for word in mount["options"].split(",") if word.startswith("proto=")})
    return transports_of_device(mount["dev"], sys)


def transports_of_device(dev: str, sys: str = "/sys") -> List[str]:
    """Return the transports of the NVMe drives below a block device "major:minor", through RAID and device mapper."""
    found = set()
    for leaf in _leaves(os.path.realpath(os.path.join(sys, "dev", "block", dev))):
        device = os.path.join(leaf, "device")
        try:  # a drive of one controller, or one of a subsystem whose paths are controllers
            places = [device, *(os.path.join(device, name) for name in os.listdir(device) if name.startswith("nvme"))]
        except OSError:
            continue
        for place in places:
            try:
                with open(os.path.join(place, "transport"), encoding="ascii", errors="replace") as f:
                    found.add(f.read().strip())
            except OSError:
                continue
    return sorted(found - {""})


def _leaves(block: str) -> List[str]:
    if os.path.exists(os.path.join(block, "partition")):
        block = os.path.dirname(block)
    slaves = os.path.join(block, "slaves")
    below = [os.path.realpath(os.path.join(slaves, name)) for name in os.listdir(slaves)] if os.path.isdir(slaves) else []
    return [leaf for one in below for leaf in _leaves(one)] if below else [block]


def require_declared(folder: str, wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Return the mount of a folder, which need not exist yet; refuse one that is not the declared {mount_point, fs_types, sources}.

    What is null or empty there is not held against anything; `findmnt` is as mount_told() has it. Nothing is made or removed.
    """
    there = os.path.abspath(folder)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    mount = mount_told(there, wanted.get("findmnt"))
    kinds, sources, point = wanted.get("fs_types") or [], wanted.get("sources") or [], wanted.get("mount_point")
    good = (point is None or mount["mount_point"] == os.path.realpath(str(point))) and (not kinds or mount["fs_type"] in kinds)
    if not good or (sources and not names_of(mount, sources)):
        raise Refused(
            "other_medium",
            "%s shall lie on %s, %s, mounted at %s; it would lie on %s, %s, mounted at %s. Nothing was stored. Mount the medium (a mount that is not "
            "persistent is gone after a reboot), or correct targets.volume, then try again."
            % (
                folder,
                " or ".join(sources) or "any device",
                "/".join(kinds) or "any file system",
                point or "any place",
                mount["source"],
                mount["fs_type"],
                mount["mount_point"],
            ),
        )
    return mount
