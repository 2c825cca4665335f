"""Did the soak do the work of the plan, on the sealed engine, over prefixes that were stored: the claims that the runs of G2 and G3 answer too.

A soak's requests stand in columns, and one job does all: so the plan itself is what its requests, its job and its engine are held against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from gates.model import ClaimResult, ClaimStatus
from gates.plan import Plan
from gates.readers.places import folders_of
from gates.readers.strict import at, exact
from gates.rules.claim import Finding, Findings, Run, fold, unknown
from gates.rules.engine import differs_from_plan, instances_differ
from gates.rules.hash_seed import seeds_differ
from gates.rules.work import arm_told, engine_told, stored
from gates.text import Text

_LENGTHS = ("context_tokens", "suffix_tokens", "output_tokens", "set")
# What the job of a soak is told beside: its seconds and the period of its samples are measured (duration, telemetry coverage).
_LOAD = ("tier", "sentinel")
_ROWS = ("label", "action", "at_s", "seconds")


def equal_work(data: Findings, arm: str) -> ClaimResult:
    """Return whether the soak of an arm asked what the plan says, of one engine of the sealed platform, by a job that was told nothing else."""

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            files = tuple(run.pack.path(name) for name in ("records.jsonl", "job.json", "engine.json", "arm.json"))
            yield from engine_told(data.plan, run, run)
            yield from arm_told(data.plan, run)
            lacking = [what for what, told, _ in _told_and_wanted(run) if told is _NOTHING]
            if lacking:
                yield unknown(run, f"job.json does not tell {', '.join(lacking)}.", f"job.json 未给出 {'、'.join(lacking)}。", files=("job.json",))
            if run.pack.records is None or not len(run.pack.records):
                yield unknown(run, "there are no requests of the soak.", "没有稳定性运行的请求记录。", files=("records.jsonl",))
            for wrong in (
                _requests_differ(data.plan, run),
                _job_differs(run),
                differs_from_plan(data.plan, run.pack.engine),
                instances_differ(run.pack.engine, folders_of(run.pack)),
                *(seeds_differ(data, view) for view in run.places),
            ):
                if wrong is not None:
                    yield Finding(ClaimStatus.BREACHED, wrong, None, run.key, None, files)
            good = Text("Lengths, token totals, job and engine are as the plan says.", "长度、词元总数、作业和引擎均与计划一致。")
            yield Finding(ClaimStatus.HOLDS, good, None, run.key, None, files)

    return fold(data.plan, "equal_work", arm, findings())


def _requests_differ(plan: Plan, run: Run) -> Text | None:
    """Return the first difference between the requests of a soak and the plan: of all of them what was asked, of the good ones what was done."""
    work, records = plan.workload, run.pack.records
    if records is None:
        return None
    good, sent = records.where(records.good), work.context_tokens + work.suffix_tokens
    for what, column, want in (
        (Text("requests in flight that they were sent for", "请求所属并发"), records.tier, plan.g4.tier),
        (Text("tokens sent for each prompt", "每个提示发送的词元数"), records.tokens_sent, sent),
        (Text("output tokens asked for", "要求的输出词元数"), records.max_tokens, work.output_tokens),
        (Text("prompt tokens that the engine counted", "引擎计得的提示词元数"), good.prompt_tokens, sent),
        (Text("output tokens of each answer", "每个回答的输出词元数"), good.tokens, work.output_tokens),
    ):
        odd = column != want
        if odd.any():
            seen = ", ".join(str(v) for v in np.unique(column[odd])[:3].tolist())
            text = Text("{what}: {seen} where the plan says {want}, in {n} requests.", "{what}：{n} 个请求为 {seen}，计划为 {want}。")
            return text.fill(what=what, seen=seen, want=want, n=int(odd.sum()))
    return None


_NOTHING = object()  # job.json does not have the key; null is something that it says


def _told_and_wanted(run: Run) -> Iterator[tuple[str, Any, Any]]:
    """Yield (what, as job.json tells it, as the step asks for it). Nothing asks for a cap of requests: it would thin the load out."""
    job, step = run.pack.job, run.spec.params
    for key in _LENGTHS:
        yield f"workload.{key}", _of(at(job, "workload"), key), step[key]
    for key in _LOAD:
        yield f"soak.{key}", _of(at(job, "soak"), key), step[key]
    yield "soak.rotate_prefixes", _of(at(job, "soak"), "rotate_prefixes"), sum(run.wanted.values())
    yield "soak.request_cap", _of(at(job, "soak"), "request_cap"), None
    planned = step.get("injections") or []
    told = _of(at(job, "soak"), "injections")
    yield "soak.injections", [] if told is _NOTHING and not planned else told, [{key: row[key] for key in _ROWS} for row in planned]


def _of(data: Any, key: str) -> Any:
    return data[key] if isinstance(data, Mapping) and key in data else _NOTHING


def _job_differs(run: Run) -> Text | None:
    """Return the first thing that the job was told otherwise than the step says, or None."""
    for what, told, want in _told_and_wanted(run):
        if told is not _NOTHING and not _same(told, want):
            if what == "soak.request_cap":
                text = Text(
                    "the job was given a cap of {t} requests, which no plan has: the load was thinner than agreed.",
                    "作业被设定请求上限 {t}，计划中没有此项：负载低于约定。",
                )
                return text.fill(t=str(told)[:80])
            text = Text("the job was told {w} {t}; the plan says {p}.", "作业的 {w} 为 {t}；计划为 {p}。")
            return text.fill(w=what, t=str(told)[:80], p=str(want)[:80])
    return None


def _same(told: Any, want: Any) -> bool:
    """Compare a value of job.json with that of a step: numbers by value, of a map the keys that the step has, a list row by row."""
    if isinstance(want, Mapping):
        return isinstance(told, Mapping) and all(key in told and _same(told[key], value) for key, value in want.items())
    if isinstance(want, list):
        return isinstance(told, list) and len(told) == len(want) and all(_same(a, b) for a, b in zip(told, want, strict=True))
    if isinstance(want, int | float):
        return not isinstance(told, str) and exact(told) == Decimal(str(want))
    return bool(told == want)


def store_complete(data: Findings, arm: str) -> ClaimResult:
    """Return whether every prefix that the soak asks again, and those of its sentinel, were stored before, with the bytes that they take."""

    def findings() -> Iterator[Finding]:
        for run in data.places(arm):
            requests, needed = run.pack.stored, sum(run.wanted.values()) + int(run.spec.params["sentinel"]["prefixes"])
            if requests is None:
                lacking = unknown(run, "there is no record of the store phase.", "没有写入阶段的记录。", files=("records.jsonl",))
                yield replace(lacking, host=run.host)
                continue
            whole = (requests.answered == 1) & (requests.prompt_tokens == requests.tokens_sent)
            prefixes = len(np.unique(requests.prompt))  # a store phase that a reboot cut off is done again: a prefix counts once
            # KV of G3 may lie on the medium, so what lies there is not taken for what this soak stored.
            failed = prefixes - len(np.unique(requests.prompt[whole]))
            yield replace(stored(data.plan, run, asked=prefixes, failed=failed, needed=needed, alone=False), host=run.host)

    return fold(data.plan, "store_complete", arm, findings())
