"""Was the load of a run shared over its engine hosts as it must be, and did each host serve what it was sent: held host by host.

A prefix lies where it was stored. So the n-th prompt of each kind belongs to host n modulo their number (probe/shares.py), and a request that went
elsewhere asked a host for what it never had. What each engine counted must be what the driver sent to it: a request that another client sent, or that
never arrived, shows at its host even where the sums agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gates.engine_counters import SERVED
from gates.model import Problem
from gates.readers.places import at_host, host_of, hosts_of, owner_of
from gates.readers.prometheus import growth
from gates.readers.run_pack import Pack
from gates.text import Text

if TYPE_CHECKING:
    from gates.readers.soak_records import SoakRecords

RECORDS, COUNTERS = "records.jsonl", "counters.jsonl"


def problems(pack: Pack) -> Iterator[Problem]:
    """Yield each host whose requests are not its share, and each whose engine counted others than it was sent (of a soak a claim says that)."""
    yield from _astray(pack)
    for records in (pack.records, pack.stored):
        yield from _astray_of_soak(pack, records)
    for host in hosts_of(pack):
        yield from _uncounted(at_host(pack, host), host)


def _astray(pack: Pack) -> Iterator[Problem]:
    strays = [request for request in pack.requests if host_of(pack, request) != owner_of(pack, request.prompt)]
    if strays:
        first = strays[0]
        text = Text(
            "{p}: {n} requests did not go to the engine host that their prompt belongs to; the first, prompt {i} of {f}, went to {h} and not to {w}.",
            "{p}：{n} 个请求未发往其提示所属的引擎主机；第一个（{f} 的提示 {i}）发往 {h}，应为 {w}。",
        )
        seen, wanted = host_of(pack, first) or Text("no host", "无主机"), owner_of(pack, first.prompt)
        told = text.fill(p=pack.path(RECORDS), n=len(strays), i=first.prompt, f=first.phase, h=seen, w=wanted)
        yield Problem("share", told, pack.path(RECORDS))


def _astray_of_soak(pack: Pack, records: SoakRecords | None) -> Iterator[Problem]:
    """Yield where requests of a soak on several engine hosts did not go to the host of their prompt, or do not say to which they went."""
    names = hosts_of(pack)
    if records is None or len(names) < 2:
        return
    place_of = {code: names.index(name) if name in names else -1 for code, name in enumerate(records.hosts)}
    strays = sum(
        int(((records.host == code) & (records.prompt % len(names) != place_of.get(code, -1))).sum()) for code in (-1, *range(len(records.hosts)))
    )
    if strays:
        text = Text(
            "{p}: {n} requests of the soak did not go to the engine host that their prompt belongs to ({h}).",
            "{p}：稳定性运行中有 {n} 个请求未发往其提示所属的引擎主机（{h}）。",
        )
        yield Problem("share", text.fill(p=pack.path(RECORDS), n=strays, h=", ".join(names)), pack.path(RECORDS))


def _uncounted(view: Pack, host: str) -> Iterator[Problem]:
    """Yield the tiers in which a host's engine counted fewer requests than were answered, or more than were sent; not where it has no counter."""
    for tier in sorted({r.tier for r in view.requests if r.phase == "measure" and r.tier is not None}):
        pair, sent = view.counter_pair("measure", tier), view.of("measure", tier)
        grown = growth(pair[0].get("metrics"), pair[1].get("metrics"), SERVED) if pair else None
        good = sum(request.failure is None for request in sent)
        if grown is not None and not good <= grown <= len(sent):
            text = Text(
                "{p}: at c{t} the driver sent {h} {n} requests, {g} of them answered whole, and its engine counted {c}.",
                "{p}：c{t} 时驱动端向 {h} 发出 {n} 个请求，其中 {g} 个完整应答，而其引擎计得 {c} 个。",
            )
            told = text.fill(p=view.path(COUNTERS), t=tier, h=host, n=len(sent), g=good, c=format(grown.normalize(), "f"))
            yield Problem("requests", told, view.path(COUNTERS))
