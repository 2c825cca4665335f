"""All checks and claims of the four gates by their declarations: what `quadgate gate show` prints and docs/checks.md is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gates import declared_common as common
from gates.canonical import plain
from gates.declared import NONE_BAD, Declared
from gates.g1 import declared as g1
from gates.g1.declared_arrival import ARRIVED
from gates.g1.declared_host import INFORM
from gates.g1.declared_more import MORE
from gates.g2.declared import CHECKS as G2_CHECKS
from gates.g3 import declared as g3
from gates.g4.declared import CHECKS as G4_CHECKS
from gates.rules.claim_table import CLAIMS, OF_GATES
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

_ARRIVAL = (
    *(g1.UNPACKING, g1.RECEIVERS, g1.PHOTOS, g1.HOSTS, g1.ORDER, g1.SERIALS, g1.MODEL, g1.FIRMWARE, g1.CAPACITY),
    *(*g1.HEALTH, g1.AGREEMENT, g1.OWN_VERDICT, g1.RAW_IO, g1.SPREAD, g1.CEILING, g1.WIDTH, g1.SPEED, g1.FLAGS),
    *(g1.PORT_STATE, g1.PORT_MTU, g1.PORT_SPEED, g1.GPU),
    *MORE,
    *INFORM,
    *ARRIVED,
)
_NOT_REQUIRED = Text(
    "The plan does not require its evidence ({g}); where it is brought all the same, it is for information.",
    "计划未要求其证据（{g}）；如仍提供，仅供参考。",
)
_NO_CELL = Text("The plan has no cell that measures it (workload.cells: {c}).", "计划没有测量此项的测点（workload.cells：{c}）。")
_MAIN = (
    *(g3.FAILURES, g3.HITS, g3.IDENTITY, g3.LOAD_ERRORS, g3.TTFT_DROP, g3.THROUGHPUT_GAIN, g3.TTFT_P99, g3.TPOT_P99, g3.SLA),
    *(g3.RECOMPUTE, *g3.OPTIONAL.values(), g3.CACHED_TOKENS, g3.STORE_FAILURES),
)


def _first(gate: str) -> tuple[Declared, ...]:
    """Return what every measuring gate asks first."""
    return common.attempt(gate), common.evidence(gate), common.validity(gate)


def _beside(gate: str) -> tuple[Declared, ...]:
    """Return what every measuring gate tells of the rig beside its own questions."""
    ports = common.pauses(gate), common.port_errors(gate), common.corrected_bits(gate)
    return common.client_cpu(gate), *ports, common.clock_steps(gate), common.page_growth(gate)


DECLARED: Mapping[str, tuple[Declared, ...]] = MappingProxyType(
    {
        "G1": (common.attempt("G1"), *_ARRIVAL),
        "G2": (*_first("G2"), *G2_CHECKS, *_beside("G2")),
        "G3": (*_first("G3"), *_MAIN, *_beside("G3")),
        "G4": (*_first("G4"), *G4_CHECKS, *_beside("G4")),
    }
)


# Every quantity, and every claim, whose plain number is a part of something.
SHARES = frozenset(d.quantity for checks in DECLARED.values() for d in checks if d.share) | {name for name, c in CLAIMS.items() if c.share}


# Every quantity whose limit, when it is missed, makes a gate inconclusive and no fail.
UNPROVEN = frozenset(d.quantity for checks in DECLARED.values() for d in checks if d.unproven)


def is_share(quantity: str, unit: str) -> bool:
    """Tell whether people read a quantity (or a claim's value) in percent: it has no unit, and is declared as a part of something."""
    return unit in ("1", "ratio") and quantity in SHARES


def declaration_of(gate: str, check_id: str) -> Declared | None:
    """Return the declaration that a check of a verdict was made from, or None."""
    return next((d for d in DECLARED[gate] if _matches(d.id, check_id)), None)


def rows(gate: str, plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield every check of a gate under a plan, as data: one row a tier where severity or limit hang on the tier."""
    for declared in DECLARED[gate]:
        for tier in declared.tiers(plan):
            blank = declared.blank(plan, tier=tier, name=declared.shown_as, kind="KIND")
            yield {
                "id": blank.id,
                "title": blank.title.json(),
                "quantity": blank.quantity,
                "quantity_name": declared.quantity_named().json(),
                "unit": declared.unit,
                "direction": declared.direction,
                "limit": plain(blank.limit.json()),
                "rule": declared.rule.json(),
                "evidence": list(declared.evidence),
                "severity": str(blank.severity),
                "group": declared.group or None,
                "required": plan.requires(declared.group) if declared.group else None,
                "source": declared.source,
            }


def claim_rows(gate: str, plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield every claim of validity of a gate under a plan, as data."""
    for name in OF_GATES[gate]:
        claim = CLAIMS[name]
        yield {
            "claim": name,
            "title": claim.title.json(),
            "limit": plain(claim.limit(plan, "candidate").json()),
            "source": claim.source,
            "left_out": plan.leaves_out(name),
        }


def not_asked(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield what a plan does not ask for, as far as sealing it tells: {gate, title, reason}. Nobody needs to agree on it; it is shown."""
    for gate, checks in DECLARED.items():
        for declared in checks:
            if declared.group and not plan.requires(declared.group):
                reason = _NOT_REQUIRED.fill(g=declared.group)
            elif declared in g3.OPTIONAL.values() and g3.CELLS[declared.quantity] not in plan.workload.cells:
                reason = _NO_CELL.fill(c=g3.CELLS[declared.quantity])
            else:
                continue
            yield {"gate": gate, "title": declared.heading(plan).json(), "reason": reason.json()}


def _matches(pattern: str, ident: str) -> bool:
    head, _, tail = pattern.partition("{")
    return ident == pattern if not tail else ident.startswith(head) and len(ident) > len(head)


__all__ = ["DECLARED", "NONE_BAD", "SHARES", "UNPROVEN", "claim_rows", "declaration_of", "is_share", "not_asked", "rows"]
