"""The soak's clock (DESIGN 4.12): the boots of the host, what broke the run of the load, whose causes are approved, and from when time counts.

Boot ids and monotonic time decide, never wall clocks. An hour on the timeline is an hour of load: what passed while the host was off no
clock tells.

Of several hosts a boot is a stretch in which none rebooted (gates.readers.boots). When an engine's host goes down, the driver goes on asking for a
while: a stretch ends with the last sample of that host, and what failed behind it, for no longer than the plan's gap, belongs to the reboot. All
engine hosts share one clock: a silence, or a counter that went back, on any of them breaks the run, by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from gates.plan import Plan
from gates.readers.boots import driver_of, engine_of, engines_of, name_of
from gates.readers.soak_records import SoakRecords, middle
from gates.readers.soak_telemetry import SoakTelemetry
from gates.readers.strict import at, count
from gates.rules.estimates import NS
from gates.text import Text

_HANG = 10  # so many times a request's median time without any answer is no burst
PARTIES = {"vendor": Text("the vendor", "供方"), "customer": Text("the customer", "需方")}
KINDS = {
    "reboot": Text("host reboot", "主机重启"),
    "load_gap": Text("no request under way", "无在途请求"),
    "telemetry_gap": Text("no telemetry", "无遥测数据"),
    "counter_reset": Text("counter reset", "计数器复位"),
    "outage": Text("no request succeeded", "无请求成功"),
}
APPROVED = Text(  # what would change it where something broke the run
    "a cause of every such event that both parties approve, and the whole duration behind the last of them, would change it",
    "每个此类事件的原因经双方确认，且最后一个事件之后的时长满足要求，方可改变",
)


@dataclass(frozen=True)
class Injection:
    """A labelled disturbance, agreed beforehand: judged by its own check and kept out of the others."""

    label: str
    from_ns: int
    to_ns: int
    boot_id: str

    def meets(self, boot_id: Any, from_ns: int, to_ns: int) -> bool:
        """Return whether a stretch of time has a moment in common with it."""
        return bool(boot_id == self.boot_id and self.from_ns <= to_ns and self.to_ns >= from_ns)


@dataclass(frozen=True)
class Cause:
    """What people recorded as the cause of one break, and whether both parties approved it (evidence/inputs.json)."""

    kind: str
    text: str
    approved: bool
    missing: tuple[str, ...]


Mark = tuple[str, int, int]  # boot, from and to (ns)


@dataclass(frozen=True)
class Break:
    """Something that broke the run of the load. `event` names it for people and approvals; times are of boot `boot` (after a reboot: the new one).

    Without a cause that both parties approved nothing is concluded. What failed in an outage counts as the product's until one is.
    """

    event: str
    kind: str
    boot: str
    from_ns: int
    to_ns: int
    hour: Decimal
    what: Text
    cause: Cause | None = None
    tail: Mark | None = None  # of a reboot of the engine's host: what the driver asked of it when it was gone
    host: str | None = None  # of several engine hosts the one whose telemetry it is of

    @property
    def approved(self) -> bool:
        """Return whether both parties approved its cause."""
        return self.cause is not None and self.cause.approved

    @property
    def lacks(self) -> Text:
        """Return the sentence that says what is missing before the clock may restart here."""
        if self.cause is None:
            return Text(
                f"{self.what.en}: no cause is recorded; when one is, and both parties approve it, the soak clock restarts there.",
                f"{self.what.zh}：尚未登记原因；登记并经双方确认后，稳定性计时从此处重新开始。",
            )
        names = [PARTIES[p] for p in self.cause.missing if p in PARTIES] or list(PARTIES.values())
        en, zh = " and ".join(n.en for n in names), "和".join(n.zh for n in names)
        return Text(
            f"{self.what.en}: its cause ({self.cause.text}) lacks the approval of {en}.",
            f"{self.what.zh}：其原因（{self.cause.text}）尚缺{zh}的确认。",
        )

    def json(self) -> dict[str, Any]:
        """Return the form that stands among the figures of verdict.json."""
        cause = None if self.cause is None else {"kind": self.cause.kind, "text": self.cause.text, "approved": self.cause.approved}
        return {
            "event": self.event,
            "kind": self.kind,
            "boot_id": self.boot,
            "from_ns": self.from_ns,
            "to_ns": self.to_ns,
            "hour": self.hour,
            "title": KINDS[self.kind].json(),
            "what": self.what.json(),
            "cause": cause,
        }


@dataclass(frozen=True)
class Boot:
    """One boot of the host as far as it was under load."""

    id: str
    start_ns: int
    end_ns: int
    offset: Decimal  # seconds of the plan that were under load in the boots before it
    until_ns: int = 0  # when its last request ended: later than `end_ns` where the engine's host was gone by then


@dataclass(frozen=True)
class Timeline:
    """The boots in order, and what broke the load. The clock is that of the last boot, from the last restart on."""

    boots: tuple[Boot, ...]
    breaks: tuple[Break, ...]
    start_ns: int  # of the stretch that counts
    scale: Decimal  # seconds of the plan for one second of the clock

    @property
    def last(self) -> Boot:
        """Return the boot whose clock counts."""
        return self.boots[-1]

    @property
    def boot_id(self) -> str:
        """Return its id."""
        return self.last.id

    @property
    def end_ns(self) -> int:
        """Return the end of the stretch that counts."""
        return self.last.end_ns

    @property
    def plan_seconds(self) -> Decimal:
        """Return how many seconds of the plan the counted stretch was under load."""
        return Decimal(self.end_ns - self.start_ns) / NS * self.scale

    def hour(self, ns: int, boot_id: str | None = None) -> Decimal:
        """Return a moment as hours of load since the beginning of the soak."""
        boot = next((b for b in self.boots if b.id == boot_id), self.last)
        return (boot.offset + Decimal(ns - boot.start_ns) / NS * self.scale) / 3600

    @property
    def open(self) -> tuple[Break, ...]:
        """Return the breaks whose cause both parties have not approved."""
        return tuple(b for b in self.breaks if not b.approved)

    @property
    def excused(self) -> tuple[Mark, ...]:
        """Return the outages, and the ends of an engine's host, whose cause both parties approved: what failed in them was the site's."""
        outages = [(b.boot, b.from_ns, b.to_ns) for b in self.breaks if b.kind == "outage" and b.approved]
        return (*outages, *(b.tail for b in self.breaks if b.tail and b.approved))


def injections(inputs: Mapping[str, Any]) -> tuple[Injection, ...] | None:
    """Return the labelled injections, or None when one of them is not well formed."""
    rows, out = inputs.get("injections"), []
    if rows is not None and not isinstance(rows, list):
        return None
    for row in rows or ():
        low, high, boot, label = count(at(row, "from_ns")), count(at(row, "to_ns")), at(row, "boot_id"), at(row, "label")
        if low is None or high is None or high < low or not isinstance(boot, str) or not isinstance(label, str):
            return None
        out.append(Injection(label, low, high, boot))
    return tuple(out)


def causes(inputs: Mapping[str, Any]) -> dict[str, Cause]:
    """Return the recorded causes by event. Only what is well formed and says `approved: true` is approved."""
    rows, out = inputs.get("rig_causes"), {}
    for row in rows if isinstance(rows, list) else ():
        event, text, missing = at(row, "event"), at(row, "text"), at(row, "missing")
        if isinstance(event, str) and isinstance(text, str) and event not in out:
            lacks = tuple(str(p) for p in missing) if isinstance(missing, list) else tuple(PARTIES)  # who is missing must be told, if nobody
            out[event] = Cause(str(at(row, "kind") or ""), text, at(row, "approved") is True and not lacks, lacks)
    return out


def boots_in_order(records: SoakRecords, telemetry: SoakTelemetry) -> tuple[str, ...]:
    """Return every boot that any journal names, in order: that of the requests, with boots that only samples saw put behind their forerunner."""
    out = list(records.boots)
    for n, boot in enumerate(telemetry.boots):
        if boot not in out:
            out.insert(out.index(telemetry.boots[n - 1]) + 1 if n else 0, boot)
    return tuple(out)


def timeline(
    plan: Plan,
    records: SoakRecords,
    telemetry: SoakTelemetry,
    inputs: Mapping[str, Any],
    labels: Sequence[Injection],
    hosts: Sequence[str] = (),
) -> Timeline:
    """Return the soak's timeline. There must be at least one request. `hosts` are the engine hosts, where several share the load.

    The clock restarts at every reboot, and at any other break whose cause both parties approved.
    """
    watched: list[_Watched] = [(name, telemetry.of(name)) for name in hosts] if len(hosts) > 1 else [(None, telemetry)]
    scale, boots, offset = plan.rig.time_scale, [], Decimal(0)
    for boot in boots_in_order(records, telemetry):
        mine = records.boot == records.boots.index(boot) if boot in records.boots else np.zeros(len(records), dtype=bool)
        if not mine.any():
            boots.append(Boot(boot, 0, 0, offset))
            continue
        begun, until = int(records.sent[mine].min()), int(records.end[mine].max())
        found = Boot(boot, begun, until, offset, until)
        offset += Decimal(found.end_ns - found.start_ns) / NS * scale
        boots.append(found)
    gap = int(plan.scaled_seconds(plan.g4.gap_max.base) * NS)
    boots = [_seen(boot, after, watched, gap) for boot, after in zip(boots, (*boots[1:], None), strict=True)]
    known = causes(inputs)
    bare = Timeline(tuple(boots), (), boots[-1].start_ns, scale)
    found_breaks = []
    for event, kind, boot, low, high, words, host in _breaks(plan, bare, records, watched, labels):
        number = [b.id for b in boots].index(boot)
        at_boot = boots[number]
        tail = _tail(boots[number - 1]) if kind == "reboot" else None
        hour = at_boot.offset / 3600 if kind == "reboot" else bare.hour(low, boot)
        hour = hour.quantize(Decimal("0.01"))
        what = Text("Hour {h}: ", "第 {h} 小时：").fill(h=f"{hour:f}")
        found_breaks.append(Break(event, kind, boot, low, high, hour, Text(what.en + words.en, what.zh + words.zh), known.get(event), tail, host))
    start = max([bare.last.start_ns, *(b.to_ns for b in found_breaks if b.boot == bare.boot_id and b.kind != "reboot" and b.approved)])
    return Timeline(tuple(boots), tuple(sorted(found_breaks, key=lambda b: (b.hour, b.event))), start, scale)


_Watched = tuple[str | None, SoakTelemetry]  # an engine host (None: the only one) and its samples


def _seen(boot: Boot, after: Boot | None, watched: Sequence[_Watched], gap_ns: int) -> Boot:
    """Return a boot up to the last sample of an engine host elsewhere whose reboot ended it.

    Where more time than the plan's gap lies behind that sample, that is an event of its own.
    """
    if after is None:
        return boot
    gone = [telemetry for place, (_, telemetry) in enumerate(watched) if engine_of(boot.id, place) != engine_of(after.id, place)]
    ends = [int(stamps[-1]) for telemetry in gone if len(stamps := stamps_of(telemetry, boot.id, boot.start_ns, boot.end_ns))]
    return replace(boot, end_ns=min(ends)) if ends and boot.end_ns - min(ends) <= gap_ns else boot


def _tail(boot: Boot) -> Mark | None:
    return (boot.id, boot.end_ns, boot.until_ns) if boot.until_ns > boot.end_ns else None


def _reboot(before: Boot, boot: Boot, scale: Decimal, names: Sequence[str | None]) -> Text:
    """Return what a reboot was: of which host, where there are several, and for how long there was no load, where the driver's clock went on."""
    if not engines_of(boot.id) and not engines_of(before.id):
        return Text("the host booted anew (boot {b})", "主机重新启动（开机标识 {b}）").fill(b=boot.id)
    gone = [name for place, name in enumerate(names) if engine_of(boot.id, place) != engine_of(before.id, place)]
    told = [name for name in gone if name is not None]
    who = Text("the engine hosts {h}", "引擎主机 {h} ").fill(h=", ".join(told)) if told else Text("the engine's host", "引擎主机")
    if driver_of(before.id) != driver_of(boot.id):
        one = Text("the load generator booted anew (boot {b})", "负载机重新启动（开机标识 {b}）")
        two = Text("the load generator and {h} booted anew (boots {b})", "负载机与{h}重新启动（开机标识 {b}）")
        return (two if gone else one).fill(b=boot.id, h=who)
    text = Text("{h} booted anew, {s} s passed until the load went on", "{h}重新启动，{s} s 后恢复加载")
    return text.fill(h=who, s=_seconds(max(0, boot.start_ns - before.end_ns), scale))


_Found = tuple[str, str, str, int, int, Text, str | None]


def _breaks(plan: Plan, line: Timeline, records: SoakRecords, watched: Sequence[_Watched], labels: Sequence[Injection]) -> Iterator[_Found]:
    """Yield every break that no labelled injection covers: of one that lasts, no more than the plan's gap may lie outside the injections."""
    gap = int(plan.scaled_seconds(plan.g4.gap_max.base) * NS)
    for before, boot in zip((None, *line.boots), line.boots, strict=False):
        if before is not None and not any(i.meets(before.id, before.end_ns, before.end_ns + gap) for i in labels):
            words = _reboot(before, boot, line.scale, [name for name, _ in watched])
            yield f"boot:{name_of(boot.id)}", "reboot", boot.id, boot.start_ns, boot.start_ns, words, None
        gaps = tuple(_load_gaps(records, boot, gap, line.scale))
        found: list[tuple[str | None, _Gap]] = [(None, row) for row in (*gaps, *_outages(records, boot, gap, line.scale, gaps))]
        for name, telemetry in watched:
            found += [(name, row) for row in (*_silences(telemetry, boot, gap, line.scale), *_resets(telemetry, boot))]
        for host, (kind, low, high, text) in found:
            touched = [i for i in labels if i.meets(boot.id, low, high)]
            if not touched or (kind != "counter_reset" and _outside(touched, low, high) > gap):
                words = text if host is None else Text("{h}: {t}", "{h}：{t}").fill(h=host, t=text)
                yield ":".join([kind, name_of(boot.id), str(low), *([host] if host else [])]), kind, boot.id, low, high, words, host


def _outside(labels: Sequence[Injection], low: int, high: int) -> int:
    """Return the longest part of a stretch (ns) that no labelled injection covers: what goes on behind one is no part of it."""
    longest, at_ns = 0, low
    for label in sorted(labels, key=lambda i: i.from_ns):
        longest, at_ns = max(longest, label.from_ns - at_ns), max(at_ns, label.to_ns)
    return max(longest, high - at_ns)


_Gap = tuple[str, int, int, Text]


def _load_gaps(records: SoakRecords, boot: Boot, most: int, scale: Decimal) -> Iterator[_Gap]:
    """Yield the times in which no request was under way for longer than the largest gap that the plan allows."""
    if boot.id not in records.boots:
        return
    mine = records.boot == records.boots.index(boot.id)
    sent, end = records.sent[mine], records.end[mine]
    order = np.argsort(sent, kind="stable")
    until = np.maximum.accumulate(end[order])
    for n in np.flatnonzero(sent[order][1:] - until[:-1] > most):
        low, high = int(until[n]), min(int(sent[order][n + 1]), boot.end_ns)
        if high - low <= most:
            continue
        text = Text("no request was under way for {s} s", "{s} s 内没有在途请求").fill(s=_seconds(high - low, scale))
        yield "load_gap", low, high, text


def _silences(telemetry: SoakTelemetry, boot: Boot, most: int, scale: Decimal) -> Iterator[_Gap]:
    """Yield the times under load without any sample for longer than the plan allows; both ends of the boot's load count."""
    if boot.end_ns <= boot.start_ns:
        return
    stamps = stamps_of(telemetry, boot.id, boot.start_ns, boot.end_ns)
    edges = np.concatenate([[boot.start_ns], stamps, [boot.end_ns]])
    for n in np.flatnonzero(np.diff(edges) > most):
        low, high = int(edges[n]), int(edges[n + 1])
        yield "telemetry_gap", low, high, Text("no telemetry for {s} s", "{s} s 内没有遥测数据").fill(s=_seconds(high - low, scale))


def stamps_of(telemetry: SoakTelemetry, boot_id: str, low: int, high: int) -> Any:
    """Return the times of a boot's samples within two moments, in order."""
    mine = telemetry.boot == telemetry.boots.index(boot_id) if boot_id in telemetry.boots else np.zeros(len(telemetry), dtype=bool)
    stamps = telemetry.mono[mine]
    return np.sort(stamps[(stamps >= low) & (stamps <= high)])


def _resets(telemetry: SoakTelemetry, boot: Boot) -> Iterator[_Gap]:
    """Yield where a counter went back within one boot: what it counted before is not known to be all."""
    if boot.id not in telemetry.boots:
        return
    mine = telemetry.boot == telemetry.boots.index(boot.id)
    mono = telemetry.mono[mine]
    seen: dict[int, list[str]] = {}
    low_of: dict[int, int] = {}
    for name, values in telemetry.counters.items():
        mine_values = values[mine]
        known = (mine_values >= 0) & (mono >= 0)
        kept, when = mine_values[known], mono[known]
        for n in np.flatnonzero(np.diff(kept) < 0):
            seen.setdefault(int(when[n + 1]), []).append(name)
            low_of[int(when[n + 1])] = int(when[n])
    for high, names in sorted(seen.items()):
        text = Text("{n} went back within one boot", "{n} 在同一次开机内回退").fill(n=", ".join(sorted(names)))
        yield "counter_reset", low_of[high], high, text


def _outages(records: SoakRecords, boot: Boot, most: int, scale: Decimal, gaps: Sequence[_Gap]) -> Iterator[_Gap]:
    """Yield the times longer than `most` in which no request succeeded: some failed, or all hung.

    A closed loop that hangs sends nothing, so an outage may show in a handful of requests, or in none that failed. A hang must last several
    times as long as a request takes, since answers may come in bursts; where nothing was under way it is a gap of the load (`gaps`).
    """
    if boot.id not in records.boots:
        return
    mine = records.boot == records.boots.index(boot.id)
    sent, good, end = records.sent[mine], records.good[mine], records.end[mine]
    stalled = max(most, int(_HANG * middle((end - sent)[good]))) if good.any() else most
    edges = np.concatenate([[boot.start_ns], np.sort(end[good & (end <= boot.end_ns)]), [boot.end_ns]])
    bad = np.sort(end[~good])
    for n in np.flatnonzero(np.diff(edges) > most):
        low, high = int(edges[n]), int(edges[n + 1])
        failed = int(np.searchsorted(bad, high, "right") - np.searchsorted(bad, low, "right"))
        if failed or (high - low > stalled and not any(a < high and b > low for _, a, b, _ in gaps)):
            text = Text("no request succeeded for {s} s ({n} failed)", "{s} s 内没有成功的请求（{n} 个失败）").fill(
                s=_seconds(high - low, scale), n=failed
            )
            yield "outage", low, high, text


def _seconds(ns: int, scale: Decimal) -> str:
    return f"{Decimal(ns) / NS * scale:.0f}"
