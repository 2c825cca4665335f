"""The end of a unit on loan: every named drive is wiped by its own firmware, and each wipe becomes a record by serial number.

Only drives named by serial, that carry no mount and no RAID, and only with the approval ids of both parties. Cannot be undone.
"""

import json
import os
import re
import time
from typing import Any, Dict, List, Optional

from hardware.host import Host, Refused

SANITIZE = {"block": 2, "overwrite": 3, "crypto": 4}  # NVMe base specification, Sanitize Action
DONE, WORKING, NO_DEALLOCATE = 1, 2, 4  # sanitize status, low three bits: 1 done, 2 under way, 3 failed, 4 done without deallocation
POLL_S, LIMIT_S = 2.0, 6 * 3600


def apply(host: Host) -> Dict[str, Any]:
    """Wipe the drives of the order. Return {records: [{serial, ...}]}."""
    order = host.order
    approvals = [str(order["approvals"].get(party) or "") for party in ("vendor", "customer")]
    if not all(approvals) or approvals[0] == approvals[1]:
        raise Refused("A wipe needs the approval ids of both parties (wipe.approvals.vendor and .customer), and they must differ. Nothing was wiped.")
    drives = _drives(host)
    absent = [serial for serial in order["serials"] if serial not in drives]
    if absent:
        raise Refused("No drive here has the serial number %s. Nothing was wiped." % ", ".join(absent))
    for serial in order["serials"]:
        used = _used(host, drives[serial])
        if used:
            raise Refused(
                "%s (%s) is in use by %s. Nothing was wiped; remove the volume first." % (drives[serial]["device"], serial, ", ".join(used))
            )
    records = [_recorded(host, serial, drives[serial]) for serial in order["serials"]]
    return {"records": records, "approvals": order["approvals"], "order_hash": order.get("order_hash")}


def _recorded(host: Host, serial: str, drive: Dict[str, Any]) -> Dict[str, Any]:
    """Wipe one drive. What goes wrong becomes its record, whatever it is: those before it are wiped already, and their records must not be lost."""
    begun = {"serial": serial, "device": drive["device"], "method": host.order["method"], "began_unix_s": round(time.time(), 3)}
    _journal(host, {**begun, "outcome": "begun"})
    try:
        record = _wipe(host, serial, drive)
    except Exception as error:  # the next drive is wiped all the same, and this one's record says why it is not
        unforeseen = "%s: %s. This was not foreseen; the drive counts as not wiped." % (type(error).__name__, error)
        why = str(error) if isinstance(error, Refused) else unforeseen
        host.check("wiped.%s" % serial, False, why, "blank", "nvme %s" % host.order["method"])
        record = {**begun, "outcome": "failed", "why": why, "ended_unix_s": round(time.time(), 3)}
    _journal(host, record)
    return record


def _journal(host: Host, record: Dict[str, Any]) -> None:
    """Append a record to the order's journal as soon as it is made (a line each, synced): a kit that is killed leaves what it did."""
    path = host.order.get("journal")
    if not path or host.dry:
        return
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(record, sort_keys=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _wipe(host: Host, serial: str, drive: Dict[str, Any]) -> Dict[str, Any]:
    method, device, controller = host.order["method"], drive["device"], drive["controller"]
    before = host.json(["nvme", "id-ctrl", controller, "-o", "json"])
    if str(before.get("sn", "")).strip() != serial:
        raise Refused("%s says serial number %r and not %s; nothing was wiped on it." % (controller, before.get("sn"), serial))
    began = time.time()
    if method == "sanitize":
        action = SANITIZE[host.order.get("action") or "block"]
        argv = ["nvme", "sanitize", controller, "--sanact=%d" % action]
    else:
        argv = ["nvme", "format", device, "--ses=%d" % int(host.order.get("ses") or 1), "--force"]
    said = host.do(argv, "wipe %s by %s" % (serial, method))
    log: Optional[Dict[str, Any]] = None
    if method == "sanitize" and not host.dry:
        log = _wait(host, controller)
    code, out, _ = host.ask(["blkid", "-p", "-o", "export", device]) if not host.dry else (2, "", "")
    done = code == 2 and (log is None or log["state"] in (DONE, NO_DEALLOCATE))
    host.check("wiped.%s" % serial, done, out.strip() or "blank", "blank", "blkid -p %s" % device)
    return {
        "serial": serial,
        "model": str(before.get("mn", "")).strip(),
        "firmware": str(before.get("fr", "")).strip(),
        "capacity_bytes": before.get("tnvmcap"),
        "device": device,
        "method": method,
        "argv": argv,
        "said": said.strip()[:400],
        "sanitize_log": log,
        "began_unix_s": round(began, 3),
        "ended_unix_s": round(time.time(), 3),
        "outcome": "planned" if host.dry else "wiped" if done else "failed",
    }


def _wait(host: Host, controller: str) -> Dict[str, Any]:
    end = time.monotonic() + LIMIT_S
    while True:
        told = host.json(["nvme", "sanitize-log", controller, "-o", "json"])
        log: Dict[str, Any] = next(iter(told.values())) if len(told) == 1 and isinstance(next(iter(told.values())), dict) else told
        state = sanitize_state(log.get("sstat"))
        if state is None:
            raise Refused(
                "%s: `nvme sanitize-log` printed no status that can be read (%s). It is not known to be blank and must not leave the site."
                % (controller, json.dumps(told)[:200])
            )
        if state != WORKING:
            if state not in (DONE, NO_DEALLOCATE):
                raise Refused(
                    "%s says that its sanitize failed (sstat %s). The drive must not leave the site; see `nvme sanitize-log`."
                    % (controller, json.dumps(log["sstat"]))
                )
            return {"state": state, **{key: log[key] for key in ("sprog", "sstat") if key in log}}
        if time.monotonic() > end:
            raise Refused("%s still sanitizes after %d s (progress %s of 65536)." % (controller, LIMIT_S, log.get("sprog")))
        time.sleep(POLL_S)


def sanitize_state(sstat: Any) -> Optional[int]:
    """Return the low three bits of the sanitize status, or None where it cannot be read.

    nvme-cli prints {"global_erased": 1, "no_cmplted_passes": 0, "status": "(1) Most Recent Sanitize Command..."} from 1.5 to 3.0, with one more key
    since 2.12; older ones, and tools of makers, print the bare field, as a number or in hexadecimal.
    """
    if isinstance(sstat, dict):
        sstat = sstat.get("status")
    if isinstance(sstat, bool):
        return None
    if isinstance(sstat, int):
        return sstat & 7
    named = re.match(r"\((\d+)\)", str(sstat or "").strip())
    bare = re.match(r"(0[xX][0-9a-fA-F]+|\d+)$", str(sstat or "").strip())
    return int(named.group(1)) & 7 if named else int(bare.group(1), 0) & 7 if bare else None


def _drives(host: Host) -> Dict[str, Dict[str, Any]]:
    """Return {serial: {controller, device, namespaces}} of local drives, from both forms of `nvme list`."""
    found: Dict[str, Dict[str, Any]] = {}
    for entry in (host.json(["nvme", "list", "-o", "json"]) or {}).get("Devices", []):
        if "DevicePath" in entry:
            device = entry["DevicePath"]
            found[str(entry["SerialNumber"]).strip()] = {"device": device, "controller": device[: device.rindex("n")]}
        for subsystem in entry.get("Subsystems", []):
            for controller in subsystem.get("Controllers", []):
                spaces: List[Dict[str, Any]] = controller.get("Namespaces") or subsystem.get("Namespaces") or []
                if controller.get("Transport") == "pcie" and spaces:
                    name = spaces[0]["NameSpace"]
                    found[str(controller["SerialNumber"]).strip()] = {"device": "/dev/%s" % name, "controller": "/dev/%s" % controller["Controller"]}
    return found


def _used(host: Host, drive: Dict[str, Any]) -> List[str]:
    """Return what stands on a drive: RAID or mapper devices, and mounts."""
    name = os.path.basename(drive["device"])
    try:
        holders = os.listdir("%s/class/block/%s/holders" % (host.sys, name))
    except OSError:
        holders = []
    mounts = [line for line in host.ask(["findmnt", "-n", "-o", "TARGET", "-S", drive["device"]])[1].splitlines() if line.strip()]
    return sorted(holders) + mounts
