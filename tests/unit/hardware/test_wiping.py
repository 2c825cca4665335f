"""The wiping play refuses by itself what a person of each party did not approve: whoever plays it by hand gets no further."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from app.settings import ROOT
from gates.canonical import canonical_bytes, sha256_of
from tests.unit.hardware.kit import load

filters = load(ROOT / "playbooks/filter_plugins/wiping.py")
ORDER: dict[str, Any] = {
    "id": "w-1",
    "method": "sanitize",
    "action": "block",
    "drives": [{"serial": "S1", "model": "m", "host": "array01"}],
    "reason": "归还 {{ 7 * 7 }}",
}
SITE = {"packing_list": [{"kind": "drive", "serial": "S1", "host": "array01"}, {"kind": "drive", "serial": "S2", "host": "array02"}]}


def told(what: dict[str, Any] = ORDER, **more: Any) -> dict[str, Any]:
    """Return the variable as the service hands it over."""
    digest = sha256_of(what)
    about = {"object_kind": "wipe", "object_id": what["id"], "object_hash": digest, "decision": "approve"}
    given = [{**about, "id": f"a-{party}", "party": party, "user_id": f"u-{party}"} for party in ("customer", "vendor")]
    return {"order": base64.b64encode(canonical_bytes(what)).decode(), "hash": digest, "approvals": given, **more}


def changed(key: str, value: Any, which: int = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = told()["approvals"]
    rows[which] = {**rows[which], key: value}
    return rows


def test_an_order_that_both_approved_is_let_through_and_the_kit_is_told_only_that() -> None:
    assert filters.wipe_refusal(told(), SITE, "array01") == ""
    kit = filters.wipe_kit_order(told(), "array01", "/j")
    assert kit == {
        "method": "sanitize",
        "action": "block",
        "serials": ["S1"],
        "approvals": {"customer": "a-customer", "vendor": "a-vendor"},
        "order_hash": sha256_of(ORDER),
        "journal": "/j",
    }
    assert "{{" not in json.dumps(told())


@pytest.mark.parametrize(
    ("wipe", "said"),
    [
        (dict, "needs an order"),
        (lambda: {"method": "sanitize", "approvals": {"vendor": "a-1", "customer": "a-2"}}, "needs an order"),
        (lambda: told(order="no base64!"), "cannot be read"),
        (lambda: told(order=told({**ORDER, "drives": [{"serial": "S2", "model": "m", "host": "array01"}]})["order"]), "was to be approved"),
        (lambda: told(hash="sha256:0"), "was to be approved"),
        (lambda: told(approvals=[]), "of: customer, vendor"),
        (lambda: told(approvals=told()["approvals"][:1]), "of: vendor"),
        (lambda: told(approvals=changed("decision", "reject")), "of: customer"),
        (lambda: told(approvals=changed("object_hash", "sha256:1")), "of: customer"),
        (lambda: told(approvals=changed("object_kind", "plan")), "of: customer"),
        (lambda: told(approvals=changed("object_id", "w-2", 1)), "of: vendor"),
        (lambda: told(approvals=changed("party", "vendor")), "of: customer"),
        (lambda: told(approvals=changed("user_id", "u-vendor")), "lacks the approval"),
        (lambda: told(approvals=changed("id", "a-vendor")), "lacks the approval"),
        (lambda: told({**ORDER, "method": "dd"}), "there are sanitize and format"),
        (lambda: told({**ORDER, "drives": [{"serial": "S2", "model": "m", "host": "array01"}]}), "not on the packing list"),
        (lambda: told({**ORDER, "drives": [{"serial": "S2", "model": "m", "host": "array02"}]}), "no drive in array01"),
    ],
)
def test_anything_less_is_refused_with_nothing_wiped(wipe: Callable[[], dict[str, Any]], said: str) -> None:
    refused = json.loads(filters.wipe_refusal(wipe(), SITE, "array01"))
    assert said in refused["en"]
    assert refused["en"].endswith("Nothing was wiped.")
    assert refused["zh-CN"].endswith("未擦除任何内容。")
