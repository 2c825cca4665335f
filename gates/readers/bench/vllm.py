"""`vllm bench serve` result JSON, and InferenceX's client, which is an old fork of it.

vLLM: clock before the HTTP post; TTFT to the first chunk with a choice (chat since 0.33: with content); output tokens from the server's usage where
it is sent; duration from the first dispatch to the last answer, failed requests included. Rows of failed requests stay in the lists with zeros.
InferenceX: counts the role chunk of a chat stream as the first token, and has no list of TTFT and no count of failures.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.bench.documents import documents
from gates.readers.bench.figures import BenchRun, Request, emit
from gates.readers.bench.values import column, take, word
from gates.readers.common import Collector, exact

_OF_A_RUN = ("completed", "total_output_tokens", "duration")


def read_vllm_bench(data: bytes) -> Reading:
    """Read one run of `vllm bench serve --save-result` (rows with --save-detailed)."""
    return _read(data, rows=lambda document, _, found: detailed(document, found))


def read_inferencex(data: bytes) -> Reading:
    """Read one raw result of InferenceX's client. The aggregated file (per GPU, seconds) holds no counts and is refused."""
    return _read(data, rows=_lengths)


def each_run(found: Collector, runs: list[Any]) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Return the runs of a file with their labels. Several runs in one file are a problem: nobody can tell which one is meant."""
    shaped = [run for run in runs if isinstance(run, dict)]
    if len(shaped) != len(runs):
        found.trouble(
            "unknown_shape", "The file holds JSON that is no object: not a result of this client.", "文件中的 JSON 不是对象：并非该客户端的结果。"
        )
    if len(runs) > 1:
        found.trouble(
            "several_runs",
            "The file holds {n} runs, one appended to another: put each run into a file of its own.",
            "文件中有 {n} 轮结果（追加写入）：请每轮单独存为一个文件。",
            n=len(runs),
        )
    return [(run, {"run": str(number)} if len(runs) > 1 else {}) for number, run in enumerate(shaped[:20], 1)]


def _read(data: bytes, *, rows: Callable[[dict[str, Any], BenchRun, Collector], list[Request] | None]) -> Reading:
    found = Collector()
    for document, labels in each_run(found, documents(data, found)):
        if "tput_per_gpu" in document and "completed" not in document:
            found.trouble(
                "aggregated",
                "This is an aggregated file: it names no request, so failures cannot be seen. Give the client's own result file.",
                "这是汇总文件：没有请求数，看不到失败。请提供客户端的原始结果文件。",
            )
            continue
        if not any(key in document for key in _OF_A_RUN):
            found.trouble("unknown_shape", "None of {keys} stands in the file.", "文件中没有 {keys} 中的任何一项。", keys=", ".join(_OF_A_RUN))
            continue
        run = _summary(document, found)
        run.requests = rows(document, run, found)
        emit(run, found, labels)
    return found.reading()


def _summary(document: dict[str, Any], found: Collector) -> BenchRun:
    rate = document.get("request_rate")
    tops = [take(document, key, found, scale=1, needed=False) for key in document if key.startswith("p99") and key.endswith("_itl_ms")]
    own = "p50_ttft_ms" if "p50_ttft_ms" in document else "median_ttft_ms"
    return BenchRun(
        model=word(document, "model_id"),
        endpoint=word(document, "endpoint_type") or word(document, "backend"),
        backend=word(document, "backend"),
        tokenizer=word(document, "tokenizer_id"),
        concurrency=take(document, "max_concurrency", found, needed=False),
        request_rate=None if rate in ("inf", "Infinity") else take(document, "request_rate", found, needed=False),
        asked=take(document, "num_prompts", found),
        ok=take(document, "completed", found),
        failed=take(document, "failed", found, needed=False),
        input_total=take(document, "total_input_tokens", found),
        output_total=take(document, "total_output_tokens", found),
        duration=take(document, "duration", found),
        output_rate=take(document, "output_throughput", found, needed=False),
        rates={
            "requests": take(document, "request_throughput", found, needed=False),
            "input": take(document, "input_throughput", found, needed=False),
            "total": take(document, "total_token_throughput", found, needed=False),
        },
        figures={
            "ttft.p50": take(document, own, found, needed="ttfts" not in document),
            "ttft.mean": take(document, "mean_ttft_ms", found, needed=False),
            "ttft.p99": take(document, "p99_ttft_ms", found, needed=False),
            "tpot.p50": take(document, "median_tpot_ms", found, needed=False),
            "tpot.mean": take(document, "mean_tpot_ms", found, needed=False),
            "itl.p50": take(document, "median_itl_ms", found, needed=False),
            "e2e.mean": take(document, "mean_e2el_ms", found, needed=False),
            "itl.top": max((t for t in tops if t is not None), default=None),
        },
    )


def detailed(document: dict[str, Any], found: Collector) -> list[Request] | None:
    """Return the rows of --save-detailed. A row failed where its error says so, whatever its position."""
    lists = {key: column(document, key, found, scale=scale) for key, scale in (("ttfts", 1000), ("input_lens", 1), ("output_lens", 1))}
    errors, gaps = document.get("errors"), document.get("itls")
    n = len(lists["ttfts"] or lists["output_lens"] or ())
    if not n or any(v is not None and len(v) != n for v in lists.values()) or (isinstance(errors, list) and len(errors) != n):
        if n:
            found.trouble("rows_incomplete", "The lists of the file differ in length: rows are missing.", "文件中各列表长度不同：明细有缺失。")
        return None
    gaps = gaps if isinstance(gaps, list) and len(gaps) == n else [()] * n
    failed = [bool(e) for e in errors] if isinstance(errors, list) else [o == 0 for o in lists["output_lens"] or [None] * n]
    nothing: list[Decimal | None] = [None] * n
    return [
        Request(not bad, ttft, asked, given, _gaps(steps))
        for bad, ttft, asked, given, steps in zip(
            failed, lists["ttfts"] or nothing, lists["input_lens"] or nothing, lists["output_lens"] or nothing, gaps, strict=True
        )
    ]


def _lengths(document: dict[str, Any], run: BenchRun, found: Collector) -> list[Request] | None:
    """Return rows of lengths alone. A length of 0 is a failure where the count of answers agrees with that, else an answer without a token."""
    asked, given = (column(document, key, found) for key in ("input_lens", "output_lens"))
    if not asked or not given or len(asked) != len(given):
        return None
    empty = sum(n == 0 for n in given)
    excused = run.ok is not None and run.ok == len(given) - empty
    return [Request(not (excused and out == 0), None, into, out) for into, out in zip(asked, given, strict=True)]


def _gaps(steps: Any) -> tuple[Decimal, ...]:
    values = [exact(v) for v in steps] if isinstance(steps, list) else []
    return tuple(v * 1000 for v in values if v is not None)
