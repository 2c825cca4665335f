"""Is a run what it says it is: caches cold, the engine new, KV recovered from the external tier (or not at all), bytes really read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from gates.engine_counters import CACHED_BY_REQUEST, LEDGER, PROMPT
from gates.model import Attribution, ClaimResult, ClaimStatus
from gates.readers.prometheus import Sources, called, sources
from gates.readers.strict import at, count
from gates.rules import cold_reset, doubtful
from gates.rules.attended import on_that_clock
from gates.rules.claim import Finding, Findings, Run, each, fold, holds, not_applicable, unknown
from gates.rules.estimates import percent
from gates.text import Text

NEVER_COLD = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "overlay", "aufs")
ON_A_DISK = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")  # below these is a block device that counts what is read from it
_TICKS_PER_S = 100


def account(run: Run, tier: int) -> Sources | None:
    """Return where the prompt tokens of a measured tier came from.

    None unless the engine counted the tokens that the client sent: else the counters belong to other traffic. Failed requests may or may
    not be counted.
    """
    pair, names = run.pack.counter_pair("measure", tier), run.metrics_names
    if pair is None or names is None:
        return None
    found = sources(pair[0].get("metrics"), pair[1].get("metrics"), names)
    requests = run.pack.of("measure", tier)
    least = sum(r.prompt_tokens or 0 for r in requests if r.failure is None)
    most = sum(max(r.prompt_tokens or 0, r.tokens_sent) for r in requests)
    return found if found is not None and found.total > 0 and least <= found.total <= most else None


def no_account(run: Run, tier: int) -> Finding:
    """Return that the prompt tokens of a tier have no closed account, with the series that should give it."""
    series = called(run.metrics_names or (), (PROMPT, *LEDGER, CACHED_BY_REQUEST))
    return unknown(
        run,
        f"the engine's counters give no closed account of the prompt tokens of this tier{f' ({series.en})' if series.en else ''}.",
        f"引擎计数器未给出该档位提示词元的完整账目{f'（{series.zh}）' if series.zh else ''}。",
        tier=tier,
        files=("counters.jsonl",),
    )


def hbm_cold(data: Findings, arm: str) -> ClaimResult:
    """Of the prompt tokens, the share that the engine still held itself: in its GPU cache, or in host memory above the external tier."""
    limit = data.plan.validity.hbm_hits_max

    def findings(run: Run) -> Iterator[Finding]:
        for tier in run.tiers:
            tokens = account(run, tier)
            if tokens is None:
                yield no_account(run, tier)
                continue
            share = (tokens.hbm + tokens.host) / tokens.total
            gpu = Text("{v} of the prompt tokens came from the GPU cache (at most {l}).", "{v} 的提示词元来自 GPU 缓存（上限 {l}）。")
            both = Text(
                "{v} of the prompt tokens came from the engine's own GPU cache and host memory (at most {l}).",
                "{v} 的提示词元来自引擎自身的 GPU 缓存与主机内存（上限 {l}）。",
            )
            reason = (both if tokens.host else gpu).fill(v=percent(share, limit), l=percent(limit))
            yield Finding(holds(share <= limit), reason, share, run.key, tier, (run.pack.path("counters.jsonl"),))

    return fold(data.plan, "hbm_cold", arm, each(data.places(arm), findings))


def page_cache_cold(data: Findings, arm: str) -> ClaimResult:
    """Of the bytes of the KV directories, the share in the page cache: after cooling, and again before each tier.

    Every directory that the job was given must be checked each time, by its name: a cold one says nothing about another.
    """
    if not data.plan.arms.recovers(arm):
        return not_applicable("page_cache_cold", arm, "This arm reads no stored KV.", "该对照组不读取已存的 KV。")
    limit = data.plan.validity.page_cache_resident_max

    def findings(run: Run) -> Iterator[Finding]:
        wanted = [("after_cool", None), *(("before_tier", tier) for tier in run.tiers)]
        for when, tier in wanted:
            rows = [c for c in run.pack.coldness if c.get("when") == when and (when == "after_cool" or c.get("tier") == tier)]
            if not rows:
                yield unknown(run, f"there is no residency check {when}.", f"缺少 {when} 的驻留检查。", tier=tier, files=("coldness.jsonl",))
            elif not _every_directory(run, rows):
                yield unknown(
                    run,
                    f"the residency check {when} is not of each KV directory of the job, once each.",
                    f"{when} 的驻留检查未逐一覆盖作业的各 KV 目录。",
                    tier=tier,
                    files=("coldness.jsonl", "job.json"),
                )
            for row in rows:
                yield _gone(data, run, row, tier) or _resident(run, row, tier, limit)

    return fold(data.plan, "page_cache_cold", arm, each(data.places(arm), findings))


def _every_directory(run: Run, rows: Sequence[dict[str, Any]]) -> bool:
    given, seen = at(run.pack.job, "engine", "kv_dirs"), [row.get("dir") for row in rows]
    return isinstance(given, list) and bool(given) and sorted(map(str, given)) == sorted(map(str, seen))


def _gone(data: Findings, run: Run, row: dict[str, Any], tier: int | None) -> Finding | None:
    """Return that nothing was warm where what had been stored is gone, to the last byte, and the run recovered none of it; else None.

    A directory that holds nothing proves nothing by itself. But where bytes lay in it after storing and not one token came from it, there is
    nothing left that could have been warm, and losing all of the KV must not stand better than losing a part of it (external_hits).
    """
    if count(row.get("bytes")) != 0 or count(row.get("resident_bytes")) != 0 or row.get("method") != "mincore" or row.get("fs_type") in NEVER_COLD:
        return None
    storing = data.storing(run)
    stored = count(at(storing.pack.phase("store"), "detail", "kv_after", "bytes")) if storing else None
    sources_of = [account(run, one) for one in run.tiers]
    if not stored or any(tokens is None or tokens.external != 0 for tokens in sources_of):
        return None
    reason = Text(
        "{n} bytes of KV lay there after storing and none does any more; nothing of it was in the page cache.",
        "写入后该处有 {n} 字节 KV，现已全部消失；页缓存中没有其任何内容。",
    )
    return Finding(
        ClaimStatus.HOLDS, reason.fill(n=stored), Decimal(0), run.key, tier, (run.pack.path("coldness.jsonl"), run.pack.path("phases.jsonl"))
    )


def _resident(run: Run, row: dict[str, Any], tier: int | None, limit: Decimal) -> Finding:
    files = (run.pack.path("coldness.jsonl"),)
    kind, size, resident = row.get("fs_type"), count(row.get("bytes")), count(row.get("resident_bytes"))
    if kind in NEVER_COLD:
        reason = Text(f"the KV directory lies on {kind}, which cannot be made cold.", f"KV 目录位于 {kind}，无法置为冷态。")
        return Finding(ClaimStatus.BREACHED, reason, None, run.key, tier, files)
    if not isinstance(kind, str) or not kind or not size or resident is None or row.get("method") != "mincore":
        return unknown(run, "the residency check counted no bytes.", "驻留检查没有统计到字节。", tier=tier, files=("coldness.jsonl",))
    share = Decimal(resident) / size
    if share <= limit and (doubt := doubtful.pages_units(run, row, tier)):
        return doubt
    reason = Text("{v} of {n} bytes were in the page cache (at most {l}).", "{n} 字节中有 {v} 驻留于页缓存（上限 {l}）。")
    return Finding(holds(share <= limit), reason.fill(v=percent(share, limit), n=size, l=percent(limit)), share, run.key, tier, files)


def engine_restarted_cold(data: Findings, arm: str) -> ClaimResult:
    """Whether the engine process was started for this run, or reset and shown to be cold, and the same process served it to its end."""

    def findings(run: Run) -> Iterator[Finding]:
        files = (run.pack.path("coldness.jsonl"), run.pack.path("phases.jsonl"))
        cooled = next((c for c in run.pack.coldness if c.get("when") == "after_cool"), None)
        now = _process(at(cooled, "engine"))
        if cooled is None or now is None:
            yield unknown(run, "no engine process was seen after cooling.", "冷处理后未见引擎进程。", files=("coldness.jsonl",))
            return
        before = _process(cooled.get("engine_before"))
        by_reset = cold_reset.asked(run) and before == now
        if by_reset and (fault := cold_reset.fault_of(run, cooled)):
            yield fault
        elif "engine_before" not in cooled or (before is None and (cooled["engine_before"] is not None or not _started_in_cool(run, cooled, now))):
            yield unknown(
                run,
                "nothing shows that the engine was started anew: no process before cooling was noted.",
                "无法证明引擎为新启动：未记录冷处理前的进程。",
                files=("coldness.jsonl",),
            )
        elif before is not None and before == now and not by_reset:
            reason = Text("the engine that stored or served before is still the one that runs.", "此前写入或服务的引擎进程仍在运行。")
            yield Finding(ClaimStatus.BREACHED, reason, None, run.key, None, files)
        elif any(_seen(run, when, tier) == 0 for tier in run.tiers for when in ("before_tier", "after_tier")):
            yield unknown(
                run, "the engine process was not noted before and after each tier.", "未在每个档位前后记录引擎进程。", files=("coldness.jsonl",)
            )
        elif any(_process(c.get("engine")) != now for c in run.pack.coldness if c.get("when") != "after_cool"):
            reason = Text("the engine process changed while it was measured.", "测量期间引擎进程发生变化。")
            yield Finding(ClaimStatus.BREACHED, reason, None, run.key, None, files)
        else:
            anew = Text("the engine was started for each run and served it to its end.", "每轮之前引擎均已重启，并服务至本轮结束。")
            emptied = Text(
                "the engine's GPU cache was reset for each run, shown empty, and the engine served the run to its end.",
                "每轮之前引擎的 GPU 缓存均已复位并证明为空，且引擎服务至本轮结束。",
            )
            reason = emptied if by_reset else anew
            yield Finding(ClaimStatus.HOLDS, reason, None, run.key, None, files)

    return fold(data.plan, "engine_restarted_cold", arm, each(data.places(arm), findings))


def _seen(run: Run, when: str, tier: int) -> int:
    return sum(c.get("when") == when and c.get("tier") == tier for c in run.pack.coldness)


def _process(value: Any) -> tuple[int, int] | None:
    pid, ticks = count(at(value, "pid")), count(at(value, "start_ticks"))
    return None if pid is None or ticks is None else (pid, ticks)


def _started_in_cool(run: Run, cooled: dict[str, Any], process: tuple[int, int]) -> bool:
    """Return whether a process began after the phase `cool` did: /proc counts its start in ticks of its host's clock, up to suspends."""
    phase = run.pack.phase("cool")
    begun = count(at(phase, "started_ns"))
    there = None if begun is None else on_that_clock(cooled, begun)
    return there is not None and process[1] * 10**9 // _TICKS_PER_S + 10**9 // _TICKS_PER_S >= there


def array_cold(data: Findings, arm: str) -> ClaimResult:
    """Of the bytes that hosts read from the array, the share that came from its media and not from its cache."""
    if not data.plan.arms.recovers(arm):
        return not_applicable("array_cold", arm, "This arm reads no stored KV.", "该对照组不读取已存的 KV。")
    if data.plan.arms.array_cache == "as_delivered":
        return not_applicable("array_cold", arm, "Array caches are used as delivered, by agreement.", "双方约定：阵列缓存按交付状态使用。")
    limit = data.plan.validity.array_media_ratio_min

    def findings(run: Run) -> Iterator[Finding]:
        for tier in run.tiers:
            pair = run.pack.counter_pair("measure", tier)
            host, media = (read_between(pair, "array", key) for key in ("host_read_bytes", "media_read_bytes"))
            if not host or media is None:
                yield unknown(run, "the array's own read counters are missing.", "缺少阵列自身的读取计数。", tier=tier, files=("counters.jsonl",))
                continue
            share = Decimal(media) / host
            counts = host, media, read_between(pair, "engine_io", "read_bytes")
            if odd := doubtful.array_units(run, tier, counts, data.plan.validity.account_ratio_max):
                yield odd
                continue
            reason = Text("{v} of the bytes read came from the media (at least {l}).", "读取字节中 {v} 来自介质（下限 {l}）。")
            reason = reason.fill(v=percent(share, limit), l=percent(limit))
            yield Finding(holds(share >= limit), reason, share, run.key, tier, (run.pack.path("counters.jsonl"),))

    return fold(data.plan, "array_cold", arm, each(data.places(arm), findings))


def read_between(pair: tuple[dict[str, Any], dict[str, Any]] | None, *keys: str) -> int | None:
    """Return by how much a counter grew between two snapshots, or None."""
    if pair is None:
        return None
    low, high = count(at(pair[0], *keys)), count(at(pair[1], *keys))
    return None if low is None or high is None or high < low else high - low


def external_hits(data: Findings, arm: str) -> ClaimResult:
    """Of the stored prefix tokens asked for, the share that came from the external tier; for the other arms: none at all.

    A candidate that recovers too little, once it is proven cold and stored, is the product's fault (DESIGN 4.3).
    """
    recovers, limit = data.plan.arms.recovers(arm), data.plan.validity.external_hits_min

    def findings(run: Run) -> Iterator[Finding]:
        for tier in run.tiers:
            tokens, wanted = account(run, tier), len(run.pack.of("measure", tier)) * data.plan.workload.context_tokens
            if tokens is None or not wanted:
                yield no_account(run, tier)
                continue
            share = tokens.external / wanted
            if recovers:
                reason = Text(
                    "{v} of the stored prefix tokens came from the external tier (at least {l}).", "已存前缀词元中 {v} 由外部层恢复（下限 {l}）。"
                )
                reason, status = reason.fill(v=percent(share, limit), l=percent(limit)), holds(share >= limit)
            else:
                reason = Text("{n} tokens came from the external tier (none may).", "{n} 个词元来自外部层（不应有）。")
                reason, status = reason.fill(n=format(tokens.external.normalize(), "f")), holds(tokens.external == 0)
            yield Finding(status, reason, share, run.key, tier, (run.pack.path("counters.jsonl"),))

    return fold(
        data.plan, "external_hits", arm, each(data.places(arm), findings), fault=Attribution.PRODUCT if arm == "candidate" else Attribution.RIG
    )
