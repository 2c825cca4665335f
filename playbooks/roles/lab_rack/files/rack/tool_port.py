"""What a port tells of itself: mlnx_qos, ethtool -m and ethtool -S, each in its own format."""

import sys
import time
from typing import Any, Dict, List

import state

COUNTERS = ("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy", "rx_discards_phy", "tx_discards_phy", "link_down_events_phy")
FLAGS = ("high alarm", "low alarm", "high warning", "low warning")
CHANNELS = (1, 2, 3, 4)
STORMS = ("tx_pause_storm_warning_events", "tx_pause_storm_error_events", "module_high_temp")


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer `mlnx_qos -i IF [--trust T] [--pfc BITS]`: what is set is kept in the rack's folder."""
    name = argv[argv.index("-i") + 1] if "-i" in argv[:-1] else ""
    nic = next((n for n in rack["nics"] if n["netdev"] == name), None)
    if nic is None:
        sys.stderr.write("Interface %s does not exist\n" % name)
        return 1
    words = dict(zip(argv[1::2], argv[2::2]))
    qos = dict(nic["qos"])
    if "--trust" in words or "--pfc" in words:
        qos["trust"] = words.get("--trust", qos["trust"])
        if "--pfc" in words:
            qos["pfc"] = [priority for priority, bit in enumerate(words["--pfc"].split(",")) if bit == "1"]
        with state.changing() as now:
            now.setdefault("nics", {}).setdefault(name, {})["qos"] = qos
    print("DCBX mode: OS controlled\nPriority trust state: %s" % qos["trust"])
    if qos["trust"] == "dscp":
        print("dscp2prio mapping:")
        for priority in range(8):
            print("\tprio:%d dscp:%s," % (priority, ",".join("%02d" % (8 * priority + i) for i in range(7, -1, -1))))
    bits = [int(p in qos["pfc"]) for p in range(8)]
    print("default priority:\nCable len: 7\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7")
    print("\tenabled     %s   \n\tbuffer      %s   " % ("   ".join(map(str, bits)), "   ".join(map(str, bits))))
    for tc in range(8):
        print("tc: %d ratelimit: unlimited, tsa: vendor\n\t priority:  %d" % (tc, tc))
    return 0


def module(nic: Dict[str, Any]) -> int:
    """Answer `ethtool -m`."""
    optic = nic["optic"]
    rows = [("Identifier", "0x11 (QSFP28)"), ("Vendor name", optic["vendor"]), ("Vendor PN", optic["part"]), ("Vendor SN", optic["serial"])]
    celsius = optic["temperature_c"]
    rows += [
        ("Module temperature", "%.2f degrees C / %.2f degrees F" % (celsius, celsius * 9 / 5 + 32)),
        ("Module voltage", "3.2800 Volts"),
        ("Alarm/warning flags implemented", "Yes"),
    ]
    rows += [("Laser bias current %-12s(Chan %d)" % (flag, c), "Off") for c in CHANNELS for flag in FLAGS]
    rows += [("Module temperature %s" % flag, "On" if flag.startswith("high") and celsius >= 75 else "Off") for flag in FLAGS]
    rows += [("Module voltage %s" % flag, "Off") for flag in FLAGS]
    rows += [("Laser %s power %-12s(Channel %d)" % (way, flag, c), "Off") for way in ("tx", "rx") for c in CHANNELS for flag in FLAGS]
    rows += [("Rcvr signal avg optical power(Channel %d)" % c, "0.9000 mW / -0.46 dBm") for c in CHANNELS]
    for key, value in rows:
        print("\t%-42s: %s" % (key, value))
    return 0


def _paused_us(nic: Dict[str, Any], way: str, what: str) -> int:
    """Return for how long a port was paused: of `paused`, {way_what: share of all time}, since the host's clock began."""
    return int(nic.get("paused", {}).get("%s_%s" % (way, what), 0.0) * time.monotonic() * 1e6)


def _lane_errors(nic: Dict[str, Any]) -> List[int]:
    """Return the raw bit errors of each lane: of `raw_errors_per_s`, one rate a lane, since the host's clock began."""
    return [int(rate * time.monotonic()) for rate in nic.get("raw_errors_per_s", (0, 0, 0, 0))]


def fec(nic: Dict[str, Any], statistics: bool) -> int:
    """Answer `ethtool [-I] --show-fec`: RS corrects across lanes, so it counts blocks of the port alone."""
    print("FEC parameters for %s:\nSupported/Configured FEC encodings: Auto RS\nActive FEC encoding: RS" % nic["netdev"])
    if statistics:
        print("Statistics:\n  corrected_blocks: %d" % -(-sum(_lane_errors(nic)) // 2))
        print("  uncorrectable_blocks: %d" % nic.get("counters", {}).get("uncorrectable_blocks", 0))
    return 0


def stats(nic: Dict[str, Any]) -> int:
    """Answer `ethtool -S`."""
    counted = nic.get("counters", {})
    print("NIC statistics:\n     rx_packets: 1845201\n     tx_packets: 1620417")
    for name in (*COUNTERS, *STORMS):
        print("     %s: %d" % (name, counted.get(name, 0)))
    lanes = _lane_errors(nic)
    print("     rx_corrected_bits_phy: %d" % sum(lanes))
    for lane, errors in enumerate(lanes):
        print("     rx_err_lane_%d_phy: %d" % (lane, errors))
    for way in ("rx", "tx"):  # microseconds since the driver was loaded; a priority that is not lossless never pauses
        for what in (*("prio%d" % priority for priority in range(8)), "global"):
            name = "%s_%s_pause" % (way, what)
            print("     %s: %d\n     %s_duration: %d" % (name, _paused_us(nic, way, what) // 40, name, _paused_us(nic, way, what)))
    return 0
