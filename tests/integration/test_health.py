"""Ready means that work gets done: each of the five questions alone turns it off."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.attempts.models import Attempt
from app.engine import nodes
from app.engine.claim import claim, renew
from app.engine.models import Canary, Node
from app.kit.clock import now
from app.kit.db import write_session
from app.ops import health, metrics
from app.up import broker as server
from tests.engine_kit import job_step, make_attempt, steps_of
from tests.integration.web_client import Browser


@pytest.fixture
def broker(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a real broker where the settings look for it."""
    sock = server.socket_path(state)
    process = subprocess.Popen(server.argv(server.server_program(), sock, state / "broker"), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not server.answers(sock) and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    process.kill()
    process.wait(10)


@pytest.fixture
def working(broker: subprocess.Popen[bytes]) -> None:
    """Let a canary and a node have come back just now, as a working worker does."""
    nodes.canary_returned()
    nodes.beat("here")


def wrong() -> list[str]:
    return [name for name, answer in health.look().answers.items() if not answer.ok]


def test_it_is_ready_when_a_write_a_hint_a_canary_and_a_heartbeat_go_through(working: None) -> None:
    answer = Browser().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


def test_a_living_process_without_a_worker_is_not_ready(broker: subprocess.Popen[bytes]) -> None:
    answer = Browser().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.json()["checks"]["canary"] == {"ok": False, "detail": "never yet: a task came back"}
    assert wrong() == ["canary", "heartbeat"]


def test_a_canary_of_ten_minutes_ago_is_none(working: None) -> None:
    with write_session() as s:
        s.merge(Canary(name="engine", sent_at=now(), returned_at=now() - timedelta(minutes=10)))
    assert wrong() == ["canary"]


def test_a_canary_and_a_heartbeat_from_before_the_clock_was_set_back_are_none(working: None) -> None:
    ahead = now() + timedelta(hours=2)
    with write_session() as s:
        s.merge(Canary(name="engine", sent_at=ahead, returned_at=ahead))
        s.merge(Node(name="here", heartbeat_at=ahead))
    assert wrong() == ["canary", "heartbeat"]
    assert "ahead of the clock" in health.look().answers["canary"].detail
    assert numbers()["quadgate_canary_age_seconds"] > 7000
    assert numbers()["quadgate_node_heartbeat_age_seconds{here}"] > 7000


def test_a_node_that_fell_silent_is_none(working: None) -> None:
    with write_session() as s:
        s.merge(Node(name="here", heartbeat_at=now() - timedelta(minutes=10)))
    assert wrong() == ["heartbeat"]


def test_without_a_broker_it_is_not_ready_and_the_metrics_say_so(working: None, broker: subprocess.Popen[bytes]) -> None:
    broker.kill()
    broker.wait(10)
    assert wrong() == ["broker"]
    assert numbers()["quadgate_broker_up"] == 0


@pytest.mark.sqlite
def test_a_database_that_takes_no_write_is_not_ready(working: None, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.kit.db import engine_for
    from app.settings import settings

    engine_for.cache_clear()
    monkeypatch.setenv("QUADGATE_DATABASE_URL", f"sqlite:///file:{state}/quadgate.db?mode=ro&uri=true")
    settings.cache_clear()
    assert "database" in wrong()
    assert Browser().get("/readyz").status_code == 503


def numbers() -> dict[str, float]:
    """Return the metrics as `name{label values}` -> value."""
    found = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            found[sample.name + ("{" + ",".join(sample.labels.values()) + "}" if sample.labels else "")] = sample.value
    return found


def test_the_metrics_tell_what_waits_what_is_held_and_what_is_silent(working: None) -> None:
    waits, held, silent, overdue = (make_attempt(job_step()) for _ in range(4))
    with write_session() as s:
        s.get_one(Attempt, waits).next_due_at = now() - timedelta(seconds=70)
        lease = s.get_one(Attempt, held)
        lease.lease_owner, lease.lease_until, lease.lease_since = "somebody", now() + timedelta(seconds=29), now() - timedelta(seconds=20)
        gone = s.get_one(Attempt, silent)
        gone.status, gone.next_due_at, gone.started_at = "lost_contact", now() + timedelta(hours=1), now() - timedelta(hours=2)
        late = s.get_one(Attempt, overdue)
        late.status, late.next_due_at = "running", now() - timedelta(seconds=40)
        s.merge(steps_of(overdue)[0]).status = "polling"  # also while its playbook runs
    found = numbers()
    assert found["quadgate_due_attempts"] == 2
    assert 70 <= found["quadgate_oldest_due_seconds"] < 7200
    assert found["quadgate_held_leases"] == 1
    assert 20 <= found["quadgate_lease_age_seconds"] < 7200
    assert found["quadgate_lost_contact_attempts"] == 1
    assert found["quadgate_lost_contact_seconds"] >= 7200
    assert 40 <= found["quadgate_poll_lateness_seconds{1}"] < 7200
    assert found["quadgate_attempts{running}"] == 1
    assert found["quadgate_queue_depth{tick}"] == 0
    assert found["quadgate_queue_depth{steps@here}"] == 0
    assert found["quadgate_canary_age_seconds"] < 7200
    assert found["quadgate_backup_age_seconds"] == metrics.NEVER_S


def test_a_worker_that_hangs_is_seen_however_often_its_lease_is_renewed(working: None) -> None:
    held = claim(make_attempt(job_step()), None, owner="hangs", node="here")
    assert held is not None
    with write_session() as s:
        s.get_one(Attempt, held.attempt_id).lease_since = now() - timedelta(seconds=700)
    assert renew(held)
    assert numbers()["quadgate_lease_age_seconds"] >= 700
    assert claim(held.attempt_id, None, owner="another", node="here") is None


def test_the_verdicts_are_a_gauge_since_judging_again_takes_one_away(working: None) -> None:
    assert {family.name: family.type for family in text_string_to_metric_families(metrics.text().decode())}["quadgate_verdicts"] == "gauge"


def test_the_lateness_of_polls_is_told_by_what_present_jobs_remember_and_by_what_is_overdue(working: None) -> None:
    assert {numbers()[f"quadgate_poll_lateness_seconds{{{q}}}"] for q in ("0.5", "0.99", "1")} == {0.0}
    first, second, over = (make_attempt(job_step()) for _ in range(3))
    with write_session() as s:
        for identity, late in ((first, [0.25] * 8), (second, [0.5] * 7 + [9.0]), (over, [500.0])):
            row, step = s.get_one(Attempt, identity), s.merge(steps_of(identity)[0])
            row.status, row.next_due_at = "running", now() + timedelta(hours=1)
            step.status, step.result = "starting", {"late": late}
        s.get_one(Attempt, over).status = "canceled"
    found = numbers()
    assert [found[f"quadgate_poll_lateness_seconds{{{q}}}"] for q in ("0.5", "0.99", "1")] == [0.25, 9.0, 9.0]


def test_the_page_of_the_metrics_is_prometheus_text_with_exactly_the_names_of_the_contract(working: None) -> None:
    answer = Browser().get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    names = {sample.name for family in text_string_to_metric_families(answer.text) for sample in family.samples}
    assert names <= metrics.NAMES
    assert metrics.NAMES - names == {"quadgate_verdicts"}  # nothing is judged yet
