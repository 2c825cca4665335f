"""The chaos lane's engagements through all gates: their people open no gate early, and what is planted in their records is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from app.approvals.models import Approval
from app.attempts.models import Attempt, VerdictRevision
from app.audit.models import AuditRow
from app.engagements.models import Engagement
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.reports.models import Report
from lanes.chaos.findings import DOUBLED, LOST, WRONG
from lanes.chaos.soak import Soak
from lanes.chaos.walk import Walk
from lanes.chaos.walk_checks import of_walk
from tests.people import Cast
from tests.scenes import finish


@pytest.fixture
def walk(cast: Cast, tmp_path: Path) -> Walk:
    """Let an engagement go all the way, with the engine's part done by hand."""
    soaks: list[Soak] = []
    made = Walk(cast, tmp_path, into=soaks.append)
    while not made.over:
        made.look()
        for soak in soaks:
            if soak.ended_s is None:
                made.look()  # it tries the next gate while this one runs
                with write_session() as s:
                    finish(s, s.get_one(Attempt, soak.id))
                    report = s.scalars(select(Report).where(Report.attempt_id == soak.id)).one()
                    told = {
                        key: getattr(report, key) for key in ("attempt_id", "revision", "number", "sha256", "size", "manifest_hash", "verdict_hash")
                    }
                    s.add(Report(**told, language="en", at=now()))
                soak.ended_s = 1.0
    return made


def at(walk: Walk, gate: str) -> str:
    return next(soak.id for soak in walk.soaks if soak.gate == gate)


def unsigned(walk: Walk, gate: str) -> object:
    return delete(Approval).where(Approval.object_id == at(walk, gate), Approval.party == "customer")


def opened_early(walk: Walk) -> object:
    """Let the audit chain say that G3 was created as the first thing of all."""
    return update(AuditRow).where(AuditRow.action == "attempt.create", AuditRow.object_id == at(walk, "G3")).values(seq=-1)


def again(walk: Walk) -> None:
    with write_session() as s:
        row = s.scalars(select(VerdictRevision).where(VerdictRevision.attempt_id == at(walk, "G2"))).one()
        told = {c.name: getattr(row, c.name) for c in VerdictRevision.__table__.columns if c.name not in ("id", "revision")}
        s.add(VerdictRevision(**told, revision=9))


def test_an_engagement_that_went_well_has_no_finding_and_every_gate_stayed_shut_until_its_time(walk: Walk) -> None:
    assert of_walk(walk) == []
    assert [soak.gate for soak in walk.soaks] == ["G1", "G2", "G3", "G4"]
    assert walk.knocks == 2 + 3 * 3  # the plan by both parties; of each gate but the last while it ran, and before each signature
    with read_session() as s:
        assert s.get_one(Engagement, walk.id).state == "concluded"


def test_what_is_planted_is_found(walk: Walk) -> None:
    planted: list[tuple[str, Callable[[], object]]] = [
        (LOST, lambda: unsigned(walk, "G1")),
        (WRONG, lambda: opened_early(walk)),
        (LOST, lambda: delete(Report).where(Report.attempt_id == at(walk, "G2"), Report.language == "en")),
        (WRONG, lambda: update(VerdictRevision).where(VerdictRevision.attempt_id == at(walk, "G3")).values(verdict="fail")),
        (LOST, lambda: update(Engagement).where(Engagement.id == walk.id).values(state="active")),
    ]
    seen = len(of_walk(walk))
    for kind, make in planted:
        with write_session() as s:
            s.execute(make())  # type: ignore[call-overload]
        found = of_walk(walk)
        assert len(found) > seen, make
        assert kind in {finding.kind for finding in found}
        seen = len(found)
    again(walk)
    assert DOUBLED in {finding.kind for finding in of_walk(walk)}
