"""The storage network's detail: `mlnx_qos -i IF`, `ethtool -m IF`, `ethtool -S IF`.

Observations: qos.trust, qos.dcbx (text), qos.pfc (1 or 0; label `priority`), qos.dscp (text, codes by comma; label `priority`);
optics.identifier, optics.vendor, optics.part, optics.serial (text), optics.temperature (K), optics.voltage (V), optics.rx_power (mW; label
`channel`), optics.alarm (1 or 0; labels `name`, `family` such as Laser rx power, `level` such as high alarm, `channel` or empty); optics.flags,
optics.diagnostics (Yes or No: whether the module has any), optics.passive (what a cable without electronics calls itself);
nic.counter (1; us for pause durations, bit for corrected bits and raw errors of a lane, symbol for symbol errors; label `name`).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, available, decode
from gates.units import convert

_ROW = re.compile(r"^\s*(priority|enabled)\s+([0-9 \t]+)$")
_DSCP = re.compile(r"^\s*prio:([0-7])\s+dscp:([0-9,]*)\s*$")
_FIELD = re.compile(r"^\s*([^:]+?)\s*:\s*(.*?)\s*$")
_CELSIUS = re.compile(r"^(-?[0-9]{1,4}(?:\.[0-9]{1,4})?) degrees C\b")
_VOLTS = re.compile(r"^([0-9]{1,3}(?:\.[0-9]{1,6})?) V(?:olts)?\b")
_POWER = re.compile(r"^([0-9]{1,6}(?:\.[0-9]{1,6})?) mW\b")
_RX = re.compile(r"^(?:Rcvr signal avg optical power|Receiver signal average optical power)\s*(?:\(Channel ([0-9]{1,2})\))?$")
_COUNTER = re.compile(r"^\s+([A-Za-z0-9_.\-\[\]]{1,80}(?: [A-Za-z0-9_.\-\[\]]{1,40}){0,4}):\s+([0-9]{1,20})$")
_FLAG = re.compile(r"^(.{1,60}?) (high|low) (alarm|warning)(?:\s*\((?:Chan|Channel) ?([0-9]{1,2})\))?$")
# What a counter counts, by its name (kernel, mlx5 counters; ionic has rx_bits_phy). All others are frames or events.
_UNITS = (
    (re.compile(r"_pause_duration$"), "us"),
    (re.compile(r"^rx_(?:corrected_)?bits_phy$|^rx_err_lane_[0-9]{1,2}_phy$"), "bit"),
    (re.compile(r"^rx_(?:pcs_)?symbol_err_phy$"), "symbol"),
)
_PASSIVE = re.compile(r"copper|passive", re.IGNORECASE)
_HAS = {"Alarm/warning flags implemented": "optics.flags", "Optical diagnostics support": "optics.diagnostics"}
_MODULE = {"Identifier": "optics.identifier", "Vendor name": "optics.vendor", "Vendor PN": "optics.part", "Vendor SN": "optics.serial"}


def read_mlnx_qos(data: bytes) -> Reading:
    """Read trust state, PFC bits and the map from DSCP to priority of one interface."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    priorities: list[str] = []
    bits: list[str] = []
    mapped: dict[str, list[str]] = {}
    for line in text.splitlines():
        row, dscp = _ROW.match(line), _DSCP.match(line)
        if line.startswith("Priority trust state:"):
            found.see("qos.trust", line.partition(":")[2].strip(), "text")
        elif line.startswith("DCBX mode:"):
            found.see("qos.dcbx", line.partition(":")[2].strip(), "text")
        elif dscp and dscp[2].strip(","):
            mapped.setdefault(dscp[1], []).extend(str(int(code)) for code in dscp[2].split(",") if code)  # eight of a priority in a row
        elif row and row[1] == "priority" and not priorities:
            priorities = row[2].split()
        elif row and row[1] == "enabled" and not bits:
            bits = row[2].split()
    if not priorities or len(bits) != len(priorities) or set(bits) - {"0", "1"} or len(set(priorities)) != len(priorities):
        found.trouble("unknown_shape", "The text holds no table of PFC bits by priority.", "文本中没有按优先级列出的 PFC 表。")
    else:
        for priority, bit in zip(priorities, bits, strict=True):
            found.see("qos.pfc", Decimal(bit), "1", priority=priority)
    for priority, codes in mapped.items():
        found.see("qos.dscp", ",".join(codes), "text", priority=priority)
    if not any(o.quantity == "qos.trust" for o in found.observations):
        found.absent("Priority trust state", None)
    return found.reading()


def read_ethtool_module(data: bytes) -> Reading:
    """Read identity and diagnostics of the transceiver or cable in one port. A passive cable has no diagnostics, which is no problem."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match:
            _module_field(match[1], match[2], found)
    for key, quantity in _MODULE.items():
        if not any(o.quantity == quantity for o in found.observations):
            found.absent(key, None)
    return found.reading()


def _module_field(key: str, value: str, found: Collector) -> None:
    rx = _RX.match(key)
    if key in _MODULE and available(value):
        found.see(_MODULE[key], value, "text")
    elif key == "Module temperature":
        _measured(_CELSIUS, "degC", "K", key, value, "optics.temperature", found)
    elif key == "Module voltage":
        _measured(_VOLTS, "V", "V", key, value, "optics.voltage", found)
    elif rx:
        _measured(_POWER, "mW", "mW", key, value, "optics.rx_power", found, channel=rx[1] or "1")
    elif key in _HAS:
        found.see(_HAS[key], value, "text")
    elif key in ("Transmitter technology", "Transceiver type") and _PASSIVE.search(value):
        found.see("optics.passive", value, "text")
    elif (flag := _FLAG.match(key)) and value in ("On", "Off"):
        labels = {"name": " ".join(key.split()), "family": flag[1], "level": f"{flag[2]} {flag[3]}", "channel": flag[4] or ""}
        found.see("optics.alarm", Decimal(int(value == "On")), "1", **labels)


def _measured(form: re.Pattern[str], unit: str, to: str, key: str, raw: str, quantity: str, found: Collector, **labels: str) -> None:
    match = form.match(raw)
    if match is None:
        found.absent(key, raw, **labels)
    else:
        value = Decimal(match[1])
        found.see(quantity, value if unit == to else convert(value, unit, to), to, **labels)


def read_ethtool_stats(data: bytes) -> Reading:
    """Read every counter of one interface. The tool does not mark its end: the survey's account of the output does."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    lines = text.splitlines()
    if not lines or lines[0].strip() != "NIC statistics:":
        found.trouble("unknown_shape", "The text does not begin with `NIC statistics:`.", "文本开头不是 NIC statistics:。")
        return found.reading()
    for line in lines[1:]:
        match = _COUNTER.match(line)
        if match is None:
            if line.strip():
                found.trouble("not_a_number", "This line holds no counter: {line}", "该行没有计数：{line}", line=line)
            continue
        name = match[1]
        found.see("nic.counter", Decimal(match[2]), next((unit for pattern, unit in _UNITS if pattern.search(name)), "1"), name=name)
    return found.reading()
