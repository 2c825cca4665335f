"""Are the samples of a soak those that its engine host gave, each once: none may be left out."""

from __future__ import annotations

from collections.abc import Iterator

from gates.model import Problem
from gates.readers.places import at_host
from gates.readers.run_pack import Pack
from gates.readers.strict import at, exact
from gates.rules.attend_account import Account, Moment
from gates.rules.estimates import NS
from gates.text import Text

_UNSYNCED_S = 5  # journals are put on the medium every second; a busy disk takes longer


def problems(pack: Pack, account: Account) -> Iterator[Problem]:
    """Yield where samples of a soak are not all of the engine's host in its boots, or not those that it gave: none may be left out."""
    pack = at_host(pack, account.host)
    samples, where = pack.samples, pack.path("telemetry.jsonl")
    if samples is None:
        return
    places = {(host, there, account.boot_of({"boot_id": boot})) for boot, host, there in samples.places}
    if not places or any(host != account.host or there is None or there != boot for host, there, boot in places):
        text = Text("{p}: not all samples are of {h} in the boot in which its attendant ran.", "{p}：并非所有样本都来自 {h} 在其代理所在的开机。")
        yield Problem("host", text.fill(p=where, h=account.host), where)
        return
    boots = [str(account.boot_of({"boot_id": boot})) for boot in samples.boots]
    here = [(boots[code] if code >= 0 else "", moment) for code, moment in zip(samples.boot.tolist(), samples.there.tolist(), strict=True)]
    given = set(account.answered.get("sample", {}))
    missing, foreign = _but_lost(pack, account, given - set(here), set(here) - given, boots)
    if missing or foreign or len(here) != len(set(here)):
        text = Text(
            "{p}: {n} samples are here, and {h} gave {m}; {a} of those are missing, and {b} here are none that it gave.",
            "{p}：此处有 {n} 个样本，而 {h} 给出 {m} 个；其中缺少 {a} 个，此处另有 {b} 个并非其给出。",
        )
        yield Problem("host", text.fill(p=where, n=len(here), h=account.host, m=len(given), a=len(missing), b=len(foreign)), where)


def _but_lost(pack: Pack, account: Account, missing: set[Moment], foreign: set[Moment], boots: list[str]) -> tuple[set[Moment], set[Moment]]:
    """Return both without what was lost when a host went down: said last, and on record on the other one alone. `boots`: there, of the pack's."""
    samples, period = pack.samples, exact(at(pack.job, "soak", "telemetry_s"))
    if samples is None:
        return missing, foreign
    most = int((2 * (period or 0) + _UNSYNCED_S) * NS)  # two samples, and what was not yet on the medium
    ends = [(boots[n], int(samples.there[samples.boot == n].max(initial=-1))) for n in range(len(boots) - 1)]
    lost = {one for one in missing for boot, end in ends if one[0] == boot and end < one[1] <= end + most}
    last = {boot: account.last(boot) for boot in account.boots[:-1]}
    gone = {(boot, at_ns) for boot, at_ns in foreign if boot in last and last[boot] < at_ns <= last[boot] + most}
    return missing - lost, foreign - gone
