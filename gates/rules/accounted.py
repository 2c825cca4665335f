"""Did the engine serve what a run's journal holds: its own counts of requests and of output tokens, around each measured tier.

The rule for one count (`counted`) is that of the soak as well (gates/g4/account.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from gates.engine_counters import GENERATED, PROMPT, SERVED
from gates.model import ClaimResult, ClaimStatus
from gates.readers.prometheus import exposes, growth
from gates.rules.claim import Finding, Findings, Run, fold, holds, unknown
from gates.text import Text

WHAT = {
    SERVED: Text("requests", "请求"),
    PROMPT: Text("prompt tokens", "提示词元"),
    GENERATED: Text("output tokens", "输出词元"),
}
_HELD = Text(
    "the engine counted {g} {w}; the journal holds {n} of requests that did their whole work, and at most {m} in all.",
    "引擎计得{w} {g}；日志中完整完成的请求为 {n}，全部至多为 {m}。",
)


def counted(run: Run, name: str, grown: Decimal, bounds: tuple[int, int], files: tuple[str, ...], tier: int | None = None) -> Finding:
    """Return whether what an engine counted of `name` lies within what the journal has: the least and the most, both of which still hold.

    The least is that of the requests without failure, the most that of all: whether an engine counts one that failed is its own affair.
    """
    least, most = bounds
    reason = _HELD.fill(g=format(grown.normalize(), "f"), w=WHAT[name], n=least, m=most)
    return Finding(holds(least <= grown <= most), reason, None, run.key, tier, tuple(run.pack.path(file) for file in files))


def requests_accounted(data: Findings, arm: str) -> ClaimResult:
    """Return the claim that the engine counted what the runs of an arm have on record, as it is held in a soak.

    Prompt tokens are held by the claims about their source. A counter that an engine does not have is not asked for.
    """

    def findings() -> Iterator[Finding]:
        for run in data.places(arm):
            for tier in run.tiers:
                yield from _tier(run, tier, data.plan.workload.output_tokens)

    return fold(data.plan, "requests_accounted", arm, findings())


def _tier(run: Run, tier: int, output: int) -> Iterator[Finding]:
    pair, names, requests = run.pack.counter_pair("measure", tier), run.metrics_names, run.pack.of("measure", tier)
    files = ("records.jsonl", "counters.jsonl")
    if pair is None or names is None or not requests:
        yield unknown(run, "no counts of the engine surround the requests.", "没有围绕这些请求的引擎计数。", tier=tier, files=files)
        return
    good = [r for r in requests if r.failure is None]
    tokens, failed = sum(r.completion_tokens or 0 for r in good), len(requests) - len(good)
    most = tokens + failed * max([output, *(r.max_tokens for r in requests)])
    for name, least, limit in ((SERVED, len(good), len(requests)), (GENERATED, tokens, most)):
        grown = growth(pair[0].get("metrics"), pair[1].get("metrics"), name)
        if grown is None and not exposes(names, name):
            nothing = Text("this engine does not count {w}.", "该引擎不统计{w}。").fill(w=WHAT[name])
            yield Finding(ClaimStatus.NOT_APPLICABLE, nothing, None, run.key, tier)
        elif grown is None:
            yield unknown(
                run, f"the engine's count of {WHAT[name].en} does not tell.", f"引擎的{WHAT[name].zh}计数未给出数值。", tier=tier, files=files
            )
        else:
            yield counted(run, name, grown, (least, limit), files, tier)
