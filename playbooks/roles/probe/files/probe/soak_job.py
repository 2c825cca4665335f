"""A job of kind `soak`: a closed loop at one concurrency for a set time.

Stored prefixes rotate, so that each is used again as late as possible and the tier, not a cache above it, has to serve. A sentinel asks the
same few prompts now and then (probe.sentinel), and planned disturbances are carried out with their labels (probe.injections).
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, List, Optional

from probe import clock, preflight
from probe.errors import Ended, ProbeError
from probe.injections import Injections
from probe.job_main import Job
from probe.prompts import Shot
from probe.sentinel import Sentinel
from probe.session import Session, tier_facts
from probe.telemetry import Telemetry

LABEL = "soak"
CACHED_BYTES = 256 << 20  # prefixes are kept as text up to this much, else made again when needed
SPARE_NS = 1_000_000_000  # a request is sent a moment after it is given to the loop: a soak must never end a hair before its time


def run_soak(job: Job, hosts: List[Any]) -> None:
    """Store the rotating prefixes, cool, warm up, and keep the load on the engine of one host (probe.engine_host)."""
    session = Session(job, hosts)
    host = session.host
    session.begin()
    soak = job.spec["soak"]
    count = int(soak["rotate_prefixes"])
    sentinel = Sentinel(soak["sentinel"], session.prompts, job.name, int(soak["tier"]), count, _say_on(job)) if soak.get("sentinel") else None
    wanted = [(LABEL, None, n) for n in range(count)] + (sentinel.stored() if sentinel else [])
    done = job.earlier.phases  # after a reboot of the host: what was stored is on the medium, and nothing is left of what was cached
    stored, seconds = 0 if "store" in done else len(wanted), float(soak["seconds"]) + SPARE_NS / 1e9
    room = preflight.before_job(job.folder, job.spec, stored + (sentinel.windows(seconds) if sentinel else 0), host.medium)
    host.require_counters(lacking_array_is_fine=True)
    if session.phases.get("store") and "store" not in done:
        session.store(wanted)
    if session.phases.get("cool") and "cool" not in done:
        session.cool()
    else:
        session.engine.ensure(job.sleep)
    session.warm_up()
    facts: List[Dict[str, Any]] = [tier_facts(session, int(soak["tier"]), itertools.islice(rotation(session, 1, count), count))]
    session.describe(facts)
    preflight.require_larger_than_caches(job.spec, session.engines.describe())
    host.require_counters()
    _soak(session, count, sentinel, room)
    session.describe(facts)
    session.client()


def _say_on(job: Job) -> Callable[[str, Dict[str, Any]], None]:
    return lambda kind, detail: job.journals.put("events.jsonl", {"kind": kind, "detail": detail})


def _soak(session: Session, count: int, sentinel: Optional[Sentinel], room: List[Dict[str, Any]]) -> None:
    soak, job = session.spec["soak"], session.job
    seconds, tier = float(soak["seconds"]), int(soak["tier"])
    if job.earlier.boots:
        job.journals.put("events.jsonl", {"kind": "host_rebooted", "detail": {"boots_before": job.earlier.boots}})
    for label in sorted(job.earlier.unended):  # where another host rebooted than the one that it was begun on, it still goes on
        undone = session.host.inject(label, "stop") if label in {row["label"] for row in soak.get("injections") or []} else None
        job.journals.put("events.jsonl", {"kind": "injection_undone", "detail": {"label": label, "end_exit": undone}})
    cap = soak.get("request_cap")
    spacing = int(seconds * 1e9 / int(cap)) if cap else 0
    session.ports("before")
    with job.phase("soak", tier) as row:
        session.residency("before_tier", tier)
        session.counters("before", "soak", tier)
        job.start_deadline(seconds)
        if sentinel:
            job.journals.watch("records.jsonl", sentinel.see)
        with Telemetry(job, session) as telemetry, Injections(job, session.engine):
            shots = rotation(session, tier, count, int(seconds * 1e9) + SPARE_NS, sentinel)
            session.send(shots, tier, measured=True, offsets=bool(session.phases.get("chunk_offsets")), keep=False, backoff=True, spacing_ns=spacing)
        if sentinel:
            sentinel.finish()
        row["detail"] = {"seconds": seconds, "requests": job.progress["done"], "rotate_prefixes": count, "spacing_ns": spacing}
        row["detail"].update(room=room, journal_bytes=job.journals.used, deadline_ns=job.deadline_ns)
        try:
            session.engine.wait_healthy(job.sleep, 60)
            session.counters("after", "soak", tier)
        except Ended:
            raise
        except ProbeError as error:  # the load is on record; an engine that is gone at the end must not take it away
            row["ok"] = False
            row["detail"]["engine_problem"] = str(error)
        session.residency("after_tier", tier)
        if telemetry.problem:
            row["ok"] = False
            row["detail"]["telemetry_problem"] = "%s: %s" % (type(telemetry.problem).__name__, telemetry.problem)
    session.ports("after")


def rotation(session: Session, tier: int, count: int, load_ns: Optional[int] = None, sentinel: Optional[Sentinel] = None) -> Iterator[Shot]:
    """Yield requests for `load_ns` (ns), else without end: prefix 0, 1, ... and round again, each lap with a new suffix: only the prefix can hit.

    The time runs from the first request, and the one that is due when it is over is still sent: however far apart the requests are, from the
    first to the end of the last it is never less. The sentinel's windows lie in between, so that the load has no gap.
    """
    prompts, kept, size, lap = session.prompts, {}, 0, 0
    until_ns: Optional[int] = None
    while True:
        for index in range(count):
            if until_ns is None and load_ns is not None:
                until_ns = clock.mono_ns() + load_ns
            for shot in sentinel.window(clock.mono_ns(), lap * count + index) if sentinel else ():
                yield shot
            last = until_ns is not None and clock.mono_ns() >= until_ns
            prefix: Any = kept.get(index)
            if prefix is None:
                prefix = prompts.text(LABEL, index, "prefix", prompts.context)
                if size + len(prefix) <= CACHED_BYTES:
                    kept[index] = prefix
                    size += len(prefix)
            yield prompts.shot("soak", tier, index, prefix, LABEL, session.job.earlier.name("lap%d" % lap), prompts.output)
            if last:
                return
        lap += 1
