"""Taking a medium away by its record, whatever the engagement says today: only what is still shown to be ours, and nothing silently left."""

import os
from typing import Any, Callable, Dict, List

from hardware import blocks, kv, md, mounts, textfile
from hardware.host import Host, Refused


def remove(host: Host, name: str, entry: Dict[str, Any], left: List[str]) -> None:
    """Undo one medium. What somebody else made of its device since stays, with a sentence in `left`."""
    volume = entry["volume"]
    real, where = volume["kind"] in mounts.REAL, volume["mount"]
    goes = bool(entry.get("made_fs") or entry.get("loop"))  # with the file system goes all that is on it: terabytes need not be removed file by file
    now = None if volume["kind"] == "directory" else _ours(host, name, entry)
    if entry.get("kv") and not goes:
        again = now is None and volume["kind"] != "directory"
        if again:
            _mount_again(host, name, entry)
            now, entry["mounted"] = {"source": entry["source"]}, True
            host.record.keep()
        if not (again and host.dry):  # what a mount would show cannot be told before
            kv.drop(host, entry)
    if entry.get("mounted") and now is not None:
        host.do(["umount", where], "unmount %s" % where, real=real)
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
            kv.drop(host, entry)
    elif entry.get("mounted") and _ours(host, name, entry) is not None:
        host.do(["umount", where], "unmount %s" % where, real=before["kind"] in mounts.REAL)
    for folder in entry.get("folders", []):
        if os.path.isdir(folder) and (where + "/").startswith(folder + "/"):
            host.act("remove %s" % folder, remover(folder))
    entry.update(mounted=False, folders=[folder for folder in entry.get("folders", []) if not (where + "/").startswith(folder + "/")])
    entry.pop("kv", None)
    host.record.keep()


def remover(path: str) -> Callable[[], None]:
    """Return what removes an empty folder, or says in a sentence why it stays."""

    def remove_it() -> None:
        try:
            os.rmdir(path)
        except OSError as error:
            raise Refused("%s cannot be removed: %s. Something else lies there; look at it and remove it by hand." % (path, error.strerror)) from None

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
        "%s is mounted at %s, and the medium %s was %s. Nothing of it was touched; unmount it or mount the right one there, then try again."
        % (now["source"], volume["mount"], name, entry["source"])
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
    if not source:
        raise Refused(
            "The KV of the medium %s lies at %s, which is no mount now, and no record says of what. Mount it, then remove again." % (name, where)
        )
    try:
        if not os.path.isdir(where) and not host.dry:
            os.makedirs(where)
            entry["folders"] = [where, *(folder for folder in entry.get("folders", []) if folder != where)]
        mounts.mount(host, where, "nfs" if volume["kind"] == "nfs" else "xfs", mounts.options_of(volume), source, real)
    except Refused as error:
        raise Refused(
            "KV of ours is still on %s, which is not mounted at %s now and cannot be mounted to remove it: %s Make it reachable, then remove again."
            % (source, where, error)
        ) from None


def _unmake(host: Host, name: str, entry: Dict[str, Any], left: List[str]) -> None:
    """Take the file system off the device that carries it now. One that holds something else by now is left, by name."""
    made, device = entry.get("md"), entry["device"]
    if made:
        if not md.is_there(host, made):  # no boot assembled it: its members are blanked all the same
            return
    elif entry.get("ident"):
        found = blocks.by_ident(host, entry["ident"])
        if not found:
            raise Refused(
                "The drive %s of the medium %s (%s then) is not on this host now, so our file system would stay on it. Bring it back, then remove "
                "again; where it never will be, take the entry %s out of the record by hand." % (entry["ident"], name, device, name)
            )
        device = found[0]
    tags = blocks.tags_of(host, device)
    if tags is None:
        return
    if tags.get("TYPE") == "xfs" and tags.get("LABEL") == entry.get("label") and tags.get("UUID") == entry.get("fs_uuid", tags.get("UUID")):
        host.do(["wipefs", "--all", "--quiet", device], "take the file system off %s" % device)
    else:
        left.append(
            "%s holds %s now, which is not the file system that we made (label %s): it was left."
            % (device, blocks.signature(tags), entry.get("label"))
        )


def _detach(host: Host, loop: Dict[str, Any]) -> None:
    device = loop_of(host, loop["image"])
    if device:
        host.do(["losetup", "--detach", device], "detach %s" % loop["image"], real=True)
    if os.path.exists(loop["image"]):
        host.act("remove %s" % loop["image"], lambda: os.unlink(loop["image"]))
