"""A verdict that is judged anew: the newest holds, nothing is replaced, and nobody is held to what he agreed to before."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.approvals.usecases import pending
from app.attempts import revisions as judgements
from app.attempts.conclude import conclude
from app.attempts.models import Attempt
from app.attempts.usecases import attempt_view, start_attempt
from app.audit.models import AuditRow
from app.engagements.usecases import overview
from app.kit.db import write_session
from app.kit.errors import Refused
from tests.people import Cast
from tests.scenes import decide, document, engage, run

BASE = {"hash": "sha256:" + "b" * 64, "tiers": {"8": {"ttft_p50_ns": 1, "output_tokens_per_s": "2"}}}


def again(s: Session, attempt: Attempt, verdict: str, manifest: str = "", **more) -> None:
    """Judge an attempt anew, as the use case does, with a verdict of our choice."""
    told = document(attempt, verdict, **more)
    before = judgements.newest(s, attempt.id)
    assert before is not None
    judgements.add(s, attempt_id=attempt.id, document=told, manifest_hash=manifest or before.manifest_hash, actor=SYSTEM, why="test", g2_baseline="")
    conclude(s, attempt, told)


def check(verdict: str, value: str = "1") -> dict:
    return {"id": "g3.x", "title": {"en": "X", "zh-CN": "X"}, "verdict": verdict, "severity": "blocking", "value": value}


def test_judging_again_lifts_no_stop_only_both_parties_do_and_the_fail_stays_on_record(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        attempt = run(s, cast, engagement, "G3", "fail", checks=[check("fail")])
        assert engagement.state == "stopped"
        again(s, attempt, "inconclusive", checks=[check("inconclusive")])
        assert (engagement.state, attempt.verdict) == ("stopped", "inconclusive")
        assert {i["object_kind"] for i in pending(s, actor=cast.chen_jing)} >= {"stop_loss"}
        decide(s, "stop_loss", cast.chen_jing, cast.wang_fang)
        assert engagement.state == "active"
        again(s, attempt, "pass", checks=[check("pass")])
        assert engagement.state == "active"  # what both parties lifted stays lifted when no new fail takes its place
        shown = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)["revisions"]
        query = select(AuditRow).where(AuditRow.action == "attempt.verdict", AuditRow.object_id == attempt.id)
        actions = [row.data for row in s.execute(query).scalars()]
    assert [r["verdict"] for r in shown] == ["fail", "inconclusive", "pass"]
    assert [(c["check"], c["from"], c["to"]) for c in shown[1]["changed"]] == [("g3.x", "fail", "inconclusive")]
    assert [(row["before"], row["verdict"]) for row in actions] == [(None, "fail"), ("fail", "inconclusive"), ("inconclusive", "pass")]


def test_a_pass_that_becomes_a_fail_stops_at_once_and_cancels_what_runs_on_its_strength(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        main = run(s, cast, engagement, "G3")
        soak = start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)
        again(s, main, "fail")
        assert engagement.state == "stopped"
        assert soak.cancel_requested_at is not None
        shown = attempt_view(s, attempt_id=soak.id, actor=cast.viewer)["cancel_reason"]
        assert shown == {key: engagement.state_reason[key] for key in ("en", "zh-CN")}
        assert "G3" in shown["zh-CN"]
        with pytest.raises(Refused, match="Stop-loss"):
            start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)


def test_a_sign_off_is_for_the_verdict_that_was_signed(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        main = run(s, cast, engagement, "G3", checks=[check("pass")])
        again(s, main, "pass", manifest="sha256:" + "e" * 64, checks=[check("pass", "2")])
        assert _state(s, engagement, cast) == "passed"  # the same answers: what was signed still says so
        again(s, main, "conditional", because=["fragile"], checks=[check("conditional")])
        assert _state(s, engagement, cast) == "consent"
        again(s, main, "pass", checks=[check("pass")])
        assert _state(s, engagement, cast) == "sign_off"
        with pytest.raises(Refused, match="not signed off"):
            start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)


def test_consent_to_one_conditional_is_no_consent_to_another(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = run(s, cast, engagement, "G1", "conditional", because=["guard"])
        decide(s, "conditional", cast.chen_jing, cast.wang_fang)
        assert _state(s, engagement, cast, "G1") == "passed"
        again(s, attempt, "conditional", because=["fragile"])
        assert _state(s, engagement, cast, "G1") == "consent"
        decide(s, "conditional", cast.chen_jing)
        assert _state(s, engagement, cast, "G1") == "consent"
        decide(s, "conditional", cast.wang_fang)
        assert _state(s, engagement, cast, "G1") == "passed"


def test_a_lifted_stop_is_lifted_for_the_fail_that_was_looked_at(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        attempt = run(s, cast, engagement, "G3", "fail")
        decide(s, "stop_loss", cast.chen_jing, cast.wang_fang)
        assert engagement.state == "active"
        again(s, attempt, "fail", checks=[check("fail")])
        assert engagement.state == "stopped"
        assert {i["object_kind"] for i in pending(s, actor=cast.chen_jing)} >= {"stop_loss"}


def test_a_g2_that_passes_no_more_takes_its_baseline_along_and_g3_is_judged_again_before_it_counts(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        base = run(s, cast, engagement, "G2", facts={"baseline": BASE})
        main = run(s, cast, engagement, "G3", g2_baseline=BASE["hash"])
        assert _state(s, engagement, cast) == "passed"
        again(s, base, "inconclusive")
        assert engagement.g2_baseline is None
        assert _state(s, engagement, cast, "G2") == "again"
        other = {**BASE, "hash": "sha256:" + "c" * 64}
        run(s, cast, engagement, "G2", facts={"baseline": other})
        shown = overview(s, engagement_id=engagement.id, actor=cast.li_wei)
        assert (shown["next"]["kind"], shown["next"]["attempt_id"], shown["next"]["enabled"]) == ("judge", main.id, True)
        with pytest.raises(Refused, match="judged again"):
            start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)


def _state(s: Session, engagement, cast: Cast, gate: str = "G3") -> str:
    return next(g["state"] for g in overview(s, engagement_id=engagement.id, actor=cast.viewer)["gates"] if g["gate"] == gate)
