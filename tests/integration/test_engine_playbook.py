"""One playbook step, by a real ansible-playbook in a real detached host process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.attempts.models import StepEvent, Transition
from app.attempts.usecases import attempt_view
from app.audit import chain
from app.engine import marker, runs
from app.evidence.models import EvidenceFile
from app.kit.db import read_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step, steps_of, wait_for
from tests.engine_kit.packs import make_tar
from tests.people import Cast


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


def test_it_runs_a_playbook_and_stores_every_event_that_the_runner_counted(tmp_path: Path) -> None:
    """And no word of people is evaluated on the way: what looks like a template of Ansible's reaches the target as it was written."""
    mark = tmp_path / "evaluated"
    words = f"50 % {{# of #}} {{{{ lookup('ansible.builtin.pipe', 'touch {mark}') }}}} {{% raw"
    root = f"{tmp_path}/{{{{ 6 * 7 }}}} 根"
    host = {"groups": ["engine", "loadgen"], "connection": "local", "root": root}
    attempt_id = make_attempt(playbook_step(params={"note": words}), hosts={"gpu01": host})
    attempt = drive(attempt_id, until=ended)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, attempt.problem, step.status) == ("finished", None, "done")
    folder = runs.folder_of(attempt_id, "survey", "run-1")
    result = runs.look(folder).result
    with read_session() as s:
        stored = s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.step_id == step.id))
        path = [
            (t.from_status, t.event, t.to_status)
            for t in s.scalars(select(Transition).where(Transition.attempt_id == attempt_id).order_by(Transition.generation))
        ]
        assert chain.verify(s).ok
    assert stored == result["events"] > 5
    assert path == [("queued", "start", "running"), ("running", "finish", "finished")]
    reply = result["replies"]["gpu01"]
    assert (reply["state"], reply["note"], reply["root"], mark.exists()) == ("done", words, root, False)
    assert (folder.parent / "starts").read_text().split() == [attempt_id]


def test_nothing_secret_and_no_process_is_left_after_a_run() -> None:
    attempt_id = make_attempt(playbook_step())
    drive(attempt_id, until=ended)
    folder = runs.folder_of(attempt_id, "survey", "run-1")
    wait_for(lambda: not marker.carriers(attempt_id))
    assert sorted(p.name for p in folder.iterdir()) == ["events.jsonl", "host.log", "lock", "result.json", "staging", "started", "used"]
    assert not runs.short_dir(folder).exists()
    assert attempt_of(attempt_id).lease_owner is None


def failed_with(*args: Any, **hosts: Any) -> dict[str, Any]:
    """Run one step to its error and return the problem that stands on the attempt."""
    attempt_id = make_attempt(*args, **hosts)
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, steps_of(attempt_id)[0].status) == ("error", "failed")
    assert attempt.problem is not None
    return attempt.problem


def test_an_unreachable_host_is_named_with_its_address_and_what_to_check() -> None:
    away = {"gpu01": {"groups": ["engine"], "address": "127.0.0.1", "port": 9, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA"}}
    problem = failed_with(playbook_step(), hosts=away)
    assert problem["code"] == "unreachable"
    assert "gpu01 (127.0.0.1:9)" in problem["en"]
    assert "host key" in problem["en"]
    assert "gpu01（127.0.0.1:9）" in problem["zh-CN"]


def test_a_failing_task_is_named_with_its_host_and_what_it_said() -> None:
    problem = failed_with(playbook_step(playbook="fails.yml"))
    assert (problem["code"], problem["step"]) == ("task_failed", "survey")
    assert "gpu01" in problem["en"]
    assert "mount the volume" in problem["en"]
    assert "cannot mount /dev/md0" in problem["en"]


def test_a_playbook_that_matches_no_host_is_never_fine() -> None:
    assert failed_with(playbook_step(playbook="nobody.yml"))["code"] == "no_hosts_matched"


def test_a_host_without_a_pinned_key_is_refused_before_anything_runs(state: Path) -> None:
    problem = failed_with(playbook_step(), hosts={"gpu01": {"groups": ["engine"], "address": "127.0.0.1"}})
    assert problem["code"] == "host_key_missing"
    assert not list((state / "runs").glob("*/*/started"))


def test_a_credential_that_others_can_read_is_refused(state: Path) -> None:
    key = state / "key"
    key.write_text("x")
    key.chmod(0o644)
    host = {"groups": ["engine"], "address": "127.0.0.1", "host_key": "ssh-ed25519 AAAA", "credential": str(key)}
    assert failed_with(playbook_step(), hosts={"gpu01": host})["code"] == "credential_open"


def test_the_history_says_in_both_languages_why_the_service_moved_an_attempt(cast: Cast) -> None:
    attempt_id = make_attempt(playbook_step(playbook="fails.yml"))
    drive(attempt_id, until=ended)
    with read_session() as s:
        reason = attempt_view(s, attempt_id=attempt_id, actor=cast.admin)["transitions"][-1]["reason"]
    assert set(reason) == {"en", "zh-CN"}
    assert reason["en"] != reason["zh-CN"]


def test_a_playbook_that_takes_too_long_is_ended_and_says_so() -> None:
    problem = failed_with(playbook_step(playbook="slow.yml", params={"seconds": 60}, timeout_s=2))
    assert problem["code"] == "timed_out"
    assert "2 s" in problem["en"]


def test_secrets_reach_neither_events_nor_artifacts_nor_results(state: Path) -> None:
    secret = state / "become"
    secret.write_text("marzipan-canary-4711\n")
    secret.chmod(0o600)
    host = {"groups": ["engine"], "connection": "local"}
    attempt_id = make_attempt(playbook_step(playbook="secret.yml"), hosts={"gpu01": {**host, "become_password": {"file": str(secret)}}})
    attempt = drive(attempt_id, until=ended)
    assert attempt.status == "finished"
    secret.unlink()
    with read_session() as s:
        events = "\n".join(f"{e.stdout} {e.data}" for e in s.scalars(select(StepEvent).where(StepEvent.attempt_id == attempt_id)))
    assert "[hidden]" in events
    for needle in (b"marzipan-canary-4711", b"tropical-fish"):
        assert needle not in events.encode()
        assert [str(path) for path in state.rglob("*") if path.is_file() and needle in path.read_bytes()] == []


@pytest.mark.parametrize(("spoil", "code"), [(None, None), ("less", "evidence_missing")])
def test_evidence_is_registered_by_host_and_file_and_what_is_missing_is_named(tmp_path: Path, spoil: str | None, code: str | None) -> None:
    tar = make_tar(tmp_path / "survey.tar", spoil)
    step = playbook_step(playbook="packs.yml", params={"tar": str(tar)}, expects={"engine": ("commands.json", "nvme-list.out")})
    attempt = drive(make_attempt(step), until=ended)
    if code is None:
        with read_session() as s:
            found = {row.path: row for row in s.scalars(select(EvidenceFile))}
        assert attempt.status == "finished"
        row = found["evidence/survey/gpu01/nvme-list.out"]
        assert (row.tool, row.tool_version, row.exit_code, row.argv) == ("nvme-list", "2.8", 0, ["nvme", "list"])
    else:
        assert attempt.problem is not None
        assert attempt.problem["code"] == code
        assert "nvme-list.out" in attempt.problem["en"]
