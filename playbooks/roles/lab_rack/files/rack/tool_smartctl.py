"""smartctl --json: other names than nvme-cli's, and degrees Celsius."""

import json
import sys
from typing import Any, Dict, List

import state


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer `smartctl -x --json DEV` or `--version`."""
    major, minor = (int(n) for n in rack["tools"]["smartctl"].split("."))
    if "--version" in argv or "-V" in argv:
        print("smartctl %d.%d 2023-08-01 r5530 [x86_64-linux] (local build)" % (major, minor))
        return 0
    head = {"json_format_version": [1, 0], "smartctl": {"version": [major, minor], "platform_info": "x86_64-linux", "argv": argv, "exit_status": 0}}
    path = state.device_path(argv[1:])
    drive = state.drive_of(rack, path)
    if drive is None:
        head["smartctl"]["messages"] = [{"string": "Smartctl open device: %s failed: No such device" % path, "severity": "error"}]
        head["smartctl"]["exit_status"] = 2
        print(json.dumps(head, indent=2))
        return 2
    if not state.has_json(argv):
        sys.stderr.write("smartctl (simulated): only --json is offered\n")
        return 1
    print(json.dumps({**head, **_answer(drive, path)}, indent=2))
    return 0


def _answer(drive: Dict[str, Any], path: str) -> Dict[str, Any]:
    h = drive["health"]
    celsius = h["temperature_k"] - 273 + (4 if state.is_busy(drive["controller"]) else 0)
    return {
        "device": {"name": path, "info_name": path, "type": "nvme", "protocol": "NVMe"},
        "model_name": drive["model"],
        "serial_number": drive["serial"],
        "firmware_version": drive["firmware"],
        "nvme_total_capacity": drive["capacity_bytes"],
        "user_capacity": {"blocks": drive["capacity_bytes"] // drive["sector_bytes"], "bytes": drive["capacity_bytes"]},
        "logical_block_size": drive["sector_bytes"],
        "smart_status": {"passed": h["critical_warning"] == 0, "nvme": {"value": h["critical_warning"]}},
        "nvme_smart_health_information_log": {
            "critical_warning": h["critical_warning"],
            "temperature": celsius,
            "available_spare": h["available_spare"],
            "available_spare_threshold": 10,
            "percentage_used": h["percentage_used"],
            "data_units_read": h["data_units_written"] * 3,
            "data_units_written": h["data_units_written"],
            "power_cycles": h["power_cycles"],
            "power_on_hours": h["power_on_hours"],
            "unsafe_shutdowns": h["unsafe_shutdowns"],
            "media_errors": h["media_errors"],
            "num_err_log_entries": h["error_log_entries"],
        },
        "temperature": {"current": celsius},
        "power_cycle_count": h["power_cycles"],
        "power_on_time": {"hours": h["power_on_hours"]},
    }
