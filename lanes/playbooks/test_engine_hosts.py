"""Two engine hosts behind one load generator, through the shipped playbooks: measured in one window, judged host by host.

The figures are those of a busy machine and decide nothing here. Two to three minutes.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gates import g2_baseline, g4_soak
from gates.judge import judge
from gates.model import StepKind, StepSpec
from gates.plan import Plan, parse_plan
from lanes.playbooks.test_two_hosts import CELLS, check, holds, packs_of
from lanes.playbooks.test_two_hosts import plan as plan_of_one
from tests.bundles.evidence import Evidence
from tests.bundles.truth import merged
from tests.integration.playbook_lab import ATTEMPT, PlaybookLab, playbook_lab
from tests.ports import free_port

ENGINES = {"gpu01": "127.0.0.2", "gpu02": "127.0.0.3"}
HOSTS = ("load01", *ENGINES)
KEY = "7c" * 32


def plan() -> Plan:
    return parse_plan(merged(plan_of_one().data, {"platform": {"layout": {"instances": len(ENGINES)}}}))


@pytest.fixture(scope="module")
def lab() -> Iterator[PlaybookLab]:
    """A load generator and two engine hosts, deployed."""
    with playbook_lab() as made:
        for name, address in ENGINES.items():
            made.add(name, qg_attend={"address": address, "port": free_port()})
        made.add("load01")
        made.members = {"engine": list(ENGINES), "loadgen": ["load01"], "attended": list(ENGINES)}
        done = made.play("deploy.yml", made.variables({"key": "deploy"}))
        assert done.rc == 0, done.output
        for name in ENGINES:
            (made.staging / name / "pack.tar").rename(made.staging / name / "deploy.tar")
        yield made


def variables(lab: PlaybookLab, step: StepSpec, attempt: str, fence: int, **engine: Any) -> dict[str, Any]:
    given = {"key": step.key, "timeout_s": step.timeout_s, **step.params}
    gate = "G4" if step.params["kind"] == "soak" else "G2"
    known = lab.variables(given, attempt={"fence": fence, "gate": gate, "id": attempt}, site={"cells": CELLS})
    known["site"]["engine"]["physics"]["hbm_tokens"] = 65536
    known["site"]["engine"].update(engine)
    return {**known, "plan": json.loads(plan().canonical()), "step": given, "job": {"id": f"{attempt}-{step.key}", "offsets": {}, "attend_key": KEY}}


def runs() -> tuple[StepSpec, ...]:
    return tuple(step for step in g2_baseline.steps(plan()) if step.kind is StepKind.JOB)


def started(lab: PlaybookLab, step: StepSpec, attempt: str, fence: int, **engine: Any) -> dict[str, Any]:
    known = variables(lab, step, attempt, fence, **engine)
    done = lab.play("job_start.yml", known)
    assert done.rc == 0, done.output
    assert {host: reply["state"] for host, reply in done.replies.items()} == dict.fromkeys(HOSTS, "started")
    assert KEY not in done.output
    return known


def evidence_of(attempt: str, gate: str = "G2") -> Evidence:
    found = Evidence(gate, plan(), simulated=True)
    found.attempt["id"] = attempt
    hosts = {"engine": list(ENGINES), "loadgen": ["load01"], "storage": []}
    inputs = {"hosts": hosts, "simulated": True, "g2_baseline": None, "injections": [], "schema": 1, "rig_causes": [], "interruption": None}
    found.files["evidence/inputs.json"] = json.dumps(inputs).encode()
    return found


def collected(lab: PlaybookLab, found: Evidence, step: StepSpec, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Wait for all hosts of a job, add what they bring, and return how each ended."""
    ends = {host: lab.wait(Path(lab.hosts[host]["qg_root"]), known["job"]["id"]) for host in HOSTS}
    done = lab.play("job_collect.yml", known)
    assert {host: reply["packed"] for host, reply in done.replies.items()} == dict.fromkeys(HOSTS, True), done.output
    found.files |= packs_of(lab, step.key, HOSTS)
    return ends


def kv_of(lab: PlaybookLab, host: str) -> Path:
    return Path(lab.hosts[host]["qg_root"]) / "kv"


def rows(found: Evidence, step: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in found.files[f"evidence/{step}/load01/{name}"].decode().splitlines()]


def test_two_engine_hosts_share_a_load_in_one_window_and_each_bears_out_its_part(lab: PlaybookLab) -> None:
    attempt = f"{ATTEMPT}-whole"
    found = evidence_of(attempt)
    for host in ENGINES:
        found.files |= packs_of(lab, "deploy", [host], "deploy.tar")
    for step in runs():
        ends = collected(lab, found, step, started(lab, step, attempt, 30))
        assert {end["outcome"] for end in ends.values()} == {"done"}, ends
    measured = [r for r in rows(found, "run-1", "records.jsonl") if r["phase"] == "measure"]
    for tier in (2, 4):
        own = {host: [r for r in measured if (r["host"], r["tier"]) == (host, tier)] for host in ENGINES}
        assert len({len(requests) for requests in own.values()}) == 1
        window = [(min(r["sent_ns"] for r in requests), max(r["end_ns"] for r in requests)) for requests in own.values()]
        assert max(begin for begin, _ in window) < min(end for _, end in window)  # side by side, not one after the other
    assert {row["on"]["host"] for row in rows(found, "run-1", "counters.jsonl")} == set(ENGINES)
    assert len({row["engine"]["pid"] for row in rows(found, "run-1", "coldness.jsonl") if row["when"] == "after_cool"}) == 2
    cells = rows(found, "run-1", "cells.jsonl")
    assert [(row["cell"], row["host"], row["on"]["host"], row["cold"]) for row in cells] == [(kind, h, h, True) for kind in CELLS for h in ENGINES]
    document = judge(found.bundle())
    assert check(document, "g2.evidence")["verdict"] == "pass", check(document, "g2.evidence")["reason"]
    holds(document)

    for host in ENGINES:  # neither can be left out
        found_without = Evidence(
            "G2", plan(), files={p: d for p, d in found.files.items() if f"/{host}/" not in p}, attempt=found.attempt, simulated=True
        )
        told = judge(found_without.bundle())
        assert told["verdict"] not in ("pass", "conditional")
        assert host in check(told, "g2.evidence")["reason"]["en"]
    alone = Evidence("G2", plan(), files=dict(found.files), attempt=found.attempt, simulated=True)
    alone.inputs(lambda data: data["hosts"].update(engine=["gpu01"]))
    assert judge(alone.bundle())["verdict"] not in ("pass", "conditional")


def test_engines_that_are_reset_from_afar_go_on_as_the_same_processes_and_each_host_bears_it_out(lab: PlaybookLab) -> None:
    attempt, step = f"{ATTEMPT}-reset", runs()[0]
    found = evidence_of(attempt)
    ends = collected(lab, found, step, started(lab, step, attempt, 33, cool="reset"))
    assert {end["outcome"] for end in ends.values()} == {"done"}, ends
    cooled = [row for row in rows(found, step.key, "coldness.jsonl") if row["when"] == "after_cool"]
    assert {row["on"]["host"]: (row["reset"]["on"]["host"], row["reset"]["success"]) for row in cooled} == {h: (h, True) for h in ENGINES}
    assert all({key: row["engine"][key] for key in ("pid", "start_ticks")} == row["engine_before"] for row in cooled)
    document = judge(found.bundle())
    told = next(row for row in document["claims"] if (row["claim"], row["arm"]) == ("engine_restarted_cold", "baseline"))
    assert "run-1" not in told["reason"]["en"], told["reason"]["en"]  # the other runs are not there
    assert not [host for host in ENGINES if f"account of {host}" in check(document, "g2.evidence")["reason"]["en"]]


def test_a_soak_of_two_engine_hosts_is_watched_on_each_and_brings_all_evidence(lab: PlaybookLab) -> None:
    attempt, step = f"{ATTEMPT}-soak", next(step for step in g4_soak.steps(plan()) if step.kind is StepKind.JOB)
    found = evidence_of(attempt, "G4")
    ends = collected(lab, found, step, started(lab, step, attempt, 34))
    assert {end["outcome"] for end in ends.values()} == {"done"}, ends
    sampled = [row["on"]["host"] for row in rows(found, "soak", "telemetry.jsonl")]
    assert min(sampled.count(host) for host in ENGINES) > 4
    asked = [row for row in rows(found, "soak", "records.jsonl") if row["phase"] == "soak"]
    assert {(row["prompt"] % 2, row["host"]) for row in asked} == set(enumerate(ENGINES))
    assert {row["detail"]["host"] for row in rows(found, "soak", "events.jsonl") if row["kind"] == "sentinel"} == set(ENGINES)
    document = judge(found.bundle())
    assert check(document, "g4.evidence")["verdict"] == "pass", check(document, "g4.evidence")["reason"]
    accounted = next(row for row in document["claims"] if row["claim"] == "requests_accounted")
    assert accounted["status"] == "holds", accounted["reason"]["en"]
    holds(document)

    without = {path: data for path, data in found.files.items() if "/gpu02/" not in path}
    told = judge(Evidence("G4", plan(), files=without, attempt=found.attempt, simulated=True).bundle())
    assert told["verdict"] not in ("pass", "conditional")
    assert "gpu02" in check(told, "g4.evidence")["reason"]["en"]


def kept_warm(folder: Path, ended: threading.Event) -> None:
    """Read whatever lies below a folder again and again, as a backup or an indexer would."""
    while not ended.wait(0.01):
        for path in folder.rglob("*"):
            if path.is_file():
                try:
                    path.read_bytes()
                except OSError:
                    continue


def test_one_host_whose_files_are_warm_breaches_the_claim_by_its_name_and_is_no_pass(lab: PlaybookLab) -> None:
    attempt, step = f"{ATTEMPT}-warm", runs()[0]
    found, ended = evidence_of(attempt), threading.Event()
    known = started(lab, step, attempt, 35)
    reader = threading.Thread(target=kept_warm, args=(kv_of(lab, "gpu02"), ended), daemon=True)
    reader.start()
    try:
        collected(lab, found, step, known)
    finally:
        ended.set()
        reader.join(10)
    document = judge(found.bundle())
    told = next(row for row in document["claims"] if (row["claim"], row["arm"]) == ("page_cache_cold", "baseline"))
    assert told["status"] == "breached", told["reason"]["en"]
    assert document["verdict"] not in ("pass", "conditional")
    assert ", gpu02: " in told["reason"]["en"]


def test_a_run_whose_second_engine_host_loses_its_attendant_ends_by_its_name_and_is_no_pass(lab: PlaybookLab) -> None:
    attempt, step = f"{ATTEMPT}-dead", runs()[0]
    found = evidence_of(attempt)
    known = variables(lab, step, attempt, 36)
    lost = lab.hosts["gpu02"]["qg_attend"]
    lab.hosts["gpu02"]["qg_attend"] = {**lost, "lost_s": 3.0}
    try:
        done = lab.play("job_start.yml", known)
    finally:
        lab.hosts["gpu02"]["qg_attend"] = lost
    assert done.rc == 0, done.output
    jobs = {host: Path(lab.hosts[host]["qg_root"]) / "jobs" / known["job"]["id"] for host in HOSTS}
    phases, end = jobs["load01"] / "phases.jsonl", time.monotonic() + 120
    while not (phases.exists() and '"cool"' in phases.read_text()):
        assert time.monotonic() < end, "the job did not come to cool its engines"
        time.sleep(0.05)
    os.kill(json.loads((jobs["gpu02"] / "started").read_text())["pid"], signal.SIGKILL)
    told = lab.wait(jobs["load01"].parents[1], known["job"]["id"])
    assert (told["outcome"], told["error"]["kind"]) == ("error", "attendant")
    assert "The attendant on gpu02" in told["error"]["message"]
    assert lab.wait(jobs["gpu01"].parents[1], known["job"]["id"])["error"]["kind"] == "served"
    assert lab.play("job_collect.yml", known).rc == 0
    found.files |= packs_of(lab, step.key, HOSTS)
    document = judge(found.bundle())
    assert document["verdict"] not in ("pass", "conditional")
    assert "gpu02" in check(document, "g2.evidence")["reason"]["en"]
