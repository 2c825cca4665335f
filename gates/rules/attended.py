"""Is what a run brings of an engine host elsewhere that host's: by its name, its boot, and its own account of what it was asked.

Where a load generator of its own drives the engine, the driver records what the attendant on the engine's host answered, each row with `on`:
{host, boot_id, wall_ns, mono_ns} of that host and the driver's {asked_ns, answered_ns}. The attendant keeps an account of its own, which comes
home from its host and not through the driver. A row that this account does not bear out is no evidence; so is one whose moment does not lie on
the right side of the requests by the driver's clock, whatever lies between asking and answer.

A soak goes on after a reboot of either host. Then each row bears the boots of both (gates.readers.boots), the account has several boots, and what
was said last before one of them was cut off may be on record on one host alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gates.bundle import INPUTS, Bundle
from gates.model import ATTENDED, Problem, StepSpec
from gates.readers.boots import engine_of
from gates.readers.run_pack import Pack
from gates.readers.strict import Reader, at, count, exact
from gates.rules.estimates import NS, ms
from gates.text import Text

PORTS, CELLS = "ports.json", "cells.jsonl"
_UNSYNCED_S = 5  # journals are put on the medium every second; a busy disk takes longer
Moment = tuple[str, int]  # boot, monotonic ns
ROWS = {"counters.jsonl": "reading", "coldness.jsonl": "residency"}  # and the verb by which the attendant accounts for each
ANSWERED = {  # of a row, what that host answered; the rest is the driver's
    "reading": ("engine_io", "diskstats", "nfs", "nics", "drives", "page_cache", "array", "offload"),
    "residency": (
        "fs_type",
        "source",
        "mount_point",
        "dir",
        "files",
        "bytes",
        "resident_bytes",
        "pages",
        "resident_pages",
        "page_bytes",
        "names",
        "transports",
    ),
}


@dataclass(frozen=True)
class Account:
    """What the engine's host itself says: its boots, and by verb the moments of its answers with their digests."""

    host: str
    boots: tuple[str, ...]  # the newest last; none where it is not told
    answered: Mapping[str, Mapping[Moment, Any]]

    def boot_of(self, row: Mapping[str, Any]) -> str | None:
        """Return in which boot a row of the driver must have been taken: the one that it names, else the newest; None where there is none."""
        named = row.get("boot_id")
        boot = (engine_of(named) if isinstance(named, str) else None) or (self.boots[-1] if self.boots else None)
        return boot if boot in self.boots else None

    def last(self, boot: str) -> int:
        """Return the last moment of a boot of which it gave account, -1 for none."""
        return max((moment for rows in self.answered.values() for there, moment in rows if there == boot), default=-1)


def problems(bundle: Bundle, step: StepSpec, pack: Pack) -> list[Problem]:
    """Return what is wrong with the rows of a run that were taken on an engine host, by where the engagement says that this host is."""
    hosts = bundle.hosts(ATTENDED) if ATTENDED in step.expects else ()
    if not hosts:
        return list(_foreign(pack))
    if len(hosts) > 1:
        text = Text(
            "{s}: a run of a load generator of its own is measured on one engine host; the engagement names {n} ({h}).",
            "{s}：独立负载机的一轮只在一台引擎主机上测量；项目给出 {n} 台（{h}）。",
        )
        return [Problem("hosts", text.fill(s=step.key, n=len(hosts), h=", ".join(hosts)), INPUTS)]
    found: list[Problem] = []
    account = _account(bundle, step, pack, hosts[0], found)
    rows = (*_rows(pack, account), *_ports(bundle, pack, account), *_order(pack), *_samples(pack, account), *_cells(bundle, pack, account))
    return [*found, *rows]


def _foreign(pack: Pack) -> Iterator[Problem]:
    """Yield rows of a host elsewhere in a run whose load generator is the engine's host: no attendant can have answered there."""
    rows = {name: [at(row, "on") for row in _of(pack, name)] for name in ROWS}
    rows["telemetry.jsonl"] = [place[1:] for place in pack.samples.places] if pack.samples is not None else []
    for name, on in rows.items():
        if any(one is not None and one != (None, None) for one in on):
            text = Text(
                "{p}: holds rows of a host that the engagement does not name apart from the load generator.", "{p}：含有项目未列为独立引擎主机的行。"
            )
            yield Problem("host", text.fill(p=pack.path(name)), pack.path(name))


def _of(pack: Pack, name: str) -> tuple[dict[str, Any], ...]:
    return pack.counters if name == "counters.jsonl" else pack.coldness


def _account(bundle: Bundle, step: StepSpec, pack: Pack, host: str, found: list[Problem]) -> Account:
    """Read what the attendant brought, and record what is wrong with it: another job, another specification, an end that was not due."""
    reader = Reader(bundle, f"evidence/{step.key}/{host}")
    told = {name: reader.document(name) for name in ("job.json", "exit.json", "started")}
    rows = reader.journal("asked.jsonl")
    found += [p for p in reader.problems if p.code != "missing"]  # missing files are listed by identity already
    job, end, boot = told["job.json"], told["exit.json"], at(told["started"], "boot_id")
    boots = [*(_earlier(reader) if step.params["kind"] == "soak" else ()), boot]
    for name, wrong in (
        ("job.json", job.get("job") != pack.job.get("job") or job.get("kind") != "attend" or job.get("host") != host),
        ("job.json", job.get("engine") != pack.job.get("engine") or (job.get("cells") or []) != _measured_there(pack)),
        ("exit.json", end.get("outcome") != "done" or end.get("job") != pack.job.get("job")),
        ("started", not isinstance(boot, str) or not boot or boot != end.get("boot_id")),
        ("asked.jsonl", any(row.get("boot_id") not in boots for row in rows)),
    ):
        if wrong:
            text = Text(
                "{p} is not that of the attendant that served this run on {h} from its begin to its end, in one boot (a soak: in those it names).",
                "{p} 不属于在 {h} 上自始至终、同一次开机内（稳定性运行：其所列各次开机内）服务本轮的代理。",
            )
            found.append(Problem("attendant", text.fill(p=reader.path(name), h=host), reader.path(name)))
    answered: dict[str, dict[Moment, Any]] = {}
    for row in rows:
        moment = count(row.get("mono_ns"))
        if moment is not None and row.get("error") is None:
            answered.setdefault(str(row.get("verb")), {})[str(row.get("boot_id")), moment] = row.get("sha256")
    return Account(host, tuple(dict.fromkeys(one for one in boots if isinstance(one, str) and one)), answered)


def _earlier(reader: Reader) -> Iterator[Any]:
    """Yield the boots before the newest in which a job ran, as its marks `started.N` tell them."""
    for n in itertools.count(1):
        if not reader.bundle.has(reader.path(f"started.{n}")):
            return
        yield at(reader.document(f"started.{n}"), "boot_id")


def _rows(pack: Pack, account: Account) -> Iterator[Problem]:
    """Yield what is wrong with rows: of no host, of another, of another boot, not in its account, or older than the row before."""
    for name, verb in ROWS.items():
        said, borne_out = _said(pack, name), account.answered.get(verb, {})
        last: dict[str, int] = {}
        for row in _of(pack, name):
            on, boot = at(row, "on"), account.boot_of(row)
            moment, asked, answered = (count(at(on, key)) for key in ("mono_ns", "asked_ns", "answered_ns"))
            engine_boot = at(row, "engine", "boot_id")
            wrong = (
                at(on, "host") != account.host
                or boot is None
                or at(on, "boot_id") != boot
                or engine_boot not in (None, boot)
                or moment is None
                or (boot, moment) not in borne_out
                or borne_out[boot, moment] != said[boot, moment]
                or moment < last.get(boot, -1)
                or asked is None
                or answered is None
                or answered < asked
            )
            if wrong:
                text = Text(
                    "{p}: row {n} is not what {h} answered in the boot in which its attendant ran.",
                    "{p}：第 {n} 行不是 {h} 在其代理所在开机内的应答。",
                )
                yield Problem("host", text.fill(p=pack.path(name), n=row.get("seq"), h=account.host), pack.path(name))
                break
            if boot is not None and moment is not None:
                last[boot] = moment


def _said(pack: Pack, name: str) -> dict[Moment, str]:
    """Return the digest of what each answer held, as the driver's rows tell it, by the moment of the answer; one answer may be several rows."""
    verb = ROWS[name]
    held: dict[Moment, list[dict[str, Any]]] = {}
    for row in _of(pack, name):
        moment = count(at(row, "on", "mono_ns"))
        if moment is not None:
            held.setdefault((str(at(row, "on", "boot_id")), moment), []).append({key: row[key] for key in ANSWERED[verb] if key in row})
    return {moment: digest(rows if verb == "residency" else rows[0]) for moment, rows in held.items()}


def digest(answer: Any) -> str:
    """Return the SHA-256 (hex) of an answer in the probe's canonical form: compact ASCII JSON with keys in order."""
    return hashlib.sha256(_canonical(answer).encode("ascii")).hexdigest()


def _canonical(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return json.dumps(float(value) if isinstance(value, Decimal) else value)  # a float that was written as its shortest form reads back as itself


def _ports(bundle: Bundle, pack: Pack, account: Account) -> Iterator[Problem]:
    """Yield where a reading of the storage ports is not that host's: they are its ports, told with its own stamps."""
    where = pack.path(PORTS)
    readings = Reader(bundle, pack.folder).document(PORTS).get("readings") if bundle.has(where) else None
    for row in readings if isinstance(readings, list) else ():
        told = count(at(row, "mono_ns"))
        boots = {at(row, "boot_id"), at(row, "on", "boot_id")}
        if boots != {*account.boots[-1:]} or at(row, "on", "host") != account.host or told is None or not _within(row, account):
            text = Text(
                "{p}: a reading is not what {h} answered in the boot in which its attendant ran.", "{p}：某次读数不是 {h} 在其代理所在开机内的应答。"
            )
            yield Problem("host", text.fill(p=where, h=account.host), where)


def _within(row: Mapping[str, Any], account: Account) -> bool:
    return (at(row, "on", "boot_id"), count(at(row, "on", "mono_ns"))) in account.answered.get("ports", {})


def _order(pack: Pack) -> Iterator[Problem]:
    """Yield counters and looks that are not before, or not behind, the requests that they belong to, by the driver's clock."""
    for name in ROWS:
        for row in _of(pack, name):
            phase, tier, when = str(row.get("phase") or "measure"), row.get("tier"), str(row.get("when"))
            sent, ended = _edges(pack, phase, tier, row.get("boot_id"))
            if sent is None or ended is None or when == "after_cool":
                continue
            asked, answered = count(at(row, "on", "asked_ns")), count(at(row, "on", "answered_ns"))
            before = when.startswith("before")
            if (before and (answered is None or answered > sent)) or (not before and (asked is None or asked < ended)):
                text = Text(
                    "{p}: row {n} ({w}) was not taken on that side of the requests, by the driver's clock.",
                    "{p}：第 {n} 行（{w}）按驱动端时钟不在请求的相应一侧。",
                )
                yield Problem("order", text.fill(p=pack.path(name), n=row.get("seq"), w=when), pack.path(name))


def _edges(pack: Pack, phase: str, tier: Any, boot_id: Any) -> tuple[int | None, int | None]:
    """Return when the first request of a phase was sent and the last one ended (ns of the driver's clock), None where there is none.

    Of a soak of several boots they are those of the boot that the row names.
    """
    if pack.records is not None:
        inside = pack.records if phase in ("soak", "measure") else None
        if inside is not None and isinstance(boot_id, str):
            boots = inside.boots
            inside = inside.where(inside.boot == (boots.index(boot_id) if boot_id in boots else -1))
        return (int(inside.sent.min()), int(inside.end.max())) if inside is not None and len(inside) else (None, None)
    requests = pack.of(phase, tier if isinstance(tier, int) else None)
    return (min(r.sent_ns for r in requests), max(r.end_ns for r in requests)) if requests else (None, None)


def _samples(pack: Pack, account: Account) -> Iterator[Problem]:
    """Yield where samples of a soak are not all of the engine's host in its boots, or not those that it gave: none may be left out."""
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
    """Return both without what was lost when a host went down: said last, recorded on the other one alone. `boots`: there, of each of the pack's."""
    samples, period = pack.samples, exact(at(pack.job, "soak", "telemetry_s"))
    if samples is None:
        return missing, foreign
    most = int((2 * (period or 0) + _UNSYNCED_S) * NS)  # two samples, and what was not yet on the medium
    ends = [(boots[n], int(samples.there[samples.boot == n].max(initial=-1))) for n in range(len(boots) - 1)]
    lost = {one for one in missing for boot, end in ends if one[0] == boot and end < one[1] <= end + most}
    last = {boot: account.last(boot) for boot in account.boots[:-1]}
    gone = {(boot, at_ns) for boot, at_ns in foreign if boot in last and last[boot] < at_ns <= last[boot] + most}
    return missing - lost, foreign - gone


_CLIENT, _LOAD = "client", "model_load"  # cells that the driver measures: one alone, one with the weights' figures of the engine's host
_DRIVERS = frozenset({"seq", "wall_ns", "mono_ns", "boot_id", "cell", "on"})  # of a row of cells.jsonl; the rest that host answered
_WEIGHTS = ("bytes", "weight_files")


def _measured_there(pack: Pack) -> list[Any]:
    """Return the cells of a run that the engine's host has its part in, as the driver's job file names them."""
    cells = pack.job.get("cells")
    return [row for row in cells if at(row, "cell") != _CLIENT] if isinstance(cells, list) else []


def _cells(bundle: Bundle, pack: Pack, account: Account) -> Iterator[Problem]:
    """Yield cells that hold what the engine's host never answered, or weights that were not looked at before and behind the load of the model."""
    where = pack.path(CELLS)
    for row in Reader(bundle, pack.folder).journal(CELLS) if bundle.has(where) else ():
        cell = row.get("cell")
        if cell == _CLIENT or (row.get("problem") is not None and row.get("cold") is not True and not {"on", "on_after"} & set(row)):
            continue  # nothing of that host is in it
        if cell == _LOAD:
            known = {key: row.get(key) for key in _WEIGHTS}
            told = {when: {**known, "disk": row.get(f"disk_{when}"), "nfs": row.get(f"nfs_{when}")} for when in ("before", "after")}
            told["before"]["proof"] = row.get("proof")
            borne_out = all(_answered(account, "weights", row.get(f"on_{when}"), answer) for when, answer in told.items())
            edges = [count(at(row, *path)) for path in (("on_before", "answered_ns"), ("started_ns",), ("ended_ns",), ("on_after", "asked_ns"))]
            good = borne_out and None not in edges and edges == sorted(e for e in edges if e is not None)
        else:
            good = _answered(account, "cell", row.get("on"), {key: value for key, value in row.items() if key not in _DRIVERS})
        if not good:
            text = Text("{p}: the cell {c} is not what {h} measured for this run.", "{p}：测点 {c} 不是 {h} 为本轮测得的结果。")
            yield Problem("host", text.fill(p=where, c=str(cell)[:40], h=account.host), where)


def _answered(account: Account, verb: str, on: Any, answer: Mapping[str, Any]) -> bool:
    """Return whether the engine's host says that it gave this answer, in the boot in which its attendant ran."""
    moment, boot = count(at(on, "mono_ns")), at(on, "boot_id")
    if at(on, "host") != account.host or moment is None or not isinstance(boot, str) or boot not in account.boots:
        return False
    return account.answered.get(verb, {}).get((boot, moment)) == digest(answer)


def clocks_known(packs: Sequence[Pack]) -> Text | None:
    """Return a sentence with how long an answer of the engine's host took at most: so far its rows are known on the driver's clock."""
    ons = [at(row, "on") for pack in packs for name in ROWS for row in _of(pack, name)]
    spans = [(span, str(at(on, "host"))) for on in ons if (span := _span(on)) is not None]
    if not spans:
        return None
    widest, host = max(spans)
    text = Text(" What {h} answered is placed to within {v} ms on the load generator's clock.", "{h} 的应答在负载机时钟上的定位误差不超过 {v} ms。")
    return text.fill(h=host, v=ms(widest))


def _span(on: Any) -> int | None:
    asked, answered = count(at(on, "asked_ns")), count(at(on, "answered_ns"))
    return None if asked is None or answered is None else answered - asked


def on_that_clock(row: Mapping[str, Any] | None, driver_ns: int) -> int | None:
    """Return a moment of the driver's clock (ns) on the clock of the host that a row was taken on, at its latest; the same where it has no `on`.

    The distance of the clocks lies between two figures, by when the driver asked and when it had the answer; what came later than the latest
    moment came later for certain.
    """
    on = at(row, "on")
    if on is None:
        return driver_ns
    moment, asked = count(at(on, "mono_ns")), count(at(on, "asked_ns"))
    return None if moment is None or asked is None else driver_ns + moment - asked
