"""The live stream: resumable, ends by itself, text only; and downloads that no browser renders."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.web.lines import all_lines, lines_of
from app.web.stream import Batch, Position, arrival_rate, samples_message
from tests.integration import web_data as d
from tests.integration.web_client import Browser, Robot, demo_engagement
from tests.people import Cast


def frames(text: str) -> list[tuple[str, str, Any]]:
    """Return the events of a stream: (id, event, data)."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


def seeded(cast: Cast) -> str:
    """Return a rehearsal that was canceled, with three events of its playbook."""
    from sqlalchemy import select

    from app.attempts.models import Attempt, Step, StepEvent
    from app.kit.clock import now
    from app.kit.db import write_session

    engagement = demo_engagement(cast)
    location = Browser("li.wei").send(f"/engagements/{engagement}/rehearsals", gate="G2").headers["location"]
    attempt_id = location.rsplit("/", 1)[1]
    with write_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        attempt.status, attempt.finished_at = "canceled", now()
        step = s.scalars(select(Step).where(Step.attempt_id == attempt_id)).first()
        assert step
        for n in range(3):
            text = f"ok: [gpu01] line {n}\r\n\x1b[31mred\x1b[0m <b>"
            row = {"uuid": f"u{n}", "counter": n, "kind": "runner_on_ok", "host": "gpu01", "task": "t", "stdout": text, "data": {}, "at": now()}
            s.add(StepEvent(attempt_id=attempt_id, step_id=step.id, run="start-1", **row))
    return attempt_id


def test_a_stream_tells_everything_once_and_ends_with_the_attempt(cast: Cast) -> None:
    attempt = seeded(cast)
    answer = Browser("li.wei").get(f"/attempts/{attempt}/stream")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    told = frames(answer.text)
    assert [event for _, event, _ in told] == ["log", "state", "bye"]
    assert [line["text"] for event in told[0][2] for line in event["lines"]][:2] == ["ok: [gpu01] line 0", "red <b>"]
    assert told[-1][2]["ended"] is True


def test_a_stream_goes_on_after_the_last_event_that_was_seen(cast: Cast) -> None:
    attempt = seeded(cast)
    browser = Browser("li.wei")
    first = frames(browser.get(f"/attempts/{attempt}/stream").text)[0][2]
    second = first[1]["id"]
    rest = frames(browser.get(f"/attempts/{attempt}/stream", **{"Last-Event-ID": f"e{second}.s0"}).text)
    assert [event["id"] for event in rest[0][2]] == [first[2]["id"]]
    garbled = frames(browser.get(f"/attempts/{attempt}/stream", **{"Last-Event-ID": "e1; drop table"}).text)
    assert len(garbled[0][2]) == 3  # not understood: from the start, nothing is lost


@pytest.mark.parametrize("way", ["session", "token"])
@pytest.mark.parametrize("end", ["account", "sign_in"])
def test_a_stream_ends_with_the_account_and_with_the_sign_in_behind_it(cast: Cast, monkeypatch: pytest.MonkeyPatch, way: str, end: str) -> None:
    from app.accounts import upkeep
    from app.kit.db import write_session
    from app.web import stream

    engagement = demo_engagement(cast)
    browser = Browser("li.wei")
    attempt = browser.send(f"/engagements/{engagement}/rehearsals", gate="G2").headers["location"].rsplit("/", 1)[1]
    read, reads = stream.read_batch, []

    def read_and_then_end(*asked: Any) -> Batch | None:
        batch = read(*asked)
        reads.append(batch)
        with write_session() as s:
            if end == "account":
                upkeep.close_user(s, login="li.wei", actor=cast.admin)
            elif way == "session":
                upkeep.set_password(s, login="li.wei", password="another long password", actor=cast.admin)
            else:
                upkeep.revoke_token(s, token_id=upkeep.tokens(s, login="li.wei", actor=cast.admin)[0]["id"], actor=cast.admin)
        return batch

    monkeypatch.setattr(stream, "read_batch", read_and_then_end)
    monkeypatch.setattr(stream, "REST_SECONDS", 0)
    monkeypatch.setattr(stream, "LIFE_SECONDS", 5)  # what it would go on for
    answer = browser.get(f"/attempts/{attempt}/stream") if way == "session" else Robot(cast.li_wei.user_id).get(f"/attempts/{attempt}/stream")
    assert frames(answer.text)[-1][1:] == ("bye", {"ended": False, "reload": True})
    assert [batch is None for batch in reads] == [False, True]


def test_a_stream_of_somebody_elses_attempt_is_not_found(cast: Cast) -> None:
    from app.kit.db import new_id

    assert Browser("wang.fang").get(f"/attempts/{new_id()}/stream").status_code == 404


def test_the_log_as_a_file_has_every_line_and_is_never_rendered(cast: Cast) -> None:
    answer = Browser("li.wei").get(f"/attempts/{seeded(cast)}/log.txt")
    assert answer.text.splitlines() == [line for n in range(3) for line in (f"ok: [gpu01] line {n}", "red <b>")]
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("stdout", "kind", "expected"),
    [
        ("\r\nTASK [x] ***", "playbook_on_task_start", [("TASK [x] ***", "head")]),
        ("TASK [probe : a * b] " + "*" * 50, "playbook_on_task_start", [("TASK [probe : a * b] ***", "head")]),
        ("changed: [h]", "runner_on_ok", [("changed: [h]", "changed")]),
        ("fatal: [h]: UNREACHABLE!", "runner_on_unreachable", [("fatal: [h]: UNREACHABLE!", "failed")]),
        ("\x1b]0;title\x07a\x00b\x1b[2Kc", "verbose", [("abc", "")]),
        ("", "runner_on_ok", []),
    ],
)
def test_lines_keep_their_words_and_lose_their_escape_sequences(stdout: str, kind: str, expected: list[tuple[str, str]]) -> None:
    assert [(line["text"], line["kind"]) for line in lines_of({"stdout": stdout, "kind": kind})] == expected


def test_the_page_and_the_file_number_the_same_lines() -> None:
    assert len(all_lines(d.events())) == 8


def test_the_arrival_rate_uses_the_clock_of_the_target_or_says_nothing() -> None:
    assert arrival_rate(d.samples()) == pytest.approx(12.5)
    sealed = [row | {"data": {"seq": row["seq"]}} for row in d.samples()]
    assert arrival_rate(sealed) is None
    assert arrival_rate(d.samples()[:1]) is None
    assert str(Position(3, 4)) == "e3.s4"
    assert Batch({}).events == []


def test_the_phase_is_that_of_the_last_request_though_telemetry_came_after_it() -> None:
    telemetry = [{"id": i, "step_id": d.STEP, "stream": "telemetry.jsonl", "seq": i, "data": {"seq": i, "mono_ns": i}} for i in range(41, 43)]
    together = samples_message(Batch({"samples": 42}, samples=d.samples() + telemetry), "en")
    assert (together["count"], together["phase"]) == (42, "measuring · c = 16")
    assert samples_message(Batch({"samples": 44}, samples=telemetry), "en")["phase"] == ""  # nothing new: the page keeps what it shows


def test_a_bundle_is_sent_as_a_file_and_leaves_nothing_behind(cast: Cast) -> None:
    import io
    import zipfile

    from app.settings import settings

    attempt = seeded(cast)
    answer = Browser("li.wei").get(f"/attempts/{attempt}/bundle.zip")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith('attachment; filename="DEMO-G2-rehearsal-1.zip"')
    assert "manifest.json" in zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert list((settings().state_dir / "tmp").iterdir()) == []


def test_the_page_is_loaded_anew_once_at_the_end_of_an_attempt_however_many_steps_the_end_has() -> None:
    from app.web.views import mark

    report = {"id": d.REPORT, "language": "en"}
    story = [
        d.attempt(status="queued"),
        d.attempt(status="running"),
        d.attempt(status="running", verdict="pass", verdict_hash=d.HASH),
        d.attempt(status="running", verdict="pass", verdict_hash=d.HASH, reports=[report]),
        d.attempt(status="running", verdict="pass", verdict_hash=d.HASH, reports=[report, report]),
        d.attempt(status="finished", verdict="pass", verdict_hash=d.HASH, reports=[report, report]),
    ]
    marks = [mark(attempt) for attempt in story]
    assert len(set(marks[:-1])) == 1
    assert marks[-1] != marks[0]
    assert mark(d.attempt(status="lost_contact")) != marks[0]
