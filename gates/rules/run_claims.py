"""The claims that every arm's runs must answer, in the order of the report's table."""

from __future__ import annotations

from collections.abc import Callable

from gates.model import ClaimResult
from gates.rules import accounted, bytes_read, client, cold, medium, work
from gates.rules.claim import Findings

OF_EVERY_ARM: tuple[Callable[[Findings, str], ClaimResult], ...] = (
    cold.hbm_cold,
    cold.page_cache_cold,
    cold.engine_restarted_cold,
    cold.array_cold,
    medium.on_its_medium,
    cold.external_hits,
    bytes_read.device_bytes,
    work.store_complete,
    work.equal_work,
    work.failures,
    accounted.requests_accounted,
    client.client_healthy,
    client.calibration,
    client.littles_law,
)


def run_claims(data: Findings) -> tuple[ClaimResult, ...]:
    """Return the claims of all arms that have runs."""
    return tuple(claim(data, arm) for arm in data.arms for claim in OF_EVERY_ARM)
