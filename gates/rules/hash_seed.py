"""Under which PYTHONHASHSEED the engine stored, and under which it was measured: keys of KV are rooted there, so another one finds nothing.

Where the two differ the rig changed what it measures: the product could not have found what was stored (DESIGN 4.3).
"""

from __future__ import annotations

from gates.readers.strict import at
from gates.rules.claim import Findings, Run
from gates.text import Text


def seeds_differ(data: Findings, run: Run) -> Text | None:
    """Return the difference between a run's hash seed and that of the run that stored its prompts; None where they agree or one is not told.

    `hash_seed` (of engine.json, and of the store phase's detail) is the variable's text, empty where it is not set, null where nobody may read it.
    """
    if not data.plan.arms.recovers(run.arm):
        return None
    storing = data.storing(run)
    stored = at(storing.pack.phase("store"), "detail", "hash_seed") if storing else None
    measured = run.pack.engine.get("hash_seed")
    if not isinstance(stored, str) or not isinstance(measured, str) or stored == measured:
        return None
    text = Text(
        "the engine was measured under PYTHONHASHSEED {m} and had stored under {s} ({r}): under other keys nothing that was stored is found.",
        "引擎测量时 PYTHONHASHSEED 为 {m}，而写入时为 {s}（{r}）：键不同，已存内容无法找到。",
    )
    return text.fill(m=_shown(measured), s=_shown(stored), r=storing.shown if storing else "")


def _shown(seed: str) -> Text:
    return Text(seed[:40], seed[:40]) if seed else Text("(not set)", "（未设置）")
