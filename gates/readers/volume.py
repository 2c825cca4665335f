"""The volume that carries KV: `mdadm --detail [--export]`, `xfs_info`, `findmnt -J`.

Observations: md.level, md.state (text), md.devices, md.failed (1), md.chunk, md.size (B), md.member (text; labels `role`, `device`);
xfs.device (text), xfs.block, xfs.size, xfs.stripe_unit, xfs.stripe_width (B: xfs_info counts blocks, the block size turns them into bytes);
mount.source, mount.fstype, mount.options (text; label `target`).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, available, decode, load_json, once, part, rows
from gates.units import convert

_EXPORT = re.compile(r"^(MD_[A-Za-z0-9_]{1,80})=(.*)$")
_DETAIL = re.compile(r"^\s+([A-Za-z][A-Za-z ]{1,30}?) : (.+?)\s*$")
_MEMBER = re.compile(r"^\s+[0-9]+\s+[0-9]+\s+[0-9]+\s+([0-9]+|-)\s+(.+?)\s+(/dev/\S+)\s*$")
_PLACE = re.compile(r"^\s+(?:[0-9]+|-)\s+[0-9]+\s+[0-9]+\s+([0-9]+)\s+\S")  # a place of the array, empty (`removed`) or not
_CHUNK = re.compile(r"^([0-9]{1,9})([KM])$")
_NUMBER = re.compile(r"[0-9]{1,20}")
_XFS = re.compile(r"\b(bsize|blocks|sunit|swidth)=([0-9]{1,20})(?:\s+(blks))?")


def read_mdadm(data: bytes) -> Reading:
    """Read level, number and names of the members of one md array, in either form of `mdadm --detail`."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    exported = once(((match[1], match[2].strip()) for match in map(_EXPORT.match, text.splitlines()) if match), found)
    if exported:
        _exported(exported, found)
    elif text.startswith("/dev/"):
        _detail(text, found)
    else:
        found.trouble("unknown_shape", "This is neither form of mdadm --detail.", "不是 mdadm --detail 的任何一种格式。")
    return found.reading()


def _exported(fields: dict[str, str], found: Collector) -> None:
    found.text(fields, "MD_LEVEL", "md.level")
    devices = found.number(fields, "MD_DEVICES", "md.devices", "1")
    roles = [value for key, value in fields.items() if key.startswith("MD_DEVICE_") and key.endswith("_ROLE")]
    _every_place(devices, [role for role in roles if role.isdecimal()], found)
    for key in fields:
        if key.startswith("MD_DEVICE_") and key.endswith("_ROLE") and f"{key.removesuffix('_ROLE')}_DEV" not in fields:
            found.absent(f"{key.removesuffix('_ROLE')}_DEV", None)
    for key, value in fields.items():
        if key.startswith("MD_DEVICE_") and key.endswith("_DEV"):
            role = fields.get(f"{key.removesuffix('_DEV')}_ROLE", "")
            found.see("md.member", value, "text", role=role or "unknown", device=value)


def _detail(text: str, found: Collector) -> None:
    fields = once(((match[1].strip(), match[2]) for match in map(_DETAIL.match, text.splitlines()) if match), found)
    found.text(fields, "Raid Level", "md.level")
    found.text(fields, "State", "md.state")
    devices = found.number(fields, "Raid Devices", "md.devices", "1")
    found.number(fields, "Failed Devices", "md.failed", "1")
    size = _NUMBER.match(fields.get("Array Size", ""))
    if size:
        found.see("md.size", convert(Decimal(size[0]), "KiB", "B"), "B")  # mdadm counts in KiB
    else:
        found.absent("Array Size", fields.get("Array Size"))
    if "Chunk Size" in fields:
        chunk = _CHUNK.match(fields["Chunk Size"])
        if chunk:
            found.see("md.chunk", convert(Decimal(chunk[1]), f"{chunk[2]}iB", "B"), "B")
        else:
            found.absent("Chunk Size", fields["Chunk Size"])
    for member in filter(None, map(_MEMBER.match, text.splitlines())):
        found.see("md.member", member[3], "text", role=member[1], device=member[3])
    _every_place(devices, [place[1] for place in map(_PLACE.match, text.splitlines()) if place], found)


def _every_place(devices: Decimal | None, roles: list[str], found: Collector) -> None:
    """Hold the members against the number of places that the array has: each place is told once, filled or not."""
    if devices is not None and sorted(map(int, roles)) != list(range(int(min(devices, Decimal(10_000))))):
        text = "The array has {n} places; told are: {r}.", "阵列有 {n} 个位置；已报告：{r}。"
        found.trouble("rows_incomplete", *text, n=devices, r=", ".join(roles) or "-")


def read_xfs_info(data: bytes) -> Reading:
    """Read block size, size and stripe geometry of one XFS, in bytes. mkfs.xfs prints the same form."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    section, device = "", ""
    fields: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        name = line.partition("=")[0].strip()
        if name.startswith("meta-data"):
            if device:
                found.trouble("duplicate", "{what} stands twice.", "{what} 重复出现。", what="meta-data")
            device = line.partition("=")[2].split(" ", 1)[0]
        section = name.split(" ", 1)[0] or section
        if section == "data":
            fields |= {m[1]: (m[2], m[3] or "") for m in _XFS.finditer(line)}
    if not device or "bsize" not in fields:
        found.trouble("unknown_shape", "The text holds no section `data` with a block size.", "文本中没有带块大小的 data 段。")
        return found.reading()
    block = Decimal(fields["bsize"][0])
    found.see("xfs.device", device, "text")
    found.see("xfs.block", block, "B")
    if block <= 0:
        found.absent("bsize", fields["bsize"][0])
        return found.reading()
    marked = fields.get("swidth", ("", ""))[1] == "blks"
    for key, quantity in (("blocks", "xfs.size"), ("sunit", "xfs.stripe_unit"), ("swidth", "xfs.stripe_width")):
        if key not in fields:
            found.absent(key, None)
        elif key != "blocks" and not marked:
            found.trouble("unknown_unit", "{key} is not marked as blocks.", "{key} 未注明以块为单位。", key=key)
        else:
            found.see(quantity, convert(Decimal(fields[key][0]), "blocks", "B", block=block), "B")
    return found.reading()


def read_findmnt(data: bytes) -> Reading:
    """Read source, file system and options of each mount of `findmnt -J`, nested ones too."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    if not isinstance(part(document, "filesystems"), list):
        found.trouble("unknown_shape", "There is no list `filesystems`.", "没有列表 filesystems。")
        return found.reading()
    _mounts(document, "filesystems", found, 0)
    return found.reading()


def _mounts(holder: Any, key: str, found: Collector, depth: int) -> None:
    for row in rows(holder, key):
        target = row.get("target")
        if not isinstance(target, str) or not available(target):
            found.absent("target", target)
            continue
        for name in ("source", "fstype", "options"):
            found.text(row, name, f"mount.{name}", target=target)
        if depth < 100:
            _mounts(row, "children", found, depth + 1)
