"""The odds of a plan: drawn attempts are judged by the gate's own rules, the figures are reproducible, and thin margins are said."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from gates.g3.limits import throughput_gain, ttft_drop
from gates.judge import roll_up
from gates.model import Verdict
from gates.odds.alarms import false_alarms, with_fitting_limits
from gates.odds.chances import chances
from gates.odds.cost import cost
from gates.odds.document import at_sealing, document
from gates.odds.drawing import TierDraw, draws
from gates.odds.effects import Noise, allowed_gain, expected_effects
from gates.odds.margins import warnings
from gates.odds.planner import needed, with_pairs
from gates.odds.trial import Rules
from gates.plan import parse_plan
from gates.rules import across
from gates.rules.claim import Findings
from gates.rules.estimates import median
from gates.rules.standing import Standing, leave_out, validity_check
from gates.steps import numbered
from tests.bundles import merged
from tests.unit.gates.measured import ENGINE, measured

DEFAULT = parse_plan()
SURE = {"validity": {"placebo_gain_max": "0.2", "replay_gain_max": "0.2"}, "g3": {"agreement_max": "0.2"}}


def plan(differences=None, *, pairs=2, rule="simple", extension=0):
    base = parse_plan(merged({"g3": {"extension_pairs": extension}}, differences or {}))
    return with_pairs(base, pairs, rule=rule)


def gate_verdict(plan, draw):
    """The same numbers through the gate's own claims, checks and roll-up."""
    first = plan.decision.pairs

    count, runs = len(next(iter(draw.values())).baseline_ttft), []
    for i in range(count):
        name, block = ("g3", plan.arms.block(2 * i + 1)) if i < first else ("g3-extension", plan.arms.block(2 * (i - first) + 1))
        prompts = numbered(name, block)
        runs.append(measured(plan, "baseline", f"b{i}", {t: (d.baseline_ttft[i], d.baseline_rate[i]) for t, d in draw.items()}, prompts))
        runs.append(measured(plan, "candidate", f"c{i}", {t: (d.candidate_ttft[i], d.candidate_rate[i]) for t, d in draw.items()}, prompts))
    one = Fraction(1)
    for i in range(plan.arms.controls):
        runs.append(measured(plan, "recompute", numbered("recompute", i + 1), {t: (one, d.recompute_rate[i]) for t, d in draw.items()}))
        runs.append(measured(plan, "placebo", numbered("placebo", i + 1), {t: (one, d.placebo_rate[i]) for t, d in draw.items()}))
    data = Findings(plan, tuple(runs), extended_by=count - first)
    frozen = {"tiers": {str(t): {"ttft_p50_ns": int(d.frozen_ttft), "output_tokens_per_s": str(int(d.frozen_rate))} for t, d in draw.items()}}
    frozen["engine"] = ENGINE
    frozen["hash"] = across.frozen_hash(frozen)
    several = (across.replay(data), across.baselines_agree(data)) if count > 1 else ()
    standing = Standing(True, leave_out(plan, (across.placebo(data), *several, across.g2_agreement(data, frozen))))
    checks = [validity_check("G3", plan, standing)]
    for tier in plan.workload.tiers:
        checks += [ttft_drop(plan, data, standing, tier), throughput_gain(plan, data, standing, tier)]
    return roll_up(checks)


PLANS = [
    (plan(), 0.02),
    (plan({"g3": {"throughput_gain_band": {"above": "accept"}}}), 0.01),
    (plan({"g3": {"throughput_gain_band": {"above": "fail", "tiers": [8, 16, 32]}}}, pairs=3), 0.01),
    (plan({"not_tested": [{"claim": "replay", "reason": "agreed"}, {"claim": "placebo", "reason": "agreed"}]}, extension=2), 0.02),
    (plan({"decision": {"comparison": "rounded", "digits": 0}}), 0.01),
    (plan(SURE, pairs=4, rule="interval", extension=2), 0.02),
    (plan(pairs=6, rule="guarded"), 0.01),
    (plan(pairs=1), 0.005),
    (plan({"arms": {"controls": 4}}), 0.02),
    (plan({"arms": {"controls": 3}}, pairs=4, rule="interval", extension=2), 0.02),
    (with_pairs(plan(pairs=4, rule="interval", extension=4), 4, prompts="per_block"), 0.03),
    (with_pairs(plan(pairs=8, rule="guarded"), 8, controls=6, prompts="per_block"), 0.02),
    (with_pairs(plan(pairs=4), 4, prompts="per_block"), 0.03),
]


@pytest.mark.parametrize(("chosen", "noise"), PLANS, ids=range(len(PLANS)))
@pytest.mark.parametrize(("drop", "gain"), [("0.25", "0.29"), ("0.27", "0.395"), ("0.30", "0.34")])
def test_every_drawn_attempt_is_judged_as_the_gate_itself_judges_these_numbers(chosen, noise, drop, gain):
    effects = expected_effects(chosen, drop=Decimal(drop), gain=Decimal(gain))
    rules, pairs, seen = Rules(chosen), chosen.decision.pairs, set()
    for draw in draws(chosen, effects, Noise(noise), pairs=pairs + chosen.g3.extension_pairs, trials=25, seed=5):
        for attempt in ({t: d.first(pairs) for t, d in draw.items()}, draw):
            judged = rules.judge(attempt)
            assert judged.verdict is gate_verdict(chosen, attempt)
            assert (judged.verdict is Verdict.PASS) == (not judged.causes)
            seen.add(judged.verdict)
    assert len(seen) > 1 or gain == "0.34"  # the noise reaches more than one answer


@pytest.mark.parametrize(("off", "verdict"), [(0, Verdict.PASS), (1, Verdict.FAIL)])
def test_a_drawn_attempt_exactly_at_the_limits_is_judged_exactly(off, verdict):
    base, fast = Fraction(10**10), Fraction(10**9)
    at = TierDraw(
        (base,) * 2, (base * 3 / 4 + off,) * 2, (fast,) * 2, (fast * Fraction("1.29"),) * 2, base, fast, recompute_rate=(fast,), placebo_rate=(fast,)
    )
    assert Rules(plan()).judge(dict.fromkeys((8, 16, 32), at)).verdict is verdict


def test_the_same_plan_and_seed_give_the_same_figures_and_more_pairs_keep_the_first_ones():
    effects = expected_effects(DEFAULT)
    assert chances(DEFAULT, effects, Noise(), trials=200) == chances(DEFAULT, effects, Noise(), trials=200)
    assert chances(DEFAULT, effects, Noise(), trials=200, seed=1) != chances(DEFAULT, effects, Noise(), trials=200, seed=2)
    two, four = (next(draws(DEFAULT, effects, Noise(), pairs=n, trials=3, seed=1)) for n in (2, 4))
    assert {t: d.first(2) for t, d in four.items()} == two


def test_chances_add_up_and_every_lost_pass_has_a_cause():
    found = chances(DEFAULT, expected_effects(DEFAULT), Noise(), trials=300)
    assert sum(found.counts.values()) == 300
    assert sum(found.causes.values()) >= 300 - found.counts.get(Verdict.PASS, 0)


def test_without_noise_a_good_product_always_passes_and_a_bad_one_never():
    for drop, gain, verdict in (("0.30", "0.34", Verdict.PASS), ("0.24", "0.34", Verdict.FAIL), ("0.30", "0.28", Verdict.FAIL)):
        found = chances(DEFAULT, expected_effects(DEFAULT, drop=Decimal(drop), gain=Decimal(gain)), Noise(0.0, 0.0), trials=50)
        assert found.of(verdict) == 1


def test_the_shortcut_for_a_runs_median_agrees_with_medians_of_autocorrelated_requests():
    rng, noise, n, runs = np.random.default_rng(3), Noise(run=0.0), 160, 3000
    steps = rng.standard_normal((runs, n)) * np.sqrt(1 - noise.autocorrelation**2)
    series = np.empty((runs, n))
    series[:, 0] = rng.standard_normal(runs)
    for i in range(1, n):
        series[:, i] = noise.autocorrelation * series[:, i - 1] + steps[:, i]
    times = np.rint(10**10 * np.exp(noise.request * series)).astype(np.int64)
    logs = np.log([float(median(row)) for row in times.tolist()])
    assert np.std(logs) == pytest.approx(noise.of_median(n), rel=0.05)
    assert np.std(np.log(times.mean(axis=1))) == pytest.approx(noise.of_mean(n), rel=0.05)


def test_without_a_word_in_the_plan_the_published_figures_are_expected_and_said():
    found = expected_effects(DEFAULT)
    assert found.drop == {8: Decimal("0.2596"), 16: Decimal("0.32"), 32: Decimal("0.2625")}
    assert (found.gain[8], found.gain[16]) == (Decimal("0.29"), Decimal("0.40"))
    assert "published" in found.drop_source.en
    sealed = parse_plan({"expected": {"ttft_p50_drop": {8: "0.3"}, "throughput_gain": {8: "0.33"}}})
    assert (expected_effects(sealed).drop[8], expected_effects(sealed).gain[8]) == (Decimal("0.3"), Decimal("0.33"))
    assert "the plan" in expected_effects(sealed).drop_source.en


def test_published_margins_are_called_thin_and_equal_limits_coin_tosses():
    said = [w.en for w in warnings(DEFAULT, expected_effects(DEFAULT), Noise(0.01))]
    assert any("c8" in w and "25.96 %" in w and "thin margin" in w for w in said)
    assert [w[:3] for w in said if "coin toss" in w] == ["c8:", "c16"]
    assert all(w.zh for w in warnings(DEFAULT, expected_effects(DEFAULT), Noise(0.01)))


@pytest.mark.parametrize(
    ("drop", "gain", "says"),
    [("0.25", "0.34", "coin toss"), ("0.24", "0.31", "does not meet"), ("0.40", "0.45", "above the band"), ("0.26", "0.40", "at most +35.14 %")],
)
def test_each_bad_expectation_is_said(drop, gain, says):
    found = warnings(DEFAULT, expected_effects(DEFAULT, drop=Decimal(drop), gain=Decimal(gain)), Noise(0.001))
    assert any(says in w.en for w in found)


def test_a_comfortable_plan_is_not_warned_about():
    assert warnings(DEFAULT, expected_effects(DEFAULT, drop=Decimal("0.30"), gain=Decimal("0.345")), Noise(0.005)) == ()


def test_no_drop_brings_more_than_constant_decode_time_allows():
    assert allowed_gain(Decimal("0.2625")) == Decimal("0.3559")
    assert allowed_gain(Decimal("0.25"), 0.8) == Decimal("0.2500")


def test_more_pairs_never_make_a_sound_product_pass_less_often():
    effects = expected_effects(DEFAULT, drop=Decimal("0.30"), gain=Decimal("0.345"))
    found = [chances(plan(pairs=n), effects, Noise(0.015), trials=150).of(Verdict.PASS) for n in (2, 6, 16)]
    assert found == sorted(found)


def test_the_planner_repeats_recompute_and_placebo_and_gives_blocks_their_own_prompts_where_the_noise_asks_for_it():
    effects = expected_effects(DEFAULT, drop=Decimal("0.30"), gain=Decimal("0.345"))
    calm, noisy = (needed(plan(pairs=4, rule="interval"), effects, Noise(n), 0.9, trials=60) for n in (0.005, 0.02))
    assert (calm.plan.arms.controls, calm.plan.arms.prompts) == (1, "shared")
    assert noisy.reached
    assert noisy.plan.arms.controls >= 3
    assert (noisy.plan.arms.prompts, noisy.plan.arms.blocks) == ("per_block", noisy.pairs // 2)
    price = cost(noisy.plan, effects)
    assert (price.controls, price.blocks) == (noisy.plan.arms.controls, noisy.plan.arms.blocks)
    assert price.stored_bytes == cost(DEFAULT, effects).stored_bytes * price.blocks


def test_what_a_limit_alarms_at_by_chance_is_said_with_every_way_out():
    said = {row["claim"]: row["text"]["en"] for row in at_sealing(plan(pairs=8))["fitting_limits"]}
    assert "arms.controls 4" in said["placebo"]
    assert "arms.prompts per_block" in said["replay"]
    assert "in up to" in said["baselines_agree"]
    assert at_sealing(plan({"expected": {"run_variation": "0.001"}}))["fitting_limits"] == []


def test_the_planner_finds_the_cheapest_runs_that_reach_the_chance_and_says_when_none_do():
    effects = expected_effects(DEFAULT, drop=Decimal("0.30"), gain=Decimal("0.345"))
    four = plan(pairs=4, rule="interval")
    need = needed(four, effects, Noise(0.01), 0.9, trials=100)
    assert need.reached
    assert need.chances.of(Verdict.PASS) >= 0.9
    assert chances(with_pairs(four, max(need.pairs - 2, 4)), effects, Noise(0.01), trials=100).of(Verdict.PASS) <= need.chances.of(Verdict.PASS)
    hopeless = expected_effects(DEFAULT, drop=Decimal("0.20"), gain=Decimal("0.345"))
    assert not needed(four, hopeless, Noise(0.01), 0.9, trials=100).reached


def test_limits_that_fit_the_noise_end_its_false_alarms():
    noise, effects = Noise(0.02), expected_effects(DEFAULT, drop=Decimal("0.30"), gain=Decimal("0.345"))
    four = plan(pairs=4)
    assert {alarm.claim for alarm in false_alarms(four, noise)} == {"placebo", "replay", "baselines_agree", "g2_agreement"}
    before, after = (chances(p, effects, noise, trials=250) for p in (four, with_fitting_limits(four, noise)))
    assert before.of(Verdict.INVALID) > 0.1
    assert after.of(Verdict.INVALID) + after.of(Verdict.INCONCLUSIVE) < 0.03
    assert false_alarms(four, Noise(0.001, 0.01)) == ()


def test_cost_counts_every_run_and_names_its_assumptions():
    effects = expected_effects(DEFAULT)
    price = cost(DEFAULT, effects)
    per_run = 104 + 160 + 320
    assert price.requests == 6 * per_run
    assert price.stored_bytes == per_run * 32768 * 253952
    assert (price.media, price.read_bytes) == (2, 4 * price.stored_bytes)
    assert cost(DEFAULT, effects, requests=2).stored_bytes == 2 * price.stored_bytes
    assert cost(DEFAULT, effects, kv_bytes_per_token=16).stored_bytes == per_run * 32768 * 16
    measured = {"tiers": {str(t): {"ttft_p50_ns": 1, "output_tokens_per_s": "50.0"} for t in (8, 16, 32)}}
    assert "G2 measured" in cost(DEFAULT, effects, g2_baseline=measured).assumptions[1].en
    assert "published" in price.assumptions[1].en
    assert "write 4.86 TB more" in price.assumptions[-1].en
    three = parse_plan({"arms": {"controls": 3}})
    assert cost(three, effects).requests == 10 * per_run
    assert cost(three, effects).stored_bytes == price.stored_bytes
    assert "write 14.58 TB more" in cost(three, effects).assumptions[-1].en


def test_the_dataset_is_plain_json_in_both_languages():
    found = at_sealing(DEFAULT)
    again = json.loads(json.dumps(found))
    assert again == found
    assert set(found["verdicts"]) == {str(v) for v in Verdict}
    assert "通过" in found["summary"]["zh-CN"]
    assert found["needed"] is None
    asked = document(DEFAULT, expected_effects(DEFAULT, drop=Decimal("0.2")), Noise(0.005), want=0.9, trials=100)
    assert "No number of run pairs" in asked["needed"]["text"]["en"]
