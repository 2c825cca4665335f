"""A backup made while everything is written to is whole; it comes back into an empty place only; what ran is adopted there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.accounts.actor import SYSTEM, command_line
from app.accounts.usecases import issue_token, sign_in
from app.attempts import revisions
from app.attempts.models import Attempt
from app.audit import chain
from app.audit.models import AuditRow
from app.engine import locks
from app.engine.models import HostLock, Node
from app.evidence import store
from app.evidence.usecases import export_bundle, present_manifest
from app.kit.clock import now
from app.kit.db import database_now, read_session, write_session
from app.kit.errors import QuadgateError, Refused
from app.ops import backup, database_copy
from app.ops.restore import restore
from app.settings import ROOT, settings
from gates.canonical import canonical_bytes
from tests.conftest import _forget
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, steps_of, wait_for
from tests.people import PASSWORD, Cast
from tests.scenes import bring, document


def make(folder: Path, **more: bool) -> backup.Backup:
    return backup.make(folder, credentials=more.get("credentials", False), actor=command_line())


@pytest.fixture
def elsewhere(tmp_path: Path, another_database: str, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """Describe another machine; what follows a call of `go` happens there."""
    return Elsewhere(tmp_path / "other-machine", another_database, monkeypatch)


@dataclass(frozen=True)
class Elsewhere:
    """Another machine: its state directory, its database, its name as a node."""

    folder: Path
    database: str
    patch: pytest.MonkeyPatch

    def go(self) -> None:
        """Let what follows happen there."""
        _forget()
        self.patch.setenv("QUADGATE_STATE_DIR", str(self.folder))
        self.patch.setenv("QUADGATE_DATABASE_URL", self.database)
        self.patch.setenv("QUADGATE_NODE", "other-machine")
        _forget()


def with_evidence(data: bytes = b"temperature 31 C\n") -> str:
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        bring(s, s.get_one(Attempt, attempt_id), "evidence/run-1/gpu01/smart.txt", data)
    return attempt_id


def test_what_is_written_meanwhile_does_not_tear_the_copy(state: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    with_evidence()
    over, written = threading.Event(), threading.Event()

    def write_on() -> None:
        while not over.is_set():
            with_evidence(os.urandom(20_000))
            written.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        written.wait(60)
        made = make(tmp_path / "copy")
    finally:
        over.set()
        writer.join()
    assert made.problems == []
    elsewhere.go()
    restored = restore(tmp_path / "copy", actor=command_line())
    with read_session() as s:
        assert chain.verify(s).ok
        files = s.scalar(select(func.count()).select_from(Attempt))
    assert files == len(restored.adopted) >= 2


def test_sessions_and_tokens_are_no_stored_files(cast: Cast, tmp_path: Path) -> None:
    with write_session() as s:
        sign_in(s, login="li.wei", password=PASSWORD)
        issue_token(s, user_id=cast.li_wei.user_id, name="ci", days=1)
    assert make(tmp_path / "copy").problems == []


def test_evidence_comes_back_byte_for_byte_and_with_modes_that_keep_it(
    state: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = with_evidence("温度 31 C\n".encode())
    make(tmp_path / "copy")
    elsewhere.go()
    restore(tmp_path / "copy", actor=command_line())
    with read_session() as s:
        export_bundle(s, attempt_id=attempt_id, dest=tmp_path / "bundle", actor=SYSTEM)
    assert (tmp_path / "bundle/evidence/run-1/gpu01/smart.txt").read_text() == "温度 31 C\n"
    assert all(path.stat().st_mode & 0o777 == 0o400 for path in store.stored_files())
    with read_session() as s:
        actions = list(s.scalars(select(AuditRow.action).order_by(AuditRow.seq.desc()).limit(1)))
    assert actions == ["service.restore"]


def test_a_soak_is_adopted_by_another_machine_with_a_higher_fence_and_no_second_start(
    state: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"  # the target stays where it is when the controller goes
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    monkeypatch.setenv("QUADGATE_NODE", "old-machine")
    settings.cache_clear()
    hosts = {"gpu01": {"groups": ["engine", "loadgen"], "connection": "local", "root": str(target)}}
    attempt_id = make_attempt(job_step(params={"kind": "soak", "seconds": 4, "lines": 40}), hosts=hosts)
    drive(attempt_id, until=lambda _: steps_of(attempt_id)[0].status == "running")
    before = attempt_of(attempt_id)
    job = target / "jobs" / f"{attempt_id}-run-1"
    assert make(tmp_path / "copy").problems == []
    shutil.rmtree(state)  # the old machine is gone
    elsewhere.go()
    assert restore(tmp_path / "copy", actor=command_line()).adopted == [attempt_id]
    after = attempt_of(attempt_id)
    assert (after.node, after.lease_owner, before.node) == (None, None, "old-machine")
    assert after.fence > before.fence
    with read_session() as s:
        assert set(s.scalars(select(HostLock.fence))) == {after.fence}
        assert s.scalar(select(func.count()).select_from(Node)) == 0
    finished = drive(attempt_id, until=ended)
    assert (finished.status, finished.node) == ("finished", "other-machine")
    assert len((job / "started").read_text().split()) == len((job / "asked").read_text().split()) == 1
    assert [json.loads(line)["seq"] for line in (job / "records.jsonl").read_text().splitlines()] == list(range(40))


@pytest.mark.sqlite  # two empty databases to restore into
def test_of_two_restores_of_one_backup_the_later_has_the_higher_fence_and_both_are_above_a_take_over_by_a_node(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        locks.raise_fence(s, attempt_id)
    make(tmp_path / "copy")
    with write_session() as s:  # the target may have heard of it
        fences = [locks.raise_fence(s, attempt_id) for _ in range(20)][-1:]
    for days in (0, 1):
        Elsewhere(tmp_path / f"other-machine-{days}", "", monkeypatch).go()
        with monkeypatch.context() as patch:
            patch.setattr("app.ops.restore.database_now", lambda s, days=days: database_now(s) + timedelta(days=days))
            restore(tmp_path / "copy", actor=command_line())
        fences.append(attempt_of(attempt_id).fence)
    assert sorted(set(fences)) == fences


def test_a_playbook_that_ran_on_the_old_machine_counts_as_lost_and_a_job_is_asked_again(
    state: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    settings.cache_clear()
    hosts = {"gpu01": {"groups": ["engine", "loadgen"], "connection": "local", "root": str(target)}}
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 1, "lines": 10}), hosts=hosts)
    drive(attempt_id, until=lambda _: steps_of(attempt_id)[0].status == "starting")
    job = target / "jobs" / f"{attempt_id}-run-1"
    wait_for(lambda: (job / "started").exists())
    make(tmp_path / "copy")
    elsewhere.go()
    restore(tmp_path / "copy", actor=command_line())
    assert drive(attempt_id, until=ended).status == "finished"
    assert steps_of(attempt_id)[0].try_no == 2
    assert len((job / "started").read_text().split()) == 1  # asked twice, begun once
    assert len((job / "asked").read_text().split()) == 2


def test_it_names_evidence_that_the_store_has_lost_or_altered_and_copies_the_rest(state: Path, tmp_path: Path) -> None:
    with_evidence(b"good")
    with_evidence(b"damaged")
    with_evidence(b"lost")
    damaged, lost = (store.path_of(store.put_bytes(data).sha256) for data in (b"damaged", b"lost"))
    damaged.chmod(0o600)
    damaged.write_bytes(b"DAMAGED")
    lost.unlink()
    made = make(tmp_path / "copy")
    told = " ".join(problem.en for problem in made.problems)
    assert str(damaged) in told
    assert lost.parent.name + lost.name in told
    assert not (state / "last-backup.json").exists()  # no alert is silenced by it
    assert len(list((tmp_path / "copy/evidence").glob("*/*"))) == 1


def damage(path: Path) -> None:
    path.chmod(0o600)
    with path.open("ab") as file:
        file.write(b"!")


def judged(attempt_id: str) -> str:
    """Give an attempt a verdict that rests on its manifest, and return the manifest's SHA-256."""
    with write_session() as s:
        manifest = present_manifest(s, attempt_id)
        kept = store.put_bytes(canonical_bytes(manifest)).sha256
        attempt = s.get_one(Attempt, attempt_id)
        attempt.status, attempt.verdict, attempt.finished_at = "finished", "pass", now()
        revisions.add(s, attempt_id=attempt_id, document=document(attempt, "pass"), actor=SYSTEM, manifest_hash=f"sha256:{kept}", g2_baseline=None)
    return kept


def test_a_damaged_file_that_nothing_refers_to_costs_nothing_but_itself(state: Path, tmp_path: Path, elsewhere: Elsewhere) -> None:
    with_evidence(b"good")
    orphan = store.path_of(store.put_bytes(b"a PDF of long ago").sha256)
    other = store.put_bytes(b"another").sha256
    damage(orphan)
    made = make(tmp_path / "copy")
    assert made.problems == []
    assert [str(orphan) in warning.en for warning in made.warnings] == [True]
    assert (state / "last-backup.json").exists()
    damage(tmp_path / "copy/evidence" / other[:2] / other[2:])  # and one in the copy itself
    elsewhere.go()
    restored = restore(tmp_path / "copy", actor=command_line())
    assert [text.en for text in restored.damage] == [warning.en for warning in backup.verify(tmp_path / "copy").warnings]
    assert len(restored.damage) == 2
    assert [path.read_bytes() for path in store.stored_files()] == [b"good"]
    assert make(tmp_path / "later").problems == []


@pytest.mark.parametrize("where", ["store", "copy"])
def test_damage_that_somebody_accepts_is_named_recorded_and_never_looks_whole(where: str, state: Path, tmp_path: Path, elsewhere: Elsewhere) -> None:
    kept, hurt = with_evidence(b"kept"), with_evidence(b"hurt")
    judged(kept)
    judged(hurt)
    sha256 = store.put_bytes(b"hurt").sha256
    if where == "store":
        damage(store.path_of(sha256))
    make(tmp_path / "copy")
    if where == "copy":
        damage(tmp_path / "copy/evidence" / sha256[:2] / sha256[2:])
    elsewhere.go()
    with pytest.raises(QuadgateError, match="--accept-damage"):
        restore(tmp_path / "copy", actor=command_line())
    restored = restore(tmp_path / "copy", actor=command_line(), accept_damage=True)
    told = " ".join(text.en for text in restored.damage)
    assert (sha256[2:] in told, hurt in told, kept in told) == (True, True, False)
    with read_session() as s:
        row = s.scalars(select(AuditRow).order_by(AuditRow.seq.desc()).limit(1)).one()
        assert (row.action, row.data["damage_accepted"], row.data["lost"]) == ("service.restore", True, [sha256])
        assert row.data["verdicts_rest_on"] == {sha256: [hurt]}
        assert chain.verify(s).ok
        export_bundle(s, attempt_id=kept, dest=tmp_path / "bundle", actor=SYSTEM)
        with pytest.raises(QuadgateError, match=sha256):
            export_bundle(s, attempt_id=hurt, dest=tmp_path / "bundle-2", actor=SYSTEM)
    assert not store.path_of(sha256).exists()
    assert sha256 in " ".join(problem.en for problem in make(tmp_path / "later").problems)  # it is not forgotten


def test_a_damaged_database_cannot_be_accepted(state: Path, tmp_path: Path, elsewhere: Elsewhere) -> None:
    with_evidence()
    make(tmp_path / "copy")
    damage(next(path for path in (tmp_path / "copy").rglob("*") if path.name in ("database.sqlite", "audit_row.copy")))
    elsewhere.go()
    with pytest.raises(QuadgateError, match="cannot be accepted"):
        restore(tmp_path / "copy", actor=command_line(), accept_damage=True)
    assert not elsewhere.folder.exists()
    database_copy.require_empty()


@pytest.mark.parametrize("what", ["evidence", "database", "extra", "note"])
def test_a_backup_that_was_touched_is_told_and_not_restored(
    what: str, state: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_evidence()
    make(tmp_path / "copy")
    database = next(path for path in (tmp_path / "copy").rglob("*") if path.name in ("database.sqlite", "audit_row.copy"))
    victim = {"evidence": next((tmp_path / "copy/evidence").glob("*/*")), "database": database}.get(what)
    if victim is not None:
        victim.chmod(0o600)
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
    elif what == "extra":
        (tmp_path / "copy/evidence/note.txt").write_text("hello")
    else:
        (tmp_path / "copy/backup.json").write_text('{"schema": 1')
    elsewhere.go()
    with pytest.raises(QuadgateError) as refused:
        restore(tmp_path / "copy", actor=command_line())
    assert refused.value.code in ("backup_damaged", "no_backup")
    assert not elsewhere.folder.exists()
    database_copy.require_empty()  # nothing was changed


def test_it_restores_into_an_empty_state_directory_only(state: Path, tmp_path: Path) -> None:
    make(tmp_path / "copy")
    with pytest.raises(Refused, match="into an empty one"):
        restore(tmp_path / "copy", actor=command_line())


def test_a_backup_goes_into_a_new_folder_outside_of_the_state(state: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refused, match="is not empty"):
        make(tmp_path)
    with pytest.raises(Refused, match="on another disk"):
        make(state / "backup")


def test_credentials_are_copied_only_when_asked_for_and_stay_private(
    state: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "credentials").mkdir(mode=0o700)
    (state / "credentials/gpu01").write_text("secret-marker")
    (state / "credentials/gpu01").chmod(0o600)
    make(tmp_path / "without")
    assert not [path for path in (tmp_path / "without").rglob("*") if path.is_file() and b"secret-marker" in path.read_bytes()]
    make(tmp_path / "with", credentials=True)
    elsewhere.go()
    restore(tmp_path / "with", actor=command_line())
    kept = elsewhere.folder / "credentials/gpu01"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("secret-marker", 0o600)


def test_the_commands_say_it_by_their_exit_code_and_never_with_one_of_a_verdict(state: Path, tmp_path: Path, elsewhere: Elsewhere) -> None:
    environment = {**os.environ, "LANG": "zh_CN.UTF-8"}

    def quadgate(*words: str, **more: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", "from app.cli import main; main()", *words],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**environment, **more},
        )
        return done.returncode, done.stdout + done.stderr

    with_evidence()
    copy = str(tmp_path / "copy")
    assert quadgate("backup", copy)[0] == 0
    code, said = quadgate("backup", "--verify", copy)
    assert (code, "完整" in said) == (0, True)
    there = {"QUADGATE_STATE_DIR": str(elsewhere.folder), "QUADGATE_DATABASE_URL": elsewhere.database}
    assert quadgate("restore", copy, **there)[0] == 0
    assert "完整" in quadgate("audit", "verify", **there)[1]
    assert quadgate("restore", copy, **there)[0] == 65
    code, said = quadgate("retention", **there)
    assert (code, "--apply" in said) == (0, True)
    next((tmp_path / "copy/evidence").glob("*/*")).unlink()
    code, said = quadgate("backup", "--verify", copy)
    assert (code, "不完整" in said) == (65, True)
    assert quadgate("backup")[0] == 64
