"""Is each run of an attempt a pass of its own, in the order of its own clock: no run is a copy of another, nothing lies outside its phase.

What a run measured once cannot be another run's as well. On one boot's clock the runs of an attempt lie one behind the other, each was served by a
process of its own (or by one that was reset for it), and no request of one was sent in the nanosecond of one of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from gates.model import Problem
from gates.readers.run_pack import Pack
from gates.readers.strict import at, count
from gates.rules import cold_reset, foreign_rows
from gates.rules.claim import Run
from gates.text import Text

Span = tuple[int, int]


def problems(runs: Sequence[Run]) -> list[Problem]:
    """Return what shows that runs are not what they say: copies of each other, or rows that lie outside their phase. A soak has rules of its own."""
    passes = [run for run in runs if run.phase == "measure"]
    rules = (foreign_rows.problems, _phases, _requests, _offsets, _counters, _looks)
    found = [problem for run in passes for rule in rules for problem in rule(run)]
    for pair in combinations(sorted(passes, key=_begun), 2):
        found += [*_overlap(*pair), *_same_process(*pair), *_same_moments(*pair)]
    return found


def windows(pack: Pack, phase: str, tier: Any) -> list[Span]:
    """Return (begin, end) in ns of the rows of a phase: those of the tier, else those of the phase as a whole (store, warm-up)."""
    rows = [row for row in pack.phases if row.get("phase") == phase]
    rows = [row for row in rows if row.get("tier") == tier] or [row for row in rows if row.get("tier") is None]
    spans = [(count(row.get("started_ns")), count(row.get("ended_ns"))) for row in rows]
    return [(begun, ended) for begun, ended in spans if begun is not None and ended is not None]


def _phases(run: Run) -> Iterator[Problem]:
    """Yield where a phase began before the one above it in the journal had ended: a job does one thing at a time."""
    last, above = 0, ""
    for row in run.pack.phases:
        begun, ended = count(row.get("started_ns")), count(row.get("ended_ns"))
        if begun is None or ended is None:
            continue  # those that the step asks for are told by completeness
        name = _name(str(row.get("phase")), row.get("tier"))
        if begun < last:
            text = Text("{p}: the phase {n} begins before {a} has ended.", "{p}：阶段“{n}”在“{a}”结束前开始。")
            yield _problem(run, "order", "phases.jsonl", text.fill(p=run.pack.path("phases.jsonl"), n=name, a=above))
        last, above = max(last, ended), name


def _requests(run: Run) -> Iterator[Problem]:
    """Yield, once for each phase, how many of its requests were not sent and ended within it."""
    outside: dict[str, int] = {}
    spans: dict[tuple[str, int | None], list[Span]] = {}
    for r in run.pack.requests:
        key = (r.phase, r.tier)
        if key not in spans:
            spans[key] = windows(run.pack, *key)
        if not any(begun <= r.sent_ns and r.end_ns <= ended for begun, ended in spans[key]):
            name = _name(*key)
            outside[name] = outside.get(name, 0) + 1
    for name, n in outside.items():
        text = Text("{p}: {k} requests of the phase {n} lie outside its time.", "{p}：阶段“{n}”有 {k} 个请求不在该阶段的时间内。")
        yield _problem(run, "order", "records.jsonl", text.fill(p=run.pack.path("records.jsonl"), k=n, n=name))


def _offsets(run: Run) -> Iterator[Problem]:
    """Yield that measured requests lack the offsets of their chunks, which the job was told to record: they are what a TTFT is held against."""
    if at(run.pack.job, "phases", "chunk_offsets") is not True:
        return
    bare = [r.seq for r in run.pack.of("measure") if r.failure is None and not r.offsets]
    if bare:
        text = Text(
            "{p}: {n} measured requests lack the offsets of their chunks, which the job was told to record (the first has seq {s}).",
            "{p}：{n} 个测量请求缺少作业要求记录的分块偏移（首条 seq 为 {s}）。",
        )
        yield _problem(run, "offsets", "records.jsonl", text.fill(p=run.pack.path("records.jsonl"), n=len(bare), s=bare[0]))


def _counters(run: Run) -> Iterator[Problem]:
    for row in run.pack.counters:
        phase, tier, when = str(row.get("phase")), row.get("tier"), str(row.get("when"))
        if when in ("before", "after") and not _on_its_side(run.pack, phase, tier, when, count(row.get("mono_ns"))):
            yield _misplaced(run, "counters.jsonl", row, _name(phase, tier))


def _looks(run: Run) -> Iterator[Problem]:
    """Yield looks at the page cache that were not taken where they say, as far as a row tells its moment."""
    for row in run.pack.coldness:
        tier, (when, _, what) = row.get("tier"), str(row.get("when")).partition("_")
        moment, phase = count(row.get("mono_ns")), "measure" if what == "tier" else "cool"
        if row.get("mono_ns") is not None and when in ("before", "after") and not _on_its_side(run.pack, phase, tier, when, moment):
            yield _misplaced(run, "coldness.jsonl", row, _name(phase, tier))


def _on_its_side(pack: Pack, phase: str, tier: Any, when: str, moment: int | None) -> bool:
    """Return whether a moment lies within a phase, and before the first of its requests, or behind the last one."""
    if moment is None or not any(begun <= moment <= ended for begun, ended in windows(pack, phase, tier)):
        return False
    requests = pack.of(phase, tier if isinstance(tier, int) else None)
    if not requests or phase == "cool":
        return True
    return moment <= min(r.sent_ns for r in requests) if when == "before" else moment >= max(r.end_ns for r in requests)


def _misplaced(run: Run, file: str, row: dict[str, Any], name: str) -> Problem:
    text = Text(
        "{p}: row {n} ({w}) was not taken on that side of the requests of {f}, by the run's own clock.",
        "{p}：按该轮自身时钟，第 {n} 行（{w}）不在 {f} 请求的相应一侧。",
    )
    return _problem(run, "order", file, text.fill(p=run.pack.path(file), n=row.get("seq"), w=row.get("when"), f=name))


def _begun(run: Run) -> int:
    span = _span(run)
    return span[0] if span else 0


def _span(run: Run) -> Span | None:
    """Return from when to when a run lasted on its boot's clock, by everything that it brought; None: nothing tells."""
    pack = run.pack
    begun = [*(count(row.get("started_ns")) for row in pack.phases), *(r.sent_ns for r in pack.requests)]
    ended = [*(count(row.get("ended_ns")) for row in pack.phases), *(r.end_ns for r in pack.requests), count(pack.exit.get("ended_ns"))]
    first, last = [t for t in begun if t is not None], [t for t in ended if t is not None]
    return (min(first), max(last)) if first and last else None


def boots(pack: Pack) -> set[str]:
    """Return the boots of the load generator that a run tells."""
    told = (*(row.get("boot_id") for row in pack.phases), pack.exit.get("boot_id"))
    return {r.boot_id for r in pack.requests} | {str(boot) for boot in told if boot is not None}


def _overlap(a: Run, b: Run) -> Iterator[Problem]:
    mine, theirs = _span(a), _span(b)
    if mine and theirs and boots(a.pack) & boots(b.pack) and theirs[0] < mine[1]:
        text = Text(
            "{a} and {b} overlap on the clock of one boot; runs follow each other, so one of them is not what it says.",
            "{a} 与 {b} 在同一次开机的时钟上重叠；各轮依次进行，其中必有一轮与所述不符。",
        )
        yield _problem(b, "overlap", "phases.jsonl", text.fill(a=a.shown, b=b.shown))


def _processes(run: Run) -> set[tuple[str, int, int]]:
    """Return the engine processes (boot, pid, start in ticks) that a run was seen on."""
    found, own = set(), next(iter(sorted(boots(run.pack))), "")
    for row in run.pack.coldness:
        pid, ticks = count(at(row, "engine", "pid")), count(at(row, "engine", "start_ticks"))
        if pid is not None and ticks is not None:
            found.add((str(at(row, "engine", "boot_id") or own), pid, ticks))
    return found


def _same_process(a: Run, b: Run) -> Iterator[Problem]:
    """Yield where one process served two runs, though the later one was neither reset nor says itself that it was not restarted."""
    cooled = next((row for row in b.pack.coldness if row.get("when") == "after_cool"), None)
    before, now = (tuple(count(at(cooled, key, k)) for k in ("pid", "start_ticks")) for key in ("engine_before", "engine"))
    if cold_reset.asked(b) or (None not in now and before == now):  # the claim engine_restarted_cold says what that means
        return
    for _, pid, _ in sorted(_processes(a) & _processes(b)):
        text = Text(
            "{a} and {b} were served by one process of the engine ({n}), though it was started anew for each.",
            "{a} 与 {b} 由同一引擎进程（{n}）服务，而每轮之前引擎均应重启。",
        )
        yield _problem(b, "process", "coldness.jsonl", text.fill(a=a.shown, b=b.shown, n=pid))


def _same_moments(a: Run, b: Run) -> Iterator[Problem]:
    mine, theirs = ({r.sent_ns for r in run.pack.of("measure")} for run in (a, b))
    if n := len(mine & theirs):
        text = Text(
            "{n} requests of {b} were sent in the same nanosecond as one of {a}: one run's requests stand in another's journal.",
            "{b} 有 {n} 个请求与 {a} 的请求发送时刻（纳秒）相同：一轮的请求出现在另一轮的日志中。",
        )
        yield _problem(b, "copied", "records.jsonl", text.fill(n=n, a=a.shown, b=b.shown))


def _name(phase: str, tier: Any) -> str:
    return f"{phase} c{tier}" if tier else phase


def _problem(run: Run, code: str, file: str, text: Text) -> Problem:
    return Problem(code, text, run.pack.path(file))
