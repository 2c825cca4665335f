"""The media for KV: XFS over md RAID0 (the array), XFS on one drive or on a loop device, NFS, or a plain folder. Each is a mount with a folder `kv`.

Kinds: md_xfs, xfs, loop_xfs, nfs, directory. The arm's `mount_path` names one of them. Nothing that holds data is ever overwritten.
"""

import hashlib
import os
import re
import shutil
from typing import Any, Dict, List, Optional

from hardware import md, textfile
from hardware.host import Host, Refused

XFS_OPTIONS = ["noatime", "nodiratime", "logbufs=8", "logbsize=256k"]
NFS_OPTIONS = ["noatime", "hard", "proto=tcp", "nconnect=8", "rsize=1048576", "wsize=1048576"]
NEVER_COLD = ("tmpfs", "ramfs", "overlay", "devtmpfs")  # their pages cannot be dropped, so nothing on them is ever read from a medium
LABEL_LENGTH = 12  # what XFS allows


def apply(host: Host) -> Dict[str, Any]:
    """Make every medium, then check it."""
    facts = {}
    _distinct(host)
    for name, volume in sorted(host.order["media"].items()):
        made = len(host.changed)
        _KINDS[volume["kind"]](host, name, volume)
        if not (host.dry and len(host.changed) > made):
            _verify(host, name, volume)
        facts[name] = {"mount": volume["mount"], "kv": os.path.join(volume["mount"], "kv")}
    return {"media": facts}


def show(host: Host) -> Dict[str, Any]:
    """Check every medium."""
    for name, volume in sorted(host.order["media"].items()):
        _verify(host, name, volume)
    return {"media": sorted(host.order["media"])}


def remove(host: Host) -> Dict[str, Any]:
    """Take everything away that the record knows, whatever the order says today."""
    known = host.record.part("volume")
    for name in sorted(known, reverse=True):
        entry = known[name]
        volume = entry["volume"]
        real = volume["kind"] in REAL
        kv = os.path.join(volume["mount"], "kv")
        mounted = _mounted(host, volume["mount"], real)
        if os.path.isdir(kv) and (mounted or volume["kind"] == "directory" or not entry.get("mounted")):
            host.act("remove the KV below %s" % kv, lambda folder=kv: shutil.rmtree(folder))  # type: ignore[misc]
        if entry.get("mounted") and mounted:
            host.do(["umount", volume["mount"]], "unmount %s" % volume["mount"], real=real)
        textfile.drop_block(host, "fstab", "volume " + name)
        # A RAID that no boot assembled again has no device to clean; its members are blanked below.
        there = volume["kind"] != "md_xfs" or md.is_there(host, name, volume)
        if entry.get("made_fs") and entry["device"] and volume["kind"] != "loop_xfs" and there:
            host.do(["wipefs", "--all", "--quiet", entry["device"]], "take the file system off %s" % entry["device"], real=real)
        if volume["kind"] == "md_xfs":
            md.remove(host, name, volume, entry)
        if entry.get("loop"):
            _detach(host, entry["loop"])
        for folder in entry.get("folders", []):
            if os.path.isdir(folder):
                host.act("remove %s" % folder, lambda path=folder: _rmdir(path))  # type: ignore[misc]
        if not host.dry:
            del known[name]
            host.record.keep()
    return {}


def _md_xfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    _note(host, name, volume)
    device = md.ensure(host, name, volume)
    chunk, width = int(volume.get("chunk_kib") or 512), int(volume.get("members") or 4)
    _xfs_on(host, name, volume, device, ["-d", "su=%dk,sw=%d" % (chunk, width)])
    if volume.get("persistent", True):
        md.persist(host, name, volume)
        _fstab(host, name, volume, "LABEL=%s" % label_of(name), "xfs", [*_options(volume, XFS_OPTIONS), "nofail", "_netdev"])


def _xfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    _note(host, name, volume)
    _xfs_on(host, name, volume, volume["device"], [])
    if volume.get("persistent", True):
        _fstab(host, name, volume, "LABEL=%s" % label_of(name), "xfs", [*_options(volume, XFS_OPTIONS), "nofail"])


def _loop_xfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    """Make a file a block device, for a laboratory. The geometry is the one that the real volume has."""
    entry = _note(host, name, volume)
    image, size = volume["image"], int(volume.get("size_mib") or 1024) << 20
    if not os.path.exists(image):
        if not host.dry:
            entry["loop"] = {"image": image}
            host.record.keep()
        _folder(host, entry, os.path.dirname(image))
        host.act("make %s of %d MiB" % (image, size >> 20), lambda: _sparse(image, size))
    device = _loop_of(host, image)
    if device is None:
        device = host.do(["losetup", "--find", "--show", "--direct-io=on", image], "attach %s" % image, real=True).strip() or "/dev/loop?"
    if host.dry and not os.path.exists(image):
        return
    chunk, width = int(volume.get("chunk_kib") or 512), int(volume.get("members") or 4)
    _xfs_on(host, name, volume, device, ["-d", "su=%dk,sw=%d" % (chunk, width)])


def _nfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    _note(host, name, volume)
    options = [*_options(volume, NFS_OPTIONS), "vers=%s" % (volume.get("version") or "4.1")]
    _mount(host, name, volume, volume["source"], "nfs", options)
    if volume.get("persistent", True):
        _fstab(host, name, volume, volume["source"], "nfs", [*options, "nofail", "_netdev"])


def _directory(host: Host, name: str, volume: Dict[str, Any]) -> None:
    entry = _note(host, name, volume)
    _folder(host, entry, volume["mount"])
    _kv(host, volume)


def _xfs_on(host: Host, name: str, volume: Dict[str, Any], device: str, geometry: List[str]) -> None:
    """Make the file system where the device is blank, and mount it. One that carries our label is ours; anything else is left alone."""
    real, entry = volume["kind"] in REAL, host.record.part("volume")[name]
    signature = None if host.dry and host.changed else md.signature_of(host, device, real=real)
    label = label_of(name)
    if signature is None:
        entry.update(made_fs=True, device=device)
        host.record.keep()
        host.do(["mkfs.xfs", "-q", "-L", label, *geometry, device], "make XFS on %s" % device, real=real)
    elif not {"TYPE=xfs", "LABEL=%s" % label} <= set(signature.split()):
        raise Refused(
            "%s holds %s, so no file system is made on it for the volume %s. Nothing was overwritten; clear it by hand if it may go."
            % (device, signature, name)
        )
    _mount(host, name, volume, device, "xfs", _options(volume, XFS_OPTIONS))


def _mount(host: Host, name: str, volume: Dict[str, Any], source: str, fstype: str, options: List[str]) -> None:
    real, where, entry = volume["kind"] in REAL, volume["mount"], host.record.part("volume")[name]
    _folder(host, entry, where)
    now = _mounted(host, where, real)
    if now is None:
        if os.path.isdir(where) and os.listdir(where):
            raise Refused("%s is not empty and nothing is mounted there; it is not covered by a mount." % where)
        elsewhere = _lines(host.ask(["findmnt", "-n", "-o", "TARGET", "-S", source], real=real)[1]) if fstype == "xfs" else []
        if elsewhere and not host.dry:
            raise Refused(
                "%s is mounted at %s, which no record of ours knows, so it is not mounted at %s as well. Unmount it there first."
                % (source, ", ".join(elsewhere), where)
            )
        entry["mounted"] = True
        host.record.keep()
        host.do(["mount", "-t", fstype, "-o", ",".join(options), source, where], "mount %s at %s" % (source, where), real=real)
    _kv(host, volume)


def _verify(host: Host, name: str, volume: Dict[str, Any]) -> None:
    """Check what is mounted there, with which geometry and options, and whether its pages can be dropped."""
    real, where = volume["kind"] in REAL, volume["mount"]
    if volume["kind"] == "directory":
        found = _lines(host.ask(["findmnt", "-n", "-o", "FSTYPE", "-T", where], real=True)[1])
        kind = found[0] if found else None
        host.check("medium.%s" % name, None if kind is None else kind not in NEVER_COLD, kind, "a file system on a drive", "findmnt -T %s" % where)
        return
    now, wanted = _mounted(host, where, real), {"nfs": ("nfs", "nfs4")}.get(volume["kind"], ("xfs",))
    host.check(
        "mount.%s" % name, bool(now) and now["fstype"] in wanted if now else False, now and now["fstype"], "/".join(wanted), "findmnt -M %s" % where
    )
    if not now:
        return
    lacking = [option for option in _options(volume, []) if option not in now["options"].split(",")]
    host.check("options.%s" % name, not lacking, now["options"], ",".join(_options(volume, [])) or "any", "findmnt -M %s" % where)
    if volume["kind"] in ("md_xfs", "loop_xfs"):
        _verify_geometry(host, name, volume, real)
    if volume["kind"] == "md_xfs":
        md.check(host, name, volume)


def _verify_geometry(host: Host, name: str, volume: Dict[str, Any], real: bool) -> None:
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


def _mounted(host: Host, where: str, real: bool) -> Optional[Dict[str, str]]:
    """Return {source, fstype, options} of the mount at exactly this folder, or None."""
    code, out, _ = host.ask(["findmnt", "-J", "-M", where], real=real)
    if code == 127:
        raise Refused("findmnt is not installed on this host; install the package util-linux.")
    rows = (host.json(["findmnt", "-J", "-M", where], real=real) or {}).get("filesystems", []) if code == 0 and out.strip() else []
    return rows[-1] if rows else None


def _note(host: Host, name: str, volume: Dict[str, Any]) -> Dict[str, Any]:
    """Return the record of a medium, with the description under which it was made. What an earlier description left mounted is moved, or refused."""
    entry: Dict[str, Any] = host.record.part("volume").setdefault(name, {"folders": [], "device": None})
    before = entry.get("volume")
    if before:
        for key in ("kind", "device", "image", "source"):
            if before.get(key) != volume.get(key):
                raise Refused(
                    "The medium %s was made with %s %s, and the engagement says %s now. Remove the engagement's targets first, or name a new medium; "
                    "nothing was changed." % (name, key, before.get(key), volume.get(key))
                )
        if before["mount"] != volume["mount"]:
            _leave(host, entry, before)
    entry["volume"] = volume
    host.record.keep()
    return entry


def _leave(host: Host, entry: Dict[str, Any], before: Dict[str, Any]) -> None:
    """Give an earlier mount point back, so that one medium is never mounted twice; KV stays on its medium. A plain folder is emptied of ours."""
    where, real = before["mount"], before["kind"] in REAL
    if before["kind"] == "directory":
        kv = os.path.join(where, "kv")
        if os.path.isdir(kv):
            host.act("remove the KV below %s" % kv, lambda: shutil.rmtree(kv))
    elif entry.get("mounted") and _mounted(host, where, real):
        host.do(["umount", where], "unmount %s" % where, real=real)
    for folder in entry.get("folders", []):
        if os.path.isdir(folder) and (where + "/").startswith(folder + "/"):
            host.act("remove %s" % folder, lambda path=folder: _rmdir(path))  # type: ignore[misc]
    entry.update(mounted=False, folders=[folder for folder in entry.get("folders", []) if not (where + "/").startswith(folder + "/")])
    host.record.keep()


def _folder(host: Host, entry: Dict[str, Any], where: str) -> None:
    missing, folder = [], where
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    if missing:
        entry["folders"] = missing + [known for known in entry["folders"] if known not in missing]
        host.record.keep()
        host.act("make %s" % where, lambda: os.makedirs(where, mode=0o755))


def _kv(host: Host, volume: Dict[str, Any]) -> None:
    """Let the mount have a folder for KV that belongs to whom our own root belongs to."""
    kv, owner = os.path.join(volume["mount"], "kv"), os.stat(host.order["root"])
    if os.path.isdir(kv):
        return

    def make() -> None:
        os.mkdir(kv, 0o700)
        os.chown(kv, owner.st_uid, owner.st_gid)

    host.act("make %s" % kv, make)


def _fstab(host: Host, name: str, volume: Dict[str, Any], source: str, fstype: str, options: List[str]) -> None:
    textfile.set_block(host, "fstab", "volume " + name, ["%s %s %s %s 0 0" % (source, volume["mount"], fstype, ",".join(options))])


def _options(volume: Dict[str, Any], default: List[str]) -> List[str]:
    return [str(option) for option in volume.get("options") or default]


def label_of(name: str) -> str:
    """Return the label of a medium's file system. A name that does not fit ends in a digest of the whole, so that alike names stay apart."""
    whole = "qg-" + name
    return whole if len(whole) <= LABEL_LENGTH else whole[: LABEL_LENGTH - 5] + hashlib.sha256(name.encode()).hexdigest()[:5]


def _distinct(host: Host) -> None:
    """Refuse two media with one label or one mount point: the host could not tell them apart at the next boot. What is on record counts too."""
    media = {**{name: entry["volume"] for name, entry in host.record.part("volume").items() if entry.get("volume")}, **host.order["media"]}
    for what, of in (("label", lambda name: label_of(name)), ("mount point", lambda name: os.path.normpath(media[name]["mount"]))):
        seen: Dict[str, str] = {}
        for name in sorted(media):
            other = seen.setdefault(of(name), name)
            if other != name:
                raise Refused("The media %s and %s would have one %s, %s. Rename one of them; nothing was changed." % (other, name, what, of(name)))


def _lines(text: str) -> List[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _loop_of(host: Host, image: str) -> Optional[str]:
    found = _lines(host.ask(["losetup", "--noheadings", "--output", "NAME", "--associated", image], real=True)[1])
    return found[0].split()[0] if found else None


def _sparse(image: str, size: int) -> None:
    with open(image, "xb") as stream:
        stream.truncate(size)


def _detach(host: Host, loop: Dict[str, Any]) -> None:
    device = _loop_of(host, loop["image"])
    if device:
        host.do(["losetup", "--detach", device], "detach %s" % loop["image"], real=True)
    if os.path.exists(loop["image"]):
        host.act("remove %s" % loop["image"], lambda: os.unlink(loop["image"]))


def _rmdir(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError as error:
        raise Refused("%s cannot be removed: %s. Something else lies there; look at it and remove it by hand." % (path, error.strerror)) from None


REAL = ("loop_xfs", "directory")  # never by simulated tools
_KINDS = {"md_xfs": _md_xfs, "xfs": _xfs, "loop_xfs": _loop_xfs, "nfs": _nfs, "directory": _directory}
