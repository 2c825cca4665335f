"""What of ours is still on this host although no record of ours says so.

`python3 -I - ORDER` with ORDER a JSON object {root, etc, path_prefix} prints {found: [sentences]}.
A removal goes by the record; where that was lost, this looks for the marks that everything of ours carries: lines between our markers in files of the
host, units of our names, file systems and RAIDs named qg-*, and mounts below our root. It changes nothing. Python 3.8, standard library.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any, Dict, List

FILES = (
    "fstab",
    "mdadm/mdadm.conf",
    "mdadm.conf",
    "nvme/discovery.conf",
    "udev/rules.d/71-quadgate-array.rules",
)  # where the kit puts lines; a site may have named another for mdadm
UNITS = ("quadgate-array.service", "quadgate-engine.service")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ask(argv: List[str], prefix: List[str]) -> str:
    """Return what a tool prints, nothing where it is absent or refuses."""
    env = {"PATH": ":".join([*prefix, DEFAULT_PATH]), "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def lines_of_ours(etc: str) -> List[str]:
    """Return a sentence for each file of the host that holds our lines, and for each unit of ours."""
    units = os.path.join(etc, "systemd", "system")
    names = [os.path.join(units, name) for name in UNITS if os.path.exists(os.path.join(units, name))]
    found = ["%s is a unit of ours" % name for name in names]
    for path in (os.path.join(etc, name) for name in FILES):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                marks = [line.strip() for line in stream if line.startswith("# BEGIN Quadgate ")]
        except OSError:
            continue
        found += ["%s has the lines `%s`" % (path, mark) for mark in marks]
    return found


def file_systems_of_ours(root: str, prefix: List[str]) -> List[str]:
    """Return a sentence for each file system that is labelled qg-*; a loop device only where its file lies below our root."""
    by_label = {} if prefix else {os.path.realpath("/dev/disk/by-label/" + name): name for name in _listed("/dev/disk/by-label")}
    for block in ask(["blkid", "-o", "export"], prefix).split("\n\n"):
        row = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if row.get("DEVNAME") and row.get("TYPE") != "linux_raid_member":
            by_label[row["DEVNAME"]] = row.get("LABEL", "")
    return [
        "%s holds a file system with our label %s" % (device, label)
        for device, label in sorted(by_label.items())
        if label.startswith("qg-") and _is_concerned(device, root)
    ]


def raids_of_ours(prefix: List[str]) -> List[str]:
    """Return a sentence for each RAID that is named qg-*."""
    names = [] if prefix else ["/dev/md/" + name for name in _listed("/dev/md") if name.startswith("qg-")]
    names += re.findall(r"^ARRAY (/dev/md/qg-\S+)", ask(["mdadm", "--detail", "--scan"], prefix), re.M)
    return ["%s is a RAID of ours" % name for name in sorted(set(names))]


def mounts_below(root: str, prefix: List[str]) -> List[str]:
    """Return a sentence for each mount below our root."""
    try:
        told: Any = json.loads(ask(["findmnt", "-J", "-l", "-o", "SOURCE,TARGET,FSTYPE"], prefix) or "{}")
    except ValueError:
        return []
    rows = [row for row in told.get("filesystems", []) if str(row["target"]).startswith(root.rstrip("/") + "/")]
    return ["%s is mounted at %s" % (row["source"], row["target"]) for row in rows]


def main(order: Dict[str, Any]) -> None:
    """Look everywhere and say it."""
    root, prefix = str(order["root"]), list(order.get("path_prefix") or [])
    found = lines_of_ours(order.get("etc") or "/etc") + mounts_below(root, prefix) + raids_of_ours(prefix) + file_systems_of_ours(root, prefix)
    json.dump({"found": found}, sys.stdout)


def _listed(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _is_concerned(device: str, root: str) -> bool:
    """Tell whether a device is no loop device, or one whose file is ours."""
    name = os.path.basename(device)
    if not name.startswith("loop"):
        return True
    try:
        with open("/sys/block/%s/loop/backing_file" % name, encoding="utf-8") as stream:
            return stream.read().startswith(root.rstrip("/") + "/")
    except OSError:
        return False


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
