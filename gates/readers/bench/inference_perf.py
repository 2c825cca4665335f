"""inference-perf `stage_N_lifecycle_metrics.json` or `summary_lifecycle_metrics.json`: statistics only, times in seconds.

TTFT of an answer with fewer than two chunks is dropped without a count, and a stream that holds only an error event stays a success: where lengths
start at 0 that is seen. A stage of a concurrent load states its concurrency, and beside it a `requested_rate` that only says how fast its requests
are queued (all within a second): there the loop is closed. Any other stage is a rate (open loop), and the summary over all stages states neither:
such files name no tier. Its time per token counts the tokens of a stream chunk by chunk (up to twice as many, before #564), so only the most that
decode can have taken is had of it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.bench.documents import documents
from gates.readers.bench.figures import BenchRun, emit
from gates.readers.bench.values import take
from gates.readers.bench.vllm import each_run
from gates.readers.common import Collector, exact, part

COUNTED_TWICE = 2


def read_inference_perf(data: bytes) -> Reading:
    """Read one lifecycle report of inference-perf."""
    found = Collector()
    for document, labels in each_run(found, documents(data, found)):
        if not isinstance(document.get("load_summary"), dict) or not isinstance(document.get("successes"), dict):
            found.trouble("unknown_shape", "load_summary or successes is missing.", "缺少 load_summary 或 successes。")
            continue
        emit(_run(document, found), found, labels)
    return found.reading()


def _run(document: dict[str, Any], found: Collector) -> BenchRun:
    good, load = document["successes"], document["load_summary"]
    latency, rates = part(good, "latency"), part(good, "throughput")
    ok = take(good, "count", found)
    ins, outs = (_ends(good, key, found) for key in ("prompt_len", "output_len"))
    if outs is not None and outs[0] == 0:
        found.trouble(
            "empty_streams",
            "The shortest answer has no token: an empty stream, or one with an error in it, counts as a success.",
            "最短的应答没有任何词元：空流或含错误的流被计为成功。",
        )
    outs_total, step = _total(good, "output_len", "output_tokens", ok), _seconds(part(latency, "time_per_output_token"), "mean", found)
    concurrency, rate = take(load, "concurrency", found, needed=False), take(load, "requested_rate", found, needed=False)
    return BenchRun(
        concurrency=concurrency,
        request_rate=rate if concurrency is None else None,
        asked=take(load, "count", found),
        ok=ok,
        failed=take(document.get("failures"), "count", found),
        input_total=_total(good, "prompt_len", "prompt_tokens", ok),
        output_total=outs_total,
        input_range=ins,
        output_range=outs,
        output_rate=take(rates, "output_tokens_per_sec", found),
        rates={
            "requests": take(rates, "requests_per_sec", found, needed=False),
            "input": take(rates, "input_tokens_per_sec", found, needed=False),
            "total": take(rates, "total_tokens_per_sec", found, needed=False),
        },
        figures={
            "ttft.p50": _seconds(part(latency, "time_to_first_token"), "median", found, needed=True),
            "ttft.mean": _seconds(part(latency, "time_to_first_token"), "mean", found),
            "ttft.p99": _seconds(part(latency, "time_to_first_token"), "p99", found),
            "decode.most": None if step is None or not ok or outs_total is None else COUNTED_TWICE * step * max(outs_total / ok - 1, Decimal(0)),
            "e2e.mean": _seconds(part(latency, "request_latency"), "mean", found),
            "tpot.p50": _seconds(part(latency, "time_per_output_token"), "median", found),
            "itl.p50": _seconds(part(latency, "inter_token_latency"), "median", found),
        },
    )


def _seconds(holder: Any, key: str, found: Collector, *, needed: bool = False) -> Decimal | None:
    return take(holder, key, found, scale=1000, needed=needed)


def _ends(good: dict[str, Any], key: str, found: Collector) -> tuple[Decimal, Decimal] | None:
    low, high = (take(part(good, key), end, found, needed=False) for end in ("min", "max"))
    return None if low is None or high is None else (low, high)


def _total(good: dict[str, Any], lengths: str, tokens: str, ok: Decimal | None) -> Decimal | None:
    """Return the total that the file states, or mean x count where that is a whole number up to the rounding of doubles."""
    stated = exact(part(good, tokens, "total"))
    if stated is not None and stated >= 0:
        return stated
    mean = exact(part(good, lengths, "mean"))
    if mean is None or ok is None or mean < 0:
        return None
    total = mean * ok
    near = total.to_integral_value()
    return near if abs(total - near) < Decimal("0.01") else None
