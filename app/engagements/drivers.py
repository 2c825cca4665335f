"""Who drives the engines: the engine's own host, or a load generator of its own, checked when an engagement is entered."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from gates.plan import Plan
from gates.schema import Problems

ENGINE_PORT = 18461  # of an engine whose targets.engine names none (playbooks/roles/arm)


def attended_hosts(targets: Mapping[str, Any]) -> list[str]:
    """Return the engine hosts that a load generator of its own drives, in the file's order; none where an engine host drives itself."""
    grouped = {name: set((host or {}).get("groups") or ()) for name, host in (targets.get("hosts") or {}).items()}
    engines, drivers = ([name for name, groups in grouped.items() if group in groups] for group in ("engine", "loadgen"))
    return [] if not drivers or set(engines) & set(drivers) else engines


def check_drivers(targets: Mapping[str, Any], problems: Problems) -> None:
    """Refuse, before anything is stored or measured, what no run could be judged on."""
    hosts = targets["hosts"]
    drivers = [name for name, host in hosts.items() if "loadgen" in host["groups"]]
    engines = [name for name, host in hosts.items() if "engine" in host["groups"]]
    if len(drivers) > 1:
        problems.add(
            "targets.hosts",
            f"{', '.join(drivers)} are in the group loadgen, and a run is driven by one host. Leave one of them there; several engine instances on a "
            "host are targets.engine.instances.",
            f"{'、'.join(drivers)} 均属于 loadgen 组，而一轮只由一台主机驱动。请只保留一台；同一主机上的多个引擎实例请用 targets.engine.instances。",
        )
    apart = len(drivers) == 1 and bool(engines) and drivers[0] not in engines
    for name, host in hosts.items():
        _check_place(f"targets.hosts.{name}.attend", host, apart and name in engines, targets["engine"], problems)
    taken: dict[str, str] = {}
    for name in engines if apart else ():
        address = (hosts[name].get("attend") or {}).get("address")
        if address is not None and taken.setdefault(address, name) != name:
            problems.add(
                f"targets.hosts.{name}.attend.address",
                f"{address} is the address of {taken[address]} too; each engine host listens at one of its own.",
                f"{address} 也是 {taken[address]} 的地址；每台引擎主机须在自己的地址上监听。",
            )


def _check_place(path: str, host: Mapping[str, Any], attended: bool, engine: Mapping[str, Any], problems: Problems) -> None:
    """Ask an engine host that another one drives for the place of its attendant, and no other host."""
    place = host.get("attend")
    if attended and place is None:
        problems.add(
            path,
            "the load generator is another host, so this engine host needs an attendant: name the address of this host that the load generator "
            "reaches and a free port, {address: 10.0.0.11, port: 18460}.",
            "负载机是另一台主机，因此该引擎主机需要代理：请写明负载机可访问的本机地址和空闲端口，{address: 10.0.0.11, port: 18460}。",
        )
    if not attended and place is not None:
        problems.add(
            path,
            "no other host drives an engine here, so there is nothing to attend to: leave it out.",
            "此处没有由其他主机驱动的引擎，无需代理：请删去。",
        )
    if place is None:
        return
    try:
        address = ipaddress.ip_address(place["address"])
    except ValueError:
        address = None
    if address is None or address.is_unspecified or address.is_multicast:
        problems.add(
            f"{path}.address",
            f"{place['address']} is not one address of this host; the attendant listens there and nowhere else.",
            f"{place['address']} 不是该主机的单一地址；代理只在该地址上监听。",
        )
    first, count = engine.get("port", ENGINE_PORT), engine.get("instances", 1)
    if isinstance(first, int) and isinstance(count, int) and first <= place["port"] < first + count:
        problems.add(
            f"{path}.port",
            f"{place['port']} is a port of the engine (targets.engine.port); give the attendant another.",
            f"{place['port']} 是引擎的端口（targets.engine.port）；请为代理另选端口。",
        )


def check_shares(targets: Mapping[str, Any], plan: Plan, problems: Problems) -> None:
    """Refuse another sealed number of instances than the engine hosts of one load generator have together."""
    hosts, each = attended_hosts(targets), targets["engine"].get("instances", 1)
    sealed = plan.platform.layout.instances
    if len(hosts) > 1 and isinstance(each, int) and sealed != len(hosts) * each:
        problems.add(
            "plan.platform.layout.instances",
            f"{sealed} is sealed, and the load is shared by {len(hosts) * each}: {', '.join(hosts)} with {each} each (targets.engine.instances). "
            "Seal that number, or change the hosts.",
            f"封存值为 {sealed}，而负载由 {len(hosts) * each} 个实例分担：{'、'.join(hosts)} 各 {each} 个（targets.engine.instances）。"
            "请封存该数，或更改主机。",
        )
