"""ib_write_bw and ib_read_bw as the client: text with the unit in its header, or JSON without one."""

import json
import random
import sys
from typing import Any, Dict, List

SHARE = 0.93  # of the line rate behind RoCEv2 headers
SIZE = 65536


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Print one result, or fail as the real tool does when no port is up."""
    if "--version" in argv or "-V" in argv:
        print("Version: %s" % rack["tools"]["perftest"])
        return 0
    wanted = argv[argv.index("-d") + 1] if "-d" in argv[:-1] else ""
    nic = next((n for n in rack["nics"] if not wanted or n["device"] == wanted), None)
    if nic is None or not nic["up"]:
        sys.stderr.write(" Unable to find the Infiniband/RoCE device\n" if nic is None else " Port number 1 state is Down\n")
        return 1
    gigabit = nic["speed_mbit"] / 1000 * SHARE * random.uniform(0.997, 1.0)
    gbits = "--report_gbits" in argv
    average = round(gigabit if gbits else gigabit * 1e9 / 8 / 1024**2, 2)
    iterations = int(gigabit * 1e9 / 8 * 10 / SIZE)
    rate = round(iterations / 10 / 1e6, 6)
    if any(word.startswith("--out_json") for word in argv):
        info = {
            "test": argv[0],
            "Dual_port": "OFF",
            "Device": nic["device"],
            "Number_of_qps": 1,
            "Mtu": "4096[B]",
            "Link_type": "Ethernet",
            "GID_index": 3,
        }
        text = json.dumps(
            {"test_info": info, "results": {"MsgSize": SIZE, "n_iterations": iterations, "BW_peak": 0.0, "BW_average": average, "MsgRate": rate}},
            indent=1,
        )
        target = next((w.split("=", 1)[1] for w in argv if w.startswith("--out_json_file=")), "")
        if target:
            with open(target, "w", encoding="utf-8") as f:
                f.write(text + "\n")
            return 0
        print(text)
        return 0
    unit = "Gb/sec" if gbits else "MiB/sec"
    print(" #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]" % (unit, unit))
    print(" %-10d %-14d %-18.2f %-18.2f %.6f" % (SIZE, iterations, 0.0, average, rate))
    return 0
