"""LMCache's benchmarks: `lmcache bench engine` (bench_summary.json, or bench_results.csv with a row a request), and long_doc_qa.py.

Both take times from the wall clock. `lmcache bench` writes a TTFT of -1 for a failed request. long_doc_qa writes means only, and averages a request
without output in with 0 s, so failures cannot be told apart.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.bench.documents import documents, table
from gates.readers.bench.figures import BenchRun, Request, emit
from gates.readers.bench.values import most_in_flight, take, word
from gates.readers.bench.vllm import each_run
from gates.readers.common import Collector, exact

_NEEDED = ("successful", "ttft", "num_input_tokens", "num_output_tokens", "submit_time", "finish_time")
_LONG_DOC = (
    ("query_ttft_per_prompt", "ttft.mean"),
    ("query_round_time_per_prompt", "round.time_per_prompt"),
    ("warmup_round_time_per_prompt", "warmup.time_per_prompt"),
)


def read_lmcache_bench(data: bytes) -> Reading:
    """Read the summary or the CSV of `lmcache bench engine`."""
    found = Collector()
    if data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"request_id,"):
        _csv(data, found)
        return found.reading()
    for document, labels in each_run(found, documents(data, found)):
        if not isinstance(document.get("results"), dict):
            found.trouble("unknown_shape", "The object `results` is missing.", "缺少 results 对象。")
            continue
        emit(_summary(document, found), found, labels)
    return found.reading()


def read_long_doc_qa(data: bytes) -> Reading:
    """Read the result of long_doc_qa.py: means only, in seconds."""
    found = Collector()
    for document, labels in each_run(found, documents(data, found)):
        for key, quantity in _LONG_DOC:
            value = take(document, key, found, scale=1000)
            if value is not None:
                found.see(quantity, value, "ms", **{"from": "tool"}, **labels)
        found.trouble(
            "failures_unknown",
            "long_doc_qa counts no failures and averages a request without output in with 0 s; it writes no median either.",
            "long_doc_qa 不统计失败，无输出的请求按 0 秒计入均值；也不输出中位数。",
        )
    return found.reading()


def _summary(document: dict[str, Any], found: Collector) -> BenchRun:
    results, config = document["results"], document.get("config")
    return BenchRun(
        model=word(config, "model"),
        endpoint=word(config, "workload"),
        concurrency=take(config, "max_inflight_requests", found, needed=False),
        asked=take(results, "total_requests", found),
        ok=take(results, "successful_requests", found),
        failed=take(results, "failed_requests", found),
        input_total=take(results, "total_input_tokens", found),
        output_total=take(results, "total_output_tokens", found),
        duration=take(results, "elapsed_time", found),
        output_rate=take(results, "output_throughput", found, needed=False),
        rates={"input": take(results, "input_throughput", found, needed=False)},
        figures={
            "ttft.p50": take(results, "p50_ttft_ms", found),
            "e2e.mean": take(results, "mean_request_latency_ms", found, needed=False),
            "ttft.mean": take(results, "mean_ttft_ms", found, needed=False),
            "ttft.p99": take(results, "p99_ttft_ms", found, needed=False),
        },
    )


def _csv(data: bytes, found: Collector) -> None:
    rows = table(data, found)
    absent = [name for name in _NEEDED if rows and name not in rows[0]]
    if absent:
        found.trouble("missing_field", "Columns are missing: {names}.", "缺少列：{names}。", names=", ".join(absent))
    if not rows:
        if not found.problems:
            found.trouble("zero_samples", "The file holds no request.", "文件中没有任何请求。")
        return
    if absent:
        return
    known = {"True": True, "False": False}
    times = [(exact(r["submit_time"]), exact(r["finish_time"])) for r in rows if r["successful"] == "True"]
    spans = [(a, b) for a, b in times if a is not None and b is not None and a <= b]
    odd = sum(r["successful"] not in known for r in rows) + len(times) - len(spans)
    if odd:
        found.trouble("not_a_number", "{n} rows have no readable outcome or times.", "有 {n} 行缺少可读的结果或时间。", n=odd)
        return
    listed = [Request(known[r["successful"]], _ms(r["ttft"]), exact(r["num_input_tokens"]), exact(r["num_output_tokens"])) for r in rows]
    emit(
        BenchRun(
            requests=listed,
            asked=Decimal(len(listed)),
            concurrency=most_in_flight(spans),
            duration=max(b for _, b in spans) - min(a for a, _ in spans) if spans else None,
        ),
        found,
    )


def _ms(text: str) -> Decimal | None:
    value = exact(text)
    return None if value is None else value * 1000
