"""The engine as a job sees it: how long it may load, how it is ended, and whose bytes and memory are counted."""

import os
import subprocess
import sys
import time

import pytest
from probe import engine_control, engine_host, engine_kill, proc
from probe.engine import Engine
from probe.engine_family import Family, procs_of
from probe.engine_host import engine_row
from probe.errors import Ended, ProbeError
from probe.jobspec import check

from tests.ports import free_port
from tests.unit.probe.kit import job_spec, kill, processes_with, wait_for

# A container runtime as the probe sees one: `run` is a client, the server is a child of somebody else and outlives it.
RUNTIME = """#!{python}
import http.server, os, pathlib, signal, subprocess, sys, time
here, verb = pathlib.Path(__file__).parent, sys.argv[1]
known = here / "container"
pid = int(known.read_text()) if known.exists() else 0
with (here / "calls").open("a") as calls:
    calls.write(verb + "\\n")
if verb == "serve":
    if os.fork():
        os._exit(0)
    os.setsid()
    known.write_text(str(os.getpid()))
    class Healthy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
        def log_message(self, *_): pass
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Healthy).serve_forever()
if verb == "run":
    assert not pid, "the name is in use"
    subprocess.run([sys.executable, __file__, "serve", sys.argv[2]], check=True)
    while not known.exists(): time.sleep(0.01)
    pid = int(known.read_text())
    while os.path.exists("/proc/%d" % pid): time.sleep(0.02)
if verb == "stop" and (here / "patient").exists():
    time.sleep(600)
if verb in ("stop", "rm", "kill"):
    if not pid: sys.exit("no such container")
    try:
        os.kill(pid, signal.SIGTERM)
        while os.path.exists("/proc/%d" % pid): time.sleep(0.01)
    except ProcessLookupError: pass
    known.unlink(missing_ok=True)
if verb == "inspect":
    print(pid)
"""


@pytest.fixture
def container(tmp_path):
    """Give the specification of an engine in a container of that runtime; what is left of it is ended."""
    runtime = tmp_path / "runtime"
    runtime.write_text(RUNTIME.replace("{python}", sys.executable))
    runtime.chmod(0o755)
    port = free_port()
    spec = {"name": "engine", "argv": [str(runtime), "run", str(port)], "log": str(tmp_path / "log"), "pid_file": str(tmp_path / "engine.pid")}
    spec.update(health_url=f"http://127.0.0.1:{port}/health", timeout_s=60, stop_timeout_s=30)
    yield {**spec, "stop_argv": [[str(runtime), "stop"], [str(runtime), "rm"]]}
    for pid in processes_with(str(runtime)):
        kill(pid)


def engine(folder, limits=None, **spec):
    return Engine({"base_url": "http://127.0.0.1:1", "model": "m", **spec}, str(folder), limits)


def test_a_model_may_load_for_as_long_as_the_job_file_says(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_host, "GRACE_S", 0.0)
    slow = {"start": [sys.executable, "-c", "import time; time.sleep(0.5)"]}
    engine(tmp_path, {"start_timeout_s": 3600}, control=slow).control("start")
    with pytest.raises(ProbeError, match=r"did not end within 0\.1 s"):
        engine(tmp_path, {"start_timeout_s": 0.1}, control=slow).control("start")
    with pytest.raises(ProbeError, match=r"did not answer .*/health within 0\.2 s"):
        engine(tmp_path, {"start_timeout_s": 0.2}).wait_healthy(time.sleep)
    assert engine(tmp_path, {"start_timeout_s": 3600}).start_s == 3600


def test_a_job_that_shall_end_does_not_wait_for_a_model_to_load(tmp_path):
    def asked(_seconds):
        raise Ended("stopped", "The job was asked to stop.")

    mark = str(tmp_path / "loads")
    with pytest.raises(Ended):
        engine(tmp_path, control={"start": [sys.executable, "-c", "import time; time.sleep(600)", mark]}).control("start", asked)
    assert processes_with(mark) == []


def test_a_time_that_is_no_number_is_refused_before_anything_starts():
    with pytest.raises(ProbeError, match=r"limits\.start_timeout_s must be a number above 0"):
        check(job_spec("a-run", 1, limits={"start_timeout_s": "an hour"}))


def lose_client(spec):
    pid = engine_control.start(spec)["pid"]
    kill(pid)
    wait_for(lambda: proc.start_ticks(pid) is None, what="the client's end")


def test_a_container_is_ended_itself_and_not_only_its_client(container):
    engine_control.start(container)
    assert engine_control.stop(container)["state"] == "stopped"
    assert not engine_control.is_healthy(container["health_url"])
    assert processes_with(container["argv"][0]) == []


def test_a_container_whose_client_was_killed_is_ended_by_what_the_pid_file_says(container):
    lose_client(container)
    only = {"name": "engine", "argv": [], "pid_file": container["pid_file"]}  # what the stop playbook knows
    assert engine_control.stop(only)["state"] == "was not running"
    assert processes_with(container["argv"][0]) == []


def test_what_an_earlier_client_left_behind_holds_neither_name_nor_port(container):
    lose_client(container)
    assert engine_control.start(container)["state"] == "started"


def test_an_engine_that_still_answers_after_its_stop_commands_is_not_called_stopped(container):
    engine_control.start(container)
    with pytest.raises(ProbeError, match="still answers"):
        engine_control.stop({**container, "stop_argv": [["true"]], "stop_timeout_s": 0.2})


def test_a_cancel_kills_a_container_that_would_take_minutes_to_end_and_clears_its_name(container, tmp_path):
    engine_control.start(container)
    (tmp_path / "patient").touch()
    only = {"name": "engine", "argv": [], "pid_file": container["pid_file"]}
    assert engine_kill.kill(only)["state"] == "stopped"
    assert processes_with(container["argv"][0]) == []
    assert (tmp_path / "calls").read_text().split()[-2:] == ["kill", "rm"]
    assert engine_kill.kill(only)["state"] == "was not running"


def test_a_command_that_does_not_end_is_told_and_the_engine_is_not_called_stopped(container, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_kill, "KILL_S", 1.2)
    stuck = tmp_path / "stuck"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(0o755)
    with pytest.raises(ProbeError, match=r"may go on: `.*stuck kill x` did not end"):
        engine_kill.kill({"name": "engine", "pid_file": container["pid_file"], "stop_argv": [[str(stuck), "stop", "x"]]})
    assert processes_with(str(stuck)) == []


def test_an_engine_of_our_own_that_is_deaf_is_killed_with_what_it_started(tmp_path):
    deaf = "import signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); subprocess.Popen(['sleep', '613']); time.sleep(613)"
    spec = {"name": "engine", "argv": [sys.executable, "-c", deaf], "pid_file": str(tmp_path / "engine.pid")}
    engine_control.start(spec)
    wait_for(lambda: processes_with("613"), what="its child")
    assert engine_kill.kill(spec)["killed"]
    assert processes_with("613") == []
    assert not (tmp_path / "engine.pid").exists()


def test_of_each_patient_command_the_one_that_does_not_wait_is_run():
    stops = [["systemctl", "stop", "q.service"], ["podman", "stop", "-t", "110", "q"], ["podman", "rm", "--force", "q"]]
    assert engine_kill.hurried(stops) == [
        [["systemctl", "kill", "--signal=KILL", "q.service"], ["podman", "kill", "q"]],
        [["systemctl", "stop", "q.service"], ["podman", "rm", "--force", "q"]],
    ]


HOLD = "import sys, time; held = bytearray(int(sys.argv[1])); print(flush=True); time.sleep(600)"


@pytest.fixture
def held():
    """Start processes that hold so many bytes; return the pid of each."""
    children = []

    def start(size):
        child = subprocess.Popen([sys.executable, "-c", HOLD, str(size)], stdout=subprocess.PIPE)
        children.append(child)
        child.stdout.readline()
        return child.pid

    yield start
    for child in children:
        child.kill()
        child.wait()


def grouped(folder, head, members, path="/system.slice/docker-1.scope"):
    """Write what a kernel shows of a control group of version 2 and a runtime that names its first process; return the family."""
    for where in (folder / "proc" / str(head), folder / "cgroup" / path.strip("/") / "inner"):
        where.mkdir(parents=True)
    (folder / "proc" / str(head) / "cgroup").write_text(f"4:memory:/\n0::{path}\n")
    (folder / "cgroup" / path.strip("/") / "cgroup.procs").write_text(f"{head}\n")
    (folder / "cgroup" / path.strip("/") / "inner" / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in members))
    runtime = folder / "runtime"
    runtime.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\n[ $4 = quadgate-engine ] && echo {head}\n")
    runtime.chmod(0o755)
    group = {"kind": "container", "runtime": str(runtime), "names": ["quadgate-engine"]}
    return Family(group, str(folder / "proc"), str(folder / "cgroup"))


def test_the_memory_and_bytes_of_a_container_are_those_of_its_control_group_and_not_its_client_s(tmp_path, held):
    client, head, worker = held(0), held(50 << 20), held(90 << 20)
    family = grouped(tmp_path, head, [worker])
    found = {"pid": client, "start_ticks": proc.start_ticks(client)}
    assert family.pids(found) == [head, worker]
    row = engine_row(found, family)
    assert row["rss_bytes"] > 140 << 20 > proc.stat(client)["rss_bytes"]
    assert row["fds"] == sum(proc.open_files(pid) for pid in (head, worker))
    assert (tmp_path / "asked").read_text() == "asked\n"  # the runtime is asked once in the container's life


def test_where_nobody_tells_which_processes_are_the_engine_its_memory_and_bytes_are_null_and_it_is_alive(tmp_path, held):
    client, head = held(0), held(0)
    found = {"pid": client, "start_ticks": proc.start_ticks(client), "boot_id": "b"}
    family = grouped(tmp_path / "a", head, [])
    family._group["names"].append("quadgate-lmcache-server")  # one of two that the runtime does not know
    assert family.pids(found) is None
    for group in ({"kind": "container", "runtime": "/no/such/program", "names": ["x"]}, {"kind": "unit", "name": "no-such.service"}):
        row = engine_row(found, Family(group))
        assert (row["alive"], row["rss_bytes"], row["fds"], row["threads"], row["io_read_bytes"]) == (True, None, None, None, None)


def test_the_root_group_and_a_group_that_holds_the_probe_are_no_engine_s(tmp_path, held):
    head = held(0)
    assert grouped(tmp_path / "root", head, [], path="/").pids({"pid": head}) is None
    assert grouped(tmp_path / "ours", head, [os.getpid()]).pids({"pid": head}) is None
    assert procs_of(head, str(tmp_path / "nothing")) is None


def test_without_a_group_the_engine_is_the_process_and_what_it_started(tmp_path):
    assert Family(None).pids({"pid": os.getpid()})[0] == os.getpid()
    assert Family(None).pids(None) is None
