"""Detached jobs on the command line of the real zipapp."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.unit.probe.kit import build, environment_of, job_over, job_spec, kill, probe, processes_with, wait_for, write


@pytest.fixture
def place(tmp_path):
    """Give a folder with the zipapp; whatever still runs from it at the end is ended."""
    build(tmp_path)
    yield tmp_path
    for pid in processes_with(str(tmp_path)):
        kill(pid)


def start(place, spec, **options):
    return probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", write(place / "spec.json", spec), **options)


def poll(place, job, *more):
    return probe(place / "probe.pyz", "job", "poll", "--root", place / "root", "--job", job, *more)


def started(place, job):
    path = place / "root" / "jobs" / job / "started"
    return wait_for(lambda: json.loads(path.read_text()) if path.exists() and path.read_text() else None, what="the job's start")


def test_starting_twice_adopts_and_there_is_one_process(place):
    spec = job_spec("a-run", free_port())  # no engine there: the job lives and waits for it
    assert start(place, spec)["state"] == "started"
    pid = started(place, "a-run")["pid"]
    again = start(place, spec)
    assert (again["state"], again["job_state"]) == ("adopted", "running")
    assert started(place, "a-run")["pid"] == pid
    assert len([p for p in processes_with(str(place)) if "job run" in Path(f"/proc/{p}/cmdline").read_bytes().replace(b"\0", b" ").decode()]) == 1
    assert probe(place / "probe.pyz", "job", "stop", "--root", place / "root", "--job", "a-run")["state"] == "exited"
    found = poll(place, "a-run")
    assert found["exit"]["outcome"] == "stopped"
    assert start(place, spec)["job_state"] == "exited"  # it is not run a second time


def test_another_specification_or_an_older_fence_is_refused_in_a_sentence(place):
    spec = job_spec("a-run", free_port())
    start(place, {**spec, "fence": 5})
    other = {**spec, "fence": 5, "workload": {**spec["workload"], "seed": 99}}
    refused = start(place, other, expect=3)
    assert "another specification (workload)" in refused.stderr
    assert "older" in start(place, {**spec, "fence": 4}, expect=3).stderr
    assert start(place, {**spec, "fence": 6})["state"] == "adopted"
    assert "older" in start(place, {**spec, "fence": 5}, expect=3).stderr
    probe(place / "probe.pyz", "job", "stop", "--root", place / "root", "--job", "a-run")


def test_a_host_that_saw_a_higher_fence_starts_nothing(place):
    probe(place / "probe.pyz", "lock", "take", "--root", place / "root", "--attempt", "new", "--fence", 7)
    refused = start(place, job_spec("old-run", free_port()), expect=3)
    assert "older attempt" in refused.stderr
    assert poll(place, "old-run")["state"] == "absent"


def test_a_job_and_its_children_carry_no_marker_and_a_session_of_their_own(place):
    env = dict(os.environ, QUADGATE_ATTEMPT="marker-1")
    start(place, job_spec("a-run", free_port()), env=env)
    pid = started(place, "a-run")["pid"]
    assert "QUADGATE_" not in environment_of(pid)
    assert os.getsid(pid) == pid
    probe(place / "probe.pyz", "job", "stop", "--root", place / "root", "--job", "a-run")


def test_a_deadline_ends_the_job_by_name(place):
    start(place, job_spec("a-run", free_port(), limits={"deadline_s": 0.5}))
    job_over(place / "root" / "jobs" / "a-run", what="the deadline")
    found = poll(place, "a-run")
    assert found["state"] == "exited"
    assert found["exit"]["outcome"] == "error"
    assert found["exit"]["error"]["kind"] == "deadline"


def test_a_bad_job_file_or_command_line_is_a_sentence_and_no_traceback(place):
    bad = start(place, {"schema": 1, "job": "x"}, expect=1)
    assert "The job file is not usable" in bad.stderr
    assert "Traceback" not in bad.stderr
    (place / "spec.json").write_text("{")
    assert "is not JSON" in probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", place / "spec.json", expect=1).stderr
    assert "usage" in probe(place / "probe.pyz", "job", "fly", expect=64).stderr


def test_a_survey_brings_what_each_command_said_also_when_it_failed(place):
    tool = place / "bin" / "nvme"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n[ \"$1\" = version ] && echo 'nvme version 2.4' && exit 0\nprintf 'Füllstand\\n'; echo warn >&2; exit 3\n")
    tool.chmod(0o755)
    nap = f"20.{os.getpid()}"  # nobody else's
    commands = [
        {"name": "nvme-list", "tool": "nvme", "argv": ["nvme", "list", "-o", "json"], "version_argv": ["nvme", "version"], "timeout_s": 5},
        {"name": "absent", "tool": "absent", "argv": ["no-such-program"]},
        {"name": "slow", "tool": "sleep", "argv": ["sleep", nap], "timeout_s": 0.2},
    ]
    spec = write(place / "survey.json", {"host": "gpu01", "commands": commands, "path_prefix": [str(tool.parent)]})
    answer = probe(place / "probe.pyz", "survey", "--spec", spec, "--out", place / "out")
    assert answer["failed"] == ["nvme-list", "absent", "slow"]
    rows = json.loads((place / "out" / "commands.json").read_text())
    assert [r["exit_code"] for r in rows[:2]] == [3, 127]
    assert rows[0]["version"] == "nvme version 2.4"
    assert rows[2]["timed_out"] is True
    assert (place / "out" / "nvme-list.out").read_text() == "Füllstand\n"
    for row in rows:  # what each command wrote is on record beside it
        data = (place / "out" / row["stdout"]).read_bytes()
        assert (row["stdout_bytes"], row["stdout_sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert (place / "out" / "nvme-list.err").read_text() == "warn\n"
    assert json.loads((place / "out" / "host.json").read_text())["host"] == "gpu01"
    packed = probe(place / "probe.pyz", "pack", "--dir", place / "out", "--out", place / "survey.tar")
    with tarfile.open(place / "survey.tar") as tar:
        assert set(tar.getnames()) == {f["path"] for f in packed["files"]} | {"pack.json"}
    assert not processes_with(f"sleep {nap}")


def test_an_engine_is_started_once_and_a_reused_pid_is_never_killed(place):
    env = dict(os.environ, QUADGATE_ATTEMPT="marker-2")
    spec = {"name": "e", "argv": ["sleep", "61"], "env": {"A": "b"}, "cwd": str(place), "log": str(place / "e.log"), "pid_file": str(place / "e.pid")}
    path = write(place / "engine.json", {**spec, "health_url": None, "timeout_s": 5})
    first = probe(place / "probe.pyz", "engine", "start", "--spec", path, env=env)
    second = probe(place / "probe.pyz", "engine", "start", "--spec", path)
    assert (first["state"], second["state"], second["pid"]) == ("started", "already running", first["pid"])
    assert "QUADGATE_" not in environment_of(first["pid"])
    assert "A=b" in environment_of(first["pid"])
    assert probe(place / "probe.pyz", "engine", "status", "--spec", path)["state"] == "running"
    assert probe(place / "probe.pyz", "engine", "stop", "--spec", path)["state"] == "stopped"
    assert probe(place / "probe.pyz", "engine", "stop", "--spec", path)["state"] == "was not running"
    bystander = subprocess.Popen(["sleep", "62"])
    try:
        write(place / "e.pid", {"pid": bystander.pid, "start_ticks": 1, "boot_id": first["boot_id"]})
        assert probe(place / "probe.pyz", "engine", "stop", "--spec", path)["state"] == "was not running"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_engine_that_ends_while_it_starts_is_told_with_the_end_of_its_log(place):
    spec = {"name": "e", "argv": ["sh", "-c", "sleep 0.2; echo no GPU found; exit 3"], "log": str(place / "e.log"), "pid_file": str(place / "e.pid")}
    path = write(place / "engine.json", {**spec, "health_url": f"http://127.0.0.1:{free_port()}/health", "timeout_s": 10})
    assert "no GPU found" in probe(place / "probe.pyz", "engine", "start", "--spec", path, expect=1).stderr


def test_the_page_cache_of_a_directory_is_emptied_and_the_emptiness_is_shown(place):
    folder = Path(__file__).resolve().parents[2] / "var" / f"cold-{os.getpid()}"  # on the checkout's disk: /tmp may be in memory
    folder.mkdir(parents=True)
    try:
        (folder / "a.kv").write_bytes(os.urandom(3_000_001))
        (folder / "b").mkdir()
        (folder / "b" / "c.kv").write_bytes(os.urandom(10))
        warm = probe(place / "probe.pyz", "residency", "--dir", folder)
        assert (warm["files"], warm["bytes"], warm["resident_bytes"]) == (2, 3_000_011, 3_000_011)
        cold = probe(place / "probe.pyz", "drop-cache", "--dir", folder)
        assert (cold["bytes"], cold["resident_bytes"], cold["method"]) == (3_000_011, 0, "mincore")
        (folder / "a.kv").read_bytes()[:1]
        assert probe(place / "probe.pyz", "residency", "--dir", folder)["resident_bytes"] > 0
    finally:
        shutil.rmtree(folder)


@pytest.mark.memory_fs
def test_a_directory_in_memory_is_refused_by_the_name_of_its_file_system(place):
    assert "tmpfs, which cannot be made cold" in probe(place / "probe.pyz", "drop-cache", "--dir", "/dev/shm", expect=3).stderr
