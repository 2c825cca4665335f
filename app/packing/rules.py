"""When a packing list can be revised: asked where one is proposed, and where it is approved."""

from __future__ import annotations

from app.kit.i18n import N_, pair
from gates.pipeline import engagement_state, gate_state
from gates.pipeline_facts import Facts, GateState, State
from gates.text import Text


def closed(facts: Facts) -> Text | None:
    """Return why the packing list cannot be revised any more; None while it can."""
    state, why = engagement_state(facts)
    if state not in (State.DRAFT, State.ACTIVE):
        return why
    if gate_state(facts, "G1") is GateState.PASSED:
        return pair(N_("G1 has passed by this packing list. What arrives or is exchanged later is recorded in the register."))
    return None
