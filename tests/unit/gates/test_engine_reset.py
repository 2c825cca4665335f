"""An engine that was reset in place of restarted: cold only with the whole proof, of which nothing can be taken away."""

import pytest

from tests.unit.gates.test_g3 import claims, run, same_engine

PROOF = {"url": "http://127.0.0.1:1/reset_prefix_cache", "success": True, "kv_cache_usage": "0.0", "hits_before": "512", "hits_after": "0"}


def by_reset(step, told="reset", asked=None, **change):
    """Let a run be one whose engine was reset in place of restarted, with this proof."""

    def apply(e):
        e.json(step, "job.json", lambda d: {**d, "phases": {"cool": told, **(asked or {})}})
        proof = {key: value for key, value in {**PROOF, **change}.items() if value != "gone"}
        e.lines(step, "coldness.jsonl", lambda rows: [{**r, **({"reset": proof} if r["when"] == "after_cool" else {})} for r in same_engine(rows)])

    return apply


def test_a_reset_with_its_proof_is_as_good_as_a_restart():
    document = run(edit=by_reset("run-1"))
    claim = claims(document)[("engine_restarted_cold", "baseline")]
    assert (document["verdict"], claim["status"]) == ("pass", "holds")
    assert "reset for each run, shown empty" in claim["reason"]["en"] or "started for each run" in claim["reason"]["en"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"success": False}, "breached"),
        ({"kv_cache_usage": "0.01"}, "breached"),
        ({"hits_after": "64"}, "breached"),
        ({"told": True}, "breached"),
        ({"success": "gone"}, "unknown"),
        ({"success": "true"}, "unknown"),
        ({"kv_cache_usage": None}, "unknown"),
        ({"hits_before": "0"}, "unknown"),
        ({"hits_before": "gone"}, "unknown"),
        ({"hits_after": None}, "unknown"),
    ],
)
def test_a_reset_with_any_fact_less_proves_nothing(change, status):
    document = run(edit=by_reset("run-1", **change))
    assert claims(document)[("engine_restarted_cold", "baseline")]["status"] == status
    assert document["verdict"] in ("invalid", "inconclusive")


@pytest.mark.parametrize(("hits", "status"), [("0", "holds"), ("64", "breached"), (None, "unknown")])
def test_the_canary_behind_a_reset_finds_nothing_in_the_gpu_cache(hits, status):
    def edit(e):
        by_reset("run-1", hits_after=None)(e)
        canary = {"stored": {"local_hit_tokens": hits}, "new": {"local_hit_tokens": "0"}}
        e.lines("run-1", "phases.jsonl", lambda rows: [*rows, {**rows[0], "phase": "canary", "detail": canary}], renumber=True)

    assert claims(run(edit=edit))[("engine_restarted_cold", "baseline")]["status"] == status


@pytest.mark.parametrize("gone", ["stored", "new", "canary"])
def test_a_canary_that_the_job_asked_for_and_that_is_gone_proves_nothing(gone):
    def edit(e):
        by_reset("run-1", asked={"canary": True, "expect_hits": True})(e)
        canary = {name: {"local_hit_tokens": "0"} for name in ("stored", "new") if name != gone}
        if gone != "canary":
            e.lines("run-1", "phases.jsonl", lambda rows: [*rows, {**rows[0], "phase": "canary", "detail": canary}], renumber=True)

    assert claims(run(edit=edit))[("engine_restarted_cold", "baseline")]["status"] == "unknown"
