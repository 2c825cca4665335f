"""nvme format, sanitize and sanitize-log: a wiped drive is blank afterwards, and says so in its log."""

import json
from typing import Any, Dict, List

import state


def format_drive(_: List[str], drive: Dict[str, Any]) -> int:
    """Blank the namespace."""
    _blank(drive)
    print("Success formatting namespace:1")
    return 0


def sanitize(argv: List[str], drive: Dict[str, Any]) -> int:
    """Begin a sanitize; it is done as soon as the log is read a second time."""
    action = next((word.partition("=")[2] for word in argv if word.startswith("--sanact")), "")
    _blank(drive)
    with state.changing() as now:
        now.setdefault("sanitize", {})[drive["serial"]] = {"action": int(action or 0), "reads": 0}
    return 0


def sanitize_log(_: List[str], drive: Dict[str, Any]) -> int:
    """Print the log: first under way, then done."""
    with state.changing() as now:
        entry = now.setdefault("sanitize", {}).setdefault(drive["serial"], None)
        if entry:
            entry["reads"] += 1
    working = bool(entry) and entry["reads"] < 2
    row = {"sprog": 32768 if working else 65535, "sstat": 0 if not entry else 2 if working else 257, "cdw10": (entry or {}).get("action", 0)}
    print(json.dumps({drive["controller"]: row}, indent=2))
    return 0


def _blank(drive: Dict[str, Any]) -> None:
    with state.changing() as now:
        now.get("signatures", {}).pop("/dev/" + drive["namespace"], None)


COMMANDS = {"format": format_drive, "sanitize": sanitize, "sanitize-log": sanitize_log}
