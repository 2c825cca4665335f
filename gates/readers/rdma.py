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
from gates.text import Text

_FIELD = re.compile(r"^\s*([A-Za-z_][\w ]*?):\s*(.*?)\s*$")
_MTU = re.compile(r"^([0-9]{3,5}) \([0-9]\)$")
_STATE = re.compile(r"^(PORT_[A-Z_]+) \([0-9]\)$")
_GID = re.compile(r"^\s*GID index\s*:\s*([0-9]{1,4})\s*$")
_DEVICE = re.compile(r"^\s*Dual-port\s*:\s*\w+\s+Device\s*:\s*(\S{1,64})\s*$")
_COLUMNS = re.compile(r"^\s*#bytes\b.*\bBW average\[(?P<unit>[^\]]+)\]")
_LATENCY = re.compile(r"^\s*#bytes\b.*\bt_(?:min|typical|avg)\b")
_ROW = re.compile(r"^\s*[0-9]{1,18}(?:\s+[0-9]{1,18}(?:\.[0-9]{1,9})?)+\s*$")
_CPU = "CPU_Util"  # the one more column of --cpu_util
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
    for port in ports:  # the same port twice is a duplicate of its state
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
    ports: dict[str, int] = {}  # of each adapter: how many it says that it has
    told: dict[tuple[str, str], set[str]] = {}  # of each port, and of each adapter (port ""): the fields that were read
    for line in text.splitlines():
        match = _FIELD.match(line)
        if not match:
            continue
        key, value = match[1], match[2]
        if key == "hca_id":
            device, port = value, ""
            _begun(told, (device, port), found)
        elif key == "port" and value.isdigit():
            port = value
            _begun(told, (device, port), found)
        elif device:
            told[(device, port)].add(key)
            if key == "phys_port_cnt" and value.isdecimal() and len(value) < 4:
                ports[device] = int(value)
            elif key == "fw_ver" and available(value):
                found.see("rdma.firmware", value, "text", device=device)
            elif port:
                _port_field(key, value, found, {"device": device, "port": port})
    if not device:
        found.trouble("unknown_shape", "No adapter (hca_id) is named in this text.", "文本中没有任何适配器（hca_id）。")
    _whole_ports(told, ports, found)
    return found.reading()


def _begun(told: dict[tuple[str, str], set[str]], place: tuple[str, str], found: Collector) -> None:
    """Begin an adapter or a port; one that was begun before stands twice."""
    if place in told:
        found.trouble("duplicate", "{what} stands twice.", "{what} 重复出现。", what=" ".join(filter(None, place)))
    told[place] = set()


def _whole_ports(told: dict[tuple[str, str], set[str]], ports: dict[str, int], found: Collector) -> None:
    """Hold each adapter against the fields that it must tell, and against the number of ports that it says it has."""
    for (device, port), fields in told.items():
        for key in ("state", "max_mtu", "active_mtu", "link_layer") if port else ("fw_ver", "phys_port_cnt"):
            if key not in fields:
                found.absent(key, None, place=f"{device} {port}".strip())
    for device, count in ports.items():
        seen = sum(1 for name, port in told if name == device and port)
        if seen != count:
            text = "{d} has {n} ports, {m} of them are told.", "{d} 有 {n} 个端口，只报告了 {m} 个。"
            found.trouble("rows_incomplete", *text, d=device, n=count, m=seen)


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
    columns, rows_read = 5, 0
    for line in text.splitlines():
        gid = _GID.match(line)
        if gid:
            found.see("perftest.gid_index", Decimal(gid[1]), "1")
        device = _DEVICE.match(line)
        if device:
            found.see("perftest.device", device[1], "text")
        header = _COLUMNS.search(line)
        if header:
            unit, columns = header["unit"], 6 if _CPU in line else 5
        elif _LATENCY.match(line):
            text_en = "This is a test of latency: it tells no bandwidth. Run ib_write_bw, ib_read_bw or ib_send_bw."
            found.trouble("unknown_shape", text_en, "这是时延测试，没有带宽；请运行 ib_write_bw、ib_read_bw 或 ib_send_bw。")
        cells = line.split()
        if _ROW.match(line):
            rows_read += 1
            if len(cells) != columns:
                text_en = "This row has {n} columns, not the {m} that its header names: {line}"
                found.trouble("unknown_shape", text_en, "该行有 {n} 列，与表头的 {m} 列不符：{line}", n=len(cells), m=columns, line=line)
                continue
            factor = _UNITS.get(unit or "")
            if factor is None:
                found.trouble(
                    "unknown_unit",
                    "The bandwidth stands in no certain unit ({unit}): the header line tells it.",
                    "带宽单位不确定（{unit}）：单位只在表头中。",
                    unit=unit or Text("no header", "无表头"),
                )
                continue
            found.see("perftest.message_size", Decimal(cells[0]), "B", size=cells[0])
            found.see("perftest.bandwidth", Decimal(cells[3]) * factor, "bit/s", size=cells[0])
    if not rows_read:
        found.trouble("zero_samples", "No row of results stands in this text: the test did not end.", "文本中没有结果行：测试没有跑完。")
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
