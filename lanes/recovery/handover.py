"""What a hand-over is shown on: a target with a real probe and a simulated engine, and controllers that each have a state, a database and a name."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.attempts.models import Attempt, Sample, Step
from app.engagements.models import Engagement
from app.engine import marker, marks
from app.kit.clock import now
from app.kit.db import new_id, read_session, write_session
from app.plans.models import PlanRevision
from app.settings import ROOT
from gates.g4_soak import GATE
from gates.plan import Plan, parse_plan
from lanes.conftest import SHORT, merged
from tests.conftest import _forget
from tests.engine_kit import attempt_of, wait_for
from tests.integration.playbook_lab import PlaybookLab
from tests.processes import mentions
from tests.scenes import demo_plan
from tests.unit.probe.kit import kill

HOST = "gpu01"
DAY_S = 86400  # which the soak lasts by its plan
GAP_H = 3  # of it, which the plan lets pass between two samples, and the test between two requests
SOAK_MIN_S, SOAK_SHARE = 45, 10  # of this machine's clock: a hand-over takes as long as so many deployments, however busy the machine is just now
HBM_TOKENS = 81_920  # ten prefixes of the load's twenty
# A machine that is shared by everything has noise in every figure. What is asked here is whether all of the evidence came home and was judged, so the
# limits that speak of calm are out of reach; completeness, clock, errors, restarts, coverage and gaps are judged as ever.
CALM = {
    "hourly_drift_max": "0.99",
    "excursion_max": "0.99",
    "window_requests_min": 5,
    "coverage_min": "0.5",
    "tier": 4,
}


def plan(soak_s: int) -> Plan:
    """Return the plan: the demo's and the lanes' with few requests, and a soak of a day in so many seconds, or a little more."""
    scale = DAY_S // soak_s
    small = {"tiers": [2, 4], "requests_per_run": {"min": 20, "per_concurrency": 5}, "context_tokens": 8192}
    limits = {"ttft_p50_drop_min": {"limit": "0.25", "tiers": [2, 4]}, "throughput_gain_band": {"low": "0.29", "high": "0.40", "tiers": [2, 4]}}
    own = {
        "rig": {"time_scale": str(scale)},
        "workload": small,
        "g3": limits,
        "g4": {"duration": "24 h", "gap_max": f"{GAP_H} h", **CALM},
    }
    return parse_plan(merged(merged(demo_plan(), SHORT), own))


class Target:
    """One host of this machine, with its root outside of any controller's state: it stays where it is when a controller goes."""

    def __init__(self, lab: PlaybookLab) -> None:
        self.lab, self.root, began = lab, lab.add(HOST), time.monotonic()
        known = lab.variables({"key": "deploy"}, attempt={"fence": 0})  # lower than any that a controller has
        self.site = known["site"]
        engine = self.site["engine"]  # whose memory holds less than the load rotates through: it comes from the tier
        self.site["engine"] = {**engine, "physics": {**engine["physics"], "hbm_tokens": HBM_TOKENS}}
        done = lab.play("deploy.yml", {**known, "plan": json.loads(plan(SOAK_MIN_S).canonical())})
        assert done.rc == 0, done.output
        self.soak_s = max(SOAK_MIN_S, math.ceil(SOAK_SHARE * (time.monotonic() - began)))
        self.gap_s = self.soak_s * GAP_H / 24
        self.plan = plan(self.soak_s)

    def attempt(self) -> str:
        """Put an attempt at the soak into the database of the settings, due now; return its id."""
        hosts = {HOST: {"groups": ["engine", "loadgen"], "connection": "local", "root": str(self.root)}}
        targets = {**{key: value for key, value in self.site.items() if key not in ("order", "packing_list")}, "hosts": hosts}
        parties = {"customer": "客户", "vendor": "厂商", "site": "-", "contract": "-"}
        by = {"created_by": "-", "created_at": now()}
        with write_session() as s:
            engagement = Engagement(
                **parties, **by, code=f"H{new_id()[-8:]}", source_yaml="", state="active", people={}, order={}, packing_list=[], targets=targets
            )
            s.add(engagement)
            s.flush()
            sealed = {"canonical": self.plan.canonical(), "hash": self.plan.hash, "sealed_at": now()}
            revision = PlanRevision(**sealed, **by, engagement_id=engagement.id, revision=1)
            s.add(revision)
            s.flush()
            attempt = Attempt(engagement_id=engagement.id, gate="G4", number=1, plan_id=revision.id, plan_hash=self.plan.hash, seed=1, started_by="-")
            attempt.created_at = attempt.next_due_at = now()
            s.add(attempt)
            s.flush()
            for position, spec in enumerate(GATE.steps(self.plan)[:-1]):  # without its report
                data = {**asdict(spec), "title": spec.title.json()}
                s.add(Step(attempt_id=attempt.id, position=position, key=spec.key, kind=str(spec.kind), title=spec.title.json(), spec=data))
            return attempt.id

    def job(self, attempt_id: str) -> Path:
        """Return the folder of the attempt's soak."""
        return self.root / "jobs" / f"{attempt_id}-soak"

    def fence(self) -> int:
        """Return the highest fencing number that the host has seen."""
        return int(json.loads((self.root / "hostlock.json").read_text())["fence"])

    def load(self, attempt_id: str) -> list[dict[str, Any]]:
        """Return the requests of the soak's load so far, in the order in which they were sent."""
        path = self.job(attempt_id) / "records.jsonl"
        rows = [json.loads(line) for line in path.read_bytes().rpartition(b"\n")[0].splitlines()] if path.exists() else []
        return sorted((row for row in rows if row["phase"] == "soak"), key=lambda row: row["sent_ns"])


@dataclass
class Controller:
    """One machine: its name as a node, its state folder, its database ("" for SQLite in the folder), where its process logs."""

    node: str
    folder: Path
    database: str
    log: Path
    patch: pytest.MonkeyPatch
    process: subprocess.Popen[bytes] | None = None

    @property
    def _named(self) -> dict[str, str]:
        return {"QUADGATE_STATE_DIR": str(self.folder), "QUADGATE_DATABASE_URL": self.database, "QUADGATE_NODE": self.node}

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in ([self.process.pid] if self.process is not None else []) + mentions(self.folder):
            kill(pid)

    def go(self) -> None:
        """Let what this process does from now on happen there."""
        _forget()
        for name, value in self._named.items():
            self.patch.setenv(name, value)
        _forget()

    def quadgate(self, *words: str | Path, ends: Sequence[int] = (0,)) -> str:
        """Run a command of the service there to its end, which must be one of these; return what it said."""
        argv = [str(word) for word in (ROOT / ".venv/bin/quadgate", *words)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **self._named})
        assert done.returncode in ends, done.stdout + done.stderr
        return done.stdout

    def start(self, attempt_id: str) -> None:
        """Start its process."""
        argv = [sys.executable, "-m", "lanes.recovery.controller", attempt_id]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env={**os.environ, **self._named})

    def mark(self, attempt_id: str) -> str:
        """Return the mark that the processes of an attempt carry there."""
        self.go()
        return marks.of(attempt_id)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let its process stand still, whatever playbook is under way: another controller on this machine ends nothing of it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        yield
        self.process.send_signal(signal.SIGCONT)

    def kill(self, attempt_id: str) -> None:
        """End its process and all that it has under way, playbook hosts and what they run, by SIGKILL."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
        marker.end_all(self.mark(attempt_id))  # the job itself carries no mark of a controller's

    def comes_to(self, attempt_id: str, status: str) -> Attempt:
        """Wait until the attempt has come to another end than it has now, or to an error: it must be this one. Return the attempt."""
        ends = {"finished", "canceled", "error"} - {attempt_of(attempt_id).status}
        found: Attempt = wait_for(lambda: attempt if (attempt := attempt_of(attempt_id)).status in ends else None, said=f"{self.node}: {status}")
        assert found.status == status, (found.status, found.problem, self.log.read_text()[-3000:])
        return found


def kept(attempt_id: str, stream: str) -> dict[int, Any]:
    """Return the lines of a journal that the controller of the settings has stored, by their numbers."""
    with read_session() as s:
        found = list(s.execute(select(Sample.seq, Sample.data).where(Sample.attempt_id == attempt_id, Sample.stream == stream).order_by(Sample.id)))
    rows: dict[int, Any] = {row.seq: row.data for row in found}
    assert [row.seq for row in found] == sorted(rows), f"{stream}: a line is stored twice, or out of its order"
    return rows
