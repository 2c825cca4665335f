"""RDMA ports: `rdma -j link show`, `ibv_devinfo -v`, and perftest (`ib_write_bw`).

Observations: rdma.state, rdma.physical_state, rdma.netdev (text; labels `device`, `port`), rdma.firmware, rdma.link_layer (text),
rdma.mtu_active, rdma.mtu_max (B), perftest.bandwidth (bit/s), perftest.message_rate (1/s), perftest.message_size (B),
perftest.gid_index (1): which entry of the GID table was used, perftest.device (text), where the tool tells them.
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, available, decode, exact, load_json, part, rows

_FIELD = re.compile(r"^\s*([A-Za-z_][\w ]*?):\s*(.*?)\s*$")
_MTU = re.compile(r"^([0-9]{3,5}) \([0-9]\)$")
_STATE = re.compile(r"^(PORT_[A-Z_]+) \([0-9]\)$")
_GID = re.compile(r"^\s*GID index\s*:\s*([0-9]{1,4})\s*$")
_DEVICE = re.compile(r"^\s*Dual-port\s*:\s*\w+\s+Device\s*:\s*(\S{1,64})\s*$")
_COLUMNS = re.compile(r"BW average\[(?P<unit>[^\]]+)\]")
_UNITS = {"Gb/sec": Decimal(10) ** 9, "MiB/sec": Decimal(8 * 1024 * 1024), "MB/sec": None}  # "MB/sec" meant MiB for years: doubtful


def read_rdma_link(data: bytes) -> Reading:
    """Read the state of each RDMA port of one host."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    ports = rows(document)
    if not ports:
        found.trouble(
            "empty_inventory", "rdma names no port: the driver is not loaded, or there is no adapter.", "rdma 未列出任何端口：驱动未加载或没有网卡。"
        )
    for port in ports:
        device, number = port.get("ifname"), exact(port.get("port"))
        if not isinstance(device, str) or number is None:
            found.absent("ifname/port", device)
            continue
        labels = {"device": device, "port": str(number)}
        found.text(port, "state", "rdma.state", **labels)
        found.text(port, "physical_state", "rdma.physical_state", **labels)
        if "netdev" in port:
            found.text(port, "netdev", "rdma.netdev", **labels)
    return found.reading()


def read_ibv_devinfo(data: bytes) -> Reading:
    """Read firmware, state, MTU (bytes) and link layer of each port from the text of ibv_devinfo."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    device, port = "", ""
    for line in text.splitlines():
        match = _FIELD.match(line)
        if not match:
            continue
        key, value = match[1], match[2]
        if key == "hca_id":
            device, port = value, ""
        elif key == "port" and value.isdigit():
            port = value
        elif device and key == "fw_ver" and available(value):
            found.see("rdma.firmware", value, "text", device=device)
        elif device and port:
            _port_field(key, value, found, {"device": device, "port": port})
    if not device:
        found.trouble("unknown_shape", "No adapter (hca_id) is named in this text.", "文本中没有任何适配器（hca_id）。")
    return found.reading()


def _port_field(key: str, value: str, found: Collector, labels: dict[str, str]) -> None:
    if key in {"active_mtu", "max_mtu"}:
        match = _MTU.match(value)
        if match:
            found.see("rdma.mtu_active" if key == "active_mtu" else "rdma.mtu_max", Decimal(match[1]), "B", **labels)
        else:
            found.absent(key, value, **labels)
    elif key == "state":
        match = _STATE.match(value)
        if match:
            found.see("rdma.port_state", match[1], "text", **labels)
        else:
            found.absent(key, value, **labels)
    elif key == "link_layer" and available(value):
        found.see("rdma.link_layer", value, "text", **labels)


def read_perftest(data: bytes) -> Reading:
    """Read perftest's text, or its JSON without the flag that tells its unit (see `read_perftest_json`)."""
    if data.lstrip()[:1] == b"{":
        return read_perftest_json(data, report_gbits=None)
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    unit: str | None = None
    for line in text.splitlines():
        gid = _GID.match(line)
        if gid:
            found.see("perftest.gid_index", Decimal(gid[1]), "1")
        device = _DEVICE.match(line)
        if device:
            found.see("perftest.device", device[1], "text")
        header = _COLUMNS.search(line)
        if header:
            unit = header["unit"]
        cells = line.split()
        if len(cells) == 5 and all(re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,9})?", cell) for cell in cells):
            factor = _UNITS.get(unit or "")
            if factor is None:
                found.trouble(
                    "unknown_unit",
                    "The bandwidth stands in no certain unit ({unit}): the header line tells it.",
                    "带宽单位不确定（{unit}）：单位只在表头中。",
                    unit=unit or "no header",
                )
                continue
            found.see("perftest.message_size", Decimal(cells[0]), "B", size=cells[0])
            found.see("perftest.bandwidth", Decimal(cells[3]) * factor, "bit/s", size=cells[0])
    return found.reading()


def read_perftest_json(data: bytes, *, report_gbits: bool | None) -> Reading:
    """Read perftest's JSON. It has no unit: only the command line tells whether it was run with `--report_gbits`."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    device = part(document, "test_info", "Device")
    labels = {"device": device.strip() if isinstance(device, str) else ""}
    if labels["device"]:
        found.see("perftest.device", labels["device"], "text")
    found.number(part(document, "results"), "MsgSize", "perftest.message_size", "B", **labels)
    found.number(part(document, "results"), "n_iterations", "perftest.iterations", "1", **labels)
    if part(document, "test_info", "GID_index") is not None:
        found.number(part(document, "test_info"), "GID_index", "perftest.gid_index", "1", **labels)
    if report_gbits is None:
        found.trouble(
            "unknown_unit", "perftest's JSON carries no unit: its command line must be known.", "perftest 的 JSON 不带单位：必须知道其命令行参数。"
        )
    elif report_gbits:
        found.scaled(part(document, "results"), "BW_average", "perftest.bandwidth", "bit/s", 10**9, **labels)
    else:
        found.scaled(part(document, "results"), "BW_average", "perftest.bandwidth", "bit/s", 8 * 1024 * 1024, **labels)
    return found.reading()
