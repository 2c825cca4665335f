"""Is a request missing that the engine need not have counted, as one that failed: what the driver itself counted, against its journal.

Four things beside the journal tell how many requests there were: the number that the phase ends with, the turn in which prompts come, the windows
of the sentinel, and the answers that the client counted. They are written when a boot's load ends by itself. Of one that a reboot cut off they
are not there, and what its last moments held is not on record either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gates.g4.series import Soak
from gates.model import ClaimStatus
from gates.readers.places import hosts_of
from gates.readers.soak_records import SoakRecords
from gates.readers.strict import at, count
from gates.rules.claim import Finding, Run, unknown
from gates.text import Text


def witnesses(soak: Soak, run: Run) -> Iterator[Finding]:
    """Yield what each boot whose load ended by itself tells of its requests; nothing where all of it agrees with the journal."""
    ended = [row for row in run.pack.phases if row.get("phase") == "soak" and at(row, "detail", "error") is None]
    if not ended:
        en, zh = "no phase of the load ended by itself, so nobody counted its requests.", "没有自行结束的加载阶段，因此无请求总数可核对。"
        yield unknown(run, en, zh, files=("phases.jsonl",))
    strange = {str(e.get("boot_id")) for e in run.pack.events if e.get("kind") == "sentinel"} - set(soak.records.boots)
    if strange:
        en = f"the sentinel tells of a load in a boot ({min(strange)}) of which there is no request."
        yield unknown(run, en, f"哨兵记录了开机 {min(strange)} 中的加载，但该次开机没有任何请求记录。", files=("events.jsonl", "records.jsonl"))
    for row in ended:
        boot = str(row.get("boot_id"))
        mine = soak.records.where(_of_boot(soak.records, boot))
        yield from _sent(run, row, mine)
        yield from _in_turn(run, mine)
        yield from _sentinel(run, boot, mine)
    for row in ended[-1:]:  # client.json is of the last boot's driver
        yield from _answers(run, soak.records.where(_of_boot(soak.records, str(row.get("boot_id")))))


def _of_boot(records: SoakRecords, boot: str) -> Any:
    return records.boot == records.boots.index(boot) if boot in records.boots else np.zeros(len(records), dtype=bool)


def _sent(run: Run, row: dict[str, Any], records: SoakRecords) -> Iterator[Finding]:
    """Hold the journal against `detail.requests` of the phase."""
    requests = count(at(row, "detail", "requests"))
    if requests is None:
        yield unknown(run, "the phase of the load does not tell its requests.", "加载阶段未给出请求数。", files=("phases.jsonl",))
    elif requests != len(records):
        text = Text(
            "the driver counted {r} requests at the end of the load, the journal of requests has {n}.",
            "加载结束时驱动端计得 {r} 个请求，请求日志中有 {n} 个。",
        )
        yield _breach(run, text.fill(r=requests, n=len(records)), "phases.jsonl")


def _in_turn(run: Run, records: SoakRecords) -> Iterator[Finding]:
    """Hold the prompt numbers against the rotation: 0, 1, ... and round again, so that no prefix is asked twice more than another."""
    rotating, many, odd = sum(run.wanted.values()), max(1, len(hosts_of(run.pack))), 0
    for place in range(many):  # each engine host rotates its own prefixes at its own pace
        turn = records.prompt[(records.prompt < rotating) & (records.prompt % many == place)] // many
        own = len(range(place, rotating, many))
        asked = np.bincount(turn, minlength=own)
        laps, rest = divmod(len(turn), own) if own else (0, 0)
        odd += int((asked != laps + (np.arange(own) < rest)).sum())
    if odd:
        text = Text(
            "{n} of {all} prefixes were not asked as often as their turn came: requests of the rotation are missing or doubled.",
            "{all} 个前缀中有 {n} 个的请求次数与轮换次序不符：轮换请求有缺失或重复。",
        )
        yield _breach(run, text.fill(n=odd, all=rotating), "job.json")


def _sentinel(run: Run, boot: str, records: SoakRecords) -> Iterator[Finding]:
    """Hold the requests of the sentinel, and how many of them failed, against what the events of its windows add up to."""
    seen = records.where(records.prompt >= sum(run.wanted.values()))
    events = [e for e in run.pack.events if e.get("kind") == "sentinel" and str(e.get("boot_id")) == boot]
    told = [(count(at(e, "detail", "requests")), count(at(e, "detail", "failed"))) for e in events]
    if (not told and len(seen)) or any(requests is None or failed is None for requests, failed in told):
        yield unknown(run, "the windows of the sentinel do not tell their requests.", "哨兵窗口未给出请求数。", files=("events.jsonl",))
        return
    requests, failed = (sum(pair[n] or 0 for pair in told) for n in (0, 1))
    lost = int((seen.answered == 0).sum())
    if (requests, failed) != (len(seen), lost):
        text = Text(
            "the windows of the sentinel tell of {r} requests, {f} of them failed; the journal of requests has {n}, {l} of them failed.",
            "哨兵窗口共 {r} 个请求，其中 {f} 个失败；请求日志中有 {n} 个，其中 {l} 个失败。",
        )
        yield _breach(run, text.fill(r=requests, f=failed, n=len(seen), l=lost), "events.jsonl")


def _answers(run: Run, records: SoakRecords) -> Iterator[Finding]:
    """Hold the requests that were answered against the client's own number of answers."""
    told, answered = count(at(run.pack.client, "server_stamps", "answers")), int((records.answered == 1).sum())
    if told is None:
        yield unknown(run, "the client does not tell how many answers it had.", "客户端未给出收到的回答数。", files=("client.json",))
    elif told != answered:
        text = Text("the client had {t} answers, the journal of requests has {n}.", "客户端收到 {t} 个回答，请求日志中有 {n} 个。")
        yield _breach(run, text.fill(t=told, n=answered), "client.json")


def _breach(run: Run, reason: Text, file: str) -> Finding:
    return Finding(ClaimStatus.BREACHED, reason, None, run.key, None, (run.pack.path("records.jsonl"), run.pack.path(file)))
