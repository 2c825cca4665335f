"""Where a load generator of its own drives the engines: the job file of the driver, and that of the attendant on each engine host. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SPARE_S = 600  # an attendant outlives its job by this at most; silence ends it long before
_CLIENT = "client"  # the cell that drives the engine from the load generator; all others are measured here
_QUOTA = 500_000_000  # bytes of its journal


def arm_hosts(names: Sequence[str], hostvars: Mapping[str, Any], known: Sequence[str], counters: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the engine's files need of each host: {name, root, python, index, counters, address, attend}.

    `index` tells hosts apart that are one machine, by their place in `known`. `attend` is where its attendant listens {address, port}; where it has
    none, `address` is empty too, and its engine listens on the loopback alone.
    """
    rows = []
    for name in names:
        variables = hostvars[name]
        place = dict(variables.get("qg_attend") or {})
        rows.append(
            {
                "name": name,
                "root": variables["qg_root"],
                "python": variables["ansible_python_interpreter"],
                "index": list(known).index(name) if name in known else 0,
                "counters": list(counters),
                "address": place.get("address", ""),
                "attend": place,
            }
        )
    return rows


def arm_driven(
    job: Mapping[str, Any],
    driver: str,
    hosts: Sequence[Mapping[str, Any]],
    engines: Sequence[Mapping[str, Any]],
    cells: Sequence[Sequence[Mapping[str, Any]]] = (),
) -> dict[str, Any]:
    """Return the job file for the load generator: the same job, and of each engine host where its attendant listens, and its engine.

    `cells` are those of each host; of one host they are the job's own.
    """
    attendants = [{"host": host["name"], **host["attend"], "engine": dict(engine)} for host, engine in zip(hosts, engines, strict=True)]
    if len(attendants) > 1 and any(cells):
        attendants = [{**row, "cells": [dict(cell) for cell in own]} for row, own in zip(attendants, cells, strict=True)]
    return {**job, "host": driver, "attendants": attendants}


def arm_attend(job: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file of the attendant that serves a job on an engine host. It bears the job's id, and nothing of its load."""
    soak, limits = job.get("soak") or {}, job["limits"]
    cells = [row for row in job.get("cells") or () if row["cell"] != _CLIENT]
    kept = {key: soak[key] for key in ("counters", "injections", "kernel_log") if key in soak}
    return {
        "schema": 1,
        "job": job["job"],
        "kind": "attend",
        "fence": job["fence"],
        "host": host["name"],
        "listen": dict(host["attend"]),
        "engine": job["engine"],
        "soak": kept if job["kind"] == "soak" else None,  # by that the probe knows whether it goes on after a reboot
        **({"cells": cells} if cells else {}),
        **{key: job[key] for key in ("ports", "path_prefix") if key in job},
        "limits": {
            **{key: limits[key] for key in ("start_timeout_s", "stop_timeout_s", "idle_timeout_s") if key in limits},
            "disk_quota_bytes": _QUOTA,
            # Before a soak's load a job has its time once, and once more beside the load (probe.job_main).
            "deadline_s": 2 * int(limits["deadline_s"]) + int(soak.get("seconds") or 0) + _SPARE_S,
        },
    }


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"arm_hosts": arm_hosts, "arm_driven": arm_driven, "arm_attend": arm_attend}
