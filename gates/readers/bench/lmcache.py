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
SAME_CLOCK, SAME_PART = Decimal("0.001"), Decimal("0.01")  # s, and as a part: the two are read one after the other
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
    ok, output_total = take(results, "successful_requests", found), take(results, "total_output_tokens", found)
    speed = take(results, "mean_decode_speed", found, needed=False)  # all tokens of an answer over its decode time
    return BenchRun(
        model=word(config, "model"),
        endpoint=word(config, "workload"),
        concurrency=take(config, "max_inflight_requests", found, needed=False),
        asked=take(results, "total_requests", found),
        ok=ok,
        failed=take(results, "failed_requests", found),
        input_total=take(results, "total_input_tokens", found),
        output_total=output_total,
        duration=take(results, "elapsed_time", found),
        output_rate=take(results, "output_throughput", found, needed=False),
        rates={"input": take(results, "input_throughput", found, needed=False)},
        figures={
            "ttft.p50": take(results, "p50_ttft_ms", found),
            "e2e.mean": take(results, "mean_request_latency_ms", found, needed=False),
            "ttft.mean": take(results, "mean_ttft_ms", found, needed=False),
            "ttft.p99": take(results, "p99_ttft_ms", found, needed=False),
            "decode.mean": output_total / ok / speed * 1000 if ok and output_total and speed else None,
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
    listed = [_request(r, ok=known[r["successful"]]) for r in rows]
    _first_token_times(rows, found)
    emit(
        BenchRun(
            requests=listed,
            asked=Decimal(len(listed)),
            concurrency=most_in_flight(spans),
            duration=max(b for _, b in spans) - min(a for a, _ in spans) if spans else None,
        ),
        found,
    )


def _request(row: dict[str, str], *, ok: bool) -> Request:
    start, end = exact(row["submit_time"]), exact(row["finish_time"])
    took = (end - start) * 1000 if start is not None and end is not None else None
    return Request(ok, _ms(row["ttft"]), exact(row["num_input_tokens"]), exact(row["num_output_tokens"]), e2e=took)


def _first_token_times(rows: list[dict[str, str]], found: Collector) -> None:
    """Add the problem `statistics_conflict` where a TTFT is not the time from submission to the first token of its own row."""
    timed = [(exact(r.get("first_token_time")), exact(r["submit_time"]), exact(r["ttft"])) for r in rows if r["successful"] == "True"]
    known = [(first - start, ttft) for first, start, ttft in timed if first is not None and start is not None and ttft is not None]
    wrong = [(span, ttft) for span, ttft in known if abs(span - ttft) > SAME_CLOCK + SAME_PART * abs(span)]
    if wrong:
        found.trouble(
            "statistics_conflict",
            "{n} rows say a TTFT that is not first_token_time - submit_time: {a} s and {b} s in the first of them.",
            "有 {n} 行的 TTFT 不等于 first_token_time - submit_time：首个为 {a} 秒与 {b} 秒。",
            n=len(wrong),
            a=format(wrong[0][1], ".6f"),
            b=format(wrong[0][0], ".6f"),
        )


def _ms(text: str) -> Decimal | None:
    value = exact(text)
    return None if value is None else value * 1000
