"""Plans: revised, sealed by both parties, never changed once sealed."""

from __future__ import annotations

import pytest

from app.attempts.usecases import retry, start_attempt
from app.engagements.usecases import overview
from app.kit.db import write_session
from app.kit.errors import BadInput, Forbidden, Refused
from app.plans.usecases import add_revision, current
from tests.people import Cast
from tests.scenes import decide, engage, finish, run

TIGHTER = {"g3": {"agreement_max": "0.03"}}


def test_a_change_is_a_new_revision_with_another_hash_and_must_be_sealed_again(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        first = current(s, engagement.id)
        second = add_revision(s, engagement_id=engagement.id, differences=TIGHTER, actor=cast.zhao_lei)
        assert (second.revision, second.sealed_at, first.sealed_at is not None) == (1, None, True)
        assert second.hash != first.hash
        with pytest.raises(Refused, match="not sealed"):
            start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        decide(s, "plan", cast.wang_fang, cast.chen_jing)
        assert start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei).plan_hash == second.hash
        plan = overview(s, engagement_id=engagement.id, actor=cast.viewer)["plan"]
    assert plan["data"]["g3"]["agreement_max"] == "0.03"
    assert plan["data"]["rig"]["simulated"] is True  # the rest stays as it was
    assert plan["earlier"][0]["hash"] == first.hash


def test_the_same_plan_again_is_no_revision_and_a_wrong_one_names_its_field(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        with pytest.raises(Refused, match="already"):
            add_revision(s, engagement_id=engagement.id, differences={"g3": {"agreement_max": "0.05"}}, actor=cast.li_wei)
        with pytest.raises(BadInput) as caught:
            add_revision(s, engagement_id=engagement.id, differences={"g3": {"agreement_max": "x"}}, actor=cast.li_wei)
        assert caught.value.errors[0].pointer == "/g3/agreement_max"
        with pytest.raises(Forbidden):
            add_revision(s, engagement_id=engagement.id, differences=TIGHTER, actor=cast.chen_jing)


def test_an_attempt_in_error_does_not_go_on_under_a_plan_that_both_parties_have_replaced(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        broken = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        broken.status, broken.next_due_at = "error", None
        add_revision(s, engagement_id=engagement.id, differences=TIGHTER, actor=cast.li_wei)
        with pytest.raises(Refused, match="not sealed"):
            retry(s, attempt_id=broken.id, actor=cast.li_wei)
        decide(s, "plan", cast.wang_fang, cast.chen_jing)
        with pytest.raises(Refused, match="replaced by a newer one"):
            retry(s, attempt_id=broken.id, actor=cast.li_wei)
        fresh = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        assert (fresh.number, fresh.plan_hash) == (2, current(s, engagement.id).hash)


def test_the_plan_cannot_change_under_a_running_attempt_nor_after_a_stop(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        running = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        with pytest.raises(Refused, match="going on"):
            add_revision(s, engagement_id=engagement.id, differences=TIGHTER, actor=cast.li_wei)
        finish(s, running)
        run(s, cast, engagement, "G2")
        run(s, cast, engagement, "G3", "fail")
        with pytest.raises(Refused, match="Stop-loss"):
            add_revision(s, engagement_id=engagement.id, differences={"policy": {"on_fail": {"G3": "rectify"}}}, actor=cast.li_wei)
