"""The paths to the drives over the soak: each controller of a drive, local or over the fabric, live at every reading. It informs."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

from gates.g4.declared_parts import DRIVE_PATHS
from gates.g4.part_series import Readings
from gates.model import CheckResult
from gates.readers.soak_health import Part
from gates.rules.findings import Finding, bad, good
from gates.text import Text

_KIND, _LIVE = "paths", "live"
_SHOWN = 4  # interruptions named in one sentence


def path_check(told: Readings) -> CheckResult | dict[str, Any]:
    """Return the check over every drive whose paths are told; an entry of what is not told where a soak brought none."""
    passed = Text("Every path to the {n} drives was live at every reading.", "{n} 块硬盘的各路径在每次读取时均为 live。")
    return told.conclude(DRIVE_PATHS, _KIND, partial(_live, told), passed)


def _live(told: Readings, part: Part) -> Finding:
    """Hold each reading against the paths that any earlier one named: a path that is gone is as lost as one that reconnects."""
    seen: dict[str, None] = {}
    down: dict[int, list[Text]] = {}
    for n in sorted(part.rows):
        row = part.rows[n]
        seen |= dict.fromkeys(str(path) for path in row)
        for path in seen:
            if path not in row:
                down.setdefault(n, []).append(Text(f"{path} gone at reading {n + 1}", f"{path} 在第 {n + 1} 次读取时消失"))
            elif row[path] != _LIVE:
                state = str(row[path])[:40]
                down.setdefault(n, []).append(Text(f"{path} {state} at reading {n + 1}", f"{path} 在第 {n + 1} 次读取时为 {state}"))
    if down:
        first = [text for texts in down.values() for text in texts][:_SHOWN]
        words: dict[str, Any] = {"s": part.name, "n": len(down), "p": Text(", ".join(t.en for t in first), "，".join(t.zh for t in first))}
        text = "{s}: a path was not live at {n} readings ({p})", "{s}：{n} 次读取中有路径不是 live（{p}）"
        return bad(*text, told.path, value=Decimal(len(down)), **words)
    last = len(told.health.stamps) - 1
    ends = all(part.rows.get(n) for n in (0, last))
    if not ends or len(part.rows) < told.soak.plan.g4.coverage_min * (last + 1):
        return told.silent(part, Text("its paths", "路径状态"))
    return good("{s}", "{s}", told.path, value=Decimal(0), s=part.name)
