"""The probe under SIGKILL: of whoever starts a job, before and after the spawn, and of the job itself."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.unit.probe.kit import build, job_spec, kill, lab_engine, probe, processes_with, wait_for, write


@pytest.fixture
def place(tmp_path):
    """Give a folder with the zipapp; whatever still runs from it at the end is ended."""
    build(tmp_path)
    yield tmp_path
    for pid in processes_with(str(tmp_path)):
        kill(pid)


def jobs_running(place):
    """Return the pids of job processes (not of starters, not of calibration servers)."""
    found = []
    for pid in processes_with(str(place)):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--lock-fd" in argv:
            found.append(pid)
    return [pid for pid in found if parent_of(pid) not in found]  # a tool that a job is about to run bears its name until it is


def parent_of(pid):
    """Return the pid of a process' parent, or 0 when the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def poll(place, job, offsets=None, size=1 << 20):
    return probe(place / "probe.pyz", "job", "poll", "--root", place / "root", "--job", job, "--from", json.dumps(offsets or {}), "--max-bytes", size)


def test_a_starter_killed_at_any_moment_leads_to_exactly_one_job(place):
    spec = write(place / "spec.json", job_spec("a-run", free_port(), limits={"deadline_s": 120}))
    argv = [sys.executable, str(place / "probe.pyz"), "job", "start", "--root", str(place / "root"), "--spec", str(spec)]
    chance = random.Random(20261129)
    killed_before = killed_after = 0
    for _ in range(14):
        starter = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.03, 0.30))
        starter.kill()
        starter.wait()
        time.sleep(0.05)
        alive = jobs_running(place)
        assert len(alive) <= 1
        if alive and not killed_after:
            first = alive[0]
        killed_after += bool(alive)
        killed_before += not alive
        assert not alive or alive[0] == first  # never another one
    answer = probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", spec)
    assert answer["state"] == ("adopted" if killed_after else "started")
    assert len(wait_for(lambda: jobs_running(place), what="the job")) == 1
    probe(place / "probe.pyz", "job", "stop", "--root", place / "root", "--job", "a-run")
    assert jobs_running(place) == []


def test_a_starter_killed_before_the_spawn_leaves_nothing_and_the_next_one_starts_it(place):
    """The state that such a kill leaves: the lock file is there and free, the specification is written, nobody created `started`."""
    spec = job_spec("a-run", free_port())
    folder = place / "root" / "jobs" / "a-run"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    write(folder / "job.json", spec)
    assert poll(place, "a-run")["state"] == "absent"
    answer = probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", write(place / "spec.json", spec))
    assert answer["state"] == "started"
    assert len(wait_for(lambda: jobs_running(place), what="the job")) == 1


def test_many_starters_at_once_lead_to_one_job(place):
    spec = write(place / "spec.json", job_spec("a-run", free_port()))
    argv = [sys.executable, str(place / "probe.pyz"), "job", "start", "--root", str(place / "root"), "--spec", str(spec)]
    starters = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(5)]
    states = [json.loads(s.communicate(timeout=60)[0])["state"] for s in starters]
    assert sorted(states) == ["adopted"] * 4 + ["started"]
    wait_for(lambda: (place / "root" / "jobs" / "a-run" / "started").exists(), what="the job's start")
    assert len(jobs_running(place)) == 1


def test_a_killed_job_is_dead_and_its_journal_has_no_gap_no_repeat_and_no_torn_line_in_sight(place):
    engine, path, port = lab_engine(place, place / "probe.pyz", decode_base_s=0.005)
    probe(place / "probe.pyz", "engine", "start", "--spec", path)
    spec = job_spec("soak", port, kind="soak", engine=engine, soak={"seconds": 60, "tier": 8}, workload={"context_tokens": 64})
    probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", write(place / "spec.json", spec))
    offsets, text = {}, ""

    def fetch(size):
        nonlocal text
        found = poll(place, "soak", offsets, size)
        for name, chunk in found["chunks"].items():
            assert chunk["from"] == offsets.get(name, 0)
            offsets[name] = chunk["to"]
        text += found["chunks"].get("records.jsonl", {}).get("data", "")
        return found

    wait_for(lambda: fetch(50_000) and text.count("\n") > 200, what="200 requests")
    assert fetch(0)["state"] == "running"
    (job,) = jobs_running(place)
    kill(job)
    wait_for(lambda: poll(place, "soak")["state"] == "dead", what="the death")
    while True:
        found = fetch(100_000)
        assert (found["state"], found["exit"]) == ("dead", None)
        if all(c["from"] == c["to"] for c in found["chunks"].values()):
            break
    rows = [json.loads(line) for line in text.splitlines()]
    assert [r["seq"] for r in rows] == list(range(len(rows)))
    journal = (place / "root" / "jobs" / "soak" / "records.jsonl").read_bytes()
    assert text.encode() == journal[: journal.rfind(b"\n") + 1]
    again = probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", place / "spec.json")
    assert (again["state"], again["job_state"]) == ("adopted", "dead")  # what may have measured is never run twice
    assert jobs_running(place) == []
    assert probe(place / "probe.pyz", "engine", "status", "--spec", path)["state"] == "running"  # the engine outlives the job
    probe(place / "probe.pyz", "engine", "stop", "--spec", path)
