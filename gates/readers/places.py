"""What a run tells of each engine host by itself, where a load generator of its own drove one or several of them.

One host's cold cache says nothing of another's, and a sum of counters would let one host's excess stand for another's lack. So whatever rests on an
engine host is judged host by host, on a view of the pack that holds that host's rows and requests and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gates.readers.run_pack import Pack, Request
from gates.readers.strict import at


def attendants(pack: Pack) -> tuple[Mapping[str, Any], ...]:
    """Return {host, engine} of each engine host that the job was given, in its order. Empty: the driver's own host is the engine's."""
    listed = pack.job.get("attendants")
    return tuple(row for row in listed if isinstance(row, Mapping)) if isinstance(listed, list) else ()


def hosts_of(pack: Pack) -> tuple[str, ...]:
    """Return the names of these hosts."""
    return tuple(str(row.get("host")) for row in attendants(pack))


def engine_of(pack: Pack, host: str) -> Any:
    """Return the section `engine` of the job for a host; a job of one host may have it at its top alone."""
    row = next((row for row in attendants(pack) if row.get("host") == host), {})
    return row.get("engine", pack.job.get("engine"))


def cells_of(pack: Pack, host: str) -> list[Any]:
    """Return the cells that the job was given for an engine host: its own where there are several, else the job's."""
    row = next((row for row in attendants(pack) if row.get("host") == host), {})
    listed = row.get("cells", pack.job.get("cells"))
    return listed if isinstance(listed, list) else []


def host_of_cell(row: Mapping[str, Any]) -> str | None:
    """Return the engine host that a line of cells.jsonl is of, where it names one."""
    named = next((name for name in (row.get("host"), at(row, "on", "host"), at(row, "on_before", "host")) if name is not None), None)
    return None if named is None else str(named)


def folders_of(pack: Pack) -> dict[str | None, list[str]]:
    """Return, of each of these hosts, the folders that the job gave to its engine: of its KV, and of its configuration."""
    found: dict[str | None, list[str]] = {}
    for host in hosts_of(pack):
        dirs, start = at(engine_of(pack, host), "kv_dirs"), at(engine_of(pack, host), "control", "start")
        spec = str(start[-1]).rpartition("/")[0] if isinstance(start, list) and start else ""
        found[host] = [str(one) for one in (*(dirs if isinstance(dirs, list) else ()), spec) if one]
    return found


def owner_of(pack: Pack, index: int) -> str:
    """Return the host that the prompt of an index belongs to: the n-th of each kind is stored on, and asked of, host n modulo their number."""
    names = hosts_of(pack)
    return names[index % len(names)]


def share_of(pack: Pack, host: str, requests: int) -> int:
    """Return how many of so many prompts are a host's."""
    names = hosts_of(pack)
    return len(range(names.index(host), requests, len(names)))


def host_of(pack: Pack, request: Request) -> str | None:
    """Return the host that a request was sent to; a record that names none is of the only one, where there is one."""
    names = hosts_of(pack)
    return request.host if request.host is not None or len(names) != 1 else names[0]


def at_host(pack: Pack, host: str) -> Pack:
    """Return what a pack tells of one engine host: its rows, the requests that it was sent, its engine, its part of each phase's detail."""
    return replace(
        _soak_at(pack, host) if pack.records is not None and len(hosts_of(pack)) > 1 else pack,
        job={**pack.job, "engine": engine_of(pack, host)},
        phases=tuple(_phase(phase, host) for phase in pack.phases),
        requests=tuple(request for request in pack.requests if host_of(pack, request) == host),
        coldness=tuple(row for row in pack.coldness if at(row, "on", "host") == host),
        counters=tuple(row for row in pack.counters if at(row, "on", "host") == host),
        engine=_engine(pack, host),
    )


def _soak_at(pack: Pack, host: str) -> Pack:
    """Return what a soak of several engine hosts tells of one: the requests that are its share, its samples, the events that name it or no host.

    A request that went to another host than its prompt's is told by gates.rules.shared_load.
    """
    place, many = hosts_of(pack).index(host), len(hosts_of(pack))
    records, stored = (None if one is None else one.where(one.prompt % many == place) for one in (pack.records, pack.stored))
    events = tuple(event for event in pack.events if at(event, "detail", "host") in (None, host))
    samples = pack.samples.of(host) if pack.samples is not None else None
    return replace(pack, records=records, stored=stored, samples=samples, events=events)


def _phase(phase: dict[str, Any], host: str) -> dict[str, Any]:
    detail = phase.get("detail")
    if not isinstance(detail, Mapping) or "hosts" not in detail:
        return phase
    own = at(detail, "hosts", host)
    shared = {key: value for key, value in detail.items() if not any(key in told for told in _told(detail))}  # what one host said is not another's
    return {**phase, "detail": {**shared, **(own if isinstance(own, Mapping) else {})}}


def _told(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    hosts = detail["hosts"]
    return [row for row in hosts.values() if isinstance(row, Mapping)] if isinstance(hosts, Mapping) else []


def _engine(pack: Pack, host: str) -> Mapping[str, Any]:
    """Return engine.json of a host: of several hosts, what its own instances say; nothing where it does not tell any."""
    if len(hosts_of(pack)) < 2:
        return pack.engine
    listed = pack.engine.get("instances")
    own = [row for row in listed if isinstance(row, Mapping) and row.get("host") == host] if isinstance(listed, list) else []
    if not own:
        return {}
    return {**own[0], "instances": own} if len(own) > 1 else own[0]
