"""The lane: waves of attempts, and a fault at every boundary that the dice choose and at random in between."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import select

from app.attempts.models import Attempt, StepEvent, VerdictRevision
from app.kit.db import read_session
from app.settings import settings
from gates.registry import GATES
from lanes.chaos import boundaries, checks, ends, walk_checks
from lanes.chaos.faults import ARMED, CUTS, FAULTS, MET_AT, Strike
from lanes.chaos.fleet import Fleet
from lanes.chaos.postgres import Postgres
from lanes.chaos.reader import Reader, compare
from lanes.chaos.soak import Soak
from lanes.chaos.table import Table
from lanes.chaos.walk import Walk
from lanes.chaos.wire import KILLED, wire
from lanes.chaos.witness import WITNESSED
from tests.needs import NEEDS, postgres_programs
from tests.processes import mentions

WAVE = 8
FATES = ("cancel", "cancel", "cancel", "SIGKILL probe", "target reboot")  # of the attempts of a wave whose end a fault decides
DIE_AT_A_LOOK, CUT_AT_A_LOOK = 0.1, 0.3
READER_S = 30.0  # in which a reader comes to the end of an attempt that has ended, times checks.patience()
WAVE_S = 180.0  # in which a wave must have ended, times checks.patience()
AT_BOUNDARY = 0.3
WALKS, CALM = 2, 3  # engagements that go through all gates at once; by so much more rarely they are struck, since they come to so many boundaries
PAUSE_S = (0.8, 2.4)
ON_POSTGRES = ("PostgreSQL stop and start", "PostgreSQL cut after COMMIT")


class Lane:
    """One service on one database, wave after wave."""

    def __init__(self, folder: Path, table: Table, dice: random.Random, *, on_postgres: bool) -> None:
        self.folder, self.table, self.dice, self.on_postgres = folder, table, dice, on_postgres
        self.reference = ""
        self.gates: dict[str, str] = {}  # the same of an engagement, by gate
        self.fates: dict[str, str] = {}
        self.struck: list[ends.Struck] = []
        self.faults = [f for f in FAULTS if f not in (*table.not_run, *FATES, *KILLED.values()) and (on_postgres or f not in ON_POSTGRES)]
        self.bag: list[str] = []
        self.cut: tuple[Soak, str] | None = None
        self.hits = 0
        self.sentences: list[str] = []

    @contextmanager
    def service(self) -> Iterator[Lane]:
        """Start the service, and at the end stop it and look for what is left of it."""
        with ExitStack() as stack:
            postgres = Postgres(Path(tempfile.mkdtemp(prefix="p", dir=self.folder))) if self.on_postgres else None
            if postgres:
                stack.callback(postgres.close)
            self.fleet = Fleet(self.folder, postgres)
            stack.callback(self.fleet.remove)
            stack.enter_context(small_disk(settings().evidence_dir))
            stack.enter_context(small_disk(settings().runs_dir))
            if not set(KILLED.values()) & self.table.not_run.keys():
                self.fleet.wire = stack.enter_context(wire(Path(tempfile.mkdtemp(prefix="k", dir=self.folder)) / "ssh"))
            try:
                self.fleet.start()
                yield self
            finally:
                self.fleet.stop()
                for pid in mentions(self.fleet.folder):
                    self.tell([], checks.Finding(checks.LOST, f"process {pid} is left of the service"), "")

    def undisturbed(self, *, soaks: int, walks: int) -> None:
        """Take attempts, one of them by real Ansible, and engagements through without a fault: their verdicts are the reference."""
        made, walking = self.fleet.launch(soaks, real=1), self.fleet.set_out(walks)
        self._until_ended(faults=False, walks=walking)
        if made:
            self._refer_to_soaks(made)
        for walk in walking:
            self._refer_to(walk)

    def _refer_to_soaks(self, soaks: list[Soak]) -> None:
        """Let the one verdict of attempts that nothing disturbed be the reference."""
        with read_session() as s:
            ours = select(VerdictRevision).where(VerdictRevision.attempt_id.in_([soak.id for soak in soaks]))
            kept = {row.substance: row.verdict for row in s.scalars(ours)}
        if len(kept) != 1 or set(kept.values()) != {"pass"}:
            with read_session() as s:
                why = [row.problem for row in s.scalars(select(Attempt))] + [
                    row.document["summary"]["en"] for row in s.scalars(select(VerdictRevision))
                ]
            raise SystemExit(f"without a fault the lane does not reach one pass but {kept}: {[soak.seen for soak in soaks]} {why}")
        if not list(settings().state_dir.glob(f"{WITNESSED}/*/*")):
            raise SystemExit("nobody counted what the real Ansible emitted: the lane could not see an event that is lost")
        self.reference = next(iter(kept))
        self._check(soaks)

    def walk(self) -> None:
        """Let engagements go through all four gates under faults, and check every one of them."""
        self.fates, self.cut = {}, None
        walks = self.fleet.set_out(WALKS)
        self._until_ended(faults=True, walks=walks)
        for walk in walks:
            self._check_walk(walk)
            self.table.walked += walk.over
            self.table.knocks += walk.knocks

    def _refer_to(self, walk: Walk) -> None:
        """Let the verdicts of an engagement that nothing disturbed be the reference of its gates."""
        with read_session() as s:
            verdicts = select(VerdictRevision).where(VerdictRevision.attempt_id.in_([soak.id for soak in walk.soaks]))
            rows = {row.attempt_id: row for row in s.scalars(verdicts)}
            why = [(soak.gate, soak.seen, s.get_one(Attempt, soak.id).problem) for soak in walk.soaks]
            said = [(row.document["gate"], row.document["summary"]["en"]) for row in rows.values()]
        if [rows[soak.id].verdict for soak in walk.soaks if soak.id in rows] != ["pass"] * len(GATES):
            raise SystemExit(f"without a fault an engagement does not pass its four gates: {said} {why}")
        self.gates = {soak.gate: rows[soak.id].substance for soak in walk.soaks}
        self._check_walk(walk)

    def _check_walk(self, walk: Walk) -> None:
        if walk.soaks:
            self._check(walk.soaks)
        over = [one.fault for one in self.struck if one.at >= walk.born]
        for finding in walk_checks.of_walk(walk):
            self.tell(over, finding, walk.code)

    def wave(self) -> None:
        """Let a wave of attempts run under faults, and check every one of them."""
        soaks = self.fleet.launch(WAVE, real=1)
        fated = self.dice.sample([soak.id for soak in soaks[1:]], len(FATES))  # the first is that of the real Ansible, whose connection is killed
        self.fates = dict(zip(fated, FATES, strict=True))
        self.cut = (soaks[0], min(KILLED, key=lambda status: self.table.injected[KILLED[status]]))  # of the real Ansible
        self.reader = self.fleet.watch(next(soak for soak in soaks[1:] if soak.id not in self.fates))
        for soak in soaks:
            if self.fates.get(soak.id) == "cancel":
                self._hit("cancel", soak, "armed")
        self._until_ended(faults=True)
        self._check_reader(self.reader)
        self._check(soaks)

    def _until_ended(self, *, faults: bool, walks: Sequence[Walk] = ()) -> None:
        rarely = checks.patience() * (CALM if walks else 1)
        deadline, strike_at = time.monotonic() + WAVE_S * checks.patience(), time.monotonic() + 1.0
        while (self.fleet.open() or not all(walk.over for walk in walks)) and time.monotonic() < deadline:
            moved = self.fleet.look()
            for walk in walks:
                walk.look()
            self._count_hits()
            if faults:
                self._let_fate_strike()
                for soak, where in moved:
                    if soak.place in self.table.few() or self.dice.random() < AT_BOUNDARY / rarely:
                        self._strike(soak, where)
                if time.monotonic() > strike_at and self.fleet.open():
                    self._strike(self.dice.choice(self.fleet.open()), "at random")
                    strike_at = time.monotonic() + self.dice.uniform(*PAUSE_S) * rarely
            time.sleep(0.1)

    def _strike(self, soak: Soak, where: str) -> None:
        """Let the next fault of the bag that can strike now do so; the bag holds each fault once before it is filled again."""
        if not self._draw(soak, where):
            self.bag += self.dice.sample(self.faults, len(self.faults))
            self._draw(soak, where)

    def _draw(self, soak: Soak, where: str) -> bool:
        for fault in self.bag:
            if self._hit(fault, soak, where):
                self.bag.remove(fault)
                return True
        return False

    def _let_fate_strike(self) -> None:
        """Kill what is to die while its job runs."""
        for soak in self.fleet.open():
            fate = "" if soak.facts else self.fates.get(soak.id, "")
            if fate and fate != "cancel" and self.dice.random() < DIE_AT_A_LOOK:
                self._hit(fate, soak, "while its job runs")
        if self.cut and self.dice.random() < CUT_AT_A_LOOK and self._hit(KILLED[self.cut[1]], self.cut[0], "by killing a real sshd"):
            never = next((status for status in KILLED if not self.table.injected[KILLED[status]]), None)
            self.cut = (self.cut[0], never) if never else None  # once a wave, and more often while one of them never struck

    def _count_hits(self) -> None:
        """Count what struck at a boundary inside a move since the last look."""
        for hit in boundaries.hits(self.fleet.flags, self.hits):
            self.hits += 1
            what, _, where = hit.what.partition(" ")
            if what in ("cancel", boundaries.REFUSED, boundaries.GONE):
                self._count_cancel(hit, what, where)
            else:
                fault = next(name for name, slug in boundaries.BOUNDARIES.items() if slug == what)
                self._count(hit.at, fault, "inside a move", hit.attempt)
        for soak in self.fleet.soaks:
            diary = soak.root / f"cuts-{soak.id}"
            for line in (diary.read_text().splitlines() if diary.exists() else [])[soak.cuts :]:
                soak.cuts += 1
                playbook, _, how = line.partition(" ")
                self._count(time.monotonic(), CUTS[playbook], f"{how} it was done", soak.id, (soak.id,))

    def _count_cancel(self, hit: boundaries.Hit, what: str, where: str) -> None:
        """Note what became of a cancel; only one that was accepted is an injection."""
        soak = next(soak for soak in self.fleet.soaks if soak.id == hit.attempt)
        kind, _, at = where.partition("/")
        MET_AT[kind, at] += what != boundaries.GONE
        if what == boundaries.GONE:
            soak.gone_at = hit.at
        elif what == boundaries.REFUSED:
            self.table.refused[where] += 1
            if not where.startswith("report/"):
                self.tell([], checks.Finding(checks.WRONG, f"a cancel was refused at {where}, where there is no verdict yet"), soak.id)
        else:
            soak.facts.add("cancel")
            soak.canceled_at = hit.at
            self.table.canceled[where] += 1
            self._count(hit.at, "cancel", where, soak.id, (soak.id,))

    def _hit(self, fault: str, soak: Soak, where: str) -> bool:
        began, strike = time.monotonic(), Strike(self.fleet, soak, self.dice)
        if not FAULTS[fault](strike):
            return False
        if fault not in ARMED:
            self._count(began, fault, strike.how or where, soak.id, strike.whose)
        return True

    def _count(self, at: float, fault: str, where: str, attempt: str, whose: tuple[str, ...] = ()) -> None:
        self.table.injected[fault] += 1
        struck = whose or (attempt,)  # of a fault of the whole service: the attempt at whose boundary it struck
        for place in {where} if fault == "cancel" else {soak.place for soak in self.fleet.soaks if soak.id in struck}:
            self.table.struck[fault, place] += 1
        self.struck.append(ends.Struck(at, fault, whose))
        self._say(f"{fault:<42} {where:<26} {attempt[-6:]}")

    def _check(self, soaks: list[Soak]) -> None:
        self._count_hits()
        self.fleet.cancels()
        for soak in soaks:
            struck = [one for one in self.struck if one.felt(soak, soak.ended_s or time.monotonic())]
            found = checks.of_attempt(soak, self.gates[soak.gate] if soak.gate else self.reference, struck)
            for finding in found:
                self.tell([one.fault for one in struck], finding, soak.id)
            self.table.resumed += "reboot" in soak.facts and not found
            self.table.cancels.add(soak, struck)
            shutil.rmtree(settings().runs_dir / soak.id, ignore_errors=True)  # it was looked at, and its file system is small
            soak.ended_s = soak.ended_s or time.monotonic()  # what was lost is told once
        for finding in checks.of_all():
            self.tell([one.fault for one in self.struck[-30:]], finding, "")
        took = [(soak.ended_s or 0.0) - soak.born for soak in soaks]
        retried = sorted(asked.code for soak in soaks for asked in soak.problems)
        self._say(f"-- {len(soaks)} attempts ended after {min(took):.0f} to {max(took):.0f} s; retried by a person: {', '.join(retried) or 'none'}")

    def _check_reader(self, reader: Reader) -> None:
        """Hold what a reader of the event stream was told against what is stored."""
        soak = next(soak for soak in self.fleet.soaks if soak.id == reader.attempt)
        if soak.ended_s is None:
            return  # which is a finding by itself
        over = [one.fault for one in self.struck if one.at >= soak.born]
        if not reader.end(READER_S * checks.patience()):
            self.tell(over, checks.Finding(checks.LOST, "a reader of the event stream was never told the end"), soak.id)
            return
        with read_session() as s:
            stored = list(s.scalars(select(StepEvent.id).where(StepEvent.attempt_id == soak.id).order_by(StepEvent.id)))
        for finding in compare(reader.seen, stored):
            self.tell(over, finding, soak.id)
        self.table.reader_breaks += reader.breaks

    def tell(self, faults: list[str], finding: checks.Finding, whose: str) -> None:
        """Count a finding and say it."""
        self.table.blame(faults, finding.kind)
        self.sentences.append(f"{finding.kind.upper()}: attempt {whose}: {finding.text}; struck meanwhile: {', '.join(dict.fromkeys(faults))}")
        self._say(self.sentences[-1])

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    """Let a folder lie on a small file system of its own, where that may be mounted."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    mounted = bool(NEEDS["mounts"].there())
    if mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=0700", "tmpfs", path], check=True)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", path], check=True)


def lacking() -> dict[str, str]:
    """Return the faults that cannot be injected on this machine, each with the reason."""
    out = {}
    if postgres_programs() is None:
        out = dict.fromkeys(ON_POSTGRES, NEEDS["postgres"].lacking)
    if not NEEDS["mounts"].there():
        out |= dict.fromkeys(ends.FULL, NEEDS["mounts"].lacking)
    if not NEEDS["sshd"].there():
        out |= dict.fromkeys(KILLED.values(), NEEDS["sshd"].lacking)
    return out
