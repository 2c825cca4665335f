"""The eyes of the chaos lane: an attempt that is whole has no finding, and each kind of loss, double or wrong verdict that is planted has one."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from app.attempts.models import Attempt, Sample, StepEvent, Transition, VerdictRevision
from app.audit.models import AuditRow
from app.engine.models import HostLock
from app.kit.clock import now
from app.kit.db import write_session
from app.settings import settings
from lanes.chaos import checks, page, whole
from lanes.chaos.ends import FULL, FULL_S, JUDGED_MEANWHILE, LASTS_S, UNDER_FAULTS_S, Struck
from lanes.chaos.soak import Asked, Soak
from lanes.chaos.table import Table
from lanes.chaos.target_faults import kill_ssh
from lanes.chaos.witness import EMITTED, WITNESSED, notebook
from tests.engine_kit import job_step, make_attempt, steps_of
from tests.scenes import bring

UUIDS = ["u1", "u2", "u3"]


@pytest.fixture
def soak(state: Path) -> Soak:
    """Make an attempt that went well, with all that the world outside has of it."""
    identity = make_attempt(job_step("soak"), due=False)
    made = Soak(identity, state / "lab" / "C" / "gpu01", report=False, real=False, ended_s=1.0)
    job = made.root / "jobs" / made.job
    job.mkdir(parents=True)
    (job / "lock").touch()
    (made.root / "diary").write_text(f"prepared\nbegan {made.job} in b1\n")
    step = steps_of(identity)[0].id
    with write_session() as s:
        attempt = s.get_one(Attempt, identity)
        for name in ("records", "telemetry", "phases"):
            data = b"".join(b'{"seq":%d}\n' % n for n in range(4))
            (job / f"{name}.jsonl").write_bytes(data)
            bring(s, attempt, f"evidence/soak/gpu01/{name}.jsonl", data)
            if name != "phases":
                s.add_all(Sample(attempt_id=identity, step_id=step, stream=name, seq=n, data={}) for n in range(4))
        for uuid in UUIDS:
            s.add(StepEvent(attempt_id=identity, step_id=step, run="start-1", uuid=uuid, counter=1, kind="x", data={}, at=now()))
        for n, (before, event, after) in enumerate([("queued", "start", "running"), ("running", "finish", "finished")]):
            s.add(Transition(attempt_id=identity, generation=n, from_status=before, event=event, to_status=after, actor="-", at=now()))
        attempt.status, attempt.verdict = "finished", "pass"
        s.add(verdict(identity, 0))
    run = settings().runs_dir / identity / "soak-start-1"
    run.mkdir(parents=True)
    (run / "events.jsonl").write_text("".join(json.dumps({"uuid": uuid}) + "\n" for uuid in UUIDS))
    notebook(run, EMITTED).write_text("\n".join(UUIDS) + "\n")
    (run / "result.json").write_text("{}")
    return made


def verdict(identity: str, revision: int, said: str = "pass", substance: str = "good") -> VerdictRevision:
    hashes = dict.fromkeys(("hash", "judge_version", "rules_hash", "plan_hash", "manifest_hash"), "-")
    return VerdictRevision(attempt_id=identity, revision=revision, verdict=said, document={}, substance=substance, at=now(), **hashes)


def change(statement: Any) -> None:
    with write_session() as s:
        s.execute(statement.execution_options(synchronize_session=False))


def add(row: Any) -> None:
    with write_session() as s:
        s.add(row)


def write(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def run_of(soak: Soak) -> Path:
    return settings().runs_dir / soak.id / "soak-start-1"


PLANTED: dict[str, tuple[str, Callable[[Soak], object]]] = {
    "a second start": (checks.DOUBLED, lambda k: write(k.root / "diary", f"began {k.job} in b1\n")),
    "a start in another boot that nobody made": (checks.DOUBLED, lambda k: write(k.root / "diary", f"began {k.job} in b2\n")),
    "a second verdict": (checks.DOUBLED, lambda k: add(verdict(k.id, 1))),
    "a transition twice": (
        checks.DOUBLED,
        lambda k: add(Transition(attempt_id=k.id, generation=9, from_status="running", event="finish", to_status="finished", actor="-", at=now())),
    ),
    "no verdict": (checks.LOST, lambda k: change(delete(VerdictRevision).where(VerdictRevision.attempt_id == k.id))),
    "another verdict": (checks.WRONG, lambda k: change(update(VerdictRevision).values(substance="other"))),
    "a pass of a job that was killed": (checks.WRONG, lambda k: k.facts.add("reboot")),
    "an event less": (checks.LOST, lambda k: change(delete(StepEvent).where(StepEvent.uuid == "u2"))),
    "an event that the handler never wrote": (checks.LOST, lambda k: write(notebook(run_of(k), EMITTED), "u4\n")),
    "a sample less": (checks.LOST, lambda k: change(delete(Sample).where(Sample.seq == 2, Sample.stream == "records"))),
    "a repeat in a journal": (checks.LOST, lambda k: write(k.root / "jobs" / k.job / "telemetry.jsonl", '{"seq":3}\n')),
    "a row on the target that the evidence lacks": (checks.LOST, lambda k: write(k.root / "jobs" / k.job / "phases.jsonl", '{"seq":4}\n')),
    "a host lock": (checks.LOST, lambda k: add(HostLock(target="C/gpu01", attempt_id=k.id, fence=1))),
    "an error that nobody should have been asked about": (checks.LOST, lambda k: k.problems.append(Asked("internal", k.born))),
    "a full disk that nobody filled": (checks.LOST, lambda k: k.problems.append(Asked("disk_full", k.born))),
    "a cancel that was accepted and ignored": (checks.WRONG, lambda k: k.facts.add("cancel")),
    "an end that nobody asked for": (
        checks.LOST,
        lambda k: change(update(Attempt).where(Attempt.id == k.id).values(status="canceled", verdict=None)),
    ),
    "an attempt that never ends": (checks.LOST, lambda k: setattr(k, "ended_s", None)),
    "an attempt that ends in error": (checks.LOST, lambda k: change(update(Attempt).where(Attempt.id == k.id).values(status="error"))),
}


def test_an_attempt_that_went_well_has_no_finding(soak: Soak) -> None:
    assert checks.of_attempt(soak, "good") == []
    assert checks.of_all() == []


def test_an_attempt_that_a_person_started_begins_with_its_creation_and_has_one(soak: Soak) -> None:
    made = {"attempt_id": soak.id, "from_status": "", "event": "create", "to_status": "queued", "actor": "-", "at": now()}
    add(Transition(generation=-1, **made))
    assert checks.of_attempt(soak, "good") == []
    add(Transition(generation=5, **made))
    assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.DOUBLED]


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_planted_is_found(soak: Soak, plant: str) -> None:
    kind, do = PLANTED[plant]
    do(soak)
    assert kind in {finding.kind for finding in checks.of_attempt(soak, "good")}


def test_a_held_job_lock_and_an_altered_audit_row_are_found(soak: Soak) -> None:
    with (soak.root / "jobs" / soak.job / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.LOST]
    with write_session() as s:
        row = s.scalars(select(AuditRow).order_by(AuditRow.seq)).first()
        assert row is not None
        row.action = "another"
    assert [finding.kind for finding in checks.of_all()] == [checks.LOST]


def test_a_run_shows_nothing_when_a_boundary_met_one_fault_or_a_fault_struck_at_one_boundary() -> None:
    table = Table(["SIGKILL worker", "SIGKILL web", "cancel"], steps=("job/starting", "judge/pending"))
    for fault, step in (("SIGKILL worker", "job/starting"), ("SIGKILL web", "job/starting"), ("cancel", "judge/pending"), ("SIGKILL web", "end")):
        table.injected[fault] += 2
        table.struck[fault, step] += 1
    table.struck["SIGKILL web", "judge/pending"] += 1
    assert (table.few(), table.narrow()) == (["judge/pending"], ["SIGKILL worker", "cancel"])
    never = whole.short_of(table, None, 5.0, long=False)[0]
    assert "2 different faults at judge/pending" in never
    assert "SIGKILL worker at 2 boundaries" in never
    table.struck["SIGKILL worker", "judge/pending"] += 1
    assert (table.few(), table.narrow()) == ([], ["cancel"])
    rows = [line.split() for line in table.lines()]
    assert ["struck", "at", "job", "judge"] in rows
    assert ["SIGKILL", "worker", "1", "1"] in rows


def test_a_run_that_takes_too_long_fails_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "It took 901 s, and 900 s are the most."
    assert said in whole.short_of(Table([]), None, 901.0, long=False)
    assert said not in whole.short_of(Table([]), None, 901.0, long=True)
    monkeypatch.setenv("QUADGATE_CHAOS_SLOWER", "2")
    assert not any(line.startswith("It took") for line in whole.short_of(Table([]), None, 901.0, long=False))


def test_a_killed_connection_strikes_all_that_are_asked_behind_that_server(soak: Soak) -> None:
    """A round asks several targets by one playbook."""
    other, local = replace(soak, id="other", real=True), replace(soak, id="local")
    mine = replace(soak, real=True, seen=("soak", "running/polling"))
    wire = SimpleNamespace(kill=lambda: True)
    strike: Any = SimpleNamespace(soak=mine, whose=(), fleet=SimpleNamespace(wire=wire, open=lambda: [mine, other, local]))
    assert kill_ssh("polling")(strike)
    assert strike.whose == (mine.id, "other")
    assert not kill_ssh("collecting")(strike)


def test_the_page_says_what_ran_and_whether_it_held(tmp_path: Path) -> None:
    table, control = Table(["SIGKILL worker"]), Table(["SIGKILL worker"])
    whole = "\n".join(page.lines("Quadgate on SQLite, seed 7, 5 s", table, control, []))
    assert "nothing was lost" in whole
    assert "Not whole" not in whole
    assert whole.count("SIGKILL worker") == 2
    table.blame(["SIGKILL worker"], checks.LOST)
    broken = page.lines("Quadgate on SQLite, seed 7, 5 s", table, None, ["Not enough was injected."])
    assert "**not held**: 1 findings" in broken[0]
    assert "Not enough was injected." in broken[1]
    doc = tmp_path / "chaos.md"
    doc.write_text(f"before\n{page.MARKS[0]}\nold\n{page.MARKS[1]}\nafter\n")
    page.write(broken, doc)
    assert "old" not in doc.read_text()
    assert doc.read_text().startswith("before\n")
    assert doc.read_text().endswith("\nafter\n")
    doc.write_text("a page without marks")
    with pytest.raises(ValueError, match="lacks the lines"):
        page.write(broken, doc)


def blocking(said: str) -> dict[str, str]:
    return {"verdict": said, "severity": "blocking"}


def test_a_soak_whose_target_rebooted_goes_on_once_to_a_verdict_that_wants_the_cause_and_nothing_else(soak: Soak) -> None:
    soak.facts.add("reboot")
    assert {finding.kind for finding in checks.of_attempt(soak, "good")} == {checks.LOST, checks.WRONG}  # it did not go on, and passed
    write(soak.root / "diary", f"began {soak.job} in b2\n")
    told = {"figures": {"breaks": [{"kind": "reboot"}]}, "checks": [blocking("pass"), blocking("inconclusive")]}

    def judged(said: str, document: dict[str, Any]) -> list[str]:
        change(update(VerdictRevision).values(verdict=said, document=document))
        change(update(Attempt).values(verdict=said))
        return [finding.kind for finding in checks.of_attempt(soak, "good")]

    assert judged("inconclusive", told) == []
    assert judged("pass", told) == [checks.WRONG]
    assert judged("inconclusive", told | {"figures": {"breaks": []}}) == [checks.WRONG]
    assert judged("inconclusive", told | {"checks": [blocking("inconclusive"), blocking("fail")]}) == [checks.WRONG]


def canceled(soak: Soak, took_s: float, at: str = "job/running") -> None:
    """Let an attempt have been canceled, which took so many seconds."""
    soak.facts.add("cancel")
    soak.cancel_at, soak.canceled_at, soak.gone_at, soak.ended_s = at, 100.0, 100.0 + took_s, 100.0 + took_s
    change(delete(VerdictRevision).where(VerdictRevision.attempt_id == soak.id))
    change(update(Attempt).where(Attempt.id == soak.id).values(status="canceled", verdict=None))
    last = (Transition.attempt_id == soak.id, Transition.event == "finish")
    change(update(Transition).where(*last).values(event="cancel", to_status="canceled"))


def test_a_cancel_has_thirty_seconds_and_longer_only_where_another_fault_struck_it(soak: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADGATE_CHAOS_SLOWER", "4")  # says nothing about a cancel
    canceled(soak, 29.0)
    assert checks.of_attempt(soak, "good") == []
    soak.gone_at = 131.0
    assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.LOST]
    assert [f.kind for f in checks.of_attempt(soak, "good", [Struck(120.0, "SIGKILL playbook host", ("another",))])] == [checks.LOST]
    meanwhile = [Struck(120.0, "SIGKILL playbook host", (soak.id,))]
    assert checks.of_attempt(soak, "good", meanwhile) == []
    died = [Struck(101.0, "SIGKILL worker"), Struck(121.0, "SIGKILL after the claim", (soak.id,))]
    assert [len(checks.of_attempt(soak, "good", struck)) for struck in (died[:1], died[1:], died)] == [1, 1, 0]  # one death is within the 30 s
    soak.gone_at = 100.0 + UNDER_FAULTS_S + 1
    assert [finding.kind for finding in checks.of_attempt(soak, "good", meanwhile)] == [checks.LOST]
    table = Table(["cancel"])
    table.cancels.add(soak, meanwhile)
    assert any(f"struck meanwhile 1: median {UNDER_FAULTS_S + 1:.1f} s" in line for line in table.lines())


def test_a_cancel_may_come_too_late_only_while_its_judgement_is_under_way(soak: Soak) -> None:
    soak.facts.add("cancel")
    for at in ("judge/pending", "report/pending", "job/running", ""):
        soak.cancel_at = at
        assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.WRONG]
    soak.cancel_at = JUDGED_MEANWHILE
    assert checks.of_attempt(soak, "good") == []


@pytest.mark.parametrize(
    ("code", "fault", "times"),
    [("unreachable", "SSH cut in start", 1), ("disk_full", "runs disk full", 1), ("run_lost", "SIGKILL playbook host", 3)],
)
def test_a_person_is_asked_only_for_what_a_fault_explains_that_struck_this_attempt_before(soak: Soak, code: str, fault: str, times: int) -> None:
    soak.born, soak.problems = 100.0, [Asked(code, 110.0)]
    explains = [Struck(105.0 + n, fault, (soak.id,)) for n in range(times)]
    assert checks.of_attempt(soak, "good", explains) == []
    of_another = [Struck(one.at, fault, ("another",)) for one in explains]
    before = [Struck(100.0 - LASTS_S.get(fault, 0.0) - 0.1 + n / 100, fault) for n in range(times)]  # it was over when this attempt was born
    too_late = [Struck(111.0, fault, (soak.id,))] * times
    another_fault = [Struck(one.at, "SIGKILL worker") for one in explains]
    for struck in (of_another, before, too_late, another_fault, explains[: times - 1]):
        assert [finding.kind for finding in checks.of_attempt(soak, "good", struck)] == [checks.LOST]


@pytest.mark.parametrize("fault", FULL)
def test_a_disk_that_was_filled_just_before_an_attempt_was_born_explains_what_it_asked_for(soak: Soak, fault: str) -> None:
    soak.born, soak.problems = 100.0, [Asked("disk_full", 101.0)]
    assert Struck(100.0 - FULL_S, fault).felt(soak, 101.0)
    assert checks.of_attempt(soak, "good", [Struck(100.0 - FULL_S, fault)]) == []


def test_an_event_that_ansible_emitted_and_the_runner_never_delivered_is_found(soak: Soak) -> None:
    soak.real = True
    notebook(run_of(soak), WITNESSED).write_text("x\nx\nx\n")
    assert checks.of_attempt(soak, "good") == []
    write(notebook(run_of(soak), WITNESSED), "x\n")
    assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.LOST]


def test_a_run_that_says_itself_that_its_record_found_no_room_hides_nothing(soak: Soak) -> None:
    write(notebook(run_of(soak), EMITTED), "u4\n")
    assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.LOST]
    (run_of(soak) / "result.json").write_text('{"events_lost": 1}')
    assert [finding.kind for finding in checks.of_attempt(soak, "good")] == [checks.LOST]
    assert checks.of_attempt(soak, "good", [Struck(0.0, "runs disk full")]) == []
