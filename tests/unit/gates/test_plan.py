"""The plan: every number in one place, every mistake in one sentence that names the field, one hash."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.canonical import canonical_bytes, plain, sha256_of
from gates.plan import DEFAULT_PLAN, InvalidPlan, load_plan, load_yaml, parse_plan
from gates.units import BadQuantity, parse_quantity
from tests.bundles import merged


def problems(differences):
    with pytest.raises(InvalidPlan) as caught:
        parse_plan(differences)
    return {p.path: p.message for p in reversed(caught.value.problems)}  # the first sentence about a field


def test_the_default_plan_is_usable_and_holds_the_agreed_limits():
    plan = parse_plan()
    assert plan.g3.ttft_p50_drop_min.limit == Decimal("0.25")
    assert (plan.g3.throughput_gain_band.low, plan.g3.throughput_gain_band.high) == (Decimal("0.29"), Decimal("0.4"))
    assert plan.g4.duration.base == 72 * 3600
    assert sum(plan.calendar.weeks.values()) == 10
    assert [plan.workload.requests(t) for t in plan.workload.tiers] == [104, 160, 320]


def test_differences_are_merged_key_by_key_and_lists_as_a_whole():
    plan = parse_plan({"g3": {"agreement_max": "0.03"}, "g4": {"fatal_counters": ["aer_fatal"]}})
    assert plan.g3.agreement_max == Decimal("0.03")
    assert plan.g3.ttft_p50_drop_min.limit == Decimal("0.25")
    assert plan.g4.fatal_counters == ("aer_fatal",)


@pytest.mark.parametrize(
    ("differences", "path", "says"),
    [
        ({"g9": {}}, "g9", "unknown"),
        ({"g3": {"throughputgain": 1}}, "g3.throughputgain", "Did you mean `throughput_gain_band`?"),
        ({"G3": {}}, "G3", "Did you mean `g3`?"),
        ({"pairs": 4}, "pairs", "Did you mean `decision.pairs`?"),
        ({"g4": {"duration": "72"}}, "g4.duration", "unit"),
        ({"g4": {"duration": 72}}, "g4.duration", "unit"),
        ({"g4": {"duration": "72 GB"}}, "g4.duration", "unit of bytes"),
        ({"g4": {"duration": "72 hours"}}, "g4.duration", "not a known unit"),
        ({"g4": {"duration": "0 h"}}, "g4.duration", "> 0"),
        ({"g1": {"link": {"mtu_min": "4096 s"}}}, "g1.link.mtu_min", "unit of time"),
        ({"g3": {"ttft_p50_drop_min": {"limit": "a quarter"}}}, "g3.ttft_p50_drop_min.limit", "exact number"),
        ({"g3": {"ttft_p50_drop_min": {"limit": 25}}}, "g3.ttft_p50_drop_min.limit", "<= 0.999"),
        ({"g3": {"agreement_max": float("nan")}}, "g3.agreement_max", "exact number"),
        ({"g3": {"agreement_max": True}}, "g3.agreement_max", "exact number"),
        ({"g3": None}, "g3", "a map"),
        ({"g2": {"runs": 1}}, "g2.runs", "from 2"),
        ({"g2": {"runs": "three"}}, "g2.runs", "whole number"),
        ({"decision": {"rule": "best"}}, "decision.rule", "simple | interval | guarded"),
        ({"decision": {"rule": "interval"}}, "decision.pairs", "at least 4"),
        ({"decision": {"comparison": "rounded"}}, "decision.digits", "rounded"),
        ({"decision": {"pairs": 3}}, "arms.order", "pairs"),
        ({"policy": {"on_fail": {"G3": "ignore"}}}, "policy.on_fail.G3", "rectify | stop"),
        ({"policy": {"attempts": {"G5": 1}}}, "policy.attempts", "G1, G2, G3, G4"),
        ({"workload": {"tiers": [8, 8, 16, 32]}}, "workload.tiers", "twice"),
        ({"workload": {"tiers": []}}, "workload.tiers", "1 to"),
        ({"g3": {"ttft_p50_drop_min": {"tiers": [64]}}}, "g3.ttft_p50_drop_min.tiers", "not measured"),
        ({"g3": {"throughput_gain_band": {"low": "0.5"}}}, "g3.throughput_gain_band", "below high"),
        ({"g4": {"window": "100 h"}}, "g4.window", "longer"),
        ({"rig": {"time_scale": 2880}}, "rig.time_scale", "simulated"),
        ({"arms": {"allowed_difference": ["max_num_seqs"]}}, "arms.allowed_difference", "baseline_tuned"),
        ({"arms": {"once": ["recompute"]}}, "arms.once", "placebo"),
        ({"validity": {"device_bytes_ratio": ["1.2", "1.1"]}}, "validity.device_bytes_ratio", "below"),
        ({"workload": {"sampling": {"temperature": 1}}}, "workload.sampling.temperature", "from 0 to 0"),
        ({"calendar": {"start": "2026-02-30"}}, "calendar.start", "date of the calendar"),
        ({"calendar": {"start": "9999-12-31"}}, "calendar.start", "date of the calendar"),
        ({"calendar": {"start": "２０２６-１２-０１"}}, "calendar.start", "date of the calendar"),
        ({"g4": {"duration": "999999999 h"}}, "g4.duration", "<= 316224000"),
        ({"workload": {"run_timeout": "9" * 30 + " d"}}, "workload.run_timeout", "<= 316224000"),
        ({"rig": {"simulated": True, "time_scale": "1e-60"}}, "rig.time_scale", ">= 0.1"),
        ({"g1": {"order": "\u200b\u3164"}}, "g1.order", "text of"),
    ],
)
def test_every_mistake_is_a_sentence_that_names_the_field(differences, path, says):
    found = problems(differences)
    assert says in found[path].en
    assert path in found[path].en
    assert path in found[path].zh


@pytest.mark.parametrize("claim", ["hbm_cold", "page_cache_cold", "engine_restarted_cold", "equal_work", "failures"])
@pytest.mark.parametrize("form", ["word", "map"])
def test_cold_equal_work_and_failures_cannot_be_left_out(claim, form):
    entry = claim if form == "word" else {"claim": claim, "reason": "no time"}
    assert "cannot be left out" in problems({"not_tested": [entry]})["not_tested[0]"].en


def test_all_mistakes_are_said_at_once():
    assert {"g2.runs", "g4.duration", "nonsense"} <= set(problems({"g2": {"runs": 0}, "g4": {"duration": "x"}, "nonsense": 1}))


def test_the_hash_depends_on_meaning_not_on_spelling():
    base = parse_plan().hash
    assert parse_plan({"g3": {"agreement_max": 0.05}}).hash == base
    assert parse_plan({"g3": {"agreement_max": "0.0500"}}).hash == base
    assert parse_plan({"g3": {"agreement_max": "0.051"}}).hash != base
    assert parse_plan(load_yaml("g4: {duration: '72.0 h'}")).hash == base


def test_a_plan_comes_back_whole_from_its_canonical_text():
    plan = parse_plan({"g3": {"sla": {"ttft_p50": {8: "9 s"}}}, "not_tested": [{"claim": "device_bytes", "reason": "GPUDirect"}]})
    again = load_plan(json.loads(plan.canonical()))
    assert again == plan
    assert again.hash == plan.hash
    assert again.g3.sla.ttft_p50[8].base == 9


def test_nothing_is_filled_into_a_plan_that_was_sealed_without_it():
    data = json.loads(parse_plan().canonical())
    del data["g3"]["agreement_max"]
    with pytest.raises(InvalidPlan, match=r"g3\.agreement_max: this key is missing"):
        load_plan(data)


@pytest.mark.parametrize("text", ["g3: {a: 1, a: 2}", "g3: [", "g3: !!python/object:os.system {}", "? [a]\n: 1"])
def test_yaml_that_is_ambiguous_or_dangerous_is_refused_with_its_place(text):
    with pytest.raises(InvalidPlan, match="line 1"):
        load_yaml(text)


def test_numbers_of_yaml_stay_exact():
    assert load_yaml("a: 0.1")["a"] == Decimal("0.1")
    assert load_yaml("a: 2026-12-01")["a"] == "2026-12-01"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
)
@settings(max_examples=80, deadline=None)
def test_no_input_makes_the_parser_do_anything_but_say_what_is_wrong(junk):
    for differences in (junk, {"g3": junk}, {"workload": {"tiers": junk}}, {"not_tested": junk}, {"g4": {"duration": junk}}):
        try:
            assert parse_plan(differences).hash.startswith("sha256:")
        except InvalidPlan as error:
            found = error.problems
        else:
            continue
        assert found


def test_the_default_file_says_that_it_is_the_default():
    assert "default" in DEFAULT_PLAN.read_text(encoding="utf-8").splitlines()[0]


def test_quantities_carry_their_unit_exactly():
    assert parse_quantity("1 %", "percent").base == 1
    assert parse_quantity("5 min", "time").base == 300
    assert parse_quantity("1 KiB", "bytes").base == 1024
    assert parse_quantity("100 Gbit/s", "rate").base == Decimal("12.5e9")
    for bad in ("", "h", "72", "-1 h", "1e3 h", "1,5 h", "nan h", "72 h 5 min", "1 KB"):
        with pytest.raises(BadQuantity):
            parse_quantity(bad, "bytes" if "KB" in bad else "time")


def test_canonical_json_keeps_large_integers_and_decimals_exact():
    assert canonical_bytes({"b": Decimal("1.50"), "a": 2**60}) == b'{"a":"1152921504606846976","b":"1.5"}'
    assert sha256_of({"a": 1}) == "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    with pytest.raises(ValueError):
        plain(Decimal("NaN"))
    with pytest.raises(TypeError):
        plain({1, 2})


def test_merging_in_the_test_factory_is_what_the_parser_does():
    assert merged({"a": {"b": 1}}, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize("value", [[], {}, 10**70, None])
def test_what_is_no_value_of_a_field_is_named_in_the_readers_language(value):
    with pytest.raises(InvalidPlan) as raised:
        parse_plan({"g3": [] if value == [] else {"ttft_p50_drop_min": {"limit": value}}})
    told = [problem.message for problem in raised.value.problems]
    assert told
    assert not any(" a " in f" {message.zh}" or "number" in message.zh for message in told)


def test_a_mistyped_key_names_in_both_languages_the_one_that_was_meant_and_a_strange_one_names_none():
    said = problems({"g4": {"window-requests_min": 3, "colour": "blue"}})
    assert "是否应为 `window_requests_min`？此处可用：" in said["g4.window-requests_min"].zh
    for sentence, guess in ((said["g4.colour"].en, "Did you mean"), (said["g4.colour"].zh, "是否应为")):
        assert guess not in sentence
        assert "window_requests_min" in sentence
