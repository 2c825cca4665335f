"""PCIe links: `lspci -D -vvv`, and `grep -H . .../current_link_speed ...` over sysfs.

Observations, labelled `address` (0000:41:00.0): pci.speed_rated and pci.speed (GT/s), pci.width_rated and pci.width (lanes),
pci.fatal_error and pci.nonfatal_error (1 or 0, from DevSta), pci.name, pci.serial and pci.part (text, vital product data).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, available, decode
from gates.text import Text

_HEAD = re.compile(r"^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.+)$")
_LINK = re.compile(r"^\s+(LnkCap|LnkSta):.*?Speed ([0-9.]{1,8}GT/s|\w{1,20})\b.*?Width x([0-9]{1,3})\b")
_EXPRESS = re.compile(r"^\s+Capabilities: \[[0-9a-f]+\] Express (?:\(v\d\) )?(\S.*)$")
_WITHOUT_LINK = "Root Complex"  # an integrated endpoint or an event collector hangs on no link
_NEEDED = ("DevSta", "LnkCap", "LnkSta")
LINK_UNTOLD = "link_untold"  # the code of a problem with one device: what another device tells of its own link stands
_STATUS = re.compile(r"^\s+DevSta:.*\bNonFatalErr([+-]) FatalErr([+-])")
_VPD = re.compile(r"^\s+\[(SN|PN)\] [^:]+: (.+)$")
_SYSFS = re.compile(r"^\S*/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(current|max)_link_(speed|width):(.*)$")
_FILES = frozenset(f"{which}_link_{what}" for which in ("current", "max") for what in ("speed", "width"))
_WHAT = {"speed": Text("speed", "速率"), "width": Text("width", "宽度")}
_LOAD = re.compile(r"^# load alive (before|after) reading: (yes|no)$")


def read_lspci(data: bytes) -> Reading:
    """Read the links of all devices of one host. `Capabilities: <access denied>` (not root) is a problem."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    address, opened, denied = "", False, "Capabilities: <access denied>" in text
    missing: dict[str, list[str]] = {}  # of each device with a link: the lines of its capability that were not read yet
    for line in text.splitlines():
        head, express = _HEAD.match(line), _EXPRESS.match(line)
        opened = bool(head) or (opened and bool(line.strip()))
        if head:
            address = head[1] if head[1].count(":") == 2 else f"0000:{head[1]}"
            found.see("pci.name", head[2].strip(), "text", address=address)
        elif mark := _LOAD.match(line):
            found.see(f"load.alive_{mark[1]}", mark[2], "text")
        elif address and express and not express[1].startswith(_WITHOUT_LINK):
            missing[address] = list(_NEEDED)
        elif address and (told := _detail(line, address, found)) in missing.get(address, ()):
            missing[address].remove(told)
    if denied:
        found.trouble("access_denied", "lspci was not allowed to read the capabilities: run it as root.", "lspci 无权读取设备能力：请以 root 运行。")
    if not address:
        found.trouble("unknown_shape", "No PCI device is named in this text.", "文本中没有任何 PCI 设备。")
    if opened and not denied:  # an empty line stands behind each device, the last one too
        found.trouble(LINK_UNTOLD, "The text ends within what it tells of {device}.", "文本在 {device} 的信息中途结束。", device=address)
    _links_whole(missing, found)
    return found.reading()


def _links_whole(missing: dict[str, list[str]], found: Collector) -> None:
    """Add the problem of each device whose link is told in part."""
    en = "The link of {device} is told in part: {lines} is missing. The text may have been cut."
    zh = "{device} 的链路信息不完整：缺少 {lines}，文本可能被截断。"
    for device, lines in missing.items():
        if lines:
            found.trouble(LINK_UNTOLD, en, zh, device=device, lines=", ".join(lines))


def _detail(line: str, address: str, found: Collector) -> str:
    """Read one line of a device; return which of the lines that a link needs it was, else an empty text."""
    link, status, vpd = _LINK.match(line), _STATUS.match(line), _VPD.match(line)
    if link:
        suffix = "_rated" if link[1] == "LnkCap" else ""
        speed, width = _number(link[2].removesuffix("GT/s")), Decimal(link[3])
        if speed is not None:
            found.see(f"pci.speed{suffix}", speed, "GT/s", address=address)
        elif width:  # without a lane there is no speed either: a virtual function, or a port with nothing behind it
            text = "{which} of {device} says {raw} as its speed.", "{device} 的 {which} 速率显示为 {raw}。"
            found.trouble(LINK_UNTOLD, *text, which=link[1], device=address, raw=link[2])
        found.see(f"pci.width{suffix}", width, "lanes", address=address)
        return link[1]
    if status:
        found.see("pci.nonfatal_error", Decimal(int(status[1] == "+")), "1", address=address)
        found.see("pci.fatal_error", Decimal(int(status[2] == "+")), "1", address=address)
        return "DevSta"
    if vpd and available(vpd[2]):
        found.see("pci.serial" if vpd[1] == "SN" else "pci.part", vpd[2].strip(), "text", address=address)
    return ""


def read_sysfs_link(data: bytes) -> Reading:
    """Read `path:value` lines of current_link_speed, current_link_width, max_link_speed, max_link_width."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    told: dict[str, set[str]] = {}
    for line in text.splitlines():
        match = _SYSFS.match(line.strip())
        if not match:
            continue
        address, which, what, raw = match.groups()
        told.setdefault(address, set()).add(f"{which}_link_{what}")
        value = _number(raw.strip().split(" ", 1)[0] if what == "speed" else raw.strip())
        if value is None or value <= 0 or (what == "speed" and not raw.strip().endswith(("GT/s", "GT/s PCIe"))):
            found.trouble(
                "not_a_number",
                "The link {what} of {address} reads {raw}.",
                "{address} 的链路{what}读数为 {raw}。",
                what=_WHAT[what],
                address=address,
                raw=raw,
            )
            continue
        found.see(f"pci.{what}{'_rated' if which == 'max' else ''}", value, "GT/s" if what == "speed" else "lanes", address=address)
    for address, files in told.items():
        for name in sorted(_FILES - files):
            found.absent(name, None, address=address)
    return found.reading()


def _number(raw: str) -> Decimal | None:
    return Decimal(raw) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", raw) else None
