"""One row of the table: so many soaks for so many seconds, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.engine.hints import STEPS
from app.kit import broker
from app.settings import settings
from lanes.scale import pages, seed
from lanes.scale.lateness import Asked, of_polls, quantile, unwell
from lanes.scale.measure import Usage, between, usage
from lanes.scale.service import NODE, Service

IDLE_SHARE = 0.25  # of the seconds: the service without a soak, which is taken off as its fixed part
SETTLE_S = 10.0  # after every soak was polled once
LOOK_S = 15.0
TAIL_S = 15.0  # at the end of the window: a poll that was due then may still come
PARTS = ("worker", "beat", "web", "broker", "postgres")


def measure(folder: Path, script: dict[str, Any], count: int, seconds: float, *, on_postgres: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    """Run so many soaks and return the figures of one row."""
    with Service(folder, script, on_postgres=on_postgres).running() as service:
        time.sleep(3)
        began, idle = time.monotonic(), usage(service.roots)
        time.sleep(seconds * IDLE_SHARE)
        fixed_cpu, fixed_db = between(idle, usage(service.roots))
        fixed_s = time.monotonic() - began
        tell(f"{count} soaks: seeding")
        ids = seed.soaks(count, NODE)
        asked, depths = Asked(), []
        _wait(seed.LEAD_S + settings().soak_poll_seconds + SETTLE_S, asked, depths)
        tell(f"{count} soaks: every one was polled; measuring for {seconds:.0f} s")
        wall, before, depths = time.time(), usage(service.roots), []
        began = time.monotonic()
        _wait(seconds, asked, depths)
        lasted, after = time.monotonic() - began, usage(service.roots)
        spawned = service.spawned()
        late = of_polls(asked, spawned, wall, wall + lasted - TAIL_S)
        polls = sum(wall <= at < wall + lasted for times in spawned.values() for at in times)
        row = {
            "soaks": count,
            "seconds": round(lasted, 1),
            "polls": polls,
            "problems": unwell() or ([] if polls else ["nothing was polled"]),
            "lateness_s": {"p50": quantile(late, 0.5), "p99": quantile(late, 0.99), "max": late[-1] if late else None},
            "queue_depth": {"p50": quantile(sorted(depths), 0.5), "max": max(depths)},
            **_costs(before, after, lasted, polls, fixed_cpu, fixed_db, fixed_s),
        }
        row["pages"] = pages.watch(ids, service, tell)
        return row


def _costs(
    before: Usage, after: Usage, seconds: float, polls: int, fixed_cpu: dict[str, float], fixed_db: dict[str, int], fixed_s: float
) -> dict[str, Any]:
    """Return CPU and database work with the fixed part taken off, by poll; the fixed part is what the same service used a second without a soak."""
    cpu, database = between(before, after)
    share = seconds / fixed_s
    own = {name: cpu.get(name, 0.0) - fixed_cpu.get(name, 0.0) * share for name in PARTS}
    work = {name: database[name] - fixed_db[name] * share for name in database}
    return {
        "cpu_ms_per_poll": {name: 1000 * value / max(1, polls) for name, value in {**own, "all": sum(own.values())}.items()},
        "per_poll": {name: value / max(1, polls) for name, value in work.items()},
        "cores": {"all": sum(cpu.get(name, 0.0) for name in PARTS) / seconds, "fixed": sum(fixed_cpu.get(n, 0.0) for n in PARTS) / fixed_s},
        "fixed_written_per_s": fixed_db.get("written", 0) / fixed_s,
        "memory_mb": {name: after.memory_mb.get(name, 0.0) for name in PARTS},
    }


def _wait(seconds: float, asked: Asked, depths: list[int]) -> None:
    """Let time pass, looking at the due times now and then and at the queue every second."""
    end, next_look = time.monotonic() + seconds, 0.0
    queue = STEPS.format(node=NODE)
    while (now := time.monotonic()) < end:
        if now >= next_look:
            asked.look()
            next_look = now + LOOK_S
        depths.append(broker.depths([queue])[queue])
        time.sleep(min(1.0, max(0.0, end - time.monotonic())))
