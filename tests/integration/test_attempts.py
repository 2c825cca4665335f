"""Attempts: started by the rules, laid out in steps, canceled, retried, waited for by people, and sealed while G3 measures."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select, text

from app.attempts import repository
from app.attempts.models import Attempt, Sample, Step, StepEvent, Transition
from app.attempts.usecases import attempt_view, events, request_cancel, retry, samples, start_attempt, submit_form
from app.audit.chain import verify
from app.audit.models import AuditRow
from app.engagements.models import Engagement
from app.evidence.repository import files_of
from app.evidence.usecases import export_bundle, inputs
from app.kit.clock import now
from app.kit.db import write_session
from app.kit.errors import BadInput, Forbidden, NotFound, Refused
from gates.model import StepKind
from gates.registry import GATES
from tests.people import Cast, by_token
from tests.scenes import engage, finish, run

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64


def _start(s, cast: Cast, gate: str = "G1", **more) -> Attempt:
    engagement = s.execute(select(Engagement)).scalar_one_or_none() or engage(s, cast)
    return start_attempt(s, engagement_id=engagement.id, gate=gate, actor=cast.li_wei, **more)


def _reach_g3(s, cast: Cast) -> Engagement:
    engagement = engage(s, cast)
    for gate in ("G1", "G2"):
        run(s, cast, engagement, gate)
    return engagement


def _wait(s, cast: Cast) -> tuple[Attempt, Step]:
    """Bring a G1 attempt to its form, as the engine does."""
    attempt = _start(s, cast)
    step = s.execute(select(Step).where(Step.attempt_id == attempt.id, Step.kind == "manual")).scalar_one()
    attempt.status, step.status = "waiting", "waiting"
    s.flush()
    return attempt, step


def _answers(step: Step) -> dict:
    answers = {}
    for field in step.spec["params"]["form"]:
        by_type = {"choice": lambda f: f["choices"][0]["value"], "bool": lambda f: True, "person": lambda f: f["name"], "text": lambda f: "好"}
        answers[field["name"]] = by_type[field["type"]](field)
    return answers


def test_a_start_lays_out_the_gates_own_steps_due_at_once_with_transition_and_audit_row(cast: Cast) -> None:
    with write_session() as s:
        attempt = _start(s, cast)
        steps = s.execute(select(Step).where(Step.attempt_id == attempt.id).order_by(Step.position)).scalars().all()
        transition = s.execute(select(Transition)).scalar_one()
        audited = s.execute(select(AuditRow).where(AuditRow.object_id == attempt.id)).scalars().all()
        assert verify(s).ok
    assert [s.key for s in steps] == ["unpacking", "survey", "storage", "judge", "report"]
    assert {s.status for s in steps} == {"pending"}
    assert steps[1].spec["playbook"] == "survey.yml"
    assert (attempt.status, attempt.number, attempt.next_due_at is not None) == ("queued", 1, True)
    assert (transition.from_status, transition.event, transition.to_status) == ("", "create", "queued")
    assert [a.action for a in audited] == ["attempt.create"]


def test_the_seed_is_known_in_advance_and_differs_for_each_try_and_rehearsal(cast: Cast) -> None:
    with write_session() as s:
        first = finish(s, _start(s, cast), "invalid")
        second = finish(s, _start(s, cast), "invalid")
        practice = _start(s, cast, rehearsal=True)
    seeds = {first.seed, second.seed, practice.seed}
    assert len(seeds) == 3
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert (second.number, practice.number) == (2, 1)


def test_a_rehearsal_may_start_before_the_plan_is_sealed_and_has_neither_judgement_nor_report(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        with pytest.raises(Refused, match="not sealed"):
            start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)
        practice = start_attempt(s, engagement_id=engagement.id, gate="G3", rehearsal=True, actor=cast.li_wei)
        kinds = set(s.execute(select(Step.kind).where(Step.attempt_id == practice.id)).scalars())
        assert engagement.state == "draft"
    assert kinds == {StepKind.PLAYBOOK, StepKind.JOB}


def test_a_refused_start_leaves_no_trace(cast: Cast) -> None:
    with write_session() as s:
        _start(s, cast)
        before = s.execute(select(AuditRow)).scalars().all()
        for gate in GATES:
            with pytest.raises(Refused):
                _start(s, cast, gate)
        assert len(s.execute(select(Attempt)).scalars().all()) == 1
        assert len(s.execute(select(AuditRow)).scalars().all()) == len(before)


def test_after_a_stop_loss_no_gate_starts_by_web_token_or_rehearsal(cast: Cast) -> None:
    with write_session() as s:
        engagement = _reach_g3(s, cast)
        run(s, cast, engagement, "G3", "fail")
        for actor in (cast.li_wei, by_token(cast.li_wei), cast.admin):
            for gate in GATES:
                for rehearsal in (False, True):
                    with pytest.raises(Refused, match="Stop-loss"):
                        start_attempt(s, engagement_id=engagement.id, gate=gate, rehearsal=rehearsal, actor=actor)


def test_a_rehearsal_that_is_concluded_anyway_is_refused(cast: Cast) -> None:
    with write_session() as s:
        practice = _start(s, cast, rehearsal=True)
        with pytest.raises(Refused, match="never judged"):
            finish(s, practice, "fail")


def test_only_engineers_start_cancel_and_retry(cast: Cast) -> None:
    with write_session() as s:
        attempt = _start(s, cast)
        for actor in (cast.viewer, cast.chen_jing):
            with pytest.raises(Forbidden):
                start_attempt(s, engagement_id=attempt.engagement_id, gate="G1", actor=actor)
            with pytest.raises(Forbidden):
                request_cancel(s, attempt_id=attempt.id, reason="because", actor=actor)
            with pytest.raises(Forbidden):
                retry(s, attempt_id=attempt.id, actor=actor)


def test_a_cancel_is_asked_for_once_with_a_reason_and_makes_the_attempt_due(cast: Cast) -> None:
    with write_session() as s:
        attempt = _start(s, cast)
        attempt.next_due_at = None
        for nothing in (" ", "停 "):
            with pytest.raises(BadInput):
                request_cancel(s, attempt_id=attempt.id, reason=nothing, actor=cast.li_wei)
        request_cancel(s, attempt_id=attempt.id, reason="断电", actor=cast.li_wei)  # a word of two characters
        asked = attempt.cancel_requested_at
        request_cancel(s, attempt_id=attempt.id, reason="断电", actor=cast.li_wei)  # a form that was sent twice
        with pytest.raises(Refused) as refused:
            request_cancel(s, attempt_id=attempt.id, reason="又一次", actor=cast.zhao_lei)
        assert refused.value.code == "cancel_asked_already"
        assert "li.wei" in refused.value.text("zh_CN")
        assert "断电" in refused.value.text("zh_CN")
        assert (attempt.cancel_requested_at, attempt.cancel_reason) == (asked, "断电")
        assert attempt.next_due_at is not None
        assert attempt.status == "queued"  # the engine ends it
        assert attempt_view(s, attempt_id=attempt.id, actor=cast.li_wei)["may"]["cancel"] is False
        finish(s, attempt, "pass")
        with pytest.raises(Refused):
            request_cancel(s, attempt_id=attempt.id, reason="too late", actor=cast.li_wei)


@pytest.mark.parametrize("said", ["", " \t ", "\u200b\u200b\u200b", "a\u2800"])
def test_a_reason_that_shows_nothing_is_none(cast: Cast, said: str) -> None:
    with write_session() as s, pytest.raises(BadInput):
        request_cancel(s, attempt_id=_start(s, cast).id, reason=said, actor=cast.li_wei)


def test_words_of_a_person_are_the_same_in_both_languages_whatever_they_look_like(cast: Cast) -> None:
    said = '{"en": "both parties agreed", "zh-CN": "仅供方要求"}'
    with write_session() as s:
        attempt = request_cancel(s, attempt_id=_start(s, cast).id, reason=said, actor=cast.li_wei)
        assert attempt_view(s, attempt_id=attempt.id, actor=cast.li_wei)["cancel_reason"].strip() == said


def test_what_was_read_before_a_lock_is_read_anew_behind_it(cast: Cast) -> None:
    """As on PostgreSQL, where somebody else changes an attempt while a second retry waits for the lock that the first one has."""
    with write_session() as s:
        attempt = _start(s, cast)
        attempt.status = "error"
        s.flush()
        s.execute(text("UPDATE attempt SET status = 'running' WHERE id = :id"), {"id": attempt.id})
        with pytest.raises(Refused, match="Only an attempt in error"):
            retry(s, attempt_id=attempt.id, actor=cast.li_wei)


def test_an_error_is_retried_from_its_failed_step_and_keeps_what_was_done(cast: Cast) -> None:
    with write_session() as s:
        attempt = _start(s, cast)
        steps = s.execute(select(Step).where(Step.attempt_id == attempt.id).order_by(Step.position)).scalars().all()
        steps[0].status, steps[1].status, steps[1].problem = "done", "failed", {"code": "x", "en": "no", "zh-CN": "否"}
        attempt.status, attempt.step_index, attempt.problem, attempt.generation = "error", 1, {"code": "x", "en": "no", "zh-CN": "否"}, 7
        attempt.finished_at, attempt.next_due_at = now(), None
        s.flush()
        assert attempt_view(s, attempt_id=attempt.id, actor=cast.li_wei)["may"]["retry"] is True
        retry(s, attempt_id=attempt.id, actor=cast.li_wei)
        assert [step.status for step in steps[:3]] == ["done", "pending", "pending"]
        assert (attempt.status, attempt.step_index, attempt.problem, attempt.finished_at) == ("running", 1, None, None)
        assert attempt.generation == 8
        assert attempt.next_due_at is not None
        assert s.execute(select(Transition).where(Transition.event == "retry")).scalar_one().generation == 8


def test_a_verdict_is_never_retried(cast: Cast) -> None:
    with write_session() as s:
        attempt = run(s, cast, engage(s, cast), "G1", "fail")
        with pytest.raises(Refused, match="never retried"):
            retry(s, attempt_id=attempt.id, actor=cast.li_wei)


def test_a_form_with_its_photos_becomes_evidence_and_the_attempt_is_due_again(cast: Cast) -> None:
    with write_session() as s:
        attempt, step = _wait(s, cast)
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.li_wei)
        assert view["may"]["form"] is True
        assert [f["name"] for f in view["steps"][0]["params"]["form"]] == list(_answers(step))
        submit_form(
            s, step_id=step.id, form=_answers(step), photos=[("开箱 1.png", PNG), ("../../evil/../开箱 1.PNG", PNG + b"2")], actor=cast.zhao_lei
        )
        brought = {file.path for file in files_of(s, attempt.id)}
        assert brought == {"evidence/unpacking/site/form.json", "evidence/unpacking/site/开箱-1.png", "evidence/unpacking/site/开箱-1-2.png"}
        assert step.status == "done"
        assert attempt.next_due_at is not None
        with pytest.raises(Refused, match="does not wait"):
            submit_form(s, step_id=step.id, form=_answers(step), photos=[], actor=cast.zhao_lei)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"packaging": ""}, "/form/packaging"),
        ({"packaging": "fine"}, "/form/packaging"),
        ({"serials_match": "yes"}, "/form/serials_match"),
        ({"receiver_vendor": "王 芳", "receiver_customer": "王芳"}, "/form/receiver_customer"),
        ({"receiver_customer": None}, "/form/receiver_customer"),
        ({"receiver_vendor": "王芳", "receiver_customer": "王\u200b芳"}, "/form/receiver_customer"),
        ({"receiver_customer": "\u200b\u2800"}, "/form/receiver_customer"),
        ({"notes": "x" * 5000}, "/form/notes"),
        ({"colour": "blue"}, "/form/colour"),
    ],
)
def test_a_form_that_does_not_fit_its_fields_is_refused_and_names_the_field(cast: Cast, change: dict, pointer: str) -> None:
    with write_session() as s:
        attempt, step = _wait(s, cast)
        with pytest.raises(BadInput) as caught:
            submit_form(s, step_id=step.id, form={**_answers(step), **change}, photos=[("a.png", PNG)], actor=cast.li_wei)
        assert pointer in [e.pointer for e in caught.value.errors]
        assert "{" not in caught.value.errors[0].text("zh_CN")
        assert files_of(s, attempt.id) == []
        assert step.status == "waiting"


def test_a_form_without_the_photos_that_the_gate_asks_for_is_refused(cast: Cast) -> None:
    with write_session() as s:
        _, step = _wait(s, cast)
        with pytest.raises(BadInput) as caught:
            submit_form(s, step_id=step.id, form=_answers(step), photos=[], actor=cast.li_wei)
        assert caught.value.errors[0].pointer == "/photos"


@pytest.mark.parametrize("data", [b"", b"MZ\x90\x00", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a"])
def test_a_photo_is_known_by_its_bytes_and_nothing_of_the_form_is_kept_when_one_is_wrong(cast: Cast, data: bytes) -> None:
    with write_session() as s:
        attempt, step = _wait(s, cast)
        with pytest.raises(BadInput) as caught:
            submit_form(s, step_id=step.id, form=_answers(step), photos=[("a.png", PNG), ("photo.png", data)], actor=cast.li_wei)
        assert caught.value.errors[0].pointer == "/photos/1"
        assert files_of(s, attempt.id) == []


def _measure(s, attempt: Attempt) -> None:
    """Put in one sample and one event, as polls of the engine do."""
    step = s.execute(select(Step).where(Step.attempt_id == attempt.id).order_by(Step.position)).scalars().first()
    line = {"seq": 0, "phase": "measure", "tier": 8, "sent_ns": 1, "first_text_ns": 123456, "end_ns": 9, "wall_ns": 5, "chunk_offsets_us": [1]}
    error = {"kind": "timeout", "message": "after 123456 ns"}
    s.add(Sample(attempt_id=attempt.id, step_id=step.id, stream="records.jsonl", seq=0, data={**line, "finish_reason": "length", "error": error}))
    reply = {"task": "reply", "stdout": '{"chunks": {"records.jsonl": {"data": "first_text_ns: 123456"}}}'}
    common = {"attempt_id": attempt.id, "step_id": step.id, "run": "poll-1", "kind": "runner_on_ok", "host": "gpu01", "data": {}, "at": now()}
    s.add(StepEvent(uuid="1", counter=1, **reply, **common))
    s.add(StepEvent(uuid="2", counter=2, task="cool", stdout="ok: [gpu01]", **common))
    s.flush()


def test_while_g3_measures_no_face_shows_a_measured_value_and_afterwards_all_do(cast: Cast, tmp_path) -> None:
    with write_session() as s:
        _reach_g3(s, cast)
        attempt = _start(s, cast, "G3")
        for status in ("running", "lost_contact", "error"):
            attempt.status = status
            s.flush()
            if status == "running":
                _measure(s, attempt)
                over, going = repository.steps_of(s, attempt.id)[:2]
                over.status, over.started_at, over.finished_at, over.expected_end_at = "done", now(), now(), now()
                going.status, going.started_at, going.expected_end_at, going.last_seen_at = "running", now(), now(), now()
                s.flush()
            view = attempt_view(s, attempt_id=attempt.id, actor=cast.admin)
            shown = [
                samples(s, attempt_id=attempt.id, after=0, limit=10, actor=cast.admin),
                events(s, attempt_id=attempt.id, after=0, limit=10, actor=cast.admin),
            ]
            assert view["sealed_figures"] is True
            first, second = view["steps"][:2]  # how long a run took compares the arms too; the one that goes on is progress
            assert (first["status"], first["started_at"], first["finished_at"], first["expected_end_at"]) == ("done", None, None, None)
            assert second["started_at"] is not None  # but its expected end is reckoned from the runs before it, and its events enclose a run
            assert (second["expected_end_at"], second["last_seen_at"]) == (None, None)
            assert [event["at"] for event in shown[1]] == [None, None]
            assert "123456" not in json.dumps([view, shown])
            assert shown[0][0]["data"] == {"seq": 0, "phase": "measure", "tier": 8, "finish_reason": "length", "error": {"kind": "timeout"}}
            assert shown[1][1]["stdout"] == "ok: [gpu01]"
            with pytest.raises(Refused, match="handed out when it is judged"):
                export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "early.zip", actor=cast.admin)
        finish(s, attempt, "pass")
        seen = attempt_view(s, attempt_id=attempt.id, actor=cast.admin)
        assert seen["sealed_figures"] is False
        assert None not in [step[key] for step in seen["steps"][:1] for key in ("started_at", "finished_at", "expected_end_at")]
        assert None not in [seen["steps"][1][key] for key in ("expected_end_at", "last_seen_at")]
        assert None not in [event["at"] for event in events(s, attempt_id=attempt.id, after=0, limit=10, actor=cast.admin)]
        assert samples(s, attempt_id=attempt.id, after=0, limit=10, actor=cast.admin)[0]["data"]["first_text_ns"] == 123456


def test_samples_and_events_come_in_order_after_the_last_one_seen(cast: Cast) -> None:
    with write_session() as s:
        attempt = _start(s, cast)
        _measure(s, attempt)
        first = events(s, attempt_id=attempt.id, after=0, limit=1, actor=cast.viewer)
        rest = events(s, attempt_id=attempt.id, after=first[0]["id"], limit=10, actor=cast.viewer)
        assert [e["counter"] for e in first + rest] == [1, 2]
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
        assert (view["events"], view["samples"]) == (2, 1)
        assert json.loads(json.dumps(view)) == view


def test_an_attempt_that_is_not_there_and_one_that_is_not_for_these_eyes_are_the_same(cast: Cast) -> None:
    from dataclasses import replace

    stranger = replace(cast.zhao_lei, login="another.customer", user_id="x")
    with write_session() as s:
        attempt = _start(s, cast)
        for attempt_id, actor in ((attempt.id, stranger), ("nothing", cast.admin)):
            with pytest.raises(NotFound) as caught:
                attempt_view(s, attempt_id=attempt_id, actor=actor)
            assert caught.value.code == "no_such_attempt"


def test_a_passed_g2_freezes_the_baseline_that_g3_is_told(cast: Cast) -> None:
    tiers = {"8": {"ttft_p50_ns": 1, "output_tokens_per_s": "2"}}
    baseline = {"hash": "sha256:" + "b" * 64, "tiers": tiers, "engine": {"model": "lab-480b"}}
    with write_session() as s:
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        second = run(s, cast, engagement, "G2", facts={"baseline": baseline})
        assert engagement.g2_baseline == {**baseline, "attempt": second.id}
        main = _start(s, cast, "G3")
        assert inputs(s, main.id)["g2_baseline"] == baseline
        assert inputs(s, second.id)["g2_baseline"] is None
