"""`nvme list -o json` in its old flat shape and in the nested one of nvme-cli 2.11, and `nvme list-subsys -o json`.

Observations, labelled with `controller` (nvme0) and `serial`: drive.serial, drive.model, drive.firmware (text), drive.capacity (B, per
namespace, label `namespace`), drive.port (the name of each controller of a drive), drive.address (PCI address), drive.nqn (of its subsystem)
and drive.cntlid, where the shape has them.

Multipath: the controllers of one subsystem that report one serial number are ports of one drive. It has the name that its namespaces have, or
that of its first controller; address and cntlid are told of each controller. Controllers of different subsystems with one serial number are two
drives that cannot be told apart: a problem. The flat shape does not name the subsystem, so there it is one too.
"""

from __future__ import annotations

import re
from decimal import Decimal
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
    """Read each controller's path: drive.address (PCI or fabric address), drive.path_state, drive.transport, drive.nqn.

    Labels `controller`, `subsystem`. A transport is told where the tool writes one; what is no text is a problem.
    """
    found = Collector()
    document = load_json(data, found)
    hosts = rows(document) if isinstance(document, list) else rows([document])
    for host in hosts:
        for subsystem in rows(host, "Subsystems"):
            for path in rows(subsystem, "Paths"):
                name = path.get("Name")
                if isinstance(name, str) and _CONTROLLER.fullmatch(name):
                    labels = {"controller": name} | ({"subsystem": str(subsystem["Name"])} if isinstance(subsystem.get("Name"), str) else {})
                    found.text(path, "Address", "drive.address", **labels)
                    found.text(path, "State", "drive.path_state", **labels)
                    if "Transport" in path:
                        found.text(path, "Transport", "drive.transport", **labels)
                    if isinstance(subsystem.get("NQN"), str) and subsystem["NQN"].strip():
                        found.text(subsystem, "NQN", "drive.nqn", **labels)
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
    ports: dict[str, list[dict[str, Any]]] = {}
    for controller in controllers:
        name = controller.get("Controller")
        if not isinstance(name, str) or not _CONTROLLER.fullmatch(name):
            found.absent("Controller", name)
            continue
        ports.setdefault(_serial(controller) or name, []).append(controller)
    shared = rows(subsystem, "Namespaces") if len(ports) == 1 else []
    for group in ports.values():
        namespaces = _each_once([space for controller in group for space in rows(controller, "Namespaces")] or shared)
        heads = {m.group() for space in namespaces if (m := _CONTROLLER.match(str(space.get("NameSpace"))))}
        main = next((c for c in group if c["Controller"] in heads), group[0])
        _drive(main, main["Controller"], namespaces, found, serials)
        for controller in group:
            _port(subsystem, controller, main, found)


def _each_once(namespaces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each namespace once: without native multipath every controller of a drive lists it, under a name of its own and one NSID."""
    return list({str(space.get("NSID", space.get("NameSpace"))): space for space in reversed(namespaces)}.values())[::-1]


def _port(subsystem: dict[str, Any], controller: dict[str, Any], main: dict[str, Any], found: Collector) -> None:
    """Read what is of one controller of a drive: its address and its id within the subsystem. Ports of one drive report one model and firmware."""
    serial = _serial(controller)
    if not serial:
        return
    labels = {"controller": str(controller["Controller"]), "serial": serial}
    found.see("drive.port", labels["controller"], "text", **labels)
    if isinstance(subsystem.get("SubsystemNQN"), str) and subsystem["SubsystemNQN"].strip():
        found.text(subsystem, "SubsystemNQN", "drive.nqn", **labels)
    if isinstance(controller.get("Cntlid"), str | int | Decimal):
        found.see("drive.cntlid", str(controller["Cntlid"]).strip(), "text", **labels)
    if controller is main:
        return
    if isinstance(controller.get("Address"), str) and controller["Address"].strip():
        found.text(controller, "Address", "drive.address", **labels)
    for key in ("ModelNumber", "Firmware"):
        mine, first = (str(c.get(key, "")).strip() for c in (controller, main))
        if mine != first:
            words = (
                "{name} and {other} are ports of the drive {serial} and report {a} and {b} as {key}.",
                "{name} 与 {other} 是硬盘 {serial} 的端口，{key} 却分别为 {a} 与 {b}。",
            )
            found.trouble("duplicate_serial", *words, name=labels["controller"], other=main["Controller"], serial=serial, a=mine, b=first, key=key)


def _serial(holder: dict[str, Any]) -> str:
    raw = holder.get("SerialNumber")
    return raw.strip() if isinstance(raw, str) else ""


def _drive(holder: dict[str, Any], name: str, namespaces: list[dict[str, Any]], found: Collector, serials: list[str]) -> None:
    serial = _serial(holder)
    if not serial:
        found.absent("SerialNumber", holder.get("SerialNumber"), controller=name)
        return
    again = (name, serial) in {(o.labels.get("controller"), o.value) for o in found.observations if o.quantity == "drive.serial"}
    if not again:
        if serial in serials:
            found.trouble(
                "duplicate_serial",
                "Serial number {serial} is reported by controllers of two subsystems.",
                "序列号 {serial} 被两个子系统的控制器同时报告。",
                serial=serial,
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
