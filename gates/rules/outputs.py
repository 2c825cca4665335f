"""Are the outputs of what was recovered those of recompute, beyond what recompute differs from itself (DESIGN 4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt

from gates.model import Attribution, ClaimResult, ClaimStatus
from gates.plan_model import Validity
from gates.readers.run_pack import Request
from gates.rules.claim import Finding, Findings, Run, fold, holds, not_applicable, unknown
from gates.rules.estimates import percent
from gates.text import Text

_RECOMPUTE = Text("a recompute run over the same prompts would tell", "对相同提示的重算轮次方可判定")
_REPEATABLE = Text(
    "a recompute run that gives at least {w} of its outputs alike when asked again would tell (deterministic, batch-invariant kernels)",
    "再次提问时至少 {w} 的输出一致的重算轮次方可判定（确定性、与批次无关的内核）",
)
_Pair = tuple[Request, Request]  # an answer, and recompute's to the same prompt


def output_identity(data: Findings, arm: str) -> ClaimResult:
    """Return the share of outputs that differ from recompute, beyond what recompute differs from itself (DESIGN 4.3).

    Where recompute hardly reproduces itself (`validity.noise_floor_max`), whole outputs are no measure: every one may be wrong and none beyond
    the noise. The first tokens diverge more rarely by noise than whole outputs do, so beyond their own noise they still prove a breach; what
    they do not show remains unknown.
    """
    if not data.plan.arms.recovers(arm):
        return not_applicable(
            "output_identity", arm, "Outputs are compared with this arm, or it asks other prompts.", "以该对照组为参照，或其提示不同。"
        )

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            reference = next((r for r in data.of("recompute") if r.prompts == run.prompts), None)
            if reference is None:
                yield unknown(run, "there is no recompute run to compare with.", "没有可比较的重算轮次。", change=_RECOMPUTE)
                continue
            for tier in run.tiers:  # by itself: pooled, a large sound tier would hide a small broken one
                yield _diverged(run, reference, tier, data.plan.validity)

    fault = Attribution.PRODUCT if arm == "candidate" else Attribution.RIG
    return fold(data.plan, "output_identity", arm, findings(), fault=fault)


@dataclass(frozen=True)
class _Divergence:
    """How many of an arm's answers differ from recompute's, and how many of recompute's from its own."""

    off: int
    compared: int
    base: int
    repeats: int
    noise: Decimal  # the share that noise may explain

    @property
    def share(self) -> Decimal:
        return Decimal(self.off) / self.compared

    @property
    def excess(self) -> Decimal:
        return max(self.share - self.noise, Decimal(0))


def _diverged(run: Run, reference: Run, tier: int, limits: Validity) -> Finding:
    limit, floor_max = limits.divergence_excess_max, limits.noise_floor_max
    files = (run.pack.path("records.jsonl"), reference.pack.path("records.jsonl"))
    truth = {r.prompt_sha256: r for r in reference.pack.of("measure") if r.failure is None}
    compared = _pairs(run.pack.of("measure", tier), truth)
    again = _pairs(reference.pack.of("repeat"), truth)
    wanted = int(reference.spec.params.get("repeat") or 0)
    if not compared or len(again) < max(wanted, 1) or any(None in (a.output_sha256, b.output_sha256) for a, b in (*compared, *again)):
        return unknown(
            run, "outputs were not recorded for the prompts and their repeats.", "未记录各提示及其重复的输出。", tier=tier, files=("records.jsonl",)
        )
    whole, heads = _outputs(compared, again), _heads(compared, again)
    reason = Text(
        "{v} of {n} outputs differ from recompute; recompute differs from itself in {b} of {m}. Beyond that noise: {e} (at most {l}).",
        "{n} 个输出中 {v} 与重算不同；重算自身在 {m} 次中有 {b} 次不同。超出该噪声：{e}（上限 {l}）。",
    ).fill(v=percent(whole.share), n=whole.compared, b=whole.base, m=whole.repeats, e=percent(whole.excess, limit), l=percent(limit))
    if whole.excess <= limit and whole.base and heads is not None and heads.excess > limit:
        told = Text(
            "{v} of {n} outputs differ from recompute in their first tokens; recompute in {b} of {m} of its own. Beyond noise: {e} (at most {l}).",
            "{n} 个输出中 {v} 在开头几个词元即与重算不同；重算自身在 {m} 次中有 {b} 次。超出噪声：{e}（上限 {l}）。",
        ).fill(v=percent(heads.share), n=heads.compared, b=heads.base, m=heads.repeats, e=percent(heads.excess, limit), l=percent(limit))
        return Finding(ClaimStatus.BREACHED, told, heads.excess, run.key, tier, files)
    if whole.excess <= limit and Decimal(whole.base) / whole.repeats > floor_max:
        floor = (
            f"recompute differs from itself in {whole.base} of {whole.repeats} outputs (at most {percent(floor_max)}): they are no measure.",
            f"重算自身在 {whole.repeats} 个输出中有 {whole.base} 个不同（上限 {percent(floor_max)}）：输出不足以作为依据。",
        )
        return unknown(run, *floor, tier=tier, files=("records.jsonl",), change=_REPEATABLE.fill(w=percent(1 - floor_max, places=0)))
    return Finding(holds(whole.excess <= limit), reason, whole.excess, run.key, tier, files)


def _pairs(requests: Sequence[Request], truth: dict[str, Request]) -> list[_Pair]:
    return [(r, truth[r.prompt_sha256]) for r in requests if r.failure is None and r.prompt_sha256 in truth]


def _outputs(compared: Sequence[_Pair], again: Sequence[_Pair]) -> _Divergence:
    off, base = (sum(a.output_sha256 != b.output_sha256 for a, b in pairs) for pairs in (compared, again))
    # None differed: the engine is taken for deterministic, and every difference of the arm counts.
    return _Divergence(off, len(compared), base, len(again), _upper_bound(base, len(again)) if base else Decimal(0))


def _heads(compared: Sequence[_Pair], again: Sequence[_Pair]) -> _Divergence | None:
    """Return the same of the first tokens, or None where they were not recorded. The engine is known to be noisy, so none of few proves none."""
    if any(r.output_head is None for pair in (*compared, *again) for r in pair):
        return None
    off, base = (sum(a.output_head != b.output_head for a, b in pairs) for pairs in (compared, again))
    return _Divergence(off, len(compared), base, len(again), _upper_bound(base, len(again)))


def _upper_bound(hits: int, n: int) -> Decimal:
    """Return the upper 95 % Wilson bound of a share (few repeats tell a rate roughly)."""
    z, p = 1.6449, hits / n
    bound = (p + z * z / (2 * n) + z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return Decimal(repr(round(bound, 6)))
