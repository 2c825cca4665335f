"""What an attempt tells beside what decides: judged where it is told, named where it is not, and never deciding."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from gates.plan import parse_plan
from tests.bundles import g2_evidence, g3_evidence, g4_evidence, soak_plan
from tests.bundles.evidence import Evidence
from tests.bundles.job import ticked
from tests.unit.gates.rig import cached
from tests.unit.gates.test_extension import plan_of


def small() -> Evidence:
    return g3_evidence(
        plan=plan_of({"decision": {"pairs": 2, "rule": "simple"}, "arms": {"order": ["baseline", "candidate", "candidate", "baseline"]}})
    )


def found(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in document["checks"] if c["id"] == name)


def left_out(document: dict[str, Any]) -> set[str]:
    return {row.get("check") for row in document["not_tested"]}


def measured(edit: Any) -> Any:
    def change(rows: list[dict[str, Any]]) -> None:
        for n, row in enumerate([r for r in rows if r["phase"] == "measure"]):
            edit(n, row)

    return change


def test_one_request_that_was_not_served_its_prefix_shows_although_the_tier_hit_nearly_all() -> None:
    whole = found(judge(small().bundle()), "g3.candidate_cached_tokens")
    assert (whole["verdict"], whole["severity"], whole["value"]) == ("pass", "advisory", "1.000000")
    lost = small().lines("run-2", "records.jsonl", measured(lambda n, r: r["usage"].update(cached_tokens=0) if n == 3 else None))
    document = judge(lost.bundle())
    missed = found(document, "g3.candidate_cached_tokens")
    assert (missed["verdict"], missed["value"]) == ("fail", "0.000000")
    assert "1 were served less than 99.00 %" in missed["reason"]["en"]
    assert document["verdict"] == judge(small().bundle())["verdict"]


def test_answers_that_do_not_tell_their_cached_tokens_are_named_and_some_that_do_not_are_no_pass() -> None:
    silent, half = small(), small()
    for step in ("run-2", "run-3"):
        silent.lines(step, "records.jsonl", measured(lambda _, r: r["usage"].pop("cached_tokens")))
    assert "g3.candidate_cached_tokens" in left_out(judge(silent.bundle()))
    half.lines("run-2", "records.jsonl", measured(lambda n, r: r["usage"].update(cached_tokens=None) if n else None))
    assert found(judge(half.bundle()), "g3.candidate_cached_tokens")["verdict"] == "inconclusive"


@pytest.mark.parametrize(("after", "verdict"), [("0", "pass"), ("2", "fail")])
def test_failures_to_store_are_counted_where_engine_or_offload_count_them(after: str, verdict: str) -> None:
    evidence = small()
    assert "g3.candidate_store_failures" in left_out(judge(evidence.bundle()))

    def count(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["offload"] = {"http://127.0.0.1:7000/metrics": {'lmcache:put_failed_count{worker="0"}': "0" if row["when"] == "before" else after}}

    evidence.lines("run-2", "counters.jsonl", count)
    told = found(judge(evidence.bundle()), "g3.candidate_store_failures")
    assert (told["verdict"], told["severity"]) == (verdict, "advisory")


@pytest.mark.parametrize(("share", "verdict"), [("0.6", "pass"), ("0.601", "fail")])
def test_the_clients_share_of_a_processor_is_held_against_the_plan_and_decides_nothing(share: str, verdict: str) -> None:
    evidence = g2_evidence()
    evidence.json(
        "run-2",
        "client.json",
        lambda d: d.update(cpu_s=float(share) * 10, wall_s=10, **ticked(1000)),
    )
    document = judge(evidence.bundle())
    assert (found(document, "g2.client_cpu")["verdict"], document["verdict"]) == (verdict, "pass")
    assert parse_plan({"validity": {"client_cpu_max": "0.7"}}).validity.client_cpu_max.is_finite()


def test_a_plan_that_keeps_the_clients_share_keeps_its_hash() -> None:
    assert "client_cpu_max" not in parse_plan().data["validity"]
    assert parse_plan({"validity": {"client_cpu_max": "0.6"}}).hash == parse_plan().hash
    assert parse_plan({"validity": {"client_cpu_max": "0.5"}}).hash != parse_plan().hash


def soak(edit: Any = lambda rows: None) -> dict[str, Any]:
    return judge(g4_evidence(plan=soak_plan()).lines("soak", "telemetry.jsonl", edit).bundle())


def test_files_of_the_tier_that_grow_without_end_are_told_and_where_nobody_sees_them_that_is_said() -> None:
    assert found(soak(), "g4.leak_kv")["verdict"] == "pass"

    def growing(rows: list[dict[str, Any]]) -> None:
        for n, row in enumerate(rows):
            row["kv_dir_bytes"] = 10**8 + n * 10**7

    grown = soak(growing)
    assert (found(grown, "g4.leak_kv")["verdict"], found(grown, "g4.leak_kv")["severity"]) == ("fail", "advisory")
    assert "g4.leak_kv" in left_out(soak(unseen))


def unseen(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["kv_dir_bytes"] = None


def test_hits_that_fade_through_the_soak_are_a_trend() -> None:
    even = found(soak(), "g4.excursion_hits")
    assert (even["verdict"], even["severity"]) == ("pass", "advisory")

    def fading(rows: list[dict[str, Any]]) -> None:
        name = next(k for k in rows[-1]["metrics"] if k.startswith("vllm:external_prefix_cache_hits_total"))
        last = int(float(rows[-1]["metrics"][name]))
        for n, row in enumerate(rows):
            x = n / (len(rows) - 1)
            row["metrics"][name] = str(int(last * (2 * x - x * x)))

    assert found(soak(fading), "g4.excursion_hits")["verdict"] == "fail"


def test_what_mends_itself_is_told_with_its_growth_and_forbidden_only_by_the_plan() -> None:
    assert "g4.watched_{name}" in left_out(soak())

    def mended(rows: list[dict[str, Any]]) -> None:
        for n, row in enumerate(rows):
            row["counters"]["ecc_corrected"] = 7 + (n > 10)

    told = found(soak(mended), "g4.watched_ecc_corrected")
    assert (told["value"], told["verdict"], told["severity"]) == ("1", "pass", "advisory")
    counters = [*soak_plan().g4.fatal_counters, "ecc_corrected"]
    forbidding = g4_evidence(plan=soak_plan({"g4": {"fatal_counters": counters}})).lines("soak", "telemetry.jsonl", mended)
    assert found(judge(forbidding.bundle()), "g4.counter_ecc_corrected")["verdict"] == "fail"


def test_a_page_cache_that_fills_up_with_what_is_read_is_shown_and_one_that_is_not_told_everywhere_is_said() -> None:
    evidence = cached(g2_evidence(), ["run-1", "run-2", "run-3"], 10**7)
    document = judge(evidence.bundle())
    assert (found(document, "g2.page_cache_growth")["verdict"], document["verdict"]) == ("fail", "pass")
    assert found(document, "g2.page_cache_growth")["severity"] == "advisory"
    evidence.lines("run-2", "counters.jsonl", lambda rows: [{k: v for k, v in row.items() if k != "page_cache"} for row in rows])
    assert found(judge(evidence.bundle()), "g2.page_cache_growth")["verdict"] == "inconclusive"
    assert "g2.page_cache_growth" in {row.get("check") for row in judge(g2_evidence().bundle())["not_tested"]}
