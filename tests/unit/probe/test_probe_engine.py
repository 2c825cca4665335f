"""The engine as a job sees it: how long it may load, how it is ended, and whose bytes and memory are counted."""

import sys
import time

import pytest
from probe import engine as engine_module
from probe import engine_control, proc
from probe.engine import Engine
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
if verb in ("stop", "rm"):
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
    monkeypatch.setattr(engine_module, "GRACE_S", 0.0)
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
