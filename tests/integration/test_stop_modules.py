"""A module that goes on on its target after its playbook was killed is ended by the stop, with what it started, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.engine import marker, runs
from app.settings import settings
from app.targets.inventory import build
from app.targets.probe_archive import build_probe
from tests.engine_kit import wait_for

STOP = Path(__file__).parent.parent.parent / "playbooks" / "roles" / "arm" / "files" / "stop.py"
MODULE = """
import signal, subprocess, sys, time
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(600)
"""


def module(folder: Path, how: str = "") -> tuple[subprocess.Popen[bytes], int]:
    """Start what Ansible leaves: a program in its temporary directory, with a child whose own words say nothing."""
    program = folder / "ansible-tmp-1" / "AnsiballZ_command.py"
    program.parent.mkdir(parents=True)
    program.write_text(MODULE)
    told = program.with_name("child")
    process = subprocess.Popen([sys.executable, str(program), str(told), how], start_new_session=True)
    return process, int(wait_for(lambda: told.exists() and told.read_text()))


def gone(*pids: int) -> bool:
    return all(marker.state(pid) in ("Z", "") for pid in pids)


@pytest.mark.parametrize("how", ["", "deaf"])
def test_the_modules_of_ended_playbooks_are_ended_with_their_children(tmp_path: Path, how: str) -> None:
    (ours, child), (other, others_child) = module(tmp_path / "a" / "remote", how), module(tmp_path / "b" / "remote")
    try:
        left = json.dumps([str(tmp_path / "a" / "remote")])
        words = [sys.executable, "-I", "-", str(tmp_path / "probe.pyz"), str(tmp_path), "x", "1", "attempt", left]
        done = subprocess.run(words, input=STOP.read_bytes(), capture_output=True, check=True)
        answer = json.loads(done.stdout)
        assert (answer["state"], answer["modules"], answer["could_not_stop"]) == ("stopped", 2, [])
        assert gone(ours.pid, child)
        assert not gone(other.pid)
        assert not gone(others_child)
    finally:
        for process, pid in ((ours, child), (other, others_child)):
            process.kill()
            process.wait()
            subprocess.run(["kill", "-KILL", str(pid)], check=False, capture_output=True)


def test_a_far_end_that_waits_for_an_rdma_test_is_ended_too(tmp_path: Path) -> None:
    build_probe(tmp_path / "probe.pyz")
    waits = tmp_path / "rdma/rdma-18515.pid"
    spec = {"name": "rdma-18515", "argv": ["sleep", "600"], "pid_file": str(waits)}
    words = [sys.executable, "-I", str(tmp_path / "probe.pyz"), "engine", "start", "--spec", "/dev/stdin"]
    pid = json.loads(subprocess.run(words, input=json.dumps(spec).encode(), capture_output=True, check=True).stdout)["pid"]
    try:
        words = [sys.executable, "-I", "-", str(tmp_path / "probe.pyz"), str(tmp_path), "x", "1", "attempt"]
        answer = json.loads(subprocess.run(words, input=STOP.read_bytes(), capture_output=True, check=True).stdout)
        assert (answer["state"], answer["could_not_stop"], gone(pid), waits.exists()) == ("stopped", [], True, False)
    finally:
        subprocess.run(["kill", "-KILL", str(pid)], check=False, capture_output=True)


def test_only_runs_that_began_and_left_no_result_may_have_left_a_module(state: Path) -> None:
    for name, files in {"a": ["started"], "b": ["started", "result.json"], "c": []}.items():
        folder = settings().runs_dir / "x" / name
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).write_text("{}")
    short = runs.short_dir(settings().runs_dir / "x" / "a")
    assert runs.remote_dirs("x") == [f"/.ansible/tmp/qg-{short.name}", str(short / "remote")]


def test_a_run_names_the_folder_of_its_modules_behind_ssh_as_a_stop_looks_for_it_and_a_look_makes_none(state: Path) -> None:
    host = {"groups": ["engine"], "connection": "ssh", "address": "127.0.1.1", "host_key": "ssh-ed25519 AAAA"}
    inventory, told = build(code="X", targets={"hosts": {"gpu01": host}}, state_dir=state), []
    for name in ("start-1", "poll-1"):
        run = runs.PlaybookRun("x", "run-1", name, Path("job_start.yml"), inventory, {}, 9, "here")
        run.folder.mkdir(parents=True)
        runs.prepare(run)
        told.append(json.loads((run.folder / "private" / "inventory.json").read_text())["all"]["hosts"]["gpu01"]["ansible_remote_tmp"])
    (settings().runs_dir / "x" / "run-1-start-1" / "started").touch()
    assert told[0].removeprefix("~") in runs.remote_dirs("x")
    assert told[1] == "~/.ansible/tmp"


def test_a_stop_asks_all_hosts_at_once_and_waits_for_none_that_does_not_answer(tmp_path: Path) -> None:
    usual, hurried = runs.host_environment(tmp_path), runs.host_environment(tmp_path, 12)
    assert ("ANSIBLE_FORKS" in usual, hurried["ANSIBLE_FORKS"]) == (False, "12")
    assert ("ConnectTimeout=10" in usual["ANSIBLE_SSH_ARGS"], "ConnectTimeout=5" in hurried["ANSIBLE_SSH_ARGS"]) == (True, True)
