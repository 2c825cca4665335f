"""What the use cases return, made by hand in the contract's shape: for tests of faces alone, and for pictures of rare states.

`Everywhere(text)` puts a text into every string that people can enter, so that a page which forgets to escape shows it.
"""

from __future__ import annotations

import copy
from functools import cache
from types import ModuleType
from typing import Any

from gates.plan import parse_plan
from tests.integration.web_verdict import HASH, both, document

ENGAGEMENT, PLAN, ATTEMPT = "0199ad2f-0000-7000-8000-000000000001", "0199ad2f-0000-7000-8000-000000000002", "0199ad2f-0000-7000-8000-000000000003"
REPORT, STEP, APPROVAL = "0199ad2f-0000-7000-8000-000000000004", "0199ad2f-0000-7000-8000-000000000005", "0199ad2f-0000-7000-8000-000000000006"
TITLES = {
    "G1": {"en": "Arrival acceptance", "zh-CN": "到货验收"},
    "G2": {"en": "Single-node baseline", "zh-CN": "单机基线"},
    "G3": {"en": "Main gate", "zh-CN": "主门禁"},
    "G4": {"en": "72 h stability", "zh-CN": "72 h 稳定性"},
}


def gate(code: str, state: str, verdict: str | None = None, used: int = 0, **more: Any) -> dict[str, Any]:
    most = {"G1": 3, "G2": 3, "G3": 2, "G4": 2}[code]
    weeks = {"G1": 2, "G2": 2, "G3": 4, "G4": 2}[code]
    base = {
        "gate": code,
        "title": TITLES[code],
        "state": state,
        "reason": None,
        "verdict": verdict,
        "because": [],
        "status": "finished" if used else None,
    }
    rest = {"attempt_id": ATTEMPT if used else None, "attempts_used": used, "attempts_max": most, "rehearsals": 0, "weeks": weeks}
    rest |= {"attempts_left": most - used, "days_planned": 7 * weeks, "blocked_by": None}
    return base | rest | {"on_fail": "stop" if code in ("G3", "G4") else "rectify", "sign_off": "required"} | more


def item(**more: Any) -> dict[str, Any]:
    gates = [
        gate("G1", "passed", "pass", 1),
        gate("G2", "passed", "pass", 1, rehearsals=1),
        gate("G3", "running", None, 1, status="running"),
        gate("G4", "locked"),
    ]
    action = {
        "kind": "follow",
        "gate": "G3",
        "enabled": True,
        "label": both("Follow G3", "查看 G3 进展"),
        "attempt_id": ATTEMPT,
        "step_id": None,
        "why_not": None,
    }
    action["reason"] = both("Attempt 1 at G3 is still going on; only one runs at a time.", "G3 第 1 次尝试仍在进行；同一时间只运行一个。")
    head = {
        "id": ENGAGEMENT,
        "code": "HT-2026-07",
        "customer": "远山智算科技有限公司",
        "vendor": "青芯全闪存储股份有限公司",
        "site": "临港数据中心 A-12 机柜",
    }
    state = {
        "contract": "HT-2026-0107",
        "state": "active",
        "state_reason": None,
        "simulated": False,
        "created_at": "2026-11-02T01:30:00.000Z",
        "version": 7,
    }
    return head | state | {"gates": gates, "next": action} | more


def approval(kind: str = "plan", party: str = "customer", person: str = "王芳", **more: Any) -> dict[str, Any]:
    base = {"id": APPROVAL, "object_kind": kind, "object_id": PLAN, "object_hash": HASH, "party": party, "person": person, "role": "验收负责人"}
    return base | {"decision": "approve", "comment": "", "scan_sha256": None, "at": "2026-11-03T02:11:09.000Z"} | more


def wipes() -> dict[str, Any]:
    """The orders of an engagement: one that waits, and one of which a drive refused."""
    drives = [{"serial": f"QF26K0A0010{n}", "model": "QF-N7680", "host": "array01"} for n in range(1, 5)]
    records = [
        {**drives[0], "outcome": "wiped", "why": ""},
        {**drives[1], "outcome": "failed", "why": "sanitize ended with status 0x3: the drive reports a media error"},
    ]
    by = {"ordered_by": "李伟", "ordered_party": "vendor", "ordered_at": "2026-11-20T02:00:00.000Z", "hash": HASH, "problem": None}
    no = dict.fromkeys(("withdrawn_by", "withdrawn_why", "withdrawn_at", "started_by", "started_at", "finished_at"))
    waits = {**by, **no, "id": STEP, "number": 2, "label": "E-2", "state": "proposed", "way": "format_user", "drives": drives[1:2], "records": []}
    begun = {"started_by": "cli (cli)", "started_at": "2026-11-20T03:00:00.000Z", "finished_at": "2026-11-20T03:41:00.000Z"}
    over = {**by, **no, **begun, "id": REPORT, "number": 1, "label": "E-1", "state": "not_wiped", "way": "sanitize_block", "drives": drives[:2]}
    given = [approval("wipe", "vendor", "陈静"), approval("wipe")]
    file = {"id": REPORT, "host": "array01", "name": "wipe.json", "sha256": "ab" * 32, "size": 2048}
    return {
        "items": [
            {**waits, "reason": "第二块盘重做擦除", "files": [], "approvals": []},
            {**over, "records": records, "reason": "借测期满，归还设备", "files": [file], "approvals": given},
        ],
        "drives": drives,
    }


def overview(**more: Any) -> dict[str, Any]:
    people = {
        "vendor": [{"login": "li.wei", "name": "李伟", "title": "交付工程师", "roles": ["engineer"]}],
        "customer": [{"login": "wang.fang", "name": "王芳", "title": "验收负责人", "roles": ["approver"]}],
    }
    order = {
        "model": "FX100",
        "quantity": 1,
        "lines": [
            {"kind": "array", "model": "FX100", "quantity": 1, "firmware": ["3.2.1"]},
            {"kind": "drive", "model": "QF-N7680", "quantity": 4, "firmware": ["EDA57F1Q"]},
        ],
    }
    packing = [{"kind": "drive", "model": "QF-N7680", "serial": f"QF26K0A0010{i}", "host": "array01"} for i in range(1, 5)]
    targets = {"simulated": False, "hosts": {"gpu01": {"groups": ["engine", "loadgen"]}, "array01": {"groups": ["storage"]}}}
    plan = {"id": PLAN, "revision": 1, "hash": HASH, "sealed_at": "2026-11-03T02:11:09.000Z", "data": parse_plan({}).data, "earlier": []}
    plan["approvals"] = [approval(party="vendor", person="陈静", role="交付负责人"), approval()]
    rows = [
        attempt_row("G1", 1, "finished", "pass"),
        attempt_row("G2", 1, "finished", None, rehearsal=True),
        attempt_row("G2", 1, "finished", "pass"),
        attempt_row("G3", 1, "running", None),
    ]
    calendar = {
        "start": "2026-11-02",
        "weeks": 10,
        "gates": [{"gate": g, "weeks": w, "from": "2026-11-02", "to": "2026-11-15"} for g, w in (("G1", 2), ("G2", 2), ("G3", 4), ("G4", 2))],
    }
    tail = {
        "calendar": calendar,
        "people": people,
        "order": order,
        "packing_list": packing,
        "targets": targets,
        "packing_warning": None,
        "source_yaml": "",
        "g2_baseline": None,
        "plan": plan,
    }
    given = [*plan["approvals"], approval("sign_off", comment="同意", scan_sha256="ab" * 32)]
    return item() | tail | {"attempts": rows, "approvals": given, "deviations": register()} | more


def register() -> list[dict[str, Any]]:
    """Return one entry of each kind and state."""
    granted = [approval("waiver", "vendor", "陈静"), approval("waiver")]
    return [
        entry(1, "punch", "G1", "缺少一根 100G 备用光纤", "物流延误，备件不影响功能", overdue=True),
        entry(2, "waiver", "G1", "固件 3.2.0 按现状接受，随 3.2.1 升级", "3.2.1 尚在认证", "granted", "major", approvals=granted),
        entry(4, "waiver", "G3", "并发 32 的一次读取超时按现状接受", "交换机维护窗口内发生", "proposed"),
        entry(3, "deviation", "G2", "机房温度 29 °C，高于计划的 27 °C", "一台空调检修", "closed", closing="空调已恢复，复测无差异", closed_by="赵磊"),
    ]


def entry(number: int, kind: str, code: str, what: str, reason: str, state: str = "open", severity: str = "minor", **more: Any) -> dict[str, Any]:
    over = state == "closed"
    head = {
        "id": f"0199ad2f-0000-7000-8000-00000000010{number}",
        "number": number,
        "label": f"{kind[0].upper()}-{number}",
        "kind": kind,
        "gate": code,
    }
    who = {"owner_party": "vendor", "owner": "李伟", "due": "2026-12-31", "recorded_by": "赵磊", "recorded_party": "customer"}
    end = {"closed_at": "2026-11-21T02:00:00.000Z" if over else None, "closed_by": "", "closed_party": "customer" if over else "", "closing": ""}
    said = {"what": what, "reason": reason, "state": state, "severity": severity, "overdue": False, "approvals": [], "hash": HASH}
    return head | who | end | said | {"created_at": "2026-11-20T02:00:00.000Z"} | more


def attempt_row(code: str, number: int, status: str, verdict: str | None, **more: Any) -> dict[str, Any]:
    ended = None if status == "running" else "2026-11-20T06:41:00.000Z"
    base = {
        "id": ATTEMPT,
        "gate": code,
        "number": number,
        "rehearsal": False,
        "status": status,
        "verdict": verdict,
        "because": [],
        "problem": None,
        "counted": True,
        "uses_up": True,
        "plan_hash": HASH,
        "rig_cause": None,
    }
    times = {"created_at": "2026-11-20T06:10:00.000Z", "started_at": "2026-11-20T06:10:02.000Z", "finished_at": ended}
    return base | times | {"report_ids": {"zh-CN": REPORT, "en": REPORT} if verdict else {}} | more


def step(key: str, kind: str, en: str, zh: str, status: str, at: int, **more: Any) -> dict[str, Any]:
    begun = None if status == "pending" else f"2026-11-20T06:{10 + at * 4:02d}:02.000Z"
    ended = f"2026-11-20T06:{13 + at * 4:02d}:41.000Z" if status == "done" else None
    base = {
        "id": f"0199ad2f-0000-7000-8000-0000000001{at:02d}",
        "position": at,
        "key": key,
        "kind": kind,
        "title": both(en, zh),
        "status": status,
        "try_no": 1,
    }
    seen = {"started_at": begun, "finished_at": ended, "expected_end_at": None, "last_seen_at": begun}
    return base | {"problem": None, "params": {}, "halted": {}} | seen | more


def attempt(**more: Any) -> dict[str, Any]:
    steps = [
        step("run-1-baseline", "job", "Run 1: baseline", "第 1 轮：基线", "done", 0),
        step("run-2-candidate", "job", "Run 2: candidate", "第 2 轮：被测产品", "done", 1),
        step("run-3-candidate", "job", "Run 3: candidate", "第 3 轮：被测产品", "running", 2),
        step("run-4-baseline", "job", "Run 4: baseline", "第 4 轮：基线", "pending", 3),
        step("recompute", "job", "Run 5: recompute", "第 5 轮：重算", "pending", 4),
        step("placebo", "job", "Run 6: placebo", "第 6 轮：安慰剂", "pending", 5),
        step("judge", "judge", "Judge the evidence", "依据证据判定", "pending", 6),
        step("report", "report", "Write the report", "生成报告", "pending", 7),
    ]
    head = {
        "id": ENGAGEMENT,
        "code": "HT-2026-07",
        "customer": "远山智算科技有限公司",
        "vendor": "青芯全闪存储股份有限公司",
        "site": "临港",
        "state": "active",
        "state_reason": None,
    }
    base = {
        "id": ATTEMPT,
        "engagement": head,
        "gate": "G3",
        "title": TITLES["G3"],
        "number": 1,
        "rehearsal": False,
        "simulated": False,
        "node": "node-1",
        "status": "running",
        "verdict": None,
    }
    run = {
        "because": [],
        "problem": None,
        "cancel_requested_at": None,
        "cancel_reason": "",
        "rig_cause": "",
        "transitions": [
            {"from": "queued", "event": "start", "to": "running", "actor": "quadgate (engine)", "reason": "", "at": "2026-11-20T06:10:02.000Z"}
        ],
        "plan_hash": HASH,
        "order": overview()["order"],
        "packing_list": [*overview()["packing_list"], {"kind": "cable", "model": "100G DAC 3 m", "quantity": 8}],
        "seed": 20261129,
        "counted": True,
        "excused": False,
        "started_by": "李伟",
    }
    times = {"created_at": "2026-11-20T06:10:00.000Z", "started_at": "2026-11-20T06:10:02.000Z", "finished_at": None}
    may = {"cancel": True, "retry": False, "extend": False, "judge": False, "claim_cause": False, "form": False}
    tail = {
        "may": may,
        "sealed_figures": True,
        "document": None,
        "extension": None,
        "causes": [],
        "revisions": [],
        "verdict_hash": "",
        "manifest_hash": "",
        "reports": [],
        "events": 6,
        "samples": 1240,
    }
    return base | run | times | {"steps": steps} | tail | more


def finished(**more: Any) -> dict[str, Any]:
    steps = [s | {"status": "done", "finished_at": "2026-11-20T06:40:00.000Z"} for s in attempt()["steps"]]
    reports = [
        {"id": REPORT, "language": "zh-CN", "number": "ACC-HT-2026-07-G3-R0", "sha256": "cd" * 32, "size": 412000},
        {"id": REPORT, "language": "en", "number": "ACC-HT-2026-07-G3-R0", "sha256": "ce" * 32, "size": 398000},
    ]
    done = {
        "status": "finished",
        "verdict": "pass",
        "document": document(),
        "verdict_hash": HASH,
        "manifest_hash": HASH,
        "reports": reports,
        "sealed_figures": False,
    }
    return (
        attempt()
        | {
            "steps": steps,
            "finished_at": "2026-11-20T06:41:00.000Z",
            "may": {"cancel": False, "retry": False, "extend": False, "judge": False, "claim_cause": False, "form": False},
        }
        | done
        | more
    )


def events() -> list[dict[str, Any]]:
    lines = [
        ("playbook_on_play_start", "\r\nPLAY [Start the job of one run] ************************************************"),
        ("playbook_on_task_start", "\r\nTASK [arm : Switch to the arm candidate] ***************************************"),
        ("runner_on_ok", '\x1b[0;33mchanged: [gpu01] => {"changed": true, "keys": ["mount_path", "device", "transport"]}\x1b[0m'),
        ("playbook_on_task_start", "\r\nTASK [probe : Start the detached job] ******************************************"),
        ("runner_on_ok", '\x1b[0;32mok: [gpu01] => {"state": "started", "expected_s": 214}\x1b[0m'),
        ("runner_on_skipped", "skipping: [array01]"),
        (
            "playbook_on_stats",
            "\r\nPLAY RECAP *************************************************\r\ngpu01 : ok=12 changed=3 unreachable=0 failed=0 skipped=1",
        ),
    ]
    return [
        {
            "id": i,
            "step_id": STEP,
            "run": "start-1",
            "counter": i,
            "kind": kind,
            "host": "gpu01",
            "task": "t",
            "stdout": text,
            "at": "2026-11-20T06:10:03.000Z",
        }
        for i, (kind, text) in enumerate(lines, 1)
    ]


def samples() -> list[dict[str, Any]]:
    return [
        {"id": i, "step_id": STEP, "stream": "records.jsonl", "seq": i, "data": {"seq": i, "mono_ns": i * 80_000_000, "phase": "measure", "tier": 16}}
        for i in range(1, 41)
    ]


def pending(**more: Any) -> dict[str, Any]:
    base = {
        "engagement_id": ENGAGEMENT,
        "code": "HT-2026-07",
        "customer": "远山智算科技有限公司",
        "gate": "G3",
        "object_kind": "sign_off",
        "object_id": ATTEMPT,
        "object_hash": HASH,
    }
    words = {
        "title": both("Sign off G3, attempt 1", "签署 G3 第 1 次尝试"),
        "reason": both("The plan requires it before the next gate.", "计划要求签署后才能进入下一门禁。"),
    }
    return (
        base
        | words
        | {
            "attempt_id": ATTEMPT,
            "scan_required": True,
            "missing": ["customer"],
            "approvals": [approval("sign_off", "vendor", "陈静")],
            "mine": True,
            "rejected_by_me": False,
        }
        | more
    )


FORM = [
    {
        "name": "packaging",
        "type": "choice",
        "title": both("Packaging", "包装"),
        "required": True,
        "choices": [{"value": "intact", "title": both("intact", "完好")}, {"value": "damaged", "title": both("damaged", "破损")}],
    },
    {"name": "seals_intact", "type": "bool", "title": both("Seals and shock tags are intact", "封签与防震标签完好"), "required": True},
    {"name": "remarks", "type": "long_text", "title": both("Remarks", "备注"), "required": False},
    {"name": "receiver_1", "type": "person", "title": both("First receiver", "收货人一"), "required": True},
    {"name": "receiver_2", "type": "person", "title": both("Second receiver", "收货人二"), "required": True},
]


def replace_use_cases(patch: Any, data: dict[str, Any]) -> None:
    """Put hand-made data behind the names that routers call. `data`: board, overview, attempt, events, samples, pending."""
    from app.web import stream
    from app.web.pages import approvals, attempts, board
    from app.web.pages import wipes as wiping

    def returns(value: Any) -> Any:
        return lambda *_a, **_k: copy.deepcopy(value)

    modules: list[tuple[ModuleType, dict[str, str]]] = [
        (board.engagements, {"board": "board", "overview": "overview"}),
        (attempts.attempts, {"attempt_view": "attempt", "events": "events", "samples": "samples"}),
        (approvals.approvals, {"pending": "pending"}),
        (stream.attempts, {}),
    ]
    for module, names in modules:
        for name, key in names.items():
            patch.setattr(module, name, returns(data[key]))
    patch.setattr(wiping.wipes, "wipes", returns(wipes()))
    newest = data["samples"][-1] if data["samples"] else None
    patch.setattr(attempts.attempts, "newest_samples", returns({"last": newest["id"] if newest else 0, "record": newest}))
    patch.setattr(board, "unsealed_changes", returns(data.get("changes")))
    patch.setattr(board, "odds", returns(data["odds"] if "odds" in data else odds()))


@cache
def odds() -> dict[str, Any]:
    """The odds of the default plan, from few drawn attempts."""
    from gates.odds.document import document
    from gates.odds.effects import Noise, expected_effects

    plan = parse_plan()
    return document(plan, expected_effects(plan), Noise(), trials=50)


def filled(text: str, value: Any) -> Any:
    """Return data whose every free text (not hashes, ids, times or words of a vocabulary) is followed by `text`."""
    free = {
        "customer",
        "vendor",
        "site",
        "contract",
        "person",
        "role",
        "comment",
        "cancel_reason",
        "stdout",
        "en",
        "zh-CN",
        "name",
        "title",
        "serial",
        "model",
        "host",
        "phase",
        "code",
        "mount_path",
        "what",
        "owner",
        "closing",
        "closed_by",
        "before",
        "after",
    }
    if isinstance(value, dict):
        return {k: f"{v}{text}" if k in free and isinstance(v, str) else filled(text, v) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(text, v) for v in value]
    return value
