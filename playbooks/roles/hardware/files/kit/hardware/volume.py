"""The media for KV: XFS over md RAID0 (the array), XFS on one drive or on a loop device, NFS, or a plain folder. Each is a mount with a folder `kv`.

Kinds: md_xfs, xfs, loop_xfs, nfs, directory. The arm's `mount_path` names one of them. Nothing that holds data is ever overwritten.
"""

import hashlib
import os
from typing import Any, Dict, List

from hardware import blocks, kv, md, mounts, textfile, undo, verify
from hardware.host import Host, Refused

MADE = ("folders", "md", "made_fs", "loop", "mounted", "kv")  # what the record of a medium says was done
LABEL_LENGTH = 12  # what XFS allows


def apply(host: Host) -> Dict[str, Any]:
    """Make every medium, then check it."""
    facts = {}
    _known(host)
    _distinct(host)
    for name, volume in sorted(host.order["media"].items()):
        made = len(host.changed)
        _KINDS[volume["kind"]](host, name, volume)
        if not (host.dry and len(host.changed) > made):
            verify.medium(host, name, volume)
        facts[name] = {"mount": volume["mount"], "kv": os.path.join(volume["mount"], "kv")}
        if volume["kind"] != "directory":
            facts[name]["in_force"] = mounts.in_force(mounts.mounted(host, volume["mount"], volume["kind"] in mounts.REAL))
    return {"media": facts}


def show(host: Host) -> Dict[str, Any]:
    """Check every medium."""
    _known(host)
    for name, volume in sorted(host.order["media"].items()):
        verify.medium(host, name, volume)
    return {"media": sorted(host.order["media"])}


def remove(host: Host) -> Dict[str, Any]:
    """Take everything away that the record knows, whatever the order says today. Return {left: [{en, zh-CN}]} of what was not ours any more."""
    known, left = host.record.part("volume"), []  # type: ignore[var-annotated]
    for name in sorted(known, reverse=True):
        undo.remove(host, name, known[name], left)
        if not host.dry:
            del known[name]
            host.record.keep()
    return {"left": [{"en": one.en, "zh-CN": one.zh} for one in left]}


def _md_xfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    _note(host, name, volume)
    device = md.ensure(host, name, volume)
    chunk, width = int(volume.get("chunk_kib") or 512), int(volume.get("members") or 4)
    _xfs_on(host, name, volume, device, ["-d", "su=%dk,sw=%d" % (chunk, width)])
    if volume.get("persistent", True):
        md.persist(host, name, volume)
        _fstab(host, name, volume, "LABEL=%s" % label_of(name), "xfs", [*mounts.options_of(volume), "nofail", "_netdev"])


def _xfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    if blocks.is_numbered(volume["device"]):
        raise Refused(
            "The medium {0} names {1}, and another drive may have this name after a boot; nothing was made. Name it by its "
            "link below /dev/disk/by-id (ls -l /dev/disk/by-id).",
            "介质 {0} 指定为 {1}，该名称在重启后可能指向另一块盘；未创建任何内容。请使用 /dev/disk/by-id 下的链接（ls -l /dev/disk/by-id）。",
            name,
            volume["device"],
        )
    entry, device = _note(host, name, volume), blocks.resolved(host, volume["device"])
    if entry.get("ident") and blocks.ident(host, device) != entry["ident"]:
        raise Refused(
            "{0} is the drive {1} now, and the medium {2} was made on {3}. Nothing was changed; bring it back, or remove "
            "the engagement's targets first.",
            "{0} 现在是硬盘 {1}，而介质 {2} 创建于 {3}。未做任何更改；请装回原盘，或先清除该项目的目标主机。",
            volume["device"],
            blocks.ident(host, device),
            name,
            entry["ident"],
        )
    _xfs_on(host, name, volume, device, [])
    if volume.get("persistent", True):
        _fstab(host, name, volume, "LABEL=%s" % label_of(name), "xfs", [*mounts.options_of(volume), "nofail"])


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
    device = undo.loop_of(host, image)
    if not device:
        device = host.do(["losetup", "--find", "--show", "--direct-io=on", image], "attach %s" % image, real=True).strip() or "/dev/loop?"
    if host.dry and not os.path.exists(image):
        return
    chunk, width = int(volume.get("chunk_kib") or 512), int(volume.get("members") or 4)
    _xfs_on(host, name, volume, device, ["-d", "su=%dk,sw=%d" % (chunk, width)])


def _nfs(host: Host, name: str, volume: Dict[str, Any]) -> None:
    _note(host, name, volume)
    options = mounts.options_of(volume)
    _mount(host, name, volume, volume["source"], "nfs", options)
    if volume.get("persistent", True):
        _fstab(host, name, volume, volume["source"], "nfs", [*options, "nofail", "_netdev"])


def _directory(host: Host, name: str, volume: Dict[str, Any]) -> None:
    entry = _note(host, name, volume)
    _folder(host, entry, volume["mount"])
    kv.claim(host, volume["mount"], entry)


def _xfs_on(host: Host, name: str, volume: Dict[str, Any], device: str, geometry: List[str]) -> None:
    """Make the file system where the device is blank, and mount it. One that carries our label is ours; anything else is left alone."""
    real, entry, label = volume["kind"] in mounts.REAL, host.record.part("volume")[name], label_of(name)
    if volume["kind"] == "xfs":
        entry["ident"] = blocks.ident(host, device)
    tags = None if host.dry and host.changed else blocks.tags_of(host, device, real=real)
    if tags is None:
        entry.update(made_fs=True, device=device, label=label)
        entry.pop("fs_uuid", None)
        host.record.keep()
        host.do(["mkfs.xfs", "-q", "-L", label, *geometry, device], "make XFS on %s" % device, real=real)
        if not host.dry:
            tags = blocks.tags_of(host, device, real=real) or {}
    elif (tags.get("TYPE"), tags.get("LABEL")) != ("xfs", label) or tags.get("UUID") != entry.get("fs_uuid", tags.get("UUID")):
        raise Refused(
            "{0} holds {1}, so no file system is made on it for the volume {2}. Nothing was overwritten; clear it by hand if it may go.",
            "{0} 上已有 {1}，不会在其上为卷 {2} 创建文件系统。未覆盖任何内容；若可舍弃，请手工清除。",
            device,
            blocks.signature(tags),
            name,
        )
    if tags and tags.get("UUID"):
        entry["fs_uuid"] = tags["UUID"]
    _mount(host, name, volume, device, "xfs", mounts.options_of(volume))


def _mount(host: Host, name: str, volume: Dict[str, Any], source: str, fstype: str, options: List[str]) -> None:
    real, where, entry = volume["kind"] in mounts.REAL, volume["mount"], host.record.part("volume")[name]
    _folder(host, entry, where)
    now = mounts.mounted(host, where, real)
    if now is not None and not mounts.is_from(host, now, source, real):
        raise Refused(
            "{0} is mounted at {1} already, and the medium {2} is {3}. Nothing was changed; unmount it, or give the medium another mount point.",
            "{1} 上已挂载 {0}，而介质 {2} 应为 {3}。未做任何更改；请将其卸载，或为该介质另选挂载点。",
            now["source"],
            where,
            name,
            source,
        )
    entry["source"] = source
    if now is None:
        elsewhere = verify.lines(host.ask(["findmnt", "-n", "-o", "TARGET", "-S", source], real=real)[1]) if fstype == "xfs" else []
        if elsewhere and not host.dry:
            raise Refused(
                "{0} is mounted at {1}, which no record of ours knows, so it is not mounted at {2} as well. Unmount it there first.",
                "{0} 已挂载在 {1}，我方记录中没有此挂载，因此不再挂载到 {2}。请先在该处卸载。",
                source,
                ", ".join(elsewhere),
                where,
            )
        entry["mounted"] = True
        host.record.keep()
        mounts.mount(host, where, fstype, options, source, real)
    host.record.keep()
    if not (host.dry and now is None):  # what a mount will show cannot be told before
        kv.claim(host, where, entry)
    else:
        host.changed.append("make %s" % os.path.join(where, "kv"))


def _note(host: Host, name: str, volume: Dict[str, Any]) -> Dict[str, Any]:
    """Return the record of a medium, with the description under which it was made. What an earlier description left mounted is moved, or refused."""
    entry: Dict[str, Any] = host.record.part("volume").setdefault(name, {"folders": [], "device": None})
    made = any(entry.get(key) for key in MADE)
    if not made:  # what was refused before anything was made may be put right
        entry.pop("ident", None)
    before = entry.get("volume") if made else None
    if before:
        for key in ("kind", "device", "image", "source"):
            if before.get(key) != volume.get(key):
                raise Refused(
                    "The medium {0} was made with {1} {2}, and the engagement says {3} now. Remove the engagement's targets first, "
                    "or name a new medium; nothing was changed.",
                    "介质 {0} 创建时的 {1} 为 {2}，而项目现在写的是 {3}。请先清除该项目的目标主机，或另起一个介质名称；未做任何更改。",
                    name,
                    key,
                    before.get(key),
                    volume.get(key),
                )
        if before["mount"] != volume["mount"]:
            undo.leave(host, name, entry, before)
    entry["volume"] = volume
    host.record.keep()
    return entry


def _folder(host: Host, entry: Dict[str, Any], where: str) -> None:
    missing, folder = [], where
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    if missing:
        entry["folders"] = missing + [known for known in entry["folders"] if known not in missing]
        host.record.keep()
        host.act("make %s" % where, lambda: os.makedirs(where, mode=0o755))


def _fstab(host: Host, name: str, volume: Dict[str, Any], source: str, fstype: str, options: List[str]) -> None:
    textfile.set_block(host, "fstab", "volume " + name, ["%s %s %s %s 0 0" % (source, volume["mount"], fstype, ",".join(options))])


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
                raise Refused(
                    "The media {0} and {1} would have one {2}, {3}. Rename one of them; nothing was changed.",
                    "介质 {0} 与 {1} 的{2}同为 {3}。请将其中一个改名；未做任何更改。",
                    other,
                    name,
                    what,
                    of(name),
                )


def _sparse(image: str, size: int) -> None:
    with open(image, "xb") as stream:
        stream.truncate(size)


def _known(host: Host) -> None:
    """Refuse a kind that there is not."""
    for name, volume in sorted(host.order["media"].items()):
        if volume.get("kind") not in _KINDS:
            raise Refused(
                "The medium {0} has the kind {1!r}; there are {2}. Nothing was changed.",
                "介质 {0} 的 kind 为 {1!r}；可用：{2}。未做任何更改。",
                name,
                volume.get("kind"),
                ", ".join(sorted(_KINDS)),
            )


_KINDS = {"md_xfs": _md_xfs, "xfs": _xfs, "loop_xfs": _loop_xfs, "nfs": _nfs, "directory": _directory}
