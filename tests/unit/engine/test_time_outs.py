"""How long a start may take, and how far beyond its time a job may go on: of every job that a gate declares."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from app.engine.policy import START_TIMEOUT_S
from app.engine.steps.job import slack_s, start_timeout_s
from gates.g2_baseline import GATE as G2
from gates.g3_main import GATE as G3
from gates.g4_soak import GATE as G4
from gates.model import StepKind, StepSpec
from gates.plan import parse_plan

PLAN = parse_plan()
JOBS = [step for gate in (G2, G3, G4) for step in gate.steps(PLAN) if step.kind is StepKind.JOB]


def ctx(step: StepSpec, engine: dict[str, Any] | None = None) -> Any:
    return SimpleNamespace(current=SimpleNamespace(spec=asdict(step)), engagement=SimpleNamespace(targets={"engine": engine or {}}))


@pytest.mark.parametrize("step", JOBS, ids=lambda step: step.key)
def test_a_start_that_hangs_is_ended_after_hours_not_after_days(step: StepSpec) -> None:
    assert start_timeout_s(ctx(step)) == START_TIMEOUT_S
    assert step.timeout_s > START_TIMEOUT_S


@pytest.mark.parametrize("step", JOBS, ids=lambda step: step.key)
def test_a_start_has_time_for_a_model_that_loads_long(step: StepSpec) -> None:
    assert start_timeout_s(ctx(step, {"start_timeout_s": 10_800})) > 2 * 10_800


@pytest.mark.parametrize("step", JOBS, ids=lambda step: step.key)
def test_a_job_is_overdue_by_the_time_of_one_run_whatever_its_own_length(step: StepSpec) -> None:
    assert slack_s(asdict(step)) == int(PLAN.workload.run_timeout.base)
