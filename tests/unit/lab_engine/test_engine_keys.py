"""What an engagement file may say of engine and arms is what the roles read, neither more nor less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import yaml

from app.engagements import engine_keys
from app.settings import ROOT
from gates.plan_model import MEDIUM_KEYS
from gates.schema import Problems
from gates.steps import arm_name
from tests.unit.hardware.kit import ROLES, load
from tests.unit.lab_engine import lab  # noqa: F401 - puts the engine's package on the path

arms = load(ROLES / "arm/filter_plugins/arm_engine.py")


def dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        yield from dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else (prefix + key,)


def test_the_physics_are_the_keys_of_the_simulated_engine_that_the_role_does_not_set_itself() -> None:
    from lab_engine.config import DIALECTS, Config

    assert engine_keys.DIALECTS == DIALECTS
    own = {"model", "host", "port", "seed", "state_path", "tier", "faults", "dialect"}
    assert set(engine_keys.PHYSICS) == {field.name for field in fields(Config)} - own


def test_the_keys_of_an_arm_are_those_that_the_roles_read() -> None:
    from engine_stack import cpu, settings

    assert (engine_keys.NATURE, MEDIUM_KEYS) == (arms.NATURE, arms.MEDIUM)
    assert set(engine_keys.OFFLOAD) == {*dotted(settings.DEFAULTS), "kind", "storage"}
    bare = {"venv": "/v", "model_dir": "/m", "model": "m", "port": 1}
    assert set(engine_keys.CPU) == set(cpu.describe(bare, {}, {"port": 1, "kv_dir": None})["software"])
    assert set(engine_keys.OF_ARMS) == set(arms.KINDS)
    assert all(arm_name(arm).zh != arm for arm in engine_keys.ARMS)


def test_no_shipped_file_has_a_key_that_nothing_reads() -> None:
    for name in ("app/demo/engagement.yaml", "app/demo/engagement-vllm-cpu.yaml", "playbooks/inventories/example/engagement.yaml"):
        problems = Problems()
        engine_keys.check_engine_keys(yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))["targets"], problems)
        assert problems.found == []
