"""AIPerf: the summary `profile_export_aiperf.json`, or the records `profile_export.jsonl` (one object a request).

Times in ns clocks; TTFT to the first response with parsed content; failed requests are kept apart and counted. The records name no model; their
concurrency is the most requests that were in flight at one time.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.bench.documents import documents
from gates.readers.bench.figures import BenchRun, Request, emit
from gates.readers.bench.values import most_in_flight, take, word
from gates.readers.bench.vllm import each_run
from gates.readers.common import Collector, exact, part, rows

KNOWN_SCHEMA = "1."
SLACK = Decimal("0.005")  # its rates are over another duration than the one it states: 0.44 % apart in a plain run
_UNITS = {"ms": Decimal(1), "s": Decimal(1000), "sec": Decimal(1000), "us": Decimal("0.001"), "ns": Decimal("0.000001")}


def read_aiperf(data: bytes) -> Reading:
    """Read the summary or the records of `aiperf profile`."""
    found = Collector()
    read = documents(data, found)
    if read and isinstance(read[0], dict) and "aiperf_version" in read[0]:
        for document, labels in each_run(found, read):
            _summary(document, found, labels)
    elif read and all(isinstance(r, dict) and isinstance(r.get("metadata"), dict) for r in read):
        _records(read, found)
    elif read:
        found.trouble(
            "unknown_shape",
            "The file is neither AIPerf's summary (aiperf_version) nor its records (metadata in every line).",
            "文件既不是 AIPerf 的汇总（aiperf_version），也不是其逐请求记录（每行有 metadata）。",
        )
    return found.reading()


def _summary(document: dict[str, Any], found: Collector, labels: dict[str, str]) -> None:
    schema = word(document, "schema_version")
    if schema is None or not schema.startswith(KNOWN_SCHEMA):
        found.trouble(
            "unknown_version",
            "schema_version is {v}; this reader knows 1.x only, and does not guess.",
            "schema_version 为 {v}；本读取器只认识 1.x，不作猜测。",
            v=schema or "absent",
        )
        return
    if document.get("was_cancelled") is not False or document.get("is_complete") is not True:
        found.trouble("not_finished", "The run was canceled or did not come to its end.", "该轮被取消或未运行完毕。")
    ok, failed = _scalar(document, "request_count", found), _scalar(document, "error_request_count", found, needed=False) or Decimal(0)
    phases = [p for p in rows(part(document, "input_config"), "phases") if p.get("kind") == "profiling"]
    phase = phases[0] if len(phases) == 1 else {}
    models = rows(part(document, "input_config", "models"), "items")
    emit(
        BenchRun(
            version=word(document, "aiperf_version"),
            model=word(models[0], "name") if len(models) == 1 else None,
            endpoint=word(part(document, "input_config", "endpoint"), "type"),
            concurrency=take(phase, "concurrency", found, needed=False),
            request_rate=take(phase, "rate", found, needed=False) if "rate" in phase else take(phase, "request_rate", found, needed=False),
            asked=take(phase, "requests", found, needed=False) if "requests" in phase else (None if ok is None else ok + failed),
            ok=ok,
            failed=failed,
            input_total=_scalar(document, "total_isl", found, needed=False),
            output_total=_scalar(document, "total_osl", found, needed=False),
            input_range=_ends(document, "input_sequence_length", found),
            output_range=_ends(document, "output_sequence_length", found),
            duration=_scalar(document, "benchmark_duration", found, unit=("sec", "s")),
            output_rate=_scalar(document, "output_token_throughput", found),
            rates={
                "requests": _scalar(document, "request_throughput", found, needed=False),
                "total": _scalar(document, "total_token_throughput", found, needed=False),
            },
            slack=SLACK,
            figures={
                "ttft.p50": _time(document, "time_to_first_token", "p50", found),
                "ttft.mean": _time(document, "time_to_first_token", "avg", found),
                "ttft.p99": _time(document, "time_to_first_token", "p99", found),
                "e2e.mean": _time(document, "request_latency", "avg", found, needed=False),
                "tpot.mean": _time(document, "inter_token_latency", "avg", found, needed=False),
                "tpot.p50": _time(document, "inter_token_latency", "p50", found, needed=False),
                "itl.p50": _time(document, "inter_chunk_latency", "p50", found, needed=False),
            },
        ),
        found,
        labels,
    )


def _records(read: list[dict[str, Any]], found: Collector) -> None:
    measured = [r for r in read if part(r, "metadata", "benchmark_phase") in ("profiling", None)]
    out, units = [], set()
    for record in measured:
        ttft = part(record, "metrics", "time_to_first_token")
        ok = not record.get("error") and part(record, "metadata", "was_cancelled") is not True
        if ok:
            units.add(ttft.get("unit") if isinstance(ttft, dict) and isinstance(ttft.get("unit"), str) else None)
        lengths = _count(record, "input_sequence_length"), _count(record, "output_sequence_length")
        out.append(Request(ok, _ms(ttft), *lengths, _steps(record), _ms(part(record, "metrics", "request_latency"))))
    if not units <= set(_UNITS):
        found.trouble("unknown_unit", "A record has no TTFT in a known unit.", "有记录缺少单位明确的 TTFT。")
        return
    starts, ends = ([exact(part(r, "metadata", key)) for r in measured] for key in ("request_start_ns", "request_end_ns"))
    known = [(a, b) for a, b in zip(starts, ends, strict=True) if a is not None and b is not None]
    whole = bool(known) and len(known) == len(measured)
    emit(
        BenchRun(
            requests=out,
            asked=Decimal(len(out)),
            concurrency=most_in_flight(known) if whole else None,
            duration=(max(b for _, b in known) - min(a for a, _ in known)) / 10**9 if whole else None,
        ),
        found,
    )


def _metric(document: dict[str, Any], name: str, units: tuple[str, ...], found: Collector, *, needed: bool = True) -> dict[str, Any] | None:
    """Return a metric whose unit is one of those known; else None, with a problem where it is needed or in another unit."""
    metric = document.get(name)
    if not isinstance(metric, dict):
        if needed or metric is not None:
            found.absent(name, metric)
        return None
    if units and metric.get("unit") not in units:
        found.trouble(
            "unknown_unit", "{name} is in {unit}, which is not known here.", "{name} 的单位 {unit} 未知。", name=name, unit=metric.get("unit")
        )
        return None
    return metric


def _scalar(document: dict[str, Any], name: str, found: Collector, *, unit: tuple[str, ...] = (), needed: bool = True) -> Decimal | None:
    metric = _metric(document, name, unit, found, needed=needed)
    return None if metric is None else take(metric, "avg", found)


def _time(document: dict[str, Any], name: str, statistic: str, found: Collector, *, needed: bool = True) -> Decimal | None:
    metric = _metric(document, name, tuple(_UNITS), found, needed=needed and statistic == "p50")
    value = None if metric is None else take(metric, statistic, found, needed=needed)
    return None if value is None or metric is None else value * _UNITS[metric["unit"]]


def _ends(document: dict[str, Any], name: str, found: Collector) -> tuple[Decimal, Decimal] | None:
    metric = _metric(document, name, ("tokens",), found, needed=False)
    low, high = (None, None) if metric is None else (take(metric, "min", found), take(metric, "max", found))
    return None if low is None or high is None else (low, high)


def _ms(metric: Any) -> Decimal | None:
    value, unit = exact(part(metric, "value")), part(metric, "unit")
    return value * _UNITS[unit] if value is not None and value >= 0 and isinstance(unit, str) and unit in _UNITS else None


def _count(record: dict[str, Any], name: str) -> Decimal | None:
    value = exact(part(record, "metrics", name, "value"))
    return value if value is not None and value >= 0 else None


def _steps(record: dict[str, Any]) -> tuple[Decimal, ...]:
    metric = part(record, "metrics", "inter_chunk_latency")
    raw, unit = part(metric, "value"), part(metric, "unit")
    if not isinstance(raw, list) or not isinstance(unit, str) or unit not in _UNITS:
        return ()
    return tuple(v * _UNITS[unit] for v in map(exact, raw) if v is not None)
