"""What is told of the rig beside a gate's questions: the client's processor, pauses and errors of ports, steps of the clock, the page cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gates.bundle import Bundle
from gates.model import CheckResult
from gates.plan import Plan
from gates.rules.claim import Run
from gates.rules.client_cost import client_cpu
from gates.rules.clock_steps import clock_steps
from gates.rules.page_growth import page_growth
from gates.rules.ports import port_checks


def rig_checks(gate: str, plan: Plan, bundle: Bundle, runs: Sequence[Run]) -> tuple[CheckResult | dict[str, Any], ...]:
    """Return the advisory checks of the rig over all runs, in the order of their declarations."""
    return client_cpu(gate, plan, runs), *port_checks(gate, plan, bundle, runs), clock_steps(gate, plan, runs), page_growth(gate, plan, runs)
