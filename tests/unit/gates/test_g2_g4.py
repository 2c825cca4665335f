"""G2 freezes a repeatable baseline; G4 tells a steady product from one that drifts, leaks, errs or restarts."""

import random
from fractions import Fraction

import pytest

from gates.canonical import sha256_of
from gates.judge import judge
from gates.rules.levels import worst_stretch
from gates.rules.trends import theil_sen
from tests.bundles import Truth, g2_evidence, g4_evidence, record_injection, soak_plan


def checks(document):
    return {c["id"]: c for c in document["checks"]}


def soak(truth=None, edit=lambda e: e, plan=None, **options):
    evidence = g4_evidence(truth, plan, **options)
    edit(evidence)
    return judge(evidence.bundle())


def telemetry(edit):
    return lambda e: e.lines("soak", "telemetry.jsonl", edit, renumber=True)


def test_g2_freezes_the_measured_baseline_with_its_hash():
    document = judge(g2_evidence().bundle())
    baseline = document["facts"]["baseline"]
    assert baseline["hash"] == sha256_of({key: baseline[key] for key in ("tiers", "engine")})
    assert baseline["engine"]["model"] == "lab"
    assert baseline["tiers"]["8"]["ttft_p50_ns"] == pytest.approx(17 * 8 * 10**6, rel=0.01)
    assert float(baseline["tiers"]["8"]["output_tokens_per_s"]) == pytest.approx(64 * 1000 / (17 * 1.1696), rel=0.01)
    assert len(document["figures"]["tiers"]["8"]["runs"]) == 3


def test_g2_fails_when_the_runs_do_not_repeat_and_freezes_nothing():
    document = judge(g2_evidence(Truth(baseline_runs=(1.0, 1.06, 1.0))).bundle())
    assert document["verdict"] == "fail"
    assert document["facts"] == {}
    assert checks(document)["g2.ttft_p50_cv.c8"]["verdict"] == "fail"


def test_g2_is_invalid_when_its_baseline_was_warm():
    evidence = g2_evidence()
    evidence.lines("run-2", "coldness.jsonl", lambda rows: [{**r, "resident_bytes": r["bytes"]} for r in rows])
    assert judge(evidence.bundle())["verdict"] == "invalid"


def test_a_steady_soak_passes_and_draws_one_point_a_window():
    document = soak()
    assert document["verdict"] == "pass"
    assert len(document["figures"]["soak"]) == 24
    assert document["simulated"] is True


@pytest.mark.parametrize(
    ("truth", "check"),
    [
        (Truth(fails=lambda n: n % 100 == 0), "g4.error_rate"),
        (Truth(drift=lambda p: 1 + 0.25 * p), "g4.excursion_ttft_p50"),
        (Truth(drift=lambda p: 1.08 if p > 0.6 else 1.0), "g4.drift_ttft_p50"),
        (Truth(drift=lambda p: 1.08 if p > 0.6 else 1.0), "g4.drift_throughput"),
        (Truth(leak_bytes=200e6), "g4.leak"),
    ],
)
def test_errors_drift_steps_and_leaks_are_a_fail(truth, check):
    document = soak(truth)
    assert document["verdict"] == "fail"
    assert checks(document)[check]["verdict"] == "fail"


def test_noise_alone_is_neither_drift_nor_leak():
    for seed in (1, 2, 3):
        document = soak(Truth(noise=0.15, seed=seed))
        assert document["verdict"] == "pass", document["summary"]["en"]


def crash(rows):
    half = 160
    return [{**r, "engine": {**r["engine"], "pid": 9999, "start_ticks": 1}} if n > half else r for n, r in enumerate(rows)]


def test_an_engine_that_restarts_is_a_fail_whichever_evidence_shows_it():
    assert checks(soak(edit=telemetry(crash)))["g4.engine_restarts"]["verdict"] == "fail"
    dead = soak(edit=telemetry(lambda rows: [{**r, "engine": {**r["engine"], "alive": False}} if n == 100 else r for n, r in enumerate(rows)]))
    assert checks(dead)["g4.engine_restarts"]["verdict"] == "fail"
    event = {"seq": 0, "wall_ns": 1, "mono_ns": 10**12 + 20 * 10**9, "boot_id": "b007-0001", "kind": "engine_exit", "detail": {}}
    assert soak(edit=lambda e: e.lines("soak", "events.jsonl", lambda rows: [*rows, event], renumber=True))["verdict"] == "fail"


def test_a_labelled_injection_is_judged_by_its_own_check():
    def injected(e):
        rows = e.rows("soak", "telemetry.jsonl")
        low, high = rows[155]["mono_ns"], rows[168]["mono_ns"]
        record_injection(e, "engine-restart", low, high)
        telemetry(crash)(e)

    planned = {"label": "engine-restart", "action": "engine-restart", "at": "15 h", "lasts": "1 h"}
    document = soak(edit=injected, plan=soak_plan({"g4": {"injections": [planned]}}))
    assert document["verdict"] == "pass"
    assert checks(document)["g4.injection_1"]["verdict"] == "pass"
    unplanned = soak(edit=injected)
    assert unplanned["verdict"] == "inconclusive"
    assert "names the injection engine-restart, which the plan does not" in checks(unplanned)["g4.evidence"]["reason"]["en"]
    assert soak(edit=lambda e: e.inputs(lambda d: d.update(injections=[{"label": "x"}])))["verdict"] == "inconclusive"


def test_a_counter_that_grows_fails_and_one_that_is_missing_or_reset_is_inconclusive():
    def counter(edit):
        return telemetry(lambda rows: [{**r, "counters": edit(n, dict(r["counters"]))} for n, r in enumerate(rows)])

    grown = soak(edit=counter(lambda n, c: {**c, "aer_fatal": 1 if n > 120 else 0}))
    missing = soak(edit=counter(lambda n, c: {k: v for k, v in c.items() if k != "aer_fatal" or n != 10}))
    reset = soak(edit=counter(lambda n, c: {**c, "aer_fatal": 5 if n < 120 else 0}))
    assert [d["verdict"] for d in (grown, missing, reset)] == ["fail", "inconclusive", "inconclusive"]


def test_a_gap_in_telemetry_is_inconclusive_and_never_a_pass():
    document = soak(edit=telemetry(lambda rows: rows[:100] + rows[140:]))
    assert document["verdict"] == "inconclusive"
    assert checks(document)["g4.telemetry_gap"]["verdict"] == "inconclusive"
    assert soak(edit=telemetry(lambda rows: rows[:1]))["verdict"] == "inconclusive"


def test_a_soak_that_is_too_short_proves_nothing():
    document = soak(hours=23.5)
    assert document["verdict"] == "inconclusive"
    assert checks(document)["g4.duration"]["verdict"] == "inconclusive"


def test_a_soak_that_never_read_the_tier_says_nothing_about_it():
    idle = soak(edit=telemetry(lambda rows: [{**r, "metrics": dict.fromkeys(r["metrics"], "0")} for r in rows]))
    silent = soak(edit=telemetry(lambda rows: [{**r, "metrics": {}} for r in rows]))
    assert (idle["verdict"], silent["verdict"]) == ("invalid", "inconclusive")


def test_windows_with_too_few_requests_are_said_so_not_guessed():
    document = soak(plan=soak_plan({"g4": {"window_requests_min": 1000}}))
    check = checks(document)["g4.drift_ttft_p50"]
    assert (check["verdict"], check["value"]) == ("inconclusive", None)
    assert "0 of 24 windows" in check["reason"]["en"]


def test_a_change_of_level_is_found_where_it_is_and_not_in_noise():
    rng = random.Random(5)
    steady = [rng.gauss(100, 5) for _ in range(72)]
    stepped = [x * (1.1 if n >= 40 else 1) for n, x in enumerate(steady)]
    found = worst_stretch(stepped, upwards=True, least=6, p_max=0.001, over=Fraction(5, 100))
    assert found is not None
    assert abs(found.at - 40) <= 8
    assert found.size == pytest.approx(0.1, abs=0.05)
    assert worst_stretch(steady, upwards=True, least=6, p_max=0.001, over=Fraction(5, 100)) is None
    better = worst_stretch(stepped, upwards=False, least=6, p_max=0.001, over=Fraction(5, 100))
    assert better is None or better.size < 0.05


def test_the_slope_is_robust_and_its_lower_bound_is_below_it():
    rng = random.Random(9)
    points = [(float(n), 3.0 * n + rng.gauss(0, 5)) for n in range(200)]
    points[50] = (50.0, 10_000.0)
    slope, low = theil_sen(points, 0.95)
    assert slope == pytest.approx(3.0, abs=0.05)
    assert 2.9 < low < slope
    assert theil_sen(points[:5], 0.95) is None
