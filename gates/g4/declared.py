"""The checks of G4, declared. Sources: the plan's section g4, and the soak criteria of acceptance 4."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gates.declared import EXACT, Declared, at_least, at_most
from gates.g4.declared_parts import KERNEL_LOG, PARTS
from gates.model import Severity
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

_RECORDS = ("soak: records.jsonl",)
_TELEMETRY = ("soak: telemetry.jsonl",)
_SLOPE = Text("lower bound of the Theil-Sen slope after warm-up, over the plan's horizon", "预热后 Theil-Sen 斜率下界，按计划外推时长计")
_SHIFT = Text(
    "median of any stretch of windows against that of all others, where a rank-sum test tells them apart; "
    "inconclusive: a fall at the very end, and windows, however few, that are worse than another stretch beyond noise",
    "任一时段的窗口中位数与其余窗口之比，以秩和检验与噪声区分；末尾才出现的恶化，以及任何（哪怕很短的）时段超出噪声地劣于另一时段，无法判定",
)
_LINE = Text("Theil-Sen line through the windows, from end to end", "各窗口 Theil-Sen 拟合直线的全程变化")
_SNIA = Text("SNIA SSS PTS: spread and fitted slope of windows in a row", "SNIA SSS PTS：连续窗口的极差与拟合斜率")
_BURN = Text("share of the failures that the whole soak may have", "占全程允许失败数的比例")


def _budget(plan: Plan, _: int) -> Severity:
    return Severity.BLOCKING if plan.g4.error_budget.blocking else Severity.ADVISORY


def _two(ident: str, title: Text, **words: object) -> tuple[Declared, ...]:
    """Return one declaration for TTFT p50 and one for throughput."""
    named = {"ttft_p50": Text("TTFT p50", "TTFT p50"), "throughput": Text("throughput", "吞吐")}
    return tuple(
        Declared(f"g4.{ident}_{key}", title.fill(n=shown), "lower", _RECORDS, quantity=f"{ident}_{key}", arm="candidate", **words)  # type: ignore[arg-type]
        for key, shown in named.items()
    )


DURATION = Declared(
    "g4.duration",
    Text("Soak duration", "稳定性运行时长"),
    "higher",
    ("soak: records.jsonl", "soak: phases.jsonl"),
    "g4.duration",
    "duration",
    "h",
    unproven=True,
    rule=Text("under load, on the monotonic clock, in one boot or as the clock's rule allows", "单调时钟上的加载时长，同一次开机或按计时规则"),
    limit=at_least(lambda p: p.g4.duration.base / 3600),
    arm="candidate",
)
CHECKS = (
    DURATION,
    Declared(
        "g4.clock_restarts",
        Text("Soak clock", "稳定性计时"),
        "lower",
        ("inputs.json", *_RECORDS),
        "g4.clock",
        "clock_restarts",
        unproven=True,
        rule=Text("restarts only for causes that both parties approved", "仅双方确认的原因可重新计时"),
        limit=at_most(lambda p: Decimal(p.g4.clock.restarts_max)),
        arm="candidate",
    ),
    Declared(
        "g4.engine_restarts",
        Text("Engine restarts", "引擎重启"),
        "lower",
        (*_TELEMETRY, "soak: events.jsonl"),
        "g4.engine_restarts_max",
        "engine_restarts",
        rule=Text("process identity in every sample, and the probe's events", "每个样本中的进程标识，以及探针事件"),
        limit=at_most(lambda p: Decimal(p.g4.engine_restarts_max)),
        arm="candidate",
    ),
    Declared(
        "g4.error_rate",
        Text("Error rate", "错误率"),
        "lower",
        _RECORDS,
        "g4.error_rate_max",
        "error_rate",
        rule=EXACT,
        share=True,
        limit=at_most(lambda p: p.g4.error_rate_max),
        arm="candidate",
    ),
    Declared(
        "g4.recovery",
        Text("The soak recovers what was stored", "稳定性运行恢复已存的 KV"),
        "higher",
        (*_TELEMETRY, "soak: counters.jsonl", *_RECORDS),
        "validity.external_hits_min",
        "external_hits",
        rule=Text(
            "share of the stored prefix tokens; what neither the tier nor the GPU cache served is the product's once the store phase is complete",
            "占已存前缀词元的比例；写入阶段完整时，外部层与 GPU 缓存均未提供的部分由产品负责",
        ),
        share=True,
        limit=at_least(lambda p: p.validity.external_hits_min),
        arm="candidate",
    ),
    Declared(
        "g4.error_budget_short",
        Text("Error budget, {name} window", "错误预算，{name} 窗口"),
        "lower",
        _RECORDS,
        "g4.error_budget.share_max",
        "error_budget_short",
        rule=_BURN,
        share=True,
        limit=at_most(lambda p: p.g4.error_budget.share_max),
        shown_as=Text("short", "短"),
        severity=_budget,
        arm="candidate",
    ),
    Declared(
        "g4.error_budget_long",
        Text("Error budget, {name} window", "错误预算，{name} 窗口"),
        "lower",
        _RECORDS,
        "g4.error_budget.long_share_max",
        "error_budget_long",
        rule=_BURN,
        share=True,
        limit=at_most(lambda p: p.g4.error_budget.long_share_max),
        shown_as=Text("long", "长"),
        severity=_budget,
        arm="candidate",
    ),
    *_two(
        "drift",
        Text("No change of level: {n}", "无水平突变：{n}"),
        source="g4.hourly_drift_max",
        rule=_SHIFT,
        share=True,
        limit=at_most(lambda p: p.g4.hourly_drift_max),
    ),
    Declared(
        "g4.drift_ttft_p99",
        Text("No change of level: TTFT p99", "无水平突变：TTFT p99"),
        "lower",
        _RECORDS,
        "g4.hourly_drift_max",
        "drift_ttft_p99",
        rule=_SHIFT,
        share=True,
        limit=at_most(lambda p: p.g4.hourly_drift_max),
        severity=Severity.ADVISORY,
        arm="candidate",
    ),
    *_two(
        "excursion",
        Text("No trend over the soak: {n}", "全程无趋势：{n}"),
        source="g4.excursion_max",
        rule=_LINE,
        share=True,
        limit=at_most(lambda p: p.g4.excursion_max),
    ),
    Declared(
        "g4.excursion_hits",
        Text("No trend over the soak: hits of the external tier", "全程无趋势：外部层命中"),
        "lower",
        (*_TELEMETRY, *_RECORDS),
        "g4.excursion_max",
        "excursion_hits",
        rule=Text("lower bound of the fall of a Theil-Sen line through the windows", "各窗口 Theil-Sen 拟合直线降幅的下界"),
        share=True,
        limit=at_most(lambda p: p.g4.excursion_max),
        severity=Severity.ADVISORY,
        arm="candidate",
    ),
    *_two(
        "steady",
        Text("Steady state: {n}", "稳态：{n}"),
        source="g4.steady_state",
        rule=_SNIA,
        share=True,
        limit=at_most(lambda p: p.g4.steady_state.spread_max),
        severity=Severity.ADVISORY,
    ),
    Declared(
        "g4.leak",
        Text("No memory leak", "无内存泄漏"),
        "lower",
        _TELEMETRY,
        "g4.leak",
        "leak",
        rule=_SLOPE,
        share=True,
        limit=at_most(lambda p: p.g4.leak.headroom_share_max),
        arm="candidate",
    ),
    *(
        Declared(
            f"g4.leak_{key}",
            title,
            "lower",
            _TELEMETRY,
            "g4.leak.handles_growth_max",
            f"leak_{key}",
            rule=_SLOPE,
            share=True,
            limit=at_most(lambda p: p.g4.leak.handles_growth_max),
            severity=Severity.ADVISORY,
            arm="candidate",
        )
        for key, title in (
            ("fds", Text("Open files do not leak", "打开的文件不泄漏")),
            ("threads", Text("Threads do not leak", "线程不泄漏")),
            ("kv", Text("Files of the external tier do not grow without end", "外部层文件不持续增长")),
        )
    ),
    Declared(
        "g4.telemetry_coverage",
        Text("Telemetry coverage", "遥测覆盖率"),
        "higher",
        _TELEMETRY,
        "g4.coverage_min",
        "telemetry_coverage",
        unproven=True,
        rule=Text("missing telemetry is inconclusive, never a fail and never a pass", "遥测缺失则无法判定，既非不通过也非通过"),
        share=True,
        limit=at_least(lambda p: p.g4.coverage_min),
        arm="candidate",
    ),
    Declared(
        "g4.telemetry_gap",
        Text("Largest gap in telemetry", "遥测最大间隔"),
        "lower",
        _TELEMETRY,
        "g4.gap_max",
        "telemetry_gap",
        "s",
        unproven=True,
        rule=Text("missing telemetry is inconclusive, never a fail and never a pass", "遥测缺失则无法判定，既非不通过也非通过"),
        limit=at_most(lambda p: p.g4.gap_max.base),
        arm="candidate",
    ),
    Declared(
        "g4.counter_{name}",
        Text("Counter does not grow: {name}", "计数器不增长：{name}"),
        "lower",
        _TELEMETRY,
        "g4.fatal_counters",
        "counter_{name}",
        rule=Text("seen in every sample, never back, grown by 0, over reboots too", "每个样本均有，不回退，增量为 0，跨重启同样如此"),
        limit=at_most(lambda _: Decimal(0)),
        at_large=Text("Fatal counters do not grow", "致命计数器不增长"),
        arm="candidate",
    ),
    Declared(
        "g4.watched_{name}",
        Text("Growth of what mends itself: {name}", "可自行纠正的计数增长：{name}"),
        "told",
        _TELEMETRY,
        "acceptance 4",
        "watched_{name}",
        rule=Text(
            "growth within and over boots, and per hour; a plan may name it in g4.fatal_counters",
            "各次开机内及跨重启的增量与每小时增量；计划可将其列入 g4.fatal_counters",
        ),
        severity=Severity.ADVISORY,
        at_large=Text("Growth of what mends itself", "可自行纠正的计数增长"),
        arm="candidate",
    ),
    Declared(
        "g4.sentinel_answers",
        Text("Sentinel: answers stay the same", "哨兵请求：回答保持一致"),
        "lower",
        ("soak: events.jsonl",),
        "DESIGN 4.3",
        "sentinel_answers",
        rule=Text(
            "the same prompts in every window: other answers than before, and hits of prefixes that were never stored",
            "各窗口相同提示词：与此前不同的回答，以及从未写入的前缀的命中",
        ),
        limit=at_most(lambda _: Decimal(0)),
        severity=Severity.ADVISORY,
        arm="candidate",
    ),
    Declared(
        "g4.injection_{name}",
        Text("Recovery after injection: {name}", "注入后恢复：“{name}”"),
        "lower",
        ("inputs.json", *_RECORDS),
        "DESIGN 4.12",
        "injection_{name}",
        rule=Text("no failed request in the window after it", "其后一个窗口内无失败请求"),
        limit=at_most(lambda _: Decimal(0)),
        at_large=Text("Recovery after injections", "注入后恢复"),
        arm="candidate",
    ),
    KERNEL_LOG,
    *PARTS,
)
