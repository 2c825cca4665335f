"""A soak whose host reboots: the real probe on the simulated engine goes on in the other boot, and the judge's clock and the service follow it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.attempts.models import Step
from app.engine.advance import advance
from app.kit.db import database_now, write_session
from app.settings import settings
from gates.g4.timeline import timeline
from gates.judge import judge
from gates.readers.run_pack import read_pack
from gates.steps import SOAK_PACK
from lanes.recovery.test_probe_soak import place, soak
from lanes.scale import seed
from tests.bundles import g4_evidence, soak_plan
from tests.bundles.evidence import HOST, SEED
from tests.engine_kit import attempt_of, steps_of
from tests.integration.test_soak_polls import SCRIPT, Hosts, hosts, let_it_be_due, poll
from tests.unit.probe.kit import SOURCES, grown, kill, lines, probe, processes_with, wait_for, write

__all__ = ["hosts", "place"]

# The probe from its sources, in the boot that a file beside it names: the kernel's own id changes at a real reboot only.
IN_A_BOOT = """import sys
sys.path.insert(0, {sources!r})
from probe import cli, clock, jobs
clock._BOOT[:] = [open({boot!r}).read()]
jobs.command = lambda _, *words: [sys.executable, "-I", "-B", {me!r}, *words]
cli.main()
"""


class Host:
    """A target that can be rebooted: what runs on it is killed, and its boot id is another one."""

    def __init__(self, place: Path) -> None:
        self.place, self.pyz, self.folder = place, place / "probe.pyz", place / "root" / "jobs" / "0193-attempt-soak"
        self.pyz.write_text(IN_A_BOOT.format(sources=str(SOURCES), boot=str(place / "boot"), me=str(self.pyz)))
        (place / "boot").write_text("boot-1")

    def ask(self, verb: str, *words: Any) -> dict[str, Any]:
        return probe(self.pyz, "job", verb, "--root", self.place / "root", *words)

    def poll(self) -> dict[str, Any]:
        return self.ask("poll", "--job", self.folder.name, "--max-bytes", 0)

    def reboot(self, name: str) -> None:
        for pid in processes_with(str(self.place)):
            kill(pid)
        wait_for(lambda: self.poll()["state"] == "dead", what="the death")
        (self.place / "boot").write_text(name)

    def under_load(self, more: int = 30) -> None:
        """Wait for requests and for a sample beside them: the judge reads the boots of both."""
        begun = len(self.records())
        wait_for(lambda: len(self.records()) >= begun + more, what="the load")
        grown(self.folder / "telemetry.jsonl", 1)

    def records(self) -> list[dict[str, Any]]:
        path = self.folder / "records.jsonl"
        whole = path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []
        return [row for row in map(json.loads, whole) if row["phase"] == "soak"]


def test_a_soak_goes_on_in_another_boot_behind_its_journals_and_the_judge_asks_for_the_cause(place: Path) -> None:
    host = Host(place)
    spec = soak(place, host.folder.name, seconds=2, request_cap=120, sentinel={"every_s": 0.2, "prefixes": 3})
    spec["workload"].update(seed=SEED, set="g4")
    order = write(place / "soak.json", spec)
    assert host.ask("start", "--spec", order)["state"] == "started"
    host.under_load()
    for pid in processes_with(str(host.folder)):  # within one boot nobody can tell a site's fault from ours
        kill(pid)
    wait_for(lambda: host.poll()["state"] == "dead", what="the death")
    assert (host.poll()["rebooted"], host.ask("start", "--spec", order)["state"]) == (False, "adopted")
    host.reboot("boot-2")
    path = host.folder / "records.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0] + b"\n"
    path.write_bytes(whole + b'{"seq":99' + b"\0" * 512 + b"\n")  # blocks that were allocated and never written
    found = host.poll()
    assert (found["state"], found["rebooted"], found["exit"], found["boots_before"]) == ("dead", True, None, 0)
    again = host.ask("start", "--spec", order)
    assert (again["state"], again["boots_before"], again["kept"]["records.jsonl"]) == ("resumed", 1, len(whole))
    assert host.ask("start", "--spec", order) == {**again, "state": "adopted"}
    end = wait_for(lambda: host.poll()["exit"], what="the end")
    assert end["outcome"] == "done", (host.folder / "job.log").read_text()
    journals = {name: lines(host.folder / name) for name in ("records.jsonl", "telemetry.jsonl", "events.jsonl", "phases.jsonl")}
    for name, rows in journals.items():
        assert [r["seq"] for r in rows] == list(range(len(rows))), name
    assert (end["records"], path.read_bytes()[: len(whole)]) == (len(journals["records.jsonl"]), whole)
    assert [p["phase"] for p in journals["phases.jsonl"]] == ["store", "cool", "warmup", "warmup", "soak"]
    assert list(dict.fromkeys(r["boot_id"] for r in journals["telemetry.jsonl"])) == ["boot-1", "boot-2"]
    kinds = [e["kind"] for e in journals["events.jsonl"] if e["boot_id"] == "boot-2"]
    assert kinds[0] == "host_rebooted"
    assert not {"engine_exit", "canary"} & set(kinds)  # what the host took along is no crash, and no prefix is new that was stored before
    packed = probe(host.pyz, "pack", "--root", place / "root", "--job", host.folder.name, "--out", place / "pack.tar")
    assert {"started", "started.1"} <= {row["path"] for row in packed["files"]}
    judged(host, approved=False)
    judged(host, approved=True)


def judged(host: Host, *, approved: bool) -> None:
    """Judge the soak's own evidence, of a plan that asks for as much: without an approved cause of the reboot nothing is concluded."""
    plan = soak_plan({"rig": {"time_scale": "28800"}, "workload": {"context_tokens": 512, "suffix_tokens": 16, "output_tokens": 8}})
    evidence = g4_evidence(plan=soak_plan(), hours=0.1)
    evidence.plan = plan
    for path in host.folder.iterdir():
        if path.suffix in (".json", ".jsonl") and path.name != "heartbeat.json":
            evidence.files[evidence.path("soak", path.name)] = path.read_bytes()
    row = {"event": "boot:boot-2", "kind": "power", "text": "机房断电", "approved": True, "missing": []}
    evidence.repack("soak").inputs(lambda d: d["rig_causes"].append(row) if approved else None)
    bundle = evidence.bundle()
    whole = next(c for c in judge(bundle)["checks"] if c["id"] == "g4.evidence")
    assert whole["verdict"] == "pass", whole["reason"]["en"]
    pack = read_pack(bundle, "soak", HOST, SOAK_PACK, plan.g4.fatal_counters)
    assert pack.records is not None
    assert pack.samples is not None
    line = timeline(plan, pack.records, pack.samples, bundle.inputs, ())
    reboots = [b for b in line.breaks if b.kind == "reboot"]
    assert [(b.event, b.approved) for b in reboots] == [("boot:boot-2", approved)]
    assert approved or "both parties approve it, the soak clock restarts there" in reboots[0].lacks.en
    second = [r for r in host.records() if r["boot_id"] == "boot-2"]  # the clock begins anew there, and is no wall clock
    assert float(line.plan_seconds) == pytest.approx((max(r["end_ns"] for r in second) - min(r["sent_ns"] for r in second)) / 1e9 * 28800)


def test_the_service_lets_a_rebooted_soak_go_on_for_its_whole_length_as_often_as_the_plan_lets_the_clock_restart(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    poll(attempt_id, hosts)
    first = steps_of(attempt_id)[0]
    reached = dict(first.offsets or {})
    assert reached["records.jsonl"] > 10
    for boots in (1, 2):
        hosts.script = {**SCRIPT, "reply": {"state": "dead", "rebooted": True, "boots_before": boots - 1}}
        poll(attempt_id, hosts)
        assert (steps_of(attempt_id)[0].status, attempt_of(attempt_id).status) == ("starting", "running")
        kept = {"records.jsonl": 10, "telemetry.jsonl": 10**9}
        hosts.script = {**SCRIPT, "reply": {"state": "resumed", "job_state": "running", "boots_before": boots, "kept": kept, "expected_s": 259200}}
        hosts.go_on()
        for _ in range(4):
            advance(attempt_id, None)
        step = steps_of(attempt_id)[0]
        assert (step.status, (step.problem or {})["code"], step.result["boots_before"]) == ("running", "rebooted", boots)
        assert (step.offsets["records.jsonl"], step.offsets["telemetry.jsonl"] <= 10**9) == (10, True)
        assert (step.expected_end_at - attempt_of(attempt_id).started_at).total_seconds() >= 259200
        assert "记录" in step.problem["zh-CN"]
    assert attempt_of(attempt_id).counted_at is not None
    hosts.script = {**SCRIPT, "reply": {"state": "dead", "rebooted": True, "boots_before": 2}}
    poll(attempt_id, hosts)
    assert steps_of(attempt_id)[0].status == "collecting"


def test_a_reboot_behind_the_last_poll_is_not_taken_for_the_end_of_the_soak(hosts: Hosts) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    poll(attempt_id, hosts)
    with write_session() as s:
        step = s.get_one(Step, steps_of(attempt_id)[0].id)
        step.expected_end_at = database_now(s) - timedelta(seconds=1)  # its evidence is asked for next, and no poll any more
    hosts.script = {**SCRIPT, "reply": {"state": "dead", "rebooted": True, "boots_before": 0}}
    let_it_be_due(attempt_id)
    advance(attempt_id, None)
    assert steps_of(attempt_id)[0].status == "collecting"
    hosts.go_on()
    for _ in range(4):
        advance(attempt_id, None)
    assert (steps_of(attempt_id)[0].status, attempt_of(attempt_id).status) == ("starting", "running")
