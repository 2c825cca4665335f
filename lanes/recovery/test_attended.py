"""A soak of two hosts, and what is left when its driver or its attendant is killed: nothing that runs, and nothing that could pass."""

import json
import os
import signal

import pytest

from lanes.probe.test_probe_attended import PHASES, read_json, two_hosts
from tests.unit.probe.kit import lines, probe, processes_with, wait_for


@pytest.fixture
def two():
    with two_hosts() as made:
        yield made


def soak(two, job, **parts):
    given = {"seconds": 60, "tier": 4, "telemetry_s": 0.2, "rotate_prefixes": 12, "request_cap": None}
    return two.start(job, kind="soak", phases={**PHASES, "canary": False, "chunk_offsets": False}, soak={**given, **parts.pop("soak", {})}, **parts)


def under_load(two, job):
    beat = two.folder / "here" / "jobs" / job / "heartbeat.json"
    wait_for(lambda: (read_json(beat) or {}).get("phase") == "soak", what="the load")


def test_a_short_soak_brings_samples_of_the_engines_host_and_its_planned_disturbance(two):
    mark = two.folder / "disturbed"
    planned = [{"label": "touch", "action": "touch", "at_s": 0.5, "seconds": 0.2, "start": ["touch", str(mark)], "stop": ["rm", str(mark)]}]
    job = soak(two, "soak", soak={"seconds": 2, "injections": planned, "kernel_log": True})
    end = two.ended("here", "soak")["exit"]
    assert end["outcome"] == "done", (end, (job.here / "job.log").read_text())
    samples = lines(job.here / "telemetry.jsonl")
    assert len(samples) >= 6
    assert {s["on"]["host"] for s in samples} == {"gpu01"}
    assert samples[-1]["engine"]["alive"] is True
    assert samples[-1]["kv_dir_bytes"] > 0
    kernel = lines(job.here / "kernel.jsonl")  # of both hosts, each with its begin and its end, whether it may be read here or not
    for host in ("gpu01", "load01"):
        mine = [row for row in kernel if row["host"] == host]
        assert [row["begins"] for row in mine] == [True] + [False] * (len(mine) - 1)
        assert len(mine) >= 2
        assert all(row["joined"] or row["problem"] for row in mine)
        assert all(bool(row.get("on")) == (host == "gpu01") for row in mine)
    injected = next(e["detail"] for e in lines(job.here / "events.jsonl") if e["kind"] == "injection")
    assert (injected["begin_exit"], injected["end_exit"], mark.exists()) == (0, 0, False)
    assert [row["verb"] for row in lines(job.there / "asked.jsonl")].count("sample") == len(samples)
    assert two.ended("there", "soak")["exit"]["outcome"] == "done"


def test_a_driver_that_is_killed_leaves_no_attendant_and_no_engine_behind(two):
    job = soak(two, "lost", silence_s=1.0)
    under_load(two, "lost")
    os.kill(json.loads((job.here / "started").read_text())["pid"], signal.SIGKILL)
    assert two.ended("there", "lost")["exit"]["error"]["kind"] == "silence"
    assert two.ended("here", "lost")["state"] == "dead"  # no exit.json: never a pass
    assert probe(two.pyz, "engine", "status", "--spec", two.engine_path)["state"] == "stopped"
    assert processes_with(str(two.folder)) == []


def test_an_attendant_that_is_killed_ends_the_job_by_name_and_its_evidence_is_none(two):
    job = soak(two, "alone", lost_s=0.5)
    under_load(two, "alone")
    os.kill(json.loads((job.there / "started").read_text())["pid"], signal.SIGKILL)
    end = two.ended("here", "alone")["exit"]
    assert (end["outcome"], end["error"]["kind"]) == ("error", "attendant")
    assert two.state("there", "alone")["state"] == "dead"
    probe(two.pyz, "engine", "stop", "--spec", two.engine_path)  # as the stop playbook does
    assert processes_with(str(two.folder)) == []
