"""What the roles fabric, array and volume tell the hardware kit, and how they say what is not as agreed. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

REMEDY = ("Put it right, or correct targets.{what}, then deploy again.", "请排除，或更正 targets.{what}，然后重新部署。")
REMEDIES = {"wipe": ("The drives named must not leave the site; order their wipe anew.", "所列硬盘不得离开现场；请重新申请擦除。")}


def hardware_order(order: Mapping[str, Any], root: str, site: Mapping[str, Any], etc: str = "") -> dict[str, Any]:
    """Return the order with the places of this host: its own, or those of the simulated rack."""
    rack = f"{root}/rack" if site.get("rack") else ""
    return {
        **order,
        "root": root,
        "etc": etc or (f"{rack}/etc" if rack else "/etc"),
        "sys": f"{rack}/sys" if rack else "/sys",
        "dev": f"{rack}/dev" if rack else "/dev",
        "proc": f"{rack}/proc" if rack else "/proc",
        "path_prefix": [f"{rack}/bin"] if rack else [],
    }


def media_of(site: Mapping[str, Any], root: str, host: str, devices: list[str]) -> dict[str, dict[str, Any]]:
    """Return the media of this host by name, `{root}` in their paths filled in; a RAID without devices of its own takes the array's namespaces."""
    found = {}
    for name, described in (site.get("volume") or {}).items():
        if host not in (described.get("hosts") or [host]):
            continue
        medium = {key: value.replace("{root}", root) if isinstance(value, str) else value for key, value in described.items() if key != "hosts"}
        if medium.get("kind") == "md_xfs" and not medium.get("devices"):
            medium["devices"] = devices
        found[name] = medium
    return found


def kv_folders(media: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the folder for KV of each medium by its name."""
    return {name: f"{medium['mount']}/kv" for name, medium in media.items()}


def hardware_survey(site: Mapping[str, Any], root: str, host: str) -> list[dict[str, Any]]:
    """Return the commands whose raw output proves fabric, array and volume of this host, for the survey pack of a deployment."""
    bin_dir = f"{root}/rack/bin/" if site.get("rack") else ""
    told: list[tuple[str, list[str]]] = []
    names = (site.get("packages") or {}).get("needed")
    if names:
        told.append(("os-packages", ["sh", "-c", 'dpkg-query -W "$@" 2>/dev/null || rpm -q "$@"', "sh", *names]))
    fabric = site.get("fabric") or {}
    for interface in (fabric.get("hosts") or {}).get(host, {}).get("interfaces", fabric.get("interfaces", [])):
        told += [
            (f"ethtool.{interface['netdev']}", ["ethtool", interface["netdev"]]),
            (f"mlnx-qos.{interface['netdev']}", ["mlnx_qos", "-i", interface["netdev"]]),
        ]
    if fabric:
        told += [("rdma-link", ["rdma", "-j", "link", "show"]), ("ip-link", ["ip", "-j", "-s", "link"])]
    if site.get("array"):
        told.append(("nvme-list-subsys", ["nvme", "list-subsys", "-o", "json"]))
    for name, medium in media_of(site, root, host, []).items():
        if medium["kind"] == "md_xfs":
            told.append((f"mdadm.{name}", ["mdadm", "--detail", "--export", medium.get("device") or f"/dev/md/qg-{name}"]))
        if medium["kind"] in ("md_xfs", "xfs"):
            told.append((f"xfs-info.{name}", ["xfs_info", medium["mount"]]))
        if medium["kind"] in ("md_xfs", "xfs", "nfs"):
            told.append((f"findmnt.{name}", ["findmnt", "-J", "-M", medium["mount"]]))
    return [{"name": name, "tool": name.partition(".")[0], "argv": [bin_dir + argv[0], *argv[1:]], "timeout_s": 30} for name, argv in told]


def both(en: str, zh: str) -> str:
    """Return a sentence as a task says it in both languages: the service shows each reader one half (app/engine/spoken.py)."""
    return json.dumps({"en": en, "zh-CN": zh}, ensure_ascii=False)


def checks_sentence(answer: Mapping[str, Any], what: str, host: str) -> str:
    """Return what is not as agreed, in sentences of both languages with the command that shows it."""
    rows_zh = [
        f"{row['check']} 为 {row['value']}，应为 {row['wanted']}（{row['evidence']}）"
        if row["state"] == "wrong"
        else f"{row['check']} 无法判断，应为 {row['wanted']}（{row['evidence']} 的结果：{row['value'] or '无'}）"
        for row in answer["wrong"]
    ]
    rows = [
        f"{row['check']} is {row['value']} and should be {row['wanted']} ({row['evidence']})"
        if row["state"] == "wrong"
        else f"{row['check']} cannot be told; it should be {row['wanted']} ({row['evidence']} says {row['value'] or 'nothing'})"
        for row in answer["wrong"]
    ]
    remedy, remedy_zh = REMEDIES.get(what, REMEDY)
    return both(
        f"The {what} of {host} is not as agreed: {'; '.join(rows)}. {remedy.format(what=what)}",
        f"主机 {host} 的 {what} 与约定不符：{'；'.join(rows_zh)}。{remedy_zh.format(what=what)}",
    )


def wipe_answer(done: Mapping[str, Any], journal: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kit's answer to a wipe; where the kit ended without one, what its journal says of each drive, with a row of `wrong` for its end."""
    if done.get("rc") == 0:
        answer: dict[str, Any] = json.loads(done["stdout"])
        return answer
    rows = [json.loads(line) for line in journal.splitlines() if line.endswith("}")]
    last = {row["serial"]: row for row in rows}
    row = {
        "check": "wipe.ended",
        "state": "wrong",
        "value": f"exit code {done.get('rc')}: {_english(str(done.get('stderr', '')))[-300:]}",
        "wanted": "an answer for every drive",
        "evidence": "records.jsonl",
    }
    facts = {"records": list(last.values()), "approvals": order["approvals"], "order_hash": order.get("order_hash")}
    return {"part": "wipe", "verb": "apply", "changed": sorted(last), "checks": [row], "wrong": [row], "facts": facts}


def _english(stderr: str) -> str:
    """Return the English half of a refusal of the kit, or whatever else stands there."""
    try:
        return str(json.loads(stderr)["en"])
    except (ValueError, KeyError, TypeError):
        return stderr


def return_slip(answer: Mapping[str, Any], site: Mapping[str, Any], host: str) -> dict[str, Any]:
    """Return what goes back, piece by piece, for both parties to sign: every piece of the packing list on this host, its wipe where it is a drive."""
    wiped = {record["serial"]: record for record in answer["facts"]["records"]}
    pieces = [piece for piece in site.get("packing_list") or [] if piece.get("host") == host]
    rows = [{**piece, "wipe": wiped.get(piece.get("serial"), {}).get("outcome")} for piece in pieces]
    left = [row["serial"] for row in rows if row["kind"] == "drive" and row["wipe"] != "wiped"]
    return {
        "schema": 1,
        "host": host,
        "model": (site.get("order") or {}).get("model"),
        "pieces": rows,
        "drives_not_wiped": left,
        "approvals": answer["facts"]["approvals"],
        "order_hash": answer["facts"].get("order_hash"),
        "signed": {"vendor": None, "customer": None},
    }


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {
            "hardware_order": hardware_order,
            "media_of": media_of,
            "kv_folders": kv_folders,
            "wipe_answer": wipe_answer,
            "return_slip": return_slip,
            "hardware_survey": hardware_survey,
            "checks_sentence": checks_sentence,
        }
