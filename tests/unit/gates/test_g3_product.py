"""G3: the product's own faults are a fail, each by a check of its own, and nothing that explains them is called the rig's."""

import pytest

from tests.bundles import Truth, small_plan
from tests.unit.gates.test_g3 import CANDIDATES, checks, claims, on_candidates, run, silent_error


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
