"""PCIe links: `lspci -D -vvv`, and `grep -H . .../current_link_speed ...` over sysfs.

Observations, labelled `address` (0000:41:00.0): pci.speed_rated and pci.speed (GT/s), pci.width_rated and pci.width (lanes),
pci.fatal_error and pci.nonfatal_error (1 or 0, from DevSta), pci.name, pci.serial and pci.part (text, vital product data).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, available, decode

_HEAD = re.compile(r"^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.+)$")
_LINK = re.compile(r"^\s+(LnkCap|LnkSta):.*?Speed ([0-9.]{1,8})GT/s.*?Width x([0-9]{1,3})\b")
_STATUS = re.compile(r"^\s+DevSta:.*\bNonFatalErr([+-]) FatalErr([+-])")
_VPD = re.compile(r"^\s+\[(SN|PN)\] [^:]+: (.+)$")
_SYSFS = re.compile(r"^\S*/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(current|max)_link_(speed|width):(.*)$")
_LOAD = re.compile(r"^# load alive (before|after) reading: (yes|no)$")


def read_lspci(data: bytes) -> Reading:
    """Read the links of all devices of one host. `Capabilities: <access denied>` (not root) is a problem."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    address, denied, heads = "", False, 0
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            address = head[1] if head[1].count(":") == 2 else f"0000:{head[1]}"
            heads += 1
            found.see("pci.name", head[2].strip(), "text", address=address)
        elif mark := _LOAD.match(line):
            found.see(f"load.alive_{mark[1]}", mark[2], "text")
        elif address:
            denied = denied or "Capabilities: <access denied>" in line
            _detail(line, address, found)
    if denied:
        found.trouble("access_denied", "lspci was not allowed to read the capabilities: run it as root.", "lspci 无权读取设备能力：请以 root 运行。")
    if not heads:
        found.trouble("unknown_shape", "No PCI device is named in this text.", "文本中没有任何 PCI 设备。")
    return found.reading()


def _detail(line: str, address: str, found: Collector) -> None:
    link, status, vpd = _LINK.match(line), _STATUS.match(line), _VPD.match(line)
    if link:
        suffix = "_rated" if link[1] == "LnkCap" else ""
        speed = _number(link[2])
        if speed is not None:
            found.see(f"pci.speed{suffix}", speed, "GT/s", address=address)
        found.see(f"pci.width{suffix}", Decimal(link[3]), "lanes", address=address)
    elif status:
        found.see("pci.nonfatal_error", Decimal(int(status[1] == "+")), "1", address=address)
        found.see("pci.fatal_error", Decimal(int(status[2] == "+")), "1", address=address)
    elif vpd and available(vpd[2]):
        found.see("pci.serial" if vpd[1] == "SN" else "pci.part", vpd[2].strip(), "text", address=address)


def read_sysfs_link(data: bytes) -> Reading:
    """Read `path:value` lines of current_link_speed, current_link_width, max_link_speed, max_link_width."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    for line in text.splitlines():
        match = _SYSFS.match(line.strip())
        if not match:
            continue
        address, which, what, raw = match.groups()
        value = _number(raw.strip().split(" ", 1)[0] if what == "speed" else raw.strip())
        if value is None or value <= 0 or (what == "speed" and not raw.strip().endswith(("GT/s", "GT/s PCIe"))):
            found.trouble(
                "not_a_number",
                "The link {what} of {address} reads {raw}.",
                "{address} 的链路 {what} 读数为 {raw}。",
                what=what,
                address=address,
                raw=raw,
            )
            continue
        found.see(f"pci.{what}{'_rated' if which == 'max' else ''}", value, "GT/s" if what == "speed" else "lanes", address=address)
    return found.reading()


def _number(raw: str) -> Decimal | None:
    return Decimal(raw) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", raw) else None
