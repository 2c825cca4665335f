"""Result files of benchmark clients as figures of one run, whatever client wrote them: detect the tool, read, normalise.

tool = detect(data)                      # or a sentence why not
figures = normalise(read(tool, data))    # RunFigures, with what is missing named
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates.model import Observation, Problem, Reading
from gates.readers.bench.declared import CLIENTS
from gates.readers.bench.documents import first_document, json_text
from gates.readers.bench.flight import flight_doubt
from gates.readers.common import Collector
from gates.readers.registry import too_large
from gates.rules.estimates import to_decimal
from gates.text import Text

MOST = 4096  # the highest tier
_HEAD = 4096  # bytes in which a CSV head must end


@dataclass(frozen=True)
class RunFigures:
    """One run of one arm at one concurrency, by the one definition of gates/readers/bench/figures.py. None is unknown, never zero."""

    model: str | None
    tier: int | None  # concurrency of a closed loop; None where the file names none, or the load was a rate
    tier_from: str | None  # file | stated
    request_rate: Decimal | None  # an open loop
    asked: Decimal | None
    ok: Decimal | None
    failed: Decimal | None
    work: tuple[tuple[str, Decimal | None], ...]  # totals and ends of input and output lengths: what must be equal in both arms
    ttft_p50_ns: Fraction | None
    ttft_from: str | None  # requests | tool
    ttft_mean_ms: Decimal | None
    request_ms: Decimal | None  # mean time of a request: stated, else concurrency x duration / requests
    decode_told: bool  # whether the file tells the time behind the first token, so that its own reader has closed the loop
    output_per_s: Fraction | None
    rate_from: str | None  # totals | tool
    client: tuple[
        tuple[str, str | None], ...
    ]  # endpoint, backend, tokenizer of the client: what must be one in both arms, for TTFT and tokens to mean one thing
    missing: tuple[Text, ...]  # what a comparison needs and the file does not give

    def json(self) -> dict[str, Any]:
        """Return plain data: exact decimals as strings."""
        return {
            "model": self.model,
            "tier": self.tier,
            "tier_from": self.tier_from,
            "request_rate": _plain(self.request_rate),
            "requests": {"asked": _plain(self.asked), "ok": _plain(self.ok), "failed": _plain(self.failed)},
            "work": {name: _plain(value) for name, value in self.work},
            "ttft_p50_ms": _rounded(self.ttft_p50_ns, 10**6),
            "ttft_from": self.ttft_from,
            "output_tokens_per_s": _rounded(self.output_per_s, 1),
            "rate_from": self.rate_from,
        }


NO_TIER = Text("no concurrency from 1 to 4096 is in the file, so it belongs to no tier.", "文件没有 1 到 4096 的并发数，无法归入档位。")
_CLIENT = ("client.endpoint", "client.backend", "client.tokenizer")
_WORK = ("input_tokens.total", "input_tokens.min", "input_tokens.max", "output_tokens.total", "output_tokens.min", "output_tokens.max")


def detect(data: bytes) -> str | Text:
    """Return the name of the one client whose signature a file bears, or a sentence why it is none, or not one alone."""
    problem = too_large(data)
    if problem is not None:
        return problem.message
    head = data[:_HEAD].decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    named = [c.name for c in CLIENTS.values() if c.csv_head and head.startswith(c.csv_head)]
    value = None if named else first_document(data)
    if not named:
        named = [c.name for c in CLIENTS.values() if c.known_by(value)]
    if len(named) == 1:
        return named[0]
    unread = Collector()
    if not named and data.strip() and json_text(data, unread) is None:
        return unread.problems[0].message
    known = ", ".join(CLIENTS)
    refusal = None if named else _no_result(value)
    if refusal is not None:
        return refusal
    if named:
        return Text("It could be a file of {found}: name the tool.", "可能是 {found} 的文件：请指明工具。").fill(found=", ".join(named))
    return Text(
        "It bears the signature of no known client. If it is a result of one of them, name the tool: {known}.",
        "文件没有任何已知客户端的特征。若确为其中之一的结果，请指明工具：{known}。",
    ).fill(known=known)


_SIMULATOR = Text(
    "It is a result of the MLCommons KV-cache benchmark, a storage simulator: no engine and no model took part, so it has no TTFT and no output "
    "tokens per second of one, and nothing of it can be held against the limits. Bring the result of a client that drove the engine.",
    "这是 MLCommons KV 缓存基准（存储模拟器）的结果：未经推理引擎与模型，不含其 TTFT 与每秒输出词元，无法与限值比较。请提供驱动引擎的客户端结果。",
)
_TRACE = Text(
    "It is a Mooncake trace: the arrival times and lengths of requests and which blocks they share, what to ask and not what was measured. "
    "Bring the result of the client that replayed it.",
    "这是 Mooncake 轨迹：请求的到达时间、长度与共享块，是要发送的负载，而非测量结果。请提供回放该轨迹的客户端结果。",
)


def _no_result(value: Any) -> Text | None:
    """Return why a file that is known, and no result of a client, is refused; None for any other."""
    if not isinstance(value, dict):
        return None
    if {"timestamp", "input_length", "output_length", "hash_ids"} <= value.keys():
        return _TRACE
    storage = {"total_storage_io_latency", "storage_latencies"} & value.keys()
    return _SIMULATOR if storage and {"requests_completed", "end_to_end_latencies"} & value.keys() else None


def at_tier(reading: Reading, tier: int) -> Reading:
    """Return a reading as of a run at a concurrency that somebody states beside the file: only where the file itself names none.

    What was stated is held against the file's own times, as a concurrency of the file would be. A file that names another one, or a rate, keeps it.
    """
    own = _number(reading, "load.concurrency")
    if own is not None and own != tier:
        text = Text("Concurrency {a} was stated for it, but the file says {b}.", "为其指定的并发数为 {a}，而文件中为 {b}。").fill(a=tier, b=own)
        return replace(reading, problems=(*reading.problems, Problem("tier_conflict", text)))
    if any(o.quantity in ("load.concurrency", "load.request_rate") for o in reading.observations):
        return reading
    seen = (*reading.observations, Observation("load.concurrency", Decimal(tier), "1", {"from": "stated"}))
    found = Collector()
    flight_doubt(seen, {}, found)
    return Reading(seen, (*reading.problems, *found.problems))


def normalise(reading: Reading) -> RunFigures:
    """Return the figures of the one run in a reading. Where a file holds several runs, or a figure twice, the figure is unknown."""
    missing: list[Text] = []
    ttft, rate = _one(reading, "ttft.p50"), _one(reading, "output_tokens.rate")
    total, duration = _number(reading, "output_tokens.total"), _number(reading, "benchmark.duration")
    concurrency, pace = _number(reading, "load.concurrency"), _number(reading, "load.request_rate")
    for seen, text in (
        (ttft, Text("TTFT p50 is not in the file.", "文件没有 TTFT p50。")),
        (rate, Text("output tokens per second are not in the file.", "文件没有每秒输出词元。")),
        (_number(reading, "requests.ok"), Text("the number of answered requests is not in the file.", "文件没有应答请求数。")),
    ):
        if seen is None:
            missing.append(text)
    if pace is not None:
        missing.append(Text("the load was a rate of requests, not a concurrency.", "负载为请求速率，而非固定并发。"))
    elif concurrency is None or concurrency != concurrency.to_integral_value() or not 1 <= concurrency <= MOST:
        missing.append(NO_TIER)
        concurrency = None
    own = Fraction(rate.value) if rate is not None and isinstance(rate.value, Decimal) else None
    from_totals = rate is not None and rate.labels.get("from") == "totals" and total is not None and bool(duration)
    tier = int(concurrency) if concurrency is not None and pace is None else None
    return RunFigures(
        model=_text(reading, "client.model"),
        tier=tier,
        tier_from=None if tier is None else _one_label(reading, "load.concurrency"),
        request_rate=pace,
        asked=_number(reading, "requests.asked"),
        ok=_number(reading, "requests.ok"),
        failed=_number(reading, "requests.failed"),
        work=tuple((name, _number(reading, name)) for name in _WORK),
        ttft_p50_ns=Fraction(ttft.value) * 10**6 if ttft is not None and isinstance(ttft.value, Decimal) else None,
        ttft_from=ttft.labels.get("from") if ttft is not None else None,
        ttft_mean_ms=_number(reading, "ttft.mean"),
        request_ms=_request_ms(reading, tier),
        decode_told=_number(reading, "decode.mean") is not None,
        output_per_s=Fraction(total or 0) / Fraction(duration or 1) if from_totals else own,  # exact, where the printed rate is rounded
        rate_from=rate.labels.get("from") if rate is not None else None,
        client=tuple((name, _text(reading, name)) for name in _CLIENT),
        missing=tuple(missing),
    )


def _request_ms(reading: Reading, tier: int | None) -> Decimal | None:
    stated, duration, ok = (_number(reading, name) for name in ("e2e.mean", "benchmark.duration", "requests.ok"))
    if stated is not None or not tier or not duration or not ok:
        return stated
    return min(Decimal(tier), ok) * duration * 1000 / ok


def _one(reading: Reading, quantity: str) -> Observation | None:
    found = [o for o in reading.observations if o.quantity == quantity]
    return found[0] if len(found) == 1 else None


def _one_label(reading: Reading, quantity: str) -> str:
    found = _one(reading, quantity)
    return "file" if found is None else found.labels.get("from", "file")


def _number(reading: Reading, quantity: str) -> Decimal | None:
    found = _one(reading, quantity)
    return found.value if found is not None and isinstance(found.value, Decimal) else None


def _text(reading: Reading, quantity: str) -> str | None:
    found = _one(reading, quantity)
    return str(found.value) if found is not None else None


def _plain(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def _rounded(value: Fraction | None, scale: int) -> str | None:
    if value is None:
        return None
    return format(to_decimal(value / scale, 9), "f")
