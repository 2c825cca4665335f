"""ib_write_bw and ib_read_bw: one end listens, the other measures. Text with the unit in its header, or JSON without one."""

import json
import random
import socket
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

SHARE = 0.93  # of the line rate behind RoCEv2 headers
SIZE = 65536
PORT = 18515
PATIENCE_S = 900.0  # of an end that nobody comes to: the real tool waits for ever
# Options that take the next word as their value.
VALUED = {"-d", "--ib-dev", "-i", "--ib-port", "-x", "--gid-index", "-s", "--size", "-q", "--qp", "-D", "--duration", "-p", "--port", "-n", "--iters"}
RULE = "-" * 87


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Measure against the named peer, or serve one. Fails as the real tool does when no port is up and when nobody listens."""
    if "--version" in argv or "-V" in argv:
        print("Version: %s" % rack["tools"]["perftest"])
        return 0
    told, peer = _words(argv[1:])
    wanted = told.get("-d", told.get("--ib-dev", ""))
    nic = next((n for n in rack["nics"] if not wanted or n["device"] == wanted), None)
    if nic is None or not nic["up"]:
        sys.stderr.write(" Unable to find the Infiniband/RoCE device\n" if nic is None else " Port number 1 state is Down\n")
        return 1
    port, size = int(told.get("-p", PORT)), int(told.get("-s", SIZE))
    speed = nic["speed_mbit"] / 1000 * nic.get("rdma_share", 1.0)
    try:
        far = meet(peer, port, speed)
    except OSError:
        sys.stderr.write(" Couldn't connect to %s:%d\n" % (peer, port) if peer else " Failed to connect\n")
        return 1
    seconds = float(told.get("-D", 10))
    time.sleep(seconds / rack["time_scale"])
    gigabit = min(speed, far) * SHARE * random.uniform(0.997, 1.0)
    gbits = "--report_gbits" in argv
    average = round(gigabit if gbits else gigabit * 1e9 / 8 / 1024**2, 2)
    iterations = int(gigabit * 1e9 / 8 * seconds / size)
    rate = round(iterations / seconds / 1e6, 6)
    gid, qps = int(told.get("-x", 3)), int(told.get("-q", 1))
    if any(word.startswith("--out_json") for word in argv):
        return _json(argv, nic, gid, qps, {"MsgSize": size, "n_iterations": iterations, "BW_peak": 0.0, "BW_average": average, "MsgRate": rate})
    unit = "Gb/sec" if gbits else "MiB/sec"
    head = (RULE, "                    RDMA_Write BW Test", " Dual-port       : OFF\t\tDevice         : %s" % nic["device"])
    print("\n".join((*head, " Number of qps   : %d\t\tTransport type : IB" % qps, " Connection type : RC\t\tUsing SRQ      : OFF")))
    print(" Mtu             : %d[B]\n Link type       : Ethernet\n GID index       : %d\n%s" % (nic["rdma_mtu"], gid, RULE))
    print(" #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]" % (unit, unit))
    print(" %-10d %-14d %-18.2f %-18.2f %.6f\n%s" % (size, iterations, 0.0, average, rate, RULE))
    return 0


def meet(peer: Optional[str], port: int, speed: float) -> float:
    """Tell the other end this end's speed in Gbit/s and return its own. An end without a peer waits for one, on this machine only."""
    if peer:
        with socket.create_connection((peer, port), timeout=10) as line:
            return _exchange(line, speed)
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen(1)
        door.settimeout(PATIENCE_S)
        print("\n%s\n* Waiting for client to connect... *\n%s" % ("*" * 36, "*" * 36), flush=True)
        line, _ = door.accept()
        with line:
            line.settimeout(10)
            return _exchange(line, speed)


def _exchange(line: socket.socket, speed: float) -> float:
    line.sendall(b"%.3f\n" % speed)
    told = b""
    while not told.endswith(b"\n"):
        more = line.recv(64)
        if not more:
            raise OSError("the other end is gone")
        told += more
    return float(told)


def _words(argv: List[str]) -> Tuple[Dict[str, str], Optional[str]]:
    """Return the options with a value, and the peer: the only word that is neither an option nor a value of one."""
    told: Dict[str, str] = {}
    peer, words = None, iter(argv)
    for word in words:
        if word in VALUED:
            told[word] = next(words, "")
        elif not word.startswith("-"):
            peer = word
    return told, peer


def _json(argv: List[str], nic: Dict[str, Any], gid: int, qps: int, results: Dict[str, Any]) -> int:
    info = {"test": argv[0], "Dual_port": "OFF", "Device": nic["device"], "Number_of_qps": qps}
    info.update({"Mtu": "%d[B]" % nic["rdma_mtu"], "Link_type": "Ethernet", "GID_index": gid})
    text = json.dumps({"test_info": info, "results": results}, indent=1)
    target = next((w.split("=", 1)[1] for w in argv if w.startswith("--out_json_file=")), "")
    if not target:
        print(text)
        return 0
    with open(target, "w", encoding="utf-8") as f:
        f.write(text + "\n")
    return 0
