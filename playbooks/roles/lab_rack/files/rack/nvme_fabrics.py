"""nvme connect and disconnect, with the connections kept in the rack's folder and shown below its /sys as the kernel would."""

import hashlib
import os
import shutil
import sys
from typing import Any, Dict, List, Optional

import nodes
import state

LONG = {"-t": "--transport", "-a": "--traddr", "-s": "--trsvcid", "-n": "--nqn", "-d": "--device"}


def options(argv: List[str]) -> Dict[str, str]:
    """Return the options of a command by their long names."""
    found, words = {}, list(argv)
    while words:
        word = words.pop(0)
        name, given, value = word.partition("=")
        if word.startswith("-"):
            found[LONG.get(name, name)] = value if given else (words.pop(0) if words and not words[0].startswith("-") else "")
    return found


def subsystems() -> List[Dict[str, Any]]:
    """Return the connected subsystems as `list-subsys` prints them."""
    rows = []
    for name, entry in sorted(state.changes().get("subsystems", {}).items()):
        paths = [
            {
                "Name": p["name"],
                "Transport": p["transport"],
                "Address": _address(p),
                "State": "live",
            }
            for p in entry["paths"]
        ]
        rows.append({"Name": name, "NQN": entry["nqn"], "IOPolicy": _policy(name), "Paths": paths})
    return rows


def _address(path: Dict[str, str]) -> str:
    """Return a path's address as the kernel prints it: of the host's side only what was asked for, and where it really comes from."""
    asked = "".join(",%s=%s" % (key, path[key]) for key in ("host_traddr", "host_iface") if path.get(key))
    return "traddr=%s,trsvcid=%s%s,src_addr=192.0.2.9" % (path["address"], path["port"], asked)


def namespaces() -> List[str]:
    """Return the names of the namespaces that are there by connections."""
    return [space for entry in state.changes().get("subsystems", {}).values() for space in entry["namespaces"]]


def connect(argv: List[str], rack: Dict[str, Any]) -> int:
    """Connect one portal of one of the rack's targets."""
    wanted = options(argv)
    transport, address, nqn = wanted.get("--transport", ""), wanted.get("--traddr", ""), wanted.get("--nqn", "")
    module = "nvme_%s" % transport
    if module not in state.changes().get("modules", []):
        return _fail("Failed to write to /dev/nvme-fabrics: Invalid argument\ncould not add new controller: invalid arguments/configuration")
    target = next((t for t in rack.get("targets", []) if t["nqn"] == nqn and address in t["portals"] and transport in t["transports"]), None)
    if target is None:
        return _fail(
            "Failed to write to /dev/nvme-fabrics: Connection timed out\ncould not add new controller: failed to write to nvme-fabrics device"
        )
    with state.changing() as now:
        known = now.setdefault("subsystems", {})
        name = _name_of(known, nqn) or "nvme-subsys%d" % (len(rack["drives"]) + len(known))
        first = len(rack["drives"]) + sum(len(entry["paths"]) for entry in known.values())
        entry = known.setdefault(name, {"nqn": nqn, "paths": [], "namespaces": []})
        here = {"host_traddr": wanted.get("--host-traddr", ""), "host_iface": wanted.get("--host-iface", "")}
        path = {"transport": transport, "address": address, "port": wanted.get("--trsvcid") or "4420", **here}
        if any(path.items() <= known_path.items() for known_path in entry["paths"]):
            return _fail("already connected")
        used = {path["name"] for other in known.values() for path in other["paths"]}
        controller = next("nvme%d" % n for n in range(first, first + 64) if "nvme%d" % n not in used)
        entry["paths"].append({"name": controller, **path})
        if not entry["namespaces"]:
            head = name.replace("nvme-subsys", "nvme")
            entry["namespaces"] = ["%sn%d" % (head, n + 1) for n in range(target["namespaces"])]
        _show(name, entry)
    print("connecting to device: %s" % controller)
    return 0


def disconnect(argv: List[str], _: Dict[str, Any]) -> int:
    """Disconnect one controller (-d) or a whole subsystem (-n); without its last path the namespaces are gone."""
    wanted, count = options(argv), 0
    with state.changing() as now:
        for name, entry in list(now.get("subsystems", {}).items()):
            kept = [
                p for p in entry["paths"] if not (p["name"] == os.path.basename(wanted.get("--device", "-")) or entry["nqn"] == wanted.get("--nqn"))
            ]
            count += len(entry["paths"]) - len(kept)
            entry["paths"] = kept
            if not kept:
                del now["subsystems"][name]
                for space in entry["namespaces"]:
                    nodes.hide(space)
                shutil.rmtree(os.path.join(_sys("nvme-subsystem"), name), ignore_errors=True)
    print("disconnected %d controller(s)" % count)
    return 0


def _show(name: str, entry: Dict[str, Any]) -> None:
    """Let /sys show the subsystem: its policy, its namespaces, and who holds them."""
    folder = os.path.join(_sys("nvme-subsystem"), name)
    for space in entry["namespaces"]:
        os.makedirs(os.path.join(folder, space), exist_ok=True)
        nodes.show(space, "uuid.%s-%s" % (hashlib.sha256(entry["nqn"].encode()).hexdigest()[:12], space.rpartition("n")[2]))
    if not os.path.exists(os.path.join(folder, "iopolicy")):
        with open(os.path.join(folder, "iopolicy"), "w", encoding="utf-8") as f:
            f.write("numa\n")


def _policy(name: str) -> str:
    with open(os.path.join(_sys("nvme-subsystem"), name, "iopolicy"), encoding="utf-8") as f:
        return f.read().strip()


def _sys(kind: str) -> str:
    return os.path.join(state.root(), "sys", "class", kind)


def _name_of(known: Dict[str, Any], nqn: str) -> Optional[str]:
    return next((name for name, entry in known.items() if entry["nqn"] == nqn), None)


def _fail(sentence: str) -> int:
    sys.stderr.write(sentence + "\n")
    return 1


COMMANDS = {"connect": connect, "disconnect": disconnect}
