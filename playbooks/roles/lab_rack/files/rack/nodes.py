"""Block devices as files below the rack: /dev/NAME with a little content, /dev/disk/by-id, and /sys/class/block with identity and holders."""

import hashlib
import os
import shutil
import sys
from typing import Any, Dict, List

SIZE = 1 << 18  # bytes of content that stand for the whole device


def folder() -> str:
    """Return the folder of the zipapp."""
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def path(device: str, top: str = "") -> str:
    """Return the file that stands for a device such as /dev/nvme0n1."""
    return os.path.join(top or folder(), device.lstrip("/"))


def namespaces(drive: Dict[str, Any]) -> List[str]:
    """Return the names of a drive's namespaces: the first by the name that the description has, `namespaces` of them in all."""
    return [drive["namespace"], *("%sn%d" % (drive["controller"], n) for n in range(2, int(drive.get("namespaces", 1)) + 1))]


def show(name: str, wwid: str, *, used: bool = False, partitions: int = 0, top: str = "") -> bool:
    """Let a namespace and its partitions be there, with data when it is `used`; what is there already stays. Tell whether anything changed."""
    block, device, changed = os.path.join(top or folder(), "sys/class/block"), path("/dev/" + name, top), False
    for part in range(partitions + 1):
        inner = "%sp%d" % (name, part) if part else ""
        place = os.path.join(block, name, inner)
        if not os.path.isdir(os.path.join(place, "holders")):
            os.makedirs(os.path.join(place, "holders"))
            changed = True
        if part and not os.path.islink(os.path.join(block, inner)):
            os.symlink(os.path.join(name, inner), os.path.join(block, inner))
            _write(os.path.join(place, "partition"), b"%d\n" % part)
        if not os.path.exists(path("/dev/" + (inner or name), top)):
            os.makedirs(os.path.dirname(device), exist_ok=True)
            _write(path("/dev/" + (inner or name), top), _content(wwid) if used else bytes(SIZE))
            changed = True
    link = path("/dev/disk/by-id/nvme-" + wwid, top)
    if not os.path.islink(link):
        _write(os.path.join(block, name, "wwid"), wwid.encode() + b"\n")
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink("../../" + name, link)
        changed = True
    return changed


def hide(name: str, top: str = "") -> None:
    """Let a namespace and its partitions be gone."""
    block, by_id = os.path.join(top or folder(), "sys/class/block"), path("/dev/disk/by-id", top)
    for inner in [*(n for n in os.listdir(os.path.join(block, name)) if n.startswith(name + "p")), name]:
        if os.path.islink(os.path.join(block, inner)):
            os.unlink(os.path.join(block, inner))
        os.unlink(path("/dev/" + inner, top))
    shutil.rmtree(os.path.join(block, name))
    for link in os.listdir(by_id):
        if not os.path.exists(os.path.join(by_id, link)):
            os.unlink(os.path.join(by_id, link))


def blank(device: str) -> None:
    """Let a device and its partitions hold nothing but zeros."""
    _write(path(device), bytes(SIZE))


def holders(device: str) -> str:
    """Return the folder that lists what stands on a device."""
    return os.path.join(folder(), "sys/class/block", os.path.basename(device), "holders")


def local(serial: str, name: str) -> str:
    """Return the WWID of a local drive's namespace."""
    return "eui.%s-%s" % (serial, name.rpartition("n")[2])


def is_local(name: str, top: str = "") -> bool:
    """Tell whether a device is a namespace of a local drive, and none of an array."""
    try:
        with open(os.path.join(top or folder(), "sys/class/block", name, "wwid"), encoding="utf-8") as f:
            return f.read().startswith("eui.")
    except OSError:
        return False


def shown(top: str = "") -> List[str]:
    """Return the whole devices that are there."""
    block = os.path.join(top or folder(), "sys/class/block")
    return [name for name in os.listdir(block) if not os.path.islink(os.path.join(block, name))] if os.path.isdir(block) else []


def _content(seed: str) -> bytes:
    """Return data that is no block of zeros anywhere."""
    return hashlib.sha256(seed.encode()).digest() * (SIZE // 32)


def _write(where: str, data: bytes) -> None:
    with open(where, "wb") as f:
        f.write(data)
