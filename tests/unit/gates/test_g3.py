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


# -- the product's own faults: fail ---------------------------------------------------------------------------------


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


def unlabelled_empty_stream(row):
    return row if row["prompt"] % 10 else {**row, "first_text_ns": None, "error": None}


def corrupt(row):
    return row if row["prompt"] % 2 else {**row, "output_sha256": "f" * 64}


def rarely_corrupt(row):
    return row if row["prompt"] % 10 else corrupt(row)


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        (on_candidates(silent_error), "g3.candidate_failures"),
        (on_candidates(unlabelled_empty_stream), "g3.candidate_failures"),
        (on_candidates(corrupt), "g3.candidate_output_identity"),
    ],
)
def test_faults_of_the_candidate_are_a_fail_and_never_counted_as_fast(edit, check):
    document = run(edit=edit)
    assert document["verdict"] == "fail"
    assert checks(document)[check]["verdict"] == "fail"
    if check == "g3.candidate_failures":
        assert checks(document)["g3.ttft_p50_drop.c8"]["verdict"] == "inconclusive"


def lose(share, *, unread=None, failing="0"):
    """Move a share of the recovered tokens to recomputation, in the candidate's counters; `unread`: another share of the bytes that were not read."""

    def edit(rows):
        for row in rows:
            if row["phase"] != "measure" or row["when"] != "after":
                continue
            before = next(r for r in rows if r["phase"] == "measure" and r["tier"] == row["tier"] and r["when"] == "before")
            hit = next(k for k in row["metrics"] if 'external_kv_transfer"' in k)
            computed = next(k for k in row["metrics"] if 'local_compute"' in k)
            lost = int((float(row["metrics"][hit]) - float(before["metrics"][hit])) * share)
            row["metrics"][hit] = str(float(row["metrics"][hit]) - lost)
            row["metrics"][computed] = str(float(row["metrics"][computed]) + lost)
            less = lost if unread is None else int((float(row["metrics"][hit]) + lost - float(before["metrics"][hit])) * unread)
            row["engine_io"]["read_bytes"] -= less * 16
            row["diskstats"]["read_sectors"] -= less * 16 // 512
            row["metrics"] = {k: (failing if "load_failures" in k else v) for k, v in row["metrics"].items()}
        return rows

    return edit


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_kv_that_was_stored_and_not_recovered_is_the_products_fault(share):
    document = run(edit=lambda e: [e.lines(step, "counters.jsonl", lose(share)) for step in CANDIDATES])
    assert document["verdict"] == "fail"
    assert checks(document)["g3.candidate_external_hits"]["verdict"] == "fail"
    assert claims(document)[("external_hits", "candidate")]["attribution"] == "product"


def test_failed_kv_loads_are_the_products_fault():
    def edit(rows):
        for row in rows:
            if row["when"] == "after" and row["phase"] == "measure":
                row["metrics"] = {k: ("3" if "load_failures" in k else v) for k, v in row["metrics"].items()}
        return rows

    document = run(edit=lambda e: e.lines("run-2", "counters.jsonl", edit))
    assert checks(document)["g3.candidate_kv_load_errors"]["verdict"] == "fail"
    assert document["verdict"] == "fail"


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        (lose(0.3, unread=0.0), "g3.candidate_external_hits"),  # read whole, then not used
        (lose(0.0, unread=0.1, failing="3"), "g3.candidate_kv_load_errors"),  # counted as found, and not loaded
    ],
)
def test_bytes_that_a_fault_of_the_product_explains_are_no_fault_of_the_rig(edit, check):
    document = run(edit=lambda e: [e.lines(step, "counters.jsonl", edit) for step in CANDIDATES])
    assert (document["verdict"], checks(document)[check]["verdict"]) == ("fail", "fail")


@pytest.mark.parametrize("edit", [lose(0.0, unread=0.1), lose(0.3, unread=-1.0)])
def test_bytes_that_no_fault_of_the_product_explains_still_make_the_measurement_invalid(edit):
    document = run(edit=lambda e: [e.lines(step, "counters.jsonl", edit) for step in CANDIDATES])
    assert (document["verdict"], claims(document)[("device_bytes", "candidate")]["status"]) == ("invalid", "breached")


def instead_of_the_labs(place):
    """Return an edit of counters: the engine has the counter of the simulated one no more, and `place` puts another into the last rows."""

    def edit(rows):
        for row in rows:
            row["metrics"] = {k: v for k, v in row["metrics"].items() if "load_failures" not in k}
            if row["when"] == "after" and row["phase"] == "measure":
                place(row)
        return rows

    return edit


def nameless(engine):
    return {**engine, "metrics_names": [name for name in engine["metrics_names"] if "load_failures" not in name]}


@pytest.mark.parametrize(
    "place",
    [
        lambda row: row["metrics"].update({'vllm:kv_offload_tiering_promotion_job_failures_total{tier="1:fs"}': "14.0"}),
        lambda row: row.update(offload={"http://127.0.0.1:9000/metrics": {"lmcache:get_blocking_failed_count": "14"}}),
    ],
)
def test_a_failed_load_that_vllms_tier_or_the_offload_counts_is_one_too_and_the_counter_may_come_with_it(place):
    def edit(e):
        for step in CANDIDATES:
            e.lines(step, "counters.jsonl", instead_of_the_labs(place if step == CANDIDATES[1] else lambda row: None))
            e.json(step, "engine.json", nameless)

    check = checks(run(edit=edit))["g3.candidate_kv_load_errors"]
    assert (check["verdict"], check["severity"], check["value"]) == ("fail", "blocking", "42")
    assert "14" not in check["reason"]["en"]
    assert "failed" in check["reason"]["en"]


def test_only_an_engine_without_any_such_counter_is_told_to_have_none():
    def edit(e):
        for step in CANDIDATES:
            e.lines(step, "counters.jsonl", instead_of_the_labs(lambda row: None))

    gone = checks(run(edit=edit))["g3.candidate_kv_load_errors"]
    assert gone["verdict"] == "inconclusive"  # engine.json still names it
    none = checks(run(edit=lambda e: (edit(e), [e.json(step, "engine.json", nameless) for step in CANDIDATES])))["g3.candidate_kv_load_errors"]
    assert (none["verdict"], none["severity"]) == ("pass", "advisory")


def test_outputs_within_the_engines_own_noise_are_not_held_against_the_product():
    noisy = run(Truth(noise_floor=0.15), small_plan({"workload": {"identity_repeats": 24}}), on_candidates(rarely_corrupt))
    assert checks(noisy)["g3.candidate_output_identity"]["verdict"] == "pass"


def test_one_broken_tier_is_not_hidden_by_the_sound_ones():
    def wrong_at_c2(row):
        wrong = row["phase"] == "measure" and row["tier"] == 2 and row["prompt"] < 10
        return {**row, "output_sha256": "f" * 64} if wrong else row

    # 10 of the 96 outputs of a run, which the noise might explain that 8 repeats leave open, and 10 of the 24 at c2
    document = run(edit=on_candidates(wrong_at_c2))
    check = checks(document)["g3.candidate_output_identity"]
    assert (document["verdict"], check["verdict"], check["tier"]) == ("fail", "fail", 2)


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
