"""The order of the gates: what may start, where a gate stands, what comes next. Pure: facts in, sentences out.

Every face and every use case asks here, so a stop holds by every route. A rule that says no answers with a `Refusal` whose
sentence names the gate, the reason and the way on.
"""

from __future__ import annotations

from gates.model import Verdict
from gates.pipeline_facts import GATES, PARTIES, Action, AttemptFacts, Facts, GateState, Refusal, State
from gates.pipeline_text import (
    ACTIVE_ATTEMPT,
    ACTIVE_REHEARSAL,
    AGAIN,
    AGAIN_UNJUDGED,
    ALREADY_PASSED,
    CONSENT_MISSING,
    EARLIER_OPEN,
    EXTEND_FIRST,
    EXTEND_WHY,
    EXTENDED_ALREADY,
    EXTENSION_OPEN,
    FIRST,
    JUDGE_AGAIN,
    JUDGED,
    LABELS,
    NEWER,
    NOT_BY_PAIRS,
    NOT_CONCLUDED,
    NOT_IN_ERROR,
    NOT_INCONCLUSIVE,
    NOT_SEALED,
    ONLY_G3,
    PLAN_REPLACED,
    RECTIFY,
    REPORT_FIRST,
    RETRY_WHY,
    RIG_CAUSE_AGREED,
    SIGN_OFF_MISSING,
    SIGN_OFF_REJECTED,
    STOPPED,
    USED_UP,
)
from gates.text import Text
from gates.transitions import STATUS_WORDS, RunStatus


def used_up_at(facts: Facts) -> str | None:
    """Return the first gate that has used up its attempts without a pass, with nothing left to decide or to retry."""
    return next((gate for gate in GATES if _used_up(facts, gate)), None)


def _used_up(facts: Facts, gate: str) -> bool:
    tries = facts.at(gate)
    if not tries or facts.left(gate) > 0 or any(a.passed or a.active or a.wants_judging for a in tries):
        return False
    last = tries[-1]
    undecided = last.extendable or (last.verdict is Verdict.CONDITIONAL and not last.consent.rejected)
    retriable = last.status is RunStatus.ERROR and last.verdict is None and not last.replaced  # from its failed step
    return not undecided and not retriable


def decided_by(facts: Facts, gate: str) -> AttemptFacts | None:
    """Return the attempt that speaks for a gate: the one that passed, else the last one with a verdict, else the last one."""
    tries = facts.at(gate)
    passed = next((a for a in tries if a.passed), None)
    judged = next((a for a in reversed(tries) if a.verdict is not None), None)
    return passed or judged or (tries[-1] if tries else None)


def engagement_state(facts: Facts) -> tuple[State, Text]:
    """Return where the engagement stands, and the sentence that says why."""
    if facts.closed:
        return State.CLOSED, Text("Closed by both parties.", "已由双方关闭。")
    if stop := facts.stopped_by():
        return State.STOPPED, STOPPED.fill(gate=stop.gate, number=stop.number)
    if gate := used_up_at(facts):
        return State.NOT_CONCLUDED, NOT_CONCLUDED.fill(gate=gate, allowed=facts.policy.attempts[gate])
    if first_open(facts) is None:
        return State.CONCLUDED, Text("All four gates passed.", "四道门禁全部通过。")
    if facts.ever_sealed:
        return State.ACTIVE, Text("The plan was sealed by both parties.", "计划已由双方封存。")
    return State.DRAFT, Text("The plan is not sealed yet.", "计划尚未封存。")


def may_start(facts: Facts, gate: str, rehearsal: bool = False) -> Refusal | None:
    """Tell whether an attempt, or a rehearsal, at a gate may start now: None, or the refusal."""
    if not gate.strip():
        return Refusal("no_such_gate", Text("No gate was named: choose one of G1, G2, G3 and G4.", "未指明门禁：请从 G1、G2、G3、G4 中选择。"))
    if gate not in GATES:
        return Refusal(
            "no_such_gate", Text("There is no gate {gate}; there are G1, G2, G3 and G4.", "没有门禁 {gate}；只有 G1、G2、G3、G4。").fill(gate=gate)
        )
    state, why = engagement_state(facts)
    if state in (State.STOPPED, State.NOT_CONCLUDED, State.CLOSED, State.CONCLUDED):
        return Refusal(str(state), why)
    if running := facts.active():
        return Refusal("attempt_active", _active_text(running))
    if rehearsal:
        return None
    if not facts.sealed:
        return Refusal("plan_not_sealed", NOT_SEALED)
    for earlier in GATES[: GATES.index(gate)]:
        if refusal := _behind(facts, earlier):
            return refusal
    return _may_start_here(facts, gate)


def _may_start_here(facts: Facts, gate: str) -> Refusal | None:
    """Look at the gate itself, all earlier ones being done."""
    tries = facts.at(gate)
    if passed := next((a for a in tries if a.passed), None):
        return Refusal("already_passed", ALREADY_PASSED.fill(gate=gate, number=passed.number))
    if stale := next((a for a in tries if a.wants_judging), None):
        return Refusal("judge_again", JUDGE_AGAIN.fill(gate=gate, number=stale.number))
    last = tries[-1] if tries else None
    if last and last.verdict is Verdict.CONDITIONAL and not last.consent.rejected:
        return Refusal("consent_missing", CONSENT_MISSING.fill(gate=gate, number=last.number, parties=parties_text(last.consent.missing)))
    if last and last.extendable:
        return Refusal("extend_first", EXTEND_FIRST.fill(gate=gate, number=last.number, pairs=last.may_extend_by))
    if last and last.extending:
        return Refusal("extension_open", EXTENSION_OPEN.fill(gate=gate, number=last.number))
    if facts.left(gate) == 0:
        return Refusal("attempts_used_up", USED_UP.fill(gate=gate, allowed=facts.policy.attempts[gate]))
    return None


def _behind(facts: Facts, gate: str) -> Refusal | None:
    """Tell whether a gate is done with, so that later ones may start: None, or what is missing."""
    passed = next((a for a in facts.at(gate) if a.passed), None)
    if passed is None:
        if stale := next((a for a in facts.at(gate) if a.wants_judging), None):
            return Refusal("judge_again", JUDGE_AGAIN.fill(gate=gate, number=stale.number))
        last = decided_by(facts, gate)
        if last and last.verdict is Verdict.CONDITIONAL and not last.consent.rejected:
            return Refusal("consent_missing", CONSENT_MISSING.fill(gate=gate, number=last.number, parties=parties_text(last.consent.missing)))
        if last and last.verdict is Verdict.FAIL:
            return Refusal("rectify_first", RECTIFY.fill(gate=gate, number=last.number))
        return Refusal("earlier_gate_open", EARLIER_OPEN.fill(gate=gate))
    if facts.policy.sign_off[gate] == "required" and not passed.sign_off.agreed:
        if rejected := tuple(p for p in PARTIES if p in passed.sign_off.rejected):
            return Refusal("sign_off_missing", SIGN_OFF_REJECTED.fill(gate=gate, number=passed.number, parties=parties_text(rejected)))
        return Refusal("sign_off_missing", SIGN_OFF_MISSING.fill(gate=gate, number=passed.number, parties=parties_text(passed.sign_off.missing)))
    return None


def first_open(facts: Facts) -> str | None:
    """Return the first gate that is not done with, or None when all are."""
    return next((gate for gate in GATES if _behind(facts, gate)), None)


def gate_state(facts: Facts, gate: str) -> GateState:
    """Return where one gate stands."""
    tries = facts.at(gate)
    last = tries[-1] if tries else None
    if last and last.active:
        return GateState.RUNNING
    if any(a.passed for a in tries):
        return GateState.SIGN_OFF if _behind(facts, gate) else GateState.PASSED
    stop = facts.stopped_by()
    if stop:
        return GateState.STOPPED if stop.gate == gate else GateState.LOCKED
    if _used_up(facts, gate):
        return GateState.NOT_CONCLUDED
    if last is None:
        return GateState.READY if facts.sealed and first_open(facts) == gate else GateState.LOCKED
    return _after(last)


def _after(last: AttemptFacts) -> GateState:
    """Return the state that an ended attempt without a pass leaves its gate in."""
    if last.verdict is Verdict.CONDITIONAL and not last.consent.rejected:
        return GateState.CONSENT
    if last.verdict is Verdict.FAIL:
        return GateState.RECTIFY
    if last.status is RunStatus.ERROR:
        return GateState.ERROR
    return GateState.EXTEND if last.extendable else GateState.AGAIN


def next_action(facts: Facts) -> Action:
    """Return the one thing that brings the engagement on, whoever may do it."""
    state, why = engagement_state(facts)
    if state in (State.CLOSED, State.CONCLUDED):
        return Action("none", LABELS["none"], why)
    if stop := facts.stopped_by():
        return Action("lift", LABELS["lift"], why, stop.gate, stop.id)
    if state is State.NOT_CONCLUDED:
        return Action("close", LABELS["close"], why, used_up_at(facts))
    if running := facts.active():
        kind = "form" if running.status is RunStatus.WAITING else "follow"
        return Action(kind, LABELS[kind].fill(gate=running.gate), _active_text(running), running.gate, running.id)
    if report := next((a for a in facts.attempts if a.status is RunStatus.ERROR and a.verdict and not a.rehearsal), None):
        return Action("retry", LABELS["retry"].fill(gate=report.gate), RETRY_WHY.fill(gate=report.gate, number=report.number), report.gate, report.id)
    if not facts.sealed:
        return Action("seal", LABELS["seal"], NOT_SEALED)
    gate = first_open(facts) or GATES[-1]
    return _next_at(facts, gate)


def _next_at(facts: Facts, gate: str) -> Action:
    """Return what brings the first open gate on."""
    tries = facts.at(gate)
    refusal = _behind(facts, gate)
    decided = decided_by(facts, gate)
    if refusal and refusal.code == "judge_again" and (stale := next((a for a in tries if a.wants_judging), None)):
        return Action("judge", LABELS["judge"].fill(gate=gate), refusal.text, gate, stale.id)
    if decided and refusal and refusal.code in ("consent_missing", "sign_off_missing"):
        kind = refusal.code.removesuffix("_missing")
        return Action(kind, LABELS[kind].fill(gate=gate), refusal.text, gate, decided.id)
    if tries and may_retry(facts, tries[-1].id) is None:
        return Action("retry", LABELS["retry"].fill(gate=gate), RETRY_WHY.fill(gate=gate, number=tries[-1].number), gate, tries[-1].id)
    if tries and (last := tries[-1]).extendable:
        pairs = last.may_extend_by
        why = EXTEND_WHY.fill(gate=gate, number=last.number, pairs=pairs)
        return Action("extend", LABELS["extend"].fill(gate=gate, pairs=pairs), why, gate, last.id)
    number, allowed = facts.used(gate) + 1, facts.policy.attempts[gate]
    why = _why_again(decided).fill(gate=gate, number=number, allowed=allowed) if decided else FIRST.fill(gate=gate, number=number, allowed=allowed)
    return Action("start", LABELS["start"].fill(gate=gate), why, gate)


def _why_again(before: AttemptFacts) -> Text:
    """Return why a gate is tried again, with {gate}, {number} and {allowed} to be filled."""
    return AGAIN.get(before.verdict, AGAIN_UNJUDGED) if before.verdict else AGAIN_UNJUDGED


def may_retry(facts: Facts, attempt_id: str) -> Refusal | None:
    """Tell whether an attempt in error may go on from its failed step: None, or the refusal.

    A verdict is never retried. An attempt that was judged and then failed to write its report may still finish the paperwork,
    even in a stopped engagement, since nothing is measured any more.
    """
    attempt = next(a for a in facts.attempts if a.id == attempt_id)
    if attempt.status is not RunStatus.ERROR:
        return Refusal("judged", JUDGED) if attempt.verdict else Refusal("not_in_error", NOT_IN_ERROR.fill(status=STATUS_WORDS[attempt.status]))
    if running := facts.active():
        return Refusal("attempt_active", _active_text(running))
    if attempt.verdict is not None:
        return None
    state, why = engagement_state(facts)
    if state in (State.STOPPED, State.NOT_CONCLUDED, State.CLOSED, State.CONCLUDED):
        return Refusal(str(state), why)
    same = [a for a in facts.attempts if a.gate == attempt.gate and a.rehearsal == attempt.rehearsal]
    if same[-1].id != attempt_id:
        return Refusal("newer_attempt", NEWER)
    if not attempt.rehearsal and not facts.sealed:
        return Refusal("plan_not_sealed", NOT_SEALED)
    if not attempt.rehearsal and attempt.replaced:
        return Refusal("plan_replaced", PLAN_REPLACED.fill(gate=attempt.gate, number=attempt.number))
    return None


def may_extend(facts: Facts, attempt_id: str) -> Refusal | None:
    """Tell whether an inconclusive attempt may be extended by the planned run pairs now: None, or the refusal (DESIGN 4.6, 4.11)."""
    attempt = next(a for a in facts.attempts if a.id == attempt_id)
    words = {"gate": attempt.gate, "number": attempt.number}
    for holds, code, text in (
        (attempt.rehearsal or attempt.gate != "G3", "only_g3", ONLY_G3),
        (attempt.extended, "extended_already", EXTENDED_ALREADY),
        (attempt.verdict is not Verdict.INCONCLUSIVE, "not_inconclusive", NOT_INCONCLUSIVE),
        (attempt.rig_cause.agreed, "rig_cause_agreed", RIG_CAUSE_AGREED),
        (attempt.replaced, "plan_replaced", PLAN_REPLACED),
        (attempt.may_extend_by == 0, "not_by_pairs", NOT_BY_PAIRS),
        (attempt.status is RunStatus.ERROR, "report_first", REPORT_FIRST),
    ):
        if holds:
            return Refusal(code, text.fill(**words))
    if running := facts.active():
        return Refusal("attempt_active", _active_text(running))
    state, why = engagement_state(facts)
    if state in (State.STOPPED, State.NOT_CONCLUDED, State.CLOSED, State.CONCLUDED):
        return Refusal(str(state), why)
    if facts.at(attempt.gate)[-1].id != attempt_id:
        return Refusal("newer_attempt", NEWER)
    return None if facts.sealed else Refusal("plan_not_sealed", NOT_SEALED)


def _active_text(running: AttemptFacts) -> Text:
    return (ACTIVE_REHEARSAL if running.rehearsal else ACTIVE_ATTEMPT).fill(gate=running.gate, number=running.number)


def parties_text(parties: tuple[str, ...]) -> Text:
    """Return the names of parties in a sentence."""
    names = {"vendor": Text("the vendor", "供方"), "customer": Text("the customer", "需方")}
    return Text(" and ".join(names[p].en for p in parties), "和".join(names[p].zh for p in parties))
