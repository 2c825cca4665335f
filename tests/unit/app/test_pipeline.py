"""The order of the gates, by examples and by random histories that only the rules themselves drive."""

from __future__ import annotations

import re
from dataclasses import replace
from string import Formatter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kit.words import word
from gates import pipeline_text
from gates.model import Verdict
from gates.pipeline import decided_by, engagement_state, first_open, gate_state, may_extend, may_retry, may_start, next_action
from gates.pipeline_facts import GATES, AttemptFacts, Decisions, Facts, GateState, Policy, State
from gates.text import Text
from gates.transitions import Event, IllegalTransition, RunStatus, apply

BOTH = Decisions(approved=frozenset({"vendor", "customer"}))
POLICY = Policy({"G1": 3, "G2": 3, "G3": 2, "G4": 2}, {"G1": "recorded", "G2": "recorded", "G3": "required", "G4": "required"})
ON_FAIL = {"G1": "rectify", "G2": "rectify", "G3": "stop", "G4": "stop"}


def tried(gate: str, verdict: Verdict | None = Verdict.PASS, number: int = 1, **more) -> AttemptFacts:
    return AttemptFacts(id=f"{gate}-{number}", gate=gate, number=number, verdict=verdict, on_fail=ON_FAIL[gate], **more)


def facts(*attempts: AttemptFacts, **more) -> Facts:
    return Facts(**{"policy": POLICY, "sealed": True, "ever_sealed": True, "attempts": attempts, **more})


def code(f: Facts, gate: str, rehearsal: bool = False) -> str | None:
    refusal = may_start(f, gate, rehearsal)
    return refusal.code if refusal else None


def test_a_fresh_sealed_engagement_opens_g1_and_nothing_else() -> None:
    assert [code(facts(), gate) for gate in GATES] == [None, "earlier_gate_open", "earlier_gate_open", "earlier_gate_open"]
    assert [gate_state(facts(), gate) for gate in GATES] == [GateState.READY, *[GateState.LOCKED] * 3]


def test_before_the_plan_is_sealed_only_rehearsals_may_start() -> None:
    f = facts(sealed=False, ever_sealed=False)
    assert code(f, "G1") == "plan_not_sealed"
    assert code(f, "G3", rehearsal=True) is None
    assert next_action(f).kind == "seal"


def test_a_changed_plan_must_be_sealed_again_before_the_next_gate() -> None:
    f = facts(tried("G1"), sealed=False)
    assert code(f, "G2") == "plan_not_sealed"
    assert engagement_state(f)[0] is State.ACTIVE


def test_only_one_attempt_runs_at_a_time_rehearsals_included() -> None:
    running = facts(tried("G1", None, status=RunStatus.WAITING))
    assert code(running, "G1") == code(running, "G2", rehearsal=True) == "attempt_active"
    assert next_action(running).kind == "form"
    rehearsing = facts(tried("G1", None, status=RunStatus.RUNNING, rehearsal=True))
    assert code(rehearsing, "G1") == "attempt_active"
    assert gate_state(rehearsing, "G1") is GateState.READY


def test_a_fail_where_the_plan_says_rectify_blocks_later_gates_until_a_new_attempt_passes() -> None:
    failed = facts(tried("G1", Verdict.FAIL))
    assert code(failed, "G2") == "rectify_first"
    assert code(failed, "G1") is None
    assert gate_state(failed, "G1") is GateState.RECTIFY
    mended = facts(tried("G1", Verdict.FAIL), tried("G1", number=2))
    assert code(mended, "G2") is None
    assert code(mended, "G1") == "already_passed"


def test_a_fail_of_g3_stops_everything_by_every_route_until_both_parties_lift_it() -> None:
    failed = tried("G3", Verdict.FAIL)
    f = facts(tried("G1"), tried("G2"), failed)
    for gate in GATES:
        assert code(f, gate) == code(f, gate, rehearsal=True) == "stopped"
    assert engagement_state(f)[0] is State.STOPPED
    assert next_action(f).kind == "lift"
    for one in ("vendor", "customer"):
        half = replace(failed, lift=Decisions(approved=frozenset({one})))
        assert code(facts(tried("G1"), tried("G2"), half), "G3") == "stopped"
    lifted = facts(tried("G1"), tried("G2"), replace(failed, lift=BOTH))
    assert code(lifted, "G3") is None
    assert code(lifted, "G4") == "rectify_first"


def test_a_later_plan_that_says_rectify_does_not_undo_a_stop() -> None:
    assert code(facts(tried("G1"), replace(tried("G2", Verdict.FAIL), on_fail="stop")), "G2") == "stopped"


def test_a_rehearsal_that_fails_stops_nothing_and_uses_nothing_up() -> None:
    f = facts(tried("G1"), tried("G2"), replace(tried("G3", Verdict.FAIL), rehearsal=True))
    assert code(f, "G3") is None
    assert f.left("G3") == 2


def test_a_conditional_waits_for_the_consent_of_both_parties() -> None:
    half = Decisions(approved=frozenset({"vendor"}))
    f = facts(tried("G1", Verdict.CONDITIONAL, consent=half))
    assert code(f, "G1") == code(f, "G2") == "consent_missing"
    assert "the customer" in may_start(f, "G2").text.en
    assert "the vendor" not in may_start(f, "G2").text.en
    assert gate_state(f, "G1") is GateState.CONSENT
    assert code(facts(tried("G1", Verdict.CONDITIONAL, consent=BOTH)), "G2") is None


def test_a_rejected_conditional_is_tried_again_and_does_not_pass_even_when_others_of_the_party_approve() -> None:
    split = Decisions(approved=frozenset({"vendor", "customer"}), rejected=frozenset({"customer"}))
    f = facts(tried("G1", Verdict.CONDITIONAL, consent=split))
    assert code(f, "G1") is None
    assert code(f, "G2") == "earlier_gate_open"


def test_the_next_gate_waits_for_signatures_where_the_plan_requires_them() -> None:
    before = (tried("G1"), tried("G2"))
    unsigned = facts(*before, tried("G3"))
    assert code(unsigned, "G4") == "sign_off_missing"
    assert gate_state(unsigned, "G3") is GateState.SIGN_OFF
    assert next_action(unsigned).kind == "sign_off"
    assert code(facts(*before, tried("G3", sign_off=BOTH)), "G4") is None


def test_all_four_gates_passed_and_signed_concludes_and_then_nothing_starts() -> None:
    done = facts(tried("G1"), tried("G2"), tried("G3", sign_off=BOTH), tried("G4", sign_off=BOTH))
    assert engagement_state(done)[0] is State.CONCLUDED
    assert {code(done, gate, r) for gate in GATES for r in (True, False)} == {"concluded"}
    assert next_action(done).kind == "none"


def test_attempts_used_up_without_a_pass_is_not_concluded_and_only_to_be_closed() -> None:
    f = facts(*(tried("G1", Verdict.INCONCLUSIVE, number=n) for n in (1, 2, 3)))
    assert engagement_state(f)[0] is State.NOT_CONCLUDED
    assert code(f, "G1") == code(f, "G1", rehearsal=True) == "not_concluded"
    assert next_action(f).kind == "close"
    assert engagement_state(replace(f, closed=True))[0] is State.CLOSED


def test_an_approved_rig_cause_gives_an_attempt_back_but_never_that_of_a_judged_product() -> None:
    assert facts(tried("G3", Verdict.INVALID, rig_cause=BOTH)).left("G3") == 2
    assert facts(tried("G3", None, status=RunStatus.CANCELED, rig_cause=BOTH)).left("G3") == 2
    assert facts(tried("G3", Verdict.FAIL, rig_cause=BOTH)).left("G3") == 1
    assert facts(tried("G3", Verdict.INVALID, rig_cause=Decisions(approved=frozenset({"vendor"})))).left("G3") == 1


def test_an_attempt_that_ended_before_its_first_measured_request_does_not_count() -> None:
    assert facts(tried("G3", None, status=RunStatus.CANCELED, counted=False)).left("G3") == 2


def test_an_error_can_be_retried_until_a_newer_attempt_exists_and_a_verdict_never() -> None:
    broken = tried("G1", None, status=RunStatus.ERROR)
    assert may_retry(facts(broken), "G1-1") is None
    assert next_action(facts(broken)).kind == "retry"
    assert may_retry(facts(broken, tried("G1", None, number=2, status=RunStatus.CANCELED)), "G1-1").code == "newer_attempt"
    assert may_retry(facts(tried("G1", Verdict.FAIL)), "G1-1").code == "judged"
    stopped = facts(tried("G3", Verdict.FAIL), tried("G1", None, status=RunStatus.ERROR))
    assert may_retry(stopped, "G1-1").code == "stopped"


def test_nothing_is_added_to_an_attempt_once_both_parties_sealed_another_plan() -> None:
    broken = tried("G1", None, status=RunStatus.ERROR, replaced=True)
    assert may_retry(facts(broken), "G1-1").code == "plan_replaced"
    assert (code(facts(broken), "G1"), next_action(facts(broken)).kind) == (None, "start")
    assert may_retry(facts(replace(broken, rehearsal=True)), "G1-1") is None
    passed = [tried("G1"), tried("G2")]
    doubtful = tried("G3", Verdict.INCONCLUSIVE, may_extend_by=2, replaced=True)
    assert may_extend(facts(*passed, doubtful), "G3-1").code == "plan_replaced"
    assert (code(facts(*passed, doubtful), "G3"), next_action(facts(*passed, doubtful)).kind) == (None, "start")
    used_up = [replace(doubtful, number=n) for n in (1, 2)]
    assert engagement_state(facts(*passed, *used_up))[0] is State.NOT_CONCLUDED
    judged = tried("G1", status=RunStatus.ERROR, replaced=True)  # only its report could not be written
    assert may_retry(facts(judged), "G1-1") is None


@pytest.mark.parametrize("status", [s for s in RunStatus if s is not RunStatus.ERROR])
def test_who_retries_what_is_not_in_error_reads_its_run_status_in_the_words_of_the_pages(status: RunStatus) -> None:
    refused = may_retry(facts(tried("G1", None, status=status)), "G1-1")
    assert refused.code == "not_in_error"
    assert f"运行状态为“{word('status', status, 'zh_CN')}”" in refused.text.zh
    assert f"“{word('status', status, 'en').lower()}”" in refused.text.en


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize("event", Event)
def test_a_move_that_is_not_allowed_is_refused_in_the_words_of_the_pages(status: RunStatus, event: Event) -> None:
    answer = apply(status, event)
    if isinstance(answer, IllegalTransition):
        assert f"运行状态为“{word('status', status, 'zh_CN')}”" in answer.text.zh
        assert not re.search("[A-Za-z_]", answer.text.zh)


def test_a_judged_attempt_whose_report_failed_may_finish_its_paperwork_even_when_the_engagement_is_stopped() -> None:
    f = facts(tried("G1"), tried("G2"), tried("G3", Verdict.FAIL, status=RunStatus.ERROR))
    assert engagement_state(f)[0] is State.STOPPED
    assert may_retry(f, "G3-1") is None
    assert next_action(facts(tried("G1", status=RunStatus.ERROR))).kind == "retry"


def test_a_new_attempt_after_an_inconclusive_one_says_that_it_counts() -> None:
    action = next_action(facts(tried("G1", Verdict.INCONCLUSIVE)))
    assert (action.kind, action.gate) == ("start", "G1")
    assert "counts as attempt 2 of 3" in action.reason.en


def undecided(number: int = 1, **more) -> AttemptFacts:
    return tried("G3", Verdict.INCONCLUSIVE, number, may_extend_by=2, **more)


def test_an_inconclusive_g3_is_extended_and_not_started_afresh_even_when_no_attempt_is_left() -> None:
    for tries in ((undecided(),), (tried("G3", Verdict.INVALID), undecided(2))):
        f = facts(tried("G1"), tried("G2"), *tries)
        action = next_action(f)
        assert (code(f, "G3"), gate_state(f, "G3"), engagement_state(f)[0]) == ("extend_first", GateState.EXTEND, State.ACTIVE)
        assert (action.kind, action.attempt_id) == ("extend", tries[-1].id)
        assert may_extend(f, tries[-1].id) is None
        assert f.used("G3") == len(tries)
        assert code(f, "G3", rehearsal=True) is None


def test_an_extension_uses_up_no_attempt_and_only_after_it_a_new_one_may_start() -> None:
    going = facts(tried("G1"), tried("G2"), undecided(extended=True, status=RunStatus.RUNNING))
    assert (code(going, "G3"), going.used("G3")) == ("attempt_active", 1)
    again = facts(tried("G1"), tried("G2"), undecided(extended=True))
    assert code(again, "G3") is None
    assert (next_action(again).kind, again.left("G3")) == ("start", 1)
    assert may_extend(again, "G3-1").code == "extended_already"
    used = facts(tried("G1"), tried("G2"), undecided(extended=True), undecided(2, extended=True))
    assert engagement_state(used)[0] is State.NOT_CONCLUDED


def test_an_extension_in_error_is_retried_or_canceled_before_anything_else() -> None:
    broken = tried("G3", None, status=RunStatus.ERROR, may_extend_by=2, extended=True)
    f = facts(tried("G1"), tried("G2"), broken)
    assert code(f, "G3") == "extension_open"
    assert next_action(f).kind == "retry"
    given_up = facts(tried("G1"), tried("G2"), undecided(extended=True, status=RunStatus.CANCELED))
    assert (code(given_up, "G3"), next_action(given_up).kind) == (None, "start")


def test_what_may_not_be_extended_is_refused_with_the_reason() -> None:
    before = (tried("G1"), tried("G2"))

    def why(attempt: AttemptFacts, *others: AttemptFacts, **more) -> str:
        return may_extend(facts(*before, attempt, *others, **more), attempt.id).code

    assert why(tried("G3")) == why(tried("G3", Verdict.FAIL)) == why(tried("G3", None)) == "not_inconclusive"
    assert why(tried("G3", Verdict.INCONCLUSIVE)) == "not_by_pairs"
    assert why(undecided(rehearsal=True)) == why(tried("G4", Verdict.INCONCLUSIVE, may_extend_by=2)) == "only_g3"
    assert why(undecided(rig_cause=BOTH)) == "rig_cause_agreed"
    assert why(undecided(status=RunStatus.ERROR)) == "report_first"
    assert why(undecided(), tried("G3", None, 2, status=RunStatus.CANCELED, counted=False)) == "newer_attempt"
    assert why(undecided(), replace(tried("G1", None, 9), rehearsal=True, status=RunStatus.RUNNING)) == "attempt_active"
    assert why(undecided(), closed=True) == "closed"
    assert why(undecided(), sealed=False) == "plan_not_sealed"
    stopped = facts(*before, tried("G2", Verdict.FAIL, 2), undecided())
    assert may_extend(stopped, "G3-1") is None  # G2 says rectify; a stop is another thing
    assert may_extend(facts(*before, replace(tried("G2", Verdict.FAIL, 2), on_fail="stop"), undecided()), "G3-1").code == "stopped"


@pytest.mark.parametrize("name", [n for n in vars(pipeline_text) if n.isupper()])
def test_both_languages_of_every_sentence_have_the_same_placeholders(name: str) -> None:
    value = getattr(pipeline_text, name)
    for text in value.values() if isinstance(value, dict) else [value]:
        fields = [{f for _, f, _, _ in Formatter().parse(half) if f} for half in (text.en, text.zh)]
        assert fields[0] == fields[1]
        assert isinstance(text, Text)
        assert text.zh != text.en


ENDS = st.sampled_from(
    [
        {"verdict": Verdict.PASS},
        {"verdict": Verdict.FAIL},
        {"verdict": Verdict.INVALID},
        {"verdict": Verdict.INCONCLUSIVE},
        {"verdict": Verdict.CONDITIONAL},
        {"verdict": Verdict.CONDITIONAL, "consent": BOTH},
        {"verdict": Verdict.CONDITIONAL, "consent": Decisions(rejected=frozenset({"vendor"}))},
        {"verdict": Verdict.PASS, "sign_off": BOTH},
        {"verdict": Verdict.FAIL, "lift": BOTH},
        {"verdict": None, "status": RunStatus.CANCELED, "counted": False},
        {"verdict": None, "status": RunStatus.ERROR},
        {"verdict": Verdict.INVALID, "status": RunStatus.ERROR},
        {"verdict": None, "status": RunStatus.LOST_CONTACT},
        {"verdict": Verdict.INVALID, "rig_cause": BOTH},
        {"verdict": Verdict.INCONCLUSIVE, "may_extend_by": 2},
        {"verdict": Verdict.INCONCLUSIVE, "may_extend_by": 2, "rig_cause": BOTH},
        {"verdict": Verdict.INCONCLUSIVE, "extended": True, "status": RunStatus.CANCELED},
        {"verdict": None, "extended": True, "status": RunStatus.ERROR},
    ]
)
MOVES = st.lists(st.tuples(st.sampled_from(GATES), st.booleans(), ENDS), max_size=25)


@given(MOVES)
@settings(max_examples=300, deadline=None)
def test_whatever_happens_no_gate_starts_before_all_earlier_ones_are_done_and_no_stop_is_passed_by(moves) -> None:
    f = facts()
    for number, (gate, rehearsal, end) in enumerate(moves, 1):
        refusal = may_start(f, gate, rehearsal)
        if refusal is None:
            earlier = GATES[: GATES.index(gate)]
            assert not any(a.stops or a.active for a in f.attempts)
            if not rehearsal:
                assert all(any(a.passed for a in f.at(g)) for g in earlier)
                assert all(any(a.passed and a.sign_off.agreed for a in f.at(g)) for g in earlier if POLICY.sign_off[g] == "required")
                assert f.left(gate) > 0
                assert first_open(f) == gate
            f = replace(f, attempts=(*f.attempts, replace(tried(gate, number=number), rehearsal=rehearsal, **end)))
        else:
            assert "{" not in refusal.text.en + refusal.text.zh
        _everything_agrees(f)


def _everything_agrees(f: Facts) -> None:
    state, action = engagement_state(f)[0], next_action(f)
    assert "{" not in action.label.en + action.reason.en + action.label.zh + action.reason.zh
    assert (action.kind == "lift") == (state is State.STOPPED)
    assert (action.kind == "close") == (state is State.NOT_CONCLUDED)
    assert (action.kind == "none") == (state is State.CONCLUDED)
    if action.kind == "start":
        assert may_start(f, action.gate) is None
    if action.kind == "retry":
        assert may_retry(f, action.attempt_id) is None
    if action.kind == "extend" and action.gate == "G3":
        assert may_extend(f, action.attempt_id) is None
        assert may_start(f, "G3").code == "extend_first"
    for gate in GATES:
        assert f.used(gate) <= POLICY.attempts[gate]
        if gate_state(f, gate) is GateState.READY and state is State.ACTIVE and not f.active():
            assert may_start(f, gate) is None
        if gate_state(f, gate) is GateState.PASSED:
            assert decided_by(f, gate).passed
