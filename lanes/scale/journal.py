"""Journals of a soak that nobody runs: lines as long as real ones, all of one length, so that an offset alone tells which number comes next."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

RATE = 4.0  # requests a second of one soak: a million in 72 h, as bench/judge_soak.py has them
TELEMETRY_S = 10.0
RECORD_BYTES, TELEMETRY_BYTES = 730, 2400  # a line of each, as the probe writes them beside a real engine


def chunk(name: str, offset: int, age_s: float, rate: float) -> dict[str, Any]:
    """Return what a journal holds beyond an offset when its soak is so old: {from, to, data}, as a poll brings it."""
    size = RECORD_BYTES if name == "records.jsonl" else TELEMETRY_BYTES
    first, last = offset // size, int(age_s * rate if name == "records.jsonl" else age_s / TELEMETRY_S)
    lines = [_line(name).replace("@seq@", f"{n:>9}") for n in range(first, max(first, last))]
    return {"from": offset, "to": offset + size * len(lines), "data": "".join(lines)}


@lru_cache(maxsize=2)
def _line(name: str) -> str:
    """Return a line with a place of nine characters for its number."""
    known: dict[str, Any] = {"wall_ns": 1_000_000_000_000_000_000, "mono_ns": 1_005_011_000_000, "boot_id": "b007-0001"}
    size = TELEMETRY_BYTES
    if name == "records.jsonl":
        size = RECORD_BYTES
        known |= {"phase": "soak", "tier": 16, "prompt": 5, "prompt_tokens_sent": 32832, "http_status": 200, "error": None, "finish_reason": "length"}
    else:
        known["metrics"] = {f"vllm:series_{n}_total": "472405" for n in range(30)}
    text = '{"seq":@seq@,' + json.dumps(known, separators=(",", ":"))[1:-1] + ',"rest":"'
    return text + "x" * (size - len(text) - 7) + '"}\n'  # three of its end, and four by which a number is longer than its place
