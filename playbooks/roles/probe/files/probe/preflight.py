"""Before anything is stored or a soak begins: does it fit, and can the medium be made cold at all? Refused with the numbers."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional

from probe.coldness import require_coolable
from probe.engine_log import MOST_BYTES
from probe.errors import Refused
from probe.kernel_log import MOST_BYTES as KERNEL_LOG_BYTES

SPARE_PERCENT = 110  # file systems want some room of their own
# Of one line of records.jsonl without chunk offsets, of telemetry.jsonl, and of health.jsonl, one a minute: more than was seen.
REQUEST_BYTES, SAMPLE_BYTES, HEALTH_BYTES = 900, 4096, 16384
KERNEL_BYTES = 2 * KERNEL_LOG_BYTES  # the kernel's log of an engine's host and of the load generator
REQUESTS_PER_S = 20  # of one slot: no engine answers a long prompt in less than 50 ms
# Of all journals of a job where targets.disk_quota_bytes says nothing: of a run; and as much as the judge takes (gates/bundle_form.py).
QUOTA_LEAST, QUOTA_MOST = 2_000_000_000, 100_000_000_000


def require_room(folder: str, needed: int, what: str) -> Dict[str, Any]:
    """Return {dir, needed_bytes, free_bytes} of a folder; refuse, with the numbers, when `needed` bytes and a tenth do not fit."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if needed * SPARE_PERCENT > free * 100:
        raise Refused(
            "no_room",
            "%s needs %.3f GB in %s, and that file system has %.3f GB free. Make room there, or name another place; nothing was started."
            % (what, needed / 1e9, folder, free / 1e9),
        )
    return {"dir": folder, "needed_bytes": needed, "free_bytes": free}


def require_medium(kv_dirs: List[str], needed: int) -> List[Dict[str, Any]]:
    """Return [{dir, fs_type, source, needed_bytes, free_bytes}]; refuse a file system that cannot be made cold by its name, and one too full."""
    rows = []
    for folder in kv_dirs:
        mount = require_coolable(folder)
        row = require_room(folder, -(-needed // len(kv_dirs)), "The store phase")
        rows.append(dict(row, fs_type=mount["fs_type"], source=mount["source"]))
    return rows


def written_tokens(spec: Dict[str, Any], stored: int) -> int:
    """Return how many tokens of KV a job writes: `stored` prefixes, its throw-away prompts, and all it asks where it asks what was never stored.

    What a request that hits adds to its prefix is less than a chunk of any offload software, and is not kept.
    """
    work, phases = spec["workload"], spec["phases"]
    whole = int(work["context_tokens"]) + int(work["suffix_tokens"]) + int(work["output_tokens"])
    new = int(phases.get("warmup") or 0) + bool(phases.get("canary"))
    new += sum(int(cell.get("requests") or 0) for cell in spec.get("cells") or [] if cell.get("cell") == "client")
    if spec["kind"] == "run" and not phases.get("store") and not phases.get("expect_hits"):  # the placebo
        new += sum(int(tier["requests"]) for tier in work["tiers"])
    return stored * int(work["context_tokens"]) + new * whole


def store_bytes(spec: Dict[str, Any], stored: int) -> Optional[int]:
    """Return how many bytes of KV a job with so many stored prefixes writes, None where the job file does not say what a token takes."""
    token = (spec["engine"].get("declared") or {}).get("kv_bytes_per_token")
    known = isinstance(token, (int, float)) and not isinstance(token, bool) and token > 0
    return int(written_tokens(spec, stored) * token) if known else None


def require_larger_than_caches(spec: Dict[str, Any], engine: Dict[str, Any], prefixes: Optional[int] = None, host: Optional[str] = None) -> None:
    """Refuse a soak whose rotating prefixes fit into what lies above the external tier, where that is known: the tier would serve nothing.

    `engine`: what it says of itself (engine.json). `engine.caches` of the job file: {l0: the accelerator's cache answers, l1_bytes: what host
    memory keeps, of all workers}. `prefixes`: how many of the rotation are this engine's, by default all; `host`: its host, where it is one of
    several.
    """
    caches, rotated = spec["engine"].get("caches") or {}, int(spec["soak"]["rotate_prefixes"]) if prefixes is None else prefixes
    blocks, block, token = (engine.get(key) for key in ("num_gpu_blocks", "block_tokens", "kv_bytes_per_token"))
    held = int(blocks) * int(block) if caches.get("l0") and blocks and block else 0
    if caches.get("l1_bytes") and token:
        held += int(caches["l1_bytes"]) // int(token)
    asked = rotated * int(spec["workload"]["context_tokens"])
    if held and asked <= held:
        raise Refused(
            "fits_in_cache",
            "The soak rotates %d prefixes%s, %d tokens, and the engine's caches above the external tier hold %d tokens: they would serve it. Let the "
            "plan ask for more or longer prefixes (workload.requests_per_run, context_tokens), or make the caches smaller (targets.offload.l0.blocks "
            "and l1). The soak was not started." % (rotated, " on %s" % host if host else "", asked, held),
        )


def journal_bytes(spec: Dict[str, Any]) -> int:
    """Return how much a soak's journals take: its samples, and its requests as far as anybody can say before.

    `soak.request_cap` counts them; `soak.requests_per_s` is what the controller expects with a margin (roles/arm/filter_plugins/arm_job.py); without
    either they are as many as any engine can answer.
    """
    soak, seconds = spec["soak"], float(spec["soak"]["seconds"])
    most = float(soak["tier"]) * REQUESTS_PER_S
    requests = float(soak.get("request_cap") or seconds * min(most, float(soak.get("requests_per_s") or most)))
    return _samples_bytes(soak) * max(1, len(spec.get("attendants") or ())) + int(requests * REQUEST_BYTES)


def default_quota(soak: Optional[Dict[str, Any]]) -> int:
    """Return what the journals of a job may take where nobody says so, in bytes: of a soak all that any engine can make it write.

    It keeps a job that runs wild from filling the host for ever; it must never end a healthy soak.
    """
    if not soak:
        return QUOTA_LEAST
    worst = float(soak["seconds"]) * int(soak["tier"]) * REQUESTS_PER_S * REQUEST_BYTES
    return int(min(QUOTA_MOST, max(QUOTA_LEAST, worst + _samples_bytes(soak))))


def _samples_bytes(soak: Dict[str, Any]) -> int:
    seconds = float(soak["seconds"])
    kernel = KERNEL_BYTES if soak.get("kernel_log") else 0
    return int(seconds / float(soak["telemetry_s"]) * SAMPLE_BYTES + seconds / 60 * HEALTH_BYTES) + kernel


def require_quota(spec: Dict[str, Any]) -> int:
    """Return the bytes that a soak's journals take by `journal_bytes`; refuse, with the numbers, when they may not take as many."""
    needed, quota = journal_bytes(spec), int(spec["limits"]["disk_quota_bytes"])
    if needed > quota:
        raise Refused(
            "over_quota",
            "The soak's journals need %.3f GB for %.1f h, and may take %.3f GB: it would end before its time. Raise targets.disk_quota_bytes as far "
            "as the file system of the job's directory can bear; nothing was started."
            % (needed / 1e9, float(spec["soak"]["seconds"]) / 3600, quota / 1e9),
        )
    return needed


def before_job(folder: str, spec: Dict[str, Any], stored: int, medium: Callable[[int], List[Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """Check a job before its first request: the medium of what it writes, and room for the journals of a soak. Return what was found.

    `medium`: of the engine's host (probe.engine_host), takes a number of bytes.
    """
    rows = medium(store_bytes(spec, stored) or 0)
    if spec["kind"] == "soak":
        needed = 2 * require_quota(spec) + MOST_BYTES  # at the end the journals are packed beside themselves
        rows.append(dict(require_room(folder, needed, "The soak's journals, their pack and the engine's log"), fs_type=None, source=None))
    return rows
