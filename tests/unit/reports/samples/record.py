"""Everything around a verdict: the engagement, its attempts and approvals, and the facts of a whole report."""

from __future__ import annotations

from typing import Any

from app.reports.facts import Facts
from gates.canonical import sha256_of
from gates.text import Text
from tests.unit.reports.samples.document import document, manifest, plan

VENDOR, CUSTOMER = "示例全闪存储股份有限公司", "示例智算科技有限公司"


def engagement() -> dict[str, Any]:
    drives = [{"kind": "drive", "model": "QF-N7680", "serial": f"QF26K0A0010{i}", "host": "array01"} for i in range(1, 5)]
    return {
        "code": "DEMO",
        "customer": CUSTOMER,
        "vendor": VENDOR,
        "site": "示例数据中心 A-12 机柜（模拟）",
        "contract": "HT-DEMO-0001",
        "people": {
            "vendor": [{"login": "chen.jing", "name": "陈静", "title": "交付负责人"}, {"login": "li.wei", "name": "李伟", "title": "交付工程师"}],
            "customer": [{"login": "wang.fang", "name": "王芳", "title": "验收负责人"}, {"login": "zhao.lei", "name": "赵磊", "title": "机房工程师"}],
        },
        "order": {
            "model": "FX100",
            "quantity": 1,
            "lines": [
                {"kind": "array", "model": "FX100", "quantity": 1, "firmware": ["3.2.1"]},
                {"kind": "drive", "model": "QF-N7680", "quantity": 4, "firmware": ["EDA57F1Q"], "capacity": "7.68 TB"},
                {"kind": "nic", "model": "MT2892", "quantity": 1, "firmware": ["22.41.1000"]},
                {"kind": "gpu", "model": "MI308X", "quantity": 8},
            ],
        },
        "packing_list": [
            {"kind": "array", "model": "FX100", "serial": "FX100-26110017", "host": "array01"},
            *drives,
            {"kind": "nic", "model": "MT2892", "serial": "MT2651X00042", "host": "array01"},
        ],
        "targets": {
            "simulated": True,
            "hosts": {"gpu01": {"groups": ["engine", "loadgen"], "connection": "local"}, "array01": {"groups": ["storage"], "connection": "local"}},
        },
        "state": "active",
        "state_reason": None,
    }


def attempts(gate: str, verdict: str | None = "pass") -> list[dict[str, Any]]:
    same = {"plan_hash": plan().hash, "because": [], "problem": None, "cancel_reason": "", "rig_cause": ""}
    return [
        {
            **same,
            "id": f"0198-{gate}-r",
            "gate": gate,
            "number": 1,
            "rehearsal": True,
            "status": "finished",
            "verdict": None,
            "counted_at": None,
            "created_at": "2026-12-07T01:00:00+00:00",
            "started_at": "2026-12-07T01:00:02+00:00",
            "finished_at": "2026-12-07T01:31:40+00:00",
        },
        {
            **same,
            "id": f"0199-{gate}",
            "gate": gate,
            "number": 1,
            "rehearsal": False,
            "status": "finished",
            "verdict": verdict,
            "counted_at": "2026-12-08T02:20:11+00:00",
            "created_at": "2026-12-08T02:00:00+00:00",
            "started_at": "2026-12-08T02:00:03+00:00",
            "finished_at": "2026-12-08T04:12:09+00:00",
        },
    ]


def approval(party: str, kind: str, what: str, at: str, **more: Any) -> dict[str, Any]:
    person, role = ("陈静", "交付负责人") if party == "vendor" else ("王芳", "验收负责人")
    return {
        "object_kind": kind,
        "object_id": "x",
        "object_hash": what,
        "party": party,
        "person": person,
        "role": role,
        "decision": "approve",
        "comment": "",
        "at": at,
        **more,
    }


def facts(gate: str, verdict: str = "pass", **more: Any) -> Facts:
    """Complete facts of the gate's first formal attempt."""
    doc = more.pop("document", None) or document(gate, verdict)
    tries = more.pop("attempts", None) or attempts(gate, verdict)
    judged = {"revision": 1, "verdict": verdict, "hash": sha256_of(doc), "at": "2026-12-08T04:12:08+00:00", "judge_version": "0.1.0"}
    forms = []
    if gate == "G1":
        form = {
            "receivers": ["王芳", "赵磊"],
            "packaging": "完好",
            "shock_tag": "未触发",
            "appearance": "无划伤",
            "accessories": "齐全",
            "waybill": "SF-2026-118842",
        }
        forms = [{"title": Text("Unpacking inspection", "开箱检验").json(), "form": form, "photos": [{"name": "front.jpg", "sha256": "a" * 64}]}]
    values = {
        "engagement": engagement(),
        "plan": plan().data,
        "plan_hash": plan().hash,
        "plan_revision": 1,
        "sealed_at": "2026-12-01T03:00:00+00:00",
        "attempt": tries[-1],
        "attempts": tries,
        "verdict": {**judged, "document": doc},
        "verdicts": [judged],
        "manifest": manifest(gate),
        "approvals": [
            approval("customer", "plan", plan().hash, "2026-12-01T02:50:00+00:00"),
            approval("vendor", "plan", plan().hash, "2026-12-01T03:00:00+00:00", comment="限值与合同附件三一致。"),
        ],
        "forms": forms,
    }
    return Facts(**{**values, **more})
