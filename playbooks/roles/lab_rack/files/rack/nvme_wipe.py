"""nvme format, sanitize and sanitize-log: a wiped drive is blank afterwards, and says so in its log."""

import json
import os
from typing import Any, Dict, List, Tuple

import nodes
import state

SAID = {
    0: "NVM Subsystem has never been sanitized.",
    1: "Most Recent Sanitize Command Completed Successfully.",
    2: "Sanitize in Progress.",
    3: "Most Recent Sanitize Command Failed.",
}


def format_drive(argv: List[str], drive: Dict[str, Any], _: Dict[str, Any]) -> int:
    """Blank the one namespace that was named. `format_keeps`: it says so and does nothing; `format_loses`: the namespace is gone afterwards."""
    name = os.path.basename(state.device_path(argv))
    if drive.get("format_loses"):
        nodes.hide(name)
    elif not drive.get("format_keeps"):
        _blank([name])
    print("Success formatting namespace:%s" % name.rpartition("n")[2])
    return 0


def sanitize(argv: List[str], drive: Dict[str, Any], _: Dict[str, Any]) -> int:
    """Begin a sanitize; it is done as soon as the log is read a second time."""
    action = next((word.partition("=")[2] for word in argv if word.startswith("--sanact")), "")
    _blank(nodes.namespaces(drive))
    with state.changing() as now:
        now.setdefault("sanitize", {})[drive["serial"]] = {"action": int(action or 0), "reads": 0}
    return 0


def sanitize_log(_: List[str], drive: Dict[str, Any], rack: Dict[str, Any]) -> int:
    """Print the log as the description's nvme-cli does: under way, then done, or failed where the drive has `sanitize_fails`."""
    version = tuple(int(n) for n in rack["tools"]["nvme"].split(".")[:2])
    with state.changing() as now:
        entry = now.setdefault("sanitize", {}).setdefault(drive["serial"], None)
        if entry:
            entry["reads"] += 1
    working = bool(entry) and entry["reads"] < 2
    status = 0 if not entry else 2 if working else 3 if drive.get("sanitize_fails") else 1
    row: Dict[str, Any] = {"sprog": 32768 if working else 65535, "sstat": _sstat(status, version), "cdw10_info": (entry or {}).get("action", 0)}
    row.update({"time_over_write": 4294967295, "time_block_erase": 120, "time_crypto_erase": 10})
    if version >= (2, 12):
        row["sanitize_state_information"] = {"sanitize_state": "(0) Idle state"}
    print(json.dumps({drive["controller"]: row}, indent=2))
    return 0


def _sstat(status: int, version: Tuple[int, ...]) -> Any:
    """Return the field as nvme-cli prints it since 1.5 (2018), or as the bare number that the drive holds, for an older one."""
    erased = 1 if status == 1 else 0
    if version < (1, 5):
        return erased << 8 | status
    told = {"global_erased": erased, "no_cmplted_passes": 0, "status": "(%d) %s" % (status, SAID[status])}
    return {"media_verification_canceled": 0, **told} if version >= (2, 12) else told


def _blank(names: List[str]) -> None:
    with state.changing() as now:
        for name in names:
            now.get("signatures", {}).pop("/dev/" + name, None)
            nodes.blank("/dev/" + name)


COMMANDS = {"format": format_drive, "sanitize": sanitize, "sanitize-log": sanitize_log}
