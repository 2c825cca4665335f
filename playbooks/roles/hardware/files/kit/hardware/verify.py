"""Whether a medium is as agreed: what is mounted there, from where, with which options and stripes, and whether its pages can be dropped."""

import re
from typing import Any, Dict, List, Optional

from hardware import blocks, md, mounts, undo
from hardware.host import Host

NEVER_COLD = ("tmpfs", "ramfs", "overlay", "devtmpfs")  # their pages cannot be dropped, so nothing on them is ever read from a medium


def medium(host: Host, name: str, volume: Dict[str, Any]) -> None:
    """Check what is mounted there, with which geometry and options, and whether its pages can be dropped."""
    real, where = volume["kind"] in mounts.REAL, volume["mount"]
    if volume["kind"] == "directory":
        found = lines(host.ask(["findmnt", "-n", "-o", "FSTYPE", "-T", where], real=True)[1])
        kind = found[0] if found else None
        host.check("medium.%s" % name, None if kind is None else kind not in NEVER_COLD, kind, "a file system on a drive", "findmnt -T %s" % where)
        return
    now = mounts.mounted(host, where, real)
    mounts.check(host, name, volume, _source_of(host, name, volume), now)
    if not now:
        return
    if volume["kind"] in ("md_xfs", "loop_xfs"):
        _geometry(host, name, volume, real)
    if volume["kind"] == "md_xfs":
        md.check(host, name, volume)


def _geometry(host: Host, name: str, volume: Dict[str, Any], real: bool) -> None:
    """XFS writes whole stripes: sunit is the chunk, swidth all chunks. xfs_info prints file system blocks, not bytes."""
    text = host.ask(["xfs_info", volume["mount"]], real=real)[1]
    block = re.search(r"^data\s+=\s+bsize=(\d+)", text, re.M)
    stripe = re.search(r"sunit=(\d+)\s+swidth=(\d+) blks", text)
    chunk, width = int(volume.get("chunk_kib") or 512) * 1024, int(volume.get("members") or 4)
    value = [int(n) * int(block.group(1)) for n in stripe.groups()] if block and stripe else None
    host.check(
        "geometry.%s" % name,
        None if value is None else value == [chunk, chunk * width],
        value,
        [chunk, chunk * width],
        "xfs_info %s, bytes" % volume["mount"],
    )
    host.check(
        "xfs_alignment.%s" % name,
        None if value is None else value[0] % md.ALIGNMENT == 0,
        value and value[0],
        "a multiple of 65536",
        "xfs_info %s, bytes" % volume["mount"],
    )


def _source_of(host: Host, name: str, volume: Dict[str, Any]) -> Optional[str]:
    """Return what must be mounted for a medium: its export, RAID, drive, or the loop device of its image; None where that is not there."""
    if volume["kind"] == "nfs":
        return str(volume["source"])
    if volume["kind"] == "md_xfs":
        return md.device_of(name, volume)
    return blocks.resolved(host, volume["device"]) if volume["kind"] == "xfs" else undo.loop_of(host, volume["image"]) or None


def lines(text: str) -> List[str]:
    """Return the lines of a tool's answer that say anything."""
    return [line.strip() for line in text.splitlines() if line.strip()]
