"""rdma, ibv_devinfo, ethtool and ip, each in its own format."""

import json
import sys
from typing import Any, Dict, List

import state
import tool_port

MTU_CODE = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer for the tool named in argv[0]."""
    return {"rdma": _rdma, "ibv_devinfo": _ibv, "ethtool": _ethtool, "ip": _ip}[argv[0]](argv[1:], rack)


def _rdma(argv: List[str], rack: Dict[str, Any]) -> int:
    if "-V" in argv:
        print("rdma utility, iproute2-%s" % rack["tools"]["iproute2"])
        return 0
    rows = []
    for index, nic in enumerate(rack["nics"]):
        logical, physical = ("ACTIVE", "LINK_UP") if nic["up"] else ("DOWN", "DISABLED")
        rows.append(
            {
                "ifindex": index,
                "ifname": nic["device"],
                "port": 1,
                "state": logical,
                "physical_state": physical,
                "netdev": nic["netdev"],
                "netdev_index": index + 4,
            }
        )
    print(json.dumps(rows))
    return 0


def _ibv(_: List[str], rack: Dict[str, Any]) -> int:
    for nic in rack["nics"]:
        mtu = 1024 if not nic["up"] or nic["mtu"] < 4200 else nic["rdma_mtu"]
        print("hca_id:\t%s" % nic["device"])
        print(
            "\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t%s\n\tboard_id:\t\t\t%s\n\tphys_port_cnt:\t\t\t1" % (nic["firmware"], nic["board_id"])
        )
        print("\t\tport:\t1\n\t\t\tstate:\t\t\t%s" % ("PORT_ACTIVE (4)" if nic["up"] else "PORT_DOWN (1)"))
        print("\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t%d (%d)\n\t\t\tsm_lid:\t\t\t0" % (mtu, MTU_CODE[mtu]))
        print("\t\t\tlink_layer:\t\tEthernet\n")
    if not rack["nics"]:
        sys.stderr.write("No IB devices found\n")
        return 1
    return 0


def _ethtool(argv: List[str], rack: Dict[str, Any]) -> int:
    if "--version" in argv:
        print("ethtool version %s" % rack["tools"]["ethtool"])
        return 0
    name = argv[-1] if argv else ""
    nic = next((n for n in rack["nics"] if n["netdev"] == name), None)
    if nic is None:
        sys.stderr.write("netlink error: No such device\n")
        return 75
    if "-i" in argv:
        print("driver: %s\nversion: 6.8.0\nfirmware-version: %s (%s)\nexpansion-rom-version: " % (nic["driver"], nic["firmware"], nic["board_id"]))
        print("bus-info: %s\nsupports-statistics: yes\nsupports-test: yes" % nic["address"])
        return 0
    if "--show-fec" in argv:
        return tool_port.fec(nic, statistics="-I" in argv)
    if "-m" in argv or "-S" in argv:
        return tool_port.module(nic) if "-m" in argv else tool_port.stats(nic)
    speed = "%dMb/s" % nic["speed_mbit"] if nic["up"] else "Unknown!"
    print("Settings for %s:\n\tSupported ports: [ Backplane ]" % name)
    print(
        "\tSupported link modes:   25000baseCR/Full\n\t                        50000baseCR2/Full\n\t                        %dbaseCR4/Full"
        % nic["rated_mbit"]
    )
    print("\tSupports auto-negotiation: Yes\n\tSpeed: %s\n\tDuplex: %s\n\tAuto-negotiation: on" % (speed, "Full" if nic["up"] else "Unknown! (255)"))
    print("\tPort: Direct Attach Copper\n\tLink detected: %s" % ("yes" if nic["up"] else "no"))
    return 0


def _ip(argv: List[str], rack: Dict[str, Any]) -> int:
    if "-V" in argv:
        print("ip utility, iproute2-%s" % rack["tools"]["iproute2"])
        return 0
    if argv[:3] == ["link", "set", "dev"] and len(argv) == 6 and argv[4] == "mtu":
        return _set_mtu(argv[3], int(argv[5]), rack)
    if "link" not in argv:
        sys.stderr.write('Object "%s" is not simulated.\n' % " ".join(argv))
        return 1
    zero = {"bytes": 0, "packets": 0, "errors": 0, "dropped": 0}
    rows = [
        {
            "ifindex": 1,
            "ifname": "lo",
            "flags": ["LOOPBACK", "UP", "LOWER_UP"],
            "mtu": 65536,
            "operstate": "UNKNOWN",
            "stats64": {"rx": zero, "tx": zero},
        }
    ]
    for index, nic in enumerate(rack["nics"]):
        flags = ["BROADCAST", "MULTICAST", "UP"] + (["LOWER_UP"] if nic["up"] else [])
        operational = "UP" if nic["up"] else "DOWN"
        rows.append(
            {
                "ifindex": index + 4,
                "ifname": nic["netdev"],
                "flags": flags,
                "mtu": nic["mtu"],
                "operstate": operational,
                "stats64": {"rx": {**zero, "errors": nic.get("rx_errors", 0)}, "tx": zero},
            }
        )
    if "dev" in argv:
        name = argv[argv.index("dev") + 1]
        rows = [row for row in rows if row["ifname"] == name]
        if not rows:
            sys.stderr.write('Device "%s" does not exist.\n' % name)
            return 1
    print(json.dumps(rows))
    return 0


def _set_mtu(name: str, mtu: int, rack: Dict[str, Any]) -> int:
    if not any(nic["netdev"] == name for nic in rack["nics"]):
        sys.stderr.write('Cannot find device "%s"\n' % name)
        return 1
    with state.changing() as now:
        now.setdefault("nics", {}).setdefault(name, {})["mtu"] = mtu
    return 0
