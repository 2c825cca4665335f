"""Whether a wipe may begin on a host, and the kit's order for it: what the service says that both parties approved is checked once more. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

PARTIES = ("customer", "vendor")


def wipe_refusal(wipe: Any, site: Mapping[str, Any], host: str) -> str:
    """Return why nothing may be wiped on a host, as a sentence; nothing where it may.

    `wipe` is {order, hash, approvals}: the canonical JSON of the order in base64 (people's words in it are never taken for a template), and the
    approvals of its hash, one by a person of each party. The host's drives must stand in the order, and on the packing list for this very host.
    """
    if not isinstance(wipe, Mapping) or not isinstance(wipe.get("approvals"), list) or not isinstance(wipe.get("order"), str):
        return "A wipe needs an order that both parties approved (quadgate targets wipe). Nothing was wiped."
    try:
        data = base64.b64decode(wipe["order"], validate=True)
        order = json.loads(data)
    except ValueError:
        return "The wipe order cannot be read. Nothing was wiped."
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    if not isinstance(order, dict) or wipe.get("hash") != digest:
        return f"The wipe order is {digest}, and not {wipe.get('hash')}, which was to be approved. Nothing was wiped."
    good = [row for row in wipe["approvals"] if isinstance(row, Mapping) and _is_of(row, order, digest)]
    apart = all(len({row[key] for row in good}) == len(PARTIES) for key in ("id", "user_id"))
    if sorted(str(row.get("party")) for row in good) != list(PARTIES) or not apart:
        lacking = [party for party in PARTIES if party not in {row.get("party") for row in good}]
        return f"Wipe order {digest} lacks the approval of a person of: {', '.join(lacking or PARTIES)}. Nothing was wiped."
    if order.get("method") not in ("sanitize", "format"):
        return f"Wipe order {digest} says the method {order.get('method')!r}; there are sanitize and format. Nothing was wiped."
    wanted = _serials_on(order, host)
    packed = {piece["serial"] for piece in site.get("packing_list") or [] if piece.get("kind") == "drive" and piece.get("host") == host}
    if not wanted:
        return f"The wipe order names no drive in {host}. Nothing was wiped."
    if strange := ", ".join(sorted(set(wanted) - packed)):
        return f"{strange} is not on the packing list for {host}, so it is not ours to wipe. Nothing was wiped."
    return ""


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
