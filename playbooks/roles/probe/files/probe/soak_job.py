"""A job of kind `soak`: a closed loop at one concurrency for a set time.

Stored prefixes rotate, so that each is used again as late as possible and the tier, not a cache above it, has to serve.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, Optional

from probe import clock
from probe.errors import Ended, ProbeError
from probe.job_main import Job
from probe.prompts import Shot
from probe.session import Session, tier_facts
from probe.telemetry import Telemetry

LABEL = "soak"
CACHED_BYTES = 256 << 20  # prefixes are kept as text up to this much, else made again when needed


def run_soak(job: Job) -> None:
    """Store the rotating prefixes, cool, warm up, and keep the load on."""
    session = Session(job)
    session.begin()
    count = int(job.spec["soak"]["rotate_prefixes"])
    if session.phases.get("store"):
        session.store([(LABEL, None, n) for n in range(count)])
    if session.phases.get("cool"):
        session.cool()
    else:
        session.engine.ensure(job.sleep)
    session.warm_up()
    facts: List[Dict[str, Any]] = [tier_facts(session, int(job.spec["soak"]["tier"]), itertools.islice(rotation(session, 1, count), count))]
    session.describe(facts)
    _soak(session, count)
    session.describe(facts)
    session.client()


def _soak(session: Session, count: int) -> None:
    soak, job = session.spec["soak"], session.job
    seconds, tier = float(soak["seconds"]), int(soak["tier"])
    cap = soak.get("request_cap")
    spacing = int(seconds * 1e9 / int(cap)) if cap else 0
    with job.phase("soak", tier) as row:
        session.residency("before_tier", tier)
        session.counters("before", "soak", tier)
        until = clock.mono_ns() + int(seconds * 1e9)
        with Telemetry(job, session) as telemetry:
            shots = rotation(session, tier, count, until)
            session.send(shots, tier, measured=True, offsets=bool(session.phases.get("chunk_offsets")), keep=False, backoff=True, spacing_ns=spacing)
        row["detail"] = {"seconds": seconds, "requests": job.progress["done"], "rotate_prefixes": count, "spacing_ns": spacing}
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


def rotation(session: Session, tier: int, count: int, until_ns: Optional[int] = None) -> Iterator[Shot]:
    """Yield requests until the time is over: prefix 0, 1, 2, ... and round again, each lap with a new suffix, so that only the prefix can hit."""
    prompts, kept, size, lap = session.prompts, {}, 0, 0
    while True:
        for index in range(count):
            if until_ns is not None and clock.mono_ns() >= until_ns:
                return
            prefix: Any = kept.get(index)
            if prefix is None:
                prefix = prompts.text(LABEL, index, "prefix", prompts.context)
                if size + len(prefix) <= CACHED_BYTES:
                    kept[index] = prefix
                    size += len(prefix)
            yield prompts.shot("soak", tier, index, prefix, LABEL, "lap%d" % lap, prompts.output)
        lap += 1
