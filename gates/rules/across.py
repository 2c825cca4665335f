"""Claims that compare arms: baselines agree, the placebo gains nothing, a replay is no faster, and the gain follows from the measured times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from gates.canonical import sha256_of
from gates.model import Attribution, ClaimResult, ClaimStatus
from gates.readers.strict import exact
from gates.rules.agreement import agree, difference, from_frozen, is_bounded, least_difference, near, replayed, unexplained
from gates.rules.claim import Finding, Findings, Run, fold, holds, lacking
from gates.rules.decision import Effect
from gates.rules.engine import IDENTITY
from gates.rules.estimates import TierStats, percent, to_decimal
from gates.text import Text, amid

_FEW = Text("a run has no statistics at this tier.", "有轮次在该档位没有统计。")
_G2 = Text("a frozen baseline of a G2 that passed, with every tier of this plan, would change it", "G2 通过并冻结含本计划各档位的基线后方可改变")
_MOVED = Text(
    "the cause found, or a new G2 that freezes how the site runs now, would change it: no extension could bring the mean back",
    "查明原因，或由新的 G2 冻结现场当前基线方可改变：补充轮次无法使均值回到限值内",
)
_CONTROLS = Text("the recompute and placebo runs of the plan would change it", "按计划完成重算与安慰剂轮次方可改变")
_SECOND = Text("the second candidate run of each prompt set would change it", "每组提示的第二个产品轮次方可改变")
_NO_FAILURE = Text("run pairs in which no request fails would change it", "无失败请求的轮次对方可改变")


def pairs(data: Findings) -> tuple[tuple[Run, Run], ...]:
    """Return the run pairs (baseline, candidate): the k-th of each, which ABBA makes neighbours in time."""
    return tuple(zip(data.of("baseline"), data.of("candidate"), strict=False))


def tier_pairs(data: Findings, tier: int) -> tuple[tuple[TierStats, TierStats], ...] | None:
    """Return the statistics of all run pairs at a tier, or None when any is missing."""
    found = [(a.stats.get(tier), b.stats.get(tier)) for a, b in pairs(data)]
    whole = tuple((a, b) for a, b in found if a is not None and b is not None)
    return whole if whole and len(whole) == len(found) == data.pairs else None


def _few(data: Findings, tier: int) -> Finding:
    return Finding(ClaimStatus.UNKNOWN, _FEW, tier=tier, change=lacking(data, tier))


def baselines_agree(data: Findings) -> ClaimResult:
    """Return by how much two baseline runs typically differ at each tier, in TTFT p50 and in throughput (gates/rules/agreement.py)."""
    limit = data.plan.g3.agreement_max

    def findings() -> Iterator[Finding]:
        runs = data.of("baseline")
        for tier in data.plan.workload.tiers:
            stats = [run.stats.get(tier) for run in runs]
            known = [s for s in stats if s is not None]
            if len(known) < len(stats) or len(known) < 2:
                yield _few(data, tier)
                continue
            for name, name_zh, values in (
                ("TTFT p50", "TTFT p50", [s.ttft_p50 for s in known]),
                ("throughput", "吞吐", [s.output_per_s for s in known]),
            ):
                spread, decision = difference(values, limit), data.plan.decision
                reason = Text("c{t}: the baseline runs differ in {n} by {v} (at most {l}).", "c{t}：各基线轮次的{n}相差 {v}（上限 {l}）。")
                if len(values) > 2:
                    reason = Text(
                        "c{t}: two baseline runs typically differ in {n} by {v} (at most {l}).", "c{t}：任两轮基线的{n}通常相差 {v}（上限 {l}）。"
                    )
                words = {"t": tier, "n": Text(name, amid(name_zh)), "v": percent(spread, limit), "l": percent(limit)}
                if is_bounded(values, decision):
                    spread = least_difference(values, decision.confidence)
                    reason = Text(
                        "c{t}: two baseline runs typically differ in {n} by {v}, by {b} at least with {c} confidence (at most {l}).",
                        "c{t}：任两轮基线的{n}通常相差 {v}，在 {c} 置信度下至少相差 {b}（上限 {l}）。",
                    )
                    words |= {"b": percent(spread, limit), "c": percent(decision.confidence, places=0)}
                yield Finding(holds(agree(values, limit, decision)), reason.fill(**words), spread, None, tier, _records(runs))

    return fold(data.plan, "baselines_agree", "baseline", findings())


def frozen_hash(baseline: Mapping[str, Any]) -> str | None:
    """Return the hash of the baseline that G2 freezes: over its tiers and its engine. None: what they hold cannot be written down."""
    try:
        return sha256_of({"tiers": baseline.get("tiers"), "engine": baseline.get("engine")})
    except (TypeError, ValueError):
        return None


def g2_agreement(data: Findings, frozen: Any) -> ClaimResult:
    """Return how far G3's own baseline is from the one that G2 froze, at each tier: geometric mean of the runs over the frozen value."""
    limit = data.plan.g3.agreement_max

    def findings() -> Iterator[Finding]:
        tiers = frozen.get("tiers") if isinstance(frozen, Mapping) else None
        if isinstance(frozen, Mapping) and tiers:
            yield from (_engine_of_g2(run, frozen.get("engine")) for run in data.of("baseline"))
        for tier in data.plan.workload.tiers:
            old = tiers.get(str(tier)) if isinstance(tiers, Mapping) else None
            stats = [run.stats.get(tier) for run in data.of("baseline")]
            ttft = exact(old.get("ttft_p50_ns")) if isinstance(old, Mapping) else None
            rate = exact(old.get("output_tokens_per_s")) if isinstance(old, Mapping) else None
            if not ttft or not rate or ttft < 0 or rate < 0:
                nothing = Text("there is no frozen G2 baseline for this tier.", "该档位没有已冻结的 G2 基线。")
                yield Finding(ClaimStatus.UNKNOWN, nothing, tier=tier, change=_G2)
                continue
            known = [s for s in stats if s is not None]
            if not known or len(known) < len(stats):
                yield _few(data, tier)
                continue
            for name, name_zh, base, values in (
                ("TTFT p50", "TTFT p50", ttft, [s.ttft_p50 for s in known]),
                ("throughput", "吞吐", rate, [s.output_per_s for s in known]),
            ):
                effect = from_frozen(Fraction(base), values)
                off = abs(effect.value(limit, -limit))
                reason = Text("c{t}: {n} is {v} away from the frozen G2 baseline (at most {l}).", "c{t}：{n}与已冻结的 G2 基线相差 {v}（上限 {l}）。")
                reason = reason.fill(t=tier, n=Text(name, amid(name_zh)), v=percent(off, limit), l=percent(limit))
                back = from_frozen(Fraction(base), [*values, *[Fraction(base)] * (data.plan.g3.extension_pairs or len(values))])
                moved = None if near(back, limit) else _MOVED  # even runs that all repeat G2 exactly would leave the mean beyond the limit
                yield Finding(holds(near(effect, limit)), reason, off, None, tier, ("evidence/inputs.json",), change=moved)
        if isinstance(frozen, Mapping) and tiers and frozen.get("hash") != frozen_hash(frozen):
            odd = Text("the frozen G2 baseline is not the one that its hash names.", "已冻结的 G2 基线与其哈希不符。")
            yield Finding(ClaimStatus.UNKNOWN, odd, evidence=("evidence/inputs.json",), change=_G2)

    return fold(data.plan, "g2_agreement", "baseline", findings())


def _engine_of_g2(run: Run, frozen: Any) -> Finding:
    """Hold the engine of a baseline run against the one that G2's frozen baseline was measured on."""
    files = (run.pack.path("engine.json"), "evidence/inputs.json")
    silent = [k for k in IDENTITY if run.pack.engine.get(k) is None or not isinstance(frozen, Mapping) or frozen.get(k) is None]
    if silent:
        reason = Text(
            "whether the engine is the one of G2 is not told ({k}); judge G2 again if an earlier judge froze its baseline.",
            "未能确认引擎是否与 G2 相同（{k}）；如其基线由较早的判定程序冻结，请重新判定 G2。",
        )
        return Finding(ClaimStatus.UNKNOWN, reason.fill(k=", ".join(silent)), None, run.key, None, files)
    differs = next((k for k in IDENTITY if run.pack.engine.get(k) != frozen.get(k)), None)
    if differs:
        reason = Text("the engine's {k} is {v}; the frozen G2 baseline was measured with {w}.", "引擎的 {k} 为 {v}；已冻结的 G2 基线测量时为 {w}。")
        reason = reason.fill(k=differs, v=run.pack.engine.get(differs), w=frozen.get(differs))
        return Finding(ClaimStatus.BREACHED, reason, None, run.key, None, files)
    return Finding(ClaimStatus.HOLDS, Text("the engine is the one of G2.", "引擎与 G2 相同。"), None, run.key, None, files)


def placebo(data: Findings) -> ClaimResult:
    """Return the placebo's throughput gain over recompute; more than the limit means that something other than stored KV is measured.

    Where both run several times, it is the geometric mean over the pairs (the n-th of each): which of them is paired with which changes nothing.
    """
    limit = data.plan.validity.placebo_gain_max

    def findings() -> Iterator[Finding]:
        controls = data.control_pairs()
        if not controls:
            missing = Text("the recompute or the placebo run is missing.", "缺少重算或安慰剂轮次。")
            yield Finding(ClaimStatus.UNKNOWN, missing, change=_CONTROLS)
            return
        for tier in data.plan.workload.tiers:
            found = [(a.stats.get(tier), b.stats.get(tier)) for a, b in controls]
            known = tuple((a.output_per_s, b.output_per_s) for a, b in found if a is not None and b is not None)
            if len(known) < len(found):
                yield _few(data, tier)
                continue
            effect = Effect(known, drop=False)
            gain = effect.value(limit)
            reason = Text("c{t}: the placebo's throughput is {v} against recompute (at most +{l}).", "c{t}：安慰剂吞吐相对重算为 {v}（上限 +{l}）。")
            if len(known) > 1:
                reason = Text(
                    "c{t}: the placebo's throughput is {v} against recompute, the mean of {n} pairs of runs (at most +{l}).",
                    "c{t}：安慰剂吞吐相对重算为 {v}，为 {n} 对轮次的均值（上限 +{l}）。",
                )
            reason = reason.fill(t=tier, v=percent(gain, limit), l=percent(limit), n=len(known))
            yield Finding(holds(not effect.exceeds(limit)), reason, gain, None, tier, _records([run for pair in controls for run in pair]))

    return fold(data.plan, "placebo", "placebo", findings())


def replay(data: Findings) -> ClaimResult:
    """Return how much faster the later candidate runs answered the same prompts than the first: a cache that was not emptied shows here.

    The later runs count together: the fastest of many would look fast by chance alone. Where each block asks prompts of its own, the blocks
    count together, each with its second run against its first.
    """
    limit, together = data.plan.validity.replay_gain_max, data.plan.arms.prompts == "per_block"
    runs = data.of("candidate")
    asked = [[r for r in runs if r.prompts == name] for name in dict.fromkeys(r.prompts for r in runs)]
    repeated = [group for group in asked if len(group) > 1]  # only the same prompts can be replayed
    whole = len(repeated) == len(asked) and len(runs) == data.pairs
    parts = [repeated if whole else []] if together else [[group] for group in repeated] or [[]]

    def findings() -> Iterator[Finding]:
        for part, tier in product(parts, data.plan.workload.tiers):
            values = [[stats.ttft_p50 for r in group if (stats := r.stats.get(tier)) is not None] for group in part]
            if not part or any(len(known) < len(group) for known, group in zip(values, part, strict=True)):
                missing = Text("there is no second candidate run to compare.", "没有可比较的第二个产品轮次。")
                yield Finding(ClaimStatus.UNKNOWN, missing, tier=tier, change=_SECOND)
                continue
            effect = replayed(values)
            gain = effect.value(limit)
            reason = Text(
                "c{t}: the later runs' TTFT p50 is {v} lower than the first run's (at most {l}).",
                "c{t}：后续轮次 TTFT p50 比首轮低 {v}（上限 {l}）。",
            )
            if len(part) > 1:
                reason = Text(
                    "c{t}: in the second run over the same prompts TTFT p50 is {v} lower than in the first, the mean of {n} blocks (at most {l}).",
                    "c{t}：同一组提示第二轮的 TTFT p50 比第一轮低 {v}，为 {n} 组的均值（上限 {l}）。",
                )
            reason = reason.fill(t=tier, v=percent(gain, limit), l=percent(limit), n=len(part))
            yield Finding(holds(not effect.exceeds(limit)), reason, gain, None, tier, _records(runs))

    return fold(data.plan, "replay", "candidate", findings())


def gain_explained(data: Findings) -> ClaimResult:
    """Return how far the throughput gain is from what the measured means of TTFT and decode time allow: C / E2E in a closed loop."""
    limit = data.plan.validity.gain_explained_max

    def findings() -> Iterator[Finding]:
        for tier in data.plan.workload.tiers:
            found = tier_pairs(data, tier)
            if found is None:
                yield _few(data, tier)
                continue
            if any(s.failed for pair in found for s in pair):
                lost = Text("c{t}: requests failed, so their tokens are missing from the throughput.", "c{t}：有请求失败，其词元未计入吞吐。").fill(
                    t=tier
                )
                yield Finding(ClaimStatus.UNKNOWN, lost, tier=tier, change=_NO_FAILURE)
                continue
            effect = unexplained([(a.e2e_mean / b.e2e_mean, b.output_per_s / a.output_per_s) for a, b in found])
            off = abs(effect.value(limit, -limit))
            base, new = (_mean([pair[i].ttft_mean for pair in found]) for i in (0, 1))
            reason = Text(
                "c{t}: the throughput gain is {v} off what the measured times allow (at most {l}); mean TTFT {a} ms -> {b} ms.",
                "c{t}：吞吐提升与实测时间所能解释的相差 {v}（上限 {l}）；TTFT 均值 {a} ms -> {b} ms。",
            ).fill(t=tier, v=percent(off, limit), l=percent(limit), a=to_decimal(base / 10**6, 3), b=to_decimal(new / 10**6, 3))
            yield Finding(holds(near(effect, limit)), reason, off, None, tier, _records([r for p in pairs(data) for r in p]))

    return fold(data.plan, "gain_explained", "candidate", findings(), fault=Attribution.RIG)


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _records(runs: Sequence[Run]) -> tuple[str, ...]:
    return tuple(r.pack.path("records.jsonl") for r in runs)
