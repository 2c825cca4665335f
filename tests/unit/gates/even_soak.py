"""A soak whose every request and sample is where a test puts it: for limits that are met to the ns, the token and the page."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Collection
from typing import Any

from gates.g4_soak import steps
from gates.plan import Plan
from tests.bundles import Evidence, counted_again, g4_evidence, merged, soak_plan
from tests.bundles.job import SERVED
from tests.bundles.jobs import asked, planned_disturbances

S, PAGE = 10**9, 4096
READ = 10**6  # prompt tokens that the external tier served between two samples: more than the load asks for
WINDOW, SLOT, PERIOD, WINDOWS, SLOTS = 120 * S, 6 * S, 5 * S, 12, 20  # ns of a clock on which an hour is 120 s: a request takes 6 s
BETWEEN = S // 1000  # ns from the end of a request to the start of the next one
LAST, TAIL = S // 10, 10  # behind the windows: so many requests of so many ns, which end the soak
END = WINDOWS * WINDOW + TAIL * LAST
PLAN = {
    "rig": {"time_scale": "30"},
    "workload": {"tiers": [1, 2, 4, 8]},
    "g4": {
        "tier": 1,
        "duration": "43230 s",
        "leak": {"warmup": "1 h"},
        "error_rate_max": "0.048",
        "change_point": {"p_max": "0.01"},
        "error_budget": {"share_max": "0.25", "long_share_max": "0.5"},
        "clock": {"restarts_max": 1},
    },
}
Place = tuple[int, int]  # window, request in it


def plan_of(differences: dict[str, Any] | None = None) -> Plan:
    return soak_plan(merged(PLAN, differences or {}))


@functools.cache
def short_soak() -> Evidence:
    return g4_evidence(plan=plan_of(), hours=0.02)


class Soak:
    """Twelve windows of twenty requests, one always in flight, ten more that end the soak (250 in all), and a sample every 5 s."""

    def __init__(self, differences: dict[str, Any] | None = None) -> None:
        self.evidence = Evidence("G4", plan_of(differences), dict(short_soak().files), simulated=True)
        phase = next(p for p in self.evidence.rows("soak", "phases.jsonl") if p["phase"] == "soak")
        self.start = int(phase["started_ns"])
        told = planned_disturbances(next(step for step in steps(self.evidence.plan) if step.key == "soak"))
        self.evidence.json("soak", "job.json", lambda d: d["soak"].update(told), repack=False)
        over = self.start + 2 * END
        self.evidence.lines("soak", "phases.jsonl", lambda rows: [{**r, "ended_ns": over} if r["phase"] == "soak" else r for r in rows])
        self.evidence.json("soak", "exit.json", lambda d: d.update(ended_ns=over, ended_wall_ns=d["ended_wall_ns"] - d["ended_ns"] + over))

    def load(
        self,
        *,
        ttft: Callable[[int], int] = lambda _: 2 * S,
        requests: Callable[[int], int] = lambda _: SLOTS,
        failed: Collection[Place] = (),
        paused: Collection[int] = (),
        late: int = 0,
    ) -> Soak:
        """Write the requests: TTFT (ns) and their number by window, which fail, windows without any, ns by which the last one ends late."""
        slots = {w: WINDOW // requests(w) for w in range(WINDOWS) if w not in paused}
        places = [(w, k) for w in slots for k in range(requests(w))]

        spec = next(step for step in steps(self.evidence.plan) if step.key == "soak")

        def write(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            kept, like = [r for r in rows if r["phase"] != "soak"], next(r for r in rows if r["phase"] == "soak")
            told = [(w * WINDOW + k * slots[w], min(ttft(w), slots[w] * 2 // 3), slots[w] - BETWEEN, (w, k)) for w, k in places]
            told += [(WINDOWS * WINDOW + k * LAST, LAST // 2, LAST - BETWEEN, (WINDOWS, k)) for k in range(TAIL - 1)]
            told += [(END - LAST, LAST // 2, LAST + late, (WINDOWS, TAIL - 1))]
            for n, (sent, first, whole, place) in enumerate(told):
                begun = self.start + sent
                row = {**like, "sent_ns": begun, "scheduled_ns": begun, "first_byte_ns": begun + first, "first_text_ns": begun + first}
                row |= {"end_ns": begun + whole, "mono_ns": begun + whole, "prompt": asked(n, spec)}
                row["server"] = {"recv_ns": begun + 1000, "first_ns": begun + first - 3000, "send_ns": begun + first - 2000}
                if place in failed:
                    row |= {"error": {"kind": "stream_error", "message": "lost"}, "first_text_ns": None, "usage": None, "finish_reason": None}
                kept.append(row)
            return kept

        def served(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            for row in rows:
                if (row["when"], row["phase"]) == ("after", "soak"):
                    hits = {name: str(10**9) for name in row["metrics"] if name.startswith("vllm:external_prefix_cache_hits_total")}
                    row["metrics"] |= hits
            return rows

        self.evidence.lines("soak", "records.jsonl", write, renumber=True)
        counted_again(self.evidence.lines("soak", "counters.jsonl", served))
        return self

    def samples(self, edit: Callable[[int, dict[str, Any]], None] = lambda n, row: None, *, silent: tuple[int, int] = (0, 0)) -> Soak:
        """Write the samples with an edit of each (number, row). Between two samples of numbers a and b (`silent`) there is none."""

        def write(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            out, ends = [], sorted(r["end_ns"] for r in self.evidence.rows("soak", "records.jsonl") if r["phase"] == "soak")
            ended = [bisect_right(ends, self.start + n * PERIOD) for n in range(END // PERIOD + 1)]
            for n in (n for n in range(END // PERIOD + 1) if not silent[0] < n < silent[1]):
                row = {**rows[0], "mono_ns": self.start + n * PERIOD, "counters": dict(rows[0]["counters"]), "host": dict(rows[0]["host"])}
                row |= {"engine": {**rows[0]["engine"], "rss_bytes": 50_000 * PAGE}}
                row["metrics"] = {name: str(ended[n]) if name == SERVED else str(n * READ) for name in rows[0]["metrics"]}
                edit(n, row)
                out.append(row)
            return out

        self.evidence.lines("soak", "telemetry.jsonl", write, renumber=True)
        return self
