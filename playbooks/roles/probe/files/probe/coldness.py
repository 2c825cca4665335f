"""Empty the page cache for a directory and prove it: fsync, posix_fadvise(DONTNEED), then count resident pages with mincore.

Needs no root for files of one's own. The kernel answers "resident" for files that the caller may not write, so a doubt never looks cold.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, List, Optional, Tuple

from probe.errors import ProbeError, Refused
from probe.files import walk_files

PAGE = os.sysconf("SC_PAGE_SIZE")
NEVER_COLD = {
    "tmpfs": "its files live in memory",
    "ramfs": "its files live in memory",
    "devtmpfs": "its files live in memory",
    "hugetlbfs": "its files live in memory",
    "overlay": "its pages belong to a lower file system that the advice does not reach",
    "aufs": "its pages belong to a lower file system that the advice does not reach",
}
_MEMORY_DEVICES = ("/dev/ram", "/dev/zram")
_PROT_READ, _MAP_SHARED, _WINDOW = 1, 1, 1 << 30

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def mount_of(path: str) -> Dict[str, Any]:
    """Return {fs_type, source, mount_point, dev: "major:minor", options: of the file system} of the file system that holds `path`."""
    device = os.stat(path).st_dev
    real, best = os.path.realpath(path), None
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            left, _, right = line.partition(" - ")
            point = left.split()[4].encode("latin-1", "replace").decode("unicode_escape")
            inside = real == point or real.startswith(point.rstrip("/") + "/")
            if inside and (best is None or len(point) >= len(best["mount_point"])):
                fs_type, source, options = [*right.split(None, 2), "", ""][:3]
                best = {"fs_type": fs_type, "source": source, "mount_point": point, "dev": "%d:%d" % (os.major(device), os.minor(device))}
                best["options"] = options.strip()
    if best is None:
        raise ProbeError("mount", "No mount in /proc/self/mountinfo holds %s, so its file system is unknown." % path)
    return best


def require_coolable(path: str) -> Dict[str, Any]:
    """Return the mount of `path`, or refuse by name a file system whose files cannot be put out of memory."""
    if not os.path.isdir(path):
        raise ProbeError("absent", "There is no directory %s." % path)
    mount = mount_of(path)
    if mount["fs_type"] in NEVER_COLD:
        raise Refused(
            "never_cold",
            "%s lies on %s, which cannot be made cold: %s. Put the directory on a real disk."
            % (path, mount["fs_type"], NEVER_COLD[mount["fs_type"]]),
        )
    if mount["source"].startswith(_MEMORY_DEVICES):
        raise Refused(
            "never_cold", "%s lies on %s, a block device in memory, which cannot be made cold. Put it on a real disk." % (path, mount["source"])
        )
    return mount


def drop_cache(path: str, links: bool = False) -> Dict[str, Any]:
    """Write dirty pages of every file below `path` out, drop its pages, and return what residency() then finds. `links`: as walk_files() has it."""
    require_coolable(path)
    for name in walk_files(path, links):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ProbeError(
                "drop_cache", "%s cannot be opened to drop its pages: %s. Run as the owner of the files." % (name, error.strerror)
            ) from error
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
    return residency(path, links)


def residency(path: str, links: bool = False) -> Dict[str, Any]:
    """Return {dir, fs_type, method, files, bytes, resident_bytes, pages, resident_pages, page_bytes, worst} of all files below `path`.

    `worst`: [{path, resident_bytes}]. Pages and bytes are counted apart, so that neither can be told in another unit unnoticed.
    """
    mount = require_coolable(path)
    files = total = resident = pages = resident_pages = 0
    warm: List[Any] = []
    for folder in sorted({os.path.dirname(name) for name in walk_files(path, links)}) if links else []:
        require_coolable(folder)  # what a link leads to may lie on another file system
    for name in walk_files(path, links):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            size = os.fstat(fd).st_size
            warm_pages, warm_bytes = in_memory(fd, size)
        finally:
            os.close(fd)
        files, total, resident = files + 1, total + size, resident + warm_bytes
        pages, resident_pages = pages - (-size // PAGE), resident_pages + warm_pages
        if warm_pages:
            warm.append((warm_bytes, name))
    worst = [{"path": os.path.relpath(n, path), "resident_bytes": r} for r, n in sorted(warm, reverse=True)[:5]]
    out = {key: mount[key] for key in ("fs_type", "source", "mount_point", "dev")}
    out.update(dir=path, method="mincore")
    out.update(files=files, bytes=total, resident_bytes=resident, worst=worst)
    out.update(pages=pages, resident_pages=resident_pages, page_bytes=PAGE)
    return out


def in_memory(fd: int, size: int) -> Tuple[int, int]:
    """Return how many pages, and how many bytes, of an open file are in the page cache (bytes: the last page cut at the file's end)."""
    resident, count, offset = 0, 0, 0
    while offset < size:
        length = min(_WINDOW, size - offset)
        address = _libc.mmap(None, length, _PROT_READ, _MAP_SHARED, fd, offset)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise ProbeError("mincore", "mmap failed: %s." % os.strerror(ctypes.get_errno()))
        try:
            pages = -(-length // PAGE)
            vector = (ctypes.c_ubyte * pages)()
            if _libc.mincore(address, length, vector) != 0:
                raise ProbeError("mincore", "mincore failed: %s." % os.strerror(ctypes.get_errno()))
            flags = bytes(vector).translate(_LOW_BIT)
        finally:
            _libc.munmap(address, length)
        count += flags.count(1)
        resident += flags.count(1) * PAGE
        if flags and flags[-1] and length % PAGE:
            resident -= PAGE - length % PAGE
        offset += length
    return count, resident


_LOW_BIT = bytes(i & 1 for i in range(256))  # only the low bit of mincore's bytes is defined


def diskstats(path: str) -> Optional[Dict[str, Any]]:
    """Return {dev, read_sectors, write_sectors} (sectors of 512 B) of the block device under `path`; None where there is none, as on NFS."""
    mount = mount_of(path)
    wanted = mount["dev"].split(":")
    if wanted[0] == "0":  # an anonymous device (btrfs, NFS): go by the name of the mount's source
        try:
            device = os.stat(mount["source"]).st_rdev
            wanted = [str(os.major(device)), str(os.minor(device))]
        except OSError:
            return None
    with open("/proc/diskstats", encoding="ascii") as f:
        for line in f:
            field = line.split()
            if field[:2] == wanted:
                return {"dev": field[2], "read_sectors": int(field[5]), "write_sectors": int(field[9])}
    return None


def mountstats(path: str) -> Optional[Dict[str, Any]]:
    """Return {mount_point, read_bytes, direct_read_bytes, server_read_bytes, ...} of the NFS mount that holds `path`, None where it is none."""
    mount = mount_of(path)
    if not mount["fs_type"].startswith("nfs"):
        return None
    inside = False
    with open("/proc/self/mountstats", encoding="utf-8", errors="replace") as f:
        for line in f:
            words = line.split()
            if words[:1] == ["device"]:
                inside = len(words) > 4 and words[4] == mount["mount_point"]
            elif inside and words[:1] == ["bytes:"] and len(words) >= 7:
                names = ("read_bytes", "write_bytes", "direct_read_bytes", "direct_write_bytes", "server_read_bytes", "server_write_bytes")
                return dict(zip(names, map(int, words[1:7])), mount_point=mount["mount_point"])
    return None
