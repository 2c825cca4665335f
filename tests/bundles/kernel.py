"""The kernel logs of a soak's hosts: a reading before the load of each boot, one within it and one behind it, in which nothing new stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gates.readers.soak_kernel import FILE, digest
from tests.bundles.evidence import BOOT, HOST, Evidence, journal

ASIDE = 1000  # ns by which the first and the last reading stand outside the load


def reading(moment: int, boot: str, *lines: str, host: str = HOST, **said: Any) -> dict[str, Any]:
    """Return one reading with the lines that were new in it."""
    row: dict[str, Any] = {"wall_ns": 10**18, "mono_ns": moment, "boot_id": boot, "host": host, "tool": "dmesg", "problem": None}
    row["read"] = {"wall_ns": 10**18, "mono_ns": moment, "boot_id": boot}
    row |= {"begins": False, "joined": True, "passed_over": 0, "left_out": 0, "kept": len(lines), "lines": list(lines), "sha256": digest(list(lines))}
    return row | said


def calm_log(evidence: Evidence) -> Evidence:
    """Let every host of a soak have a whole log of its load that tells nothing, by the requests and samples that are on record. Edits in place."""
    loads: dict[str, tuple[int, int]] = {}
    for row in (row for row in evidence.rows("soak", "records.jsonl") if row["phase"] == "soak"):
        low, high = loads.get(row["boot_id"], (row["sent_ns"], row["end_ns"]))
        loads[row["boot_id"]] = min(low, row["sent_ns"]), max(high, row["end_ns"])
    there: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in evidence.rows("soak", "telemetry.jsonl"):
        if row.get("on"):
            there.setdefault(row["boot_id"], {})[row["on"]["host"]] = {**row["on"], "ahead": row["on"]["mono_ns"] - row["mono_ns"]}
    rows: list[dict[str, Any]] = []
    for boot, (low, high) in loads.items():
        for n, moment in enumerate((low - ASIDE, (low + high) // 2, high + ASIDE)):
            rows.append(reading(moment, boot, begins=not n, read=_stamps(moment, boot.partition("+")[0])))
            for on in there.get(boot, {}).values():
                asked = {"host": on["host"], "boot_id": on["boot_id"], "mono_ns": moment + on["ahead"], "asked_ns": moment, "answered_ns": moment}
                rows.append(reading(moment, boot, host=on["host"], begins=not n, read=_stamps(moment + on["ahead"], on["boot_id"]), on=asked))
    evidence.files[evidence.path("soak", FILE)] = journal(rows)
    return evidence.repack("soak")


def kernel_says(evidence: Evidence, *lines: str, at_ns: int | None = None, host: str = HOST) -> Evidence:
    """Let the kernel of a host have written lines half-way through the load, or at a moment of its clock. Edits in place.

    Each line is given its stamp; the reading behind it brings it.
    """

    def edit(rows: list[dict[str, Any]]) -> None:
        mine = [row for row in rows if row["host"] == host]
        moment = at_ns if at_ns is not None else mine[-2]["read"]["mono_ns"]
        row = next(row for row in mine if row["read"]["mono_ns"] >= moment and not row["begins"])
        row["lines"] = [*row["lines"], *(f"[{moment / 10**9:.6f}] {line}" for line in lines)]
        row.update(kept=len(row["lines"]), sha256=digest(row["lines"]))

    return evidence.lines("soak", FILE, edit)


def _stamps(moment: int, boot: str) -> dict[str, Any]:
    return {"wall_ns": 10**18, "mono_ns": moment, "boot_id": boot or BOOT}
