"""What the measuring client itself costs: the share of a processor that it used. Judged where it is told, deciding nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gates import declared_common, remedies
from gates.model import CheckResult, Verdict
from gates.plan import Plan
from gates.readers.strict import exact
from gates.rules.claim import Run
from gates.rules.estimates import beside, percent
from gates.text import Text


def client_cpu(gate: str, plan: Plan, runs: Sequence[Run]) -> CheckResult | dict[str, Any]:
    """Return the advisory check of the share of one processor that the measuring client used while it measured, in the run with most.

    It says something of the rig alone, so it is answered whatever the claims say (llm-bench 7.10). Times of the client's own process.
    """
    declared = declared_common.client_cpu(gate)
    files = tuple(run.pack.path("client.json") for run in runs)
    blank = declared.blank(plan, evidence=files)
    shares = [_share(run) for run in runs]
    if all(share is None for share in shares):
        return declared.not_told(plan)
    known = [share for share in shares if share is not None]
    if len(known) < len(runs):
        silent = tuple(path for path, share in zip(files, shares, strict=True) if share is None)
        reason = Text("{n} of {m} runs do not tell the client's processor time.", "{m} 轮中有 {n} 轮未给出客户端处理器时间。")
        return replace(blank, reason=reason.fill(n=len(silent), m=len(runs)), change=remedies.told(silent))
    limit, most = plan.validity.client_cpu_max, max(known)
    value = beside(most, limit, 4)
    reason = Text("The client used at most {v} of one processor (at most {l}).", "客户端最多占用一个处理器的 {v}（上限 {l}）。")
    verdict = Verdict.PASS if most <= Fraction(limit) else Verdict.FAIL
    return replace(blank, verdict=verdict, reason=reason.fill(v=percent(most, limit), l=percent(limit)), value=value, margin=limit - value)


def _share(run: Run) -> Fraction | None:
    used, took = exact(run.pack.client.get("cpu_s")), exact(run.pack.client.get("wall_s"))
    return None if used is None or took is None or used < 0 or took <= 0 else Fraction(used) / Fraction(took)
