"""A whole job on an engine that speaks as SGLang does: the probe brings home what the judgement asks for, whatever the engine calls it."""

import json
from decimal import Decimal

import pytest

from gates.engine_counters import OWN_HITS, STORED_TOKENS, TIER_HITS
from gates.readers.prometheus import growth, sources
from gates.rules.engine import IDENTITY, settings_of
from lanes.probe.test_probe_run import PHASES, place, run, with_lab  # noqa: F401 - a fixture
from tests.unit.probe.kit import lines, probe

REQUESTS, CONTEXT, PROMPT = {2: 6, 4: 8}, 512, 528
DECLARED = {"kv_bytes_per_token": 256}


@pytest.mark.parametrize("cool", [True, "reset"])
def test_a_run_on_sglang_is_cooled_and_its_tokens_are_accounted_for(place, cool):  # noqa: F811
    spec = with_lab(place, f"g3-{cool}", lab={"dialect": "sglang"}, phases={**PHASES, "cool": cool})
    idle = {"families": ["sglang:backuped_tokens"], "still_s": 0.1, "files": True}
    spec["engine"].update(declared=DECLARED, idle=idle, reset="/flush_cache")
    probe(place / "probe.pyz", "engine", "start", "--spec", place / "engine-spec.json")
    folder, end = run(place, spec)
    assert (end["outcome"], end["error"]) == ("done", None), (folder / "job.log").read_text()
    assert all(p["ok"] for p in lines(folder / "phases.jsonl")), lines(folder / "phases.jsonl")

    engine = json.loads((folder / "engine.json").read_text())
    assert not [key for key in IDENTITY if engine[key] is None]
    assert (engine["num_gpu_blocks"], engine["block_tokens"], engine["version"][:4]) == (640, 64, "lab-")
    assert not {"api_key", "nccl_port", "internal_states", "startup_time"} & set(settings_of(engine))  # secrets, and what no two starts have alike
    assert settings_of(engine)["hicache_storage_backend"] == "file"

    counters = lines(folder / "counters.jsonl")
    pages = {(row["when"], row["phase"], row["tier"]): row["metrics"] for row in counters}
    for tier, requests in REQUESTS.items():
        found = sources(pages["before", "measure", tier], pages["after", "measure", tier], engine["metrics_names"])
        assert found is not None
        assert (found.total, found.hbm, found.host, found.external) == (requests * PROMPT, 0, 0, requests * CONTEXT)
        assert growth(pages["before", "measure", tier], pages["after", "measure", tier], TIER_HITS) == requests * CONTEXT
        assert growth(pages["before", "measure", tier], pages["after", "measure", tier], OWN_HITS) == 0
    assert growth(pages["before", "store", None], pages["after", "store", None], STORED_TOKENS, absent=Decimal(0)) == 15 * CONTEXT

    cold = [row for row in lines(folder / "coldness.jsonl") if row["when"] == "after_cool"]
    canary = next(p for p in lines(folder / "phases.jsonl") if p["phase"] == "canary")["detail"]
    assert (canary["stored"]["external_hit_tokens"], canary["stored"]["local_hit_tokens"]) == ("512.0", "0.0")
    if cool == "reset":
        assert all((row["reset"]["success"], row["reset"]["kv_cache_usage"]) == (True, "0.0") for row in cold)
        assert Decimal(cold[0]["reset"]["hits_before"]) > 0
