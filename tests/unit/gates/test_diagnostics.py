"""What stands beside the checks of G3 and decides nothing: scatter within runs, the overhead of storing, software against array."""

import math
import random
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest

from gates.judge import judge
from gates.rules.decision import Effect
from gates.rules.estimates import median
from gates.rules.within_run import median_variance, median_weights, within_run
from tests.bundles import Truth, g3_evidence, small_plan

TUNED = {"arms": {"once": ["recompute", "placebo", "baseline_tuned"], "allowed_difference": ["mount_path", "device", "transport", "max_num_seqs"]}}


def lines(document, kind):
    return [row for row in document["figures"]["diagnostics"] if row["kind"] == kind]


@pytest.fixture(scope="module")
def good():
    return judge(g3_evidence().bundle())


def test_the_weights_of_a_median_are_a_law_that_is_symmetric_about_the_middle():
    for n in (1, 2, 5, 40, 161):
        weights = median_weights(n)
        assert math.fsum(weights) == pytest.approx(1)
        assert weights == pytest.approx(weights[::-1])


@pytest.mark.parametrize("n", [25, 40])
def test_the_closed_form_finds_the_variance_that_a_bootstrap_finds(n):
    rng = random.Random(7)
    values = sorted(int(10**9 * math.exp(rng.gauss(0, 0.1))) for _ in range(n))
    drawn = [math.log(median(rng.choices(values, k=n))) for _ in range(4000)]
    mean = math.fsum(drawn) / len(drawn)
    assert median_variance(values) == pytest.approx(math.fsum((x - mean) ** 2 for x in drawn) / len(drawn), rel=0.2)


def test_equal_requests_have_no_scatter_and_a_run_without_requests_has_no_interval():
    effect = Effect(((Fraction(100), Fraction(70)),) * 2, drop=True)
    sure = within_run(effect, [[100] * 9, [70] * 9] * 2, Decimal("0.95"))
    assert (sure.low, sure.high) == (Decimal("0.3"), Decimal("0.3"))
    assert within_run(effect, [[100] * 9, []] * 2, Decimal("0.95")) is None


def test_the_scatter_within_runs_stands_beside_the_interval_and_names_what_it_takes_for_granted(good):
    found = lines(good, "within_run")
    assert [row["tier"] for row in found] == [2, 4, 8]
    for row in found:
        assert float(row["values"]["low"]) < 0.31
        assert float(row["values"]["high"]) > 0.29
        assert row["decides"] is False
        assert "as if requests were independent" in row["text"]["en"]
        assert "too few run pairs" in row["text"]["en"]
        assert "诊断" in row["title"]["zh-CN"]


def test_what_storing_costs_is_said_where_the_placebo_loses_and_decides_nothing(good):
    slow = judge(g3_evidence(Truth(placebo=1.1)).bundle())
    assert slow["verdict"] == good["verdict"] == "pass"
    for row in lines(slow, "store_overhead"):
        assert float(row["values"]["gain"]) == pytest.approx(1 / 1.1 - 1, abs=0.02)
        assert re.search(r"costs 9\.\d\d % of throughput", row["text"]["en"])
        assert "写入新前缀使吞吐降低" in row["text"]["zh-CN"]
    assert len(lines(slow, "store_overhead")) == 3


def test_the_arm_baseline_tuned_splits_the_effect_into_software_and_array():
    document = judge(g3_evidence(plan=small_plan(TUNED)).bundle())
    assert document["verdict"] == "pass", document["summary"]
    found = lines(document, "software_split")
    assert [(row["tier"], row["values"]["quantity"]) for row in found] == [(t, q) for t in (2, 4, 8) for q in ("ttft_p50_drop", "throughput_gain")]
    for row in found:
        total, software, array = (float(row["values"][key]) for key in ("total", "software", "array"))
        if row["values"]["quantity"] == "ttft_p50_drop":
            assert (1 - software) * (1 - array) == pytest.approx(1 - total, abs=1e-6)
        else:
            assert (1 + software) * (1 + array) == pytest.approx(1 + total, abs=1e-6)
        assert {"software" in row["text"]["en"], "软件设置" in row["text"]["zh-CN"]} == {True}


def test_without_the_arm_nothing_is_said_of_software(good):
    assert lines(good, "software_split") == []


def test_an_invalid_measurement_says_nothing_beside_the_checks_either():
    document = judge(g3_evidence(Truth(placebo=0.8)).bundle())
    assert document["verdict"] == "invalid"
    assert document["figures"]["diagnostics"] == []


def test_diagnostics_are_the_same_each_time():
    assert judge(g3_evidence().bundle())["figures"] == judge(g3_evidence().bundle())["figures"]


def test_the_judge_starts_without_numpy():
    code = "import sys, gates.judge; sys.exit(any(name.partition('.')[0] in ('numpy', 'scipy') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
