"""Whether a wipe may begin on a host, and the kit's order for it: what the service says that both parties approved is checked once more. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

PARTIES = ("customer", "vendor")
PARTIES_ZH = {"customer": "需方", "vendor": "供方"}


def wipe_refusal(wipe: Any, site: Mapping[str, Any], host: str) -> str:
    """Return why nothing may be wiped on a host, as a sentence in both languages ({en, zh-CN}); nothing where it may.

    `wipe` is {order, hash, approvals}: the canonical JSON of the order in base64 (people's words in it are never taken for a template), and the
    approvals of its hash, one by a person of each party. The host's drives must stand in the order, and on the packing list for this very host.
    """
    if not isinstance(wipe, Mapping) or not isinstance(wipe.get("approvals"), list) or not isinstance(wipe.get("order"), str):
        return _both(
            "A wipe needs an order that both parties approved (quadgate targets wipe).", "擦除需要经双方确认的申请（quadgate targets wipe）。"
        )
    try:
        data = base64.b64decode(wipe["order"], validate=True)
        order = json.loads(data)
    except ValueError:
        return _both("The wipe order cannot be read.", "无法读取擦除申请。")
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    if not isinstance(order, dict) or wipe.get("hash") != digest:
        return _both(
            f"The wipe order is {digest}, and not {wipe.get('hash')}, which was to be approved.",
            f"擦除申请的散列为 {digest}，而不是应予确认的 {wipe.get('hash')}。",
        )
    good = [row for row in wipe["approvals"] if isinstance(row, Mapping) and _is_of(row, order, digest)]
    apart = all(len({row[key] for row in good}) == len(PARTIES) for key in ("id", "user_id"))
    if sorted(str(row.get("party")) for row in good) != list(PARTIES) or not apart:
        lacking = [party for party in PARTIES if party not in {row.get("party") for row in good}]
        return _both(
            f"Wipe order {digest} lacks the approval of a person of: {', '.join(lacking or PARTIES)}.",
            f"擦除申请 {digest} 缺少以下各方一名人员的确认：{'、'.join(PARTIES_ZH[party] for party in lacking or PARTIES)}。",
        )
    if order.get("method") not in ("sanitize", "format"):
        return _both(
            f"Wipe order {digest} says the method {order.get('method')!r}; there are sanitize and format.",
            f"擦除申请 {digest} 的方式为 {order.get('method')!r}；可用的有 sanitize 与 format。",
        )
    wanted = _serials_on(order, host)
    packed = {piece["serial"] for piece in site.get("packing_list") or [] if piece.get("kind") == "drive" and piece.get("host") == host}
    if not wanted:
        return _both(f"The wipe order names no drive in {host}.", f"擦除申请中没有主机 {host} 的硬盘。")
    if strange := ", ".join(sorted(set(wanted) - packed)):
        return _both(
            f"{strange} is not on the packing list for {host}, so it is not ours to wipe.", f"{strange} 不在主机 {host} 的装箱单上，无权擦除。"
        )
    return ""


def _both(en: str, zh: str) -> str:
    return json.dumps({"en": f"{en} Nothing was wiped.", "zh-CN": f"{zh}未擦除任何内容。"}, ensure_ascii=False)


def wipe_kit_order(wipe: Mapping[str, Any], host: str, journal: str) -> dict[str, Any]:
    """Return what the hardware kit is told: method, serial numbers of this host, the approvals' ids by party, and the hash that they name."""
    order = json.loads(base64.b64decode(wipe["order"]))
    return {
        **{key: order[key] for key in ("method", "action", "ses") if order.get(key) is not None},
        "serials": _serials_on(order, host),
        "approvals": {str(row["party"]): str(row["id"]) for row in wipe["approvals"]},
        "order_hash": wipe["hash"],
        "journal": journal,
    }


def _serials_on(order: Mapping[str, Any], host: str) -> list[str]:
    """Return the serial numbers that the order names on a host."""
    return sorted(str(drive["serial"]) for drive in order.get("drives") or [] if drive.get("host") == host)


def _is_of(row: Mapping[str, Any], order: Mapping[str, Any], digest: str) -> bool:
    """Tell whether an approval says yes to exactly this order, and names who gave it."""
    about = (row.get("object_kind"), row.get("object_id"), row.get("object_hash"), row.get("decision"))
    return about == ("wipe", order.get("id"), digest, "approve") and bool(row.get("id")) and bool(row.get("user_id"))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"wipe_refusal": wipe_refusal, "wipe_kit_order": wipe_kit_order}
