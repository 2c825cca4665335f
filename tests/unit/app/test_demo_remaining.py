"""The demo's estimate of the time that is left: from the plan's own steps, corrected by what G2 took, never by what G3 tells."""

from __future__ import annotations

from typing import Any

import pytest

from app.demo.options import HERE
from app.demo.remaining import Remaining, about, remaining_of
from gates.model import StepKind
from gates.plan import load_yaml

SIM = load_yaml((HERE / "engagement.yaml").read_text(encoding="utf-8"))
CPU = load_yaml((HERE / "engagement-vllm-cpu.yaml").read_text(encoding="utf-8"))


def walk(left: Remaining, gate: str, now: float, seconds: float) -> float:
    """Let a gate go by in which every job takes so long and nothing else takes any time. Returns the time at its end."""
    left.begin(now)
    done: list[dict[str, Any]] = []
    for step in left.steps[gate]:
        now += seconds if step.kind is StepKind.JOB else 0.0
        done.append({"key": step.key, "status": "done"})
        left.look(gate, done, now)
    return now


def test_a_whole_demo_is_said_to_take_what_whole_demos_took() -> None:
    left = remaining_of(SIM, "G4")
    left.begin(0.0)
    whole = left.seconds("G1", 0.0)
    assert whole is not None
    assert 330 <= whole <= 480  # README: six to seven minutes
    assert remaining_of(SIM, "G1").seconds("G1", 0.0) < 60


def test_the_soaks_length_is_the_plans_on_its_scale() -> None:
    longer = {**SIM, "plan": {**SIM["plan"], "rig": {"simulated": True, "time_scale": "432"}}}
    short, long = (remaining_of(document, "G4").seconds("G4", 0.0) for document in (SIM, longer))
    assert long - short == pytest.approx(540, abs=1)


def test_a_step_that_goes_on_longer_than_planned_leaves_the_rest_and_never_less() -> None:
    left = remaining_of(SIM, "G4")
    left.begin(0.0)
    told = [left.seconds("G4", at) for at in (0.0, 30.0, 300.0, 3000.0)]
    assert told[0] - told[1] == pytest.approx(30)
    assert 0 < told[3] == told[2] < told[1]


def test_a_slow_machine_is_learned_from_the_runs_of_g2_and_not_from_the_sealed_ones_of_g3() -> None:
    left, quick = remaining_of(SIM, "G4"), remaining_of(SIM, "G4")
    now = walk(left, "G2", 0.0, 120.0)
    left.begin(now)
    before = left.seconds("G3", now)
    assert before > 2 * quick.seconds("G3", 0.0)
    run = left.steps["G3"][0]
    left.look("G3", [{"key": run.key, "status": "done"}], now)  # a first run in no time at all
    other = remaining_of(SIM, "G4")
    then = walk(other, "G2", 0.0, 120.0)
    other.begin(then)
    other.look("G3", [{"key": run.key, "status": "done"}], then + 1000.0)
    assert left.seconds("G3", now) == other.seconds("G3", then + 1000.0)


def test_where_no_physics_tells_a_runs_length_nothing_is_said_before_a_run_has_ended() -> None:
    left = remaining_of(CPU, "G4")
    left.begin(0.0)
    assert left.seconds("G1", 0.0) is None
    left.begin(10.0)
    deploy, first, *_ = left.steps["G2"]
    left.look("G2", [{"key": deploy.key, "status": "done"}], 20.0)
    assert left.seconds("G2", 20.0) is None
    left.look("G2", [{"key": deploy.key, "status": "done"}, {"key": first.key, "status": "done"}], 95.0)
    assert left.seconds("G2", 95.0) > 8 * 40


@pytest.mark.parametrize(
    ("seconds", "en", "zh"),
    [(400.0, "about 7 min left", "约剩 7 分钟"), (62.0, "about 60 s left", "约剩 60 秒"), (0.0, "about 10 s left", "约剩 10 秒")],
)
def test_it_is_said_in_round_numbers_and_as_about(seconds: float, en: str, zh: str) -> None:
    assert (about(seconds).en, about(seconds).zh) == (en, zh)
