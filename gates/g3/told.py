"""What the candidate's runs tell beside what decides: the hits of each request, and failures to store. Judged where it is told."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates import remedies
from gates.g3.declared import CACHED_TOKENS, STORE_FAILURES
from gates.model import CheckResult, Verdict
from gates.readers.prometheus import failures_to_store
from gates.rules.claim import Findings
from gates.rules.estimates import beside, percent
from gates.rules.failures_counted import grown
from gates.rules.standing import Standing, refused
from gates.text import Text

Row = CheckResult | dict[str, Any]  # a check, or its entry under not tested


def cached_tokens(data: Findings, standing: Standing) -> Row:
    """Return the advisory check that every measured request of the candidate was served its stored prefix, by the engine's account of it.

    The counters of a tier hide a request that hit nothing among a hundred that hit all (llm-bench 7.10). The least share of any one decides.
    """
    plan, runs = data.plan, data.of("candidate")
    files = tuple(run.pack.path("records.jsonl") for run in runs)
    asked = [(run, r) for run in runs for r in run.pack.of("measure") if r.failure is None]
    known = [(run, r, r.cached_tokens) for run, r in asked if r.cached_tokens is not None]
    if not known:
        return CACHED_TOKENS.not_told(plan)
    blank, refusal = CACHED_TOKENS.blank(plan, evidence=files), standing.performance()
    if refusal:
        return refused(blank, refusal)
    if len(known) < len(asked):
        reason = Text("{n} of {m} answers do not tell how much of their prompt was cached.", "{m} 个应答中有 {n} 个未给出其提示的缓存词元数。")
        return replace(blank, reason=reason.fill(n=len(asked) - len(known), m=len(asked)), change=remedies.told(files))
    limit, context = plan.validity.external_hits_min, plan.workload.context_tokens
    run, request, tokens = min(known, key=lambda row: row[2])
    least, below = Fraction(tokens, context), sum(Fraction(t, context) < Fraction(limit) for _, _, t in known)
    value = beside(least, limit, 6)
    reason = Text(
        "Of {n} requests {b} were served less than {l} of their stored prefix; the least was {v} ({r}, c{t}, prompt {p}).",
        "{n} 个请求中有 {b} 个由缓存提供的已存前缀低于 {l}；最低为 {v}（{r}，c{t}，提示 {p}）。",
    ).fill(n=len(known), b=below, l=percent(limit), v=percent(least, limit), r=run.shown, t=request.tier, p=request.prompt)
    return replace(blank, verdict=Verdict.FAIL if below else Verdict.PASS, reason=reason, value=value, margin=value - limit)


def store_failures(data: Findings, standing: Standing) -> Row:
    """Return the advisory check that nothing failed to be stored in the candidate's runs, by the counters that its engine or offload has for it."""
    plan, runs = data.plan, data.of("candidate")
    files = tuple(run.pack.path("counters.jsonl") for run in runs)
    phases = [(view, phase, tier) for run in runs for view in run.places for phase, tier in (("store", None), *(("measure", t) for t in run.tiers))]
    counted = [found for view, phase, tier in phases for found in grown(view, phase, tier, failures_to_store)]
    if not counted:
        return STORE_FAILURES.not_told(plan)
    blank, refusal = STORE_FAILURES.blank(plan, evidence=files), standing.performance()
    if refusal:
        return refused(blank, refusal)
    if any(more is None for _, more in counted):
        name = next(name for name, more in counted if more is None)
        reason = Text("{n} went back, or is missing behind a phase.", "{n} 回退，或在某阶段之后缺失。")
        return replace(blank, reason=reason.fill(n=name), change=remedies.told(files))
    total = sum((more for _, more in counted if more is not None), Decimal(0))
    names = sorted({name for name, more in counted if more})
    reason = Text("{n} failures to store or to find room were counted{w}.", "写入或分配失败计数 {n} 次{w}。")
    where = Text(" ({n})", "（{n}）").fill(n=", ".join(names)) if names else Text("", "")
    verdict = Verdict.FAIL if total else Verdict.PASS
    return replace(blank, verdict=verdict, reason=reason.fill(n=format(total.normalize(), "f"), w=where), value=total, margin=-total)
