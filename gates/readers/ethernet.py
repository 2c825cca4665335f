"""Ethernet interfaces: `ethtool IF`, `ethtool -i IF`, `ip -j -s link show`.

Observations, labelled `interface`: net.speed and net.speed_rated (bit/s), net.link (yes, no), net.duplex; net.driver, net.firmware, net.bus;
net.mtu (B), net.rx_errors, net.tx_errors (1), net.state (text).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, available, decode, load_json, once, part, rows

_HEADER = re.compile(r"^Settings for (\S+):$")
_FIELD = re.compile(r"^\s*([^:]+):\s*(.*?)\s*$")
_SPEED = re.compile(r"^([0-9]{1,9})Mb/s$")
_MODE = re.compile(r"\b([0-9]{2,7})base[A-Z0-9_]+/(?:Full|Half)\b")
MEGABIT = 10**6
_UNKNOWN_SPEEDS = (0xFFFF, 0xFFFFFFFF)  # SPEED_UNKNOWN of the kernel's ethtool.h in 16 and in 32 bits, printed by tools that do not know it


def read_ethtool(data: bytes) -> Reading:
    """Read speed, best supported speed and link of one interface from ethtool's text."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    labels: dict[str, str] = {}
    modes: list[int] = []
    section = ""
    told: set[str] = set()
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header:
            if labels:
                found.trouble("duplicate", "{what} stands twice.", "{what} 重复出现。", what=line)
            labels = {"interface": header[1]}
            continue
        match = _FIELD.match(line)
        section = match[1].strip() if match else section
        told.add(section)
        if section == "Supported link modes":
            modes += [int(mode) for mode in _MODE.findall(line)]
        elif match:
            _ethtool_field(section, match[2], found, labels)
    if not labels:
        found.trouble("unknown_shape", "The text does not begin with `Settings for INTERFACE:`.", "文本开头不是 Settings for 接口名。")
    for key in ("Speed", "Link detected"):  # the link is what ethtool tells last: without it the text was cut
        if key not in told:
            found.absent(key, None, **labels)
    if modes:
        found.see("net.speed_rated", Decimal(max(modes) * MEGABIT), "bit/s", **labels)
    return found.reading()


def _ethtool_field(key: str, value: str, found: Collector, labels: dict[str, str]) -> None:
    if key == "Speed":
        match = _SPEED.match(value)
        if match and int(match[1]) not in _UNKNOWN_SPEEDS:
            found.see("net.speed", Decimal(match[1]) * MEGABIT, "bit/s", **labels)
        else:
            found.absent("Speed", value, **labels)
    elif key == "Link detected":
        found.see("net.link", value.split(" ", 1)[0], "text", **labels)
    elif key == "Duplex" and available(value):
        found.see("net.duplex", value, "text", **labels)


def read_ethtool_driver(data: bytes) -> Reading:
    """Read driver, firmware and bus address of one interface from `ethtool -i`; the firmware without the board id in brackets."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    fields = once(((match[1].strip(), match[2]) for match in map(_FIELD.match, text.splitlines()) if match), found)
    for key, quantity in (("driver", "net.driver"), ("firmware-version", "net.firmware"), ("bus-info", "net.bus")):
        value = fields.get(key)
        if value is None or not available(value):
            found.absent(key, value)
        else:
            found.see(quantity, value.split(" ", 1)[0] if key == "firmware-version" else value, "text")
    return found.reading()


def read_ip_link(data: bytes) -> Reading:
    """Read MTU, state and error counters of each interface from `ip -j -s link`."""
    found = Collector()
    document = load_json(data, found)
    for link in rows(document):
        name = link.get("ifname")
        if not isinstance(name, str):
            found.absent("ifname", name)
            continue
        found.number(link, "mtu", "net.mtu", "B", interface=name)
        if isinstance(link.get("operstate"), str):  # UNKNOWN is a state of its own: lo has it
            found.see("net.state", link["operstate"], "text", interface=name)
        for direction in ("rx", "tx"):
            counters = part(link, "stats64", direction)
            if counters is not None:
                found.number(counters, "errors", f"net.{direction}_errors", "1", interface=name)
    return found.reading()
