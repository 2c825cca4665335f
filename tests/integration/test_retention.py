"""What retention takes away, and what it never does."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.accounts.actor import SYSTEM, command_line
from app.approvals.models import Approval
from app.attempts import revisions
from app.attempts.models import Attempt, Sample, StepEvent
from app.audit import chain
from app.audit.models import AuditRow
from app.engine import runs
from app.engine.models import Canary
from app.evidence import store
from app.evidence.models import EvidenceFile
from app.kit.clock import now
from app.kit.db import new_id, read_session, write_session
from app.kit.errors import Forbidden, Refused
from app.ops import janitor, maintenance, metrics, retention
from app.settings import settings
from gates.canonical import canonical_bytes
from tests.alerts import fires
from tests.engine_kit import job_step, make_attempt, steps_of
from tests.people import Cast
from tests.scenes import bring, document, finish

LONG_AGO = timedelta(days=2000)


def old(*, rehearsal: bool = False, counted: bool = False, verdict: str | None = None, status: str = "finished", data: bytes = b"") -> str:
    """Make an attempt that ended years ago, with two events, a sample and a file of evidence."""
    attempt_id = make_attempt(job_step())
    step_id = steps_of(attempt_id)[0].id
    with write_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        bring(s, attempt, "evidence/run-1/gpu01/log.txt", data or attempt_id.encode())
        for n in range(2):
            s.add(StepEvent(attempt_id=attempt_id, step_id=step_id, run="run-1", uuid=str(n), counter=n, kind="verbose", data={}, at=now()))
        s.add(Sample(attempt_id=attempt_id, step_id=step_id, stream="records", seq=1, data={}))
        attempt.rehearsal = rehearsal
        finish(s, attempt, verdict, status)
        attempt.verdict, attempt.finished_at = verdict, now() - LONG_AGO
        attempt.counted_at = now() - LONG_AGO if counted else None
    return attempt_id


def sign(cast: Cast, attempt_id: str) -> None:
    """Let a person sign the attempt's gate."""
    with write_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        row = Approval(
            id=new_id(), engagement_id=attempt.engagement_id, object_kind="sign_off", object_id=attempt_id, object_hash="sha256:1", at=now()
        )
        row.party, row.user_id, row.person, row.role, row.decision = "customer", cast.wang_fang.user_id, "王芳", "-", "approve"
        s.add(row)


def age_the_store() -> None:
    for path in settings().evidence_dir.glob("??/*"):
        os.utime(path, (time.time() - 30 * 86400,) * 2)


def kept(attempt_id: str) -> tuple[int, int, int]:
    """Return how many events, samples and evidence files an attempt has."""
    with read_session() as s:
        counts = [s.scalar(select(func.count()).where(model.attempt_id == attempt_id)) or 0 for model in (StepEvent, Sample, EvidenceFile)]
    return counts[0], counts[1], counts[2]


def apply() -> list[retention.Removal]:
    return retention.apply(actor=command_line())


def test_a_dry_run_says_what_would_go_and_changes_nothing(cast: Cast) -> None:
    rehearsal = old(rehearsal=True)
    with read_session() as s:
        said = {(removal.kind, removal.attempt_id, removal.count) for removal in retention.plan(s)}
    assert said == {("events", rehearsal, 3), ("evidence", rehearsal, 1)}
    assert kept(rehearsal) == (2, 1, 1)


def test_an_unjudged_rehearsal_goes_with_its_bytes_and_the_chain_says_what_went(cast: Cast) -> None:
    rehearsal = old(rehearsal=True, data=b"practice")
    age_the_store()
    assert {removal.kind for removal in apply()} == {"events", "evidence", "orphans"}
    assert kept(rehearsal) == (0, 0, 0)
    with read_session() as s:
        rows = {row.action: row.data for row in s.scalars(select(AuditRow).where(AuditRow.action.startswith("retention.")))}
        assert chain.verify(s).ok
    assert rows["retention.events"] == {"step_event": 2, "sample": 1}
    gone = rows["retention.evidence"]["files"][0]
    assert gone["path"] == "evidence/run-1/gpu01/log.txt"
    assert gone["sha256"] in rows["retention.orphans"]["sha256"]
    assert not store.path_of(gone["sha256"]).exists()


def test_nothing_that_a_signed_report_speaks_of_is_ever_taken_away(cast: Cast) -> None:
    signed = old(verdict="pass", counted=True)
    sign(cast, signed)
    age_the_store()
    before = sorted(settings().evidence_dir.glob("??/*"))
    assert apply() == []
    assert kept(signed) == (2, 1, 1)
    assert sorted(settings().evidence_dir.glob("??/*")) == before


def test_a_judged_attempt_keeps_its_evidence_even_unsigned_and_so_does_one_that_counts(cast: Cast) -> None:
    judged, counts = old(verdict="fail", counted=True), old(counted=True, status="canceled")
    age_the_store()
    assert {(removal.kind, removal.attempt_id) for removal in apply()} == {("events", judged), ("events", counts)}
    assert (kept(judged)[2], kept(counts)[2]) == (1, 1)


def test_what_goes_on_or_can_be_tried_again_loses_nothing(cast: Cast) -> None:
    error = old(status="error", rehearsal=True)
    recent = old(rehearsal=True)
    with write_session() as s:
        s.get_one(Attempt, recent).finished_at = now()
    assert apply() == []
    assert (kept(error), kept(recent)) == ((2, 1, 1), (2, 1, 1))


def test_bytes_that_two_attempts_share_stay_as_long_as_one_of_them_keeps_them(cast: Cast) -> None:
    old(rehearsal=True, data=b"the same")
    judged = old(verdict="pass", counted=True, data=b"the same")
    sign(cast, judged)
    age_the_store()
    apply()
    assert store.read(store.put_bytes(b"the same").sha256) == b"the same"


def test_a_file_that_was_just_stored_is_nobody_s_orphan_yet(cast: Cast) -> None:
    fresh, aged = store.put_bytes(b"fresh").sha256, store.put_bytes(b"aged").sha256
    age_the_store()
    store.put_bytes(b"fresh")  # somebody is about to register it
    assert [(removal.kind, removal.count) for removal in apply()] == [("orphans", 1)]
    assert store.path_of(fresh).exists()
    assert not store.path_of(aged).exists()


def test_a_limit_of_zero_keeps_for_ever(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsal = old(rehearsal=True)
    monkeypatch.setattr(settings(), "keep_events_days", 0)
    monkeypatch.setattr(settings(), "keep_unjudged_days", 0)
    assert apply() == []
    assert kept(rehearsal) == (2, 1, 1)


def test_it_waits_for_a_backup_and_takes_an_administrator(cast: Cast) -> None:
    with maintenance.alone(), pytest.raises(Refused, match="is running"):
        apply()
    with pytest.raises(Forbidden):
        retention.apply(actor=cast.li_wei)


def test_a_backup_on_one_node_keeps_retention_from_running_on_another(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node-2").mkdir()
    with maintenance.alone():
        (tmp_path / "node-2/evidence").symlink_to(settings().evidence_dir)
        monkeypatch.setattr(settings(), "state_dir", tmp_path / "node-2")  # a state directory of its own, the same database and evidence
        with pytest.raises(Refused, match="is running"):
            apply()


def test_a_damaged_manifest_makes_no_orphans_of_what_it_lists(cast: Cast) -> None:
    only_listed = store.put_bytes(b"listed, and no row says so").sha256
    attempt_id = old()
    with write_session() as s:
        listed = {"schema": 1, "files": [{"path": "evidence/x", "sha256": only_listed}]}
        manifest = store.put_bytes(canonical_bytes(listed)).sha256
        attempt = s.get_one(Attempt, attempt_id)
        revisions.add(
            s, attempt_id=attempt_id, document=document(attempt, "pass"), actor=SYSTEM, manifest_hash=f"sha256:{manifest}", g2_baseline=None
        )
    age_the_store()
    whole = store.path_of(manifest).read_bytes()
    store.path_of(manifest).chmod(0o600)
    store.path_of(manifest).write_bytes(whole + b"!")
    os.utime(store.path_of(manifest), (time.time() - 30 * 86400,) * 2)
    apply()
    assert store.path_of(only_listed).exists()


def test_nothing_goes_by_itself_unless_the_operator_said_so(cast: Cast) -> None:
    rehearsal = old(rehearsal=True)
    janitor.sweep_when_due()
    assert kept(rehearsal) == (2, 1, 1)
    assert "quadgate_retention_age_seconds 1e+09" in metrics.text().decode()


def test_once_a_day_where_the_operator_said_so(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "retention_daily", True)
    first = old(rehearsal=True)
    with maintenance.alone():
        assert retention.apply_when_due() == []  # a backup is being made: later
    janitor.sweep_when_due()
    assert kept(first) == (0, 0, 0)
    with read_session() as s:
        row = s.scalars(select(AuditRow).where(AuditRow.action == "retention.evidence")).one()
    assert (row.actor, row.object_id) == (SYSTEM.label, first)
    second = old(rehearsal=True)
    assert retention.apply_when_due() == []
    with write_session() as s:
        s.get_one(Canary, retention.RUN).returned_at = now() - timedelta(hours=25)
    assert {removal.attempt_id for removal in retention.apply_when_due()} == {second}


def test_a_daily_retention_that_stopped_raises_an_alert_and_one_that_nobody_asked_for_raises_none(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert = "QuadgateRetentionStopped"
    assert not fires(alert)
    monkeypatch.setattr(settings(), "retention_daily", True)
    assert fires(alert)  # never yet
    with maintenance.alone():
        retention.apply_when_due()  # refused, as by a backup that hangs
    assert fires(alert)
    retention.apply_when_due()
    assert not fires(alert)
    with write_session() as s:
        s.get_one(Canary, retention.RUN).returned_at = now() - timedelta(days=3)
    assert fires(alert)
    monkeypatch.setattr(settings(), "retention_daily", False)
    assert not fires(alert)


def test_a_portion_that_was_not_all_is_no_run_and_goes_on_next_time(cast: Cast) -> None:
    rehearsal = old(rehearsal=True)
    assert retention.apply(actor=command_line(), seconds=-1) == []
    with read_session() as s:
        assert retention.last_run(s) is None
    assert {removal.attempt_id for removal in apply()} == {rehearsal}
    with read_session() as s:
        assert retention.last_run(s) is not None


def staged(attempt_id: str, run: str, *, used: bool = True) -> Path:
    folder = runs.folder_of(attempt_id, "run-1", run)
    (folder / "staging" / "gpu01").mkdir(parents=True)
    (folder / "staging" / "gpu01" / "pack.tar").write_bytes(b"x" * 1000)
    if used:
        (folder / "used").touch()
    return folder


def test_the_janitor_clears_what_was_fetched_and_dealt_with_and_nothing_that_is_still_needed(state: Path) -> None:
    attempt_id = make_attempt(job_step())
    earlier, present, unread = staged(attempt_id, "poll-1"), staged(attempt_id, "poll-2"), staged(attempt_id, "poll-3", used=False)
    with write_session() as s:
        step = s.merge(steps_of(attempt_id)[0])
        step.status, step.result = "polling", {"run": "poll-2"}
    assert janitor.sweep() == 1000
    assert [(folder / "staging").exists() for folder in (earlier, present, unread)] == [False, True, True]
    assert (earlier / "used").exists()  # the engine counts its runs by it
    with write_session() as s:
        s.merge(steps_of(attempt_id)[0]).status = "failed"
    assert janitor.sweep() == 0  # somebody may want to look into it
    with write_session() as s:
        s.merge(steps_of(attempt_id)[0]).status = "done"
    assert janitor.sweep() == 1000
    assert (unread / "staging").exists()


def test_the_janitor_removes_the_directory_of_an_attempt_that_ended_long_ago_and_no_other(state: Path) -> None:
    over = old()
    staged(over, "run-1")
    strange = settings().runs_dir / "not-an-attempt"
    (strange / "run-1-x" / "staging").mkdir(parents=True)
    assert janitor.sweep_when_due() == 1000
    assert not (settings().runs_dir / over).exists()
    assert (strange / "run-1-x" / "staging").exists()
    staged(over, "run-2")
    assert janitor.sweep_when_due() == 0  # ten minutes are not over
