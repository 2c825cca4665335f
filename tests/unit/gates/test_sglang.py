"""A run on SGLang is judged by SGLang's own counters: as strictly as one on vLLM, and what they do not show is never taken for shown."""

import copy
from decimal import Decimal

import pytest

from gates.engine_counters import SERIES, STORED_TOKENS
from gates.judge import judge
from gates.readers.prometheus import amount, exposes, sources
from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, sglang

SGLANG = Truth(engine="sglang")
PAGE = 4096  # tokens


def page(computed=0, device=0, host=0, storage=0, prompt=None, **by_request):
    """Return a page whose account by requests agrees with the ledger unless told otherwise."""
    cached = {"device": device, "host": host, "storage": storage, **by_request}
    told = {sglang.ledger("input"): computed, sglang.ledger("device_hit"): device, sglang.ledger("host_hit"): host}
    told |= {sglang.ledger("storage_hit"): storage, sglang.PROMPT: computed + device + host + storage if prompt is None else prompt}
    told |= {sglang.cached(source): count for source, count in cached.items() if count}
    return {series: f"{count}.0" for series, count in told.items()}


NAMES = tuple({series.partition("{")[0] for series in page(storage=1)})


def test_the_ledger_is_the_account_and_host_memory_is_no_external_tier():
    found = sources(page(), page(computed=100, device=10, host=20, storage=870), NAMES)
    assert (found.total, found.computed, found.hbm, found.host, found.external) == tuple(map(Decimal, (1000, 100, 10, 20, 870)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (page(), page(computed=100, storage=900, prompt=1001)),  # a token that the ledger does not have: somebody else's request, a look at /health
        (page(), page(computed=100, storage=900) | {sglang.cached("storage"): "899.0"}),  # the tokenizer saw another cache than the scheduler
        (page(), page(computed=100, storage=900) | {sglang.cached("device"): "1.0"}),
        (page(), {series: count for series, count in page(computed=100, storage=900).items() if "cached_tokens" not in series}),
        (page(), {series: count for series, count in page(computed=100, storage=900).items() if "prefill_effective" not in series}),
        (page(), page(computed=100, storage=900) | {sglang.ledger("device_hit"): "NaN"}),
        (page(storage=900), page(computed=100, storage=899)),  # another process
        (page(), page(computed=100, storage=900) | {"vllm:prompt_tokens_total": "1000"}),  # of two engines: whose is it
    ],
)
def test_an_account_that_does_not_close_is_none(before, after):
    assert sources(before, after, NAMES) is None


def test_tokens_of_a_second_pipeline_stage_are_not_counted_twice():
    second = {series.replace('pp_rank="0"', 'pp_rank="1"'): count for series, count in page(computed=100, storage=900).items() if "pp_rank" in series}
    found = sources(page(), page(computed=100, storage=900) | second, NAMES)
    assert (found.total, found.external) == (1000, 900)


def test_several_instances_add_up():
    one = page(computed=100, storage=900)
    both = {series.replace("{", f'{{instance="{n}",', 1): count for n in (0, 1) for series, count in one.items()}
    assert sources(dict.fromkeys(both, "0.0"), both, NAMES).external == 1800


def test_what_an_engine_has_no_counter_for_is_not_told():
    assert amount(page(storage=1), "store_bytes") is None
    assert not exposes(NAMES, STORED_TOKENS)
    assert {engine for engine in SERIES if STORED_TOKENS in SERIES[engine]} == {"sglang"}


@pytest.fixture(scope="module")
def whole():
    return g3_evidence(SGLANG)


def judged(whole, *edits):
    evidence = copy.copy(whole)
    evidence.files = dict(whole.files)
    for edit in edits:
        edit(evidence)
    document = judge(evidence.bundle())
    return document, {(c["claim"], c["arm"]): c for c in document["claims"]}


def counted(step, change, phase="measure"):
    """Change the pages behind each phase of a run; with `change` None the series that hold a word are gone from all of them."""

    def edit(rows):
        for row in rows:
            if isinstance(change, str):
                row["metrics"] = {series: count for series, count in row["metrics"].items() if change not in series}
            elif row["phase"] == phase and row["when"] == "after":
                row["metrics"] = change(row["metrics"])

    def apply(evidence):
        evidence.lines(step, "counters.jsonl", edit)
        names = sorted({series.partition("{")[0] for row in evidence.rows(step, "counters.jsonl") for series in row["metrics"]})
        evidence.json(step, "engine.json", lambda told: told.update(metrics_names=names))

    return apply


def moved(mode, source, tokens):
    """Let tokens have come from elsewhere than the storage, by both accounts."""

    def change(metrics):
        out = dict(metrics)
        for series, grown in ((sglang.ledger("storage_hit"), -tokens), (sglang.cached("storage"), -tokens), (sglang.ledger(mode), tokens)):
            out[series] = str(Decimal(out[series]) + grown)
        out[sglang.cached(source)] = str(Decimal(out.get(sglang.cached(source), 0)) + tokens)
        return out

    return change


def test_a_g3_on_sglang_passes_and_every_claim_holds(whole):
    document, _ = judged(whole)
    assert (document["verdict"], document["because"]) == ("pass", [])
    assert {c["status"] for c in document["claims"]} == {"holds", "not_applicable"}


@pytest.mark.parametrize(("mode", "source", "where"), [("device_hit", "device", "GPU cache"), ("host_hit", "host", "host memory")])
def test_a_candidate_that_was_served_from_its_own_caches_is_invalid_and_not_the_products_fault(whole, mode, source, where):
    document, claims = judged(whole, counted("run-2", moved(mode, source, 20 * PAGE)))
    claim = claims[("hbm_cold", "candidate")]
    assert (document["verdict"], claim["status"], claim["attribution"]) == ("invalid", "breached", "rig")
    assert where in claim["reason"]["en"]


def test_an_engine_without_the_ledger_proves_nothing_and_the_sentence_names_what_is_missing(whole):
    document, claims = judged(whole, counted("run-2", "prefill_effective_tokens"))
    assert document["verdict"] == "inconclusive"
    for claim in ("hbm_cold", "external_hits"):
        assert claims[(claim, "candidate")]["status"] == "unknown"
        assert "sglang:prefill_effective_tokens_total" in claims[(claim, "candidate")]["reason"]["en"]


def test_kv_that_was_found_and_not_loaded_is_the_products(whole):
    failed = counted("run-2", lambda metrics: metrics | {sglang.lost("storage_transfer"): "64.0"})
    document, _ = judged(whole, failed)
    check = next(c for c in document["checks"] if c["id"].startswith("g3.candidate_kv_load_errors"))
    assert (document["verdict"], check["verdict"]) == ("fail", "fail")
    assert "192 tokens" in check["reason"]["en"]


@pytest.mark.parametrize(
    ("change", "status"),
    [(lambda m: {s: str(Decimal(c) / 2) if "backuped" in s else c for s, c in m.items()}, "breached"), ("backuped", "unknown")],
)
def test_a_store_phase_is_held_to_the_tokens_that_hicache_says_it_wrote(whole, change, status):
    document, claims = judged(whole, counted("run-2", change, phase="store"))
    assert claims[("store_complete", "candidate")]["status"] == status
    assert document["verdict"] in ("invalid", "inconclusive")


def test_g2_and_g4_are_judged_by_the_same_counters():
    assert judge(g2_evidence(SGLANG).bundle())["verdict"] == "pass"
    soak = judge(g4_evidence(SGLANG).bundle())
    assert {c["claim"]: c["status"] for c in soak["claims"] if c["claim"] in ("tier_exercised", "requests_accounted")} == {
        "tier_exercised": "holds",
        "requests_accounted": "holds",
    }
