"""Are the outputs of what was recovered those of recompute, beyond what recompute differs from itself (DESIGN 4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import sqrt

from gates.model import Attribution, ClaimResult, ClaimStatus
from gates.plan_model import Validity
from gates.readers.run_pack import Request
from gates.rules.claim import Finding, Findings, Run, fold, not_applicable, unknown
from gates.rules.estimates import percent
from gates.text import Text

_RECOMPUTE = Text("a recompute run over the same prompts would tell", "对相同提示的重算轮次方可判定")
_REPEATABLE = Text(
    "a recompute run that gives at least {w} of its outputs alike when asked again would tell (deterministic, batch-invariant kernels)",
    "再次提问时至少 {w} 的输出一致的重算轮次方可判定（确定性、与批次无关的内核）",
)
_MORE = Text(
    "a recompute run that asks {n} prompts again (workload.identity_repeats) would tell, if it goes on as it did",
    "若保持现有水平，重复询问 {n} 个提示（workload.identity_repeats）的重算轮次方可判定",
)
_Pair = tuple[Request, Request]  # an answer, and recompute's to the same prompt


def output_identity(data: Findings, arm: str) -> ClaimResult:
    """Return the share of outputs that differ from recompute, beyond what recompute differs from itself (DESIGN 4.3).

    Repeats tell recompute's own noise within bounds only (Wilson, 95 %): none of 32 may be one in thirteen. What surely stands beyond the upper
    bound is a breach, what the lower bound explains holds, and what lies between is unknown until more prompts are asked again. Where recompute
    hardly reproduces itself (`validity.noise_floor_max`), whole outputs are no measure at all. The first tokens diverge more rarely by noise than
    whole outputs do: beyond their own noise they prove a breach, and within it that what came later is the noise of an engine known to have some.
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
class Divergence:
    """How many of an arm's answers differ from recompute's, and how many of recompute's from its own."""

    off: int
    compared: int
    base: int
    repeats: int

    @property
    def share(self) -> Decimal:
        """The share of the arm's outputs that differ."""
        return Decimal(self.off) / self.compared

    @property
    def floor(self) -> Decimal:
        """The share in which recompute differs from itself."""
        return Decimal(self.base) / self.repeats

    @property
    def surely_beyond(self) -> Decimal:
        """The least that the share may be in more outputs than these, beyond the most that noise may be."""
        return max(wilson(self.off, self.compared)[0] - wilson(self.base, self.repeats)[1], Decimal(0))

    @property
    def perhaps_beyond(self) -> Decimal:
        """The share beyond the least that noise is."""
        return max(self.share - wilson(self.base, self.repeats)[0], Decimal(0))


def _diverged(run: Run, reference: Run, tier: int, limits: Validity) -> Finding:
    limit, floor_max = limits.divergence_excess_max, limits.noise_floor_max
    files = (run.pack.path("records.jsonl"), reference.pack.path("records.jsonl"))
    truth = {r.prompt_sha256: r for r in reference.pack.of("measure") if r.failure is None}
    compared = _pairs(run.pack.of("measure", tier), truth)
    again = _pairs(reference.pack.of("repeat"), truth)
    wanted = int(reference.spec.params.get("repeat") or 0)
    whole, heads = _counted(compared, again, "output_sha256"), _counted(compared, again, "output_head")
    if not compared or len(again) < max(wanted, 1) or whole is None:
        return unknown(
            run, "outputs were not recorded for the prompts and their repeats.", "未记录各提示及其重复的输出。", tier=tier, files=("records.jsonl",)
        )
    status, by_heads = proven(whole, heads, limit, floor_max)
    if status is ClaimStatus.UNKNOWN:
        return _unproven(run, tier, whole, limit, floor_max)
    if by_heads and heads is not None and status is ClaimStatus.BREACHED:
        return Finding(status, _told(_HEADS, heads, heads.surely_beyond, limit), heads.surely_beyond, run.key, tier, files)
    beyond = whole.surely_beyond if by_heads or status is ClaimStatus.BREACHED else whole.perhaps_beyond
    return Finding(status, _told(_WHOLE, whole, beyond, limit), beyond, run.key, tier, files)


_WHOLE = Text(
    "{v} of {n} outputs differ from recompute; recompute differs from itself in {b} of {m}. Beyond that noise: {e} (at most {l}).",
    "{n} 个输出中 {v} 与重算不同；重算自身在 {m} 次中有 {b} 次不同。超出该噪声：{e}（上限 {l}）。",
)
_HEADS = Text(
    "{v} of {n} outputs differ from recompute in their first tokens; recompute in {b} of {m} of its own. Beyond noise: {e} (at most {l}).",
    "{n} 个输出中 {v} 在开头几个词元即与重算不同；重算自身在 {m} 次中有 {b} 次。超出噪声：{e}（上限 {l}）。",
)


def _told(words: Text, found: Divergence, beyond: Decimal, limit: Decimal) -> Text:
    return words.fill(v=percent(found.share), n=found.compared, b=found.base, m=found.repeats, e=percent(beyond, limit), l=percent(limit))


def proven(whole: Divergence, heads: Divergence | None, limit: Decimal, floor_max: Decimal) -> tuple[ClaimStatus, bool]:
    """Return what the outputs of one tier prove, and whether their first tokens decided it."""
    if whole.share <= limit:  # no noise is needed to explain it
        return ClaimStatus.HOLDS, False
    if whole.surely_beyond > limit:
        return ClaimStatus.BREACHED, False
    if heads is not None and heads.surely_beyond > limit:
        return ClaimStatus.BREACHED, True
    if whole.floor > floor_max:
        return ClaimStatus.UNKNOWN, False
    if whole.perhaps_beyond <= limit:
        return ClaimStatus.HOLDS, False
    if whole.base and heads is not None and heads.perhaps_beyond <= limit:
        return ClaimStatus.HOLDS, True
    return ClaimStatus.UNKNOWN, False


def _unproven(run: Run, tier: int, whole: Divergence, limit: Decimal, floor_max: Decimal) -> Finding:
    """Return why nothing is proven, and what would prove it."""
    if whole.floor > floor_max:
        floor = (
            f"recompute differs from itself in {whole.base} of {whole.repeats} outputs (at most {percent(floor_max)}): they are no measure.",
            f"重算自身在 {whole.repeats} 个输出中有 {whole.base} 个不同（上限 {percent(floor_max)}）：输出不足以作为依据。",
        )
        return unknown(run, *floor, tier=tier, files=("records.jsonl",), change=_REPEATABLE.fill(w=percent(1 - floor_max, places=0)))
    words = {"v": percent(whole.share), "n": whole.compared, "b": whole.base, "m": whole.repeats}
    low, high = (percent(bound) for bound in wilson(whole.base, whole.repeats))
    told = Text(
        "{v} of {n} outputs differ from recompute; recompute differs from itself in {b} of {m}, so its own noise is between {low} and {high}.",
        "{n} 个输出中 {v} 与重算不同；重算自身在 {m} 次中有 {b} 次不同，其噪声介于 {low} 与 {high} 之间。",
    ).fill(**words, low=low, high=high)
    more = repeats_needed(whole, limit)
    change = _MORE.fill(n=more) if more else _REPEATABLE.fill(w=percent(1 - floor_max, places=0))
    return unknown(run, told.en, told.zh, tier=tier, files=("records.jsonl",), change=change)


def _pairs(requests: Sequence[Request], truth: dict[str, Request]) -> list[_Pair]:
    return [(r, truth[r.prompt_sha256]) for r in requests if r.failure is None and r.prompt_sha256 in truth]


def _counted(compared: Sequence[_Pair], again: Sequence[_Pair], column: str) -> Divergence | None:
    """Return how many differ in this column, or None where it was not recorded."""
    if any(getattr(r, column) is None for pair in (*compared, *again) for r in pair):
        return None
    off, base = (sum(getattr(a, column) != getattr(b, column) for a, b in pairs) for pairs in (compared, again))
    return Divergence(off, len(compared), base, len(again))


def wilson(hits: int, n: int) -> tuple[Decimal, Decimal]:
    """Return the Wilson bounds of a share, each at 95 % by itself (Wilson, J. Am. Stat. Assoc. 22, 1927). Raises ZeroDivisionError for n = 0."""
    p, z2 = hits / n, Z * Z
    middle, half = p + z2 / (2 * n), Z * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z2 / n) for sign in (-1, 1))
    return Decimal(repr(max(round(low, 6), 0.0))), Decimal(repr(min(round(high, 6), 1.0)))


def repeats_needed(found: Divergence, limit: Decimal) -> int | None:
    """Return how many repeats would decide if recompute went on to differ from itself in this share; None: no number would."""
    for n in _ASKED:
        more = replace(found, base=round(found.floor * n), repeats=n)
        if n > found.repeats and (more.surely_beyond > limit or more.perhaps_beyond <= limit):
            return n
    return None


Z = 1.644854  # of 95 %, one side
_ASKED = tuple(10 * k for k in range(2, 20)) + tuple(100 * k for k in range(2, 51))
