"""GuideLLM `benchmarks.json` (metadata.version 2).

Its clock is the wall clock. Its percentiles are nearest-rank, so p50 is taken from the rows. `time_per_output_token_ms` includes TTFT and is not
read; `inter_token_latency_ms` is what others call TPOT. Its `output_tokens_per_second` is a time-weighted distribution: only the mean is a
throughput.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.bench.documents import documents
from gates.readers.bench.figures import BenchRun, Request, emit
from gates.readers.bench.values import take, word
from gates.readers.bench.vllm import each_run
from gates.readers.common import Collector, exact, part, rows

KNOWN_VERSION = Decimal(2)
SLACK = Decimal("0.005")  # its rates are means weighted with time, not amount / duration
_OPEN_LOOP = ("constant", "poisson")


def read_guidellm(data: bytes) -> Reading:
    """Read one benchmark of `guidellm benchmark --outputs json`."""
    found = Collector()
    for document, labels in each_run(found, documents(data, found)):
        _document(document, found, labels)
    return found.reading()


def _document(document: dict[str, Any], found: Collector, labels: dict[str, str]) -> None:
    if exact(part(document, "metadata", "version")) != KNOWN_VERSION:
        found.trouble(
            "unknown_version",
            "metadata.version is {v}; this reader knows 2 only, and does not guess.",
            "metadata.version 为 {v}；本读取器只认识 2，不作猜测。",
            v=part(document, "metadata", "version"),
        )
        return
    benchmarks = document.get("benchmarks")
    if not isinstance(benchmarks, list) or not benchmarks:
        found.trouble("zero_samples", "The file holds no benchmark.", "文件中没有任何基准测试。")
        return
    for benchmark, own in each_run(found, benchmarks):
        emit(_run(benchmark, word(part(document, "metadata"), "guidellm_version"), found), found, {**labels, **own})


def _run(benchmark: dict[str, Any], version: str | None, found: Collector) -> BenchRun:
    strategy, metrics = part(benchmark, "config", "strategy"), benchmark.get("metrics")
    totals = part(metrics, "request_totals")
    kind = word(strategy, "type_")
    good, bad = (rows(benchmark.get("requests"), key) for key in ("successful", "errored"))
    cut = rows(benchmark.get("requests"), "incomplete")
    listed = [*(_request(r, ok=True) for r in good), *(Request(False) for _ in (*bad, *cut))]
    incomplete = take(totals, "incomplete", found, needed=False) or Decimal(0)
    if incomplete:
        found.trouble("not_finished", "{n} requests were cut off by the end of the run.", "有 {n} 个请求因测试结束而被中断。", n=incomplete)
    errored = take(totals, "errored", found)
    return BenchRun(
        version=version,
        model=word(part(benchmark, "config", "backend"), "model"),
        endpoint=word(part(benchmark, "config", "backend"), "request_format"),
        concurrency=Decimal(1) if kind == "synchronous" else take(strategy, "max_concurrency", found, needed=False) if kind == "concurrent" else None,
        request_rate=take(strategy, "rate", found, needed=False) if kind in _OPEN_LOOP else None,
        asked=take(totals, "total", found),
        ok=take(totals, "successful", found),
        failed=None if errored is None else errored + incomplete,
        input_total=take(part(metrics, "prompt_token_count", "successful"), "total_sum", found, needed=False),
        output_total=take(part(metrics, "output_token_count", "successful"), "total_sum", found, needed=False),
        duration=take(benchmark, "duration", found),
        output_rate=take(part(metrics, "output_tokens_per_second", "successful"), "mean", found, needed=False),
        rates={"requests": take(part(metrics, "requests_per_second", "successful"), "mean", found, needed=False)},
        slack=SLACK,
        figures={
            "ttft.p50": take(part(metrics, "time_to_first_token_ms", "successful"), "median", found, needed=not good),
            "ttft.mean": take(part(metrics, "time_to_first_token_ms", "successful"), "mean", found, needed=False),
            "e2e.mean": take(part(metrics, "request_latency", "successful"), "mean", found, scale=1000, needed=False),
            "ttft.p99": take(part(metrics, "time_to_first_token_ms", "successful", "percentiles"), "p99", found, needed=False),
            "tpot.p50": take(part(metrics, "inter_token_latency_ms", "successful"), "median", found, needed=False),
            "tpot.mean": take(part(metrics, "inter_token_latency_ms", "successful"), "mean", found, needed=False),
        },
        requests=listed,
        linear=False,
    )


def _request(row: dict[str, Any], *, ok: bool) -> Request:
    ttft, asked, given = (exact(row.get(key)) for key in ("time_to_first_token_ms", "prompt_tokens", "output_tokens"))
    took = exact(row.get("request_latency"))
    return Request(ok, ttft, asked, given, e2e=None if took is None else took * 1000)
