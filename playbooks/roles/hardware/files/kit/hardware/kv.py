"""The folder `kv` of a medium: made by us with a mark in it, and taken away only while it carries that mark.

Whoever keeps files in a folder of this name had it before us. The mark names the engagement, so that two engagements on one NFS export never take
each other's KV, while the hosts of one engagement share it. Beside the mark, the switch of an arm lists its attempts.
"""

import json
import os
import shutil
import socket
from typing import Any, Callable, Dict, Optional

from hardware.host import Host, Refused

MARK = ".quadgate"  # a folder in kv; `owner` in it says whose kv it is


def claim(host: Host, mount: str, entry: Dict[str, Any]) -> None:
    """Let the mount have a folder for KV that is ours by its mark and belongs to whom our own root belongs to. Raises Refused for any other kv."""
    kv, engagement = os.path.join(mount, "kv"), str(host.order.get("engagement") or "")
    if not engagement:
        raise Refused(
            "The order names no engagement, so {0} could not be marked as its own; nothing was made.",
            "指令中没有项目编号，无法为 {0} 做归属标记；未创建任何内容。",
            kv,
        )
    fresh = not entry.get("kv")
    if not os.path.lexists(kv):
        _note(host, entry, kv, engagement)
        host.act("make %s" % kv, lambda: _make(host, kv, engagement))
        if host.dry or _owner(kv) == engagement:
            return
    owner = _owner(kv)
    if owner != engagement and fresh and entry.pop("kv", None):  # another engagement was quicker by a moment: nothing here is ours
        host.record.keep()
    if owner is None:
        raise Refused(
            "{0} was there before us: it carries no mark of ours ({1}/owner). Nothing in it was touched. Rename it, or "
            "give the medium another mount point or export.",
            "{0} 早已存在，且没有我方标记（{1}/owner）。其中内容未作任何改动。请将其改名，或为该介质另选挂载点或导出目录。",
            kv,
            MARK,
        )
    if owner != engagement:
        raise Refused(
            "{0} belongs to the engagement {1}, and this one is {2}. Nothing in it was touched. Remove that engagement's "
            "targets first, or give this one a mount point or export of its own.",
            "{0} 属于项目 {1}，而本项目为 {2}。其中内容未作任何改动。请先清除该项目的目标主机，或为本项目另选挂载点或导出目录。",
            kv,
            owner,
            engagement,
        )
    _note(host, entry, kv, engagement)


def drop(host: Host, mount: str, entry: Dict[str, Any]) -> None:
    """Take away the kv of a medium that the record calls ours. Raises Refused where it is not marked as ours any more: it may be anybody's."""
    kv, engagement = os.path.join(mount, "kv"), entry["kv"]["engagement"]
    if os.path.isdir(_unfinished(kv)):
        host.act("remove %s" % _unfinished(kv), _remover(_unfinished(kv)))
    if not os.path.lexists(kv):
        return
    owner = _owner(kv)
    if owner != engagement and (owner is not None or not os.path.isdir(kv) or os.listdir(kv)):  # an empty one is what an ended removal left
        raise Refused(
            "{0} no longer carries the mark of the engagement {1} ({2}/owner), so it is left as it is. Look at what is in "
            "it; move it away or delete it by hand, then remove again.",
            "{0} 已没有项目 {1} 的标记（{2}/owner），因此原样保留。请查看其中内容，手工移走或删除后再执行清除。",
            kv,
            engagement,
            MARK,
        )
    host.act("remove the KV below %s" % kv, _remover(kv))


def _note(host: Host, entry: Dict[str, Any], kv: str, engagement: str) -> None:
    if entry.get("kv") != {"path": kv, "engagement": engagement}:
        entry["kv"] = {"path": kv, "engagement": engagement}
        host.record.keep()


def _owner(kv: str) -> Optional[str]:
    """Return the engagement that a kv is marked with; None without a mark, an empty text for one that cannot be read."""
    try:
        with open(os.path.join(kv, MARK, "owner"), encoding="utf-8") as stream:
            return str(json.load(stream)["engagement"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        return ""


def _unfinished(kv: str) -> str:
    return "%s.quadgate-%s" % (kv, socket.gethostname())


def _make(host: Host, kv: str, engagement: str) -> None:
    """Make it with its mark and give it its name last, so that it is never there without the mark. Another host of ours may be quicker."""
    new, owner = _unfinished(kv), os.stat(host.order["root"])
    _remover(new)()
    os.makedirs(os.path.join(new, MARK), mode=0o700)
    with open(os.path.join(new, MARK, "owner"), "w", encoding="utf-8") as stream:
        json.dump({"engagement": engagement, "made_by": "Quadgate", "host": socket.gethostname()}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(new, 0o700)
    for path in (os.path.join(new, MARK, "owner"), os.path.join(new, MARK), new):
        os.chown(path, owner.st_uid, owner.st_gid)
    try:
        os.rename(new, kv)
    except OSError:
        if not os.path.isdir(kv):
            raise
        _remover(new)()


def _remover(folder: str) -> Callable[[], None]:
    """Return what removes a folder, its mark last, so that it can be done again when it was ended; another host may be removing the same."""

    def gone(_: Any, __: str, error: Any) -> None:
        if not isinstance(error[1], FileNotFoundError):
            raise error[1]

    def remove() -> None:
        if not os.path.isdir(folder):
            return
        for name in sorted(os.listdir(folder), key=lambda name: name == MARK):
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, onerror=gone)
            elif os.path.lexists(path):
                os.unlink(path)
        shutil.rmtree(folder, onerror=gone)

    return remove
