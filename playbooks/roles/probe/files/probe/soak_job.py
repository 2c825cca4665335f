"""A job of kind `soak`: a closed loop at one concurrency for a set time.

Stored prefixes rotate, so that each is used again as late as possible and the tier, not a cache above it, has to serve. A sentinel asks the
same few prompts now and then (probe.sentinel), and planned disturbances are carried out with their labels (probe.injections). Several engine hosts
share the load: each rotates its own prefixes at its own pace, has a sentinel of its own, and is watched by itself.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any, Callable, Dict, Iterator, List, Optional

from probe import clock, preflight
from probe.errors import Ended, ProbeError
from probe.injections import Injections, worst
from probe.job_main import Job
from probe.prompts import Shot
from probe.sentinel import Sentinel
from probe.session import Session, tier_facts
from probe.shares import Apart, Part
from probe.telemetry import Telemetry

LABEL = "soak"
CACHED_BYTES = 256 << 20  # prefixes are kept as text up to this much, else made again when needed
SPARE_NS = 1_000_000_000  # a request is sent a moment after it is given to the loop: a soak must never end a hair before its time


def run_soak(job: Job, hosts: List[Any]) -> None:
    """Store the rotating prefixes, cool, warm up, and keep the load on the engines of these hosts (probe.engine_host)."""
    session = Session(job, hosts)
    engines, soak = session.engines, job.spec["soak"]
    session.begin()
    count, tier = int(soak["rotate_prefixes"]), int(soak["tier"])
    given = (soak["sentinel"], session.prompts, job.name, tier, count, _say_on(job)) if soak.get("sentinel") else None
    sentinels = [Sentinel(*given, engines.part(engine)) for engine in engines] if given else []
    wanted = [(LABEL, None, n) for n in range(count)] + [one for sentinel in sentinels for one in sentinel.stored()]
    done = job.earlier.phases  # after a reboot of a host: what was stored is on the medium, and nothing is left of what was cached
    stored, seconds = 0 if "store" in done else len(wanted), float(soak["seconds"]) + SPARE_NS / 1e9
    room = preflight.before_job(job.folder, job.spec, stored + sum(one.windows(seconds) for one in sentinels), engines.media)
    engines.each(lambda engine, _: engine.host.require_counters(lacking_array_is_fine=True))
    if session.phases.get("store") and "store" not in done:
        session.store(wanted)
    if session.phases.get("cool") and "cool" not in done:
        session.cool()
    else:
        engines.ensure()
    session.warm_up()
    facts: List[Dict[str, Any]] = [tier_facts(session, tier, itertools.islice(rotation(session, 1, count), count))]
    session.describe(facts)
    for engine in engines:
        part = engines.part(engine)
        own = dict(job.spec, engine=engine.spec)
        preflight.require_larger_than_caches(own, engine.instances()[0], part.of(count), part.name if part.places > 1 else None)
    engines.each(lambda engine, _: engine.host.require_counters())
    _soak(session, count, sentinels, room)
    session.describe(facts)
    session.client()


def _say_on(job: Job) -> Callable[[str, Dict[str, Any]], None]:
    return lambda kind, detail: job.journals.put("events.jsonl", {"kind": kind, "detail": detail})


def _soak(session: Session, count: int, sentinels: List[Sentinel], room: List[Dict[str, Any]]) -> None:
    soak, job, engines = session.spec["soak"], session.job, session.engines
    seconds, tier = float(soak["seconds"]), int(soak["tier"])
    if job.earlier.boots:
        job.journals.put("events.jsonl", {"kind": "host_rebooted", "detail": {"boots_before": job.earlier.boots}})
    _undo(session)
    cap = soak.get("request_cap")
    spacing = int(seconds * 1e9 / int(cap)) if cap else 0
    session.ports("before")
    with job.phase("soak", tier) as row:
        session.residency("before_tier", tier)
        session.counters("before", "soak", tier)
        job.start_deadline(seconds)
        if sentinels:
            job.journals.watch("records.jsonl", _shown_to(sentinels))
        watching = [Telemetry(job, engine, engines.part(engine)) for engine in engines]
        with ExitStack() as stack:
            for one in watching:
                stack.enter_context(one)
            stack.enter_context(Injections(job, engines))
            load_ns, of_each = int(seconds * 1e9) + SPARE_NS, [*sentinels] or [None for _ in engines]
            shots = Apart(rotation(session, tier, count, load_ns, one, engines.part(engine)) for engine, one in zip(engines, of_each))
            session.send(shots, tier, measured=True, offsets=bool(session.phases.get("chunk_offsets")), keep=False, backoff=True, spacing_ns=spacing)
        for sentinel in sentinels:
            sentinel.finish()
        row["detail"] = {"seconds": seconds, "requests": job.progress["done"], "rotate_prefixes": count, "spacing_ns": spacing}
        row["detail"].update(room=room, journal_bytes=job.journals.used, deadline_ns=job.deadline_ns)
        try:
            engines.each(lambda engine, sleep: engine.wait_healthy(sleep, 60))
            session.counters("after", "soak", tier)
        except Ended:
            raise
        except ProbeError as error:  # the load is on record; an engine that is gone at the end must not take it away
            row["ok"] = False
            row["detail"]["engine_problem"] = str(error)
        session.residency("after_tier", tier)
        for engine, watch in zip(engines, watching):
            if watch.problem:
                row["ok"] = False
                where = "%s: " % engine.name if len(engines) > 1 else ""
                row["detail"]["telemetry_problem"] = "%s%s: %s" % (where, type(watch.problem).__name__, watch.problem)
    session.ports("after")


def _shown_to(sentinels: List[Sentinel]) -> Callable[[Dict[str, Any]], None]:
    def see(record: Dict[str, Any]) -> None:
        for sentinel in sentinels:
            sentinel.see(record)

    return see


def _undo(session: Session) -> None:
    """End what was begun before a reboot and is not ended: where another host rebooted than one that it was begun on, it still goes on there."""
    planned = {row["label"] for row in session.spec["soak"].get("injections") or []}
    for label in sorted(session.job.earlier.unended):
        codes = session.engines.each(lambda engine, _, label=label: engine.host.inject(label, "stop")) if label in planned else [None]
        session.job.journals.put("events.jsonl", {"kind": "injection_undone", "detail": {"label": label, "end_exit": worst(codes)}})


def rotation(
    session: Session, tier: int, count: int, load_ns: Optional[int] = None, sentinel: Optional[Sentinel] = None, part: Part = Part()
) -> Iterator[Shot]:
    """Yield requests for `load_ns` (ns), else without end: prefix 0, 1, ... and round again, each lap with a new suffix: only the prefix can hit.

    Of several engine hosts `part` says whose: then these are the prefixes of that host, and no other's.

    The time runs from the first request, and the one that is due when it is over is still sent: however far apart the requests are, from the
    first to the end of the last it is never less. The sentinel's windows lie in between, so that the load has no gap.
    """
    prompts, kept, size, lap = session.prompts, {}, 0, 0
    until_ns: Optional[int] = None
    while True:
        for number, index in enumerate(range(part.place, count, part.places)):
            if until_ns is None and load_ns is not None:
                until_ns = clock.mono_ns() + load_ns
            for shot in sentinel.window(clock.mono_ns(), lap * part.of(count) + number) if sentinel else ():
                yield shot
            last = until_ns is not None and clock.mono_ns() >= until_ns
            prefix: Any = kept.get(index)
            if prefix is None:
                prefix = prompts.text(LABEL, index, "prefix", prompts.context)
                if size + len(prefix) <= CACHED_BYTES // part.places:
                    kept[index] = prefix
                    size += len(prefix)
            yield prompts.shot("soak", tier, index, prefix, LABEL, session.job.earlier.name("lap%d" % lap), prompts.output)
            if last:
                return
        lap += 1
