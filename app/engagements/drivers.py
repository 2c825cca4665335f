"""Who drives the engine: the engine's own host, or a load generator of its own, checked when an engagement is entered."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from gates.schema import Problems

ENGINE_PORT = 18461  # of an engine whose targets.engine names none (playbooks/roles/arm)


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
    if apart and len(engines) > 1:
        problems.add(
            "targets.hosts",
            f"the load generator {drivers[0]} is no engine host, and {', '.join(engines)} are. A load generator of its own drives one engine host, "
            "since a prefix that one host stored could be asked of another. Leave one of them in engine.",
            f"负载机 {drivers[0]} 不是引擎主机，而引擎主机有 {'、'.join(engines)}：独立负载机只驱动一台引擎主机，"
            "否则由一台存储的前缀可能在另一台上读取。请只保留一台 engine 主机。",
        )
    for name, host in hosts.items():
        _check_place(f"targets.hosts.{name}.attend", host, apart and name in engines, targets["engine"], problems)
    if apart and targets["engine"].get("cool") == "reset" and targets["engine"].get("kind") != "lab":
        problems.add(
            "targets.engine.cool",
            "reset needs an endpoint that only the engine's own host may reach, and another host drives this engine. Leave it out: the engine "
            "is restarted before each run.",
            "reset 需要仅供引擎本机访问的接口，而该引擎由另一台主机驱动。请删去：每轮之前会重启引擎。",
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
