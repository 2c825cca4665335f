"""A soak under load is handed over in its midst: backup, SIGKILL, restore elsewhere. Real probe and playbooks, a process a controller."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.accounts.actor import SYSTEM
from app.attempts.models import Attempt, StepEvent, VerdictRevision
from app.attempts.usecases import request_cancel
from app.audit import chain
from app.audit.models import AuditRow
from app.engine import marker
from app.engine.samples import LIVE_FIELDS_MAX
from app.evidence.models import EvidenceFile
from app.evidence.usecases import export_bundle
from app.kit.db import read_session, write_session
from app.settings import settings
from lanes.faults.account import reply_of
from lanes.recovery.handover import HOST, Controller, Target, kept
from tests.engine_kit import attempt_of, steps_of, wait_for
from tests.integration.playbook_lab import playbook_lab
from tests.people import Cast
from tests.unit.probe.kit import lines, probe, write

JOURNALS = ("records", "telemetry")
EVERY = (*JOURNALS, "phases", "events", "counters", "coldness")


@pytest.fixture
def target(state: Path) -> Iterator[Target]:
    """Give a host on which everything is deployed; what runs there at the end is ended by the playbook that removes it."""
    with playbook_lab() as lab:
        yield Target(lab)


@pytest.fixture
def old(target: Target, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    """Give the machine on which the soak is begun."""
    with Controller("old-machine", state, settings().database_url, tmp_path / "old.log", monkeypatch) as controller:
        yield controller


@pytest.fixture
def new(target: Target, tmp_path: Path, another_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    """Give the machine to which it is handed over: there is nothing yet."""
    with Controller("new-machine", tmp_path / "new-machine", another_database, tmp_path / "new.log", monkeypatch) as controller:
        yield controller


def test_a_soak_under_load_goes_on_under_another_controller_and_is_judged_once_by_all_of_its_evidence(
    target: Target, old: Controller, new: Controller, cast: Cast, tmp_path: Path
) -> None:
    old.go()
    attempt_id = target.attempt()
    old.start(attempt_id)
    wait_for(lambda: any(row["phase"] == "soak" for row in kept(attempt_id, "records").values()), said="a poll that brings lines of the load")
    old.quadgate("backup", tmp_path / "copy")
    then = len(kept(attempt_id, "records"))
    wait_for(lambda: len(kept(attempt_id, "records")) > then and steps_of(attempt_id)[0].status == "polling", said="a poll after the backup")
    old.kill(attempt_id)  # with a poll under way
    killed_ns = time.monotonic_ns()
    assert marker.carriers(attempt_id) == []
    unsaved, before = {stream: kept(attempt_id, stream) for stream in JOURNALS}, attempt_of(attempt_id)

    new.go()
    assert attempt_id in new.quadgate("restore", tmp_path / "copy")
    saved, adopted = {stream: kept(attempt_id, stream) for stream in JOURNALS}, attempt_of(attempt_id)
    assert all(len(unsaved[stream]) > len(saved[stream]) > 0 for stream in JOURNALS)  # the backup does not have the old one's last polls
    assert (before.node, adopted.node, adopted.fence > before.fence) == ("old-machine", None, True)
    new.start(attempt_id)
    wait_for(lambda: len(kept(attempt_id, "records")) > len(saved["records"]), said="the first poll of the new controller")
    asked_ns = time.monotonic_ns()
    assert (attempt_of(attempt_id).node, target.fence()) == ("new-machine", adopted.fence)
    with new.held():
        the_old_one_comes_back(target, old, attempt_id, before.fence, cast)

    new.go()
    new.comes_to(attempt_id, "finished")
    assert steps_of(attempt_id)[0].problem is None
    began_once(target, new, attempt_id)
    no_gap(target, attempt_id, killed_ns, asked_ns)
    every_line_came_home(target, attempt_id, unsaved)
    judged_once(new, attempt_id, tmp_path / "bundle")


def the_old_one_comes_back(target: Target, old: Controller, attempt_id: str, fence: int, cast: Cast) -> None:
    """Let the old controller go on from its own database, then have it cancel: it is told that it was replaced, and changes and judges nothing."""
    old.go()
    old.start(attempt_id)
    assert (old.comes_to(attempt_id, "error").problem or {})["code"] == "taken_over"
    with write_session() as s:
        request_cancel(s, attempt_id=attempt_id, reason="nobody told me", actor=cast.li_wei)
    attempt = old.comes_to(attempt_id, "canceled")
    assert ((attempt.problem or {})["code"], attempt.verdict) == ("taken_over", None)
    with read_session() as s:
        assert s.scalar(select(func.count()).select_from(VerdictRevision)) == 0
        assert chain.verify(s).ok
    job = target.job(attempt_id)
    order = write(old.folder / "order.json", {**json.loads((job / "job.json").read_text()), "fence": fence})
    held = ("--attempt", attempt_id, "--fence", fence)
    for words in (("lock", "take", *held), ("job", "start", "--spec", order), ("job", "stop", "--job", job.name, *held)):
        assert "fencing number" in probe(target.root / "probe.pyz", words[0], words[1], "--root", target.root, *words[2:], expect=3).stderr


def began_once(target: Target, new: Controller, attempt_id: str) -> None:
    """See that there was one start, one process and one way through the phases."""
    job = target.job(attempt_id)
    started, beat, end = (json.loads((job / name).read_text()) for name in ("started", "heartbeat.json", "exit.json"))
    assert (end["outcome"], end["error"]) == ("done", None)  # of itself: nobody stopped it
    assert (started["pid"], started["boot_id"]) == (beat["pid"], beat["boot_id"])
    assert [path.name for path in job.parent.iterdir()] == [job.name]
    assert [path.name for path in job.glob("started*")] == ["started"]
    phases = [(row["phase"], row["tier"]) for row in lines(job / "phases.jsonl")]
    assert (phases[-1][0], len(phases)) == ("soak", len(set(phases)))
    assert len({row["engine"]["pid"] for row in lines(job / "telemetry.jsonl")}) == 1
    with read_session() as s:
        told = select(StepEvent.stdout).where(StepEvent.attempt_id == attempt_id, StepEvent.run.like("start-%"), StepEvent.task == "reply")
        assert [reply_of(text) for text in s.scalars(told.where(StepEvent.kind == "runner_on_ok"))] == ["started"]
    assert list((new.folder / "runs" / attempt_id).glob("soak-start-*")) == []


def no_gap(target: Target, attempt_id: str, killed_ns: int, asked_ns: int) -> None:
    """See that the load went on as if nobody had gone: from its begin to its end, and while no controller was there."""
    sent = [row["sent_ns"] for row in target.load(attempt_id)]
    assert sent[-1] - sent[0] >= (target.soak_s - target.gap_s) * 1e9
    assert sent[0] < killed_ns < asked_ns < sent[-1]
    assert sum(killed_ns < at < asked_ns for at in sent) > 10
    assert max(later - earlier for earlier, later in itertools.pairwise(sent)) < target.gap_s * 1e9
    assert not [row for row in target.load(attempt_id) if row["error"]]


def every_line_came_home(target: Target, attempt_id: str, unsaved: dict[str, dict[int, Any]]) -> None:
    """Hold what is stored against the target's journals: each line once, also those that the old controller had and the backup had not."""
    job = target.job(attempt_id)
    for stream in JOURNALS:
        written = (job / f"{stream}.jsonl").read_text().splitlines()
        rows = {row["seq"]: row for row in map(live, written)}
        assert list(rows) == list(range(len(written))), stream
        stored = kept(attempt_id, stream)
        assert stored.keys() == rows.keys(), stream
        assert stored == rows, stream
        assert unsaved[stream] == {seq: rows[seq] for seq in unsaved[stream]}, stream
    with read_session() as s:
        known = {row.path: row.sha256 for row in s.scalars(select(EvidenceFile).where(EvidenceFile.attempt_id == attempt_id))}
    for name in (*(f"{stream}.jsonl" for stream in EVERY), "started", "exit.json"):
        data = (job / name).read_bytes()
        assert known[f"evidence/soak/{HOST}/{name}"] == hashlib.sha256(data).hexdigest(), name
        if name.endswith(".jsonl"):
            assert [json.loads(line)["seq"] for line in data.splitlines()] == list(range(data.count(b"\n"))), name


def live(line: str) -> dict[str, Any]:
    """Return what the live page keeps of a line: of a long one its scalars."""
    row: dict[str, Any] = json.loads(line)
    return row if len(line) <= LIVE_FIELDS_MAX else {key: value for key, value in row.items() if not isinstance(value, dict | list)}


def judged_once(new: Controller, attempt_id: str, bundle: Path) -> None:
    """See that there is one verdict, that the evidence alone gives the same, and that the audit chain tells it whole."""
    with read_session() as s:
        rows = list(s.scalars(select(VerdictRevision)))
        assert [row.attempt_id for row in rows] == [attempt_id]
        assert s.get_one(Attempt, attempt_id).verdict == rows[0].verdict
        whole = next(check for check in rows[0].document["checks"] if check["id"] == "g4.evidence")
        assert whole["verdict"] == "pass", whole["reason"]["en"]
        assert chain.verify(s).ok
        actions = list(s.scalars(select(AuditRow.action).order_by(AuditRow.seq)))
        assert [actions.count(name) for name in ("service.restore", "attempt.start", "attempt.finish")] == [1, 1, 1]
        assert actions.index("attempt.start") < actions.index("service.restore") < actions.index("attempt.finish")
        export_bundle(s, attempt_id=attempt_id, dest=bundle, actor=SYSTEM)
    told = json.loads(new.quadgate("judge", bundle, "--json", ends=(0, 1, 2, 3)))  # 4: the evidence gives another verdict than the stored one
    assert told["verdict"] == rows[0].verdict
