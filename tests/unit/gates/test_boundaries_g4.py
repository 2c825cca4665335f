"""G4 exactly at each limit, and one unit in the last place of its evidence on either side of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from gates.g4_soak import judge
from gates.model import Verdict
from tests.bundles import Evidence
from tests.unit.gates.even_soak import PAGE, PERIOD, SLOT, WINDOW, WINDOWS, S, Soak, plan_of
from tests.unit.gates.limits import numeric_limits, told_on_its_side

PASS, FAIL, INCONCLUSIVE, INVALID = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.INVALID
KIB, MS = 1024, 10**6


def load(**more: Any) -> Evidence:
    return Soak().load(**more).samples().evidence


def samples(edit: Callable[[int, dict[str, Any]], None], **more: Any) -> Evidence:
    return Soak().load().samples(edit, **more).evidence


def restarts(number: int) -> Evidence:
    soak = Soak().load(paused=(3, 6)[:number]).samples()
    lows = [soak.start + w * WINDOW - SLOT + 3 * S for w in (3, 6)[:number]]
    rows = [{"event": f"load_gap:b007-0001:{low}", "kind": "site_fault", "text": "断电", "approved": True, "missing": []} for low in lows]
    return soak.evidence.inputs(lambda d: d.update(rig_causes=rows))


def failures(number: int) -> Evidence:
    return load(failed={(n % WINDOWS, 10 + n // WINDOWS) for n in range(number)})


def in_a_row(number: int) -> Evidence:
    return load(failed={(5, k) for k in range(number)})


def straight(value: Callable[[int], int], off: int) -> Callable[[int], int]:
    """Move one of the middle two windows: that moves the level by half as much, and the slope not at all."""
    return lambda w: value(w) + off * (w == 5)


def uneven(middle: int, apart: int, off: int) -> Callable[[int], int]:
    """Spread the first and the last five windows by `apart`, the upper end moved by `off`."""
    shape = {0: -apart // 2, 1: apart // 2 + off, 7: -apart // 2, 8: apart // 2 + off}
    return lambda w: middle + shape.get(w, 0)


def rising(middle: int, step: int, off: int) -> Callable[[int], int]:
    """Let the first and the last five windows rise along a line."""
    line = {w + first: (w - 2) * step + off * (w == 4) for first in (0, 7) for w in range(5)}
    return lambda w: middle + line.get(w, 0)


def leak(free_kib: int) -> Evidence:
    def grow(n: int, row: dict[str, Any]) -> None:
        row["engine"]["rss_bytes"] = (10_000 + n) * PAGE
        row["host"]["mem_available_bytes"] = free_kib * KIB

    return samples(grow)


def handles(name: str) -> Callable[[int], Evidence]:
    """One more with each sample is 17280 more in 30 days; sample 156 is the middle one behind the warm-up."""
    return lambda level: samples(lambda n, row: row["engine"].update({name: level + n - 156}))


def files_of_the_tier(level: int) -> Evidence:
    return samples(lambda n, row: row.update(kv_dir_bytes=level + n - 156))


def fading(off: int) -> Evidence:
    """Let the hits of twelve windows fall along a line by a tenth of their middle; those of a middle one are moved by `off` tokens."""
    grown = [(231 - 2 * w) * 10**5 + off * (w == 5) for w in range(WINDOWS)]
    so_far = [sum(grown[: w + 1]) for w in range(WINDOWS)]

    def edit(n: int, row: dict[str, Any]) -> None:
        window = min((n - 1) * PERIOD // WINDOW, WINDOWS - 1)
        row["metrics"] = dict.fromkeys(row["metrics"], str(so_far[window] if n else 0))

    return samples(edit)


def busy(thousandths: int) -> Evidence:
    return load().json("soak", "client.json", lambda d: d.update(cpu_s=thousandths / 100, wall_s=10))


def silence(last: int, following: int, length: int) -> Callable[[int], Evidence]:
    """Let no sample come for `length` ns (and as many more as asked for) behind the sample `last`."""

    def made(off: int) -> Evidence:
        soak = Soak().load()
        moved = soak.start + last * PERIOD + length + off
        return soak.samples(lambda n, row: row.update(mono_ns=moved) if n == following else None, silent=(last, following)).evidence

    return made


def injected(failed: int) -> Evidence:
    planned = {"label": "pull", "action": "pull-path", "at": "5 h", "lasts": "1 min"}
    soak = Soak({"g4": {"injections": [planned]}}).load(failed=[(5, 3)][:failed]).samples()
    begun = soak.start + 5 * WINDOW + S
    row = {"label": "pull", "from_ns": begun, "to_ns": begun + S, "boot_id": "b007-0001"}
    return soak.evidence.inputs(lambda d: d.update(injections=[row]))


def answers(wrong: int) -> Evidence:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[0]["detail"]["other_answers"] = [161] * wrong

    return load().lines("soak", "events.jsonl", edit)


def without(files: int) -> Evidence:
    evidence = load()
    return evidence.drop(evidence.path("soak", "client.json")) if files else evidence


def another_process(number: int) -> Evidence:
    return samples(lambda n, row: row["engine"].update(pid=row["engine"]["pid"] + number * (n > 100)))


def counted(number: int) -> Evidence:
    return samples(lambda n, row: row["counters"].update(aer_fatal=number * (n > 100)))


def idle(claims: int) -> Evidence:
    return samples(lambda n, row: row.update(metrics=dict.fromkeys(row["metrics"], "0")) if claims else None)


NONE = {0: PASS, 1: FAIL}
LATER, EARLIER = {-1: PASS, 0: PASS, 1: FAIL}, {1: PASS, 0: PASS, -1: FAIL}
# (check, its evidence at a value, {value: verdict}); where a figure is made from many, the value is the distance from the limit in ns or tokens
TABLE: list[tuple[str, Callable[[int], Evidence], dict[int, Verdict]]] = [
    ("g4.evidence", without, {0: PASS, 1: INCONCLUSIVE}),
    ("g4.validity", idle, {0: PASS, 1: INVALID}),
    ("g4.duration", lambda off: load(late=off), {1: PASS, 0: PASS, -1: INCONCLUSIVE}),
    ("g4.clock_restarts", restarts, {0: PASS, 1: PASS, 2: INCONCLUSIVE}),
    ("g4.engine_restarts", another_process, NONE),
    ("g4.error_rate", failures, {11: PASS, 12: PASS, 13: FAIL}),
    ("g4.error_budget_short", in_a_row, {2: PASS, 3: PASS, 4: FAIL}),
    ("g4.error_budget_long", in_a_row, {5: PASS, 6: PASS, 7: FAIL}),
    ("g4.drift_ttft_p50", lambda off: load(ttft=lambda w: 2000 * MS if w < 6 else 2100 * MS + off), LATER),
    ("g4.drift_throughput", lambda off: load(tokens=lambda w: 2100 + off if w < 6 else 2000), LATER),
    ("g4.excursion_ttft_p50", lambda off: load(ttft=straight(lambda w: 2090 * MS + 20 * MS * w, off)), EARLIER),
    ("g4.excursion_throughput", lambda off: load(tokens=straight(lambda w: 2310 - 20 * w, off)), EARLIER),
    ("g4.steady_ttft_p50", lambda off: load(ttft=uneven(2000 * MS, 400 * MS, off)), LATER),
    ("g4.steady_throughput", lambda off: load(tokens=uneven(2000, 400, off)), LATER),
    ("g4.leak", leak, {345_601: PASS, 345_600: PASS, 345_599: FAIL}),
    ("g4.leak_fds", handles("fds"), {17_281: PASS, 17_280: PASS, 17_279: FAIL}),
    ("g4.leak_threads", handles("threads"), {17_281: PASS, 17_280: PASS, 17_279: FAIL}),
    ("g4.leak_kv", files_of_the_tier, {17_281: PASS, 17_280: PASS, 17_279: FAIL}),
    ("g4.excursion_hits", fading, EARLIER),
    ("g4.client_cpu", busy, {599: PASS, 600: PASS, 601: FAIL}),
    ("g4.telemetry_coverage", silence(20, 25, 24_400 * MS), {-1: PASS, 0: PASS, 1: INCONCLUSIVE}),
    ("g4.telemetry_gap", silence(20, 33, 60 * S), {-1: PASS, 0: PASS, 1: INCONCLUSIVE}),
    ("g4.counter_aer_fatal", counted, NONE),
    ("g4.sentinel_answers", answers, NONE),
    ("g4.injection_1", injected, NONE),
]


@pytest.mark.parametrize(("check", "make", "value", "verdict"), [(c, make, v, verdict) for c, make, row in TABLE for v, verdict in row.items()])
def test_the_limit_itself_is_kept_and_one_unit_beyond_it_is_not(check, make, value, verdict):
    bundle = make(value).bundle()
    found = next(c for c in judge(bundle.plan, bundle).checks if c.id == check)
    assert found.verdict is verdict, found.reason.en
    assert told_on_its_side(found), found


@pytest.mark.parametrize(("off", "verdict"), LATER.items())
def test_a_steady_series_may_rise_by_exactly_the_limit_of_its_slope(off, verdict):
    bundle = load(ttft=rising(2000 * MS, 50 * MS, off)).bundle()
    assert next(c for c in judge(bundle.plan, bundle).checks if c.id == "g4.steady_ttft_p50").verdict is verdict


def test_every_number_that_a_check_of_g4_is_held_against_has_its_row():
    rows = {re.sub(r"(counter|injection)_\w+", r"\1_{name}", check) for check, _, _ in TABLE}
    assert numeric_limits("G4", plan_of()) <= rows
