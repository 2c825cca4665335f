"""G3 gives the right verdict for the right reason, from evidence whose truth is known."""

import pytest

from gates.judge import judge
from tests.bundles import Truth, g3_evidence, merged, small_plan
from tests.unit.gates.breaches import lagging


def checks(document):
    return {c["id"]: c for c in document["checks"]}


def claims(document):
    return {(c["claim"], c["arm"]): c for c in document["claims"]}


def run(truth=None, plan=None, edit=lambda e: e):
    evidence = g3_evidence(truth, plan)
    edit(evidence)
    return judge(evidence.bundle())


def spoil(step, edit):
    """Edit the measured records of a run."""
    return lambda e: e.lines(step, "records.jsonl", lambda rows: [edit(r) if r["phase"] == "measure" else r for r in rows])


def unstamped(step):
    """Let the engine of a run be one that stamps nothing, as client.json tells."""

    def apply(e):
        spoil(step, lambda row: {**row, "server": None})(e)
        e.json(step, "client.json", lambda d: d["server_stamps"].update(stamped=0))

    return apply


CANDIDATES = ("run-2", "run-3")


def on_candidates(edit):
    def apply(e):
        for step in CANDIDATES:
            spoil(step, edit)(e)

    return apply


def silent_error(row):
    if row["prompt"] % 10:
        return row
    return {
        **row,
        "error": {"kind": "stream_error", "message": "KV"},
        "first_text_ns": None,
        "usage": None,
        "finish_reason": None,
    }


@pytest.fixture(scope="module")
def good():
    return run()


def test_a_truth_inside_the_band_passes_and_every_claim_of_every_arm_is_answered(good):
    assert (good["verdict"], good["because"]) == ("pass", [])
    assert {c["status"] for c in good["claims"]} == {"holds", "not_applicable"}
    assert {c["arm"] for c in good["claims"]} == {"baseline", "candidate", "recompute", "placebo"}
    assert all(c["reason"]["en"] and c["reason"]["zh-CN"] for c in good["checks"] + good["claims"])


def test_the_printed_drop_is_the_truth(good):
    for tier in (2, 4, 8):
        check = checks(good)[f"g3.ttft_p50_drop.c{tier}"]
        assert float(check["value"]) == pytest.approx(0.30, abs=0.01)
        assert float(check["margin"]) == pytest.approx(float(check["value"]) - 0.25, abs=1e-9)


def test_figures_carry_what_the_charts_draw(good):
    ttft = good["figures"]["ttft"]["8"]
    assert {len(ttft["baseline"]), len(ttft["candidate"])} == {2}
    assert ttft["candidate"][0]["ms"] == sorted(ttft["candidate"][0]["ms"])
    assert ttft["limit_ms"] == pytest.approx(17 * 8 * 0.75, rel=0.02)
    assert set(good["figures"]["throughput"]["4"]["arms"]) == {"baseline", "candidate", "recompute", "placebo"}


@pytest.mark.parametrize(
    ("truth", "verdict", "check"),
    [
        (Truth(drop=0.20), "fail", "g3.ttft_p50_drop.c4"),
        (Truth(drop=0.245, noise=0.001), "fail", "g3.ttft_p50_drop.c8"),
        (Truth(drop=0.27, candidate_decode=1.6), "fail", "g3.throughput_gain.c2"),
        (Truth(drop=0.40), "conditional", "g3.throughput_gain.c2"),
    ],
)
def test_sweeping_the_truth_moves_the_verdict_where_arithmetic_says(truth, verdict, check):
    document = run(truth)
    assert document["verdict"] == verdict
    assert checks(document)[check]["verdict"] == verdict
    if verdict == "conditional":
        assert document["because"] == ["above_band"]


def test_above_the_band_follows_the_plan():
    def rule(word):
        return small_plan({"g3": {"throughput_gain_band": {"above": word}}})

    assert run(Truth(drop=0.40), rule("accept"))["verdict"] == "pass"
    assert run(Truth(drop=0.40), rule("fail"))["verdict"] == "fail"
    left_out = small_plan({"not_tested": [{"claim": "replay", "reason": "agreed"}]})
    assert run(Truth(drop=0.40), left_out)["verdict"] == "inconclusive"
    assert run(Truth(), left_out)["verdict"] == "pass"


def test_above_the_band_with_a_g2_baseline_that_disagrees_is_invalid():
    def other(e):
        e.inputs(lambda d: d["g2_baseline"]["tiers"]["2"].update(ttft_p50_ns=50_000_000))

    assert run(Truth(drop=0.40), edit=other)["verdict"] == "invalid"
    assert run(Truth(), edit=other)["verdict"] == "inconclusive"


def test_a_tier_outside_the_band_list_is_advisory():
    plan = small_plan({"g3": {"throughput_gain_band": {"tiers": [2]}}})
    document = run(Truth(), plan)
    assert checks(document)["g3.throughput_gain.c4"]["severity"] == "advisory"


def test_one_baseline_run_that_would_flip_a_pass_makes_it_conditional():
    document = run(Truth(drop=0.265, noise=0.001, baseline_runs=(0.975, 1.02), decode_ms=1.2))
    assert document["verdict"] == "conditional"
    assert "fragile" in document["because"]


def test_baselines_that_disagree_are_inconclusive():
    document = run(Truth(baseline_runs=(1.0, 1.08)))
    assert document["verdict"] == "inconclusive"
    assert claims(document)[("baselines_agree", "baseline")]["status"] == "breached"


def test_without_a_frozen_g2_baseline_nothing_passes():
    document = run(edit=lambda e: e.inputs(lambda d: d.update(g2_baseline=None)))
    assert document["verdict"] == "inconclusive"
    assert claims(document)[("g2_agreement", "baseline")]["status"] == "unknown"


def test_a_guard_is_advisory_unless_the_plan_says_blocking():
    def slow_tail(row):
        if row["prompt"] == 3:
            late = row["first_text_ns"] + 3 * (row["first_text_ns"] - row["sent_ns"])
            return {**row, "first_text_ns": late, "end_ns": late + 10**6, "server": None}
        return row

    def edit(e):
        for step in CANDIDATES:
            spoil(step, slow_tail)(e)
        for step in (*CANDIDATES, "run-1", "run-4", "recompute", "placebo"):
            unstamped(step)(e)

    plan = {"validity": {"littles_law_max": "0.9", "gain_explained_max": "0.9"}}
    document = run(Truth(), small_plan(plan), edit)
    guard = checks(document)["g3.ttft_p99_ratio.c8"]
    assert (guard["verdict"], guard["severity"]) == ("fail", "advisory")
    blocking = run(Truth(), small_plan(merged(plan, {"g3": {"guards": {"blocking": True}}})), edit)
    assert blocking["verdict"] == "fail"


def test_an_agreed_sla_blocks_beside_the_relative_limit():
    met = run(Truth(), small_plan({"g3": {"sla": {"ttft_p50": {"8": "100 ms"}}}}))
    missed = run(Truth(), small_plan({"g3": {"sla": {"ttft_p50": {"8": "90 ms"}}}}))
    assert (met["verdict"], missed["verdict"]) == ("pass", "fail")
    assert checks(missed)["g3.sla_ttft_p50.c8"]["verdict"] == "fail"


def test_the_interval_rule_judges_pooled_pairs_and_prints_its_bounds():
    plan = small_plan({"decision": {"rule": "interval", "pairs": 4}, "arms": {"order": ["baseline", "candidate", "candidate", "baseline"] * 2}})
    document = run(Truth(run_noise=0.004, noise=0.002), plan)
    check = checks(document)["g3.ttft_p50_drop.c8"]
    assert document["verdict"] == "pass"
    assert float(check["interval"]["low"]) < float(check["value"]) < float(check["interval"]["high"])


# -- the rig's faults: invalid, nothing is said about the product ------------------------------------------------------


def warm(rows):
    return [{**r, "resident_bytes": r["bytes"] // 2} if r["when"] == "before_tier" else r for r in rows]


def same_engine(rows):
    return [{**r, "engine_before": {k: r["engine"][k] for k in ("pid", "start_ticks")}} for r in rows]


def no_reads(rows):
    first = rows[0]
    return [{**r, "engine_io": first["engine_io"], "diskstats": first["diskstats"]} for r in rows]


def hbm(rows):
    for row in rows:
        if row["when"] == "after" and row["phase"] == "measure":
            hit, computed = (next(k for k in row["metrics"] if name in k) for name in ('local_cache_hit"', 'external_kv_transfer"'))
            row["metrics"][hit] = str(float(row["metrics"][hit]) + 5000)
            row["metrics"][computed] = str(float(row["metrics"][computed]) - 5000)
    return rows


def shorter(row):
    return {**row, "max_tokens": 32, "usage": {**row["usage"], "completion_tokens": 32}}


def other_prompts(row):
    return {**row, "prompt_sha256": row["prompt_sha256"][::-1]}


def slow_client(row):
    return {**row, "server": {"recv_ns": 1, "first_ns": 1, "send_ns": row["sent_ns"] + (row["first_text_ns"] - row["sent_ns"]) // 2}}


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
@pytest.mark.parametrize(
    ("name", "claim", "edit"),
    [
        ("coldness.jsonl", "page_cache_cold", warm),
        ("coldness.jsonl", "engine_restarted_cold", same_engine),
        ("counters.jsonl", "device_bytes", no_reads),
        ("counters.jsonl", "hbm_cold", hbm),
        ("records.jsonl", "equal_work", shorter),
        ("records.jsonl", "equal_work", other_prompts),
        ("records.jsonl", "client_healthy", slow_client),
    ],
)
def test_an_arm_that_was_not_what_it_should_be_makes_the_gate_invalid(arm, name, claim, edit):
    step = "run-1" if arm == "baseline" else "run-2"
    document = run(Truth(drop=0.5), edit=spoil(step, edit) if name == "records.jsonl" else lambda e: e.lines(step, name, edit))
    assert document["verdict"] == "invalid"
    assert claims(document)[(claim, arm)]["status"] == "breached"
    assert claims(document)[(claim, arm)]["attribution"] == "rig"
    performance = [c for c in document["checks"] if c["id"].startswith(("g3.ttft_p50", "g3.throughput"))]
    assert {c["verdict"] for c in performance} == {"invalid"}
    assert all(c["value"] is None for c in performance)


@pytest.mark.parametrize("step", ["run-1", "recompute", "placebo"])
def test_failures_outside_the_candidate_are_the_rigs(step):
    document = run(edit=spoil(step, silent_error))
    assert document["verdict"] == "invalid"


@pytest.mark.parametrize("step", ["recompute", "placebo"])
def test_recompute_and_placebo_must_recover_nothing(step):
    def edit(rows):
        for row in rows:
            if row["when"] == "after" and row["phase"] == "measure":
                hit, computed = (next(k for k in row["metrics"] if name in k) for name in ('external_kv_transfer"', 'local_compute"'))
                row["metrics"][hit], row["metrics"][computed] = "4096", str(float(row["metrics"][computed]) - 4096)
        return rows

    document = run(edit=lambda e: e.lines(step, "counters.jsonl", edit))
    assert document["verdict"] == "invalid"
    assert claims(document)[("external_hits", step)]["status"] == "breached"


def test_a_placebo_that_gains_over_recompute_is_invalid_and_a_loss_is_not():
    assert run(Truth(placebo=0.9))["verdict"] == "invalid"
    assert run(Truth(placebo=1.1))["verdict"] == "pass"


def test_a_second_pass_that_is_faster_means_that_a_cache_was_not_emptied():
    def faster(row):
        cut = (row["first_text_ns"] - row["sent_ns"]) // 8
        return {**row, "sent_ns": row["sent_ns"] + cut}

    document = run(edit=spoil("run-3", faster))
    assert claims(document)[("replay", "candidate")]["status"] == "breached"
    assert document["verdict"] == "invalid"


def test_the_array_cache_counts_only_where_the_plan_says_cold():
    def cached(rows):
        return [
            {**r, "array": {"host_read_bytes": r["array"]["host_read_bytes"], "media_read_bytes": r["array"]["media_read_bytes"] // 2}} for r in rows
        ]

    def edit(e):
        for step in CANDIDATES:
            e.lines(step, "counters.jsonl", cached)

    cold = small_plan({"arms": {"array_cache": "cold"}})
    assert run(plan=cold)["verdict"] == "pass"
    assert run(plan=cold, edit=edit)["verdict"] == "invalid"
    delivered = run(edit=edit)
    assert delivered["verdict"] == "pass"
    assert claims(delivered)[("array_cold", "candidate")]["status"] == "not_applicable"
    silent = run(plan=cold, edit=lambda e: e.lines("run-2", "counters.jsonl", lambda rows: [{**r, "array": None} for r in rows]))
    assert silent["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        (lambda arm: arm.update({"engine.max_num_seqs": 512}), "invalid"),
        (lambda arm: arm.update({"engine.tier.threads": 32}), "invalid"),
        (lambda arm: arm.update({"engine.tier.transport": "rdma"}), "pass"),
    ],
)
def test_arms_may_differ_in_the_allow_list_only(edit, verdict):
    def on_candidate(e):
        for step in (*CANDIDATES, "placebo"):
            e.json(step, "arm.json", edit)
            e.json(step, "job.json", lambda d: edit(d["arm"]))

    assert run(edit=on_candidate)["verdict"] == verdict


def test_an_engine_with_other_kv_blocks_did_not_do_equal_work():
    document = run(edit=lambda e: e.json("run-2", "engine.json", lambda d: d.update(num_gpu_blocks=640)))
    assert document["verdict"] == "invalid"
    assert "num_gpu_blocks" in claims(document)[("equal_work", "candidate")]["reason"]["en"]


def test_a_client_off_the_known_truth_is_invalid_and_an_uncalibrated_one_inconclusive():
    off = run(edit=lambda e: e.json("run-2", "client.json", lambda d: d["calibration"].update(measured_ttft_p50_ns=52_000_000)))
    none = run(edit=lambda e: e.json("run-2", "client.json", lambda d: d.update(calibration=None)))
    assert (off["verdict"], none["verdict"]) == ("invalid", "inconclusive")


@pytest.mark.parametrize("said", [False, "yes"])
def test_a_client_that_was_not_shown_to_tell_answers_apart_is_not_calibrated(said):
    found = run(edit=lambda e: e.json("run-2", "client.json", lambda d: d["calibration"].update(told_apart=said)))
    assert claims(found)["calibration", "candidate"]["status"] == "breached"
    assert found["verdict"] == "invalid"


def test_a_store_phase_with_a_failure_is_the_rigs():
    def edit(rows):
        return [
            {**r, "error": {"kind": "http", "message": ""}, "http_status": 500} if r["phase"] == "store" and r["prompt"] == 0 else r for r in rows
        ]

    document = run(edit=lambda e: e.lines("run-2", "records.jsonl", edit))
    assert document["verdict"] == "invalid"
    assert claims(document)[("store_complete", "candidate")]["status"] == "breached"


def test_a_product_fault_on_a_warm_candidate_says_nothing_about_the_product():
    def edit(e):
        on_candidates(silent_error)(e)
        e.lines("run-2", "coldness.jsonl", warm)

    document = run(edit=edit)
    assert document["verdict"] == "invalid"
    assert checks(document)["g3.candidate_failures"]["verdict"] == "invalid"


def test_what_was_agreed_not_to_be_tested_is_printed_and_does_not_decide():
    plan = small_plan({"not_tested": [{"claim": "device_bytes", "reason": "GPUDirect Storage bypasses the counters"}]})
    document = run(plan=plan, edit=lambda e: e.lines("run-2", "counters.jsonl", no_reads))
    assert document["verdict"] == "pass"
    assert [n["claim"] for n in document["not_tested"] if n.get("agreed")] == ["device_bytes"]
    assert claims(document)[("device_bytes", "candidate")]["status"] == "not_tested"


def test_renaming_the_set_or_reseeding_changes_figures_but_not_the_verdict():
    assert run(Truth(seed=2))["verdict"] == "pass"
    assert run(Truth(seed=2))["figures"] != run(Truth(seed=3))["figures"]


@pytest.mark.parametrize(
    ("receipts", "late", "expected"),
    [
        ({"kernel": 900, "loop": 0, "clock_steps": 0}, 50_000, "holds"),
        ({"kernel": 900, "loop": 0, "clock_steps": 0}, 20_000_000, "breached"),
        ({"kernel": 899, "loop": 1, "clock_steps": 0}, 50_000, "breached"),
        ({"kernel": 900, "loop": 0, "clock_steps": 1}, 50_000, "breached"),
        (None, 50_000, "unknown"),
    ],
)
def test_a_loop_that_lags_does_not_move_receipts_that_the_kernel_stamped(receipts, late, expected):
    """An engine that stamps nothing, and a loop lag of 9 ms at a TTFT of some 100 ms: more than the 2 % that the client may take."""

    def edit(e):
        unstamped("run-2")(e)
        e.json("run-2", "client.json", lambda d: lagging(d, 4_900_000, 9_000_000) or d.update(receipts=receipts))
        e.json("run-2", "client.json", lambda d: d["calibration"]["receipt"].update(late_p99_ns=late, late_max_ns=late))

    plan = small_plan({"validity": {"client_share_of_ttft_max": "0.02"}})
    assert claims(run(Truth(), plan, edit))[("client_healthy", "candidate")]["status"] == expected
