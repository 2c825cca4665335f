"""Why: every verdict in one sentence a signatory understands, in both languages, with value, limit, margin and what would change it."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from app.reports.checks import margin_text
from gates import remedies
from gates.judge import judge
from gates.model import Because, CheckResult, Limit, Severity, Verdict
from gates.text import Text
from gates.why import figure, why
from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, soak_plan, told_again
from tests.unit.gates.test_soak_clock import reboot
from tests.unit.rack.simulate import bundle_of, demo_plan
from tests.unit.rack.simulate import evidence as g1_evidence

D = Decimal
GATE = Text("Main gate", "主门禁")


def check(verdict: Verdict, value: str | None = None, limit: Limit | None = None, margin: str | None = None, **more) -> CheckResult:
    return CheckResult(
        "g3.x",
        Text("TTFT p50 drop at c8", "c8 TTFT p50 降幅"),
        verdict,
        Text("It was measured. Twice.", "已实测。两次。"),
        value=None if value is None else D(value),
        limit=limit or Limit(">=", low=D("0.25")),
        margin=None if margin is None else D(margin),
        **{"quantity": "ttft_p50_drop", **more},
    )


def one_sentence(text: Text) -> None:
    for said, stop in ((text.en, "."), (text.zh, "。")):
        assert said.endswith(stop)
        assert not re.search(r"[.。] ?[A-Z\u4e00-\u9fff]", said[:-1]), said
        assert "{" not in said


def test_a_pass_names_what_was_nearest_to_its_limit_and_what_would_make_it_a_fail():
    near = check(Verdict.PASS, "0.2596", margin="0.0096")
    far = check(Verdict.PASS, "0.40", margin="0.15")
    told = why(GATE, Verdict.PASS, [far, near, check(Verdict.PASS, "0", Limit("<=", high=D(0)), "0")])
    one_sentence(told)
    assert "all 3 blocking checks" in told.en
    assert "25.96 % (limit ≥ 25.00 %, margin +0.96 pp); less than 25.00 % would make it a fail" in told.en
    assert "25.96 %（限值 ≥ 25.00 %，余量 +0.96 个百分点）；低于 25.00 % 即为不通过" in told.zh


def test_a_fail_says_by_how_much_and_what_alone_would_change_it():
    told = why(GATE, Verdict.FAIL, [check(Verdict.FAIL, "0.2499", margin="-0.0001"), check(Verdict.FAIL, "0.1", margin="-0.15")])
    one_sentence(told)
    assert "value 24.99 %, limit ≥ 25.00 %, margin -0.01 pp: only a new attempt that meets the limit would change it (1 more)" in told.en
    assert "实测 24.99 %，限值 ≥ 25.00 %，余量 -0.01 个百分点" in told.zh


@pytest.mark.parametrize("because", list(Because))
def test_a_conditional_says_why_and_what_would_make_it_a_pass(because: Because):
    told = why(GATE, Verdict.CONDITIONAL, [check(Verdict.CONDITIONAL, "0.26", margin="0.01", because=because)])
    one_sentence(told)
    assert "approval of both parties" in told.en
    assert "it would be a pass" in told.en or "would make it a pass" in told.en
    assert "26.00 %" in told.zh
    assert "则为通过" in told.zh


def test_an_inconclusive_says_which_file_or_how_much_more():
    lost = check(Verdict.INCONCLUSIVE, change=remedies.whole(("evidence/run-1/gpu01/records.jsonl", "a", "b")))
    told = why(GATE, Verdict.INCONCLUSIVE, [lost])
    one_sentence(told)
    assert "evidence/run-1/gpu01/records.jsonl, a (+1)" in told.en
    hours = check(Verdict.INCONCLUSIVE, change=Text("5 h more would tell.", "再有 5 h 方可判定。"))
    told = why(GATE, Verdict.INCONCLUSIVE, [hours, lost])
    assert "5 h more would tell (1 more)." in told.en
    more = {"reason": {"en": "4 more run pairs can decide it.", "zh-CN": "补充 4 个轮次对可作出判定。"}}
    assert "4 more run pairs can decide it" in why(GATE, Verdict.INCONCLUSIVE, [lost], more).en


def test_an_invalid_says_nothing_of_the_product_and_what_must_be_mended():
    told = why(GATE, Verdict.INVALID, [check(Verdict.INVALID, change=remedies.mended(("evidence/run-1/gpu01/coldness.jsonl",)))])
    one_sentence(told)
    assert "nothing is said about the product" in told.en
    assert "once this is mended at the rig (evidence: evidence/run-1/gpu01/coldness.jsonl), a new attempt can be judged" in told.en


def test_without_any_check_it_still_is_a_sentence():
    for verdict in Verdict:
        one_sentence(why(GATE, verdict, []))


@pytest.mark.parametrize(
    ("make", "verdict", "says"),
    [
        (lambda: bundle_of(g1_evidence(), demo_plan()), "pass", "nearest to its limit"),
        (lambda: bundle_of(g1_evidence({"used-drive": 1}), demo_plan()), "fail", "limit ≤ 200 h"),
        (lambda: bundle_of(g1_evidence({"na-fields": 1}), demo_plan()), "inconclusive", "evidence/survey/gpu01/amd-smi-static.out"),
        (lambda: g2_evidence().bundle(), "pass", "nearest to its limit"),
        (lambda: g2_evidence(Truth(baseline_runs=(1.0, 1.3, 1.0))).bundle(), "fail", "margin -"),
        (lambda: g3_evidence().bundle(), "pass", "would make it a fail"),
        (lambda: g3_evidence(Truth(drop=0.1)).bundle(), "fail", "limit ≥ 25.00 %"),
        (lambda: g4_evidence(plan=soak_plan()).bundle(), "pass", "nearest to its limit"),
        (lambda: g4_evidence(plan=soak_plan(), hours=20).bundle(), "inconclusive", "h more in the same boot"),
        (lambda: g4_evidence(Truth(fails=lambda n: n % 50 == 0), soak_plan()).bundle(), "fail", "limit ≤ 0.10 %"),
    ],
    ids=["G1-pass", "G1-used-drive", "G1-unread", "G2-pass", "G2-fail", "G3-pass", "G3-fail", "G4-pass", "G4-short", "G4-errors"],
)
def test_real_verdicts_explain_themselves(make, verdict: str, says: str):
    document = judge(make())
    told = Text.parse(document["summary"])
    assert document["verdict"] == verdict, told.en
    assert says in told.en
    assert told.zh.endswith("。")
    assert not re.search(r"[\u4e00-\u9fff] [\u4e00-\u9fff]|[\u4e00-\u9fff][,:;]|[\u4e00-\u9fff][A-Za-z0-9]{2}|限值的是[!-~]", told.zh), told.zh


def test_a_soak_that_a_reboot_broke_says_whose_approval_would_change_it():
    evidence = g4_evidence(plan=soak_plan(), hours=30)
    reboot(5)(evidence)
    told_again(evidence)
    told = judge(evidence.bundle())["summary"]
    assert "both parties approve" in told["en"]
    assert "双方确认" in told["zh-CN"]


def test_windows_with_too_few_requests_say_how_many_are_missing():
    document = judge(g4_evidence(plan=soak_plan({"g4": {"window_requests_min": 1000}})).bundle())
    found = next(c for c in document["checks"] if c["id"] == "g4.drift_ttft_p50")
    assert "more good requests, spread over" in found["change"]["en"]
    assert "more good requests" in document["summary"]["en"]


@pytest.mark.parametrize(
    ("value", "unit", "quantity", "against", "shown"),
    [
        ("0.2599", "1", "ttft_p50_drop", "0.25", "25.99 %"),
        ("3", "1", "failures", "0", "3"),
        ("71.5", "h", "duration", "72", "71.5 h"),
        ("0.00099", "1", "error_rate", "0.001", "0.099 %"),
        ("1", "1", "leak", "0.2", "100.00 %"),
        ("1", "1", "leak_fds", "1", "100.00 %"),
        ("3", "1", "lossless priority", "3", "3"),
        ("1.05", "1", "ttft_p99_ratio", "1.05", "1.05"),
        ("1.05001", "1", "ttft_p99_ratio", "1.05", "1.05001"),
    ],
)
def test_figures_read_as_people_read_them(value: str, unit: str, quantity: str, against: str, shown: str):
    assert figure(D(value), unit, quantity, D(against)) == shown


def test_a_margin_is_told_as_in_the_table_of_the_report():
    for quantity, value, limit, margin in (
        ("ttft_p50_drop", "0.2596", "0.25", "0.0096"),
        ("ttft_p50_drop", "0.24999", "0.25", "-0.00001"),
        ("photos", "3", "2", "1"),
    ):
        found = check(Verdict.FAIL, value, Limit(">=", low=D(limit)), margin, quantity=quantity)
        told = why(GATE, Verdict.FAIL, [found])
        assert f"margin {margin_text(margin, '1', quantity)}:" in told.en
        assert f"余量 {margin_text(margin, '1', quantity, 'zh-CN')}：" in told.zh


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.CONDITIONAL])
def test_a_pass_says_how_many_advisory_checks_did_not_hold(verdict: Verdict):
    decides = check(verdict, "0.26", margin="0.01", because=Because.FRAGILE if verdict is Verdict.CONDITIONAL else None)
    beside = [check(v, severity=Severity.ADVISORY) for v in (Verdict.FAIL, Verdict.PASS, Verdict.INCONCLUSIVE)]
    told = why(GATE, verdict, [decides, *beside])
    one_sentence(told)
    assert told.en.endswith("; of the advisory checks, which decide nothing, 1 of 3 did not hold.")
    assert told.zh.endswith("；3 个参考项中有 1 个未达标，不影响判定。")
    assert "advisory" not in why(GATE, verdict, [decides, *beside[1:]]).en
