"""What G1 asks of the storage network, checked together with hosts and plan when an engagement is entered: pairs of ports, and switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gates.plan import Plan
from gates.schema import Problems

GROUP = "rdma_bandwidth"
ON = ("storage", "engine")  # the groups that the playbook reaches


def check_pairs(targets: Mapping[str, Any], problems: Problems) -> None:
    """Refuse a pair whose hosts are not there or are one, and a port that would be measured twice."""
    hosts = targets["hosts"]
    seen: dict[tuple[str, str], int] = {}
    for i, pair in enumerate((targets.get(GROUP) or {}).get("pairs", ())):
        path = f"targets.{GROUP}.pairs[{i}]"
        for key in ("host", "far_host"):
            if not set(ON) & set(hosts.get(pair[key], {}).get("groups", ())):
                listed = ", ".join(name for name, host in hosts.items() if set(ON) & set(host["groups"]))
                problems.add(
                    f"{path}.{key}",
                    f"{pair[key]} is no host of the groups storage or engine: {listed}.",
                    f"{pair[key]} 不是 storage 或 engine 组的主机：{listed}。",
                )
        if pair["host"] == pair["far_host"]:
            problems.add(
                f"{path}.far_host",
                "both ends are one host: what does not cross the wire says nothing about it.",
                "两端为同一主机：未经线缆的测量不能说明链路。",
            )
        port = (pair["host"], pair["interface"])
        if port in seen:
            problems.add(
                f"{path}.interface",
                f"{port[1]} of {port[0]} is measured by pairs[{seen[port]}] already; each port once.",
                f"{port[0]} 的 {port[1]} 已由 pairs[{seen[port]}] 测量；每个端口只测一次。",
            )
        seen.setdefault(port, i)


def check_switches(targets: Mapping[str, Any], problems: Problems) -> None:
    """Refuse a switch that no surveyed host would ask, and one that stands twice."""
    seen: set[str] = set()
    for i, row in enumerate(targets.get("pfc_watchdog") or ()):
        path = f"targets.pfc_watchdog[{i}]"
        if not set(ON) & set(targets["hosts"].get(row["host"], {}).get("groups", ())):
            problems.add(
                f"{path}.host",
                f"{row['host']} is no host of the groups storage or engine, so nobody would ask the switch.",
                f"{row['host']} 不是 storage 或 engine 组的主机，无人询问该交换机。",
            )
        if row["switch"] in seen:
            problems.add(f"{path}.switch", f"{row['switch']} stands here again.", f"{row['switch']} 重复。")
        seen.add(row["switch"])


def check_with_plan(targets: Mapping[str, Any], plan: Plan, problems: Problems) -> None:
    """Refuse pairs that no step would measure, and a plan whose step would find nothing to measure."""
    wanted, named = plan.requires(GROUP), GROUP in targets
    if wanted and not named:
        problems.add(
            "plan.evidence.required",
            f"{GROUP} decides, and targets.{GROUP} names no pair of ports, so nothing could be measured. Name the pairs, or leave it out here.",
            f"{GROUP} 起决定作用，而 targets.{GROUP} 未列出端口对，无从测量。请列出端口对，或在此删去该项。",
        )
    if named and not wanted:
        problems.add(
            f"targets.{GROUP}",
            f"these pairs would never be measured: add {GROUP} to plan.evidence.required, or leave them out.",
            f"这些端口对不会被测量：请在 plan.evidence.required 中加入 {GROUP}，或删去。",
        )
