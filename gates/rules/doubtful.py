"""Counts that cannot be true in the unit that they are said to be in: such a ratio is a doubt, never a proof.

A limit that asks for enough (bytes from the media, bytes stored) is met by any count that is too large, so a counter in KiB, blocks or bits
would turn a breach into a proof. Two counts of the same bytes must therefore agree within `validity.account_ratio_max`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from gates.readers.strict import at, count, exact
from gates.rules.claim import Finding, Run, unknown
from gates.rules.estimates import percent
from gates.text import Text

UNIT = Text("a run whose counters are all in bytes would tell", "各计数器均以字节计的轮次方可判定")
CLOCKS = Text("a run whose times are all in nanoseconds would tell", "各时间均以纳秒计的轮次方可判定")
BESIDE = Decimal(100)  # times the recovered KV: a block device serves others too, but its counter must still be able to show the engine's reads
TICK_NS = 10_000_000  # the period at which the probe's loop notes how late it is (probe.ticker)
_FASTEST_NS = 10_000  # a timer of the kernel wakes nobody more punctually than this in 99 of 100 cases (its slack alone is 50 us)
_TIMES_LOST = 5
_DIGITS = 63  # of a whole number of nanoseconds: 292 years
_STARTS = 8  # ticks that the begin and the end of the phases may cost or give


def array_units(run: Run, tier: int, counts: tuple[int, int, int | None], most: Decimal) -> Finding | None:
    """Return that an array's counters are in doubt, or None. `counts`: bytes that hosts read, that its media read, that the engine read.

    Media read more than hosts by read-ahead and parity, but not many times as much; hosts do not read less than the engine on one of them.
    """
    host, media, process = counts
    share = Decimal(media) / host
    if share > most:
        told = (
            f"the array's media read {percent(share, most)} of the bytes that hosts read (at most {percent(most)}): the unit is doubtful.",
            f"阵列介质的读取量为主机读取量的 {percent(share, most)}（上限 {percent(most)}）：单位存疑。",
        )
    elif process is not None and host * most < process:
        told = (
            f"hosts read {host} bytes from the array, the engine alone {process}: the unit of the array's counters is doubtful.",
            f"主机从阵列读取 {host} 字节，仅引擎即读取 {process} 字节：阵列计数器的单位存疑。",
        )
    else:
        return None
    return unknown(run, *told, tier=tier, files=("counters.jsonl",), change=UNIT)


def pages_units(run: Run, row: Mapping[str, Any], tier: int | None) -> Finding | None:
    """Return that the bytes of a residency check are not what its pages hold, or None. The last page of each file may be cut."""
    files, size, resident, pages, warm, page = (
        count(row.get(key)) for key in ("files", "bytes", "resident_bytes", "pages", "resident_pages", "page_bytes")
    )
    if files is None or size is None or resident is None or pages is None or warm is None or not page:
        untold = ("the residency check counted no pages, so its bytes stand alone.", "驻留检查没有统计页数，其字节数无从核对。")
        return unknown(run, *untold, tier=tier, files=("coldness.jsonl",), change=UNIT)
    if all((whole - min(files, whole)) * page <= told <= whole * page for whole, told in ((pages, size), (warm, resident))):
        return None
    told = (
        f"{size} bytes with {resident} in memory are not {pages} pages with {warm} in memory, of {page} bytes each: the unit is doubtful.",
        f"{size} 字节（驻留 {resident} 字节）与 {pages} 页（驻留 {warm} 页，每页 {page} 字节）不符：单位存疑。",
    )
    return unknown(run, *told, tier=tier, files=("coldness.jsonl",), change=UNIT)


def device_units(run: Run, tier: int, name: Text, share: Decimal, most: Decimal) -> Finding | None:
    """Return that what a device or mount read is too much for the KV that was recovered, or None. `share`: of the bytes that the KV takes."""
    if share <= most:
        return None
    told = (
        f"the {name.en} read {percent(share, most)} of the bytes that the recovered KV takes (at most {percent(most)}): the unit is doubtful.",
        f"{name.zh}的读取量为恢复 KV 应有字节的 {percent(share, most)}（上限 {percent(most)}）：单位存疑。",
    )
    return unknown(run, *told, tier=tier, files=("counters.jsonl", "engine.json"), change=UNIT)


def stored_units(run: Run, share: Decimal, most: Decimal) -> Finding | None:
    """Return that more was counted as stored than the prefixes take, many times over, or None. `share`: of the bytes that they take."""
    if share <= most:
        return None
    told = (
        f"{percent(share, most)} of the bytes that the prefixes take were counted as stored (at most {percent(most)}): the unit is doubtful.",
        f"计得的写入量为各前缀应有字节的 {percent(share, most)}（上限 {percent(most)}）：单位存疑。",
    )
    return unknown(run, *told, files=("counters.jsonl", "engine.json"), change=UNIT)


def lag_units(run: Run, lag: int) -> Finding | None:
    """Return that the lag of the client's loop (ns, p99) contradicts what else client.json tells of the same ticks, or None.

    The loop counts its ticks by the binary digits of their lag, under names that no unit can be swapped in: p99 and largest lag must lie where
    these counts say, to a power of two, and the counts add up to the ticks. One tick in a hundred lags at least as much as the p99, and a lag of
    a whole period swallows the ticks that fall due meanwhile: so ticks that are missing from the time measured bound the lag from below
    (Markov), and a lag told in another unit is less than they say. None is below what a timer of the kernel can do.
    """
    client = run.pack.client
    ticks, most, wall = count(client.get("loop_ticks")), count(client.get("loop_lag_max_ns")), exact(client.get("wall_s"))
    digits = _by_digits(client.get("loop_lag_digits"))
    if not ticks or most is None or wall is None or wall <= 0 or not digits:
        untold = (
            "client.json does not tell ticks, their lags by size, largest lag and time of the client's loop, so its lag stands alone.",
            "client.json 未给出客户端事件循环的节拍数、按大小统计的滞后、最大滞后和时长，其滞后值无从核对。",
        )
        return unknown(run, *untold, files=("client.json",))
    lost = wall * 10**9 - (ticks + _STARTS) * TICK_NS  # ns of ticks that never came by themselves
    counted = sum(digits.values()) == ticks and max(digits) == most.bit_length() and _holds(digits, -(-99 * ticks // 100)) == lag.bit_length()
    if counted and _FASTEST_NS <= lag <= most and lost <= _TIMES_LOST * lag * ticks and wall * 10**9 >= (ticks - _STARTS) * TICK_NS:
        return None
    told = (
        f"the event loop's p99 lag of {lag} ns contradicts its largest lag of {most} ns, its {ticks} ticks in {wall} s or their lags by size: "
        "the unit is doubtful.",
        f"事件循环 p99 滞后 {lag} ns 与其最大滞后 {most} ns、{wall} s 内 {ticks} 个节拍或按大小统计的滞后相矛盾：单位存疑。",
    )
    return unknown(run, *told, files=("client.json",), change=CLOCKS)


def _by_digits(told: Any) -> dict[int, int]:
    """Return {binary digits of a lag in ns: ticks}, without those of none; empty where that is not what was told."""
    if not isinstance(told, Mapping):
        return {}
    rows = {name: count(ticks) for name, ticks in told.items()}
    if any(ticks is None or not (len(name) < 3 and name.isdecimal() and int(name) <= _DIGITS) for name, ticks in rows.items()):
        return {}
    return {int(name): ticks for name, ticks in rows.items() if ticks}


def _holds(digits: Mapping[int, int], rank: int) -> int:
    """Return how many binary digits the value of a rank (from 1) has."""
    seen = 0
    for length in sorted(digits):
        seen += digits[length]
        if seen >= rank:
            return length
    return -1


def receipt_units(receipt: Any) -> bool:
    """Return whether how late receipts were in the calibration is told as one distribution: least, median, p99, largest in order.

    Of up to a hundred receipts the p99 (nearest rank) is the largest itself.
    """
    row = receipt if isinstance(receipt, Mapping) else {}
    n, least, middle, late, most = (count(at(row, key)) for key in ("n", "late_min_ns", "late_p50_ns", "late_p99_ns", "late_max_ns"))
    if not n or least is None or middle is None or late is None or most is None:
        return False
    return least <= middle <= late <= most and (n > 100 or late == most)
