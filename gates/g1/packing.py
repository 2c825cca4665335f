"""Order against packing list before anything arrived: the sentence about what disagrees, by the very rule that G1 decides by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gates.g1.identity import order_findings
from gates.g1.order import parse_order
from gates.rules.findings import State, listed
from gates.text import Text

_DIFFER = Text(
    "Order and packing list disagree, and as long as they do G1 cannot pass: {what} If that is a slip, put it right; "
    "if a part of the delivery comes later, revise the packing list when it has come.",
    "订单与装箱单不一致，在此期间 G1 无法通过：{what}如系笔误，请更正；如分批到货，请在后续货物到达后修订装箱单。",
)


def packing_warning(order: Any, packing_list: Any) -> Text | None:
    """Return one sentence that names what is missing, left over or of another model or firmware; None where both agree.

    A warning and no error: a delivery may really come in parts, and then this is the truth of the day.
    """
    parsed = parse_order({"order": order if isinstance(order, Mapping) else {}, "packing_list": packing_list})
    wrong = [finding for finding in order_findings(parsed) if finding.state is not State.GOOD]
    return _DIFFER.fill(what=listed(wrong)) if wrong else None
