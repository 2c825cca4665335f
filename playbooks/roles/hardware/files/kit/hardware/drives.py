"""The local NVMe drives of a host by serial number, each with all of its namespaces."""

import json
import os
from typing import Any, Dict, List

from hardware import blocks
from hardware.host import Host, Refused

NAMESPACE_MANAGEMENT = 8  # bit 3 of OACS: a controller that has it may keep namespaces that are attached to nobody


def drives_of(host: Host) -> Dict[str, Dict[str, Any]]:
    """Return {serial: {controller, namespaces: [device]}} of local drives, from both forms of `nvme list`."""
    found: Dict[str, Dict[str, Any]] = {}

    def add(serial: str, controller: str, names: List[str]) -> None:
        known = found.setdefault(serial.strip(), {"controller": "/dev/" + controller, "namespaces": []})
        known["namespaces"] += ["/dev/" + name for name in names if "/dev/" + name not in known["namespaces"]]

    for entry in (host.json(["nvme", "list", "-o", "json"]) or {}).get("Devices", []):
        if "DevicePath" in entry:
            name = os.path.basename(entry["DevicePath"])
            controller = name[: name.rindex("n")]
            if host.text("%s/class/nvme/%s/transport" % (host.sys, controller)) in (None, "pcie"):
                add(str(entry["SerialNumber"]), controller, [name])
        for subsystem in entry.get("Subsystems", []):
            for row in subsystem.get("Controllers", []):
                spaces = [space["NameSpace"] for space in row.get("Namespaces") or subsystem.get("Namespaces") or []]
                if row.get("Transport") == "pcie" and spaces:
                    add(str(row["SerialNumber"]), row["Controller"], spaces)
    return found


def users_of(host: Host, drive: Dict[str, Any]) -> List[str]:
    """Return what uses any namespace of a drive, partitions too. Raises Refused where that cannot be told."""
    return [user for device in drive["namespaces"] for user in blocks.users(host, device)]


def require_all_attached(host: Host, serial: str, drive: Dict[str, Any]) -> None:
    """Refuse a drive that keeps a namespace which no device of this host shows: a format would leave what is on it."""
    controller = drive["controller"]
    if not int(host.json(["nvme", "id-ctrl", controller, "-o", "json"]).get("oacs") or 0) & NAMESPACE_MANAGEMENT:
        return
    told = host.json(["nvme", "list-ns", controller, "--all", "-o", "json"]) or {}
    rows = told.get("nsid_list") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        raise Refused(
            "`nvme list-ns {0} --all` printed no list that can be read: {1}. Nothing was wiped.",
            "`nvme list-ns {0} --all` 未输出可读的列表：{1}。未擦除任何内容。",
            controller,
            json.dumps(told)[:200],
        )
    if len(rows) != len(drive["namespaces"]):
        raise Refused(
            "{0} ({1}) has {2} namespaces and shows {3} here ({4}). Attach the others (nvme attach-ns) or delete them "
            "(nvme delete-ns); nothing was wiped.",
            "{0}（{1}）有 {2} 个命名空间，此处只可见 {3} 个（{4}）。请挂接其余命名空间（nvme attach-n"
            "s）或将其删除（nvme delete-ns）；未擦除任何内容。",
            controller,
            serial,
            len(rows),
            len(drive["namespaces"]),
            ", ".join(drive["namespaces"]),
        )
