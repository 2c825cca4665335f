"""Taking a medium away by its record, whatever the engagement says today: only what is still shown to be ours, and nothing silently left."""

import os
from typing import Any, Callable, Dict, List

from hardware import blocks, kv, md, mounts, textfile
from hardware.host import Host, Refused


def remove(host: Host, name: str, entry: Dict[str, Any], left: List[Refused]) -> None:
    """Undo one medium. What somebody else made of its device since stays, with a sentence in `left`."""
    volume = entry["volume"]
    real, where = volume["kind"] in mounts.REAL, volume["mount"]
    goes = bool(entry.get("made_fs") or entry.get("loop"))  # with the file system goes all that is on it: terabytes need not be removed file by file
    now = None if volume["kind"] == "directory" else _ours(host, name, entry)
    if entry.get("kv") and not goes:
        again = now is None and volume["kind"] != "directory"
        if again:
            _mount_again(host, name, entry)
            now, entry["mounted"] = {}, True
            host.record.keep()
        if not (again and host.dry):  # what a mount would show cannot be told before
            kv.drop(host, where, entry)
    if entry.get("mounted") and now is not None:
        host.do(["umount", where], "unmount %s" % where, real=real)
    if not host.dry:  # what is done is done, also when something below holds the rest up
        entry.update(mounted=False, kv=None)
        host.record.keep()
    textfile.drop_block(host, "fstab", "volume " + name)
    if entry.get("made_fs") and volume["kind"] != "loop_xfs":
        _unmake(host, name, entry, left)
    if volume["kind"] == "md_xfs":
        md.remove(host, name, volume, entry)
    if entry.get("loop"):
        _detach(host, entry["loop"])
    for folder in entry.get("folders", []):
        if os.path.isdir(folder):
            host.act("remove %s" % folder, remover(folder))


def leave(host: Host, name: str, entry: Dict[str, Any], before: Dict[str, Any]) -> None:
    """Give an earlier mount point back, so that one medium is never mounted twice; KV stays on its medium. A plain folder is emptied of ours."""
    where = before["mount"]
    if before["kind"] == "directory":
        if entry.get("kv"):
            kv.drop(host, where, entry)
        entry["kv"] = None
    elif entry.get("mounted") and _ours(host, name, entry) is not None:
        host.do(["umount", where], "unmount %s" % where, real=before["kind"] in mounts.REAL)
    for folder in entry.get("folders", []):
        if os.path.isdir(folder) and (where + "/").startswith(folder + "/"):
            host.act("remove %s" % folder, remover(folder))
    entry.update(mounted=False, folders=[folder for folder in entry.get("folders", []) if not (where + "/").startswith(folder + "/")])
    host.record.keep()


def remover(path: str) -> Callable[[], None]:
    """Return what removes an empty folder, or says in a sentence why it stays."""

    def remove_it() -> None:
        try:
            os.rmdir(path)
        except OSError as error:
            raise Refused(
                "{0} cannot be removed: {1}. Something else lies there; look at it and remove it by hand.",
                "{0} 无法删除：{1}。其中另有内容；请查看后手工删除。",
                path,
                error.strerror,
            ) from None

    return remove_it


def loop_of(host: Host, image: str) -> str:
    """Return the loop device of an image, or an empty text."""
    found = host.ask(["losetup", "--noheadings", "--output", "NAME", "--associated", image], real=True)[1].split()
    return found[0] if found else ""


def _ours(host: Host, name: str, entry: Dict[str, Any]) -> Any:
    """Return the mount at a medium's folder, or None where there is none. Raises Refused when it shows something else than the record says."""
    volume = entry["volume"]
    real = volume["kind"] in mounts.REAL
    now = mounts.mounted(host, volume["mount"], real)
    if now is None or not entry.get("source"):
        return now if entry.get("mounted") else None
    if _is_source(host, entry, now, real):
        return now
    if not entry.get("mounted") and not entry.get("kv"):
        return None
    raise Refused(
        "{0} is mounted at {1}, and the medium {2} was {3}. Nothing of it was touched; unmount it or mount the right one there, then try again.",
        "{1} 上挂载的是 {0}，而介质 {2} 原为 {3}。未作任何改动；请卸载它或挂载正确的来源后再试。",
        now["source"],
        volume["mount"],
        name,
        entry["source"],
    )


def _is_source(host: Host, entry: Dict[str, Any], now: Dict[str, str], real: bool) -> bool:
    """Tell whether a mount shows what was mounted there: the file system by its UUID where the record has one, since devices change their names."""
    if entry.get("fs_uuid") and now["source"].startswith("/dev/"):
        try:
            return (blocks.tags_of(host, now["source"], real=real) or {}).get("UUID") == entry["fs_uuid"]
        except Refused:  # a device that died under its mount; it keeps its name as long as that lasts
            pass
    return mounts.is_from(host, now, entry["source"], real)


def _mount_again(host: Host, name: str, entry: Dict[str, Any]) -> None:
    """Mount a medium that no boot mounted, so that the KV on it can be taken away. Where that fails, the sentence says what stays, and where."""
    volume = entry["volume"]
    where, real, source = volume["mount"], volume["kind"] in mounts.REAL, entry.get("source")
    if volume["kind"] == "xfs" and entry.get("ident"):  # another drive may have the name by now
        source = next(iter(blocks.by_ident(host, entry["ident"])), None)
    if not source:
        raise Refused(
            "The KV of the medium {0} lies at {1}, which is no mount now, and no record says of what. Mount it, then remove again.",
            "介质 {0} 的 KV 位于 {1}，该处当前没有挂载，记录中也没有其来源。请挂载后再清除。",
            name,
            where,
        )
    try:
        if not os.path.isdir(where) and not host.dry:
            os.makedirs(where)
            entry["folders"] = [where, *(folder for folder in entry.get("folders", []) if folder != where)]
        mounts.mount(host, where, "nfs" if volume["kind"] == "nfs" else "xfs", mounts.options_of(volume), source, real)
    except Refused as error:
        raise Refused(
            "KV of ours is still on {0}, which is not mounted at {1} now and cannot be mounted to remove it ({2}). Make it "
            "reachable, then remove again.",
            "{0} 上仍有我方的 KV，但它未挂载在 {1}，且无法挂载以便清除（{2}）。请使其可达后再清除。",
            source,
            where,
            error,
        ) from None


def _unmake(host: Host, name: str, entry: Dict[str, Any], left: List[Refused]) -> None:
    """Take the file system off the device that carries it now. One that holds something else by now is left, by name."""
    made, device = entry.get("md"), entry["device"]
    if made:
        if not md.is_there(host, made):  # no boot assembled it: its members are blanked all the same
            return
    elif entry.get("ident"):
        found = blocks.by_ident(host, entry["ident"])
        if not found:
            raise Refused(
                "The drive {0} of the medium {1} ({2} then) is not on this host now, so our file system would stay on it. "
                "Bring it back, then remove again; where it never will be, take the entry {3} out of the record by hand.",
                "介质 {1} 的硬盘 {0}（当时为 {2}）当前不在本主机上，我方文件系统会留在其上。请将其装回后再清除；若其不再返回"
                "，请手工从记录中删除 {3} 一项。",
                entry["ident"],
                name,
                device,
                name,
            )
        device = found[0]
    tags = blocks.tags_of(host, device)
    if tags is None:
        return
    if tags.get("TYPE") == "xfs" and tags.get("LABEL") == entry.get("label") and tags.get("UUID") == entry.get("fs_uuid", tags.get("UUID")):
        host.do(["wipefs", "--all", "--quiet", device], "take the file system off %s" % device)
    else:
        en = "{0} holds {1} now, which is not the file system that we made (label {2}): it was left."
        left.append(Refused(en, "{0} 上现在是 {1}，并非我方创建的文件系统（卷标 {2}），已保留。", device, blocks.signature(tags), entry.get("label")))


def _detach(host: Host, loop: Dict[str, Any]) -> None:
    device = loop_of(host, loop["image"])
    if device:
        host.do(["losetup", "--detach", device], "detach %s" % loop["image"], real=True)
    if os.path.exists(loop["image"]):
        host.act("remove %s" % loop["image"], lambda: os.unlink(loop["image"]))
