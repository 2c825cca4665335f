"""Does a folder lie on the medium that the engagement declares: the mount point, the kind of file system, and the device or server behind it.

A mount that did not come back after a reboot leaves an empty folder on the system disk, and whoever makes folders there stores on that disk.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from probe.coldness import mount_of
from probe.errors import Refused


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


def transports(folder: str, sys: str = "/sys") -> List[str]:
    """Return how the kernel reaches what holds a folder: tcp or rdma of an NFS mount, of NVMe drives also pcie or fc; none where it does not tell."""
    mount = mount_of(folder)
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

    What is null or empty there is not held against anything. Nothing is made or removed.
    """
    there = os.path.abspath(folder)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    mount = mount_of(there)
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
