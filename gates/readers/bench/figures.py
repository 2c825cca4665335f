"""One run of a benchmark client, and the ONE definition of each figure that all clients are brought to.

Quantities, all of one run (label `run` where a file holds several):
- client.version, client.model, client.endpoint, client.backend, client.tokenizer (text); load.concurrency (1); load.request_rate (1/s: an open loop)
- requests.asked, requests.ok, requests.failed (1): a request that the tool calls answered although no token came is a failed one
- input_tokens.total/min/max, output_tokens.total/min/max (1), of requests that were answered
- ttft.p50 (ms): median of one run (mean of the middle two) over answered requests, label from=requests; where the file has no value for each
  request the tool's own p50, label from=tool. ttft.mean, ttft.p99, tpot.p50, itl.p50 (ms): the tool's own, for information
  (label tokens_per_event where one event of a stream carries several tokens)
- output_tokens.rate (1/s): output tokens of answered requests / the run's duration, ramp and tail included, label from=totals; where the file
  lacks either the tool's own, label from=tool. benchmark.duration (s), label from=requests.rate where only requests and their rate are stated
- e2e.mean, e2e.longest, decode.mean (ms): what one request took, and its time behind the first token; they close the loop (flight.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gates.readers.bench.doubts import first_token_doubt, rates_doubt, rows_doubt, statistics_doubt
from gates.readers.bench.flight import flight_doubt, parts_doubt, see_times, step_doubt
from gates.readers.bench.values import median
from gates.readers.common import Collector
from gates.units import rounded

SAME = Decimal("0.000001")  # how far a tool's own median may lie from that of its rows: the rounding of doubles


@dataclass
class Request:
    """One request as the file tells it. Times in milliseconds; `gaps` are the times between the events of its stream."""

    ok: bool
    ttft: Decimal | None = None
    input: Decimal | None = None
    output: Decimal | None = None
    gaps: Sequence[Decimal] = ()
    e2e: Decimal | None = None  # as the file states it, beside TTFT and gaps

    @property
    def answered(self) -> bool:
        """Return whether a token came: what counts as an answer here, whatever the tool calls it."""
        return self.ok and self.output != 0 and (self.ttft is None or self.ttft > 0)

    @property
    def took(self) -> Decimal | None:
        """Return the time of the whole request: as stated, or TTFT and all gaps."""
        return self.e2e if self.e2e is not None or self.ttft is None or not self.gaps else self.ttft + sum(self.gaps, Decimal(0))


@dataclass
class BenchRun:
    """What one run's file says, in the tool's own words brought to one unit: ms, s, 1/s. None is unknown."""

    version: str | None = None
    model: str | None = None
    endpoint: str | None = None
    backend: str | None = None
    tokenizer: str | None = None
    concurrency: Decimal | None = None
    request_rate: Decimal | None = None
    asked: Decimal | None = None
    ok: Decimal | None = None
    failed: Decimal | None = None
    input_total: Decimal | None = None
    output_total: Decimal | None = None
    input_range: tuple[Decimal, Decimal] | None = None
    output_range: tuple[Decimal, Decimal] | None = None
    duration: Decimal | None = None
    output_rate: Decimal | None = None
    rates: dict[str, Decimal | None] = field(default_factory=dict)  # requests, input, total: the tool's own rates beside output_rate, 1/s
    slack: Decimal = Decimal(0)  # how far, as a part, each rate and the duration may lie from the other ones by the tool's own definition
    figures: dict[str, Decimal | None] = field(default_factory=dict)  # ttft.*, tpot.*, itl.*, e2e.mean, decode.mean, decode.most
    requests: list[Request] | None = None
    linear: bool = True  # the tool's p50 is the mean of the middle two


def emit(run: BenchRun, found: Collector, labels: dict[str, str] | None = None) -> None:
    """Add the observations of one run, and a named problem for everything in it that cannot be told or does not agree with itself."""
    labels = labels or {}
    own = (("client.backend", run.backend), ("client.tokenizer", run.tokenizer))
    for quantity, words in (("client.version", run.version), ("client.model", run.model), ("client.endpoint", run.endpoint), *own):
        if words:
            found.see(quantity, words, "text", **labels)
    for quantity, value, unit in (("load.concurrency", run.concurrency, "1"), ("load.request_rate", run.request_rate, "1/s")):
        if value is not None:
            found.see(quantity, value, unit, **labels)
    rows = _whole_rows(run, found)
    answered = _counts(run, rows, found, labels)
    _tokens(run, rows, found, labels)
    if run.duration is not None and run.duration > 0:
        found.see("benchmark.duration", run.duration, "s", **labels)
    elif run.duration is not None:
        found.trouble("zero_samples", "The run took no time at all.", "该轮用时为零。")
    if answered == 0:
        found.trouble("zero_samples", "No request was answered: nothing was measured.", "没有任何请求得到应答：没有测量结果。")
        return
    _ttft(run, rows, found, labels)
    _rate(run, found, labels)
    for quantity in ("ttft.mean", "ttft.p99", "tpot.p50", "itl.p50"):
        value = run.figures.get(quantity)
        if value is not None:
            found.see(quantity, value, "ms", **{"from": "tool"}, **_bundled(rows, quantity), **labels)
    first_token_doubt(run, rows, found)
    rates_doubt(run, found)
    rows_doubt(run, rows, found)
    see_times(run, rows, found, labels)
    parts_doubt(run, rows, found, labels)
    step_doubt(run, labels, found)
    flight_doubt(found.observations, labels, found)


def _whole_rows(run: BenchRun, found: Collector) -> list[Request] | None:
    rows = run.requests
    if not rows:
        return None
    if run.asked is not None and len(rows) != run.asked:
        found.trouble(
            "rows_incomplete",
            "The lists hold {n} of {asked} requests: rows were cut off, and only the tool's own statistics can be used.",
            "明细列表仅有 {asked} 个请求中的 {n} 个：明细被截断，只能使用工具自身的统计值。",
            n=len(rows),
            asked=run.asked,
        )
        return None
    return rows


def _counts(run: BenchRun, rows: list[Request] | None, found: Collector, labels: dict[str, str]) -> Decimal | None:
    """Add the account of requests, and return how many were answered."""
    asked = run.asked if run.asked is not None or rows is None else Decimal(len(rows))
    ok = run.ok if run.ok is not None or rows is None else Decimal(sum(r.ok for r in rows))
    failed = run.failed if run.failed is not None or asked is None or ok is None else asked - ok
    told = Decimal(sum(r.ok for r in rows)) if rows is not None else ok
    if (asked is not None and ok is not None and failed is not None and ok + failed != asked) or told != ok or (failed is not None and failed < 0):
        found.trouble(
            "count_conflict",
            "The counts do not agree: {asked} asked, {ok} answered, {failed} failed, {told} answered in the rows.",
            "请求数不一致：发出 {asked}，应答 {ok}，失败 {failed}，明细中应答 {told}。",
            asked=_said(asked),
            ok=_said(ok),
            failed=_said(failed),
            told=_said(told),
        )
        return None
    empty = Decimal(sum(r.ok and not r.answered for r in rows)) if rows is not None else Decimal(0)
    if empty:
        found.trouble(
            "empty_streams",
            "{n} of {asked} requests count as answered although no token came (an error inside the stream, or an empty one); here they are failed.",
            "{asked} 个请求中有 {n} 个被工具计为成功，但没有收到任何词元（流内报错或空流）；此处计为失败。",
            n=empty,
            asked=_said(asked),
        )
    if failed:
        found.trouble(
            "failed_requests",
            "{n} of {asked} requests failed; the tool's figures are of the others, which flatters them.",
            "{asked} 个请求中有 {n} 个失败；工具的数值只含其余请求，会美化结果。",
            n=_said(failed),
            asked=_said(asked),
        )
    for quantity, value in (
        ("requests.asked", asked),
        ("requests.ok", _less(ok, empty)),
        ("requests.failed", None if failed is None else failed + empty),
    ):
        if value is not None:
            found.see(quantity, _plain(value), "1", **labels)
    if failed is None:
        found.trouble(
            "failures_unknown",
            "The file does not say how many requests failed: failed ones may count as fast ones.",
            "文件未说明失败请求数：失败请求可能被当作快速请求计入。",
        )
    return _less(ok, empty)


def _tokens(run: BenchRun, rows: list[Request] | None, found: Collector, labels: dict[str, str]) -> None:
    for name, total, ends, key in (
        ("input_tokens", run.input_total, run.input_range, "input"),
        ("output_tokens", run.output_total, run.output_range, "output"),
    ):
        lengths = [getattr(r, key) for r in rows if r.answered] if rows else []
        known = [v for v in lengths if v is not None]
        if known and len(known) == len(lengths):
            summed = sum(known, Decimal(0))
            credited = sum((getattr(r, key) or Decimal(0) for r in rows or () if r.ok), Decimal(0))
            if total is not None and total not in (summed, credited):
                found.trouble(
                    "tokens_conflict",
                    "{name}: the rows sum to {a}, the total says {b}.",
                    "{name}：明细之和为 {a}，总数为 {b}。",
                    name=name,
                    a=summed,
                    b=total,
                )
            total, ends = summed, (min(known), max(known))
        if total is not None:
            found.see(f"{name}.total", _plain(total), "1", **labels)
        if ends is not None:
            found.see(f"{name}.min", _plain(ends[0]), "1", **labels)
            found.see(f"{name}.max", _plain(ends[1]), "1", **labels)


def _ttft(run: BenchRun, rows: list[Request] | None, found: Collector, labels: dict[str, str]) -> None:
    own = run.figures.get("ttft.p50")
    seen = [r.ttft for r in rows if r.answered] if rows else []
    known = [v for v in seen if v is not None]
    if known and len(known) == len(seen):
        value = median(known)
        clean = rows is not None and all(r.answered or not r.ok for r in rows)
        if own is not None and run.linear and clean and abs(own - value) > SAME * value:
            found.trouble(
                "p50_conflict",
                "TTFT p50: the rows give {a} ms, the tool's statistics say {b} ms.",
                "TTFT p50：由明细计算为 {a} ms，工具统计为 {b} ms。",
                a=value,
                b=own,
            )
        found.see("ttft.p50", value, "ms", **{"from": "requests"}, n=str(len(known)), **labels)
        statistics_doubt(value, run, found)
    elif own is not None and own > 0:
        found.see("ttft.p50", own, "ms", **{"from": "tool"}, **labels)
        statistics_doubt(own, run, found)
    elif own is not None:
        found.trouble("zero_samples", "TTFT p50 is 0: no first token was timed.", "TTFT p50 为 0：没有测到首个词元。")
    else:
        found.trouble("missing_field", "The file holds no TTFT p50 and no TTFT of each request.", "文件没有 TTFT p50，也没有逐请求 TTFT。")


def _rate(run: BenchRun, found: Collector, labels: dict[str, str]) -> None:
    counted = next((o.value for o in found.observations if o.quantity == "output_tokens.total" and labels.items() <= o.labels.items()), None)
    if isinstance(counted, Decimal) and run.duration:
        value = counted / run.duration
        found.see("output_tokens.rate", value, "1/s", **{"from": "totals"}, **labels)
    elif run.output_rate is not None and run.output_rate > 0:
        found.see("output_tokens.rate", run.output_rate, "1/s", **{"from": "tool"}, **labels)
    else:
        found.trouble(
            "missing_field",
            "The file holds no output tokens per second, and not what they follow from.",
            "文件没有每秒输出词元，也无法由其他字段算出。",
        )


def _bundled(rows: list[Request] | None, quantity: str) -> dict[str, str]:
    """Return a label for times between tokens where events carry several tokens each: then they are times between events, or too short."""
    told = [r for r in rows or () if r.answered and r.gaps and r.output] if quantity in ("tpot.p50", "itl.p50") else []
    tokens, events = sum((r.output or Decimal(0) for r in told), Decimal(0)), sum(len(r.gaps) + 1 for r in told)
    return {"tokens_per_event": str(rounded(tokens / events, 1))} if events and tokens > events * Decimal("1.5") else {}


def _less(value: Decimal | None, taken: Decimal) -> Decimal | None:
    return None if value is None else value - taken


def _plain(value: Decimal) -> Decimal:
    """Return a whole number without the fraction that some tools write (16.0)."""
    whole = value.to_integral_value()
    return whole if whole == value else value


def _said(value: Decimal | None) -> str:
    return "?" if value is None else format(_plain(value), "f")
