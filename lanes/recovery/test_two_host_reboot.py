"""A soak of two hosts of which one reboots: the real probe on both ends goes on beside the other, and the judge follows the boots of both."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gates.g4.timeline import timeline
from gates.judge import judge
from gates.readers.run_pack import read_pack
from gates.steps import SOAK_PACK
from lanes.probe.test_probe_attended import PHASES, Two, read_json
from lanes.recovery.test_soak_reboot import IN_A_BOOT
from tests.bundles import g4_evidence, soak_plan
from tests.bundles.evidence import ATTEMPT, SEED
from tests.unit.probe.kit import SOURCES, grown, kill, lines, probe, processes_with, wait_for, workplace, write

JOB = f"{ATTEMPT}-soak"


class Reboots(Two):
    """Two hosts that can be rebooted, each by itself: what runs on it is killed, and its boot id is another one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.programs = {root: folder / f"{root}.pyz" for root in ("here", "there")}
        for root, path in self.programs.items():
            path.write_text(IN_A_BOOT.format(sources=str(SOURCES), boot=str(folder / f"{root}.boot"), me=str(path)))
            (folder / f"{root}.boot").write_text(f"{root}-1")
        text = json.dumps(self.engine["control"]).replace(str(self.pyz), str(self.programs["there"]))
        self.engine["control"] = json.loads(text)

    def ask(self, root: str, verb: str, *words: Any) -> Any:
        return probe(self.programs[root], "job", verb, "--root", self.folder / root, *words)

    def reboot(self, root: str, boot: str) -> None:
        engine = processes_with(str(self.folder / "lab.json")) if root == "there" else []
        for pid in (*processes_with(str(self.folder / root / "jobs")), *engine):
            kill(pid)
        wait_for(lambda: self.state(root, JOB)["state"] == "dead", what="the death")
        (self.folder / f"{root}.boot").write_text(boot)

    def under_load(self, more: int = 40) -> None:
        """Wait for requests and for a sample beside them: a boot of which nobody took a sample is none to the judge."""
        folder = self.folder / "here" / "jobs" / JOB
        wait_for(lambda: (read_json(folder / "heartbeat.json") or {}).get("phase") == "soak", what="the load")
        grown(folder / "records.jsonl", more)
        grown(folder / "telemetry.jsonl", 1)

    def soak(self, **parts: Any) -> Any:
        given = {"seconds": 3, "tier": 4, "telemetry_s": 0.2, "rotate_prefixes": 12, "request_cap": None, **parts.pop("soak", {})}
        told = {"phases": {**PHASES, "canary": False, "chunk_offsets": False}, "arm": {"engine.tier.path": "kv"}}
        return self.start(JOB, kind="soak", workload={"seed": SEED, "set": "g4"}, soak=given, **told, **parts)


@pytest.fixture
def two() -> Iterator[Reboots]:
    with workplace("two-") as folder:
        yield Reboots(folder)


def judged(two: Reboots, event: str, *, approved: bool) -> tuple[Any, Any]:
    """Judge what both hosts bring; return the check of the evidence and the soak's timeline."""
    plan = soak_plan({"rig": {"time_scale": "28800"}, "workload": {"context_tokens": 512, "suffix_tokens": 16, "output_tokens": 8}})
    evidence = g4_evidence(plan=soak_plan(), hours=0.1)
    evidence.plan = plan
    for path in [path for path in evidence.files if path.startswith("evidence/soak/")]:
        del evidence.files[path]
    for root, host in (("here", "load01"), ("there", "gpu01")):
        tar = two.folder / f"{root}.tar"
        probe(two.programs[root], "pack", "--root", two.folder / root, "--job", JOB, "--out", tar)
        with tarfile.open(tar) as packed:
            for member in packed:
                evidence.files[f"evidence/soak/{host}/{member.name}"] = packed.extractfile(member).read()  # type: ignore[union-attr]
    row = {"event": event, "kind": "power", "text": "机房断电", "approved": True, "missing": []}
    evidence.inputs(lambda d: d["hosts"].update(engine=["gpu01"], loadgen=["load01"]))
    evidence.inputs(lambda d: d["rig_causes"].append(row) if approved else None)
    bundle = evidence.bundle()
    pack = read_pack(bundle, "soak", "load01", SOAK_PACK, plan.g4.fatal_counters)
    assert pack.records is not None
    assert pack.samples is not None
    line = timeline(plan, pack.records, pack.samples, bundle.inputs, ())
    return next(c for c in judge(bundle)["checks"] if c["id"] == "g4.evidence"), line


def ended_well(two: Reboots, event: str, boots: list[str]) -> None:
    """See that the soak went on to its end, and that the judge takes it for what it was."""
    ends = {root: two.ended(root, JOB)["exit"] for root in ("here", "there")}
    here, there = (two.folder / root / "jobs" / JOB for root in ("here", "there"))
    assert {root: end["outcome"] for root, end in ends.items()} == {"here": "done", "there": "done"}, (ends, (here / "job.log").read_text())
    for name in ("records.jsonl", "telemetry.jsonl", "events.jsonl", "phases.jsonl"):
        assert [row["seq"] for row in lines(here / name)] == list(range(len(lines(here / name)))), name
    assert list(dict.fromkeys(row["boot_id"] for row in lines(here / "telemetry.jsonl"))) == boots
    assert [p["phase"] for p in lines(here / "phases.jsonl") if p["phase"] in ("store", "cool")] == ["store", "cool"]
    assert [row["seq"] for row in lines(there / "asked.jsonl")] == list(range(len(lines(there / "asked.jsonl"))))
    for approved in (False, True):
        whole, line = judged(two, event, approved=approved)
        assert whole["verdict"] == "pass", whole["reason"]["en"]
        assert [(b.event, b.approved) for b in line.breaks if b.kind == "reboot"] == [(event, approved)]
    second = [r for r in lines(here / "records.jsonl") if r["phase"] == "soak" and r["boot_id"] == boots[-1]]
    assert max(r["end_ns"] for r in second) - min(r["sent_ns"] for r in second) >= 3_000_000_000  # the whole length anew


def test_a_soak_goes_on_beside_the_engines_host_when_that_rebooted_and_not_before(two: Reboots) -> None:
    two.soak(lost_s=3.0, silence_s=60.0)
    two.under_load()
    two.reboot("there", "there-2")
    end = two.ended("here", JOB)
    assert (end["exit"]["error"]["kind"], end["parted"], end["rebooted"]) == ("attendant", True, False)
    there = two.state("there", JOB)
    assert (there["state"], there["rebooted"]) == ("dead", True)
    assert two.order() == {"there": "resumed", "here": "resumed"}
    ended_well(two, "boot:here-1+there-2", ["here-1+there-1", "here-1+there-2"])
    assert two.order() == {"there": "adopted", "here": "adopted"}


def test_a_soak_goes_on_beside_an_attendant_that_waits_when_the_load_generator_rebooted(two: Reboots) -> None:
    mark = two.folder / "disturbed"
    planned = [{"label": "touch", "action": "touch", "at_s": 0.1, "seconds": 60, "start": ["touch", str(mark)], "stop": ["rm", str(mark)]}]
    two.soak(silence_s=60.0, soak={"injections": planned})
    two.under_load()
    wait_for(mark.exists, what="the disturbance")
    two.reboot("here", "here-2")
    assert two.state("there", JOB)["state"] == "running"
    assert two.order() == {"there": "adopted", "here": "resumed"}
    ended_well(two, "boot:here-2+there-1", ["here-1+there-1", "here-2+there-1"])
    undone = [e["detail"] for e in lines(two.folder / "here" / "jobs" / JOB / "events.jsonl") if e["kind"] == "injection_undone"]
    assert (undone, mark.exists()) == ([{"label": "touch", "end_exit": 0}], False)


def test_an_attendant_that_gave_up_a_driver_whose_host_rebooted_is_started_again_and_the_engine_with_it(two: Reboots) -> None:
    two.soak(silence_s=5.0)
    two.under_load()
    two.reboot("here", "here-2")
    end = two.ended("there", JOB)
    assert (end["exit"]["error"]["kind"], end["parted"]) == ("silence", True)
    assert two.order() == {"there": "resumed", "here": "resumed"}
    ended_well(two, "boot:here-2+there-1", ["here-1+there-1", "here-2+there-1"])


def test_within_one_boot_of_both_hosts_a_soak_that_lost_its_attendant_never_goes_on(two: Reboots) -> None:
    job = two.soak(lost_s=3.0)
    two.under_load()
    for pid in processes_with(str(two.folder / "there" / "jobs")):
        kill(pid)
    assert two.ended("here", JOB)["exit"]["error"]["kind"] == "attendant"
    there = two.state("there", JOB)
    assert (there["state"], there["rebooted"], there["parted"]) == ("dead", False, False)
    measured = (job.here / "records.jsonl").read_bytes()
    assert two.order() == {"there": "adopted", "here": "resumed"}  # which nobody orders: neither host says that it rebooted
    end = two.ended("here", JOB)["exit"]
    assert (end["outcome"], end["error"]["kind"], (job.here / "records.jsonl").read_bytes()) == ("error", "attendant", measured)


def test_nothing_goes_on_while_the_kv_of_a_rebooted_engine_host_is_not_mounted(two: Reboots) -> None:
    two.soak(lost_s=3.0)
    two.under_load()
    two.reboot("there", "there-2")
    two.ended("here", JOB)
    (two.folder / "kv").rename(two.folder / "kv.away")
    (two.folder / "kv").mkdir()
    path = write(two.folder / "order.json", two.orders["there"])
    done = probe(two.programs["there"], "job", "start", "--root", two.folder / "there", "--spec", path, expect=3)
    assert "Mount its file system again" in done.stderr
    assert two.state("there", JOB)["rebooted"] is True
