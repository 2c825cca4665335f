"""The same evidence from several hosts: the load generator where the runs were, and engine hosts with boots and clocks of their own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gates.model import StepKind, StepSpec
from gates.rules.attend_account import digest
from gates.rules.attended import ANSWERED
from tests.bundles.evidence import ATTEMPT, Evidence, dumped, journal
from tests.bundles.job import SERVED
from tests.bundles.kernel import calm_log

ENGINE_HOST, THERE = "gpu09", "b009-0007"
SECOND_HOST = "gpu10"
BOOTS = {ENGINE_HOST: THERE, SECOND_HOST: "b010-0003"}
AHEAD = 7_777 * 10**9  # by so much (ns) the first engine host's monotonic clock is ahead, the second's by twice as much
SPAN = 10_000  # ns between asking and answer; a look comes 1 ms behind the last request


def put_apart(evidence: Evidence, steps: tuple[StepSpec, ...], hosts: Sequence[str] = (ENGINE_HOST,)) -> Evidence:
    """Move what rests on the engine's host to hosts of their own, with the account that each attendant keeps. Edits in place.

    Several hosts share every count evenly, so each tier must have a number of requests that they can share.
    """
    evidence.inputs(lambda d: d["hosts"].update(engine=list(hosts)))
    for path in [path for path in evidence.files if path.startswith("evidence/deploy/")]:
        data = evidence.files.pop(path)
        for host in hosts:
            evidence.files[path.replace("/gpu01/", f"/{host}/")] = data
    for step in (step for step in steps if step.kind is StepKind.JOB):
        _put_apart(evidence, step.key, hosts)
        if evidence.path(step.key, "telemetry.jsonl") in evidence.files:
            calm_log(evidence)
    return evidence


def _put_apart(evidence: Evidence, step: str, hosts: Sequence[str]) -> None:
    counters, cold = evidence.rows(step, "counters.jsonl"), evidence.rows(step, "coldness.jsonl")
    cooled = next((p["ended_ns"] for p in evidence.rows(step, "phases.jsonl") if p["phase"] == "cool"), 0)
    moments = {(row["when"], row["tier"]): row["mono_ns"] for row in counters}
    job = evidence.read(step, "job.json")
    accounts: dict[str, list[dict[str, Any]]] = {host: [] for host in hosts}
    before: list[dict[str, Any]] = []
    loads = Loads(evidence, step, len(hosts)) if evidence.path(step, "telemetry.jsonl") in evidence.files else None

    def stamps(host: str, answered: int) -> dict[str, Any]:
        """Return the host's own stamps of an answer; no two are of one moment."""
        ahead = AHEAD * (1 + hosts.index(host)) + len(accounts[host])
        return {"wall_ns": 10**18 + answered, "mono_ns": answered + ahead, "boot_id": BOOTS[host]}

    def on(host: str, verb: str, answered: int, row: dict[str, Any]) -> dict[str, Any]:
        held, said = {key: row[key] for key in ANSWERED[verb] if key in row}, stamps(host, answered)
        accounts[host].append({**said, "verb": verb, "error": None, "sha256": digest([held] if verb == "residency" else held)})
        return {**said, "host": host, "asked_ns": answered - SPAN, "answered_ns": answered}

    def seen(host: str, row: dict[str, Any]) -> dict[str, Any]:
        row = {**row, "engine": {**row["engine"], "boot_id": BOOTS[host]}}
        answered = cooled if row["when"] == "after_cool" else moments[row["when"].partition("_")[0], row["tier"]]
        for did, engine in (("stop", None), ("start", row["engine"])) if row["when"] == "after_cool" else ():
            accounts[host].append({**stamps(host, answered - 10 * SPAN), "verb": "control", "error": None, "did": did, "engine": engine})
        return {**row, "on": on(host, "residency", answered, row)}

    def counted(host: str, row: dict[str, Any]) -> dict[str, Any]:
        whole, row = row, _part(row, hosts.index(host), len(hosts)) if len(hosts) > 1 else row
        if loads is not None and len(hosts) > 1 and (row["phase"], row["when"]) == ("soak", "after"):
            row = {**row, "metrics": loads.after(hosts.index(host), before[0]["metrics"], whole["metrics"])}
        if row["phase"] == "soak":
            before.append(whole)
        return {**row, "on": on(host, "reading", row["mono_ns"], row)}

    evidence.lines(step, "counters.jsonl", lambda rows: [counted(host, row) for row in rows for host in hosts], renumber=True)
    evidence.lines(step, "coldness.jsonl", lambda _: [seen(host, row) for row in cold for host in hosts], renumber=True)
    if loads is not None:

        def sampled(n: int, host: str, row: dict[str, Any]) -> dict[str, Any]:
            stamp = {"mono_ns": row["mono_ns"] + AHEAD * (n + 1), "boot_id": BOOTS[host]}
            accounts[host].append({**stamp, "wall_ns": 10**18, "verb": "sample", "error": None})
            return {**row, "metrics": loads.sample(n, row), "on": {"host": host, **stamp}}

        evidence.lines(step, "telemetry.jsonl", lambda rows: [sampled(n, host, row) for row in rows for n, host in enumerate(hosts)], renumber=True)
        if len(hosts) > 1:
            evidence.lines(step, "events.jsonl", lambda rows: [{**r, "detail": {**r["detail"], "host": hosts[n]}} for n, r in enumerate(rows)])
    given = [{"host": host, "address": "10.0.0.9", "port": 18460, "engine": job["engine"]} for host in hosts]
    evidence.json(step, "job.json", lambda data: {**data, "attendants": given, "phases": {"cool": True}})
    evidence.lines(step, "records.jsonl", lambda rows: [{**row, "host": hosts[row["prompt"] % len(hosts)]} for row in rows])
    if len(hosts) > 1:
        evidence.json(step, "engine.json", lambda data: {**data, "instances": [{**data, "url": f"http://{host}:1", "host": host} for host in hosts]})
    for host in hosts:
        _bring_account(evidence, step, host, job["engine"], accounts[host])


class Loads:
    """How the requests of a soak fell to so many hosts: each counted its own, at the same rate by request."""

    def __init__(self, evidence: Evidence, step: str, hosts: int) -> None:
        soak = [row for row in evidence.rows(step, "records.jsonl") if row["phase"] == "soak"]
        self.hosts, self.all = hosts, len(soak)
        self.ends = [sorted(row["end_ns"] for row in soak if row["prompt"] % hosts == n) for n in range(hosts)]
        counters = evidence.rows(step, "counters.jsonl")
        self.base = next(int(float(r["metrics"].get(SERVED, 0))) for r in counters if (r["when"], r["phase"]) == ("before", "soak"))

    def after(self, n: int, before: dict[str, str], metrics: dict[str, str]) -> dict[str, str]:
        """Return the counters of a host behind the load, from those of all before and behind it."""
        own = len(self.ends[n])
        grown = {key: int(float(value)) - int(float(before[key])) for key, value in metrics.items()}
        return {key: f"{_part(int(float(before[key])), n, self.hosts) + more * own // self.all}.0" for key, more in grown.items()}

    def sample(self, n: int, row: dict[str, Any]) -> dict[str, str]:
        """Return the metrics of a host's sample, from those of all."""
        if self.hosts == 1:
            return dict(row["metrics"])
        own = {key: str(int(float(value)) * len(self.ends[n]) // self.all) for key, value in row["metrics"].items()}
        return {**own, SERVED: str(_part(self.base, n, self.hosts) + bisect_right(self.ends[n], row["mono_ns"]))}


def _bring_account(evidence: Evidence, step: str, host: str, engine: dict[str, Any], account: list[dict[str, Any]]) -> None:
    folder, name, boot = f"evidence/{step}/{host}", f"{ATTEMPT}-{step}", BOOTS[host]
    attend = {"schema": 1, "job": name, "kind": "attend", "fence": 1, "host": host, "engine": engine}
    end = {"job": name, "outcome": "done", "error": None, "boot_id": boot, "records": 0, "last_seq": -1}
    for file, data in (("job.json", attend), ("started", {"boot_id": boot}), ("exit.json", end), ("pack.json", {"job": name, "files": []})):
        evidence.files[f"{folder}/{file}"] = dumped(data)
    evidence.files[f"{folder}/asked.jsonl"] = journal(sorted(account, key=lambda row: int(row["mono_ns"])))


def _part(value: Any, n: int, of: int) -> Any:
    """Return what is the n-th host's of all counts of a row; the first hosts have what cannot be shared."""
    if isinstance(value, dict):
        return {key: part if key in ("mono_ns", "tier") else _part(part, n, of) for key, part in value.items()}
    if isinstance(value, str) and value.endswith(".0"):
        return f"{_part(int(value[:-2]), n, of)}.0"
    return (value + of - 1 - n) // of if isinstance(value, int) and not isinstance(value, bool) else value
