"""Was an engine that was not started anew reset, and shown to be cold? The endpoint's word alone proves nothing."""

from __future__ import annotations

from typing import Any

from gates.model import ClaimStatus
from gates.readers.strict import at, exact
from gates.rules.claim import Finding, Run, unknown
from gates.text import Text

FILES = ("coldness.jsonl", "phases.jsonl")


def asked(run: Run) -> bool:
    """Return whether the job was told to reset the engine in place of restarting it."""
    return bool(at(run.pack.job, "phases", "cool") == "reset")


def fault_of(run: Run, cooled: dict[str, Any]) -> Finding | None:
    """Return why the proof of a reset does not hold, None where it holds.

    It holds when the body said success, no block was in use behind it, a prompt that hit before did not hit behind it, and the canary that was
    stored found nothing in the GPU cache either. `cooled` is the line of coldness.jsonl after cooling.
    """
    proof = cooled.get("reset")
    success, usage = at(proof, "success"), exact(at(proof, "kv_cache_usage"))
    before, behind = exact(at(proof, "hits_before")), exact(at(proof, "hits_after"))
    canary = [exact(at(one, "local_hit_tokens")) for one in _canary(run)]
    if success is False or (usage is not None and usage != 0):
        reason = Text("the reset did not empty the GPU cache.", "复位未清空 GPU 缓存。")
        return Finding(ClaimStatus.BREACHED, reason, None, run.key, None, _paths(run))
    if any(hits is not None and hits != 0 for hits in (behind, *canary)):
        reason = Text("a prompt from before the reset still hit the GPU cache.", "复位前的提示仍命中 GPU 缓存。")
        return Finding(ClaimStatus.BREACHED, reason, None, run.key, None, _paths(run))
    shown = behind == 0 or (bool(canary) and None not in canary)
    if success is not True or usage != 0 or before is None or before <= 0 or not shown or None in canary:
        return unknown(
            run,
            "nothing shows that the reset emptied the GPU cache: success, usage 0, hits before and none behind it.",
            "无法证明复位已清空 GPU 缓存：须有成功应答、占用为 0、复位前命中且复位后不命中。",
            files=FILES,
        )
    return None


def _canary(run: Run) -> list[Any]:
    """Return what the canary showed of the new prefix and of the stored one, as far as the job asked for them; None for what is missing."""
    asked, detail = at(run.pack.job, "phases"), at(run.pack.phase("canary"), "detail")
    names = ("new", *(["stored"] if at(asked, "expect_hits") else [])) if at(asked, "canary") else ()
    seen = [name for name in ("stored", "new") if isinstance(detail, dict) and name in detail]
    return [at(detail, name) for name in dict.fromkeys((*names, *seen))]


def _paths(run: Run) -> tuple[str, ...]:
    return tuple(run.pack.path(name) for name in FILES)
