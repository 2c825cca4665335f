"""A job of kind `run`: one pass of one arm over all tiers. Store, cool, warm up, canary, measure, repeat.

It measures and never judges: a phase that did not behave is recorded with `ok: false` and the job goes on, so that the judge sees what the
engine did.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Dict, List, Optional, Sequence

from probe import metrics, preflight
from probe.cells import run_cells
from probe.engine import Engine
from probe.engine_counters import OWN_HITS, TIER_HITS
from probe.job_main import Job
from probe.prompts import Shot, tier_label
from probe.session import CANARY, Session, tier_facts


def run_job(job: Job, hosts: Sequence[Any]) -> None:
    """Run every phase that the job file asks for, in order, on the engines of these hosts (probe.engine_host)."""
    session = Session(job, hosts)
    session.begin()
    wanted = list(session.prefixes()) if session.phases.get("store") else []
    preflight.before_job(job.folder, job.spec, len(wanted), session.engines.media)
    if wanted:
        session.store(wanted)
    if session.phases.get("cool"):
        session.cool()
    else:
        session.engines.ensure()
    session.warm_up()
    if session.phases.get("canary"):
        canary(session)
    facts: List[Dict[str, Any]] = []
    session.describe(facts)
    session.ports("before")
    for tier in session.workload["tiers"]:
        shots = _shots(session, "measure", int(tier["tier"]), int(tier["requests"]))
        facts.append(tier_facts(session, int(tier["tier"]), shots))
        _measure(session, int(tier["tier"]), shots)
        session.client()
    session.ports("after")
    if session.phases.get("repeat"):
        _repeat(session, int(session.phases["repeat"]))
    session.describe(facts)
    session.client()
    run_cells(session)


def _shots(session: Session, phase: str, tier: int, count: int, salt: str = "") -> List[Shot]:
    """Return the requests of a tier, their bodies complete before anything is measured."""
    label, prompts = tier_label(tier), session.prompts
    return [prompts.shot(phase, tier, n, prompts.prefix(label, n), label, "m", prompts.output, salt) for n in range(count)]


def _measure(session: Session, tier: int, shots: List[Shot]) -> None:
    with session.job.phase("measure", tier, total=len(shots)) as row:
        idle = session.engines.wait_idle()
        dropped = session.engines.each(lambda engine, _: engine.host.drop())
        session.residency("before_tier", tier)
        session.counters("before", "measure", tier)
        briefs = session.send(shots, tier, measured=True, offsets=bool(session.phases.get("chunk_offsets", True)))
        settled = session.engines.wait_idle()
        session.counters("after", "measure", tier)
        session.residency("after_tier", tier)
        failed = sum(1 for b in briefs if b["error"])
        told = [{"dropped": d, "idle_before": i, "idle_after": s} for d, i, s in zip(dropped, idle, settled)]
        row["detail"] = {"requests": len(briefs), "failed": failed, **session.engines.told(told)}
        row["ok"] = len(briefs) == len(shots)


def _repeat(session: Session, count: int) -> None:
    """Send the first prompts of the first tier again under another cache key: computed anew, so outputs differ only by the engine's own noise."""
    first = session.workload["tiers"][0]
    tier, count = int(first["tier"]), min(count, int(first["requests"]))
    session.prompts.forget_heads()
    shots = _shots(session, "repeat", tier, count, salt="repeat-" + session.spec["job"])
    with session.job.phase("repeat", tier, total=count) as row:
        session.counters("before", "repeat", tier)
        briefs = session.send(shots, tier, offsets=False)
        session.counters("after", "repeat", tier)
        failed = sum(1 for b in briefs if b["error"])
        row["detail"] = {"requests": len(briefs), "failed": failed, "cache_salt": "repeat-" + session.spec["job"]}
        row["ok"] = len(briefs) == count


def canary(session: Session) -> None:
    """Send each engine host one stored and unused prefix (must hit when hits are expected) and one never-stored prefix (must miss)."""
    stored = bool(session.phases.get("expect_hits"))
    with session.job.phase("canary", total=(1 + stored) * len(session.engines)) as row:
        told: List[Dict[str, Any]] = []
        for engine in session.engines:
            detail = {"stored": _one(session, engine, CANARY, True)} if stored else {}
            detail["new"] = _one(session, engine, "canary-new/" + session.spec["job"], False)
            told.append(detail)
        row["detail"] = session.engines.told(told)
        row["ok"] = all(one["as_expected"] for detail in told for one in detail.values())


def _one(session: Session, engine: Engine, label: str, expected: bool) -> Dict[str, Any]:
    """Return what one canary request showed. More than half of the context from a cache is a hit; this tells two facts apart and is no limit."""
    before, place = engine.metrics(), engine.place
    shot = session.prompts.shot("canary", None, place, session.prompts.prefix(label, place), label, "m", session.prompts.output)
    brief = session.send([shot], 1)[0]
    engine.wait_idle(session.job.sleep)
    after = engine.metrics()
    external, local = metrics.growth(before, after, TIER_HITS), metrics.growth(before, after, OWN_HITS)
    cached = (brief["usage"] or {}).get("cached_tokens")
    seen = cached if cached is not None else (None if external is None else int(external + (local or 0)))
    hit = None if seen is None else seen * 2 > session.prompts.context
    out: Dict[str, Any] = {"expected_hit": expected, "hit": hit, "cached_tokens": cached, "error": brief["error"]}
    out.update(external_hit_tokens=_text(external), local_hit_tokens=_text(local), context_tokens=session.prompts.context)
    out["as_expected"] = brief["error"] is None and hit is expected
    return out


def _text(value: Optional[Decimal]) -> Optional[str]:
    return None if value is None else format(value, "f")
