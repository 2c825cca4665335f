"""The plans of the demos say what the demos measure: the chances at their seal are those of a demo that passes."""

from __future__ import annotations

import pytest

from app.settings import ROOT
from gates.odds.document import at_sealing
from gates.plan import load_yaml, parse_plan


@pytest.mark.parametrize("name", ["engagement.yaml", "engagement-vllm-cpu.yaml"])
def test_the_chances_at_the_seal_of_a_demo_are_those_of_its_own_rig(name: str) -> None:
    document = load_yaml((ROOT / "app" / "demo" / name).read_text(encoding="utf-8"))
    told = at_sealing(parse_plan(document["plan"]), targets=document["targets"])
    assert float(told["verdicts"]["pass"]["chance"]) > 0.9
    assert "published" not in told["assumptions"][0]["en"]
    assert told["warnings"] == []
