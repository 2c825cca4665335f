"""Checks and claims of the four gates."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Attribution, CheckResult, ClaimResult, ClaimStatus, Interval, Limit, Severity, Verdict
from gates.text import Text

D = Decimal


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
        for name, en, zh in (("ttft_p50_cv", "TTFT p50 repeats", "TTFT p50 重复性"), ("throughput_cv", "Throughput repeats", "吞吐重复性")):
            value = D(cv) if name == "ttft_p50_cv" else D(cv) / 2
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
            quantity="drift_ttft_p50",
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


CHECKS = {"G1": g1_checks, "G2": g2_checks, "G3": g3_checks, "G4": g4_checks}

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
