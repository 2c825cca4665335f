"""`dmidecode -t 1,4,17,127` as text: the machine's own identity, its processors and its memory modules.

Observations: system.product, system.serial, system.maker, system.version (text);
cpu.model (text; labels `socket`, `handle`), cpu.cores, cpu.cores_enabled, cpu.threads (1);
memory.size (B; labels `locator`, `handle`), memory.speed (1/s transfers), memory.part. A handle is a structure's own number: a locator may stand
for one slot of each socket.
An empty processor socket (`Unpopulated`) is no processor and no problem.
dmidecode's GB are 1024**3 bytes. `No Module Installed` is an empty slot, not a problem; a module of `Unknown` size or speed is one (MODULE).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, available, decode

_FIELD = re.compile(r"^\t([^\t:][^:]*): ?(.*)$")
_SIZE = re.compile(r"^([0-9]{1,9}) (kB|MB|GB|TB)$")
_SPEED = re.compile(r"^([0-9]{1,6}) (?:MT/s|MHz)$")
_HANDLE = re.compile(r"^Handle (0x[0-9A-Fa-f]{1,8}), DMI type \d{1,3}\b", re.MULTILINE)
END = "End Of Table"  # type 127, which every table ends with (SMBIOS reference specification): without it nobody knows whether a module was cut off
MODULE = "memory_unknown"  # the code of a problem with one memory module: nothing about the machine's own identity
_BYTES = {"kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


def read_dmidecode(data: bytes) -> Reading:
    """Read the system section and every memory module."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        handle = number[1] if (number := _HANDLE.search(block)) else ""
        titles = [line for line in lines if line and not line.startswith(("\t", "#", "Handle "))]
        fields = {match[1]: match[2].strip() for match in map(_FIELD.match, lines) if match}
        if "System Information" in titles:
            for key, quantity in (("Product Name", "system.product"), ("Serial Number", "system.serial"), ("Manufacturer", "system.maker")):
                found.text(fields, key, quantity)
            if available(fields.get("Version", "")):
                found.see("system.version", fields["Version"], "text")
        elif "Processor Information" in titles:
            _processor(fields, handle, found)
        elif "Memory Device" in titles:
            _module(fields, handle, found)
    if found.observations and not re.search(rf"^{END}$", text, re.MULTILINE):
        text_en = "The text does not reach the end of the table: it was cut, or dmidecode was not asked for type 127 too (-t 1,4,17,127)."
        found.trouble("truncated", text_en, "文本未到表尾：可能被截断，或 dmidecode 未同时查询类型 127（-t 1,4,17,127）。")
    return found.reading()


def _processor(fields: dict[str, str], handle: str, found: Collector) -> None:
    socket, status = fields.get("Socket Designation", ""), fields.get("Status", "")
    if status.startswith("Unpopulated"):
        return
    found.text(fields, "Version", "cpu.model", socket=socket, handle=handle)
    for key, quantity in (("Core Count", "cpu.cores"), ("Core Enabled", "cpu.cores_enabled"), ("Thread Count", "cpu.threads")):
        if key in fields:
            found.number(fields, key, quantity, "1", socket=socket, handle=handle)
    if not status.endswith("Enabled"):
        words = "The processor in {socket} says {raw} as its status.", "{socket} 的处理器状态显示为 {raw}。"
        found.trouble("cpu_not_enabled", *words, socket=socket or "?", raw=status or "''")


def _module(fields: dict[str, str], handle: str, found: Collector) -> None:
    locator, raw = fields.get("Locator", ""), fields.get("Size", "")
    labels = {"locator": locator, "handle": handle}
    if raw == "No Module Installed":
        found.see("memory.size", Decimal(0), "B", **labels)
        return
    size, speed = _SIZE.match(raw), _SPEED.match(fields.get("Speed", ""))
    if size is None:
        _untold("Size", raw, locator, found)
        return
    found.see("memory.size", Decimal(size[1]) * _BYTES[size[2]], "B", **labels)
    if speed is not None:
        found.see("memory.speed", Decimal(speed[1]), "MT/s", **labels)
    else:
        _untold("Speed", fields.get("Speed", ""), locator, found)
    if available(fields.get("Part Number", "")):
        found.see("memory.part", fields["Part Number"], "text", **labels)


def _untold(key: str, raw: str, locator: str, found: Collector) -> None:
    words = "The memory module {locator} says {raw} as its {key}.", "内存条 {locator} 的 {key} 显示为 {raw}。"
    found.trouble(MODULE, *words, locator=locator or "?", raw=raw or "''", key=key)
