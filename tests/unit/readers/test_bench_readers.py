"""Readers of benchmark clients against files of known truth: first text at 200 ms, 20 ms a token, 16 tokens, 20 requests, 4 in flight."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from gates.importing import detect, normalise
from gates.model import Reading
from gates.readers.bench.declared import CLIENTS, NEVER_PROVEN, OWN_TITLES
from gates.readers.registry import READERS, read
from gates.rules.claim_table import TITLES
from gates.text import Text
from tests.unit.readers.seeds import FIXTURES

TRUTH_MS, WITHIN_MS = Decimal(200), Decimal(15)  # the machine, the loopback and the client add up to 15 ms
TRUE_TO_IT = [
    *(("vllm-bench", "good-plain.json"), ("vllm-bench", "good-role.json"), ("sglang-bench", "good-plain.jsonl"), ("sglang-bench", "good-role.jsonl")),
    *(("inferencex", "good-plain.json"), ("aiperf", "good-summary-plain.json"), ("aiperf", "good-summary-role.json")),
    *(("aiperf", "good-records-plain.jsonl"), ("guidellm", "good-plain.json"), ("guidellm", "good-role.json")),
    *(("lmcache-bench", "good-summary.json"), ("lmcache-bench", "good-rows.csv")),
]


def seen(tool: str, name: str) -> Reading:
    return read(tool, (FIXTURES / tool / name).read_bytes())


def value(reading: Reading, quantity: str) -> Decimal | str | None:
    found = [o.value for o in reading.observations if o.quantity == quantity]
    return found[0] if len(found) == 1 else None


def label(reading: Reading, quantity: str) -> str | None:
    return next(o.labels.get("from") for o in reading.observations if o.quantity == quantity)


def codes(reading: Reading) -> set[str]:
    return {p.code for p in reading.problems}


@pytest.mark.parametrize(("tool", "name"), TRUE_TO_IT, ids=lambda v: v)
def test_every_client_tells_the_same_run_the_same(tool: str, name: str) -> None:
    reading = seen(tool, name)
    ttft = value(reading, "ttft.p50")
    assert reading.problems == ()
    assert TRUTH_MS <= ttft <= TRUTH_MS + WITHIN_MS
    assert Decimal(105) < value(reading, "output_tokens.rate") < Decimal(128)  # 320 tokens in 2.5 s at best
    assert [value(reading, f"requests.{k}") for k in ("asked", "ok", "failed")] == [20, 20, 0]
    assert value(reading, "output_tokens.total") == 320


def test_the_median_is_that_of_the_requests_where_the_file_has_them_and_else_the_tools_own_and_says_so() -> None:
    assert label(seen("vllm-bench", "good-plain.json"), "ttft.p50") == "requests"
    assert label(seen("vllm-bench", "bad-rows_incomplete-trimmed.json"), "ttft.p50") == "tool"
    assert label(seen("inferencex", "good-plain.json"), "ttft.p50") == "tool"
    rows, own = (value(seen("lmcache-bench", name), "ttft.p50") for name in ("good-rows.csv", "good-summary.json"))
    assert rows == own.quantize(rows) or abs(rows - own) < Decimal("1e-6")


def test_the_nearest_rank_median_of_guidellm_is_replaced_by_the_mean_of_the_middle_two() -> None:
    document = json.loads((FIXTURES / "guidellm/good-plain.json").read_bytes(), parse_float=Decimal)
    ttft = sorted(r["time_to_first_token_ms"] for r in document["benchmarks"][0]["requests"]["successful"])
    reading = seen("guidellm", "good-plain.json")
    assert value(reading, "ttft.p50") == (ttft[9] + ttft[10]) / 2
    assert value(reading, "ttft.p50") != document["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]["median"]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        *(("vllm-bench", "bad-failed_requests-http500.json"), ("sglang-bench", "bad-failed_requests-http500.jsonl")),
        *(("inferencex", "bad-failed_requests-http500.json"), ("aiperf", "bad-failed_requests-http500.json")),
        *(("aiperf", "bad-failed_requests-records-http500.jsonl"), ("guidellm", "bad-failed_requests-http500.json")),
        ("lmcache-bench", "bad-failed_requests-http500.csv"),
    ],
    ids=lambda v: v,
)
def test_failed_requests_are_counted_and_their_zeros_enter_no_median(tool: str, name: str) -> None:
    reading = seen(tool, name)
    assert [value(reading, f"requests.{k}") for k in ("asked", "ok", "failed")] == [20, 16, 4]
    assert value(reading, "ttft.p50") > TRUTH_MS
    assert value(reading, "output_tokens.total") == 256
    assert codes(reading) == {"failed_requests"}


def test_an_error_inside_a_stream_is_a_failure_and_its_tokens_are_not_credited() -> None:
    reading = seen("sglang-bench", "bad-empty_streams-error-in-stream.jsonl")
    assert codes(reading) == {"empty_streams"}
    assert [value(reading, f"requests.{k}") for k in ("asked", "ok", "failed")] == [20, 16, 4]
    assert value(reading, "output_tokens.total") == 256
    assert value(reading, "output_tokens.rate") < Decimal(105)  # the client's own figure is 25 % higher


def test_a_role_chunk_taken_for_the_first_token_is_seen_with_rows_and_without() -> None:
    for tool, name in (("vllm-bench", "bad-first_token_doubtful-old-version.json"), ("inferencex", "bad-first_token_doubtful-role.json")):
        reading = seen(tool, name)
        assert codes(reading) == {"first_token_doubtful"}
        assert value(reading, "ttft.p50") < 10


def test_several_tokens_in_one_event_are_no_doubt_about_the_first_token() -> None:
    document = json.loads((FIXTURES / "vllm-bench/good-plain.json").read_bytes())
    document["itls"] = [[0.081, 0.081, 0.081] for _ in document["itls"]]
    reading = read("vllm-bench", json.dumps(document).encode())
    assert reading.problems == ()
    assert {o.labels.get("tokens_per_event") for o in reading.observations if o.quantity in ("tpot.p50", "itl.p50")} == {"4.0"}
    assert all("tokens_per_event" not in o.labels for o in seen("vllm-bench", "good-plain.json").observations)


def test_a_run_that_nobody_answered_has_no_figures() -> None:
    document = json.loads((FIXTURES / "vllm-bench/bad-failed_requests-http500.json").read_bytes())
    n = document["num_prompts"]
    document |= {"completed": 0, "failed": n, "errors": ["500"] * n, "ttfts": [0.0] * n, "output_lens": [0] * n, "total_output_tokens": 0}
    reading = read("vllm-bench", json.dumps(document).encode())
    assert {"zero_samples", "failed_requests"} <= codes(reading)
    assert value(reading, "ttft.p50") is None


def test_several_runs_in_one_file_give_no_figure() -> None:
    figures = normalise(seen("sglang-bench", "bad-several_runs-appended.jsonl"))
    assert (figures.ttft_p50_ns, figures.output_per_s, figures.tier) == (None, None, None)
    assert len(figures.missing) >= 3


def test_a_load_by_rate_belongs_to_no_tier() -> None:
    figures = normalise(seen("inference-perf", "good-stage_0.json"))
    assert figures.tier is None
    assert any("rate" in text.en for text in figures.missing)


def test_a_concurrent_stage_has_its_tier_whatever_rate_its_requests_were_queued_at() -> None:
    figures = normalise(seen("inference-perf", "good-closed-loop.json"))
    assert (figures.tier, figures.request_rate, figures.missing) == (8, None, ())


def test_every_clients_own_fixtures_are_known_as_its_and_no_others() -> None:
    for tool in CLIENTS:
        for path in (FIXTURES / tool).iterdir():
            if path.name != "bad-duplicate_key-twice.json":
                assert detect(path.read_bytes()) == tool, path.name


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"num_prompts": 1, "completed": 1}', b"a,b\n1,2\n", b"[" * 100_000])
def test_a_file_without_a_signature_is_refused_with_a_sentence(data: bytes) -> None:
    said = detect(data)
    assert isinstance(said, Text)
    assert "name the tool" in said.en


@pytest.mark.parametrize(
    ("encoding", "says", "zh"),
    [
        ("utf-8-sig", "byte order mark", "BOM"),
        ("utf-16", "UTF-16", "UTF-16"),
        ("utf-16-be", "null characters", "空字符"),
        ("utf-32", "UTF-8", "UTF-8"),
    ],
)
@pytest.mark.parametrize(("tool", "name"), [("vllm-bench", "good-plain.json"), ("sglang-bench", "good-plain.jsonl")])
def test_a_file_in_another_encoding_is_refused_for_that_and_reading_it_says_the_same(tool, name, encoding, says, zh) -> None:
    data = (FIXTURES / tool / name).read_text().encode(encoding)
    refused, read_as = detect(data), read(tool, data)
    assert isinstance(refused, Text)
    assert says in refused.en
    assert zh in refused.zh
    assert [p.message for p in read_as.problems] == [refused]
    assert read_as.observations == ()


def test_a_file_with_two_signatures_is_refused_with_both_names() -> None:
    both = {**json.loads((FIXTURES / "long-doc-qa/bad-failures_unknown-means-only.json").read_bytes()), "aiperf_version": "0.13.0"}
    said = detect(json.dumps(both).encode())
    assert isinstance(said, Text)
    assert "aiperf" in said.en
    assert "long-doc-qa" in said.en


def test_every_client_is_a_reader_and_every_claim_it_leaves_open_has_a_title() -> None:
    for client in CLIENTS.values():
        assert client.name in READERS
        assert set(client.cannot_prove) <= {*TITLES, *OWN_TITLES}
        assert set(NEVER_PROVEN) <= set(client.cannot_prove)


TRACE = b'{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n' * 2
SIMULATED = json.dumps({"requests_completed": 549, "total_storage_io_latency": 48.8, "end_to_end_latencies": [], "storage_latencies": []}).encode()


@pytest.mark.parametrize(("data", "says", "zh"), [(TRACE, "Mooncake trace", "轨迹"), (SIMULATED, "storage simulator", "存储模拟器")])
def test_what_is_known_and_no_result_of_a_client_is_refused_by_its_name(data, says, zh):
    refusal = detect(data)
    assert says in refusal.en
    assert zh in refusal.zh
