"""A controller that was left behind stops nothing of what another one has taken over: told by the fence on the target, with the real probe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine import marker
from app.settings import settings
from app.up import Supervisor
from app.up.leftovers import SUPERVISED
from tests.engine_kit import PLAYBOOKS, attempt_of, job_step, make_attempt, steps_of, wait_for
from tests.ports import free_port
from tests.unit.probe.kit import build, job_spec, kill, probe, processes_with, write

FILES = Path(__file__).parent.parent.parent / "playbooks" / "roles" / "arm" / "files"
ATTEMPT, JOB = "a", "a-soak"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Give a host with a running job of the attempt, whose controller came with fence 1."""
    build(tmp_path)
    ask(tmp_path, "lock", "take", "--attempt", ATTEMPT, "--fence", 1)
    spec = {**job_spec(JOB, free_port()), "fence": 1}
    assert ask(tmp_path, "job", "start", "--spec", write(tmp_path / "spec.json", spec))["state"] == "started"
    yield tmp_path
    for pid in processes_with(str(tmp_path)):
        kill(pid)


def ask(place: Path, group: str, verb: str, *more: Any, **options: Any) -> Any:
    return probe(place / "probe.pyz", group, verb, "--root", place / "root", *more, **options)


def order(place: Path, program: str, *words: object) -> dict[str, Any]:
    """Run what a playbook runs on the host."""
    argv = [sys.executable, "-I", "-", place / "probe.pyz", place / "root", *words]
    done = subprocess.run([str(word) for word in argv], input=(FILES / program).read_bytes(), capture_output=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def running(place: Path) -> bool:
    return bool(ask(place, "job", "poll", "--job", JOB)["state"] == "running")


def test_a_poll_of_a_new_controller_keeps_the_old_one_from_stopping_the_job(place: Path) -> None:
    assert order(place, "ask.py", JOB, "poll", place / "chunks.json", "{}", ATTEMPT, 2)["state"] == "running"
    said = order(place, "stop.py", ATTEMPT, 1)
    assert (said["state"], said["jobs"], said["engine"], said["measured"]) == ("taken_over", [], "left alone", True)
    assert "fencing number 2" in said["why"]
    assert running(place)
    refused = ask(place, "job", "stop", "--job", JOB, "--attempt", ATTEMPT, "--fence", 1, expect=3)
    assert "was not stopped" in refused.stderr
    assert running(place)
    assert order(place, "stop.py", ATTEMPT, 2)["state"] == "stopped"
    assert not running(place)


def test_a_host_that_the_new_controller_did_not_ask_learns_it_from_one_that_it_did(place: Path) -> None:
    assert order(place, "stop.py", ATTEMPT, 1, "look") == {"why": ""}
    said = order(place, "stop.py", ATTEMPT, 1, "attempt", "[]", "taken over on load01")
    assert (said["state"], said["why"]) == ("taken_over", "taken over on load01")
    assert running(place)


@pytest.mark.parametrize("verb", ["poll", "collect"])
def test_the_old_controller_is_told_instead_of_answered_and_leaves_what_the_new_one_is_to_fetch_alone(place: Path, verb: str) -> None:
    theirs = place / "out" / "theirs"
    assert order(place, "ask.py", JOB, "poll", theirs, "{}", ATTEMPT, 2)["state"] == "running"
    brought = theirs.read_bytes()
    said = order(place, "ask.py", JOB, verb, theirs, "{}", ATTEMPT, 1)
    assert (said["state"], said["parts"], said["exit"], "fencing number 2" in said["why"]) == ("taken_over", [], None, True)
    assert theirs.read_bytes() == brought
    assert order(place, "ask.py", JOB, verb, theirs, "{}", ATTEMPT, 2)["state"] == "running"


def test_only_the_attempt_that_has_the_host_can_raise_its_fence_by_asking(place: Path) -> None:
    for attempt, fence in (("b", 9), (ATTEMPT, 0)):
        order(place, "ask.py", JOB, "poll", place / "chunks.json", "{}", attempt, fence)
    assert json.loads((place / "root" / "hostlock.json").read_text())["fence"] == 1
    assert order(place, "stop.py", ATTEMPT, 1)["state"] == "stopped"


@pytest.mark.usefixtures("patient")
def test_a_hand_over_leaves_the_job_alone_and_the_next_start_goes_on_with_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    settings.cache_clear()
    service = Supervisor()
    service.start(web=False)
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 120, "lines": 10}))
    wait_for(lambda: steps_of(attempt_id)[0].status == "running")
    job = int(next((state / "lab").glob("*/gpu01/jobs/*/started")).read_text())
    service.stop(leave=True)
    assert (attempt_of(attempt_id).status, marker.state(job) in ("", "Z")) == ("running", False)
    assert marker.carriers(str(state), SUPERVISED) == []
    service.start(web=False)
    assert (attempt_of(attempt_id).status, marker.state(job) in ("", "Z")) == ("running", False)
    service.stop()
    assert (attempt_of(attempt_id).status, marker.state(job) in ("", "Z")) == ("canceled", True)
