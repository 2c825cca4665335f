"""How long a gate takes at least, by measured rates, and whether that fits into the calendar."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from gates.plan import parse_plan
from gates.time_needed import needed, refusal, shown

RATES = {"hash": "x", "tiers": {"8": {"output_tokens_per_s": "100"}, "16": {"output_tokens_per_s": "160"}, "32": {"output_tokens_per_s": "200"}}}
DATED = {"calendar": {"start": "2026-09-21"}}  # ten weeks: it ends before 2026-11-30
RUN_S = Fraction(104 * 64, 100) + Fraction(160 * 64, 160) + Fraction(320 * 64, 200)


def test_g3_takes_its_runs_and_its_store_phases_at_the_measured_rates():
    found = needed(parse_plan(), "G3", RATES)
    assert found is not None
    assert found.seconds == (6 + 2) * RUN_S  # six runs; the baseline and the candidate store


def test_g4_takes_what_the_plan_says_on_the_clock_of_the_rig():
    assert needed(parse_plan(), "G4", None).seconds == 72 * 3600
    assert needed(parse_plan({"rig": {"simulated": True, "time_scale": "4320"}}), "G4", None).seconds == 60


@pytest.mark.parametrize(
    "rates", [None, {}, {"tiers": {"8": {"output_tokens_per_s": "1"}}}, {"tiers": {t: {"output_tokens_per_s": "0"} for t in ("8", "16", "32")}}]
)
def test_without_a_whole_measurement_nobody_can_tell(rates):
    assert needed(parse_plan(), "G3", rates) is None
    assert shown(parse_plan(), "G3", rates) is None
    assert needed(parse_plan(), "G1", RATES) is None


@pytest.mark.parametrize(("at", "fits"), [((2026, 11, 27, 0), True), ((2026, 11, 27, 1), False), ((2026, 12, 24, 0), False)])
def test_a_soak_that_cannot_end_within_the_calendar_is_refused_with_the_numbers(at, fits):
    said = refusal(parse_plan(DATED), "G4", None, datetime(*at, tzinfo=UTC))
    assert (said is None) is fits
    if said:
        assert "72.0 h" in said.en
        assert "2026-11-30" in said.en
        assert "72.0 h" in said.zh


def test_a_plan_without_a_start_refuses_nothing():
    assert refusal(parse_plan(), "G4", None, datetime(2030, 1, 1, tzinfo=UTC)) is None


def test_plans_that_were_sealed_before_cells_and_injections_existed_keep_their_hash():
    plan = parse_plan()
    assert "cells" not in plan.data["workload"]
    assert "injections" not in plan.data["g4"]
    more = parse_plan({"g4": {"injections": [{"label": "path-down", "action": "path-down", "at": "24 h", "lasts": "10 min"}]}})
    assert more.data["g4"]["injections"] == [{"label": "path-down", "action": "path-down", "at": "24 h", "lasts": "10 min"}]
    assert more.hash != plan.hash
