"""An engagement on its way through the four gates, by the use cases alone: the people of both parties approve, start, fill in, sign.

They also try each gate before its time: while the one before still runs, before its report is signed, and when one party has signed. None may open.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.actor import Actor
from app.approvals.usecases import approve, pending
from app.attempts.models import Attempt, Step
from app.attempts.usecases import attempt_view, start_attempt
from app.demo import inspection, people
from app.engagements.usecases import create_engagement
from app.kit.db import new_id, read_session, write_session
from app.kit.errors import QuadgateError, Refused
from app.settings import settings
from gates.registry import GATES
from lanes.chaos import gate_script
from lanes.chaos.findings import LOST, WRONG, Finding
from lanes.chaos.soak import Soak
from lanes.chaos.standin import SCRIPTS
from tests.people import Cast
from tests.scenes import PNG

LOADGEN = "gpu01"
LATER = ("disk_full",)  # what a sentence says that it takes once there is room
AGAIN = (SQLAlchemyError, OSError)  # the database was stopped by us, or the disk of the evidence is full: a person tries again


class Walk:
    """One engagement, and what its people have yet to do."""

    def __init__(self, cast: Cast, scripts: Path, *, into: Callable[[Soak], None]) -> None:
        self.parties = {"vendor": [cast.li_wei, cast.chen_jing], "customer": [cast.wang_fang, cast.zhao_lei]}
        self.engineer: Actor = cast.li_wei
        self.code = f"W{new_id()[-8:].upper()}"
        self.soaks: list[Soak] = []
        self.findings: list[Finding] = []
        self.knocks = 0  # times that a gate was tried too early
        self.over = False
        self.born = time.monotonic()
        self._into, self._said = into, set[tuple[str, str]]()
        self._todo: list[Callable[[], None]] = []
        for host in gate_script.HOSTS:
            root = self._root(host)
            root.mkdir(parents=True)
            (root / SCRIPTS).symlink_to(scripts / host)
        with write_session() as s:
            self.id = create_engagement(s, text=gate_script.text(self.code), actor=self.engineer).id
        self._after("the plan", "G1")

    def look(self) -> None:
        """Do the next thing that is to be done, if it can be done now. What fails because something is away is tried again at the next look."""
        try:
            if self._todo:
                self._todo[0]()
                self._todo.pop(0)
            elif not self.over and self.soaks[-1].ended_s is not None:
                self._go_on()
            elif not self.over:
                self._knock_while_it_runs()
        except AGAIN:
            return
        except QuadgateError as error:
            if error.code in LATER:
                return
            self.findings.append(Finding(LOST, f"its people could not go on: {error.text('en')}"))
            self._todo, self.over = [], True

    def fill_in(self, step: Step) -> None:
        """Fill in the form for which an attempt waits."""
        with suppress(*AGAIN, QuadgateError), read_session() as s:
            view = attempt_view(s, attempt_id=step.attempt_id, actor=self.engineer)
            if view["may"]["form"]:
                inspection.fill_in(view, self.parties)

    def _go_on(self) -> None:
        """Let both parties sign the gate that ended, and start the next one."""
        at = list(GATES).index(self.soaks[-1].gate) + 1
        following = list(GATES)[at] if at < len(GATES) else ""
        with read_session() as s:
            passed = s.get_one(Attempt, self.soaks[-1].id).verdict == "pass"
        self.over = not passed  # which is a finding of its own (checks.py)
        if passed:
            self._after(self.soaks[-1].gate, following)

    def _after(self, what: str, following: str) -> None:
        """Plan what is to be done when `what` is there to be agreed to: one party, the other, and in between each time somebody who cannot wait."""
        for party in self.parties:
            if following:
                self._todo.append(partial(self._knock, following, f"{what}, before the {party} agreed"))
            self._todo.append(partial(self._agree, party))
        self._todo.append(partial(self._start, following) if following else self._end)

    def _agree(self, party: str) -> None:
        """Let the approver of one party agree to what waits in this engagement. Nothing waits where a commit was one whose answer was lost."""
        approver = people.having(self.parties, "approver", party)
        with write_session() as s:
            for item in pending(s, actor=approver):
                if item["engagement_id"] == self.id and item["mine"] and item["object_kind"] in people.ROUTINE:
                    named = {key: item[key] for key in ("object_kind", "object_id", "object_hash")}
                    scan = PNG if item["object_kind"] == "sign_off" else None
                    approve(s, **named, decision="approve", comment="混沌测试 / chaos", actor=approver, scan=scan, scan_name="scan.png")

    def _start(self, gate: str) -> None:
        with write_session() as s:
            earlier = s.scalars(select(Attempt).where(Attempt.engagement_id == self.id, Attempt.gate == gate)).first()
            attempt = earlier or start_attempt(s, engagement_id=self.id, gate=gate, actor=self.engineer)
            jobs = tuple(s.scalars(select(Step.key).where(Step.attempt_id == attempt.id, Step.kind == "job").order_by(Step.position)))
            made = Soak(attempt.id, self._root(LOADGEN), report=True, real=False, manual=gate == "G1", gate=gate, jobs=jobs)
        self.soaks.append(made)
        self._into(made)

    def _end(self) -> None:
        self.over = True

    def _knock_while_it_runs(self) -> None:
        gate = self.soaks[-1].gate
        following = list(GATES)[list(GATES).index(gate) + 1 :]
        if following:
            self._knock(following[0], f"{gate}, while it runs")

    def _knock(self, gate: str, when: str) -> None:
        """Try to start a gate that may not be started yet, once at each such time."""
        if (gate, when) in self._said:
            return
        with suppress(Refused):
            with write_session() as s:
                start_attempt(s, engagement_id=self.id, gate=gate, actor=self.engineer)
            self.findings.append(Finding(WRONG, f"{gate} opened at its wrong time: {when}"))
        self._said.add((gate, when))
        self.knocks += 1

    def _root(self, host: str) -> Path:
        """Return the folder of a local host, as app/targets/inventory.py says it."""
        return settings().state_dir / "lab" / self.code / host
