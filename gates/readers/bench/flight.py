"""Whether the times of a run fill its clock: Little's law from both sides, and a request that is as long as its parts.

With C requests in flight, their times add up to C x duration: to no more, and to no less than that with every place idle once, for at most the
longest request, at the end. A TTFT in another unit (s in a field of ms) breaks one of the two, or is no part of a request any longer. All is taken
from observations, so that the same can be asked again where somebody else than the file says the concurrency.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING

from gates.model import Observation
from gates.readers.common import Collector

if TYPE_CHECKING:
    from gates.readers.bench.figures import BenchRun, Request

MARGIN = Decimal("1.01")  # tools print their statistics with two decimals
FILLED = Decimal("0.75")  # a client takes some time between two requests; one that is idle for a quarter of the run measures itself
TAIL, LONGEST_TAIL = Decimal(3), Decimal(10)  # the longest request in means of one: where no p99 tells, and at most
STEP_PARTS = 10
SAME_LENGTH, OTHER_LENGTHS = Decimal("0.95"), Decimal("0.7")  # mean step x mean length is the mean decode time where lengths are one, else near it


def see_times(run: BenchRun, rows: list[Request] | None, found: Collector, labels: dict[str, str]) -> None:
    """Add what one request took: `e2e.mean`, `e2e.longest` and `decode.mean` (ms) of answered requests, each where the file tells it."""
    took = [r.took for r in rows or () if r.answered]
    known = [v for v in took if v is not None]
    whole = bool(known) and len(known) == len(took)
    stated = run.figures.get("e2e.mean")
    if whole:
        found.see("e2e.longest", max(known), "ms", **{"from": "requests"}, **labels)
    if stated is not None and stated > 0:
        found.see("e2e.mean", stated, "ms", **{"from": "tool"}, **labels)
    elif whole:
        found.see("e2e.mean", sum(known, Decimal(0)) / len(known), "ms", **{"from": "requests"}, **labels)
    decode, listed = _decode(run), [r.took - r.ttft for r in rows or () if r.answered and r.took is not None and r.ttft is not None]
    if decode is not None:
        found.see("decode.mean", decode, "ms", **{"from": "tool"}, **labels)
    elif whole and len(listed) == len(known):
        found.see("decode.mean", sum(listed, Decimal(0)) / len(listed), "ms", **{"from": "requests"}, **labels)
    asked = run.rates.get("requests")
    if run.duration is None and asked and run.ok:
        found.see("benchmark.duration", run.ok / asked, "s", **{"from": "requests.rate"}, **labels)


def parts_doubt(run: BenchRun, rows: list[Request] | None, found: Collector, labels: dict[str, str]) -> None:
    """Add the problem `statistics_conflict` where TTFT and decode time together are shorter than the request that they are the parts of.

    A first token that is doubtful for its own reason (a chunk without text) makes them so too, and is named for that alone.
    """
    if any(p.code == "first_token_doubtful" for p in found.problems):
        return
    told = _told(found.observations, labels)
    mean, decode, e2e = told.get("ttft.mean"), run.figures.get("decode.most", told.get("decode.mean")), told.get("e2e.mean")
    pairs = [(mean + decode, e2e, _share(run))] if mean is not None and decode is not None and e2e is not None else []
    listed = [(r.ttft + sum(r.gaps, Decimal(0)), r.e2e) for r in rows or () if r.answered and r.gaps and r.ttft is not None and r.e2e is not None]
    if listed:
        n = len(listed)
        pairs.append((sum((a for a, _ in listed), Decimal(0)) / n, sum((b for _, b in listed), Decimal(0)) / n, SAME_LENGTH))
    short = next(((parts, whole) for parts, whole, share in pairs if parts < whole * share), None)
    if short is not None:
        found.trouble(
            "statistics_conflict",
            "A request took {b} ms, but TTFT and decode time together are {a} ms: one of them is wrong or in another unit.",
            "请求用时 {b} ms，而 TTFT 与解码时间之和为 {a} ms：其一有误或单位不同。",
            a=format(short[0], ".3f"),
            b=format(short[1], ".3f"),
        )


def step_doubt(run: BenchRun, labels: dict[str, str], found: Collector) -> None:
    """Add the problem `statistics_conflict` where the first token came in a small part of the time of one decode step.

    It takes a forward pass as every later token does. Prefill of its own hardware may be sooner than a step of a large batch, not ten times so.
    """
    p50, step = _told(found.observations, labels).get("ttft.p50"), run.figures.get("tpot.p50")
    if p50 is not None and step is not None and p50 * STEP_PARTS < step:
        found.trouble(
            "statistics_conflict",
            "TTFT p50 is {a} ms, but every later token took {b} ms: one of them is wrong or in another unit.",
            "TTFT p50 为 {a} ms，而其后每个词元用时 {b} ms：其一有误或单位不同。",
            a=format(p50, ".3f"),
            b=format(step, ".3f"),
        )


def flight_doubt(seen: Iterable[Observation], labels: dict[str, str], found: Collector) -> None:
    """Add the problem `impossible_flight` or `idle_flight` where the times of the requests are no C x duration of a closed loop.

    TTFT is a part of the time of a request, and half of all requests took at least the median. Requests that failed took time that no file tells:
    beside them only the upper bound holds.
    """
    told = _told(seen, labels)
    c, ok, duration = (told.get(key) for key in ("load.concurrency", "requests.ok", "benchmark.duration"))
    if not c or not ok or not duration or "load.request_rate" in told:
        return
    mean, p50, e2e = (told.get(key) for key in ("ttft.mean", "ttft.p50", "e2e.mean"))
    flight = max([*(v * ok for v in (e2e, mean) if v is not None), *([p50 * ok / 2] if p50 is not None else [])], default=Decimal(0)) / 1000
    room = c * duration
    if flight > room * MARGIN:
        _trouble(
            found,
            "impossible_flight",
            "The requests were in flight for {a} s in all; {c} at a time in {d} s have room for {b} s: time, count or concurrency is wrong.",
            "全部请求在途合计 {a} 秒；并发 {c}、用时 {d} 秒至多容纳 {b} 秒：时间、请求数或并发数有误。",
            (flight, room, c, duration),
        )
    one = _one_request(told)
    if one is None or told.get("requests.failed"):
        return
    places = min(c, ok)
    idle = (places - 1) * (told.get("e2e.longest") or one * _tail(told))
    if (one * ok + idle) / 1000 < places * duration * FILLED:
        _trouble(
            found,
            "idle_flight",
            "The requests were in flight for {a} s in all; {c} at a time in {d} s would be {b} s: time, count or concurrency is wrong, or the "
            "client was idle.",
            "全部请求在途合计 {a} 秒；并发 {c}、用时 {d} 秒应约为 {b} 秒：时间、请求数或并发数有误，或客户端处于空闲。",
            (one * ok / 1000, places * duration, c, duration),
        )


def _told(seen: Iterable[Observation], labels: dict[str, str]) -> dict[str, Decimal]:
    return {o.quantity: o.value for o in seen if isinstance(o.value, Decimal) and labels.items() <= o.labels.items()}


def _decode(run: BenchRun) -> Decimal | None:
    """Return the mean decode time (ms) of a request: stated, or its mean step times the steps behind the first token."""
    step = run.figures.get("tpot.mean")
    if run.figures.get("decode.mean") is not None or step is None or not run.ok or not run.output_total:
        return run.figures.get("decode.mean")
    return step * max(run.output_total / run.ok - 1, Decimal(0))


def _share(run: BenchRun) -> Decimal:
    """Return the part of a request that its mean parts make up at least."""
    ends = run.output_range
    return SAME_LENGTH if ends is not None and ends[0] == ends[1] else OTHER_LENGTHS


def _one_request(told: dict[str, Decimal]) -> Decimal | None:
    """Return the mean time (ms) of a request: stated, or the sum of its parts."""
    if "e2e.mean" in told:
        return told["e2e.mean"]
    return told["ttft.mean"] + told["decode.mean"] if {"ttft.mean", "decode.mean"} <= told.keys() else None


def _tail(told: dict[str, Decimal]) -> Decimal:
    mean, p99 = told.get("ttft.mean"), told.get("ttft.p99")
    return TAIL if not mean or p99 is None else min(max(p99 / mean, Decimal(1)), LONGEST_TAIL)


def _trouble(found: Collector, code: str, en: str, zh: str, told: tuple[Decimal, Decimal, Decimal, Decimal]) -> None:
    a, b, c, d = told
    found.trouble(code, en, zh, a=_said(a), b=_said(b), c=c, d=_said(d))


def _said(value: Decimal) -> str:
    """Return a time for a sentence; one that is no size of a time (from a hostile file) in its exponent's form."""
    return format(value, ".3f") if value < 10**12 else format(value, ".3e")
