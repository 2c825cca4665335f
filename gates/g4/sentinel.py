"""The sentinel of the soak: the same few prompts in every window. Answers that change, or a hit of what nobody stored, point at wrong KV.

Advisory: a batch of another size may change the order of a sum and so a token (llm-bench 4.18); the main gate measures that noise, the soak
does not.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates.g4.answers import answer, check, untold
from gates.g4.series import Soak
from gates.model import CheckResult
from gates.readers.strict import at, count
from gates.rules.estimates import ms
from gates.rules.standing import Standing
from gates.text import Text


def sentinel(soak: Soak, standing: Standing) -> CheckResult:
    """Return the advisory check over all windows of the sentinel, which the probe summed up as events; without a whole one nothing is known."""
    blank = check(soak, "sentinel_answers", soak.files("events.jsonl"))
    windows = [at(e, "detail") for e in soak.pack.events if e.get("kind") == "sentinel"]
    told = [_window(w) for w in windows]
    known = [row for row in told if row is not None]
    if not known or len(known) != len(told) or not any(compared for compared, _ in known):
        text = Text("{n} windows of the sentinel are on record, {k} of them whole.", "记录中有 {n} 个哨兵窗口，其中 {k} 个完整。")
        change = Text("a soak whose sentinel compares answers in every window would tell", "各窗口均有哨兵比对的稳定性运行方可判定")
        return untold(blank, standing, reason=text.fill(n=len(told), k=len(known)), change=change)
    compared, wrong = sum(c for c, _ in known), sum(w for _, w in known)
    reason = Text(
        "{w} of {c} answers in {n} windows were others than before, or hit what was never stored.",
        "{n} 个窗口的 {c} 个回答中，{w} 个与此前不同或命中了从未写入的前缀。",
    ).fill(w=wrong, c=compared, n=len(known))
    return answer(blank, standing, met=wrong == 0, value=Decimal(wrong), reason=reason, margin=Decimal(-wrong))


def windows(soak: Soak) -> list[dict[str, Any]]:
    """Return the sentinel over time as figures: [{hour, requests, failed, ttft_p50_ms}], what an event does not tell as None."""
    out = []
    for event in [e for e in soak.pack.events if e.get("kind") == "sentinel"][:1000]:
        detail, begun = at(event, "detail"), count(at(event, "detail", "from_ns"))
        ttft = count(at(detail, "ttft_p50_ns"))
        out.append(
            {
                "hour": None if begun is None else round(float(soak.line.hour(begun, str(event.get("boot_id")))), 3),
                "requests": count(at(detail, "requests")),
                "failed": count(at(detail, "failed")),
                "ttft_p50_ms": None if ttft is None else float(ms(Fraction(ttft))),
            }
        )
    return out


def _window(detail: Any) -> tuple[int, int] | None:
    """Return (answers compared, answers that are wrong) of a window, None where its event is not whole."""
    compared, other, false = count(at(detail, "compared")), at(detail, "other_answers"), at(detail, "hits_of_never_stored")
    if compared is None or not isinstance(other, list) or not isinstance(false, list):
        return None
    return compared, len(other) + len(false)
