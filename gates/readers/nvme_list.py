"""`nvme list -o json` in its old flat shape and in the nested one of nvme-cli 2.11, and `nvme list-subsys -o json`.

Observations, labelled with `controller` (nvme0) and `serial`: drive.serial, drive.model, drive.firmware (text), drive.capacity (B, per
namespace, label `namespace`), drive.address (PCI address, where the shape has it).
"""

from __future__ import annotations

import re
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, load_json, part, rows

_CONTROLLER = re.compile(r"nvme[0-9]+")


def read_nvme_list(data: bytes) -> Reading:
    """Read the drives of one host: identity, firmware and capacity in bytes. An empty inventory is a problem, never "no drives wanted"."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    devices = part(document, "Devices")
    if not isinstance(devices, list):
        found.trouble(
            "unknown_shape", "There is no list `Devices`: this shape of nvme list is not known.", "没有列表 Devices：不认识这种 nvme list 格式。"
        )
        return found.reading()
    serials: list[str] = []
    for device in rows(devices):
        nested = rows(device, "Subsystems")
        if nested:
            for subsystem in nested:
                _subsystem(subsystem, found, serials)
        elif "Subsystems" in device:
            continue
        else:
            _flat(device, found, serials)
    if not serials and not found.problems:
        found.trouble(
            "empty_inventory",
            "nvme list names no drive: run it as root, and check that the drives are seen at all.",
            "nvme list 未列出任何硬盘：请以 root 运行，并确认系统能看到硬盘。",
        )
    return found.reading()


def read_nvme_list_subsys(data: bytes) -> Reading:
    """Read the path of each controller: drive.address (PCI address or fabric address), drive.path_state, label `controller`."""
    found = Collector()
    document = load_json(data, found)
    hosts = rows(document) if isinstance(document, list) else rows([document])
    for host in hosts:
        for subsystem in rows(host, "Subsystems"):
            for path in rows(subsystem, "Paths"):
                name = path.get("Name")
                if isinstance(name, str) and _CONTROLLER.fullmatch(name):
                    found.text(path, "Address", "drive.address", controller=name)
                    found.text(path, "State", "drive.path_state", controller=name)
    return found.reading()


def _flat(device: dict[str, Any], found: Collector, serials: list[str]) -> None:
    """Read one entry of the flat shape: a namespace with the identity of its controller."""
    path = device.get("DevicePath")
    name = _CONTROLLER.search(path) if isinstance(path, str) else None
    if name is None:
        found.absent("DevicePath", path)
        return
    _drive(device, name.group(), [device], found, serials)


def _subsystem(subsystem: dict[str, Any], found: Collector, serials: list[str]) -> None:
    """Read one subsystem of the nested shape; namespaces stand below the controller or below the subsystem."""
    controllers = rows(subsystem, "Controllers")
    if not controllers:
        found.trouble(
            "missing_field", "A subsystem has no list `Controllers`: its serial number is unknown.", "某子系统没有 Controllers 列表：序列号未知。"
        )
    for controller in controllers:
        name = controller.get("Controller")
        if not isinstance(name, str) or not _CONTROLLER.fullmatch(name):
            found.absent("Controller", name)
            continue
        namespaces = rows(controller, "Namespaces") or (rows(subsystem, "Namespaces") if len(controllers) == 1 else [])
        _drive(controller, name, namespaces, found, serials)


def _drive(holder: dict[str, Any], name: str, namespaces: list[dict[str, Any]], found: Collector, serials: list[str]) -> None:
    raw = holder.get("SerialNumber")
    serial = raw.strip() if isinstance(raw, str) else ""
    if not serial:
        found.absent("SerialNumber", raw, controller=name)
        return
    again = (name, serial) in {(o.labels.get("controller"), o.value) for o in found.observations if o.quantity == "drive.serial"}
    if not again:
        if serial in serials:
            found.trouble(
                "duplicate_serial", "Serial number {serial} is reported by two controllers.", "序列号 {serial} 被两个控制器同时报告。", serial=serial
            )
        serials.append(serial)
        found.see("drive.serial", serial, "text", controller=name, serial=serial)
        found.text(holder, "ModelNumber", "drive.model", controller=name, serial=serial)
        found.text(holder, "Firmware", "drive.firmware", controller=name, serial=serial)
        if isinstance(holder.get("Address"), str) and holder["Address"].strip():
            found.text(holder, "Address", "drive.address", controller=name, serial=serial)
    for namespace in namespaces:
        label = namespace.get("NameSpace")
        found.number(namespace, "PhysicalSize", "drive.capacity", "B", controller=name, serial=serial, namespace=str(label))
