"""Sample facts of the four gates, as the features would hand them over: real shapes, invented numbers, both parties named."""

from __future__ import annotations

import random
from decimal import Decimal
from functools import lru_cache
from typing import Any

from app.reports.facts import Facts
from gates.canonical import sha256_of
from gates.model import (
    Attribution,
    CheckResult,
    ClaimResult,
    ClaimStatus,
    Interval,
    Limit,
    Severity,
    Verdict,
)
from gates.plan import parse_plan
from gates.text import Text

D = Decimal
VENDOR, CUSTOMER = "示例全闪存储股份有限公司", "示例智算科技有限公司"
SUMMARIES = {
    "G1": Text("Everything ordered arrived, is what the packing list says, and is healthy.", "订购物品全部到货，与装箱单一致，状态良好。"),
    "G2": Text("Three baseline runs repeat within 3 % at every tier; the baseline is frozen.", "三轮基线在各档位的重复性均在 3 % 以内；基线已冻结。"),
    "G3": Text(
        "TTFT p50 fell by at least 25 % at c8, c16 and c32, and throughput rose inside +29..40 % at c8 and c16.",
        "TTFT p50 在并发 8、16、32 下降幅均不小于 25 %，吞吐提升在并发 8、16 下均落在 +29..40 % 区间内。",
    ),
    "G4": Text("72 hours without a failed request, a restart or a drift beyond the limit.", "72 小时内无失败请求、无重启，漂移未超限。"),
}


@lru_cache
def plan() -> Any:
    return parse_plan(
        {"platform": {"accelerator": "MI308X", "framework": "lab-engine", "model": "lab-480b"}, "rig": {"simulated": True, "time_scale": "2880"}}
    )


def check(ident: str, en: str, zh: str, value: Any, limit: Limit, verdict: Verdict = Verdict.PASS, **more: Any) -> CheckResult:
    reason = more.pop(
        "reason",
        Text("The value meets the limit.", "数值达到限值。") if verdict is Verdict.PASS else Text("The value misses the limit.", "数值未达到限值。"),
    )
    return CheckResult(id=ident, title=Text(en, zh), verdict=verdict, reason=reason, value=value, limit=limit, **more)


def g1_checks() -> list[CheckResult]:
    out = [
        check(
            "g1.order.quantity",
            "Quantities as ordered",
            "数量与订单一致",
            D(7),
            Limit("==", D(7)),
            unit="count",
            quantity="items",
            evidence=("evidence/inputs.json",),
        ),
        check(
            "g1.unpacking.receivers",
            "Receivers named",
            "收货人",
            D(2),
            Limit(">=", D(2)),
            unit="count",
            quantity="receivers",
            source="g1.receivers_min",
        ),
    ]
    for n in range(1, 5):
        serial = f"QF26K0A0010{n}"
        where = {"host": "array01", "evidence": (f"evidence/survey/array01/nvme-smart-log.nvme{n - 1}.out", "evidence/survey/array01/nvme-list.out")}
        out += [
            check(
                f"g1.serial.{serial}", f"Drive {serial} is present", f"硬盘 {serial} 在位", serial, Limit("==", serial), quantity="serial", **where
            ),
            check(
                f"g1.firmware.{serial}",
                f"Firmware of drive {serial}",
                f"硬盘 {serial} 固件",
                "EDA57F1Q",
                Limit("set", "EDA57F1Q"),
                quantity="firmware",
                **where,
            ),
            check(
                f"g1.power_on_hours.{serial}",
                f"Power-on time of drive {serial}",
                f"硬盘 {serial} 通电时间",
                D(11 + n),
                Limit("<=", None, D(200)),
                unit="h",
                quantity="power_on_hours",
                margin=D(189 - n),
                **where,
            ),
            check(
                f"g1.media_errors.{serial}",
                f"Media errors of drive {serial}",
                f"硬盘 {serial} 介质错误",
                D(0),
                Limit("<=", None, D(0)),
                unit="count",
                margin=D(0),
                **where,
            ),
        ]
    out.append(
        check(
            "g1.drive_spread",
            "Spread of read bandwidth between equal drives",
            "同型硬盘读带宽离散",
            D("0.0123"),
            Limit("<=", None, D("0.05")),
            quantity="drive_spread",
            margin=D("0.0377"),
            source="g1.drive_spread_max",
            evidence=("evidence/storage/array01/fio-read.out",),
        )
    )
    return out


def g2_checks() -> list[CheckResult]:
    out = []
    for tier, cv in ((8, "0.004112"), (16, "0.009871"), (32, "0.012345678901234567")):
        where = {
            "tier": tier,
            "arm": "baseline",
            "source": "g2.repeatability_cv_max",
            "evidence": tuple(f"evidence/run-{i}/gpu01/records.jsonl" for i in (1, 2, 3)),
        }
        for name, en, zh in (("ttft_cv", "TTFT p50 repeats", "TTFT p50 重复性"), ("throughput_cv", "Throughput repeats", "吞吐重复性")):
            value = D(cv) if name == "ttft_cv" else D(cv) / 2
            out.append(
                check(
                    f"g2.{name}.c{tier}",
                    f"{en} at c{tier}",
                    f"{zh}（并发 {tier}）",
                    value,
                    Limit("<=", None, D("0.03")),
                    quantity=name,
                    margin=D("0.03") - value,
                    **where,
                )
            )
    return out


def g3_checks(drop8: Decimal = D("0.259612345678901234567890123")) -> list[CheckResult]:
    out = []
    for tier, value in ((8, drop8), (16, D("0.2604")), (32, D("0.2551"))):
        good = value >= D("0.25")
        out.append(
            check(
                f"g3.ttft_p50_drop.c{tier}",
                f"TTFT p50 drop at c{tier}",
                f"TTFT p50 降幅（并发 {tier}）",
                value,
                Limit(">=", D("0.25")),
                Verdict.PASS if good else Verdict.FAIL,
                quantity="ttft_p50_drop",
                interval=Interval(value - D("0.006"), None, D("0.95"), 2),
                margin=value - D("0.25"),
                tier=tier,
                source="g3.ttft_p50_drop_min",
                evidence=tuple(f"evidence/run-{i}/gpu01/records.jsonl" for i in (1, 2, 3, 4)),
            )
        )
    for tier, value in ((8, D("0.3412")), (16, D("0.3350"))):
        out.append(
            check(
                f"g3.throughput_gain.c{tier}",
                f"Throughput gain at c{tier}",
                f"吞吐提升（并发 {tier}）",
                value,
                Limit("band", D("0.29"), D("0.40")),
                quantity="throughput_gain",
                interval=Interval(value - D("0.01"), value + D("0.01"), D("0.95"), 2),
                margin=min(value - D("0.29"), D("0.40") - value),
                tier=tier,
                source="g3.throughput_gain_band",
                evidence=tuple(f"evidence/run-{i}/gpu01/records.jsonl" for i in (1, 2, 3, 4)),
            )
        )
    out.append(
        check(
            "g3.ttft_p99_ratio.c8",
            "TTFT p99 must not get worse at c8",
            "TTFT p99 不得变差（并发 8）",
            D("0.8123"),
            Limit("<=", None, D("1.05")),
            quantity="ttft_p99_ratio",
            severity=Severity.ADVISORY,
            margin=D("0.2377"),
            tier=8,
        )
    )
    return out


def g4_checks() -> list[CheckResult]:
    where = {"evidence": ("evidence/soak/gpu01/records.jsonl", "evidence/soak/gpu01/telemetry.jsonl", "evidence/soak/gpu01/events.jsonl")}
    return [
        check(
            "g4.error_rate",
            "Share of failed requests",
            "失败请求占比",
            D("0.00004"),
            Limit("<=", None, D("0.001")),
            quantity="error_rate",
            margin=D("0.00096"),
            **where,
        ),
        check(
            "g4.drift.ttft",
            "Drift of hourly TTFT p50",
            "每小时 TTFT p50 漂移",
            D("0.0112"),
            Limit("<=", None, D("0.05")),
            quantity="hourly_drift",
            margin=D("0.0388"),
            **where,
        ),
        check(
            "g4.restarts", "Engine restarts", "引擎重启次数", D(0), Limit("<=", None, D(0)), unit="count", quantity="restarts", margin=D(0), **where
        ),
        check("g4.coverage", "Sample coverage", "采样覆盖率", D("0.9996"), Limit(">=", D("0.99")), quantity="coverage", margin=D("0.0096"), **where),
    ]


def claims(gate: str) -> list[ClaimResult]:
    arms = {"G1": (), "G2": ("baseline",), "G3": ("baseline", "candidate", "recompute", "placebo"), "G4": ("candidate",)}[gate]
    names = (
        ("hbm_cold", "Accelerator memory is cold", "显存为冷态"),
        ("page_cache_cold", "Page cache is cold", "页缓存为冷态"),
        ("external_hits", "Prefixes come from the external tier", "前缀来自外部层"),
        ("equal_work", "Every arm does the same work", "各对照组工作量相等"),
        ("failures", "Every failure is accounted for", "全部失败均已计入"),
        ("littles_law", "Little's law holds in the window", "窗口内满足利特尔法则"),
    )
    out = []
    for arm in arms:
        for name, en, zh in names:
            status = ClaimStatus.NOT_APPLICABLE if name == "external_hits" and arm in ("recompute", "placebo") else ClaimStatus.HOLDS
            for run in ("1", "2"):
                for tier in (8, 16, 32):
                    out.append(
                        ClaimResult(
                            claim=name,
                            arm=arm,
                            title=Text(en, zh),
                            status=status,
                            reason=Text("Shown by the counters.", "由计数器证明。"),
                            run=run,
                            tier=tier,
                            evidence=(f"evidence/run-{run}/gpu01/counters.jsonl",),
                        )
                    )
    return out


def figures(gate: str) -> dict[str, Any]:
    rng = random.Random(7)
    if gate == "G2":
        return {
            "tiers": {
                str(t): {
                    "runs": [
                        {
                            "run": f"run-{i}",
                            "ttft_p50_ns": int(12.5e6 * t * (1 + rng.gauss(0, 0.006))),
                            "output_tokens_per_s": f"{4200 * (1 + rng.gauss(0, 0.004)):.3f}",
                        }
                        for i in (1, 2, 3)
                    ]
                }
                for t in (8, 16, 32)
            }
        }
    if gate == "G3":
        ttft, speed = {}, {}
        for t in (8, 16, 32):
            base = 12.5 * t

            def run(name: str, scale: float, base: float = base) -> dict[str, Any]:
                ms = sorted(round(max(base * scale * (1 + rng.gauss(0, 0.06)), 1), 3) for _ in range(160))
                return {"run": name, "ms": ms, "p50_ms": f"{(ms[79] + ms[80]) / 2:.4f}"}

            ttft[str(t)] = {
                "baseline": [run("run-1", 1.0), run("run-4", 1.004)],
                "candidate": [run("run-2", 0.741), run("run-3", 0.738)],
                "recompute": [run("recompute", 2.6)],
                "placebo": [run("placebo", 2.65)],
                "limit_ms": f"{base * 0.75:.3f}",
            }
            gain = {8: "0.3412", 16: "0.3350", 32: "0.3105"}[t]
            speed[str(t)] = {
                "gain": gain,
                "low": f"{float(gain) - 0.01:.4f}",
                "high": f"{float(gain) + 0.01:.4f}",
                "arms": {"baseline": ["4210.11", "4225.92"], "candidate": ["5640.10", "5655.02"]},
            }
        return {"ttft": ttft, "throughput": speed, "band": {"low": "0.29", "high": "0.4"}}
    if gate == "G4":
        return {
            "soak": [
                {
                    "hour": h,
                    "requests": 8123 + rng.randint(-40, 40),
                    "errors": 1 if h in (17, 51) else 0,
                    "ttft_p50_ms": f"{148.2 * (1 + rng.gauss(0, 0.004) + 0.0001 * h):.3f}",
                    "output_tokens_per_s": f"{5650 * (1 + rng.gauss(0, 0.003)):.2f}",
                    "rss_bytes": int(1.9e9 + 2.1e5 * h),
                }
                for h in range(72)
            ],
            "limits": {"ttft_p50_ms": {"high": "155.6"}},
            "events": [{"hour": 24.5, "kind": "injection", "detail": "link down for 20 s, labelled"}],
        }
    return {}


CHECKS = {"G1": g1_checks, "G2": g2_checks, "G3": g3_checks, "G4": g4_checks}


def document(gate: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    """A verdict.json of the gate."""
    checks = more.pop("checks", None) or CHECKS[gate]()
    facts: dict[str, Any] = {}
    if gate == "G2":
        tiers = {str(t): {"ttft_p50_ns": int(12.5e6 * t), "output_tokens_per_s": "4218.02"} for t in (8, 16, 32)}
        facts = {"baseline": {"hash": sha256_of(tiers), "tiers": tiers}}
    return {
        "schema": 1,
        "gate": gate,
        "attempt": {"id": f"0199-{gate}", "number": 1, "rehearsal": False},
        "verdict": verdict,
        "because": [],
        "judge_version": "0.1.0",
        "rules_hash": sha256_of("rules"),
        "plan_hash": plan().hash,
        "manifest_hash": sha256_of(manifest(gate)),
        "simulated": True,
        "time_scale": "2880",
        "summary": SUMMARIES[gate].json(),
        "risk": Text(
            "Risk: a product whose true drop is exactly 25 % passes in half of all cases. Two pairs are too few for an interval.",
            "风险：真实降幅恰为 25 % 的产品有一半的可能通过。两对轮次不足以给出区间。",
        ).json(),
        "decision": {"rule": "simple", "comparison": "full", "confidence": "0.95", "pairs": 2},
        "checks": [c.json() for c in checks],
        "claims": [c.json() for c in claims(gate)],
        "not_tested": [],
        "figures": figures(gate),
        "facts": facts,
        **more,
    }


def manifest(gate: str) -> dict[str, Any]:
    steps = {"G1": ("unpacking", "survey", "storage"), "G2": ("deploy", "run-1", "run-2", "run-3"), "G4": ("soak",)}.get(
        gate, ("run-1", "run-2", "run-3", "run-4", "recompute", "placebo")
    )
    files = [
        {
            "path": f"evidence/{step}/gpu01/{name}",
            "size": 20480 + 999 * i,
            "sha256": f"{i:064x}",
            "tool": "probe",
            "version": "0.1.0",
            "argv": [],
            "exit_code": 0,
            "host": "gpu01",
            "step": step,
        }
        for step in steps
        for i, name in enumerate(("coldness.jsonl", "counters.jsonl", "phases.jsonl", "records.jsonl"))
    ]
    return {
        "schema": 1,
        "gate": gate,
        "attempt": {"id": f"0199-{gate}", "number": 1, "rehearsal": False},
        "plan_hash": plan().hash,
        "simulated": True,
        "files": files,
    }


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


BROKEN_CLAIM = ClaimResult(
    claim="page_cache_cold",
    arm="candidate",
    title=Text("Page cache is cold", "页缓存为冷态"),
    status=ClaimStatus.BREACHED,
    reason=Text("43 % of the KV files were resident before tier 8.", "并发 8 开始前有 43 % 的 KV 文件驻留在页缓存。"),
    value=D("0.43"),
    limit=Limit("<=", None, D("0.001")),
    attribution=Attribution.RIG,
    run="run-2",
    tier=8,
    evidence=("evidence/run-2/gpu01/coldness.jsonl",),
)
