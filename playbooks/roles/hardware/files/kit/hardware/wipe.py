"""The end of a unit on loan: every named drive is wiped by its own firmware, and each wipe becomes a record by serial number.

Only drives named by serial, of which nothing uses a namespace or a partition, and only with the approval ids of both parties. Cannot be undone.
"Wiped" is a drive that says so and of which every namespace can be read afterwards and shows nothing of what was there before.
"""

import json
import os
import re
import time
from typing import Any, Dict, List, Optional

from hardware import blocks, drives
from hardware.host import Host, Refused

SANITIZE = {"block": 2, "overwrite": 3, "crypto": 4}  # NVMe base specification, Sanitize Action
DONE, WORKING, NO_DEALLOCATE = 1, 2, 4  # sanitize status, low three bits: 1 done, 2 under way, 3 failed, 4 done without deallocation
FIRST_S, POLL_S, LIMIT_S = 0.1, 2.0, 6 * 3600  # between two readings of a log: a crypto erase takes a moment, a block erase minutes


def apply(host: Host) -> Dict[str, Any]:
    """Wipe the drives of the order. Return {records: [{serial, ...}]}."""
    order = host.order
    approvals = [str(order["approvals"].get(party) or "") for party in ("vendor", "customer")]
    if not all(approvals) or approvals[0] == approvals[1]:
        raise Refused(
            "A wipe needs the approval ids of both parties (wipe.approvals.vendor and .customer), and they must differ. Nothing was wiped.",
            "擦除需要双方各自的确认编号（wipe.approvals.vendor 与 .customer），且二者不得相同。未擦除任何内容。",
        )
    found = drives.drives_of(host)
    absent = [serial for serial in order["serials"] if serial not in found]
    if absent:
        raise Refused(
            "No drive here has the serial number {0}. Nothing was wiped.", "此处没有序列号为 {0} 的硬盘。未擦除任何内容。", ", ".join(absent)
        )
    for serial in order["serials"]:
        used = drives.users_of(host, found[serial])
        if used:
            raise Refused(
                "{0} ({1}) is in use by {2}. Nothing was wiped; remove the volume first.",
                "{0}（{1}）正被占用：{2}。未擦除任何内容；请先清除卷。",
                found[serial]["controller"],
                serial,
                ", ".join(used),
            )
        if order["method"] == "format":
            drives.require_all_attached(host, serial, found[serial])
    records = [_recorded(host, serial, found[serial]) for serial in order["serials"]]
    return {"records": records, "approvals": order["approvals"], "order_hash": order.get("order_hash")}


def _recorded(host: Host, serial: str, drive: Dict[str, Any]) -> Dict[str, Any]:
    """Wipe one drive. What goes wrong becomes its record, whatever it is: those before it are wiped already, and their records must not be lost."""
    begun = {"serial": serial, "device": drive["namespaces"][0], "method": host.order["method"], "began_unix_s": round(time.time(), 3)}
    _journal(host, {**begun, "outcome": "begun"})
    try:
        record = _wipe(host, serial, drive)
    except Exception as error:  # the next drive is wiped all the same, and this one's record says why it is not
        told = error if isinstance(error, Refused) else _unforeseen(error)
        host.check("wiped.%s" % serial, False, told.en, "blank", "nvme %s" % host.order["method"])
        record = {**begun, "outcome": "failed", "why": told.en, "why_zh": told.zh, "ended_unix_s": round(time.time(), 3)}
    _journal(host, record)
    return record


def _unforeseen(error: Exception) -> Refused:
    return Refused(
        "{0}: {1}. This was not foreseen; the drive counts as not wiped.",
        "{0}：{1}。此情况未曾预料；该盘按未擦除计。",
        type(error).__name__,
        error,
    )


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
    method, controller, spaces = host.order["method"], drive["controller"], drive["namespaces"]
    before = _identity(host, serial, controller, Refused("nothing was wiped on it", "未对其擦除任何内容"))
    stood = {device: _stood(host, device) for device in spaces}
    began = time.time()
    if method == "sanitize":
        commands = [["nvme", "sanitize", controller, "--sanact=%d" % SANITIZE[host.order.get("action") or "block"]]]
    else:
        ses = int(host.order.get("ses") or 1)
        commands = [["nvme", "format", device, "--ses=%d" % ses, "--force"] for device in spaces]
    said = [host.do(argv, "wipe %s by %s (%s)" % (serial, method, argv[2])).strip() for argv in commands]
    log = _wait(host, controller) if method == "sanitize" and not host.dry else None
    left: List[Refused] = []
    if not host.dry:
        _identity(host, serial, controller, Refused("it counts as not wiped", "按未擦除计"))
        left = [sentence for device in spaces for sentence in _left(host, device, stood[device])]
        host.check(
            "wiped.%s" % serial,
            not left,
            _together(left).en or "blank",
            "blank",
            "blkid -p, up to %d blocks of %s" % (blocks.SAMPLES, ", ".join(spaces)),
        )
    return {
        "serial": serial,
        "model": str(before.get("mn", "")).strip(),
        "firmware": str(before.get("fr", "")).strip(),
        "capacity_bytes": before.get("tnvmcap"),
        "device": spaces[0],
        "namespaces": spaces,
        "method": method,
        "argv": commands[0],
        "commands": commands,
        "said": "; ".join(said)[:400],
        "sanitize_log": log,
        "began_unix_s": round(began, 3),
        "ended_unix_s": round(time.time(), 3),
        "outcome": "planned" if host.dry else "failed" if left else "wiped",
        **({"why": _together(left).en, "why_zh": _together(left).zh} if left else {}),
    }


def _identity(host: Host, serial: str, controller: str, otherwise: Refused) -> Dict[str, Any]:
    """Return what the controller says of itself. Raises Refused when it is another drive than the one that was named."""
    told: Dict[str, Any] = host.json(["nvme", "id-ctrl", controller, "-o", "json"])
    if str(told.get("sn", "")).strip() != serial:
        raise Refused(
            "{0} says serial number {1!r} and not {2}; {3}.", "{0} 的序列号为 {1!r}，而不是 {2}；{3}。", controller, told.get("sn"), serial, otherwise
        )
    return told


def _stood(host: Host, device: str) -> Optional[Dict[int, str]]:
    """Return what stands on a namespace before it is wiped; None for one that cannot be read, of which only blank blocks prove anything later."""
    try:
        return blocks.samples(host, device)
    except Refused:
        return None


def _left(host: Host, device: str, stood: Optional[Dict[int, str]]) -> List[Refused]:
    """Return why a namespace does not count as blank, in sentences; nothing where it does.

    A block that is neither blank nor what it was before is fine: a cryptographic erase leaves noise. Raises Refused for a device that cannot be read.
    """
    found, now = [], blocks.samples(host, device)
    tags = blocks.tags_of(host, device)
    if tags is not None:
        found.append(Refused("{0} still holds {1}", "{0} 上仍有 {1}", device, blocks.signature(tags)))
    same = [at for at, digest in now.items() if digest and (stood is None or stood.get(at) == digest)]
    if same and stood is not None:
        en = "{0} of {1} blocks of {2} hold the same as before (the first at byte {3})"
        found.append(Refused(en, "{2} 的 {1} 个取样块中有 {0} 个与擦除前相同（首个位于字节 {3}）", len(same), len(now), device, same[0]))
    elif same:
        en = "{0} of {1} blocks of {2} hold something (the first at byte {3}), and what was there before could not be read"
        found.append(
            Refused(en, "{2} 的 {1} 个取样块中有 {0} 个不为空白（首个位于字节 {3}），且擦除前的内容无法读取", len(same), len(now), device, same[0])
        )
    return found


def _together(sentences: List[Refused]) -> Refused:
    """Return several sentences as one."""
    both = "; ".join(one.en for one in sentences), "；".join(one.zh for one in sentences)
    return Refused("{0}", "{1}", *both)


def _wait(host: Host, controller: str) -> Dict[str, Any]:
    end, pause = time.monotonic() + LIMIT_S, FIRST_S
    while True:
        told = host.json(["nvme", "sanitize-log", controller, "-o", "json"])
        log: Dict[str, Any] = next(iter(told.values())) if len(told) == 1 and isinstance(next(iter(told.values())), dict) else told
        state = sanitize_state(log.get("sstat"))
        if state is None:
            raise Refused(
                "{0}: `nvme sanitize-log` printed no status that can be read ({1}). It is not known to be blank and must not leave the site.",
                "{0}：`nvme sanitize-log` 未输出可读的状态（{1}）。无法确认其为空白，不得离开现场。",
                controller,
                json.dumps(told)[:200],
            )
        if state != WORKING:
            if state not in (DONE, NO_DEALLOCATE):
                raise Refused(
                    "{0} says that its sanitize failed (sstat {1}). The drive must not leave the site; see `nvme sanitize-log`.",
                    "{0} 报告 sanitize 失败（sstat {1}）。该盘不得离开现场；参见 `nvme sanitize-log`。",
                    controller,
                    json.dumps(log["sstat"]),
                )
            return {"state": state, **{key: log[key] for key in ("sprog", "sstat") if key in log}}
        if time.monotonic() > end:
            raise Refused(
                "{0} still sanitizes after {1} s (progress {2} of 65536).",
                "{0} 在 {1} 秒后仍在执行 sanitize（进度 {2}/65536）。",
                controller,
                LIMIT_S,
                log.get("sprog"),
            )
        time.sleep(pause)
        pause = min(POLL_S, 2 * pause)


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
