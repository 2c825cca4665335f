"""With QUADGATE_LOG_FORMAT=json everything that the long-running parts write, from their first line to their last, is one object a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.settings import ROOT
from app.up import broker, supervisor, web
from tests.engine_kit import PATIENCE_S, wait_for
from tests.ports import free_port

CLI = [sys.executable, "-c", "from app.cli import main; main()"]


class Started:
    """A part that writes both of its streams to one file, as a container's log holds them."""

    def __init__(self, state: Path, name: str, argv: list[str]) -> None:
        self.alive_file, self.log = state / f"{name}.alive", state / f"{name}.log"
        environment = {
            "QUADGATE_LOG_FORMAT": "json",
            "QUADGATE_ALIVE_FILE": str(self.alive_file),
            "QUADGATE_RUNNER_SOCKET": str(state / "run.sock") if name == "runner" else "",
            "QUADGATE_BROKER_URL": f"redis+socket://{broker.socket_path(state)}",
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(argv, cwd=ROOT, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self) -> None:
        """Ask it to end, as a supervisor does, and see that it does."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def lines(self) -> list[dict[str, Any]]:
        """Return what it wrote; a line that is no object fails with its text."""
        found = []
        for line in self.log.read_text(encoding="utf-8").split("\n")[:-1]:
            try:
                found.append(json.loads(line))
            except ValueError:
                pytest.fail(f"{self.log.name} holds a line that is no object: {line!r}")
            assert isinstance(found[-1], dict), line
            assert {"event", "level", "timestamp"} <= set(found[-1]), line
        return found


@contextmanager
def part(state: Path, name: str, argv: list[str]) -> Iterator[Started]:
    """Start a part, and end it whatever happens."""
    started = Started(state, name, argv)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture
def running_broker(state: Path) -> Iterator[None]:
    where = broker.socket_path(state)
    server = subprocess.Popen(broker.argv(broker.server_program(), where, state / "broker"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: broker.answers(where))
    yield
    server.terminate()
    server.wait(PATIENCE_S)


@pytest.mark.usefixtures("running_broker")
def test_worker_beat_and_runner_write_objects_from_start_to_end(state: Path) -> None:
    with ExitStack() as stack:
        worker = stack.enter_context(part(state, "worker", supervisor.worker_argv("here")))
        beat = stack.enter_context(part(state, "beat", supervisor.beat_argv(state)))
        runner = stack.enter_context(part(state, "runner", [*CLI, "runner"]))
        wait_for(lambda: beat.alive_file.exists() and worker.alive_file.exists() and (state / "run.sock").exists())
    assert any("shutdown" in line["event"] for line in worker.lines())
    beat.lines()
    assert any("run.sock" in line["event"] for line in runner.lines())


@pytest.mark.parametrize("argv", [web.argv, lambda host, port: [*CLI, "serve", "--host", host, "--port", str(port)]], ids=["up", "serve"])
def test_the_web_server_writes_objects_from_its_first_line(state: Path, argv: Any) -> None:
    port = free_port()
    with part(state, "web", argv("127.0.0.1", port)) as server:
        wait_for(lambda: web.answers("127.0.0.1", port))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/engagements")
    told = [line["event"] for line in server.lines()]
    assert any("GET /healthz" in event for event in told)
    assert any("startup" in event for event in told)
