"""journalctl and dmesg: what the kernel of this host has written since it was started, in the formats of both."""

import sys
from typing import Any, Dict, List

BOOT = (
    (0.0, "Linux version 5.15.0-105-generic (buildd@lab) (gcc 11.4.0, GNU ld 2.38) #115-Ubuntu SMP"),
    (0.0, "Command line: %s"),
    (0.412, "mce: CPU0: Thermal monitoring enabled (TM1)"),
    (1.903, "pcieport 0000:40:01.1: AER: enabled with IRQ 35"),
)
DRIVE = (
    (2.114, "nvme %(controller)s: pci function %(address)s"),
    (2.391, "nvme %(controller)s: Shutdown timeout set to 10 seconds"),
    (2.422, "nvme %(controller)s: 32/0/0 default/read/poll queues"),
)
PORT = ((4.02, "%(driver)s %(address)s %(netdev)s: Link down"), (6.75, "%(driver)s %(address)s %(netdev)s: Link up"))


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer `journalctl -k -b -o short-monotonic [-n N]` and `dmesg`."""
    rows = [(at, text % rack["tuning"]["cmdline"] if "%s" in text else text) for at, text in BOOT]
    rows += [(at, text % drive) for drive in rack["drives"] for at, text in DRIVE]
    rows += [(at, text % nic) for nic in rack["nics"] for at, text in PORT[: 2 if nic["up"] else 1]]
    rows += [(row["at"], row["text"]) for row in rack.get("kernel_log", [])]
    rows.sort(key=lambda row: row[0])
    if argv[0] == "journalctl":
        if not {"-k", "-b"} <= set(argv):
            sys.stderr.write("journalctl (simulated): only the kernel's log of this boot is offered\n")
            return 1
        rows = rows[-int(argv[argv.index("-n") + 1]) :] if "-n" in argv else rows
    name = "%s kernel: " % rack["host"] if argv[0] == "journalctl" else ""
    for at, text in rows:
        print("[%12.6f] %s%s" % (at, name, text))
    return 0
