"""Is what a run brings of engine hosts elsewhere theirs: by each host's name, its boot, and its own account of what it was asked.

Where a load generator of its own drives the engines, the driver records what the attendant on each engine host answered, each row with `on`:
{host, boot_id, wall_ns, mono_ns} of that host and the driver's {asked_ns, answered_ns}. The attendant keeps an account of its own, which comes
home from its host and not through the driver. A row that this account does not bear out is no evidence; so is one whose moment does not lie on
the right side of the requests by the driver's clock, whatever lies between asking and answer.

A soak goes on after a reboot of either host. Then each row bears the boots of both (gates.readers.boots), the account has several boots, and what
was said last before one of them was cut off may be on record on one host alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gates.bundle import Bundle
from gates.model import ATTENDED, Problem, StepSpec
from gates.readers.places import hosts_of
from gates.readers.run_pack import Pack
from gates.readers.strict import Reader, at, count
from gates.rules import attend_cells, attend_samples, shared_load
from gates.rules.attend_account import Account, digest, not_reset, not_started_anew, read_account
from gates.rules.estimates import ms
from gates.text import Text

PORTS = "ports.json"
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
        "engine",
    ),
}


def problems(bundle: Bundle, step: StepSpec, pack: Pack) -> list[Problem]:
    """Return what is wrong with the rows of a run that were taken on engine hosts, by where the engagement says that these hosts are."""
    hosts = bundle.hosts(ATTENDED) if ATTENDED in step.expects else ()
    if not hosts:
        return list(_foreign(pack))
    if sorted(hosts) != sorted(hosts_of(pack)):
        text = Text(
            "{p}: the job was given the engine hosts {g}, and the engagement names {h}.", "{p}：作业所给的引擎主机为 {g}，而项目列出的为 {h}。"
        )
        given = ", ".join(hosts_of(pack)) or Text("none", "无")
        return [Problem("hosts", text.fill(p=pack.path("job.json"), g=given, h=", ".join(hosts)), pack.path("job.json"))]
    found: list[Problem] = []
    accounts = {host: read_account(bundle, step, pack, host, found) for host in hosts_of(pack)}
    found += [*_rows(pack, accounts), *_ports(bundle, pack, accounts), *_order(pack), *_lacking(pack), *shared_load.problems(pack)]
    found += [*_nobodys(pack), *attend_cells.problems(bundle, pack, accounts)]
    return [*found, *(one for account in accounts.values() for one in (*_restarted(pack, account), *attend_samples.problems(pack, account)))]


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


def _rows(pack: Pack, accounts: Mapping[str, Account]) -> Iterator[Problem]:
    """Yield what is wrong with rows: of no host of the job, of another boot, not in its account, or older than the host's row before."""
    for name, verb in ROWS.items():
        said, last = _said(pack, name), dict[tuple[str, str], int]()
        for row in _of(pack, name):
            on = at(row, "on")
            account = accounts.get(str(at(on, "host")))
            boot = account.boot_of(row) if account is not None else None
            moment, asked, answered = (count(at(on, key)) for key in ("mono_ns", "asked_ns", "answered_ns"))
            engine_boot = at(row, "engine", "boot_id")
            borne_out = account.answered.get(verb, {}) if account is not None else {}
            wrong = (
                account is None
                or boot is None
                or at(on, "boot_id") != boot
                or engine_boot not in (None, boot)
                or moment is None
                or (boot, moment) not in borne_out
                or borne_out[boot, moment] != said[account.host, boot, moment]
                or moment < last.get((account.host, boot), -1)
                or asked is None
                or answered is None
                or answered < asked
            )
            if wrong:
                text = Text(
                    "{p}: row {n} is not what {h} answered in the boot in which its attendant ran.",
                    "{p}：第 {n} 行不是 {h} 在其代理所在开机内的应答。",
                )
                host = account.host if account is not None else " / ".join(accounts)
                yield Problem("host", text.fill(p=pack.path(name), n=row.get("seq"), h=host), pack.path(name))
                break
            if account is not None and boot is not None and moment is not None:
                last[account.host, boot] = moment


def _nobodys(pack: Pack) -> Iterator[Problem]:
    """Yield where samples of a soak are of no engine host of the job: one that is left out of every host's view is judged by nobody."""
    others = [host for _, host, _ in (pack.samples.places if pack.samples is not None else ()) if host not in hosts_of(pack)]
    if others:
        text = Text("{p}: not all samples are of an engine host of the job ({h}).", "{p}：并非所有样本都来自作业的引擎主机（{h}）。")
        yield Problem("host", text.fill(p=pack.path("telemetry.jsonl"), h=", ".join(hosts_of(pack))), pack.path("telemetry.jsonl"))


def _said(pack: Pack, name: str) -> dict[tuple[str, str, int], str]:
    """Return the digest of what each answer held, as the driver's rows tell it, by host, boot and moment; one answer may be several rows."""
    verb = ROWS[name]
    held: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in _of(pack, name):
        on = at(row, "on")
        moment = count(at(on, "mono_ns"))
        if moment is not None:
            key = (str(at(on, "host")), str(at(on, "boot_id")), moment)
            held.setdefault(key, []).append({key: row[key] for key in ANSWERED[verb] if key in row})
    return {key: digest(rows if verb == "residency" else rows[0]) for key, rows in held.items()}


def _lacking(pack: Pack) -> Iterator[Problem]:
    """Yield the hosts of which a look or a reading is missing that another host of the run has: none may be skipped."""
    for name in ROWS:
        seen: dict[tuple[str, Any, Any], set[str]] = {}
        for row in _of(pack, name):
            seen.setdefault((str(row.get("phase") or ""), row.get("tier"), row.get("when")), set()).add(str(at(row, "on", "host")))
        for (phase, tier, when), there in seen.items():
            for host in (host for host in hosts_of(pack) if host not in there):
                text = Text("{p}: {h} has no row {w}, where another engine host has one.", "{p}：{h} 缺少 {w} 一行，而其他引擎主机有。")
                moment = " ".join(str(part) for part in (phase, when, f"c{tier}" if tier is not None else "") if part)
                yield Problem("host", text.fill(p=pack.path(name), h=host, w=moment), pack.path(name))


def _restarted(pack: Pack, account: Account) -> Iterator[Problem]:
    """Yield where the driver says that the engine was restarted, or reset, and the host's own account does not."""
    if where := not_started_anew(pack, account):
        text = Text(
            "{p}: the account of {h} does not show that its engine was stopped and that the process seen after cooling was started then.",
            "{p}：{h} 的记录不能证明其引擎曾停止、且冷处理后所见进程为随后启动。",
        )
        yield Problem("restart", text.fill(p=where, h=account.host), where)
    if where := not_reset(pack, account):
        text = Text(
            "{p}: the account of {h} does not show that its engine was reset before it was looked at after cooling, and went on as the same process.",
            "{p}：{h} 的记录不能证明其引擎在冷处理后的检查之前已复位，且进程未变。",
        )
        yield Problem("reset", text.fill(p=where, h=account.host), where)


def _ports(bundle: Bundle, pack: Pack, accounts: Mapping[str, Account]) -> Iterator[Problem]:
    """Yield where a reading of the storage ports is not that of a host of the job: they are its ports, told with its own stamps."""
    where = pack.path(PORTS)
    readings = Reader(bundle, pack.folder).document(PORTS).get("readings") if bundle.has(where) else None
    for row in readings if isinstance(readings, list) else ():
        account, told = accounts.get(str(at(row, "on", "host"))), count(at(row, "mono_ns"))
        boots = {at(row, "boot_id"), at(row, "on", "boot_id")}
        if account is None or boots != {*account.boots[-1:]} or told is None or not _within(row, account):
            text = Text(
                "{p}: a reading is not what {h} answered in the boot in which its attendant ran.", "{p}：某次读数不是 {h} 在其代理所在开机内的应答。"
            )
            yield Problem("host", text.fill(p=where, h=account.host if account is not None else " / ".join(accounts)), where)


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
