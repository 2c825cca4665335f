"""The files of /sys and /proc that survey and kit read, as trees below the rack: AER counters of devices and their ports, GIDs, multipath, tuning."""

import os
from typing import Any, Callable, Dict, List, Tuple

AER = {
    "correctable": ("TOTAL_ERR_COR", ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout")),
    "nonfatal": ("TOTAL_ERR_NONFATAL", ("DLP", "TLP", "FCP", "CmpltTO")),
    "fatal": ("TOTAL_ERR_FATAL", ("DLP", "TLP", "FCP", "CmpltTO")),
}
CLASSES = {"drives": "0x010802", "nics": "0x020000", "gpus": "0x120000"}
GIDS = ("IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2")


def tree(rack: Dict[str, Any]) -> List[Tuple[str, str]]:
    """Return (path below the root of /sys, content) of every file."""
    files = []
    for kind, pci_class in CLASSES.items():
        for part in rack[kind]:
            port = "devices/pci/%s-port" % part["address"]
            device = "%s/%s" % (port, part["address"])
            files.append((device + "/class", pci_class + "\n"))
            for side, folder in (("device", device), ("port", port)):
                for name, text in _aer(part.get("aer", {}).get(side, {})):
                    files.append(("%s/aer_dev_%s" % (folder, name), text))
    for nic in rack["nics"]:
        for index, gid in enumerate(nic.get("gids", GIDS)):
            port = "class/infiniband/%s/ports/1" % nic["device"]
            address = "fe80:0000:0000:0000:0200:00ff:fe00:0001" if index < 2 else "0000:0000:0000:0000:0000:ffff:c000:0215"
            files.append(("%s/gid_attrs/types/%d" % (port, index), gid + "\n"))
            files.append(("%s/gids/%d" % (port, index), address + "\n"))
        for name in ("symbol_error", "port_rcv_errors"):
            errors = nic.get("counters", {}).get(name, 0)
            files.append(("class/infiniband/%s/ports/1/counters/%s" % (nic["device"], name), "%d\n" % errors))
    files += _tuning(rack["tuning"])
    if rack.get("targets"):
        files.append(("module/nvme_core/parameters/multipath", "Y\n"))
    return files


def _tuning(tuning: Dict[str, Any]) -> List[Tuple[str, str]]:
    """Return governors, NUMA nodes and, beside /sys, the command line. One policy stands for all processors that share it."""
    files = [("../proc/cmdline", tuning["cmdline"] + "\n")]
    cpus = [cpu for part in tuning["nodes"] for cpu in _cpus(part["cpus"])]
    policies = tuning["governors"]
    for index, governor in enumerate(policies):
        share = cpus[index * len(cpus) // len(policies) : (index + 1) * len(cpus) // len(policies)]
        folder = "devices/system/cpu/cpufreq/policy%d" % share[0]  # named after its first processor
        files.append((folder + "/scaling_governor", governor + "\n"))
        files.append((folder + "/affected_cpus", " ".join(map(str, share)) + "\n"))
    for node, part in enumerate(tuning["nodes"]):
        files.append(("devices/system/node/node%d/cpulist" % node, part["cpus"] + "\n"))
        files.append(("devices/system/node/node%d/meminfo" % node, "Node %d MemTotal:       %d kB\n" % (node, part["gib"] * 1024**2)))
    return files


def _cpus(text: str) -> List[int]:
    """Return the processors of a list such as 0-95,192-287."""
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [cpu for end in ends for cpu in range(end[0], end[-1] + 1)]


def links(rack: Dict[str, Any]) -> List[Tuple[str, str]]:
    """Return (link, target) of bus/pci/devices, as the kernel keeps them."""
    parts = [part for kind in CLASSES for part in rack[kind]]
    return [("bus/pci/devices/%s" % p["address"], "../../../devices/pci/%s-port/%s" % (p["address"], p["address"])) for p in parts]


def install(folder: str, rack: Dict[str, Any], write: Callable[[str, str, int], bool]) -> bool:
    """Put the tree below `folder` with `write(path, text, mode)`; tell whether anything changed."""
    changed = False
    for path, text in tree(rack):
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        changed = write(target, text, 0o644) or changed
    wanted = dict(links(rack))
    devices = os.path.join(folder, "bus/pci/devices")
    os.makedirs(devices, exist_ok=True)
    for name in os.listdir(devices):
        if "bus/pci/devices/" + name not in wanted:
            os.unlink(os.path.join(devices, name))
            changed = True
    for path, target in wanted.items():
        if not os.path.islink(os.path.join(folder, path)):
            os.symlink(target, os.path.join(folder, path))
            changed = True
    return changed


def _aer(counts: Dict[str, int]) -> List[Tuple[str, str]]:
    rows = []
    for kind, (total, names) in AER.items():
        value = counts.get(kind, 0)
        lines = ["%s %d" % (name, value if name == names[0] else 0) for name in names]
        rows.append((kind, "\n".join([*lines, "%s %d" % (total, value)]) + "\n"))
    return rows
