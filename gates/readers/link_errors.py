"""Bit errors of links: `ethtool -I --show-fec IF`, the counters of RDMA ports in /sys, and `perfquery`.

Observations: fec.active (text: encodings by comma, or what stands for none), fec.corrected_blocks, fec.uncorrectable_blocks (block),
fec.corrected_bits (bit), each labelled `lane` (empty for the whole port); ib.counter (unit by its name: symbol, B, or 1; labels `name` as the
kernel calls it, `device` and `port` where the text tells them). A driver that counts no FEC prints no statistics, which is no problem here.
"""

from __future__ import annotations

import re
from decimal import Decimal
from types import MappingProxyType

from gates.model import Reading
from gates.readers.common import Collector, decode

_HEADER = re.compile(r"^FEC parameters for (\S{1,64}):$")
_ACTIVE = re.compile(r"^Active FEC encodings?:\s*(.*?)\s*$")
_BLOCKS = re.compile(r"^\s+(corrected_blocks|uncorrectable_blocks|corrected_bits):\s*([0-9]{1,20})$")
_LANE = re.compile(r"^\s+Lane ([0-9]{1,2}):\s*([0-9]{1,20})$")
_KNOWN = re.compile(r"^(?:(?:Supported/)?Configured FEC encodings?:.*|Statistics:)$")
_SYSFS = re.compile(r"^\S*/infiniband/([A-Za-z0-9_.-]{1,40})/ports/([0-9]{1,3})/counters/([A-Za-z0-9_]{1,60}):\s*(\S.*?)\s*$")
_QUERY = re.compile(r"^([A-Za-z0-9]{1,60}):\.*(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})$")
_TITLE = re.compile(r"^# Port (extended )?counters: .*\bport ([0-9]{1,3})\b", re.IGNORECASE)
UNITS = MappingProxyType({"fec.corrected_blocks": "block", "fec.uncorrectable_blocks": "block", "fec.corrected_bits": "bit"})
WORD = 4  # bytes of one unit of the data counters (InfiniBand specification, PortCounters; kernel, sysfs-class-infiniband)
# perfquery's name -> the kernel's, and the largest value that the counter of 4, 8 or 16 bits holds: it stays there and says nothing more.
QUERY = MappingProxyType(
    {
        "SymbolErrorCounter": ("symbol_error", 0xFFFF),
        "LinkErrorRecoveryCounter": ("link_error_recovery", 0xFF),
        "LinkDownedCounter": ("link_downed", 0xFF),
        "PortRcvErrors": ("port_rcv_errors", 0xFFFF),
        "PortRcvRemotePhysicalErrors": ("port_rcv_remote_physical_errors", 0xFFFF),
        "PortXmitDiscards": ("port_xmit_discards", 0xFFFF),
        "LocalLinkIntegrityErrors": ("local_link_integrity_errors", 0xF),
        "ExcessiveBufferOverrunErrors": ("excessive_buffer_overrun_errors", 0xF),
        "PortXmitData": ("port_xmit_data", 0xFFFFFFFF),
        "PortRcvData": ("port_rcv_data", 0xFFFFFFFF),
    }
)


def read_ethtool_fec(data: bytes) -> Reading:
    """Read which FEC is active on one port, and how many blocks and bits it corrected and could not, by port and by lane."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    begun, active, counter = False, False, ""
    for line in text.splitlines():
        header, told, blocks, lane = (pattern.match(line) for pattern in (_HEADER, _ACTIVE, _BLOCKS, _LANE))
        if header:
            if begun:
                found.trouble("duplicate", "{what} stands twice.", "{what} 重复出现。", what=line)
            begun = True
        elif told:
            active = True
            if told[1]:
                found.see("fec.active", ",".join(told[1].split()), "text")
            else:
                found.absent("Active FEC encoding", "")
        elif blocks:
            counter = f"fec.{blocks[1]}"
            found.see(counter, Decimal(blocks[2]), UNITS[counter], lane="")
        elif lane and counter:
            found.see(counter, Decimal(lane[2]), UNITS[counter], lane=lane[1])
        elif line.strip() and not _KNOWN.match(line):
            found.trouble("not_a_number", "This line holds no counter: {line}", "该行没有计数：{line}", line=line)
    if not begun:
        found.trouble("unknown_shape", "The text does not begin with `FEC parameters for INTERFACE:`.", "文本开头不是 FEC parameters for 接口名。")
    elif not active:
        found.absent("Active FEC encoding", None)
    return found.reading()


def read_ib_counters(data: bytes) -> Reading:
    """Read the counters of RDMA ports as `grep -H . /sys/class/infiniband/*/ports/*/counters/*` prints them; data counters in bytes."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    seen = False
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _SYSFS.match(line)
        if match is None:
            found.trouble("unknown_shape", "This line is no counter of an RDMA port: {line}", "该行不是 RDMA 端口计数：{line}", line=line)
            continue
        device, port, name, value = match.groups()
        seen = True
        if not value.isascii() or not value.isdigit() or len(value) > 20:  # "N/A (no PMA)" of a port whose firmware counts nothing
            found.absent(name, value, place=f"{device} {port}")
            continue
        _counter(found, name, int(value), {"device": device, "port": port})
    if not seen and not found.problems:
        found.trouble("unknown_shape", "No counter of an RDMA port is named in this text.", "文本中没有任何 RDMA 端口计数。")
    return found.reading()


def read_perfquery(data: bytes) -> Reading:
    """Read the counters of one InfiniBand port from perfquery's text. One that reached the end of its width is a problem: it counts no further."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    labels: dict[str, str] = {}
    extended, told = False, set()
    for line in text.splitlines():
        title, row = _TITLE.match(line), _QUERY.match(line.strip())
        if title:
            if labels:
                found.trouble("duplicate", "{what} stands twice.", "{what} 重复出现。", what=line)
            labels, extended = {"port": title[2]}, title[1] is not None
        elif row and row[1] in QUERY:
            name, most = QUERY[row[1]]
            value = int(row[2], 0) if row[2].startswith("0x") else int(row[2])
            told.add(name)
            if not extended and value >= most:
                text_en = "{name} stands at {value}, the most that it can hold: how many there were is not known."
                found.trouble("saturated", text_en, "{name} 已达上限 {value}：实际次数未知。", name=row[1], value=value)
            else:
                _counter(found, name, value, labels)
    if not labels:
        found.trouble("unknown_shape", "The text does not begin with `# Port counters:`.", "文本开头不是 # Port counters:。")
    elif not extended and "symbol_error" not in told:
        found.absent("SymbolErrorCounter", None)
    return found.reading()


def _counter(found: Collector, name: str, value: int, labels: dict[str, str]) -> None:
    """Record one counter: data in bytes, symbol errors in symbols, all others as counts."""
    data = name in ("port_xmit_data", "port_rcv_data")
    unit = "B" if data else "symbol" if name == "symbol_error" else "1"
    found.observe("ib.counter", Decimal(value * WORD if data else value), unit, {**labels, "name": name})
