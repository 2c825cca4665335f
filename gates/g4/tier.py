"""The claim that the external tier served the soak, and not something above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from gates.engine_counters import OWN_HITS, TIER_HITS
from gates.model import Attribution, ClaimResult, ClaimStatus
from gates.plan import Plan
from gates.readers.journal import Column
from gates.readers.prometheus import growth
from gates.readers.soak_records import SoakRecords
from gates.readers.soak_telemetry import SoakTelemetry
from gates.rules.claim import Finding, Run, each, fold
from gates.rules.estimates import percent
from gates.text import Text


def tier_exercised(plan: Plan, run: Run) -> ClaimResult:
    """Return the claim that the external tier served the soak: of the stored prefix tokens asked for, at least the share that a run must recover.

    Both the counters around the load and those of the samples are held against it where they tell. Where the engine was started again, only what
    samples of one and the same process bound is looked at: what it counted between its last sample and its end is known to nobody.

    What the GPU cache served in its place says that the rotation fits into it: the rig's. What neither served, by every source and with all that the
    GPU cache served put to the tier's credit, was lost: the product's, once the store phase is proven complete (DESIGN 4.3). Where a source is
    silent, or they disagree, nothing tells whose it is. Of several engine hosts each must keep the limit; where one fell short by the rig, nothing
    is said about the product.
    """
    limit, fell = plan.validity.external_hits_min, list[bool]()

    def findings(run: Run) -> Iterator[Finding]:
        lost = False
        samples, records = run.pack.samples, run.pack.records
        pair = run.pack.counter_pair("soak", plan.g4.tier)
        if samples is None or samples.hits_known < 2 or records is None:
            return
        around = growth(pair[0].get("metrics"), pair[1].get("metrics"), TIER_HITS) if pair else None
        if len(samples.lives) > 1:  # the counters around the load begin anew with each process
            external, requests = seen_by_one_process(samples, records)
            told = [external]
        else:
            told = [samples.hits_grown] if around is None else [samples.hits_grown, around]
            external, requests = min(told), int(records.good.sum())
        wanted = (requests - _never_stored(run)) * plan.workload.context_tokens
        files = (run.pack.path("telemetry.jsonl"), run.pack.path("counters.jsonl"), run.pack.path("records.jsonl"))
        if wanted <= 0 and len(samples.lives) > 1:
            return  # no process was seen long enough
        local = growth(pair[0].get("metrics"), pair[1].get("metrics"), OWN_HITS) if pair and len(samples.lives) == 1 else None
        if wanted > 0 and around is not None and local is not None and (max(told) + local) / wanted < limit:
            lost = True
        if external <= 0 or wanted <= 0:
            nothing = Text("No prompt token came from the external tier.", "没有提示词元来自外部层。")
            fell.append(lost)
            yield Finding(ClaimStatus.BREACHED, nothing, Decimal(0), run.key, None, files)
            return
        share = external / wanted
        reason = Text(
            "{v} of the stored prefix tokens came from the external tier (at least {l}){h}.", "已存前缀词元中 {v} 由外部层恢复（下限 {l}）{h}。"
        ).fill(v=percent(share, limit), l=percent(limit), h=_from_hbm(local, wanted))
        served_by_hbm = local is not None and (external + local) / wanted >= limit
        status = ClaimStatus.HOLDS if share >= limit else ClaimStatus.BREACHED if served_by_hbm or lost else ClaimStatus.UNKNOWN
        if status is ClaimStatus.BREACHED:
            fell.append(lost)
        change = Text(
            "a soak in which at least {l} of the stored prefix tokens come from the external tier would tell",
            "已存前缀词元中至少 {l} 由外部层恢复的稳定性运行方可判定",
        )
        yield Finding(status, reason, share, run.key, None, files, change=change.fill(l=percent(limit)))

    found = list(each(run.places, findings))
    return fold(plan, "tier_exercised", run.arm, found, fault=Attribution.PRODUCT if fell and all(fell) else Attribution.RIG)


def _from_hbm(local: Decimal | None, wanted: int) -> Text:
    """Return what the GPU cache served, where it is told and more than nothing."""
    if not local:
        return Text("", "")
    return Text(", {v} from the GPU cache", "，{v} 来自 GPU 缓存").fill(v=percent(local / wanted))


def _never_stored(run: Run) -> int:
    """Return how many requests of the sentinel asked a prefix that was never stored: one in each window (docs/evidence-format.md)."""
    return sum(1 for event in run.pack.events if event.get("kind") == "sentinel")


@dataclass(frozen=True)
class Stretch:
    """Samples of one process of the engine, in order, in which the tier's hits were told and never went back."""

    boot_id: str
    mono: Column  # ns
    hits: Column  # tokens so far


def stretches(samples: SoakTelemetry) -> Iterator[Stretch]:
    """Yield the stretches of two samples or more: what a process counted before its first and behind its last sample is known to nobody."""
    known = (samples.hits >= 0) & (samples.life >= 0) & (samples.mono >= 0) & (samples.boot >= 0)
    hits, life, boot, mono = (column[known] for column in (samples.hits, samples.life, samples.boot, samples.mono))
    edges = np.flatnonzero((np.diff(life) != 0) | (np.diff(boot) != 0) | (np.diff(hits) < 0) | (np.diff(mono) < 0)) + 1
    for part in np.split(np.arange(len(hits)), edges):
        if len(part) > 1:
            yield Stretch(samples.boots[int(boot[part[0]])], mono[part], hits[part])


def first_texts(records: SoakRecords, boot_id: str) -> Column:
    """Return when the requests without failure of a boot had their first text (ns), in order."""
    if boot_id not in records.boots:
        return np.zeros(0, dtype=np.int64)
    return np.sort(records.first[records.good & (records.boot == records.boots.index(boot_id))])


def answered(texts: Column, low_ns: int, high_ns: int) -> int:
    """Return how many first texts came after one moment and up to another."""
    return int(np.searchsorted(texts, high_ns, "right") - np.searchsorted(texts, low_ns, "right"))


def seen_by_one_process(samples: SoakTelemetry, records: SoakRecords) -> tuple[Decimal, int]:
    """Return the tokens that the tier served between samples of one process each, and how many requests without failure had their first text then.

    A hit is counted a moment before the text it leads to, so both ends of a stretch shift by the requests in flight, in opposite directions.
    """
    tokens, requests = 0, 0
    for stretch in stretches(samples):
        tokens += int(stretch.hits[-1] - stretch.hits[0])
        requests += answered(first_texts(records, stretch.boot_id), int(stretch.mono[0]), int(stretch.mono[-1]))
    return Decimal(tokens), requests
