"""Soaks that must not pass, one for each check that decides and each way in which the run of the load can break: what removals are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bundles import Evidence, counted_again, record_injection, told_again
from tests.bundles.job import WALL
from tests.unit.gates.even_soak import PERIOD, WINDOW, WINDOWS, S, Soak, plan_of
from tests.unit.gates.soaks import MS, another_process, failures, idle, leak, load, recovered, restarts, samples, silence

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


def reboot(differences: Row | None = None, at: int = HALF) -> Evidence:
    """Let the host boot anew at a sample, half-way through; nobody recorded a cause."""
    soak = Soak(differences).load().samples(lambda n, row: row.update(boot_id=EARLIER) if n < at else None)
    when = soak.start + at * PERIOD

    def requests(rows: list[Row]) -> list[Row]:
        lost = [r for r in rows if not (r["phase"] == "soak" and r["sent_ns"] < when <= r["end_ns"])]
        return [{**r, "boot_id": EARLIER} if r["end_ns"] < when else r for r in lost]

    return told_again(soak.evidence.lines("soak", "records.jsonl", requests, renumber=True))


def over_a_reboot(name: str, first: int, second: int) -> Evidence:
    """Let the host boot anew for an approved cause, with time enough behind it; a counter has one value before and another behind it."""
    evidence = reboot({"g4": {"duration": "9 h", "change_point": {"windows_min": 5}}}, at=2 * WINDOW // PERIOD)
    told = {"event": "boot:b007-0001", "kind": "power", "text": "断电", "approved": True, "missing": []}

    def samples_of_both(rows: list[Row]) -> None:
        for row in rows:
            row["counters"][name] = first if row["boot_id"] == EARLIER else second

    return evidence.lines("soak", "telemetry.jsonl", samples_of_both).inputs(lambda d: d["rig_causes"].append(told))


def unapproved(*missing: str) -> Evidence:
    """Let no request be under way for a window; its cause is recorded, and a party has not approved it."""
    told = restarts(1)
    return told.inputs(lambda d: d["rig_causes"][0].update(approved=not missing, missing=[*missing]) if missing else d.update(rig_causes=[]))


def outage() -> Evidence:
    """Let every request of a window fail."""
    return load(failed={(5, k) for k in range(20)})


def injection(failed: int = 0, hours: tuple[int, ...] = (5,), **said: Any) -> Evidence:
    """Let the agreed disturbance come at the hours of a tuple; the requests behind one may fail."""
    soak = Soak(INJECTED).load(failed=[(5, 3)][:failed]).samples()
    for begun in (soak.start + hour * WINDOW + S for hour in hours):
        record_injection(soak.evidence, "pull", begun, begun + S, **said)
    return soak.evidence


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


def other_work(phase: str = "soak", *, counted: bool = True, **fields: Any) -> Evidence:
    """Let every request of a phase be another one than the plan says, and the engine have counted just that."""

    def edit(rows: list[Row]) -> None:
        for row in (row for row in rows if row["phase"] == phase):
            row.update({key: {**(row[key] or {}), **value} if isinstance(value, dict) else value for key, value in fields.items()})

    evidence = load().lines("soak", "records.jsonl", edit)
    return counted_again(evidence) if counted else evidence


def other_engine(**said: Any) -> Evidence:
    """Let the plan seal a model and a framework, and the soak run on another one."""
    soak = Soak({"platform": {"model": "lab", "framework": "lab-engine 1.0"}}).load().samples()
    return soak.evidence.json("soak", "engine.json", lambda d: d.update(said))


def told_otherwise(part: str, **fields: Any) -> Evidence:
    """Let the job have been told something else than the plan says."""
    return load().json("soak", "job.json", lambda d: d[part].update(fields))


def never_stored(number: int) -> Evidence:
    """Let the store phase have left out the last prefixes."""

    def edit(rows: list[Row]) -> list[Row]:
        last = sorted(row["prompt"] for row in rows if row["phase"] == "store")[-number:]
        return [row for row in rows if row["phase"] != "store" or row["prompt"] not in last]

    return load().lines("soak", "records.jsonl", edit, renumber=True)


def left_out() -> Evidence:
    """Let more requests fail than may, and take two of those out of the journal; the engine counted all."""

    def edit(rows: list[Row]) -> list[Row]:
        failed = [row["seq"] for row in rows if row["error"]]
        return [row for row in rows if row["seq"] not in failed[:2]]

    return failures(14).lines("soak", "records.jsonl", edit, renumber=True)


def failed_left_out(*untouched: str) -> Evidence:
    """Let more requests fail than may, and take them out of the journal; the engine did not count them, and some witnesses are left as they were."""
    evidence = failures(14)
    kept = {name: evidence.files[evidence.path("soak", name)] for name in untouched}
    prompts = {row["seq"]: row["prompt"] for row in evidence.rows("soak", "records.jsonl")}
    evidence.lines("soak", "records.jsonl", lambda rows: [row for row in rows if not row["error"]])
    asked = [prompts[row["seq"]] for row in evidence.rows("soak", "records.jsonl")]
    counted_again(evidence.lines("soak", "records.jsonl", lambda rows: rows, renumber=True))
    if "records.jsonl" in untouched:  # the numbers of their prompts
        evidence.lines("soak", "records.jsonl", lambda rows: [{**row, "prompt": prompt} for row, prompt in zip(rows, asked, strict=True)])
    evidence.files |= {evidence.path("soak", name): data for name, data in kept.items() if name != "records.jsonl"}
    return evidence.repack("soak")


def sentinel_left_out() -> Evidence:
    """Let requests of the sentinel fail, and make good ones of them in the journal."""
    evidence = load(failed={(0, 1), (0, 3)})
    events = evidence.files[evidence.path("soak", "events.jsonl")]
    good = next(row for row in evidence.rows("soak", "records.jsonl") if row["phase"] == "soak" and not row["error"])
    same = ("error", "usage", "finish_reason")

    def mended(rows: list[Row]) -> list[Row]:
        return [{**row, **{k: good[k] for k in same}, "first_text_ns": row["first_byte_ns"]} if row["error"] else row for row in rows]

    counted_again(evidence.lines("soak", "records.jsonl", mended))
    evidence.files[evidence.path("soak", "events.jsonl")] = events
    return evidence.repack("soak")


def own_word(phase: str, **said: Any) -> Evidence:
    """Let the probe itself have called a phase not in order."""

    def edit(rows: list[Row]) -> None:
        for row in (row for row in rows if row["phase"] == phase):
            row.update(ok=said.get("ok", False), detail={**row["detail"], **{k: v for k, v in said.items() if k != "ok"}})

    return load().lines("soak", "phases.jsonl", edit)


def warm() -> Evidence:
    """Let all stored KV lie in the page cache behind the cooling."""
    return load().lines("soak", "coldness.jsonl", lambda rows: [{**r, "resident_bytes": r["bytes"], "resident_pages": r["pages"]} for r in rows])


def one_process(kind: str) -> Evidence:
    """Let an event tell of another process, or boot, half-way through, of which the samples show nothing."""
    evidence, told = with_event(kind), load()
    evidence.files[evidence.path("soak", "telemetry.jsonl")] = told.files[told.path("soak", "telemetry.jsonl")]
    return evidence.repack("soak")


def collapse(requests: int) -> Evidence:
    """Let so few requests end in the last window, on which the load was all the time; a twelfth of the windows may be left out."""
    return (
        Soak({"g4": {"coverage_min": "0.9", "change_point": {"windows_min": 4}}})
        .load(requests=lambda w: requests if w == WINDOWS - 1 else 20)
        .samples()
        .evidence
    )


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
    "throughput steps down": lambda: load(requests=lambda w: 26 if w < 6 else 20),
    "TTFT up for a while": lambda: load(ttft=lambda w: 2600 * MS if 3 <= w < 9 else 2000 * MS),
    "throughput down for a while": lambda: load(requests=lambda w: 20 if 3 <= w < 9 else 26),
    "TTFT up at the end": lambda: load(ttft=lambda w: 2600 * MS if w >= 10 else 2000 * MS),
    "throughput down in the last window": lambda: load(requests=lambda w: 10 if w == 11 else 26),
    "failed requests left out": left_out,
    "good requests twice": twice,
    "failed requests left out, the engine did not count them": lambda: failed_left_out("phases.jsonl"),
    "failed requests left out of the rotation": lambda: failed_left_out("records.jsonl"),
    "requests of the sentinel that failed, said to be good": sentinel_left_out,
    "more answers than on record": lambda: client(lambda d: d["server_stamps"].update(answers=300, stamped=300)),
    **{f"the last window collapses to {n}": (lambda n=n: collapse(n)) for n in (8, 3)},
    **{f"{kind} that no sample shows": (lambda kind=kind: one_process(kind)) for kind in ("engine_restart", "host_rebooted")},
    "telemetry ended, by the probe's word": lambda: own_word("soak", telemetry_problem="OSError: No space left"),
    "engine gone, by the probe's word": lambda: own_word("soak", engine_problem="The engine does not answer."),
    "not in order, by figures alone": lambda: own_word("soak", waited_s=1.5),
    "a problem beside ok": lambda: own_word("soak", ok=True, engine_problem="The engine does not answer."),
    "not stored, by the probe's word": lambda: own_word("store", failed=3),
    "not cooled, by the probe's word": lambda: own_word("cool"),
    "all KV in memory": warm,
    "an error beside done": lambda: load().json("soak", "exit.json", lambda d: d.update(error={"kind": "oom", "message": "killed"})),
    "store phase refused": lambda: other_work("store", http_status=500, error={"kind": "http", "message": "500"}),
    "TTFT creeps up": lambda: load(ttft=lambda w: (2000 + 60 * w) * MS),
    "throughput creeps down": lambda: load(requests=lambda w: 36 - w),
    "leak": lambda: leak(30_000),
    "another process": lambda: another_process(1),
    "engine ends": lambda: with_event("engine_exit"),
    "out of memory": lambda: with_event("oom_kill"),
    "engine gone": gone,
    **{f"{name} grows": (lambda name=name: counter(name)) for name in FATAL},
    **{f"{name} untold": (lambda name=name: untold(name)) for name in FATAL[:2]},
    "counter went back": went_back,
    "reboot": reboot,
    "a drive's counter grew over a reboot": lambda: over_a_reboot("nvme_media_errors", 0, 3),
    "a drive's counter went back over a reboot": lambda: over_a_reboot("nvme_media_errors", 3, 0),
    "a counter grew while the host came up": lambda: over_a_reboot("aer_fatal", 0, 3),
    "load gap without a cause": unapproved,
    "load gap, one party": lambda: unapproved("customer"),
    "load gap, no party": lambda: unapproved("customer", "vendor"),
    "too many restarts": lambda: restarts(2),
    "telemetry gap": lambda: silence(20, 80, 300 * S)(0),
    "too short": lambda: Soak({"g4": {"duration": "13 h"}}).load().samples().evidence,
    "injection disturbs": lambda: injection(failed=1),
    "injection not on record": never_injected,
    "injection that cannot be run": lambda: injection(begin_exit=127),
    "injection twice": lambda: injection(hours=(5, 8)),
    "injection at another hour": lambda: injection(hours=(8,)),
    "injection that nobody ended": lambda: injection(end_exit=124),
    "tier idle": lambda: idle(1),
    "from the GPU cache": from_the_gpu_cache,
    "KV lost": lambda: recovered(-(10**6)),
    "prefixes never stored": lambda: never_stored(3),
    "fewer output tokens": lambda: other_work(max_tokens=8, usage={"completion_tokens": 8}),
    "fewer prompt tokens": lambda: other_work(prompt_tokens_sent=4096, usage={"prompt_tokens": 4096}),
    "answers cut short": lambda: other_work(counted=False, usage={"completion_tokens": 8}),
    "another model": lambda: other_engine(model="a smaller one"),
    "another release": lambda: other_engine(version="0.9"),
    "an engine that does not say what it is": lambda: other_engine(model=None),
    "a cap of requests": lambda: told_otherwise("soak", request_cap=1440),
    "another concurrency": lambda: told_otherwise("soak", tier=2),
    "other lengths": lambda: told_otherwise("workload", output_tokens=8),
    "another arm than the job's": lambda: load().json("soak", "arm.json", lambda d: d.update({"engine.tier.threads": 64})),
    "calibration off": lambda: client(lambda d: d["calibration"].update(measured_ttft_p50_ns=60_000_000)),
    "not told apart": lambda: client(lambda d: d["calibration"].update(told_apart=False)),
    "job stopped": lambda: load().json("soak", "exit.json", lambda d: d.update(outcome="stopped")),
}


def g4(name: str) -> Evidence:
    """Return a soak's evidence that is wrong in one way."""
    return G4[name]()
