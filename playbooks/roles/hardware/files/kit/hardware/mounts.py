"""What is mounted where: found, compared with what was meant, mounted, and checked with what is in force."""

import os
import re
from typing import Any, Dict, List, Optional, Set

from hardware import blocks
from hardware.host import Host, Refused

XFS_OPTIONS = ["noatime", "nodiratime", "logbufs=8", "logbsize=256k"]
NFS_OPTIONS = ["noatime", "hard", "proto=tcp", "nconnect=8", "rsize=1048576", "wsize=1048576"]
REAL = ("loop_xfs", "directory")  # kinds that are never served by simulated tools
# What mount(8) or systemd reads and the kernel never shows again, so that it cannot be missed among what is in force.
NEVER_SHOWN = frozenset(
    (
        *("defaults", "nofail", "_netdev", "auto", "noauto", "user", "nouser", "users", "owner", "group", "async", "exec", "suid", "dev"),
        *("atime", "diratime", "bg", "fg", "intr", "nointr", "retry"),
    )
)
SAME_AS = {"nfsvers": "vers", "tcp": "proto=tcp", "udp": "proto=udp", "rdma": "proto=rdma"}


def mounted(host: Host, where: str, real: bool) -> Optional[Dict[str, str]]:
    """Return {source, fstype, options} of the mount at exactly this folder, or None."""
    code, out, _ = host.ask(["findmnt", "-J", "-M", where], real=real)
    if code == 127:
        raise Refused("findmnt is not installed on this host; install the package util-linux.", "本主机未安装 findmnt；请安装软件包 util-linux。")
    rows = (host.json(["findmnt", "-J", "-M", where], real=real) or {}).get("filesystems", []) if code == 0 and out.strip() else []
    return rows[-1] if rows else None


def is_from(host: Host, now: Dict[str, str], source: str, real: bool) -> bool:
    """Tell whether a mount shows this source: one device under whichever name, or one NFS export."""
    if source.startswith("/dev/"):
        return blocks.resolved(host, now["source"], real=real) == blocks.resolved(host, source, real=real)
    return _export(now["source"]) == _export(source)


def mount(host: Host, where: str, fstype: str, options: List[str], source: str, real: bool) -> None:
    """Mount a source at a folder that is empty and no mount."""
    if os.path.isdir(where) and os.listdir(where):
        raise Refused(
            "{0} is not empty and nothing is mounted there; it is not covered by a mount.", "{0} 非空且没有挂载；不会在其上覆盖挂载。", where
        )
    host.do(["mount", "-t", fstype, "-o", ",".join(options), source, where], "mount %s at %s" % (source, where), real=real)


def options_of(volume: Dict[str, Any]) -> List[str]:
    """Return the options with which a medium is mounted: the site's, or those of its kind."""
    if volume["kind"] != "nfs":
        return [str(option) for option in volume.get("options") or XFS_OPTIONS]
    given = [str(option) for option in volume.get("options") or NFS_OPTIONS]
    named = any(_plain(option).startswith("vers=") for option in given)
    return given if named else [*given, "vers=%s" % version_of(volume)]


def version_of(volume: Dict[str, Any]) -> str:
    """Return the NFS version that a medium is agreed to have: that of its options, else `version`, else 4.1."""
    named = [_plain(str(option)) for option in volume.get("options") or []]
    return next((option[len("vers=") :] for option in named if option.startswith("vers=")), str(volume.get("version") or "4.1"))


def check(host: Host, name: str, volume: Dict[str, Any], source: Optional[str], now: Optional[Dict[str, str]]) -> None:
    """Check what is mounted at a medium's folder: type, source, the site's options, and of NFS the version; the rest in force stands in the value."""
    evidence = "findmnt -M %s" % volume["mount"]
    wanted = {"nfs": ("nfs", "nfs4")}.get(volume["kind"], ("xfs",))
    host.check("mount.%s" % name, bool(now) and now["fstype"] in wanted if now else False, now and now["fstype"], "/".join(wanted), evidence)
    if not now:
        return
    if source is not None:
        good = is_from(host, now, source, volume["kind"] in REAL)
        host.check("source.%s" % name, good, now["source"], source, evidence)
    asked = [str(option) for option in volume.get("options") or []]
    lacking = sorted({_plain(option) for option in asked if _is_shown(option)} - _in_force(now))
    host.check("options.%s" % name, not lacking, now["options"], ",".join(asked) or "any", evidence)
    if volume["kind"] == "nfs":
        found = re.search(r"(?:^|,)vers=([0-9.]+)", now["options"])
        agreed = version_of(volume)
        good = None if found is None else found.group(1) == agreed or found.group(1).startswith(agreed + ".")  # "4" is whatever 4.x was negotiated
        host.check("nfs_version.%s" % name, good, found and found.group(1), agreed, evidence)


def in_force(now: Optional[Dict[str, str]]) -> str:
    """Return the options under which a medium is measured, for the record: rsize, wsize and nconnect are the server's and the kernel's last word."""
    return now["options"] if now else ""


def _in_force(now: Dict[str, str]) -> Set[str]:
    return {_plain(option) for option in now["options"].split(",")}


def _plain(option: str) -> str:
    """Return an option as the kernel shows it."""
    option = SAME_AS.get(option, option)
    key, given, value = option.partition("=")
    return SAME_AS.get(key, key) + given + value


def _is_shown(option: str) -> bool:
    return option.partition("=")[0] not in NEVER_SHOWN and not option.startswith(("x-", "comment="))


def _export(source: str) -> str:
    server, colon, path = source.rpartition(":/")
    return "%s:%s" % (server.strip("[]").lower(), os.path.normpath("/" + path)) if colon else source
