"""Lines of ours in the host's own files: put between two markers, taken out again byte for byte."""

import os
from typing import Any, Dict, List, Tuple

from hardware.host import Host, Refused


def set_block(host: Host, relative: str, name: str, lines: List[str]) -> None:
    """Let the file below etc hold our block `name` with these lines. What was there before is recorded first."""
    path = os.path.join(host.etc, relative)
    before = _read(path)
    begin, end = _markers(name)
    block = "\n".join([begin, *lines, end]) + "\n"
    head, found, tail = _split(before or "", name, path)
    after = head + block + tail if found else (head if not head or head.endswith("\n") else head + "\n") + block
    if before == after:
        return
    entry: Dict[str, Any] = host.record.part("files").setdefault(path, {"existed": before is not None, "before": before, "folders": _missing(path)})
    host.record.keep()
    host.act("put %s into %s" % (name, path), lambda: _write(path, after))
    entry["ours"] = after
    host.record.keep()


def drop_block(host: Host, relative: str, name: str) -> None:
    """Take our block out. Where nobody changed the file since, it becomes byte for byte what it was, or is gone when it was not there."""
    path = os.path.join(host.etc, relative)
    now, entry = _read(path), host.record.part("files").get(path)
    if now is None or _markers(name)[0] not in now:
        if entry and (now is None or "# BEGIN Quadgate " not in now):  # somebody took our lines out; what else they changed is theirs
            host.record.part("files").pop(path, None)
            host.record.keep()
            if now is None and not host.dry:
                _give_back(entry["folders"])
        return
    head, _, tail = _split(now, name, path)
    bare = head + tail
    ours_left = "# BEGIN Quadgate " in bare
    if entry and not ours_left and now == entry.get("ours"):
        bare = entry["before"] or ""
    if entry and not entry["existed"] and not bare.strip():
        host.act("remove %s" % path, lambda: _remove(path, entry["folders"]))
    else:
        host.act("take %s out of %s" % (name, path), lambda: _write(path, bare))
        if entry and ours_left:
            entry["ours"] = bare
    if not ours_left:
        host.record.part("files").pop(path, None)
    host.record.keep()


def _markers(name: str) -> List[str]:
    return ["# BEGIN Quadgate %s" % name, "# END Quadgate %s" % name]


def _split(text: str, name: str, path: str) -> Tuple[str, bool, str]:
    """Return what stands before our block, whether it is there, and what stands after it."""
    begin, end = _markers(name)
    if begin + "\n" not in text:
        return text, False, ""
    head, _, rest = text.partition(begin + "\n")
    _, marker, tail = rest.partition(end + "\n")
    if not marker:
        raise Refused(
            "{0} has the line `{1}` without its end; put the file right by hand first.",
            "{0} 中有 `{1}` 一行而没有对应的结束行；请先手工修正该文件。",
            path,
            begin,
        )
    return head, True, tail


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def _write(path: str, text: str) -> None:
    """Write a file by rename with the mode that it had."""
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".quadgate", "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(path + ".quadgate", mode)
    os.replace(path + ".quadgate", path)


def _missing(path: str) -> List[str]:
    """Return the folders above a file that are not there yet, innermost first."""
    missing, folder = [], os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def _remove(path: str, folders: List[str]) -> None:
    os.unlink(path)
    _give_back(folders)


def _give_back(folders: List[str]) -> None:
    """Remove folders that we made, innermost first, as far as they are empty."""
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            return
