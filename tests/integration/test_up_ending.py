"""Whoever stops the service is told what became of every attempt that had not ended."""

from __future__ import annotations

import pytest

from app.attempts.models import Attempt
from app.attempts.usecases import start_attempt
from app.engine import shutdown
from app.kit.db import write_session
from app.up import ending
from gates.text import Text
from tests.people import Cast
from tests.scenes import engage


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("running", "canceled", "Canceled: DEMO G1 #1."),
        ("running", "running", "DEMO G1 #1 could not be stopped"),
        ("waiting", "waiting", "going on at the next start: DEMO G1 #1."),
    ],
)
def test_the_end_says_what_became_of_an_attempt(cast: Cast, monkeypatch: pytest.MonkeyPatch, before: str, after: str, said: str) -> None:
    with write_session() as s:
        attempt = start_attempt(s, engagement_id=engage(s, cast).id, gate="G1", actor=cast.li_wei)
        attempt.status, attempt_id = before, attempt.id
    active, told = shutdown.active, list[Text]()

    def as_the_engine_would() -> list[str]:
        ours = active()
        with write_session() as s:
            s.get_one(Attempt, attempt_id).status = after
        return ours

    asked = iter([as_the_engine_would])  # what runs when the end begins; from then on it is as it became
    monkeypatch.setattr(shutdown, "active", lambda: next(asked, active)())
    monkeypatch.setattr(ending, "patience_s", lambda: 0.3)
    ending.cancel(told.append)
    assert [said in text.en for text in told] == [True], told
