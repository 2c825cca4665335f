"""The acceptance plan: differences merged into the default, checked, made canonical and hashed.

    plan = parse_plan({"g3": {"agreement_max": "0.03"}})   # differences from the default
    plan.g3.agreement_max, plan.workload.requests(16), plan.canonical(), plan.hash

Anything wrong raises InvalidPlan, which carries one sentence for each problem; nothing is guessed and nothing ignored.
"""

# ruff: noqa: RUF009 - `of` and `section` are dataclasses.field with a specification
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from gates.canonical import canonical_bytes, sha256_hex
from gates.plan_arrival import G1
from gates.plan_clients import check_clients
from gates.plan_model import (
    G2,
    G3,
    G4,
    MEDIUM_KEYS,
    NEVER_LEFT_OUT,
    Arms,
    Calendar,
    Decision,
    Expected,
    Header,
    NotTested,
    Policy,
    RequiredEvidence,
    Rig,
    Validity,
    Workload,
)
from gates.plan_platform import Platform
from gates.schema import BAD, FieldProblem, Items, Problems, Section, of, section
from gates.strict_yaml import BadYaml, read_yaml
from gates.text import Text

DEFAULT_PLAN = Path(__file__).with_name("default-plan.yaml")


class InvalidPlan(ValueError):  # noqa: N818 - an error is named by what is wrong
    """A plan that cannot be used; `problems` says all that is wrong, field by field."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("\n".join(p.message.en for p in problems))
        self.problems = problems


@dataclass(frozen=True)
class Plan:
    """A whole, checked plan. Every number that a gate uses stands here."""

    header: Header = section(Header, "plan")
    calendar: Calendar = section(Calendar)
    platform: Platform = section(Platform)
    policy: Policy = section(Policy)
    decision: Decision = section(Decision)
    workload: Workload = section(Workload)
    arms: Arms = section(Arms)
    g1: G1 = section(G1)
    g2: G2 = section(G2)
    g3: G3 = section(G3)
    g4: G4 = section(G4)
    validity: Validity = section(Validity)
    expected: Expected = section(Expected)
    evidence: RequiredEvidence = section(RequiredEvidence)
    not_tested: tuple[NotTested, ...] = of(Items(Section(NotTested)))
    rig: Rig = section(Rig)

    @cached_property
    def data(self) -> dict[str, Any]:
        """Return the plan as plain JSON data: exact decimals and quantities are strings."""
        data: dict[str, Any] = Section(Plan).write(self)
        return data

    def canonical(self) -> str:
        """Return the canonical JSON text (RFC 8785) that is sealed."""
        return canonical_bytes(self.data).decode()

    @cached_property
    def hash(self) -> str:
        """Return `sha256:<hex>` of the canonical JSON: what both parties agree to."""
        return "sha256:" + sha256_hex(self.canonical().encode())

    def leaves_out(self, claim: str) -> str | None:
        """Return the agreed reason for not testing a claim, or None when it is tested."""
        return next((n.reason for n in self.not_tested if n.claim == claim), None)

    def requires(self, group: str) -> bool:
        """Return whether the checks of an evidence group decide: without the evidence they are then inconclusive."""
        return group in self.evidence.required

    def scaled_seconds(self, seconds: Decimal) -> Decimal:
        """Return the clock's seconds for so many seconds of the plan (rig.time_scale; 1 on real hardware)."""
        return seconds / self.rig.time_scale


def load_yaml(text: str) -> Any:
    """Read YAML with exact decimals. Raises InvalidPlan with the line and column when the text is not YAML."""
    try:
        return read_yaml(text)
    except BadYaml as error:
        raise InvalidPlan((FieldProblem("", Text(f"plan: {error.text.en}", f"plan：{error.text.zh}")),)) from None


@lru_cache(maxsize=1)
def default_data() -> dict[str, Any]:
    """Return the default plan's data, as read from default-plan.yaml."""
    data: dict[str, Any] = load_yaml(DEFAULT_PLAN.read_text(encoding="utf-8"))
    return data


def parse_plan(differences: Mapping[str, Any] | None = None) -> Plan:
    """Return the default plan with differences merged in: maps key by key, lists and values as a whole. Raises InvalidPlan."""
    problems = Problems()
    if differences is not None and not isinstance(differences, Mapping):
        problems.expected("", differences, "a map of differences from the default plan", "相对默认计划的差异映射")
        raise InvalidPlan(tuple(problems.found))
    return _read(_merge(default_data(), differences or {}), problems)


def changed_plan(plan: Plan, differences: Mapping[str, Any]) -> Plan:
    """Return a plan with differences merged in, as parse_plan does with the default. Raises InvalidPlan."""
    return _read(_merge(plan.data, differences), Problems())


def load_plan(data: Mapping[str, Any]) -> Plan:
    """Return a plan from its complete data, e.g. from a manifest. Nothing is filled in: a missing field is a problem."""
    return _read(data, Problems())


def _merge(base: Any, over: Any) -> Any:
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    out = dict(base)
    for key, value in over.items():
        out[key] = _merge(base[key], value) if key in base else value
    return out


def _read(data: Any, problems: Problems) -> Plan:
    _say_what_never_may_be_left_out(data, problems)
    plan = Section(Plan).read(data, "", problems)
    if plan is not BAD:
        _check_together(plan, problems)
    if problems.found or not isinstance(plan, Plan):
        raise InvalidPlan(tuple(problems.found))
    return plan


def _say_what_never_may_be_left_out(data: Any, problems: Problems) -> None:
    listed = data.get("not_tested") if isinstance(data, Mapping) else None
    for i, entry in enumerate(listed if isinstance(listed, list | tuple) else ()):
        claim = entry.get("claim") if isinstance(entry, Mapping) else entry
        if claim in NEVER_LEFT_OUT:
            problems.add(
                f"not_tested[{i}]",
                f"{claim} cannot be left out: cold caches, equal work and failures are always tested.",
                f"{claim} 不得省略：冷缓存、工作量相等和失败请求必须检验。",
            )


def _check_together(plan: Plan, problems: Problems) -> None:
    """Check what one field alone cannot tell."""
    add = problems.add
    for path, tiers in {
        "g3.ttft_p50_drop_min.tiers": plan.g3.ttft_p50_drop_min.tiers,
        "g3.throughput_gain_band.tiers": plan.g3.throughput_gain_band.tiers,
        "g3.sla.ttft_p50": tuple(plan.g3.sla.ttft_p50 or ()),
        "g4.tier": (plan.g4.tier,),
        "expected.ttft_p50_drop": tuple(plan.expected.ttft_p50_drop or ()),
        "expected.throughput_gain": tuple(plan.expected.throughput_gain or ()),
    }.items():
        for tier in tiers:
            if tier not in plan.workload.tiers:
                add(path, f"tier {tier} is not measured; workload.tiers has {list(plan.workload.tiers)}.", f"档位 {tier} 不在 workload.tiers 中。")
    if plan.g3.throughput_gain_band.low >= plan.g3.throughput_gain_band.high:
        add("g3.throughput_gain_band", "low must be below high.", "low 必须小于 high。")
    low, high = plan.validity.device_bytes_ratio
    if low >= high:
        add("validity.device_bytes_ratio", "the first value must be below the second.", "第一个值必须小于第二个值。")
    if plan.g4.window.base > plan.g4.duration.base:
        add("g4.window", "must not be longer than g4.duration.", "不得长于 g4.duration。")
    if plan.g4.leak.warmup.base >= plan.g4.duration.base:
        add("g4.leak.warmup", "must be shorter than g4.duration.", "必须短于 g4.duration。")
    if plan.g4.error_budget.window.base >= plan.g4.error_budget.long_window.base:
        add("g4.error_budget.window", "must be shorter than long_window.", "必须短于 long_window。")
    if plan.g4.steady_state.within < plan.g4.steady_state.rounds:
        add("g4.steady_state.within", "must not be less than rounds.", "不得小于 rounds。")
    if not plan.rig.simulated and plan.rig.time_scale != 1:
        add("rig.time_scale", "must be 1 unless rig.simulated is true.", "除非 rig.simulated 为 true，否则必须为 1。")
    _check_load(plan, problems)
    _check_decision(plan, problems)
    _check_arms(plan, problems)


def _check_load(plan: Plan, problems: Problems) -> None:
    """Check that the instances can share every concurrency evenly, and what third-party clients are asked for."""
    instances, tiers = plan.platform.layout.instances, plan.workload.tiers
    for tier in tiers:
        if tier % instances:
            problems.add(
                "workload.tiers",
                f"{tier} requests in flight cannot be shared evenly by {instances} instances (platform.layout.instances).",
                f"并发 {tier} 无法由 {instances} 个实例均分（platform.layout.instances）。",
            )
    check_clients(plan.workload.clients, tiers, instances, problems)


def _check_decision(plan: Plan, problems: Problems) -> None:
    decision, order = plan.decision, plan.arms.order
    for arm in ("baseline", "candidate"):
        if order.count(arm) != decision.pairs:
            problems.add(
                "arms.order",
                f"has {order.count(arm)} runs of {arm}; decision.pairs asks for {decision.pairs} of each.",
                f"{arm} 有 {order.count(arm)} 轮；decision.pairs 要求各 {decision.pairs} 轮。",
            )
    if decision.rule != "simple" and decision.pairs < 4:
        problems.add("decision.pairs", f"the rule {decision.rule} needs at least 4 run pairs.", f"规则 {decision.rule} 至少需要 4 个轮次对。")
    if plan.g3.extension_pairs % 2:
        problems.add(
            "g3.extension_pairs",
            f"{plan.g3.extension_pairs} is odd; an extension adds whole ABBA blocks of 2 run pairs each, or is 0: never extended.",
            f"{plan.g3.extension_pairs} 为奇数；补充轮次按完整的 ABBA 组进行，每组 2 个轮次对；填 0 表示不允许补充。",
        )
    if (decision.comparison == "rounded") != (decision.digits is not None):
        problems.add("decision.digits", "must be a number when comparison is rounded, and null otherwise.", "仅在 comparison 为 rounded 时填写。")


def _check_arms(plan: Plan, problems: Problems) -> None:
    needs = {"recompute": ("placebo", "output_identity"), "placebo": ("placebo",)}
    for arm, claims in needs.items():
        if arm in plan.arms.once:
            continue
        for claim in claims:
            if plan.leaves_out(claim) is None:
                problems.add(
                    "arms.once",
                    f"lacks {arm}, which the claim {claim} needs; name {claim} under not_tested or add {arm}.",
                    f"缺少 {arm}，断言 {claim} 需要它；请补上 {arm}，或将 {claim} 列入 not_tested。",
                )
    _check_repeats(plan, problems)
    software = [k for k in plan.arms.allowed_difference if k.rsplit(".", 1)[-1] not in MEDIUM_KEYS]
    if software and "baseline_tuned" not in plan.arms.once:
        problems.add(
            "arms.allowed_difference",
            f"{', '.join(software)}: a software key, so arms.once must hold baseline_tuned, which splits the gain into software and array.",
            f"{', '.join(software)} 属于软件配置，因此 arms.once 必须包含 baseline_tuned，以区分软件与阵列的提升。",
        )


def _check_repeats(plan: Plan, problems: Problems) -> None:
    """Check how often recompute and placebo run, and that blocks which ask prompts of their own are whole and have a recompute run each."""
    arms = plan.arms
    if arms.prompts == "per_block":
        blocks = [arms.order[i : i + 4] for i in range(0, len(arms.order), 4)]
        if any(len(b) < 4 or b[0] != b[3] or b[1] != b[2] or b[0] == b[1] for b in blocks):
            problems.add(
                "arms.order",
                "must be whole ABBA blocks of four runs where arms.prompts is per_block.",
                "arms.prompts 为 per_block 时，必须由完整的 ABBA 组（每组四轮）组成。",
            )
    if arms.prompts == "per_block" and "recompute" in arms.once:
        if arms.controls < arms.blocks:
            problems.add(
                "arms.controls",
                f"is {arms.controls}; with arms.prompts per_block each of the {arms.blocks} blocks needs a recompute run over its own prompts.",
                f"为 {arms.controls}；arms.prompts 为 per_block 时，{arms.blocks} 个组各需一轮针对本组提示的重算。",
            )
    elif arms.controls > 1 and "placebo" not in arms.once:
        problems.add(
            "arms.controls",
            "repeats recompute and placebo, but arms.once lacks the placebo: there is no pair to average.",
            "用于重复重算与安慰剂，但 arms.once 中没有安慰剂，无可平均的轮次对。",
        )
