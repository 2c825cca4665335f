"""G2 exactly at each limit, and one unit in the last place of its evidence on either side of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gates.g2_baseline import judge
from gates.model import Verdict
from tests.bundles import Evidence, g2_evidence, small_plan
from tests.unit.gates.limits import numeric_limits, told_on_its_side
from tests.unit.gates.rig import cached, paused, stepped
from tests.unit.gates.test_fabric_paths import deployed
from tests.unit.gates.test_published_beside import with_volume

PASS, FAIL, INCONCLUSIVE, INVALID = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.INVALID
TIER = 8
RUNS = ("run-1", "run-2", "run-3")
TTFT = (9_700_000, 10_000_000, 10_300_000)  # ns; the deviation of m - d, m, m + d is d: a coefficient of variation of exactly 3 %
E2E = tuple(2 * 97 * 100 * 103 * 1000 // rate for rate in (97, 100, 103))  # ns; the throughput of a full loop goes with 97 : 100 : 103


def lockstep(ttft: tuple[int, ...], e2e: tuple[int, ...]) -> Evidence:
    """Return the evidence of three runs whose workers at one tier all send at one moment, again and again, without any pause."""
    evidence = g2_evidence(plan=small_plan())
    for run, (first, whole) in enumerate(zip(ttft, e2e, strict=True), 1):

        def edit(rows: list[dict[str, Any]], first: int = first, whole: int = whole) -> None:
            mine = [r for r in rows if r["phase"] == "measure" and r["tier"] == TIER]
            begun = min(r["sent_ns"] for r in mine)
            for n, row in enumerate(mine):
                sent = begun + n // TIER * whole
                row.update(sent_ns=sent, scheduled_ns=sent, first_byte_ns=sent + first - 1000, first_text_ns=sent + first)
                row.update(end_ns=sent + whole, mono_ns=sent + whole)
                row["server"] = {"recv_ns": sent + 1000, "first_ns": sent + first - 3000, "send_ns": sent + first - 2000}

        evidence.lines(f"run-{run}", "records.jsonl", edit)
    return evidence


def ttft(off: int) -> Evidence:
    return lockstep((*TTFT[:2], TTFT[2] + off), E2E)


def e2e(off: int) -> Evidence:
    return lockstep(TTFT, (*E2E[:2], E2E[2] + off))


def without(files: int) -> Evidence:
    evidence = g2_evidence(plan=small_plan())
    return evidence.drop(evidence.path("run-1", "client.json")) if files else evidence


def warm(runs: int) -> Evidence:
    evidence = g2_evidence(plan=small_plan())
    if runs:
        evidence.lines("run-2", "coldness.jsonl", lambda rows: [{**r, "resident_bytes": r["bytes"]} for r in rows])
    return evidence


def busy(thousandths: int) -> Evidence:
    return g2_evidence(plan=small_plan()).json("run-2", "client.json", lambda d: d.update(cpu_s=thousandths / 100, wall_s=10))


def members(lost: int) -> Evidence:
    return with_volume(
        {
            f"       {n}     259        {n}        {n}      active sync   /dev/nvme{n}n1\n": f"       -       0        0        {n}      removed\n"
            for n in range(4 - lost, 4)
        }
    )


def connected(others: int) -> Evidence:
    return deployed([("tcp" if n < others else "rdma", "live") for n in range(2)], {"g2": {"fabric": {"transport": "rdma"}}})


# check -> (its evidence at a value, {value: verdict}); of the variations: ns by which the fastest run differs from the limit
TABLE: dict[str, tuple[Callable[[Any], Evidence], dict[int, Verdict]]] = {
    "g2.evidence": (without, {0: PASS, 1: INCONCLUSIVE}),
    "g2.validity": (warm, {0: PASS, 1: INVALID}),
    "g2.ttft_p50_cv.c{tier}": (ttft, {-1: PASS, 0: PASS, 1: FAIL}),
    "g2.throughput_cv.c{tier}": (e2e, {1: PASS, 0: PASS, -1: FAIL}),
    "g2.client_cpu": (busy, {599: PASS, 600: PASS, 601: FAIL}),
    "g2.pauses": (lambda us: paused(g2_evidence(plan=small_plan()), RUNS, us), {99_999: PASS, 100_000: PASS, 100_001: FAIL}),
    "g2.corrected_bits": (lambda n: paused(g2_evidence(plan=small_plan()), RUNS, 40, bits=n), {2_400_000: PASS, 2_400_001: FAIL}),
    "g2.port_errors": (lambda n: paused(paused(g2_evidence(plan=small_plan()), RUNS, 40), RUNS[:1], 40, errors=n), {0: PASS, 1: FAIL}),
    "g2.clock_steps": (lambda ns: stepped(g2_evidence(plan=small_plan()), "run-2", ns), {127_999_999: PASS, 128_000_000: PASS, 128_000_001: FAIL}),
    "g2.page_cache_growth": (
        lambda n: cached(g2_evidence(plan=small_plan()), RUNS, n),
        {1_258_291: PASS, 1_258_292: FAIL},
    ),  # of 12,582,912 bytes read
    "g2.fabric.transport": (connected, {0: PASS, 1: FAIL}),
    "g2.volume.raid": (members, {0: PASS, 1: FAIL}),
    "g2.volume.stripe": (lambda width: with_volume({"swidth=512": f"swidth={width}"}), {511: FAIL, 512: PASS, 513: FAIL}),
    "g2.volume.mount": (lambda wrong: with_volume({"rw,noatime": "ro,noatime"} if wrong else {}), {0: PASS, 1: FAIL}),
}


@pytest.mark.parametrize(("check", "value", "verdict"), [(c, v, verdict) for c, (_, row) in TABLE.items() for v, verdict in row.items()])
def test_the_limit_itself_is_kept_and_one_unit_beyond_it_is_not(check, value, verdict):
    bundle = TABLE[check][0](value).bundle()
    found = next(c for c in judge(bundle.plan, bundle).checks if c.id == check.format(tier=TIER))
    assert found.verdict is verdict, found.reason.en
    assert told_on_its_side(found), found


@pytest.mark.parametrize(("make", "check"), [(ttft, "g2.ttft_p50_cv.c8"), (e2e, "g2.throughput_cv.c8")])
def test_a_variation_of_exactly_the_limit_is_printed_as_the_limit(make, check):
    bundle = make(0).bundle()
    found = next(c for c in judge(bundle.plan, bundle).checks if c.id == check)
    assert (found.value, found.margin) == (bundle.plan.g2.repeatability_cv_max, 0)


def test_every_number_that_a_check_of_g2_is_held_against_has_its_row():
    assert numeric_limits("G2", small_plan()) <= set(TABLE)
