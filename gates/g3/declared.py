"""The checks of G3, declared. Sources: the plan's section g3, DESIGN 4, and the published claims of the product."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from gates.declared import EXACT, INFORMS, Declared, at_least, at_most
from gates.model import Limit, Severity
from gates.rules.estimates import ms
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

_RUNS = ("run-1..n: records.jsonl",)
_CELLS = ("run-1..n: cells.jsonl",)
_PAIRS = Text("effect over run pairs, by the plan's decision rule", "按计划判定规则，以轮次对计算效应")


def _guarding(plan: Plan, _: int) -> Severity:
    return Severity.BLOCKING if plan.g3.guards.blocking else Severity.ADVISORY


def _sla(plan: Plan) -> Limit:
    agreed = sorted((plan.g3.sla.ttft_p50 or {}).items())
    return Limit("<=", high="; ".join(f"c{tier}: {ms(Fraction(value.ns))}" for tier, value in agreed)) if agreed else Limit("none")


TTFT_DROP = Declared(
    "g3.ttft_p50_drop.c{tier}",
    Text("TTFT p50 drop at c{tier}", "c{tier} TTFT p50 降幅"),
    "higher",
    _RUNS,
    "g3.ttft_p50_drop_min",
    "ttft_p50_drop",
    rule=_PAIRS,
    share=True,
    limit=at_least(lambda p: p.g3.ttft_p50_drop_min.limit),
    severity=lambda p, tier: Severity.BLOCKING if tier in p.g3.ttft_p50_drop_min.tiers else Severity.ADVISORY,
    arm="candidate",
    over_tiers=True,
)
THROUGHPUT_GAIN = Declared(
    "g3.throughput_gain.c{tier}",
    Text("Throughput gain at c{tier}", "c{tier} 吞吐提升"),
    "band",
    _RUNS,
    "g3.throughput_gain_band",
    "throughput_gain",
    rule=_PAIRS,
    share=True,
    limit=lambda p: Limit("band", low=p.g3.throughput_gain_band.low, high=p.g3.throughput_gain_band.high),
    severity=lambda p, tier: Severity.BLOCKING if tier in p.g3.throughput_gain_band.tiers else Severity.ADVISORY,
    arm="candidate",
    over_tiers=True,
)
TTFT_P99 = Declared(
    "g3.ttft_p99_ratio.c{tier}",
    Text("Guard: TTFT p99 at c{tier}", "护栏：c{tier} TTFT p99"),
    "lower",
    _RUNS,
    "g3.guards.ttft_p99_ratio_max",
    "ttft_p99_ratio",
    rule=EXACT,
    limit=at_most(lambda p: p.g3.guards.ttft_p99_ratio_max),
    severity=_guarding,
    arm="candidate",
    over_tiers=True,
)
TPOT_P99 = Declared(
    "g3.tpot_p99_ratio.c{tier}",
    Text("Guard: TPOT p99 at c{tier}", "护栏：c{tier} TPOT p99"),
    "lower",
    _RUNS,
    "g3.guards.tpot_p99_ratio_max",
    "tpot_p99_ratio",
    rule=EXACT,
    limit=at_most(lambda p: p.g3.guards.tpot_p99_ratio_max),
    severity=_guarding,
    arm="candidate",
    over_tiers=True,
)
SLA = Declared(
    "g3.sla_ttft_p50.c{tier}",
    Text("SLA: TTFT p50 at c{tier}", "SLA：c{tier} TTFT p50"),
    "lower",
    _RUNS,
    "g3.sla.ttft_p50",
    "ttft_p50",
    "ms",
    rule=Text("the slowest candidate run; only where agreed", "以最慢一轮为准；仅在有约定时"),
    limit=_sla,
    arm="candidate",
    over_tiers=True,
)
FAILURES = Declared(
    "g3.candidate_failures",
    Text("The candidate answers every request", "产品应答全部请求"),
    "lower",
    _RUNS,
    "DESIGN 4.3",
    "failures",
    limit=at_most(lambda _: Decimal(0)),
    arm="candidate",
)
HITS = Declared(
    "g3.candidate_external_hits",
    Text("The candidate recovers what was stored", "产品恢复已存的 KV"),
    "higher",
    ("run-1..n: counters.jsonl", *_RUNS),
    "validity.external_hits_min",
    "external_hits",
    share=True,
    limit=at_least(lambda p: p.validity.external_hits_min),
    arm="candidate",
)
IDENTITY = Declared(
    "g3.candidate_output_identity",
    Text("The candidate's outputs are right", "产品输出正确"),
    "lower",
    ("recompute: records.jsonl", *_RUNS),
    "validity.divergence_excess_max",
    "output_identity",
    rule=Text("divergence from recompute beyond what recompute differs from itself", "与重算的差异超出重算自身噪声底的部分"),
    share=True,
    limit=at_most(lambda p: p.validity.divergence_excess_max),
    arm="candidate",
)
LOAD_ERRORS = Declared(
    "g3.candidate_kv_load_errors",
    Text("No KV load failed", "没有 KV 加载失败"),
    "lower",
    ("run-1..n: counters.jsonl", "run-1..n: engine.json"),
    "DESIGN 4.3",
    "kv_load_errors",
    limit=at_most(lambda _: Decimal(0)),
    arm="candidate",
)
CACHED_TOKENS = Declared(
    "g3.candidate_cached_tokens",
    Text("Every request is served its stored prefix", "每个请求均由已存前缀提供"),
    "higher",
    _RUNS,
    "validity.external_hits_min",
    "least share of one request",
    rule=Text("the least share of any measured request, by the engine's own account of it", "任一测量请求的最低占比，以引擎对该请求的记账为准"),
    share=True,
    limit=at_least(lambda p: p.validity.external_hits_min),
    severity=Severity.ADVISORY,
    arm="candidate",
)
STORE_FAILURES = Declared(
    "g3.candidate_store_failures",
    Text("Nothing failed to be stored", "没有写入失败"),
    "lower",
    ("run-1..n: counters.jsonl",),
    "llm-bench 7.3",
    "failures to store",
    rule=Text(
        "growth within the store phase and the measured phases, of the counters that engine or offload have",
        "写入与测量阶段内，引擎或卸载软件相应计数的增量",
    ),
    limit=at_most(lambda _: Decimal(0)),
    severity=Severity.ADVISORY,
    arm="candidate",
)
RECOMPUTE = Declared(
    "g3.recompute_speedup.c{tier}",
    Text("TTFT p50 against recompute at c{tier}", "c{tier} 相对重算的 TTFT p50"),
    "told",
    ("recompute: records.jsonl", *_RUNS),
    "g3.optional.recompute_speedup",
    "recompute_speedup",
    rule=INFORMS,
    severity=Severity.ADVISORY,
    arm="candidate",
    over_tiers=True,
)
MODEL_LOAD = Declared(
    "g3.model_load_speedup",
    Text("Model load time", "模型加载时间"),
    "told",
    _CELLS,
    "g3.optional.model_load_speedup",
    "model_load_speedup",
    rule=INFORMS,
    severity=Severity.ADVISORY,
    arm="candidate",
)
CHECKPOINT = Declared(
    "g3.checkpoint_speedup",
    Text("Checkpoint write", "检查点写入"),
    "told",
    _CELLS,
    "g3.optional.checkpoint_speedup",
    "checkpoint_speedup",
    rule=INFORMS,
    severity=Severity.ADVISORY,
    arm="candidate",
)
TIER_READ = Declared(
    "g3.tier_read_bandwidth",
    Text("Raw read bandwidth of the tier", "外部层裸读带宽"),
    "told",
    _CELLS,
    "g3.optional.tier_read_bandwidth",
    "tier_read_bandwidth",
    "B/s",
    rule=INFORMS,
    severity=Severity.ADVISORY,
    arm="candidate",
)
ANSWERS_FOR = {"failures": FAILURES, "external_hits": HITS, "output_identity": IDENTITY}
# The cell that measures each optional claim.
CELLS = {"model_load_speedup": "model_load", "checkpoint_speedup": "checkpoint", "tier_read_bandwidth": "tier_read"}
OPTIONAL = {"model_load_speedup": MODEL_LOAD, "checkpoint_speedup": CHECKPOINT, "tier_read_bandwidth": TIER_READ}
