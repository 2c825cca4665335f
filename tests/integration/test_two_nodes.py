"""Two nodes, one database: what one began, the other goes on with when the first has fallen silent, if it sees its evidence."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.attempts.models import Attempt, StepEvent
from app.attempts.usecases import request_cancel
from app.engine import due, events, hints, marker, nodes, runs
from app.engine.advance import advance
from app.engine.claim import claim
from app.engine.models import Node
from app.engine.policy import CANCEL_STALE_S, NODE_STALE_S, SECOND_LOOK_S, SILENT_S
from app.engine.tick import tick
from app.kit.db import database_now, read_session, write_session
from app.ops import health
from app.settings import settings
from gates.model import StepKind, StepSpec
from gates.text import Text
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, fall_silent, job_step, make_attempt, playbook_step, steps_of, wait_for
from tests.people import Cast
from tests.scenes import bring


@pytest.fixture
def far(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be the node that will fall silent; its state directory is given."""
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    be("far", state)
    return state


@pytest.fixture
def near(far: Path) -> Iterator[Path]:
    """A second state directory, for the node that may take over; its evidence folder is its own."""
    folder = Path(tempfile.mkdtemp(prefix="qg-"))
    (folder / "evidence").mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def shared(far: Path, near: Path) -> None:
    """Let the evidence folder of the second node be that of the first."""
    (near / "evidence").rmdir()
    (near / "evidence").symlink_to(far / "evidence", target_is_directory=True)


def be(node: str, folder: Path) -> None:
    """Be this node, whose worker beats."""
    settings().node, settings().state_dir = node, folder
    nodes.beat(node)


def collected() -> str:
    """Make an attempt whose evidence was brought to the first node, which dies before it judges; return its id."""
    attempt_id = make_attempt(StepSpec(key="judge", kind=StepKind.JUDGE, title=Text("judge", "判定")))
    with write_session() as s:
        bring(s, s.get_one(Attempt, attempt_id), "evidence/run-1/gpu01/records.jsonl", b"{}")
    drive(attempt_id, until=lambda attempt: attempt.status == "running")
    fall_silent("far", NODE_STALE_S + 1)
    with write_session() as s:
        s.get_one(Attempt, attempt_id).last_enqueued_at = None  # its last hint is as old
    return attempt_id


def test_a_playbook_that_ran_on_the_silent_node_is_lost_and_run_again_with_all_its_events(far: Path, near: Path, shared: None) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 120}))
    try:
        drive(attempt_id, until=lambda _: int((steps_of(attempt_id)[0].result or {}).get("events_at", 0)) > 0)  # some events are stored
        seen = steps_of(attempt_id)[0].result
        fall_silent("far", NODE_STALE_S + 1)
        be("near", near)
        with write_session() as s:
            spec = steps_of(attempt_id)[0]
            s.merge(spec).spec = {**spec.spec, "params": {"seconds": 0}}  # the second time it is quick
        attempt = drive(attempt_id, until=ended)
    finally:
        wait_for(lambda: not marker.carriers(attempt_id) or marker.end_all(attempt_id) is not None)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, attempt.problem, attempt.node, attempt.fence) == ("finished", None, "near", 1)
    assert (step.result["run"], step.result["lost"], step.try_no) == ("run-2", 1, 2)
    assert runs.look(runs.folder_of(attempt_id, "survey", "run-1")).look is runs.Look.LOST
    with read_session() as s:
        assert events.stored(s, step.id, "run-1") > 0  # what the first had told stays
        assert s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.run == "run-2")) > 0
    assert seen["events_at"] > 0


def test_who_takes_over_judges_what_the_silent_node_collected(far: Path, near: Path, shared: None) -> None:
    attempt_id = collected()
    be("near", near)
    assert health_of_evidence() == (True, "all nodes have one evidence store")
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem, attempt.node, attempt.fence) == ("finished", None, "near", 1)
    assert attempt.verdict is not None


def test_a_node_that_does_not_see_the_evidence_refuses_by_name_and_leaves_the_attempt_to_the_first(
    far: Path, near: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id, sent = collected(), list[str]()
    monkeypatch.setattr(hints, "publish_advance", lambda attempt_id, *_: sent.append(attempt_id))
    monkeypatch.setattr(hints, "publish", lambda *_args, **_kw: True)
    be("near", near)
    fresh = make_attempt(playbook_step())  # of no node yet: it goes on here
    assert not advance(attempt_id, attempt_of(attempt_id).generation)
    for _ in range(2):
        tick()
    stranded = attempt_of(attempt_id)
    assert (stranded.status, stranded.node, stranded.fence, stranded.verdict, sent) == ("running", "far", 0, None, [fresh])
    assert stranded.problem is not None
    for language in ("en", "zh-CN"):
        assert "far" in stranded.problem[language]
    assert "due attempts that wait for the silent node far, whose evidence nobody else sees: 1" in health_of_evidence()[1]
    be("far", far)
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem, attempt.node) == ("finished", None, "far")
    assert attempt.verdict is not None


def test_a_copy_of_the_evidence_from_before_the_node_was_started_is_not_taken_for_it(far: Path, near: Path) -> None:
    shutil.copytree(far / "evidence", near / "evidence", dirs_exist_ok=True)
    nodes.beat("far", began=True)
    attempt_id = collected()
    be("near", near)
    assert not advance(attempt_id, attempt_of(attempt_id).generation)
    shutil.copytree(far / "evidence", near / "evidence", dirs_exist_ok=True)  # all that the silent node had
    be("near", near)
    assert drive(attempt_id, until=ended).status == "finished"


def test_nodes_that_do_not_share_their_evidence_are_named_before_one_of_them_fails(far: Path, near: Path) -> None:
    be("near", near)
    be("far", far)
    assert not health_of_evidence()[0]
    for named in ("node far does not see the evidence of node near", "node near does not see the evidence of node far"):
        assert named in health_of_evidence()[1]


def test_a_cancel_needs_no_evidence_and_is_carried_out_by_any_node(far: Path, near: Path, cast: Cast) -> None:
    attempt_id = collected()
    be("near", near)
    with write_session() as s:
        request_cancel(s, attempt_id=attempt_id, reason="the node is gone", actor=cast.li_wei)
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.node, attempt.verdict) == ("canceled", "near", None)


def health_of_evidence() -> tuple[bool, str]:
    answer = health.look().answers["evidence"]
    return answer.ok, answer.detail


def dealt(*attempts: str) -> Counter[str]:
    """Return how many of these attempts would be hinted now to each node."""
    with read_session() as s:
        return Counter(row.node for row in due.look(s).rows if row.attempt_id in attempts)


def put(node: str | None, count: int) -> list[str]:
    """Make due attempts of a node; None: of none yet, as a restore leaves them."""
    made = [make_attempt(playbook_step()) for _ in range(count)]
    with write_session() as s:
        for attempt_id in made:
            s.get_one(Attempt, attempt_id).node = node
    return made


def test_attempts_of_no_node_are_dealt_to_the_nodes_with_the_fewest(far: Path) -> None:
    nodes.beat("near")
    assert dealt(*put(None, 12)) == {"far": 6, "near": 6}


def test_what_a_node_has_already_counts_and_so_does_what_was_hinted_and_not_taken_up(far: Path) -> None:
    nodes.beat("near")
    put("far", 4)
    hinted, fresh = put(None, 3), put(None, 5)
    with write_session() as s:
        due.stamp(s, [row for row in due.look(s).rows if row.attempt_id in hinted])
    assert dealt(*fresh) == {"far": 2, "near": 3}


def test_attempts_of_a_silent_node_are_dealt_to_those_who_see_its_evidence_and_none_to_one_that_is_missing(far: Path) -> None:
    for node in ("gone", "near", "missing", "far"):
        nodes.beat(node)
    theirs = put("gone", 10)
    fall_silent("gone", NODE_STALE_S + 1)
    fall_silent("missing", SILENT_S + 1)
    assert dealt(*theirs) == {"far": 5, "near": 5}


def test_a_clock_that_jumps_forward_makes_nobody_a_silent_node_before_a_second_look(far: Path) -> None:
    """All heartbeats are old at once then. Whoever lives has beaten again when somebody looks a second time."""
    nodes.beat("near")
    attempt_id = make_attempt(playbook_step())
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).node = "far"
        for row in s.scalars(select(Node)):
            row.heartbeat_at = database_now(s) - timedelta(seconds=650)
    tick()  # the first look
    with read_session() as s:
        assert all(row.silent_since is not None for row in s.scalars(select(Node)))
        assert nodes.stale(s, database_now(s)) == []
    assert claim(attempt_id, None, owner="b", node="near") is None
    later = timedelta(seconds=SECOND_LOOK_S + 1)
    with read_session() as s:
        assert nodes.stale(s, database_now(s) + later) == ["far", "near"]  # nobody has beaten since
    nodes.beat("near")
    with write_session() as s:
        nodes.worked(s, "far")
    with read_session() as s:
        assert nodes.stale(s, database_now(s) + later) == []


def test_a_cancel_waits_for_no_silent_node_and_says_what_may_go_on_there(far: Path) -> None:
    nodes.beat("near")
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        row, step = s.merge(attempt_of(attempt_id)), s.merge(steps_of(attempt_id)[0])
        row.status, row.node, row.next_due_at = "running", "far", database_now(s)
        step.status, step.job_id, step.result = "starting", f"{attempt_id}-run-1", {"run": "start-1", "runs": {"start": 1}}
    fall_silent("far", CANCEL_STALE_S + SECOND_LOOK_S)
    assert claim(attempt_id, None, owner="b", node="near") is None  # it waits for its own node
    settings().node = "near"
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).cancel_requested_at = database_now(s)
        assert [row.node for row in due.look(s).rows if row.attempt_id == attempt_id] == ["near"]
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.node, (attempt.problem or {}).get("code")) == ("canceled", "near", "not_stopped")
    assert "The node far of Quadgate" in attempt.problem["en"]
    assert "Quadgate 节点 far 无应答" in attempt.problem["zh-CN"]
    assert runs.look(runs.folder_of(attempt_id, "run-1", "stop-1")).look is runs.Look.DONE
