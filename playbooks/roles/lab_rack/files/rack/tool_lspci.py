"""lspci -vvv: the links of drives, adapters and GPUs. A drive's link shows its low speed while the drive is idle."""

import sys
from typing import Any, Dict, List

import state

IDLE_GT = "2.5"


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Print every device, or the one of `-s`."""
    if "--version" in argv:
        print("lspci version %s" % rack["tools"]["pciutils"])
        return 0
    wanted = argv[argv.index("-s") + 1] if "-s" in argv[:-1] else ""
    devices = []
    for drive in rack["drives"]:
        name = "Non-Volatile memory controller: Quanshan Flash %s NVMe SSD (rev 01) (prog-if 02 [NVM Express])" % drive["model"]
        devices.append((drive["address"], name, drive["link"], state.is_busy(drive["controller"]), {}))
    for nic in rack["nics"]:
        devices.append((nic["address"], "Ethernet controller: %s" % nic["name"], nic["link"], True, nic))
    for gpu in rack["gpus"]:
        name = "Processing accelerators: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI308X]"
        devices.append((gpu["address"], name, gpu["link"], True, {}))
    for address, name, link, busy, product in sorted(devices):
        if not wanted or address.endswith(wanted):
            sys.stdout.write(_device(address, name, link, busy, product))
    return 0


def _device(address: str, name: str, link: Dict[str, Any], busy: bool, product: Dict[str, Any]) -> str:
    speed = link["rated_gt"] if busy else IDLE_GT
    width = link["width"]
    lines = [
        "%s %s" % (address, name),
        "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+",
        "\tCapabilities: [70] Express (v2) Endpoint, MSI 00",
        "\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0, Latency L0s unlimited, L1 unlimited",
        "\t\tDevSta:\tCorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-",
        "\t\tLnkCap:\tPort #0, Speed %sGT/s, Width x%d, ASPM L1, Exit Latency L1 <64us" % (link["rated_gt"], link["rated_width"]),
        "\t\tLnkSta:\tSpeed %sGT/s%s, Width x%d%s"
        % (speed, "" if busy else " (downgraded)", width, "" if width == link["rated_width"] else " (downgraded)"),
    ]
    if product:
        lines += [
            "\tCapabilities: [48] Vital Product Data",
            "\t\tProduct Name: %s" % product["name"],
            "\t\tRead-only fields:",
            "\t\t\t[PN] Part number: %s" % product["part"],
            "\t\t\t[SN] Serial number: %s" % product["serial"],
            "\t\t\t[RV] Reserved: checksum good, 1 byte(s) reserved",
            "\t\tEnd",
        ]
    return "\n".join(lines) + "\n\n"
