"""Soaks that must not pass, one for each check that decides and each way in which the run of the load can break: what removals are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bundles import Evidence, record_injection
from tests.bundles.job import WALL
from tests.unit.gates.even_soak import PERIOD, WINDOW, S, Soak, plan_of
from tests.unit.gates.soaks import MS, another_process, failures, idle, leak, load, restarts, samples, silence

Row = dict[str, Any]
EARLIER = "b007-0000"  # a boot of the host before the one that the bundle's other files name
HALF = 144  # of 289 samples
# A window that an injection touches is not looked at for drift, so fewer must do.
INJECTED = {"g4": {"change_point": {"windows_min": 5}, "injections": [{"label": "pull", "action": "pull-path", "at": "5 h", "lasts": "1 min"}]}}


def client(edit: Callable[[Row], Any]) -> Evidence:
    return load().json("soak", "client.json", lambda d: edit(d) and None)


def with_event(kind: str) -> Evidence:
    """Let the engine's process end half-way through, as events and samples tell it."""
    evidence = another_process(1)
    when = evidence.rows("soak", "telemetry.jsonl")[101]["mono_ns"]
    event = {"wall_ns": WALL + when, "mono_ns": when, "boot_id": "b007-0001", "kind": kind, "detail": {}}
    return evidence.lines("soak", "events.jsonl", lambda rows: [*rows, event], renumber=True)


def gone() -> Evidence:
    return samples(lambda n, row: row["engine"].update(alive=n < HALF))


def counter(name: str) -> Evidence:
    return samples(lambda n, row: row["counters"].update({name: 3 * (n > HALF)}))


def went_back() -> Evidence:
    return samples(lambda n, row: row["counters"].update(link_down_events=5 * (n < HALF)))


def untold(name: str) -> Evidence:
    return samples(lambda n, row: row["counters"].pop(name, None) if n > HALF else None)


def reboot() -> Evidence:
    """Let the host boot anew half-way through; nobody recorded a cause."""
    soak = Soak().load().samples(lambda n, row: row.update(boot_id=EARLIER) if n < HALF else None)
    when = soak.start + HALF * PERIOD

    def requests(rows: list[Row]) -> list[Row]:
        lost = [r for r in rows if not (r["phase"] == "soak" and r["sent_ns"] < when <= r["end_ns"])]
        return [{**r, "boot_id": EARLIER} if r["end_ns"] < when else r for r in lost]

    return soak.evidence.lines("soak", "records.jsonl", requests, renumber=True)


def unapproved(*missing: str) -> Evidence:
    """Let no request be under way for a window; its cause is recorded, and a party has not approved it."""
    told = restarts(1)
    return told.inputs(lambda d: d["rig_causes"][0].update(approved=not missing, missing=[*missing]) if missing else d.update(rig_causes=[]))


def outage() -> Evidence:
    """Let every request of a window fail."""
    return load(failed={(5, k) for k in range(20)})


def injection(failed: int = 0, **said: Any) -> Evidence:
    soak = Soak(INJECTED).load(failed=[(5, 3)][:failed]).samples()
    begun = soak.start + 5 * WINDOW + S
    return record_injection(soak.evidence, "pull", begun, begun + S, **said)


def never_injected() -> Evidence:
    return Soak(INJECTED).load().samples().evidence


def from_the_gpu_cache() -> Evidence:
    """Let the GPU cache have served half of what was stored."""

    def edit(rows: list[Row]) -> None:
        for row in rows:
            if (row["when"], row["phase"]) == ("after", "soak"):
                for name, value in list(row["metrics"].items()):
                    if name.startswith("vllm:external_prefix_cache_hits_total"):
                        row["metrics"][name] = str(int(float(value)) // 1000)
                        row["metrics"][name.replace("external_", "")] = value

    few = samples(lambda n, row: row.update(metrics=dict.fromkeys(row["metrics"], str(n))))
    return few.lines("soak", "counters.jsonl", edit)


def left_out() -> Evidence:
    """Let more requests fail than may, and take two of those out of the journal; the engine counted all."""

    def edit(rows: list[Row]) -> list[Row]:
        failed = [row["seq"] for row in rows if row["error"]]
        return [row for row in rows if row["seq"] not in failed[:2]]

    return failures(14).lines("soak", "records.jsonl", edit, renumber=True)


def twice() -> Evidence:
    """Let more requests fail than may, and put good ones into the journal twice, until the rate looks well."""

    def edit(rows: list[Row]) -> list[Row]:
        good = [row["seq"] for row in rows if row["phase"] == "soak" and not row["error"]][:30]
        return [again for row in rows for again in [row] * (1 + (row["seq"] in good))]

    return failures(13).lines("soak", "records.jsonl", edit, renumber=True)


FATAL = tuple(plan_of().g4.fatal_counters)
G4: dict[str, Callable[[], Evidence]] = {
    "errors": lambda: failures(60),
    "outage": outage,
    "TTFT steps up": lambda: load(ttft=lambda w: 2000 * MS if w < 6 else 2600 * MS),
    "throughput steps down": lambda: load(tokens=lambda w: 2600 if w < 6 else 2000),
    "TTFT up for a while": lambda: load(ttft=lambda w: 2600 * MS if 3 <= w < 9 else 2000 * MS),
    "throughput down for a while": lambda: load(tokens=lambda w: 2000 if 3 <= w < 9 else 2600),
    "TTFT up at the end": lambda: load(ttft=lambda w: 2600 * MS if w >= 10 else 2000 * MS),
    "throughput down in the last window": lambda: load(tokens=lambda w: 1000 if w == 11 else 2600),
    "failed requests left out": left_out,
    "good requests twice": twice,
    "TTFT creeps up": lambda: load(ttft=lambda w: (2000 + 60 * w) * MS),
    "throughput creeps down": lambda: load(tokens=lambda w: 2900 - 60 * w),
    "leak": lambda: leak(30_000),
    "another process": lambda: another_process(1),
    "engine ends": lambda: with_event("engine_exit"),
    "out of memory": lambda: with_event("oom_kill"),
    "engine gone": gone,
    **{f"{name} grows": (lambda name=name: counter(name)) for name in FATAL},
    **{f"{name} untold": (lambda name=name: untold(name)) for name in FATAL[:2]},
    "counter went back": went_back,
    "reboot": reboot,
    "load gap without a cause": unapproved,
    "load gap, one party": lambda: unapproved("customer"),
    "load gap, no party": lambda: unapproved("customer", "vendor"),
    "too many restarts": lambda: restarts(2),
    "telemetry gap": lambda: silence(20, 80, 300 * S)(0),
    "too short": lambda: Soak({"g4": {"duration": "13 h"}}).load().samples().evidence,
    "injection disturbs": lambda: injection(failed=1),
    "injection not on record": never_injected,
    "injection that cannot be run": lambda: injection(begin_exit=127),
    "injection that nobody ended": lambda: injection(end_exit=124),
    "tier idle": lambda: idle(1),
    "from the GPU cache": from_the_gpu_cache,
    "calibration off": lambda: client(lambda d: d["calibration"].update(measured_ttft_p50_ns=60_000_000)),
    "not told apart": lambda: client(lambda d: d["calibration"].update(told_apart=False)),
    "job stopped": lambda: load().json("soak", "exit.json", lambda d: d.update(outcome="stopped")),
}


def g4(name: str) -> Evidence:
    """Return a soak's evidence that is wrong in one way."""
    return G4[name]()
