"""Golden: the limit comparison on the published figures says what the documents say."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from gates.model import Verdict
from gates.plan import parse_plan
from gates.rules.decision import Effect, above, at_least, compare
from gates.rules.estimates import percent

PLAN = parse_plan()
LIMIT = PLAN.g3.ttft_p50_drop_min.limit
BAND = PLAN.g3.throughput_gain_band
PUBLISHED = {
    (row["report"], row["what"], row.get("parallel"), row.get("load")): row
    for row in yaml.safe_load((Path(__file__).parents[3] / "gates/reference/published.yaml").read_text(encoding="utf-8"))["results"]
}


def drop(before: str, after: str) -> Effect:
    return Effect(((Fraction(before), Fraction(after)),), drop=True)


def gain(ratio: str) -> Effect:
    return Effect(((Fraction(1), Fraction(1) + Fraction(ratio)),), drop=False)


def side(effect: Effect) -> str:
    if not at_least(effect, BAND.low, PLAN.decision):
        return "below"
    return "above" if above(effect, BAND.high, PLAN.decision) else "inside"


@pytest.mark.parametrize(("end", "printed"), [(0, "25.96 %"), (1, "26.25 %")])
def test_both_published_end_tiers_meet_the_drop_of_a_quarter(end, printed):
    row = next(r for r in PUBLISHED.values() if r["report"] == "R2" and r.get("load") == "cold recovery")
    before, after = (row["ttft_p50_s"][k][end] for k in ("before", "after"))
    outcome = compare(drop(str(before), str(after)), LIMIT, PLAN.decision)
    assert outcome.verdict is Verdict.PASS
    assert percent(outcome.value, LIMIT) == printed


def test_both_published_gains_lie_inside_the_band_ends_included():
    row = next(r for r in PUBLISHED.values() if r["report"] == "R3" and r.get("parallel") == "TP8")
    for ratio in row["throughput_gain"].values():
        assert side(gain(str(ratio))) == "inside"
        assert compare(gain(str(ratio)), BAND.low, PLAN.decision, BAND.high).verdict is Verdict.PASS


def test_the_whole_machine_gains_lie_inside_the_band():
    row = next(r for r in PUBLISHED.values() if r["report"] == "R3" and "TP4" in str(r.get("parallel")))
    assert [side(gain(str(g))) for g in row["throughput_gain"]] == ["inside", "inside"]


def test_a_drop_of_24_99_percent_misses_and_is_printed_below_the_limit():
    outcome = compare(drop("10000", "7501"), LIMIT, PLAN.decision)
    assert (outcome.verdict, percent(outcome.value, LIMIT)) == (Verdict.FAIL, "24.99 %")


def test_a_gain_of_40_01_percent_is_above_and_28_99_is_below_the_band():
    assert [side(gain(g)) for g in ("0.2899", "0.29", "0.40", "0.4001")] == ["below", "inside", "inside", "above"]


@pytest.mark.parametrize(("before", "after"), [("1.2", "0.9"), ("2.4", "1.8"), ("3.6", "2.7")])
def test_exactly_a_quarter_is_met_where_floats_say_it_is_not(before, after):
    assert (float(before) - float(after)) / float(before) != 0.25 or before == "1.2"
    assert drop(before, after).reaches(LIMIT)
    assert drop(before, after).value(LIMIT) == Decimal("0.25")


def test_one_nanosecond_decides_either_way():
    base = 10_170_000_000
    at = base * 3 // 4
    assert drop(str(base), str(at)).reaches(LIMIT)
    assert not drop(str(base), str(at + 1)).reaches(LIMIT)
    missed = compare(drop(str(base), str(at + 1)), LIMIT, PLAN.decision)
    assert missed.verdict is Verdict.FAIL
    assert missed.value < LIMIT
    assert percent(missed.value, LIMIT) != "25.00 %"
