"""What holds for every gate: no harm to evidence helps, verdicts follow what was measured, and order means nothing."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gates.g3.limits import throughput_gain_of, ttft_drop_of
from gates.judge import ORDER, judge, roll_up
from gates.model import CheckResult, Severity, Verdict
from gates.plan import parse_plan
from gates.rules.standing import Standing
from gates.text import Text
from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, small_plan
from tests.bundles.evidence import Evidence, dumped
from tests.unit.gates.damage import FACTORS, GOOD, HOWS, damaged, verdict
from tests.unit.gates.test_properties import TINY
from tests.unit.rack.simulate import demo_plan
from tests.unit.rack.simulate import evidence as rack_evidence

BOUNDED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
RANK = {Verdict.FAIL: 0, Verdict.INCONCLUSIVE: 1, Verdict.CONDITIONAL: 2, Verdict.PASS: 3}
NOT_GOOD = ("fail", "inconclusive", "invalid", "unreadable")


def arrival(**faults: float) -> Evidence:
    named = {name.replace("_", "-"): strength for name, strength in faults.items()}
    return Evidence("G1", demo_plan(), dict(rack_evidence(named)), simulated=True)


@pytest.fixture(scope="module")
def failing() -> dict[str, list[Evidence]]:
    """Give attempts at every gate that fail, each for another reason."""
    plan = small_plan(TINY)
    return {
        "G1": [arrival(media_errors=1), arrival(used_drive=1), arrival(narrow_link=1), arrival(swapped_drive=1), arrival(link_partner_errors=3)],
        "G2": [g2_evidence(Truth(baseline_runs=(1.0, 1.0, 1.3)), plan)],
        "G3": [g3_evidence(Truth(drop=0.20), plan), g3_evidence(Truth(candidate_decode=1.5), plan)],
        "G4": [g4_evidence(Truth(fails=lambda n: n % 100 == 0)), g4_evidence(Truth(drift=lambda x: 1 + 0.4 * x))],
    }


def test_the_attempts_that_are_harmed_here_do_fail(failing):
    assert {verdict(e) for rows in failing.values() for e in rows} == {"fail"}


@pytest.mark.parametrize("gate", ["G1", "G2", "G3", "G4"])
@given(data=st.data(), how=st.sampled_from(HOWS), where=st.floats(0, 0.999), factor=st.sampled_from(FACTORS), up=st.booleans())
@BOUNDED
def test_no_harm_to_evidence_turns_a_fail_into_more_than_inconclusive_or_invalid(failing, gate, data, how, where, factor, up):
    evidence = data.draw(st.sampled_from(failing[gate]))
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD


@pytest.mark.parametrize("factor", FACTORS)
def test_memory_in_another_unit_hides_no_leak(factor):
    leaking = g4_evidence(Truth(leak_bytes=2e9))

    def swap(rows):
        for row in rows:
            row["engine"]["rss_bytes"] //= factor

    assert verdict(leaking) == "fail"
    assert verdict(leaking.lines("soak", "telemetry.jsonl", swap)) in NOT_GOOD


def test_every_file_of_an_arrival_is_needed_or_only_informs():
    """Whatever is removed from G1 is missed, but for what no check reads: messages on standard error, photos, and evidence that only informs."""
    whole, plan = arrival(), demo_plan()
    assert verdict(whole) == "pass"
    for path in sorted(whole.files):
        name = path.rsplit("/", 1)[-1]
        if name.endswith((".err", ".jpg")):
            continue
        kept = whole.files.pop(path)
        assert verdict(whole) not in GOOD, path
        whole.files[path] = kept
    assert plan.evidence.required


def test_a_command_that_stands_twice_in_a_pack_or_a_drive_that_is_told_twice_is_no_pass():
    whole = arrival()
    path = "evidence/survey/array01/commands.json"
    rows = json.loads(whole.files[path])
    for row in rows:
        doubled = Evidence("G1", whole.plan, {**whole.files, path: json.dumps([*rows, row]).encode()}, simulated=True)
        assert verdict(doubled) not in GOOD


@pytest.fixture(scope="module")
def told() -> list[tuple[Evidence, object]]:
    """Give attempts with what is said of them."""
    whole = [arrival(), arrival(used_drive=1), g3_evidence(Truth(), small_plan(TINY))]
    return [(evidence, answers(evidence)) for evidence in whole]


@given(order=st.randoms(use_true_random=False))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_evidence_does_not_matter(told, order):
    for evidence, said in told:
        mixed = Evidence(evidence.gate, evidence.plan, dict(shuffled(list(evidence.files.items()), order)), simulated=evidence.simulated)
        inputs = json.loads(mixed.files["evidence/inputs.json"])
        inputs["packing_list"] = shuffled(inputs["packing_list"], order)
        mixed.files["evidence/inputs.json"] = dumped(inputs)
        for path in [p for p in mixed.files if p.endswith("/commands.json")]:
            mixed.files[path] = json.dumps(shuffled(json.loads(mixed.files[path]), order)).encode()
        assert answers(mixed) == said


def shuffled(rows: list, order: random.Random) -> list:
    rows = list(rows)
    order.shuffle(rows)
    return rows


def answers(evidence: Evidence) -> tuple[str, dict[str, tuple[str, str | None]]]:
    document = judge(evidence.bundle())
    return document["verdict"], {c["id"]: (c["verdict"], c["value"]) for c in document["checks"]}


def plan_of(rule: str):
    return parse_plan({"decision": {"rule": rule, "pairs": 4}, "arms": {"order": ["baseline", "candidate", "candidate", "baseline"] * 2}})


PLANS = {rule: plan_of(rule) for rule in ("simple", "interval", "guarded")}
RUNS = st.lists(st.integers(900, 1100), min_size=8, max_size=8)


@pytest.mark.parametrize("rule", sorted(PLANS))
@given(runs=RUNS, base=st.integers(100, 1000), steps=st.lists(st.integers(1, 999), min_size=2, max_size=5, unique=True))
@BOUNDED
def test_a_longer_ttft_is_never_judged_better(rule, runs, base, steps):
    pairs = [(Fraction(a * base), Fraction(b * base)) for a, b in zip(runs[::2], runs[1::2], strict=True)]
    ranks = []
    for step in sorted(steps):
        scaled = tuple((a, b * Fraction(step, 1000)) for a, b in pairs)
        ranks.append(RANK[ttft_drop_of(PLANS[rule], 8, scaled, ()).verdict])
    assert ranks == sorted(ranks, reverse=True)


@pytest.mark.parametrize("rule", sorted(PLANS))
@given(runs=RUNS, steps=st.lists(st.integers(800, 1399), min_size=2, max_size=5, unique=True))
@BOUNDED
def test_more_throughput_is_never_judged_worse_up_to_the_top_of_the_band(rule, runs, steps):
    noise = [Fraction(a, b) for a, b in zip(runs[::2], runs[1::2], strict=True)]
    mean = Fraction(1)
    for ratio in noise:
        mean *= ratio
    ranks = []
    for step in sorted(steps):
        gain = Fraction(step, 1000)
        pairs = tuple((Fraction(1000), 1000 * gain * ratio) for ratio in noise)
        check = throughput_gain_of(PLANS[rule], 8, pairs, Standing(complete=True, claims=()), ())
        if check.value is not None and check.value <= check.limit.high:
            ranks.append(RANK[check.verdict])
    assert ranks == sorted(ranks)


def test_a_whole_gate_follows_the_throughput_of_its_candidate_up_to_the_band():
    plan = small_plan({**TINY, "g3": {**TINY["g3"], "ttft_p50_drop_min": {"tiers": [2], "limit": "0.01"}}})
    seen = [verdict(g3_evidence(Truth(noise=0.0, candidate_decode=d), plan)) for d in (3.0, 2.0, 1.4, 1.0)]
    ranks = [("fail", "inconclusive", "conditional", "pass").index(v) for v in seen]
    assert ranks == sorted(ranks)
    assert (seen[0], seen[-1]) == ("fail", "pass")


def test_the_roll_up_is_the_documented_order_for_every_mixture():
    options = list(itertools.product(Verdict, Severity))
    checks = {o: CheckResult("x", Text("x", "x"), o[0], Text("x", "x"), severity=o[1]) for o in options}
    for size in (1, 2, 3):
        for mixture in itertools.combinations_with_replacement(options, size):
            blocking = {v for v, severity in mixture if severity is Severity.BLOCKING}
            wanted = next((v for v in ("fail", "invalid", "inconclusive", "conditional", "pass") if v in blocking), "inconclusive")
            for order in itertools.permutations(mixture):
                assert roll_up(checks[o] for o in order) == wanted
    assert [str(v) for v in ORDER] == ["fail", "invalid", "inconclusive", "conditional", "pass"]
