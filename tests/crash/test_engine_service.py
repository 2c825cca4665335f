"""The whole service under real SIGKILLs and a broker that forgets everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from sqlalchemy import func, select

from app.attempts.models import StepEvent
from app.engine import marker, runs
from app.kit.db import read_session
from app.settings import settings
from app.up import Supervisor
from app.up.broker import socket_path
from tests.engine_kit import PLAYBOOKS, attempt_of, ended, job_step, make_attempt, playbook_step, steps_of, wait_for


@pytest.fixture
def service(state: Path, patient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    monkeypatch.setenv("QUADGATE_LEASE_SECONDS", "3")
    settings.cache_clear()
    supervisor = Supervisor()
    supervisor.start(web=False)
    yield supervisor
    supervisor.stop()


def slow_attempt() -> str:
    return make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 3}))


def starts_of(attempt_id: str) -> int:
    return len((settings().runs_dir / attempt_id / "starts").read_text().split())


def events_stored_and_counted(attempt_id: str, run: str) -> tuple[int, int]:
    with read_session() as s:
        stored = s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.attempt_id == attempt_id, StepEvent.run == run))
    return stored or 0, runs.look(runs.folder_of(attempt_id, steps_of(attempt_id)[0].key, run)).result["events"]


def started(attempt_id: str) -> bool:
    return (settings().runs_dir / attempt_id / "starts").exists()


def test_a_killed_worker_loses_no_playbook_and_starts_none_twice(service: Supervisor) -> None:
    attempt_id = slow_attempt()
    wait_for(lambda: started(attempt_id))
    hosts = service.host_pids()
    assert len(service.kill_worker()) >= 2
    assert service.host_pids() == hosts  # the playbook goes on without a worker
    wait_for(lambda: ended(attempt_of(attempt_id)))
    assert attempt_of(attempt_id).status == "finished"
    assert (steps_of(attempt_id)[0].try_no, starts_of(attempt_id)) == (1, 1)
    stored, counted = events_stored_and_counted(attempt_id, "run-1")
    assert stored == counted > 5
    assert service.restarts()["worker"] == 1


def test_a_killed_host_is_noticed_cleaned_up_and_its_step_tried_again(service: Supervisor) -> None:
    attempt_id = slow_attempt()
    wait_for(lambda: started(attempt_id))
    left_behind = set(marker.carriers(attempt_id)) - set(service.kill_hosts())
    assert left_behind  # ansible-playbook and its module live on
    wait_for(lambda: steps_of(attempt_id)[0].try_no == 2)
    assert not left_behind & set(marker.carriers(attempt_id))
    wait_for(lambda: ended(attempt_of(attempt_id)))
    assert (attempt_of(attempt_id).status, starts_of(attempt_id)) == ("finished", 2)
    stored, counted = events_stored_and_counted(attempt_id, "run-2")
    assert stored == counted > 5


def test_a_flushed_broker_costs_a_tick_and_a_killed_start_of_a_job_is_adopted(service: Supervisor, state: Path) -> None:
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 3, "lines": 30}))
    job = f"{attempt_id}-run-1"
    wait_for(lambda: list((state / "lab").glob(f"*/gpu01/jobs/{job}/started")))
    service.kill_hosts()
    service.kill_worker()
    redis.Redis(unix_socket_path=str(socket_path(state))).flushall()
    wait_for(lambda: ended(attempt_of(attempt_id)))
    folder = next((state / "lab").glob(f"*/gpu01/jobs/{job}"))
    assert attempt_of(attempt_id).status == "finished"
    assert len((folder / "started").read_text().split()) == 1
    assert [line.count('"seq"') for line in (folder / "records.jsonl").read_text().splitlines()] == [1] * 30
