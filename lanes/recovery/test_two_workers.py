"""Two real nodes on one PostgreSQL, one broker and one evidence folder: they share the work, and one of them is killed while its jobs run.

Each node has a worker, a beat, a name and a state directory of its own, and starts playbook hosts of its own. The jobs live on targets, which are
folders that both nodes reach.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.attempts.models import Attempt, Sample, Transition, VerdictRevision
from app.engine import marker
from app.engine.models import Node
from app.kit.db import database_now, engine_for, read_session, write_session
from app.kit.migrate import upgrade
from app.settings import ROOT, settings
from app.up import broker, supervisor
from app.up.part import Part, kill
from gates.steps import judge_step
from lanes.chaos.ground import clear
from tests import postgres
from tests.engine_kit import LOCAL, PLAYBOOKS, attempt_of, ended, job_step, make_attempt, steps_of, wait_for
from tests.processes import mentions

pytestmark = pytest.mark.postgres
NODES, TARGETS = ("one", "two"), "targets"
JOBS, SECONDS, LINES = 6, 25, 10
GONE_S = 15.0  # in which what was killed must be gone


@pytest.fixture
def database(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the state be on PostgreSQL, whichever database the other tests are on."""
    if postgres.asked_for():
        yield
        return
    with postgres.server() as server:
        monkeypatch.setenv("QUADGATE_DATABASE_URL", server.url(server.fresh()))
        settings.cache_clear()
        upgrade()
        yield
        engine_for(settings().database_url).dispose()


@pytest.fixture
def place(state: Path, database: None) -> Iterator[Path]:
    """Run a broker that belongs to no node, and give the folder of everything; at the end nothing that lives in it is left."""
    sock = broker.socket_path(state)
    settings().broker_url = f"redis+socket://{sock}"
    argv = broker.argv(broker.server_program(), sock, state / "broker")
    server = Part("broker", argv, environment=dict(os.environ), cwd=ROOT, log=state / "log" / "broker.log")
    (state / "evidence").mkdir(exist_ok=True)
    try:
        server.start()
        wait_for(lambda: broker.answers(sock))
        yield state
    finally:
        server.kill_family()
        clear(state)


class OneNode:
    """A node: its worker and its beat."""

    def __init__(self, name: str, place: Path) -> None:
        self.name, self.folder = name, place / name
        self.folder.mkdir()
        (self.folder / "evidence").symlink_to(place / "evidence", target_is_directory=True)  # as a mount of one file system would be
        environment = {
            **os.environ,
            "QUADGATE_NODE": name,
            "QUADGATE_STATE_DIR": str(self.folder),
            "QUADGATE_DATABASE_URL": settings().database_url,
            "QUADGATE_BROKER_URL": settings().broker_url,
            "QUADGATE_PLAYBOOK_DIR": str(PLAYBOOKS),
        }
        for part, argv in (("worker", supervisor.worker_argv(name)), ("beat", supervisor.beat_argv(self.folder))):
            ours = ["lanes.recovery.two_nodes" if word == "app.worker.app" else word for word in argv]
            Part(part, ours, environment=environment, cwd=ROOT, log=self.folder / "log" / f"{part}.log").start()

    def kill(self) -> None:
        """SIGKILL all that runs on this node, as the loss of its machine would: worker, beat, playbook hosts. What names a target runs there."""
        deadline = time.monotonic() + GONE_S
        while pids := set(mentions(self.folder)) - set(mentions(self.folder.parent / TARGETS)):
            assert time.monotonic() < deadline, pids
            kill(list(pids))


def see_each_other() -> bool:
    """Tell whether both nodes beat, and each sees the evidence of the other: else none could take over."""
    with read_session() as s:
        return {row.name: row.sees for row in s.scalars(select(Node))} == {"one": ["two"], "two": ["one"]}


def jobs(place: Path) -> dict[str, Path]:
    """Make attempts, each with a measuring job on a target of its own and a judgement, all due at once; return the folders of their jobs."""
    made = {}
    for n in range(JOBS):
        root = place / TARGETS / f"t{n}"
        steps = job_step(params={"kind": "run", "seconds": SECONDS, "lines": LINES}), judge_step()
        made[make_attempt(*steps, hosts={"gpu01": {**LOCAL["gpu01"], "root": str(root)}}, due=False)] = root / "jobs"
    with write_session() as s:
        at = database_now(s)
        for attempt_id in made:
            s.get_one(Attempt, attempt_id).next_due_at = at
    return {attempt_id: folder / f"{attempt_id}-run-1" for attempt_id, folder in made.items()}


def alive(job: Path) -> bool:
    return marker.state(int((job / "started").read_text().split()[-1])) not in ("", "Z")


def test_a_killed_nodes_attempts_go_on_on_the_other_with_a_higher_fence_and_none_is_doubled(place: Path) -> None:
    one, _ = (OneNode(name, place) for name in NODES)
    wait_for(see_each_other)
    at = jobs(place)
    wait_for(lambda: all(steps_of(attempt_id)[0].status == "running" for attempt_id in at), said="all jobs run")
    before = {attempt_id: attempt_of(attempt_id) for attempt_id in at}
    shares = Counter(row.node for row in before.values())
    assert (sorted(map(str, shares)), min(shares.values()) >= JOBS // 2 - 1) == (sorted(NODES), True), shares
    assert all(alive(job) for job in at.values())
    one.kill()
    assert all(alive(job) for job in at.values())  # they are on other machines, and nobody has told them anything
    wait_for(lambda: all(ended(attempt_of(attempt_id)) for attempt_id in at), said="all attempts end")
    highest = max(row.fence for row in before.values())
    for attempt_id, job in at.items():
        row, taken = attempt_of(attempt_id), before[attempt_id].node == "one"
        assert (row.status, row.problem, row.node) == ("finished", None, "two")
        assert row.fence > highest if taken else row.fence == before[attempt_id].fence
        assert len((job / "started").read_text().split()) == 1
        assert len((job / "asked").read_text().split()) == 1
        assert told(attempt_id) == (list(range(LINES)), 1, 1)


def told(attempt_id: str) -> tuple[list[int], int, int]:
    """Return what is stored of an attempt: the numbers of its samples, how many verdicts, how often it ended."""
    with read_session() as s:
        samples = s.scalars(select(Sample.seq).where(Sample.attempt_id == attempt_id, Sample.stream == "records").order_by(Sample.seq))
        verdicts = select(func.count()).select_from(VerdictRevision).where(VerdictRevision.attempt_id == attempt_id)
        ends = select(func.count()).select_from(Transition).where(Transition.attempt_id == attempt_id, Transition.to_status == "finished")
        return list(samples), s.scalar(verdicts) or 0, s.scalar(ends) or 0
