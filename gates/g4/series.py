"""The soak as a series: windows of the stretch that counts, and what each amounts to. Exact medians from integer nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from gates.bundle import Bundle
from gates.g4.timeline import Injection, Timeline
from gates.plan import Plan
from gates.readers.journal import Column
from gates.readers.places import at_host, hosts_of
from gates.readers.run_pack import Pack
from gates.readers.soak_records import SoakRecords, middle
from gates.readers.soak_telemetry import SoakTelemetry
from gates.rules.estimates import NS


@dataclass(frozen=True)
class Slice:
    """One window: its requests, and what they amount to. The percentiles of TTFT (ns) are None where there are too few requests for them."""

    index: int
    start_ns: int
    requests: int
    errors: int
    ttft_p50: Fraction | None
    ttft_p99: Fraction | None  # nearest rank
    output_per_s: Fraction  # per second of the clock
    few_p50: Fraction | None = None  # the same two of however few there are; None where there is none
    few_p99: Fraction | None = None


@dataclass(frozen=True)
class Soak:
    """What the soak's checks are made from."""

    plan: Plan
    bundle: Bundle
    pack: Pack
    line: Timeline
    records: SoakRecords  # of all boots
    telemetry: SoakTelemetry  # of all boots
    slices: tuple[Slice, ...]  # of the stretch that counts
    injections: tuple[Injection, ...]
    host: str | None = None  # the engine host that this is a view of, where several share the load; None: all of it

    @cached_property
    def places(self) -> tuple[Soak, ...]:
        """Return the soak as each of its engine hosts shows it, where several share the load: its requests and samples, by the common clock."""
        names = hosts_of(self.pack) if self.host is None else ()
        return tuple(self._at(name) for name in names) if len(names) > 1 else (self,)

    def _at(self, host: str) -> Soak:
        pack = at_host(self.pack, host)
        if pack.records is None or pack.samples is None:
            raise ValueError("a soak has requests and samples")
        own = slices(self.plan, pack.records, self.line, window_requests(self.plan, len(hosts_of(pack))))
        return replace(self, pack=pack, records=pack.records, telemetry=pack.samples, slices=own, host=host)

    @property
    def place(self) -> int:
        """Return the place of the engine host among those that share the load."""
        return 0 if self.host is None else hosts_of(self.pack).index(self.host)

    @property
    def window_requests(self) -> int:
        """Return how many requests a window needs to say something."""
        return window_requests(self.plan, 1 if self.host is None else len(hosts_of(self.pack)))

    def injected(self, boot_id: str, from_ns: int, to_ns: int | None = None) -> bool:
        """Return whether a labelled injection meets a moment, or a stretch of time."""
        return any(i.meets(boot_id, from_ns, from_ns if to_ns is None else to_ns) for i in self.injections)

    def outside(self) -> Any:
        """Return which requests have no moment in common with a labelled injection or an excused outage (a mask over all requests)."""
        mask = np.ones(len(self.records), dtype=bool)
        marks = [*((i.boot_id, i.from_ns, i.to_ns) for i in self.injections), *self.line.excused]
        for boot, low, high in marks:
            if boot in self.records.boots:
                inside = (self.records.sent <= high) & (self.records.end >= low)
                mask &= ~(inside & (self.records.boot == self.records.boots.index(boot)))
        return mask

    def proven(self) -> Any:
        """Return which requests were sent in the stretch that counts, none of them while it is shorter than the plan's duration (a mask)."""
        line, records = self.line, self.records
        if line.plan_seconds < self.plan.g4.duration.base or line.boot_id not in records.boots:
            return np.zeros(len(records), dtype=bool)
        return (records.boot == records.boots.index(line.boot_id)) & (records.sent >= line.start_ns)

    def in_boot(self, boot_id: str) -> Any:
        """Return which samples are of a boot (a mask over telemetry)."""
        t = self.telemetry
        return t.boot == t.boots.index(boot_id) if boot_id in t.boots else np.zeros(len(t), dtype=bool)

    def counted(self) -> Any:
        """Return which samples are of the stretch that counts."""
        return self.in_boot(self.line.boot_id) & (self.telemetry.mono >= self.line.start_ns)

    @property
    def width_ns(self) -> int:
        """Return the width of a window in nanoseconds of the clock."""
        return int(self.plan.scaled_seconds(self.plan.g4.window.base) * NS)

    def files(self, *names: str) -> tuple[str, ...]:
        """Return bundle paths of the pack's files."""
        return tuple(self.pack.path(n) for n in names)


def window_requests(plan: Plan, hosts: int) -> int:
    """Return how many requests a window of one of so many hosts needs: the plan's number is of the load that they share."""
    return -(-plan.g4.window_requests_min // hosts)


def slices(plan: Plan, records: SoakRecords, line: Timeline, least: int | None = None) -> tuple[Slice, ...]:
    """Return the whole windows of the stretch that counts, in order; requests count in the window in which they ended.

    `least`: how many requests a percentile needs, by default the plan's number.
    """
    least = plan.g4.window_requests_min if least is None else least
    width = int(plan.scaled_seconds(plan.g4.window.base) * NS)
    total = (line.end_ns - line.start_ns) // width if width else 0
    if not total or line.boot_id not in records.boots:
        return ()
    bins = (records.end - line.start_ns) // width
    mine = (records.boot == records.boots.index(line.boot_id)) & (records.end >= line.start_ns) & (bins < total)
    kept, places = records.where(mine), bins[mine]
    order = np.argsort(places, kind="stable")
    edges = np.searchsorted(places[order], np.arange(total + 1))
    out = []
    for index in range(int(total)):
        rows = order[edges[index] : edges[index + 1]]
        good = rows[kept.good[rows]]
        every = _percentiles(kept.first[good] - kept.sent[good] if len(good) else None)
        ttft = every if len(good) >= least else (None, None)
        tokens = kept.tokens[good]
        rate = Fraction(int(tokens[tokens > 0].sum()) * NS, width)
        out.append(Slice(index, line.start_ns + index * width, len(rows), len(rows) - len(good), *ttft, rate, *every))
    return tuple(out)


def _percentiles(ttft: Column | None) -> tuple[Fraction | None, Fraction | None]:
    """Return median and 99th percentile (nearest rank) of a window's TTFT (ns)."""
    if ttft is None:
        return None, None
    rank = -(-99 * len(ttft) // 100) - 1
    return middle(ttft), Fraction(int(np.partition(ttft, rank)[rank]))
