"""Limits straight from benchmark result files: golden on the published figures, and never better than conditional."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.bundle import Unreadable
from gates.canonical import canonical_bytes
from gates.compare import ResultFile, compare
from gates.plan import parse_plan
from gates.readers.bench.declared import CLIENTS

PLAN = parse_plan()
TOKENS = 64
PUBLISHED = yaml.safe_load((Path(__file__).parents[3] / "gates/reference/published.yaml").read_text(encoding="utf-8"))["results"]


def result(tier: int, ttft_ms: float, duration: float, **changed: Any) -> dict[str, Any]:
    """Return one run as `vllm bench serve --save-result` writes it, without rows."""
    n = 10 * tier
    run = {"date": "20261129-155237", "endpoint_type": "openai", "backend": "vllm", "model_id": "qwen3-coder-480b-fp8", "num_prompts": n}
    run |= {"request_rate": "inf", "max_concurrency": tier, "duration": duration, "completed": n, "failed": 0}
    run |= {"total_input_tokens": 32832 * n, "total_output_tokens": TOKENS * n, "output_throughput": TOKENS * n / duration}
    run |= {"mean_ttft_ms": ttft_ms, "median_ttft_ms": ttft_ms, "p99_ttft_ms": ttft_ms * 1.2}
    return run | changed


BASE = {8: result(8, 10170, 129.0), 16: result(16, 17426, 210.0), 32: result(32, 35730, 405.0)}
GOOD = {8: result(8, 7530, 100.0), 16: result(16, 11850, 150.0), 32: result(32, 26350, 300.0)}


def files(runs: Mapping[int, Any], arm: str) -> list[ResultFile]:
    return [ResultFile(f"{arm}-c{tier}.json", json.dumps(run).encode()) for tier, run in runs.items()]


def judged(base: Mapping[int, Any], new: Mapping[int, Any], plan: Any = PLAN) -> dict[str, Any]:
    return compare(plan, files(base, "baseline"), files(new, "candidate"))


def met(document: dict[str, Any]) -> dict[str, bool | None]:
    return {c["id"].removeprefix("g3."): c["limit_met"] for c in document["checks"]}


def codes(document: dict[str, Any]) -> set[str]:
    return {p["code"] for p in document["problems"]}


def edited(runs: Mapping[int, Any], tier: int, **changed: Any) -> dict[int, Any]:
    return {**runs, tier: {**copy.deepcopy(runs[tier]), **changed}}


def test_the_published_figures_are_what_the_files_say() -> None:
    cold = next(r for r in PUBLISHED if r.get("load") == "cold recovery")["ttft_p50_s"]
    for side, runs in (("before", BASE), ("after", GOOD)):
        assert [str(v) for v in cold[side]] == [str(runs[t]["median_ttft_ms"] / 1000) for t in (8, 32)]
    gains = next(r for r in PUBLISHED if r["report"] == "R3" and r["parallel"] == "TP8")["throughput_gain"]
    assert {f"c{t}": round(BASE[t]["duration"] / GOOD[t]["duration"] - 1, 4) for t in (8, 16)} == gains


def test_the_published_figures_meet_every_limit_and_are_conditional_because_unproven() -> None:
    document = judged(BASE, GOOD)
    assert document["problems"] == []
    assert (document["verdict"], document["because"]) == ("conditional", ["unproven"])
    assert set(met(document).values()) == {True}
    values = {c["id"].removeprefix("g3."): c["value"] for c in document["checks"]}
    assert (values["throughput_gain.c8"], values["throughput_gain.c16"]) == ("0.29", "0.4")
    assert values["ttft_p50_drop.c8"].startswith("0.2595")
    assert values["ttft_p50_drop.c32"].startswith("0.2625")
    assert [u["claim"] for u in document["unproven"]] == list(CLIENTS["vllm-bench"].cannot_prove)
    assert document["advances_gate"] is False


@pytest.mark.parametrize(("duration", "side"), [(100.0, True), (100.000001, False)])
def test_a_hair_below_the_band_fails_and_at_its_end_it_does_not(duration: float, side: bool) -> None:
    document = judged(BASE, edited(GOOD, 8, duration=duration, output_throughput=TOKENS * 80 / duration))
    assert met(document)["throughput_gain.c8"] is side
    assert document["verdict"] == ("conditional" if side else "fail")


def test_a_missed_drop_fails_and_says_what_it_lacks() -> None:
    document = judged(BASE, edited(GOOD, 32, median_ttft_ms=26800, mean_ttft_ms=26800))
    assert document["verdict"] == "fail"
    assert met(document)["ttft_p50_drop.c32"] is False
    assert "ttft_p50_drop.c32" in document["summary"]["en"]


def test_a_gain_above_the_band_is_undecided_since_no_audit_stands_in_such_files() -> None:
    document = judged(BASE, edited(GOOD, 16, duration=135.0, output_throughput=TOKENS * 160 / 135))
    assert (document["verdict"], met(document)["throughput_gain.c16"]) == ("inconclusive", None)


@pytest.mark.parametrize(
    ("changed", "code", "verdict"),
    [
        ({"model_id": "another"}, "unequal_work", "invalid"),
        ({"total_input_tokens": 1}, "unequal_work", "invalid"),
        ({"total_output_tokens": TOKENS * 80 - 1, "output_throughput": (TOKENS * 80 - 1) / 100.0}, "unequal_work", "invalid"),
        ({"num_prompts": 88, "completed": 88}, "unequal_work", "invalid"),
        ({"completed": 79, "failed": 1}, "failed_requests", "inconclusive"),
        ({"max_concurrency": None}, "missing_figure", "inconclusive"),
        ({"request_rate": 2.0}, "missing_figure", "inconclusive"),
        ({"median_ttft_ms": "N/A"}, "not_available", "inconclusive"),
        ({"median_ttft_ms": float("nan")}, "not_a_number", "inconclusive"),
        ({"median_ttft_ms": 0.0}, "zero_samples", "inconclusive"),
        ({"completed": 0, "failed": 80, "total_output_tokens": 0}, "zero_samples", "inconclusive"),
        ({"duration": 0.0}, "zero_samples", "inconclusive"),
        ({"output_throughput": 90.0}, "rate_conflict", "inconclusive"),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_named_and_its_tier_is_not_answered(changed: dict[str, Any], code: str, verdict: str) -> None:
    document = judged(BASE, edited(GOOD, 8, **changed))
    assert code in codes(document)
    assert met(document)["ttft_p50_drop.c8"] is None
    assert met(document)["throughput_gain.c8"] is None
    if code != "unequal_work" or changed.get("num_prompts") is None:
        assert document["verdict"] in (verdict, "invalid")


@pytest.mark.parametrize(
    "changed",
    [{"endpoint_type": "openai-chat", "backend": "openai-chat"}, {"backend": "tgi"}, {"tokenizer_id": "another"}, {"backend": None}],
    ids=str,
)
def test_arms_that_were_measured_through_another_endpoint_backend_or_tokenizer_are_not_compared(changed: dict[str, Any]) -> None:
    document = judged(BASE, edited(GOOD, 8, **changed))
    assert codes(document) == {"unequal_client"}
    assert document["verdict"] == "inconclusive"
    assert met(document)["ttft_p50_drop.c8"] is None


def test_a_failed_request_of_the_baseline_is_the_rigs_and_invalid() -> None:
    document = judged(edited(BASE, 8, completed=79, failed=1), GOOD)
    assert document["verdict"] == "invalid"


def test_a_tier_that_an_arm_lacks_is_named() -> None:
    document = judged(BASE, {t: GOOD[t] for t in (8, 16)})
    assert (document["verdict"], codes(document)) == ("inconclusive", {"missing_tier"})


def test_a_tier_given_twice_is_not_chosen_from() -> None:
    again = files(GOOD, "candidate") + files({8: result(8, 7000, 99.0)}, "second")
    document = compare(PLAN, files(BASE, "baseline"), again)
    assert "duplicate_tier" in codes(document)
    assert (document["verdict"], met(document)["ttft_p50_drop.c8"]) == ("inconclusive", None)


def test_a_miss_at_one_tier_stays_a_fail_when_another_cannot_be_compared() -> None:
    document = judged(BASE, edited(edited(GOOD, 32, median_ttft_ms=30000), 8, model_id="another"))
    assert document["verdict"] == "fail"


def test_tiers_of_several_models_are_not_one_comparison() -> None:
    document = judged(edited(BASE, 16, model_id="another"), edited(GOOD, 16, model_id="another"))
    assert (document["verdict"], codes(document)) == ("inconclusive", {"several_models"})


def test_two_clients_at_one_tier_are_not_compared() -> None:
    fixture = (Path(__file__).parents[1] / "readers/fixtures/sglang-bench/good-plain.jsonl").read_text()
    other = json.dumps(json.loads(fixture) | {"max_concurrency": 8}).encode()
    new = [ResultFile("sglang.jsonl", other), *files({t: GOOD[t] for t in (16, 32)}, "candidate")]
    document = compare(PLAN, files(BASE, "baseline"), new)
    assert "mixed_tools" in codes(document)
    assert met(document)["ttft_p50_drop.c8"] is None
    assert {t for u in document["unproven"] for t in u["tools"]} == {"sglang-bench", "vllm-bench"}


def test_a_tier_that_only_the_files_bring_is_judged_and_can_fail() -> None:
    document = judged({**BASE, 4: result(4, 1000, 120.0)}, {**GOOD, 4: result(4, 990, 119.0)})
    assert (document["verdict"], met(document)["ttft_p50_drop.c4"]) == ("fail", False)


def test_an_arm_compared_with_a_copy_of_itself_is_no_comparison_whatever_the_copy_is_called() -> None:
    document = judged(BASE, BASE)
    assert (document["verdict"], codes(document)) == ("invalid", {"same_file"})
    assert set(met(document).values()) == {None}
    assert "Both arms are the same file: baseline-c8.json and candidate-c8.json hold the same bytes." in document["checks"][0]["reason"]["en"]
    assert "两个对照组是同一个文件" in document["checks"][0]["reason"]["zh-CN"]
    one = files(BASE, "one")
    assert compare(PLAN, one, one)["verdict"] == "invalid"
    assert compare(PLAN, one[:1], one[:1])["verdict"] == "invalid"  # though two tiers of the plan have no file at all


def test_one_tier_of_which_both_arms_are_one_file_is_invalid_and_a_limit_missed_elsewhere_stays_missed() -> None:
    document = judged(BASE, {**GOOD, 16: BASE[16]})
    assert (document["verdict"], met(document)["ttft_p50_drop.c16"], met(document)["ttft_p50_drop.c8"]) == ("invalid", None, True)
    assert judged(BASE, {**GOOD, 16: BASE[16], 8: result(8, 10170, 128.0)})["verdict"] == "fail"


@pytest.mark.parametrize("tier", [None, 8, 16])
def test_a_file_that_stands_twice_in_one_arm_is_no_comparison(tier: int | None) -> None:
    base, new = files(BASE, "baseline"), files(GOOD, "candidate")
    document = compare(PLAN, base, [*new, ResultFile("copy.json", new[0].data, tier=tier)])
    assert (document["verdict"], "same_file" in codes(document)) == ("invalid", True)
    said = next(p["message"] for p in document["problems"] if p["code"] == "same_file")
    assert "The candidate holds one file twice: candidate-c8.json and copy.json" in said["en"]
    assert "产品重复列出同一个文件" in said["zh-CN"]


def test_a_file_of_no_concurrency_that_is_stated_at_two_tiers_or_in_both_arms_is_no_comparison() -> None:
    bare = json.dumps({key: value for key, value in BASE[8].items() if key != "max_concurrency"}).encode()
    for base, new in ((8, 16), (None, None), (8, None), (8, 8)):
        document = compare(PLAN, [ResultFile("a.json", bare, tier=base)], [ResultFile("b.json", bare, tier=new)])
        assert (document["verdict"], "same_file" in codes(document)) == ("invalid", True)


def test_an_agreed_sla_is_held_against_the_candidate() -> None:
    plan = parse_plan({"g3": {"sla": {"ttft_p50": {8: "7 s"}}}})
    document = judged(BASE, GOOD, plan)
    assert (document["verdict"], met(document)["sla_ttft_p50.c8"]) == ("fail", False)


def test_a_rule_that_needs_several_pairs_is_undecided_on_one_and_says_so() -> None:
    order = ["baseline", "candidate", "candidate", "baseline"] * 2
    document = judged(BASE, GOOD, parse_plan({"decision": {"rule": "interval", "pairs": 4}, "arms": {"order": order}}))
    assert document["verdict"] == "inconclusive"
    assert "too few" in document["checks"][0]["reason"]["en"]


@pytest.mark.parametrize("data", [b"", b"not json", b"{}", b"[1, 2"])
def test_a_file_of_no_known_client_is_unreadable_with_its_name(data: bytes) -> None:
    with pytest.raises(Unreadable) as refused:
        compare(PLAN, files(BASE, "baseline"), [ResultFile("strange.bin", data)])
    assert "strange.bin" in refused.value.text.en
    assert "strange.bin" in refused.value.text.zh


def test_the_order_of_the_files_changes_nothing() -> None:
    there = compare(PLAN, files(BASE, "baseline"), files(GOOD, "candidate"))
    back = compare(PLAN, files(BASE, "baseline")[::-1], files(GOOD, "candidate")[::-1])
    assert [there[k] for k in ("verdict", "checks", "problems")] == [back[k] for k in ("verdict", "checks", "problems")]


WHOLE = judged(BASE, GOOD)
RIGHT = {c["id"]: c["value"] for c in WHOLE["checks"]}
EXTREME = [5e-324, 1e-39, 1e-20, 1e-9, 0.001, 10**6, 10**12, 10**30, 1e39, 1e308]
HOSTILE = [None, "N/A", float("nan"), float("inf"), -1, 0, "", [], {}, [[]], True, "x" * 300, "\u202e", *EXTREME]


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(GOOD[8])), st.sampled_from(HOSTILE), st.sampled_from([8, 16, 32]), st.booleans())
def test_no_hostile_field_of_any_file_makes_a_limit_look_better_met(field: str, value: Any, tier: int, of_candidate: bool) -> None:
    base, new = (BASE, edited(GOOD, tier, **{field: value})) if of_candidate else (edited(BASE, tier, **{field: value}), GOOD)
    try:
        document = judged(base, new)
    except Unreadable:
        return
    canonical_bytes(document)
    assert document["verdict"] in ("fail", "invalid", "inconclusive", "conditional")
    for check in document["checks"]:
        if check["limit_met"]:
            assert check["value"] == RIGHT[check["id"]]  # what is still met is met by the very same figures


@pytest.mark.parametrize("of_candidate", [True, False])
@pytest.mark.parametrize("value", EXTREME)
def test_a_ttft_that_no_engine_can_have_is_a_problem_and_no_figure(value: float, of_candidate: bool) -> None:
    told = {"median_ttft_ms": value}
    document = judged(BASE, edited(GOOD, 8, **told)) if of_candidate else judged(edited(BASE, 8, **told), GOOD)
    assert codes(document) & {"impossible_value", "statistics_conflict", "zero_samples", "not_a_number"}
    assert met(document)["ttft_p50_drop.c8"] is None


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"p99_ttft_ms": 7000}, "statistics_conflict"),
        ({"mean_ttft_ms": 3500}, "statistics_conflict"),
        ({"mean_ttft_ms": 753000.1}, "statistics_conflict"),
        ({"median_ttft_ms": 101010, "mean_ttft_ms": 101010, "p99_ttft_ms": 101010}, "statistics_conflict"),
        ({"p99_ttft_ms": 7530, "mean_ttft_ms": 3765}, None),
    ],
)
def test_statistics_that_contradict_each_other_are_no_figures(changed: dict[str, Any], code: str | None) -> None:
    assert codes(judged(BASE, edited(GOOD, 8, **changed))) - {"impossible_flight"} == ({code} if code else set())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(GOOD[8])), st.sampled_from([8, 16, 32]), st.booleans())
def test_a_field_that_is_taken_away_never_makes_a_miss_good(field: str, tier: int, of_candidate: bool) -> None:
    missed = edited(GOOD, tier, median_ttft_ms=BASE[tier]["median_ttft_ms"], mean_ttft_ms=BASE[tier]["median_ttft_ms"])
    base = copy.deepcopy(BASE)
    (missed if of_candidate else base)[tier].pop(field)
    try:
        document = judged(base, missed)
    except Unreadable:
        return
    assert document["verdict"] in ("fail", "invalid", "inconclusive")
