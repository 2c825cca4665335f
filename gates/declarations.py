"""All checks and claims of the four gates by their declarations: what `quadgate gate show` prints and docs/checks.md is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gates import declared_common as common
from gates.canonical import plain
from gates.declared import NONE_BAD, Declared
from gates.g1 import declared as g1
from gates.g1.declared_more import MORE
from gates.g2.declared import CHECKS as G2_CHECKS
from gates.g3 import declared as g3
from gates.g4.declared import CHECKS as G4_CHECKS
from gates.model import Limit
from gates.rules.claim import TITLES

if TYPE_CHECKING:
    from gates.plan import Plan

_ARRIVAL = (
    *(g1.UNPACKING, g1.RECEIVERS, g1.PHOTOS, g1.HOSTS, g1.ORDER, g1.SERIALS, g1.MODEL, g1.FIRMWARE, g1.CAPACITY),
    *(*g1.HEALTH, g1.AGREEMENT, g1.RAW_IO, g1.SPREAD, g1.CEILING, g1.WIDTH, g1.SPEED, g1.FLAGS),
    *(g1.PORT_STATE, g1.PORT_MTU, g1.PORT_SPEED, g1.GPU),
    *MORE,
)
_MAIN = (
    *(g3.FAILURES, g3.HITS, g3.IDENTITY, g3.LOAD_ERRORS, g3.TTFT_DROP, g3.THROUGHPUT_GAIN, g3.TTFT_P99, g3.TPOT_P99, g3.SLA),
    *(g3.RECOMPUTE, *g3.OPTIONAL.values()),
)


def _first(gate: str) -> tuple[Declared, ...]:
    """Return what every measuring gate asks first."""
    return common.attempt(gate), common.evidence(gate), common.validity(gate)


DECLARED: Mapping[str, tuple[Declared, ...]] = MappingProxyType(
    {
        "G1": (common.attempt("G1"), *_ARRIVAL),
        "G2": (*_first("G2"), *G2_CHECKS),
        "G3": (*_first("G3"), *_MAIN),
        "G4": (*_first("G4"), *G4_CHECKS),
    }
)

_RUN_CLAIMS = (
    *("hbm_cold", "page_cache_cold", "engine_restarted_cold", "array_cold", "external_hits", "device_bytes", "store_complete"),
    *("equal_work", "failures", "client_healthy", "calibration", "littles_law"),
)
CLAIMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "G1": (),
        "G2": _RUN_CLAIMS,
        "G3": (*_RUN_CLAIMS, "output_identity", "placebo", "replay", "baselines_agree", "g2_agreement", "gain_explained"),
        "G4": ("tier_exercised", "client_healthy", "calibration"),
    }
)
# claim -> (plan's field, limit): what each statement of validity is held against.
_CLAIM_LIMITS: Mapping[str, tuple[str, Callable[[Plan], Limit]]] = MappingProxyType(
    {
        "hbm_cold": ("validity.hbm_hits_max", lambda p: Limit("<=", high=p.validity.hbm_hits_max)),
        "page_cache_cold": ("validity.page_cache_resident_max", lambda p: Limit("<=", high=p.validity.page_cache_resident_max)),
        "array_cold": ("arms.array_cache, validity.array_media_ratio_min", lambda p: Limit(">=", low=p.validity.array_media_ratio_min)),
        "external_hits": ("validity.external_hits_min", lambda p: Limit(">=", low=p.validity.external_hits_min)),
        "tier_exercised": ("validity.external_hits_min", lambda p: Limit(">=", low=p.validity.external_hits_min)),
        "device_bytes": (
            "validity.device_bytes_ratio",
            lambda p: Limit("band", low=p.validity.device_bytes_ratio[0], high=p.validity.device_bytes_ratio[1]),
        ),
        "store_complete": ("validity.device_bytes_ratio", lambda p: Limit(">=", low=p.validity.device_bytes_ratio[0])),
        "equal_work": ("arms.allowed_difference", lambda _: Limit("==", "exact", "exact")),
        "failures": ("DESIGN 4.3", lambda _: Limit("<=", high=Decimal(0))),
        "client_healthy": ("validity.client_share_of_ttft_max", lambda p: Limit("<=", high=p.validity.client_share_of_ttft_max)),
        "calibration": ("validity.calibration_error_max", lambda p: Limit("<=", high=p.validity.calibration_error_max)),
        "littles_law": ("validity.littles_law_max", lambda p: Limit("<=", high=p.validity.littles_law_max)),
        "output_identity": ("validity.divergence_excess_max", lambda p: Limit("<=", high=p.validity.divergence_excess_max)),
        "placebo": ("validity.placebo_gain_max, arms.controls", lambda p: Limit("<=", high=p.validity.placebo_gain_max)),
        "replay": ("validity.replay_gain_max, arms.prompts", lambda p: Limit("<=", high=p.validity.replay_gain_max)),
        "baselines_agree": ("g3.agreement_max, decision.rule", lambda p: Limit("<=", high=p.g3.agreement_max)),
        "g2_agreement": ("g3.agreement_max", lambda p: Limit("<=", high=p.g3.agreement_max)),
        "gain_explained": ("validity.gain_explained_max", lambda p: Limit("<=", high=p.validity.gain_explained_max)),
    }
)


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
    for name in CLAIMS[gate]:
        source, limit = _CLAIM_LIMITS.get(name, ("DESIGN 4.2", lambda _: Limit("none")))
        yield {
            "claim": name,
            "title": TITLES[name].json(),
            "limit": plain(limit(plan).json()),
            "source": source,
            "left_out": plan.leaves_out(name),
        }


def _matches(pattern: str, ident: str) -> bool:
    head, _, tail = pattern.partition("{")
    return ident == pattern if not tail else ident.startswith(head) and len(ident) > len(head)


__all__ = ["CLAIMS", "DECLARED", "NONE_BAD", "claim_rows", "declaration_of", "rows"]
