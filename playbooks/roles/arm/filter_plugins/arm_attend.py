"""Where a load generator of its own drives the engine: the job file of the driver, and that of the attendant on the engine's host. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_SPARE_S = 600  # an attendant outlives its job by this at most; silence ends it long before
_CLIENT = "client"  # the cell that drives the engine from the load generator; all others are measured here
_QUOTA = 500_000_000  # bytes of its journal


def arm_driven(job: Mapping[str, Any], driver: str, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job file for the load generator: the same job, with the place {host, address, port} where the engine's attendant listens."""
    return {**job, "host": driver, "attendants": [dict(place)]}


def arm_attend(job: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file of the attendant that serves a job on the engine's host. It bears the job's id, and nothing of its load."""
    soak, limits = job.get("soak") or {}, job["limits"]
    cells = [row for row in job.get("cells") or () if row["cell"] != _CLIENT]
    kept = {key: soak[key] for key in ("counters", "injections") if key in soak}
    return {
        "schema": 1,
        "job": job["job"],
        "kind": "attend",
        "fence": job["fence"],
        "host": place["host"],
        "listen": {"address": place["address"], "port": place["port"]},
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
        return {"arm_driven": arm_driven, "arm_attend": arm_attend}
