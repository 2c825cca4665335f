"""Whether a zip is nothing but its files: no byte of it may be changed unseen, and no two programs may read it differently.

A zip describes each file twice, before its data and in the directory at its end, and programs differ in which of the two they believe and in what
they skip. So both must say the same, and nothing may lie before, between or behind the files. What stands in the directory alone (who packed it,
rights) is no evidence; but of a bundle of ours it is the same for every file, so a single one that differs was changed.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from gates.bundle_form import Unreadable

# Signature, version needed, flags, method, time, date, CRC-32, packed, unpacked, length of name, of extra (PKWARE APPNOTE 4.3.7, 4.3.12, 4.3.16)
_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_SIZES = struct.Struct("<3L")
_DESCRIBED_BEHIND = 8  # flag: CRC and sizes follow the data
_ZIP64, _ZIP64_COUNT = 0xFFFFFFFF, 0xFFFF
_LARGE = 2 * 10**9  # bytes of one file; packers prepare for ZIP64 from a little below 2 GiB on
_LARGEST_DIRECTORY = 64 * 1024**2
_LOOKED_INTO = 4 * 1024**2  # bytes of a file whose data are unpacked and packed once more
_LEVEL = 6  # app.evidence.bundles
_ENCRYPTED = 1
_OURS = (0x0314, 20, 0, 33, 0, 0o644 << 16, b"")  # app.evidence.bundles: packed by Unix, version 2.0, at 1980-01-01, rw-r--r--, no extra


@dataclass(frozen=True)
class _Entry:
    """One file as the directory describes it."""

    name: bytes
    described: tuple[int, ...]  # version needed, flags, method, time, date
    sizes: tuple[int, int, int]  # CRC-32, packed, unpacked
    offset: int
    stamp: tuple[object, ...]


def check_layout(file: BinaryIO) -> None:
    """Raise Unreadable unless a zip is its files and nothing else. Very large ones are described by other records, which are left to the reader."""
    size = file.seek(0, os.SEEK_END)
    file.seek(size - _END.size)
    _, disk, begins_on, here, count, length, begin, comment = _END.unpack(file.read(_END.size))
    if count == _ZIP64_COUNT or _ZIP64 in (length, begin):
        return
    if disk or begins_on or here != count or comment or begin + length + _END.size != size or length > _LARGEST_DIRECTORY:
        raise _odd("its last record does not fit", "末尾记录不符")
    file.seek(begin)
    entries = _directory(file.read(length), count)
    if any(_ZIP64 in (*e.sizes, e.offset) for e in entries):
        return
    at = 0
    for entry in sorted(entries, key=lambda e: e.offset):
        if entry.offset != at:
            raise _odd(f"something lies before {_shown(entry)}, or is in its place", f"{_shown(entry)} 之前或其位置另有内容")
        at = _end_of(file, entry)
        _check_data(file, entry)
    if at != begin:
        raise _odd("something lies between its files and its directory", "文件与目录之间另有内容")
    _check_stamps(entries)


def _directory(data: bytes, count: int) -> list[_Entry]:
    entries, at = [], 0
    for _ in range(count):
        if at + _ENTRY.size > len(data):
            raise _odd("its directory is cut off", "目录不完整")
        mark, made, needed, flags, method, time, date, *numbers = _ENTRY.unpack_from(data, at)
        crc, packed, unpacked, name, extra, comment, disk, inner, outer, offset = numbers
        at += _ENTRY.size
        words, more = data[at : at + name], data[at + name : at + name + extra]
        at += name + extra + comment
        if mark != b"PK\x01\x02" or comment or disk or inner > 1 or at > len(data):
            raise _odd("its directory holds what no bundle has", "目录含有证据包不应有的内容")
        stamp = (made, needed, time, date, inner, outer, more)
        entries.append(_Entry(words, (needed, flags, method, time, date), (crc, packed, unpacked), offset, stamp))
    if at != len(data):
        raise _odd("its directory is longer than its files", "目录长于文件数")
    return entries


def _end_of(file: BinaryIO, entry: _Entry) -> int:
    """Return where a file ends, after comparing the description before its data with that of the directory."""
    file.seek(entry.offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size:
        raise _odd(f"{_shown(entry)} is cut off", f"{_shown(entry)} 不完整")
    mark, *described, crc, packed, unpacked, name, extra = _LOCAL.unpack(head)
    behind = bool(entry.described[1] & _DESCRIBED_BEHIND)
    sizes = (0, 0, 0) if behind and not crc | packed | unpacked else entry.sizes
    if entry.sizes[2] > _LARGE and packed == unpacked == _ZIP64:
        described[0], sizes = entry.described[0], (entry.sizes[0], _ZIP64, _ZIP64)
    if mark != b"PK\x03\x04" or tuple(described) != entry.described or (crc, packed, unpacked) != sizes or file.read(name) != entry.name:
        raise _odd(f"it describes {_shown(entry)} in two ways", f"对 {_shown(entry)} 的两处描述不一致")
    end = int(entry.offset + _LOCAL.size + name + extra + entry.sizes[1])
    if not behind:
        return end
    file.seek(end)
    said, wanted = file.read(4 + _SIZES.size), _SIZES.pack(*entry.sizes)
    for prefix in (b"PK\x07\x08", b""):
        if said.startswith(prefix + wanted):
            return end + len(prefix) + _SIZES.size
    raise _odd(f"it describes {_shown(entry)} in two ways", f"对 {_shown(entry)} 的两处描述不一致")


def _check_data(file: BinaryIO, entry: _Entry) -> None:
    """Compare the end of a file's packed data with the end of what it unpacks to: readers of zips stop before they look at the last bits.

    Up to 7 bits behind the end are filling. They show where packing the data anew gives the same bytes but for the last.
    """
    crc, size, unpacked = entry.sizes
    if entry.described[2] != zipfile.ZIP_DEFLATED or unpacked > _LOOKED_INTO or entry.described[1] & _ENCRYPTED:
        return
    file.seek(entry.offset + _LOCAL.size - 4)
    name, extra = struct.unpack("<2H", file.read(4))
    file.seek(name + extra, os.SEEK_CUR)
    packed, inflate = file.read(size), zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = inflate.decompress(packed, unpacked + 1)
        whole = len(data) == unpacked and zlib.crc32(data) == crc and inflate.eof and not inflate.unused_data
    except zlib.error:
        whole = False
    if whole:
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        again = deflate.compress(data) + deflate.flush()
        whole = again == packed or again[:-1] != packed[:-1]
    if not whole:
        raise _odd(f"the data of {_shown(entry)} do not end as they should", f"{_shown(entry)} 的数据结尾不符")


def _check_stamps(entries: Sequence[_Entry]) -> None:
    odd = [entry for entry in entries if entry.stamp != _OURS]
    if len(odd) == 1 and len(entries) > 2:
        raise _odd(f"{_shown(odd[0])} was packed otherwise than every other file", f"{_shown(odd[0])} 的打包信息与其他文件不同")


def _shown(entry: _Entry) -> str:
    return repr(entry.name.decode("utf-8", "replace"))[:200]


def _odd(en: str, zh: str) -> Unreadable:
    return Unreadable(f"The zip was changed since it was packed, or was packed in parts: {en}.", f"zip 自打包后被改动，或由多部分拼成：{zh}。")
