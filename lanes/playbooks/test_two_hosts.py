"""G2 and G3 whole on two hosts, through the shipped playbooks: the load generator on one, the engine on the other, judged from what both bring.

The figures are those of a busy machine and decide nothing here; that all evidence is there, and that the claims hold which rest on the engine's
host, does not depend on them. Two to three minutes.
"""

import json
import os
import signal
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.attempts.models import Attempt
from app.engagements.models import Engagement
from app.engine.attend_key import key_of
from app.evidence.models import EvidenceFile
from app.kit.db import read_session, write_session
from gates import g2_baseline, g3_main, g4_soak
from gates.judge import judge
from gates.model import StepKind, StepSpec
from gates.plan import Plan, parse_plan
from gates.steps import ATTEND_PACK, RUN_PACK
from tests.bundles.evidence import Evidence
from tests.bundles.truth import merged
from tests.engine_kit import drive, ended, make_attempt
from tests.integration.playbook_lab import ATTEMPT, PlaybookLab, playbook_lab
from tests.ports import free_port
from tests.scenes import demo_plan

CELLS = {"checkpoint": {"bytes": 1 << 20}, "tier_read": {"bytes": 1 << 20, "threads": 2}}
SMALL = {
    "cells": list(CELLS),
    "tiers": [2, 4],
    "requests_per_run": {"min": 20, "per_concurrency": 5},
    "context_tokens": 8192,
    "warmup_requests": 2,
    "identity_repeats": 4,
}
THERE = ("hbm_cold", "page_cache_cold", "engine_restarted_cold", "external_hits", "device_bytes", "store_complete", "equal_work", "failures")


def plan() -> Plan:
    tiers = {"g3": {"ttft_p50_drop_min": {"tiers": [2, 4]}, "throughput_gain_band": {"tiers": [2, 4]}}, "g4": {"tier": 4}}
    short = {"g4": {"duration": "24 h", "leak": {"warmup": "4 h"}}}  # 20 s of this machine's clock
    busy = {"validity": {"littles_law_max": "0.30"}}  # what a busy machine's pauses take from the load is not asked here
    return parse_plan(merged(demo_plan(), {"workload": SMALL}, tiers, short, busy))


def two_hosts(made: PlaybookLab) -> PlaybookLab:
    """Add a load generator and an engine host, whose GPU cache is smaller than what is stored: the tier has to serve."""
    made.add("gpu01", qg_attend={"address": "127.0.0.2", "port": free_port()})
    made.add("load01")
    made.members = {"engine": ["gpu01"], "loadgen": ["load01"], "attended": ["gpu01"]}
    return made


@pytest.fixture(scope="module")
def lab() -> Iterator[PlaybookLab]:
    """Two hosts, deployed."""
    with playbook_lab() as made:
        two_hosts(made)
        done = made.play("deploy.yml", made.variables({"key": "deploy"}))
        assert done.rc == 0, done.output
        assert not (Path(made.hosts["load01"]["qg_root"]) / "engine").exists()  # it needs none
        (made.staging / "gpu01" / "pack.tar").rename(made.staging / "gpu01" / "deploy.tar")
        yield made


def variables(lab: PlaybookLab, step: StepSpec, fence: int, gate: str) -> dict[str, Any]:
    given = {"key": step.key, "timeout_s": step.timeout_s, **step.params}
    known = lab.variables(given, attempt={"fence": fence, "gate": gate, "id": f"{ATTEMPT}-{gate.lower()}"}, site={"cells": CELLS})
    known["site"]["engine"]["physics"]["hbm_tokens"] = 65536
    job = f"{ATTEMPT}-{gate.lower()}-{step.key}"
    return {**known, "plan": json.loads(plan().canonical()), "step": given, "job": {"id": job, "offsets": {}, "attend_key": "7c" * 32}}


def measured(lab: PlaybookLab, gate: str, steps: tuple[StepSpec, ...], fence: int) -> Evidence:
    """Run the jobs of a gate one after another and return what they brought."""
    found = Evidence(gate, plan(), simulated=True)
    found.attempt["id"] = f"{ATTEMPT}-{gate.lower()}"
    inputs = {"hosts": {"engine": ["gpu01"], "loadgen": ["load01"], "storage": []}, "simulated": True, "g2_baseline": None, "injections": []}
    found.files["evidence/inputs.json"] = json.dumps({"schema": 1, "rig_causes": [], "interruption": None, **inputs}).encode()
    for step in (step for step in steps if step.kind is StepKind.JOB):
        known = variables(lab, step, fence, gate)
        started = lab.play("job_start.yml", known)
        assert started.rc == 0, started.output
        assert {host: reply["state"] for host, reply in started.replies.items()} == {"gpu01": "started", "load01": "started"}
        assert "7c" * 32 not in started.output
        for host in ("load01", "gpu01"):
            assert lab.wait(Path(lab.hosts[host]["qg_root"]), known["job"]["id"])["outcome"] == "done"
        collected = lab.play("job_collect.yml", known)
        assert {host: reply["packed"] for host, reply in collected.replies.items()} == {"gpu01": True, "load01": True}, collected.output
        found.files |= packs_of(lab, step.key, ("load01", "gpu01"))
    return found


def packs_of(lab: PlaybookLab, step: str, hosts: Sequence[str], pack: str = "pack.tar") -> dict[str, bytes]:
    """Return the files that these hosts brought of a step, by their paths in a bundle."""
    found = {}
    for host in hosts:
        with tarfile.open(lab.staging / host / pack) as tar:
            for member in tar:
                found[f"evidence/{step}/{host}/{member.name}"] = tar.extractfile(member).read()  # type: ignore[union-attr]
    return found


def test_a_soak_of_two_hosts_brings_every_sample_of_the_engines_host_and_all_evidence(lab: PlaybookLab) -> None:
    document = judge(measured(lab, "G4", g4_soak.steps(plan()), 12).bundle())
    assert check(document, "g4.evidence")["verdict"] == "pass", check(document, "g4.evidence")["reason"]
    assert check(document, "g4.engine_restarts")["verdict"] == "pass", check(document, "g4.engine_restarts")["reason"]
    holds(document)


def check(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in document["checks"] if row["id"] == name)


def test_g2_and_g3_of_two_hosts_bring_all_evidence_and_prove_what_rests_on_the_engines_host(lab: PlaybookLab) -> None:
    deployed = packs_of(lab, "deploy", ("gpu01",), "deploy.tar")
    g2 = measured(lab, "G2", g2_baseline.steps(plan()), 13)
    g2.files |= deployed
    document = judge(g2.bundle())
    assert check(document, "g2.evidence")["verdict"] == "pass", check(document, "g2.evidence")["reason"]
    holds(document)

    g3 = measured(lab, "G3", g3_main.steps(plan()), 14)
    document = judge(g3.bundle())
    assert check(document, "g3.evidence")["verdict"] == "pass", check(document, "g3.evidence")["reason"]
    holds(document)
    cells = [json.loads(line) for line in g3.files["evidence/run-2/load01/cells.jsonl"].splitlines()]
    assert [(row["cell"], row["cold"], row["on"]["host"]) for row in cells] == [("checkpoint", True, "gpu01"), ("tier_read", True, "gpu01")], cells

    one_host = replace(g3, files={**g3.files})
    one_host.inputs(lambda d: d["hosts"].update(engine=["load01"]))
    assert judge(one_host.bundle())["verdict"] not in ("pass", "conditional")  # the same rows of a host that the inventory does not name
    without = replace(g3, files={path: data for path, data in g3.files.items() if "/gpu01/" not in path})
    told = judge(without.bundle())
    assert (told["verdict"], check(told, "g3.evidence")["verdict"]) != ("pass", "pass")
    assert told["verdict"] not in ("pass", "conditional")


def holds(document: dict[str, Any]) -> None:
    """See that every claim holds that rests on the engine hosts."""
    wrong = [row for row in document["claims"] if row["claim"] in THERE and row["status"] not in ("holds", "not_applicable")]
    assert not wrong, [(row["claim"], row["arm"], row["reason"]["en"]) for row in wrong]


def test_the_service_starts_asks_and_collects_both_hosts_and_no_event_shows_their_key(state: Path) -> None:
    with playbook_lab() as own:
        two_hosts(own)
        hosts: dict[str, Any] = {
            "gpu01": {"groups": ["engine"], "attend": own.hosts["gpu01"]["qg_attend"]},
            "load01": {"groups": ["loadgen"]},
        }
        hosts = {name: {**host, "connection": "local", "root": own.hosts[name]["qg_root"]} for name, host in hosts.items()}
        steps = [step for step in g2_baseline.steps(plan()) if step.key in ("deploy", "run-1")]
        attempt_id = make_attempt(*steps, hosts=hosts)
        with write_session() as s:
            engagement = s.get_one(Engagement, s.get_one(Attempt, attempt_id).engagement_id)
            engagement.targets = {**own.variables()["site"], "cells": CELLS, **engagement.targets}
        attempt = drive(attempt_id, until=ended)
        assert attempt.status == "finished", attempt.problem
    with read_session() as s:
        brought = set(s.scalars(select(EvidenceFile.path).where(EvidenceFile.attempt_id == attempt_id)))
    wanted = {("load01", name) for name in RUN_PACK} | {("gpu01", name) for name in ATTEND_PACK}
    assert {f"evidence/run-1/{host}/{name}" for host, name in wanted} <= brought
    key = key_of(f"{attempt_id}-run-1").encode()
    assert not [path for path in state.rglob("*") if path.is_file() and key in path.read_bytes()]


def long_job(lab: PlaybookLab, key: str, fence: int) -> dict[str, Any]:
    given = {"key": key, "store": False, "canary": False, "arm": "recompute", "tiers": [{"tier": 2, "requests": 4000}]}
    known = lab.variables(given, attempt={"fence": fence})
    known["job"] = {"id": f"{ATTEMPT}-{key}", "offsets": {}, "attend_key": "7c" * 32}
    started = lab.play("job_start.yml", known)
    assert started.rc == 0, started.output
    return known


def test_a_second_start_adopts_and_stopping_ends_driver_attendant_and_engine(lab: PlaybookLab) -> None:
    known = long_job(lab, "long", 20)
    again = lab.play("job_start.yml", {**known, "job": {**known["job"], "attend_key": "8d" * 32}})  # another node's
    assert {host: reply["state"] for host, reply in again.replies.items()} == {"gpu01": "adopted", "load01": "adopted"}, again.output
    assert again.changed == {"gpu01": 0, "load01": 0}
    stopped = lab.play("stop.yml", known)
    assert stopped.rc == 0, stopped.output
    assert {host: (reply["state"], reply["could_not_stop"]) for host, reply in stopped.replies.items()} == {
        "gpu01": ("stopped", []),
        "load01": ("stopped", []),
    }
    assert [job["job"] for job in stopped.replies["gpu01"]["jobs"]] in ([f"{ATTEMPT}-long"], [])  # its driver's goodbye may have ended it first
    assert not (Path(lab.hosts["gpu01"]["qg_root"]) / "engine" / "engine.pid").exists()


def test_the_next_job_ends_an_attendant_whose_driver_is_gone_before_that_one_can_end_the_engine(lab: PlaybookLab) -> None:
    known = long_job(lab, "gone", 21)
    roots = {host: Path(lab.hosts[host]["qg_root"]) for host in ("load01", "gpu01")}
    folder = roots["load01"] / "jobs" / known["job"]["id"]
    os.kill(json.loads((folder / "started").read_text())["pid"], signal.SIGKILL)
    after = long_job(lab, "next", 22)
    assert json.loads((roots["gpu01"] / "jobs" / known["job"]["id"] / "exit.json").read_text())["outcome"] == "stopped"
    assert not (roots["gpu01"] / "jobs" / after["job"]["id"] / "exit.json").exists()
    removed = lab.play("remove.yml", after)
    assert removed.rc == 0, removed.output
    assert not any(root.exists() for root in roots.values())
