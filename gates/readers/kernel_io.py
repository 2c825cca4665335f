"""What the kernel counted: /proc/diskstats, /proc/self/mountstats (NFS), and `fincore --json --bytes`.

Observations: disk.read_bytes, disk.write_bytes (B), disk.reads, disk.writes (1), disk.busy (ms; label `device`); nfs.read_bytes,
nfs.direct_read_bytes, nfs.server_read_bytes, nfs.server_write_bytes (B; label `mount`); cache.resident, cache.size (B), cache.pages (1;
label `file`). A sector of diskstats is 512 B whatever the drive's own is (kernel documentation, block/stat).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, decode, load_json, part, rows
from gates.units import convert

SECTOR = Decimal(512)
_FIELDS = (14, 18, 20)  # before 4.18, with discards, with flushes
_DEVICE = re.compile(r"^device (\S+) mounted on (\S+) with fstype (\S+)(?: statvers=(\S+))?$")
_BYTES = ("read_bytes", "write_bytes", "direct_read_bytes", "direct_write_bytes", "server_read_bytes", "server_write_bytes")


def read_diskstats(data: bytes) -> Reading:
    """Read the counters of each block device. A line with another number of fields is version drift, not guessed at."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    seen: set[str] = set()
    for line in text.splitlines():
        cells = line.split()
        if not cells:
            continue
        numbers = [*cells[:2], *cells[3:]]
        if len(cells) not in _FIELDS or not all(re.fullmatch(r"[0-9]{1,20}", cell) for cell in numbers):
            found.trouble(
                "unknown_shape",
                "This line has not the fields of diskstats that are known: {line}",
                "该行字段与已知 diskstats 格式不符：{line}",
                line=line,
            )
            continue
        device = cells[2]
        if device in seen:
            found.trouble("duplicate", "The device {device} stands twice.", "设备 {device} 重复出现。", device=device)
        seen.add(device)
        found.see("disk.reads", Decimal(cells[3]), "1", device=device)
        found.see("disk.read_bytes", convert(Decimal(cells[5]), "blocks", "B", block=SECTOR), "B", device=device)
        found.see("disk.writes", Decimal(cells[7]), "1", device=device)
        found.see("disk.write_bytes", convert(Decimal(cells[9]), "blocks", "B", block=SECTOR), "B", device=device)
        found.see("disk.busy", Decimal(cells[12]), "ms", device=device)
    return found.reading()


def read_mountstats(data: bytes) -> Reading:
    """Read the byte counters of each NFS mount. `server` bytes went over the wire; `read` bytes may have come from the page cache."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    mount, waiting = "", False
    for line in text.splitlines():
        head = _DEVICE.match(line.strip())
        if head:
            if waiting:
                found.absent("bytes", None, mount=mount)
            mount, waiting = (head[2], True) if head[3].startswith("nfs") and head[3] != "nfsd" else ("", False)
            if mount:
                found.see("nfs.source", head[1], "text", mount=mount)
                found.see("nfs.statvers", head[4] or "unknown", "text", mount=mount)
        elif mount and line.strip().startswith("bytes:"):
            waiting = False
            cells = line.split()[1:]
            if len(cells) != 8 or not all(re.fullmatch(r"[0-9]{1,20}", cell) for cell in cells):
                found.trouble("unknown_shape", "The byte counters of {mount} are not eight numbers.", "{mount} 的字节计数不是八个数字。", mount=mount)
                continue
            for name, raw in zip(_BYTES, cells, strict=False):
                found.see(f"nfs.{name}", Decimal(raw), "B", mount=mount)
    if waiting:
        found.absent("bytes", None, mount=mount)
    if not found.observations and not found.problems:
        found.trouble("nothing_found", "The text names no NFS mount.", "文本中没有 NFS 挂载。")
    return found.reading()


def read_fincore(data: bytes) -> Reading:
    """Read how much of each file is in the page cache. Sizes such as `4K` are rounded by the tool and refused: run it with --bytes."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    files = part(document, "fincore")
    if not isinstance(files, list):
        found.trouble("unknown_shape", "There is no list `fincore`.", "没有列表 fincore。")
        return found.reading()
    for row in rows(files):
        name = row.get("file")
        if not isinstance(name, str) or not name.strip():
            found.absent("file", name)
            continue
        rounded = [key for key in ("res", "size") if isinstance(row.get(key), str) and re.fullmatch(r"[0-9.]+[BKMGTPE]", row[key].strip())]
        if rounded:
            found.trouble(
                "unknown_unit",
                "{key} of {file} is rounded ({raw}): run fincore with --bytes.",
                "{file} 的 {key} 为约数（{raw}）：请以 --bytes 运行 fincore。",
                key=rounded[0],
                file=name,
                raw=row[rounded[0]],
            )
            continue
        resident = found.number(row, "res", "cache.resident", "B", file=name)
        size = found.number(row, "size", "cache.size", "B", file=name)
        found.number(row, "pages", "cache.pages", "1", file=name)
        if resident is not None and size is not None and resident > size + 2**21:  # a partial last page counts whole; huge pages too
            found.trouble("impossible_value", "More of {file} is resident than it holds.", "{file} 的驻留量超过文件大小。", file=name)
    return found.reading()
