"""Is the measuring client sound: calibrated against a known truth, adding no delay of its own, and keeping exactly C requests in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gates.model import ClaimResult, ClaimStatus
from gates.readers.strict import at, count
from gates.rules.claim import Finding, Findings, Run, fold, holds, lacking, unknown
from gates.rules.doubtful import lag_units, receipt_units
from gates.rules.estimates import median, ms, percent, to_decimal
from gates.text import Text

_ANSWERED = Text("a run in which no request fails would tell", "无失败请求的轮次方可判定")


def calibration(data: Findings, arm: str) -> ClaimResult:
    """Return the error of the client's TTFT p50 against a server of known truth, measured by the same driver on the same host."""
    limit = data.plan.validity.calibration_error_max

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            found = run.pack.client.get("calibration")
            true, seen, n = (count(at(found, key)) for key in ("true_ttft_ns", "measured_ttft_p50_ns", "n"))
            if not true or not seen or not n:
                yield unknown(run, "the client was not calibrated.", "客户端未校准。", files=("client.json",))
                continue
            error = abs(Decimal(seen) - true) / true
            reason = Text("the client is off by {v} on a known TTFT of {t} ms (at most {l}).", "在已知 TTFT {t} ms 上客户端偏差 {v}（上限 {l}）。")
            reason = reason.fill(v=percent(error, limit), t=ms(true), l=percent(limit))
            yield Finding(holds(error <= limit), reason, error, run.key, None, (run.pack.path("client.json"),))
            told = at(found, "told_apart")
            if told is None:
                yield unknown(
                    run,
                    "the client was not shown to tell the kinds of answers apart.",
                    "未证明客户端能区分各类回答。",
                    files=("client.json",),
                )
            elif told is not True:
                reason = Text(
                    "the client takes one kind of answer for another on a server that gives each of them on purpose.",
                    "服务器有意给出各类回答时，客户端把其中一类误认为另一类。",
                )
                yield Finding(ClaimStatus.BREACHED, reason, None, run.key, None, (run.pack.path("client.json"),))

    return fold(data.plan, "calibration", arm, findings())


_KERNEL = Text(
    "the kernel stamped every receipt; on a server of known truth they are late by {v} of this TTFT at p99 (at most {l}).",
    "全部接收时间由内核打戳；在已知真值的服务器上，其 p99 滞后为此 TTFT 的 {v}（上限 {l}）。",
)
_LATE = Text(
    "the engine gives no stamps; on a server of known truth receipts are late by {v} of this TTFT at p99 (at most {l}).",
    "引擎不提供时间戳；在已知真值的服务器上，接收时间的 p99 滞后为此 TTFT 的 {v}（上限 {l}）。",
)


def client_healthy(data: Findings, arm: str) -> ClaimResult:
    """Return the client's share of the TTFT, and whether its event loop kept up.

    With an engine on the same host that stamps its first write: the median of (first text seen - first text sent) over the median TTFT.
    An engine without stamps (a foreign one: client.json tells how many answers bore one) leaves another named source: where the kernel stamped
    every receipt, how late such receipts were at p99 on the server of known truth (a loop that lags reads them later, but does not move them);
    else the p99 lag of the event loop, or that lateness where it is greater: what the loop stamps is not received sooner than what the kernel stamps.
    """
    limit, lag_limit = data.plan.validity.client_share_of_ttft_max, data.plan.validity.loop_lag_p99_max

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            lag = count(run.pack.client.get("loop_lag_p99_ns"))
            if lag is None:
                yield unknown(run, "the lag of the client's event loop was not recorded.", "未记录客户端事件循环的滞后。", files=("client.json",))
                continue
            if odd := lag_units(run, lag):
                yield odd
            if lag > lag_limit.ns:
                reason = Text(
                    f"the client's event loop lagged {ms(lag)} ms at p99 (at most {lag_limit}).",
                    f"客户端事件循环 p99 滞后 {ms(lag)} ms（上限 {lag_limit}）。",
                )
                yield Finding(ClaimStatus.BREACHED, reason, None, run.key, None, (run.pack.path("client.json"),))
            for tier in run.tiers:
                yield _share(run, tier, lag, limit)

    return fold(data.plan, "client_healthy", arm, findings())


def _share(run: Run, tier: int, lag: int, limit: Decimal) -> Finding:
    found = _seen(run, tier)
    files = (run.pack.path("records.jsonl"), run.pack.path("client.json"))
    if found.ttft is None:
        return unknown(run, "no request succeeded at this tier.", "该档位没有成功的请求。", tier=tier, files=("records.jsonl",), change=_ANSWERED)
    stamped, (late, by_kernel) = count(at(run.pack.client, "server_stamps", "stamped")), _receipts_late(run)
    if stamped is None:
        why = "client.json does not tell how many answers bore the engine's stamp.", "client.json 未说明有多少回答带有引擎时间戳。"
        return unknown(run, *why, tier=tier, files=("client.json",))
    without = not stamped and found.delay is None
    if without and late is None:
        why = (
            "the engine gives no stamps, and who stamped the receipts, or how late those are, is not told.",
            "引擎不提供时间戳，且未说明接收时间由谁打戳及其滞后。",
        )
        return unknown(run, *why, tier=tier, files=("client.json",))
    if without and late is not None and (by_kernel or late > lag):
        share = to_decimal(Fraction(late) / found.ttft, 12)
        reason = _KERNEL if by_kernel else _LATE
    elif without:
        share = to_decimal(Fraction(lag) / found.ttft, 12)
        reason = Text(
            "the engine gives no stamps; the event loop's p99 lag is {v} of the TTFT (at most {l}).",
            "引擎不提供时间戳；事件循环 p99 滞后为 TTFT 的 {v}（上限 {l}）。",
        )
    elif found.delay is None or found.stamped < found.good or found.least < 0:
        return unknown(
            run, "the engine's stamps are missing or contradict the client's.", "引擎时间戳缺失或与客户端矛盾。", tier=tier, files=("records.jsonl",)
        )
    else:
        share = to_decimal(found.delay / found.ttft, 12)
        reason = Text("the client takes {v} of the TTFT p50 (at most {l}).", "客户端占 TTFT p50 的 {v}（上限 {l}）。")
    return Finding(holds(share <= limit), reason.fill(v=percent(share, limit), l=percent(limit)), share, run.key, tier, files)


def _receipts_late(run: Run) -> tuple[int | None, bool]:
    """Return by how many nanoseconds receipts were late at p99 in the calibration, and whether the kernel stamped all receipts of the run.

    None for the lateness where not all of that is told: figures that contradict each other tell nothing.
    """
    client = run.pack.client
    by_kernel, by_loop, steps = (count(at(client, "receipts", key)) for key in ("kernel", "loop", "clock_steps"))
    late = count(at(client, "calibration", "receipt", "late_p99_ns"))
    known = None not in (by_kernel, by_loop, steps) and receipt_units(at(client, "calibration", "receipt"))
    return (late if known else None), bool(by_kernel and by_loop == 0 and steps == 0)


@dataclass(frozen=True)
class _Seen:
    """The requests without failure at one tier: medians in nanoseconds, None for none; delays of those that the engine stamped."""

    good: int
    ttft: Fraction | None
    stamped: int
    delay: Fraction | None  # from the engine's first write to the client's first text
    least: int


def _seen(run: Run, tier: int) -> _Seen:
    soak = run.pack.records
    if soak is not None:
        from gates.readers.soak_records import middle

        good = soak.where(soak.good & (soak.tier == tier))
        late = (good.first - good.server)[good.server >= 0]
        ttft = middle(good.first - good.sent) if len(good) else None
        return _Seen(len(good), ttft, len(late), middle(late) if len(late) else None, int(late.min()) if len(late) else 0)
    kept = [r for r in run.pack.of(run.phase, tier) if r.failure is None]
    delays = [r.first_text_ns - r.server_first_sent_ns for r in kept if r.server_first_sent_ns is not None and r.first_text_ns is not None]
    ttft = median([r.ttft_ns for r in kept]) if kept else None
    return _Seen(len(kept), ttft, len(delays), median(delays) if delays else None, min(delays, default=0))


def littles_law(data: Findings, arm: str) -> ClaimResult:
    """Return how far throughput x mean time in the window is from C requests in flight.

    With tokens credited evenly over a request's life, throughput x mean E2E / tokens is the time average of requests in flight, so the law
    fails exactly when the loop did not keep C requests going: a client that pauses, drops or doubles requests.
    """
    limit = data.plan.validity.littles_law_max

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            for tier in run.tiers:
                stats = run.stats.get(tier)
                if stats is None:
                    yield unknown(
                        run,
                        f"there is no window with {tier} requests in flight.",
                        f"没有 {tier} 个请求同时在途的窗口。",
                        tier=tier,
                        files=("records.jsonl",),
                        change=lacking(data, tier),
                    )
                    continue
                off = to_decimal(abs(stats.in_flight / tier - 1), 12)
                reason = Text(
                    "{n} requests in flight on average where {c} must be: off by {v} (at most {l}).",
                    "平均在途 {n} 个请求，应为 {c}：偏差 {v}（上限 {l}）。",
                )
                reason = reason.fill(n=to_decimal(stats.in_flight, 3), c=tier, v=percent(off, limit), l=percent(limit))
                if off > limit and stats.failed:  # a loop whose requests break cannot be kept full; the failures are judged by their own check
                    yield Finding(ClaimStatus.UNKNOWN, reason, off, run.key, tier, (run.pack.path("records.jsonl"),), change=_ANSWERED)
                    continue
                yield Finding(holds(off <= limit), reason, off, run.key, tier, (run.pack.path("records.jsonl"),))

    return fold(data.plan, "littles_law", arm, findings())
