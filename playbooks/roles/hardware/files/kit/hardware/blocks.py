"""Block devices: which one a name means today, what it is by itself, what it holds, and who uses it.

The kernel numbers drives anew at each boot, so a name such as /dev/nvme1n1 is good for one run of the kit and never for its record: there stand
the identity that the device reports of itself (`ident`) and the UUIDs of what was made on it.
"""

import errno
import hashlib
import mmap
import os
import re
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional

from hardware.host import Host, Refused

SAMPLES, HEAD, BLOCK = 64, 16, 4096  # blocks that are read of a device at most, those of them at its very beginning, and bytes of each
_IDENTS = ("wwid", "device/wwid", "serial")  # NVMe, SCSI, virtio
_NO_DRIVE = re.compile(r"(loop|ram|zram|sr|fd|nbd)\d+$|nvme\d+c\d+n\d+")  # the last: a hidden path of a namespace, which nobody can open
_NUMBERED = re.compile(r"/dev/(nvme\d+n\d+|(s|v|xv|h)d[a-z]+)(p?\d+)?$")


def node(host: Host, device: str, *, real: bool = False) -> str:
    """Return the path at which a device can be opened: itself, or its stand-in below the simulated rack."""
    return device if real or not device.startswith("/dev/") else host.dev + device[len("/dev") :]


def resolved(host: Host, device: str, *, real: bool = False) -> str:
    """Return the kernel's own name of a device today (/dev/nvme1n1 for /dev/disk/by-id/...); one that is not there keeps the name that it has."""
    top, found = os.path.realpath("/dev" if real else host.dev), os.path.realpath(node(host, device, real=real))
    return "/dev" + found[len(top) :] if found.startswith(top + "/") else device


def is_numbered(device: str) -> bool:
    """Tell whether a name is one that the kernel gives by order of appearance, so that another drive may have it after a boot."""
    return _NUMBERED.match(device) is not None


def drives(host: Host) -> List[str]:
    """Return every block device of this host that could be opened, partitions too, without loop and memory devices."""
    try:
        names = os.listdir("%s/class/block" % host.sys)
    except OSError:
        return []
    found = ["/dev/" + name.replace("!", "/") for name in sorted(names) if not _NO_DRIVE.match(name)]
    return [device for device in found if os.path.exists(node(host, device))]


def ident(host: Host, device: str) -> Optional[str]:
    """Return how a device calls itself (its WWID, of a partition with the number of it), or None where it does not say."""
    folder = "%s/class/block/%s" % (host.sys, os.path.basename(resolved(host, device)))
    part = host.text(folder + "/partition")
    for leaf in _IDENTS:
        found = host.text("%s/%s" % (folder + "/.." if part else folder, leaf))
        if found:
            return "%s part %s" % (found, part) if part else found
    return None


def by_ident(host: Host, wanted: str) -> List[str]:
    """Return the devices that call themselves so."""
    return [device for device in drives(host) if ident(host, device) == wanted]


def partitions(host: Host, device: str) -> List[str]:
    """Return the partitions of a whole device."""
    folder = "%s/class/block/%s" % (host.sys, os.path.basename(device))
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return ["/dev/" + name for name in sorted(names) if os.path.exists("%s/%s/partition" % (folder, name))]


@contextmanager
def opened(host: Host, device: str, *, real: bool = False, flags: int = 0) -> Iterator[int]:
    """Give a descriptor for reading. Raises Refused where the device cannot be opened: nothing is known of it then."""
    try:
        descriptor = os.open(node(host, device, real=real), os.O_RDONLY | os.O_CLOEXEC | flags)
    except OSError as error:
        raise Refused(
            "{0} cannot be opened ({1}), so what it holds cannot be told, and it is left alone.",
            "{0} 无法打开（{1}），无法判断其内容，因此不作任何改动。",
            device,
            error.strerror,
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def tags_of(host: Host, device: str, *, real: bool = False) -> Optional[Dict[str, str]]:
    """Return what a device holds as blkid names it ({TYPE, LABEL, UUID, PTTYPE, ...}), or None when it is blank.

    blkid ends with 2 for a blank device, and for one that it cannot open as well: only one that can be read may count as blank.
    """
    with opened(host, device, real=real) as descriptor:
        try:
            readable = len(os.read(descriptor, BLOCK))
        except OSError as error:
            raise Refused(
                "{0} cannot be read ({1}), so what it holds cannot be told, and it is left alone.",
                "{0} 无法读取（{1}），无法判断其内容，因此不作任何改动。",
                device,
                error.strerror,
            ) from None
    if not readable:
        raise Refused(
            "{0} has not one byte that could be read, so what it holds cannot be told, and it is left alone.",
            "{0} 没有任何可读字节，无法判断其内容，因此不作任何改动。",
            device,
        )
    code, out, err = host.ask(["blkid", "-p", "-o", "export", device], real=real)
    if code == 2 and not err:
        return None
    if code:
        raise Refused(
            "What {0} holds cannot be told, so it is left alone: blkid ended with {1}: {2}",
            "无法判断 {0} 的内容，因此不作任何改动：blkid 退出码 {1}：{2}",
            device,
            code,
            err,
        )
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)


def signature(tags: Optional[Dict[str, str]]) -> Optional[str]:
    """Return tags in one line for a sentence (`LABEL=kv TYPE=xfs`), or None for a blank device."""
    if tags is None:
        return None
    rows = ["%s=%s" % (key, tags[key]) for key in ("LABEL", "TYPE", "PTTYPE") if key in tags]
    return " ".join(rows) or "something that blkid does not name"


def users(host: Host, device: str) -> List[str]:
    """Return what uses a whole device or a partition of it, a few words each: RAID, LVM and mapper devices, mounts, swap, exclusive holders.

    Raises Refused where that cannot be told.
    """
    disk = resolved(host, device)
    names = [disk, *partitions(host, disk)]
    numbers, found = [], []
    for name in names:
        folder = "%s/class/block/%s" % (host.sys, os.path.basename(name))
        numbers.append(host.text(folder + "/dev"))
        if os.path.isdir(folder + "/holders"):
            found += ["%s on %s" % (holder, name) for holder in sorted(os.listdir(folder + "/holders"))]
    for row in _mounts(host):
        source = str(row.get("source") or "").partition("[")[0]
        if (source.startswith("/dev/") and resolved(host, source) in names) or (row.get("maj:min") and row["maj:min"] in numbers):
            found.append("the mount %s" % row["target"])
    for line in (host.text(host.proc + "/swaps") or "").splitlines()[1:]:
        if resolved(host, line.split()[0]) in names:
            found.append("swap on %s" % line.split()[0])
    return found or _held(host, disk)


def samples(host: Host, device: str) -> Dict[int, str]:
    """Return what stands in SAMPLES blocks of a device at most, its first HEAD and others spread up to its last: {offset: SHA-256}.

    A block of nothing but 0x00 or 0xff has an empty text. Read past the page cache, which would show what was there before. Raises Refused where one
    cannot be read.
    """
    found = {}
    with _direct(host, device) as descriptor, mmap.mmap(-1, BLOCK) as page:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size < BLOCK:
            raise Refused(
                "{0} has {1} bytes to read, so whether it is blank cannot be told.", "{0} 可读字节数为 {1}，无法判断是否为空白。", device, size
            )
        spread = SAMPLES - HEAD
        places = {(size - BLOCK) * n // (spread - 1) // BLOCK * BLOCK for n in range(spread)} | {n * BLOCK for n in range(HEAD)}
        for at in sorted(place for place in places if place + BLOCK <= size):
            try:
                read = os.preadv(descriptor, [page], at)
            except OSError as error:
                raise Refused(
                    "{0} cannot be read at byte {1} ({2}), so whether it is blank cannot be told.",
                    "{0} 在字节 {1} 处无法读取（{2}），无法判断是否为空白。",
                    device,
                    at,
                    error.strerror,
                ) from None
            data = page[:read]
            found[at] = "" if not data.strip(b"\0") or not data.strip(b"\xff") else hashlib.sha256(data).hexdigest()
    return found


@contextmanager
def _direct(host: Host, device: str) -> Iterator[int]:
    """Open for reading past the page cache; where a stand-in's file system has no O_DIRECT, without what the cache holds of it."""
    try:
        descriptor = os.open(node(host, device), os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise Refused(
                "{0} cannot be opened ({1}), so whether it is blank cannot be told.",
                "{0} 无法打开（{1}），无法判断是否为空白。",
                device,
                error.strerror,
            ) from None
        with opened(host, device) as plain:
            os.posix_fadvise(plain, 0, 0, os.POSIX_FADV_DONTNEED)
            yield plain
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mounts(host: Host) -> List[Dict[str, str]]:
    code, out, err = host.ask(["findmnt", "-J", "-l", "-o", "SOURCE,TARGET,MAJ:MIN"])
    if code not in (0, 1) or (code == 1 and err):  # 1 with nothing said: there is no mount
        raise Refused("What is mounted cannot be told: findmnt ended with {0}: {1}", "无法判断当前挂载情况：findmnt 退出码 {0}：{1}", code, err)
    if not out.strip():
        return []
    rows: List[Dict[str, str]] = (host.json(["findmnt", "-J", "-l", "-o", "SOURCE,TARGET,MAJ:MIN"]) or {}).get("filesystems", [])
    return rows


def _held(host: Host, disk: str) -> List[str]:
    """Ask the kernel itself: an exclusive open of a device fails while anything holds it or a partition of it, whatever that is."""
    try:
        os.close(os.open(node(host, disk), os.O_RDONLY | os.O_CLOEXEC | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return ["something that the kernel lets hold it exclusively"]
        raise Refused(
            "{0} cannot be opened ({1}), so who uses it cannot be told, and it is left alone.",
            "{0} 无法打开（{1}），无法判断被谁占用，因此不作任何改动。",
            disk,
            error.strerror,
        ) from None
    return []
