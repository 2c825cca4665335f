"""A gate that cannot end within the calendar is not begun, and people see how long one takes before they begin it."""

import pytest

from app.attempts.usecases import start_attempt
from app.engagements.views import overview
from app.kit.db import write_session
from app.kit.errors import Refused
from tests.people import Cast
from tests.scenes import DEMO, engage, run

RATES = {"hash": "sha256:" + "b" * 64, "tiers": {t: {"ttft_p50_ns": 1, "output_tokens_per_s": "100"} for t in ("8", "16", "32")}}


def _at_g3(s, cast: Cast, start: str):
    calendar = f'plan:\n  calendar: {{start: "{start}"}}\n' if start else "plan:\n"
    engagement = engage(s, cast, DEMO.replace("plan:\n", calendar))
    run(s, cast, engagement, "G1")
    run(s, cast, engagement, "G2", facts={"baseline": RATES})
    return engagement


def test_people_see_how_long_a_gate_takes_before_they_start_it(cast: Cast) -> None:
    with write_session() as s:
        engagement = _at_g3(s, cast, "")
        engagement_id = engagement.id
        told = overview(s, engagement_id=engagement_id, actor=cast.li_wei)["next"]
        assert (told["kind"], told["gate"], told["enabled"]) == ("start", "G3", True)
        assert "Takes at least" in told["reason"]["en"]
        assert "至少需要" in told["reason"]["zh-CN"]
        assert start_attempt(s, engagement_id=engagement_id, gate="G3", actor=cast.li_wei).gate == "G3"


def test_a_calendar_that_is_over_lets_practice_go_on_and_no_gate_begin(cast: Cast) -> None:
    with write_session() as s:
        engagement = _at_g3(s, cast, "2020-01-06")  # G1 and G2 could begin: nobody could tell how long they take
        told = overview(s, engagement_id=engagement.id, actor=cast.li_wei)["next"]
        assert "has 0.000 h left" in told["reason"]["en"]
        with pytest.raises(Refused) as refused:
            start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)
        assert refused.value.code == "does_not_fit"
        assert start_attempt(s, engagement_id=engagement.id, gate="G3", rehearsal=True, actor=cast.li_wei).rehearsal
