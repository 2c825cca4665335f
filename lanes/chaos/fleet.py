"""The fleet: engagements whose soak runs on targets of files and real processes, moved by the real service under the real supervisor."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.usecases import issue_token
from app.attempts import usecases
from app.attempts.models import Attempt, Step
from app.engagements.models import Engagement
from app.kit.clock import now
from app.kit.db import database_now, engine_for, new_id, read_session, write_session
from app.kit.errors import Refused
from app.kit.migrate import upgrade
from app.plans.models import PlanRevision
from app.settings import settings
from app.up import part, supervisor
from gates.g4_soak import GATE
from gates.model import StepKind, StepSpec
from gates.text import Text
from lanes.chaos import boundaries, gate_script, scaled, script
from lanes.chaos.postgres import Postgres
from lanes.chaos.reader import Reader
from lanes.chaos.soak import Asked, Soak
from lanes.chaos.walk import Walk
from lanes.chaos.wire import Wire
from tests.people import Cast, enrol
from tests.ports import free_port

HERE = Path(__file__).parent
LOADGEN = "gpu01"
ENDED = ("finished", "canceled", "error")
RETRIES_MAX = 12  # of one attempt, by the person who looks after the fleet


class Fleet:
    """The service of the lane on one database, and its attempts."""

    def __init__(self, folder: Path, postgres: Postgres | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="s", dir=folder))
        self.postgres = postgres
        self.soaks: list[Soak] = []
        self.walks: list[Walk] = []
        self.gate_scripts = self.folder
        self.script = script.write(self.folder / "script")
        self.flags = self.folder / "chaos"
        self.flags.mkdir()
        scaled.FOLDER = self.flags  # the people of the lane look at the same clock
        self.clock_s = 0.0  # by how much the controller's clock was set for good
        self.armed: dict[str, Soak] = {}  # attempts that somebody will cancel at a boundary
        self.wire: Wire | None = None  # to the targets of real Ansible; None: they are local
        self.supervisor = self._configure()
        self.cast: Cast | None = None

    def _configure(self) -> supervisor.Supervisor:
        """Point this process at the fleet's state, and the service's processes at the lane's application."""
        url = self.postgres.url if self.postgres else ""
        environment = {
            "QUADGATE_STATE_DIR": str(self.folder),
            "QUADGATE_DATABASE_URL": url,
            "QUADGATE_BROKER_URL": "",
            "QUADGATE_NODE": "chaos",
            "QUADGATE_WEB_PORT": str(free_port()),
            "QUADGATE_TICK_SECONDS": "0.5",
            "QUADGATE_LEASE_SECONDS": "8",
            "QUADGATE_STOP_SECONDS": "24",  # as in production, however slow this machine is
            "QUADGATE_PLAYBOOK_DIR": str(HERE / "playbooks"),
        }
        os.environ.update(environment)
        engine_for.cache_clear()
        settings.cache_clear()
        settings()  # ours goes straight to the database; the service's goes by the proxy that cuts
        if self.postgres:
            os.environ["QUADGATE_DATABASE_URL"] = self.postgres.proxied_url
        supervisor.HOST_PROGRAM = HERE / "host.py"
        supervisor.worker_argv = lambda node: _lane_argv(WORKER_ARGV(node))
        supervisor.beat_argv = lambda state: _lane_argv(BEAT_ARGV(state))
        supervisor.START_S = 240.0
        supervisor.BEAT_LATE_S = 4.0
        part.BACK_OFF_MAX_S = 1.0  # it is killed all the time
        return supervisor.Supervisor()

    def start(self) -> None:
        """Start the service."""
        upgrade()
        with write_session() as s:
            self.cast = enrol(s)
        self.supervisor.start()

    def stop(self) -> None:
        """Stop the service, and leave nothing."""
        self.supervisor.stop(cancel=False)
        engine_for(settings().database_url).dispose()

    def remove(self) -> None:
        """Remove the state."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def launch(self, count: int, *, real: int = 0) -> list[Soak]:
        """Put attempts into the database; the service does the rest."""
        made = []
        for n in range(count):
            made.append(self._attempt(report=n % 4 == 0, manual=n % 2 == 1, real=n < real))
        self.soaks += made
        return made

    def set_out(self, count: int) -> list[Walk]:
        """Let engagements set out for all four gates; the people of their parties do the rest (walk.py)."""
        assert self.cast is not None
        if count and not self.walks:
            self.gate_scripts = gate_script.write(self.folder / "gate-script")
        made = [Walk(self.cast, self.gate_scripts, into=self.soaks.append) for _ in range(count)]
        self.walks += made
        return made

    def _attempt(self, *, report: bool, manual: bool, real: bool) -> Soak:
        code, plan = f"C{len(self.soaks):03d}{new_id()[-6:]}", script.plan()
        root = self.folder / "lab" / code / LOADGEN
        host = self.wire.described(root) if real and self.wire else {"groups": ["engine", "loadgen"], "connection": "local"}
        targets = {"simulated": True, "real_ansible": real, "hosts": {LOADGEN: host}}
        with write_session() as s:
            site = "by Ansible" if real else "by the stand-in"  # whose polls are made together is told by the site
            named = {"code": code, "customer": "客户", "vendor": "厂商", "site": site, "contract": "-", "source_yaml": "", "state": "active"}
            engagement = Engagement(**named, people={}, order={}, packing_list=[], targets=targets, created_by="-", created_at=now())
            s.add(engagement)
            s.flush()
            sealed = {"canonical": plan.canonical(), "hash": plan.hash, "created_by": "-", "created_at": now(), "sealed_at": now()}
            revision = PlanRevision(engagement_id=engagement.id, revision=1, **sealed)
            s.add(revision)
            s.flush()
            attempt = Attempt(engagement_id=engagement.id, gate="G4", number=1, plan_id=revision.id, plan_hash=plan.hash, seed=1, started_by="-")
            attempt.created_at = attempt.next_due_at = now()
            s.add(attempt)
            s.flush()
            for position, spec in enumerate(self._steps(report=report, manual=manual)):
                data = {**asdict(spec), "title": spec.title.json()}
                row = Step(attempt_id=attempt.id, position=position, key=spec.key, kind=str(spec.kind), title=spec.title.json(), spec=data)
                s.add(row)
            identity = attempt.id
        root.mkdir(parents=True)
        return Soak(identity, root, report, real, manual)

    def _steps(self, *, report: bool, manual: bool) -> list[StepSpec]:
        soak, judge, printed = GATE.steps(script.plan())
        soak = replace(soak, params={**soak.params, "seconds": script.SOAK_S, "script": str(self.script)})
        prepare = StepSpec(key="prepare", kind=StepKind.PLAYBOOK, title=Text("Prepare", "准备"), playbook="prepare.yml", changes_target=True)
        handover = StepSpec(key="handover", kind=StepKind.MANUAL, title=Text("Hand over", "交接"))
        return [prepare, *([handover] if manual else []), soak, judge, *([printed] if report else [])]

    def look(self) -> list[tuple[Soak, str]]:
        """Return the attempts that have come to another boundary since the last look, and where; retry those in error, as a person would."""
        moved = []
        for soak in self.open():
            try:
                with read_session() as s:
                    attempt = s.get_one(Attempt, soak.id)
                    step = s.scalar(select(Step).where(Step.attempt_id == soak.id, Step.position == attempt.step_index))
            except SQLAlchemyError:
                return moved  # stopped by us
            seen = (step.key if step else "end", f"{attempt.status}/{step.status if step else ''}")
            if seen != soak.seen:
                soak.seen, soak.place = seen, f"{step.kind}/{step.status}" if step else ""
                moved.append((soak, f"{seen[0]} {seen[1]}"))
            if attempt.status == "error":
                self._retry(soak, attempt.problem or {})
            elif attempt.status == "waiting" and step is not None and step.status == "waiting":
                walk = next((one for one in self.walks if soak in one.soaks), None)
                walk.fill_in(step) if walk else self._hand_over(soak, step)
            elif attempt.status in ENDED:
                soak.ended_s = time.monotonic()
        return moved

    def _retry(self, soak: Soak, problem: dict[str, Any]) -> None:
        """Retry what ended in an error, unless somebody wants it canceled: a retry would take that back."""
        if len(soak.problems) >= RETRIES_MAX:
            return
        try:
            with write_session() as s:
                if s.get_one(Attempt, soak.id, with_for_update=True).cancel_requested_at is not None:
                    return
                usecases.retry(s, attempt_id=soak.id, actor=self.actor)
            soak.problems.append(Asked(str(problem.get("code")), time.monotonic(), str(problem.get("en"))))
        except (SQLAlchemyError, Refused):
            return  # the database was stopped by us, or the engine was faster

    def _hand_over(self, soak: Soak, step: Step) -> None:
        """Do what a person is waited for: cancel, where that was asked for at this place, else let it go on.

        The form itself is left out: a soak has none, and its judge refuses evidence of a step that is not its own.
        """
        with suppress(SQLAlchemyError, Refused):
            if soak.cancel_at == boundaries.WAITING:
                if boundaries.armed(self.flags, soak.id):
                    boundaries.ask(self.flags, soak.id, boundaries.WAITING)
            else:
                with write_session() as s:
                    if (attempt := s.get_one(Attempt, soak.id, with_for_update=True)).cancel_requested_at is None:
                        s.get_one(Step, step.id).status, attempt.next_due_at = "done", database_now(s)

    def watch(self, soak: Soak) -> Reader:
        """Let somebody watch an attempt by its event stream."""
        with write_session() as s:
            token = issue_token(s, user_id=self.actor.user_id, name=soak.id, days=30)
        reader = Reader(settings().web_port, token, soak.id)
        reader.start()
        return reader

    def cancels(self) -> None:
        """Note which of the attempts that were armed for it were canceled in fact, also where nobody could say so any more."""
        with read_session() as s:
            asked = set(s.scalars(select(Attempt.id).where(Attempt.id.in_(self.armed), Attempt.cancel_requested_at.is_not(None))))
        for identity in asked:
            self.armed[identity].facts.add("cancel")

    @property
    def actor(self) -> Any:
        """Return the person who looks after the fleet."""
        assert self.cast is not None
        return self.cast.li_wei

    def open(self) -> list[Soak]:
        """Return the attempts that have not ended."""
        return [soak for soak in self.soaks if soak.ended_s is None]


WORKER_ARGV, BEAT_ARGV = supervisor.worker_argv, supervisor.beat_argv


def _lane_argv(argv: list[str]) -> list[str]:
    assert argv[0] == sys.executable
    return ["lanes.chaos.worker" if word == "app.worker.app" else word for word in argv]
