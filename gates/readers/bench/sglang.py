"""SGLang `bench_serving` result lines (one object a run; rows with --output-details).

Every stream that answers HTTP 200 counts as a success, and one without usage is credited with the tokens that were asked for: an error inside the
stream reads as a request with TTFT 0 and full output. Without the rows of --output-details it cannot be seen at all.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.bench.documents import documents
from gates.readers.bench.figures import BenchRun, emit
from gates.readers.bench.values import take, word
from gates.readers.bench.vllm import detailed, each_run
from gates.readers.common import Collector


def read_sglang_bench(data: bytes) -> Reading:
    """Read one run of `python -m sglang.bench_serving --output-file`."""
    found = Collector()
    for document, labels in each_run(found, documents(data, found)):
        if "completed" not in document and "total_output_tokens" not in document:
            found.trouble(
                "unknown_shape", "Neither completed nor total_output_tokens stands in the file.", "文件中没有 completed 或 total_output_tokens。"
            )
            continue
        emit(_run(document, found), found, labels)
    return found.reading()


def _run(document: dict[str, Any], found: Collector) -> BenchRun:
    rate = document.get("request_rate")
    rows = detailed(document, found)
    return BenchRun(
        model=_model(document),
        endpoint=word(document, "backend"),
        tokenizer=word(document, "tokenizer_id") or word(document.get("server_info"), "tokenizer_path"),
        concurrency=take(document, "max_concurrency", found, needed=False),
        request_rate=None if rate in ("inf", "Infinity") else take(document, "request_rate", found, needed=False),
        asked=Decimal(len(rows)) if rows else None,  # the summary does not say how many were asked
        ok=take(document, "completed", found),
        input_total=take(document, "total_input_tokens", found),
        output_total=take(document, "total_output_tokens", found),
        duration=take(document, "duration", found),
        output_rate=take(document, "output_throughput", found, needed=False),
        rates={
            "requests": take(document, "request_throughput", found, needed=False),
            "input": take(document, "input_throughput", found, needed=False),
            "total": take(document, "total_throughput", found, needed=False),
        },
        figures={
            "ttft.p50": take(document, "median_ttft_ms", found, needed=rows is None),
            "ttft.mean": take(document, "mean_ttft_ms", found, needed=False),
            "ttft.p99": take(document, "p99_ttft_ms", found, needed=False),
            "tpot.p50": take(document, "median_tpot_ms", found, needed=False),
            "tpot.mean": take(document, "mean_tpot_ms", found, needed=False),
            "itl.p50": take(document, "median_itl_ms", found, needed=False),
            "e2e.mean": take(document, "mean_e2e_latency_ms", found, needed=False),
            "itl.top": take(document, "p99_itl_ms", found, needed=False),
        },
        requests=rows,
    )


def _model(document: dict[str, Any]) -> str | None:
    info = document.get("server_info")
    return word(info, "model_path") or word(info, "served_model_name") or word(document, "model")
