"""nvme-cli: list, list-subsys, id-ctrl and the logs; fabrics and wiping stand in files of their own. Temperatures in kelvin, serials padded."""

import json
import sys
from typing import Any, Dict, List

import nodes
import nvme_fabrics
import nvme_wipe
import state

PLACES = 64  # of the error log


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer one command."""
    command = argv[1] if len(argv) > 1 else "help"
    if command in ("version", "--version"):
        print("nvme version %s (git %s)\nlibnvme version %s" % (rack["tools"]["nvme"], rack["tools"]["nvme"], rack["tools"]["libnvme"]))
        return 0
    if command == "list":
        old = tuple(int(n) for n in rack["tools"]["nvme"].split(".")[:2]) < (2, 11)
        _print({"Devices": [_flat(d, name) for d in rack["drives"] for name in nodes.namespaces(d)]} if old else _nested(rack))
        return 0
    if command == "list-subsys":
        _print(_subsystems(rack))
        return 0
    if command in nvme_fabrics.COMMANDS:
        return nvme_fabrics.COMMANDS[command](argv[2:], rack)
    drive = state.drive_of(rack, state.device_path(argv[2:]))
    answers = {"id-ctrl": _identity, "smart-log": _health, "error-log": _errors, "self-test-log": _self_tests, "list-ns": _allocated}
    if command in nvme_wipe.COMMANDS and drive:
        return nvme_wipe.COMMANDS[command](argv[2:], drive, rack)
    if command not in answers:
        sys.stderr.write("ERROR: Invalid sub-command '%s' for global plugin\n" % command)
        return 1
    if drive is None:
        sys.stderr.write("%s: No such file or directory\n" % state.device_path(argv[2:]))
        return 1
    _print(answers[command](drive))
    return 0


def _print(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _allocated(drive: Dict[str, Any]) -> Dict[str, Any]:
    """Return the namespaces that the drive keeps, those that are attached to nobody too."""
    return {"nsid_list": [{"nsid": n + 1} for n in range(len(nodes.namespaces(drive)) + drive.get("unattached", 0))]}


def _namespace(drive: Dict[str, Any], name: str) -> Dict[str, Any]:
    size, sector = drive["capacity_bytes"], drive["sector_bytes"]
    return {
        "NameSpace": name,
        "Generic": name.replace("nvme", "ng"),
        "NSID": int(name.rpartition("n")[2]),
        "UsedBytes": size,
        "MaximumLBA": size // sector,
        "PhysicalSize": size,
        "SectorSize": sector,
    }


def _flat(drive: Dict[str, Any], name: str) -> Dict[str, Any]:
    row = {
        "DevicePath": "/dev/" + name,
        "Firmware": drive["firmware"],
        "ModelNumber": drive["model"],
        "SerialNumber": drive["serial"].ljust(20),
    }
    row.update(_namespace(drive, name))
    row["NameSpace"] = row["NSID"]
    return row


def _nested(rack: Dict[str, Any]) -> Dict[str, Any]:
    subsystems = []
    for index, drive in enumerate(rack["drives"]):
        controller = {
            "Controller": drive["controller"],
            "Cntlid": "0",
            "SerialNumber": drive["serial"].ljust(20),
            "ModelNumber": drive["model"].ljust(40),
            "Firmware": drive["firmware"].ljust(8),
        }
        controller.update(
            {
                "Transport": "pcie",
                "Address": drive["address"],
                "Slot": str(drive["slot"]),
                "Namespaces": [_namespace(drive, name) for name in nodes.namespaces(drive)],
                "Paths": [],
            }
        )
        subsystems.append({"Subsystem": "nvme-subsys%d" % index, "SubsystemNQN": _nqn(drive), "Controllers": [controller], "Namespaces": []})
    return {"Devices": [{"HostNQN": "nqn.2014-08.org.nvmexpress:uuid:lab", "HostID": "lab", "Subsystems": subsystems}]}


def _subsystems(rack: Dict[str, Any]) -> List[Dict[str, Any]]:
    rows = []
    for index, drive in enumerate(rack["drives"]):
        path = {"Name": drive["controller"], "Transport": "pcie", "Address": drive["address"], "State": "live"}
        rows.append({"Name": "nvme-subsys%d" % index, "NQN": _nqn(drive), "Paths": [path]})
    rows += nvme_fabrics.subsystems()
    return [{"HostNQN": "nqn.2014-08.org.nvmexpress:uuid:lab", "HostID": "lab", "Subsystems": rows}]


def _nqn(drive: Dict[str, Any]) -> str:
    return "nqn.2014.08.org.nvmexpress:%s" % drive["serial"]


def _identity(drive: Dict[str, Any]) -> Dict[str, Any]:
    names = {"sn": drive["serial"].ljust(20), "mn": drive["model"].ljust(40), "fr": drive["firmware"].ljust(8)}
    return {
        "vid": 7777,
        "ssvid": 7777,
        **names,
        "rab": 6,
        "ieee": 1193046,
        "cmic": 0,
        "mdts": 9,
        "elpe": PLACES - 1,
        "cntlid": 0,
        "ver": 131072,
        "wctemp": 350,
        "cctemp": 358,
        "tnvmcap": drive["capacity_bytes"],
        "unvmcap": 0,
        "nn": 32,
        "oacs": 8,
    }


def _health(drive: Dict[str, Any]) -> Dict[str, Any]:
    h = drive["health"]
    busy = state.is_busy(drive["controller"])
    return {
        "critical_warning": h["critical_warning"],
        "temperature": h["temperature_k"] + (4 if busy else 0),
        "avail_spare": h["available_spare"],
        "spare_thresh": 10,
        "percent_used": h["percentage_used"],
        "endurance_grp_critical_warning_summary": 0,
        "data_units_read": h["data_units_written"] * 3,
        "data_units_written": h["data_units_written"],
        "host_read_commands": h["data_units_written"] * 47,
        "host_write_commands": h["data_units_written"] * 11,
        "controller_busy_time": h["power_on_hours"] // 3,
        "power_cycles": h["power_cycles"],
        "power_on_hours": h["power_on_hours"],
        "unsafe_shutdowns": h["unsafe_shutdowns"],
        "media_errors": h["media_errors"],
        "num_err_log_entries": h["error_log_entries"],
        "warning_temp_time": h.get("warning_minutes", 0),
        "critical_comp_time": 0,
        "temperature_sensor_1": h["temperature_k"],
        "thm_temp1_trans_count": 0,
        "thm_temp2_trans_count": 0,
        "thm_temp1_total_time": 0,
        "thm_temp2_total_time": 0,
    }


def _errors(drive: Dict[str, Any]) -> Dict[str, Any]:
    """Return the error log: one entry for each counted error that it did not lose (`log_lost`), the rest never used."""
    count = drive["health"]["error_log_entries"]
    kept = max(0, count - drive.get("log_lost", 0))
    blank = {"error_count": 0, "sqid": 0, "cmdid": 0, "status_field": 0, "phase_tag": 0, "parm_error_location": 0, "lba": 0, "nsid": 0, "vs": 0}
    used = [{**blank, "error_count": n, "status_field": 0x281, "nsid": 1} for n in range(count, count - kept, -1)][:PLACES]
    return {"errors": used + [blank] * (PLACES - len(used))}


def _self_tests(drive: Dict[str, Any]) -> Dict[str, Any]:
    """Return the self-test log, the newest result first; 15 marks a place that was never used."""
    done = [
        {"Self test result": t["result"], "Self test code": t["code"], "Segment number": 0, "Valid Diagnostic Information": 0}
        for t in drive["self_tests"]
    ]
    for row, test in zip(done, drive["self_tests"]):
        row.update({"Power on hours": test["hours"], "Vendor Specific": 0})
    reports = done + [{"Self test result": 15} for _ in range(20 - len(done))]
    return {"Current Device Self-Test Operation": 0, "Current Device Self-Test Completion": 0, "List of Valid Reports": reports}
