"""Is all evidence there, by identity: every step, host and file that the plan asks for, and nothing that no step can have brought."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gates import declared_common, remedies
from gates.bundle import INPUTS, Bundle
from gates.model import ATTENDED, CheckResult, Problem, StepKind, StepSpec, Verdict
from gates.plan import Plan
from gates.readers.run_pack import Pack, read_pack
from gates.readers.strict import at, count
from gates.rules import apart, attended, identity
from gates.rules.claim import Findings, Run
from gates.rules.estimates import tier_stats
from gates.text import Text, clauses


@dataclass(frozen=True)
class Gathered:
    """The runs of a gate as far as evidence tells them, and everything that is missing, broken or foreign."""

    findings: Findings
    problems: tuple[Problem, ...]


def gather(plan: Plan, bundle: Bundle, steps: Sequence[StepSpec], *, known: Sequence[str] = ()) -> Gathered:
    """Read the pack of every job step, and collect all problems of completeness. `known`: paths that belong to no step, and yet to the gate."""
    problems = [*_missing_files(bundle, steps), *(p for p in _foreign_files(bundle, steps) if p.evidence not in known)]
    runs = []
    for step in steps:
        if step.kind is not StepKind.JOB:
            continue
        hosts, names = _job_hosts(bundle, step)
        if len(hosts) != 1:
            problems.append(_not_one_host(step, hosts))
            continue
        pack = read_pack(bundle, step.key, hosts[0], names, plan.g4.fatal_counters)
        problems += [p for p in pack.problems if p.code != "missing"]  # missing files are listed by identity already
        problems += [*_wrong_job(bundle, step, pack), *_phase_problems(step, pack), *_several_boots(step, pack)]
        problems += [*attended.problems(bundle, step, pack), *identity.problems(bundle, step, pack)]
        tiers = [int(t["tier"]) for t in step.params["tiers"]]
        stats = {tier: tier_stats(pack.of("measure", tier), tier) for tier in tiers}
        runs.append(Run(step, pack, {tier: found for tier, found in stats.items() if found is not None}))
    problems += apart.problems(runs)
    return Gathered(Findings(plan, tuple(runs)), tuple(problems))


def evidence_check(gate: str, plan: Plan, problems: Sequence[Problem], wanted: int, runs: Sequence[Run]) -> CheckResult:
    """Return the check that all evidence is there. Anything missing is inconclusive, never a pass.

    Of runs whose engine is driven from elsewhere it says how far the two hosts' clocks are known.
    """
    blank = declared_common.evidence(gate).blank(plan)
    if not problems:
        reason = Text("All evidence that the plan asks for is there: {n} files.", "计划要求的证据齐全：{n} 个文件。").fill(n=wanted)
        apart = attended.clocks_known([run.pack for run in runs])
        reason = Text(reason.en + apart.en, reason.zh + apart.zh) if apart else reason
        return replace(blank, verdict=Verdict.PASS, reason=reason, value=Decimal(0))
    listed, more = clauses(p.message for p in problems[:5]), len(problems) - 5
    reason = Text(
        f"{len(problems)} problems of evidence: {listed.en}" + (f"; and {more} more." if more > 0 else "."),
        f"证据存在 {len(problems)} 个问题：{listed.zh}" + (f"；另有 {more} 个。" if more > 0 else "。"),
    )
    files = tuple(dict.fromkeys(p.evidence for p in problems if p.evidence))
    return replace(blank, reason=reason, value=Decimal(len(problems)), change=_remedy(problems), evidence=files[:20])


def _remedy(problems: Sequence[Problem]) -> Text:
    """Return what would change it: the files of what is missing or broken; where nothing but foreign files is wrong, their absence."""
    lacking = [p.evidence for p in problems if p.code != "foreign" and p.evidence]
    if lacking or any(p.code != "foreign" for p in problems):
        return remedies.whole(lacking)
    return Text("a new attempt without what none of its steps brought would change it: {f}", "新的尝试不含各步骤之外的文件方可改变：{f}").fill(
        f=remedies.named([p.evidence for p in problems])
    )


def wanted_files(bundle: Bundle, steps: Sequence[StepSpec]) -> tuple[tuple[str, StepSpec, str], ...]:
    """Return (path, step, host) of every file that the steps must bring."""
    return tuple(
        (f"evidence/{step.key}/{host}/{name}", step, host)
        for step in steps
        for group, names in step.expects.items()
        for host in bundle.hosts(group)
        for name in names
    )


def _missing_files(bundle: Bundle, steps: Sequence[StepSpec]) -> list[Problem]:
    problems = []
    for step in steps:
        for group, names in step.expects.items():
            if names and group != ATTENDED and not bundle.hosts(group):
                text = Text("{s}: the engagement names no host in the group {g}.", "{s}：项目未给出分组 {g} 的主机。").fill(s=step.key, g=group)
                problems.append(Problem("no_host", text, INPUTS))
    for path, step, host in wanted_files(bundle, steps):
        if not bundle.has(path):
            text = Text("{s} on {h}: {p} is missing.", "{h} 上的 {s}：缺少 {p}。").fill(s=step.key, h=host, p=path)
            problems.append(Problem("missing", text, path))
    return problems


def _foreign_files(bundle: Bundle, steps: Sequence[StepSpec]) -> list[Problem]:
    """Return evidence that no step can have brought: an unexpected case is no better than a missing one."""
    keys = {step.key for step in steps}
    groups = bundle.inputs.get("hosts")
    known = {host for group in (groups if isinstance(groups, dict) else {}) for host in bundle.hosts(group)}
    known.add("site")  # what people brought: forms, photos
    problems = []
    for path in bundle.files:
        parts = path.split("/")
        if path == INPUTS or (len(parts) >= 4 and parts[1] in keys and parts[2] in known):
            continue
        if len(parts) == 3 and parts[1] in keys:
            continue  # of the step itself, from no host: a form, a photo, an event log
        problems.append(
            Problem("foreign", Text("{p} belongs to no step and host of this gate.", "{p} 不属于本门禁的任何步骤和主机。").fill(p=path), path)
        )
    return problems


def _job_hosts(bundle: Bundle, step: StepSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    hosts: list[str] = []
    names: list[str] = []
    for group, files in step.expects.items():
        if group == ATTENDED:  # what serves the job is told by rules.attended
            continue
        hosts += [h for h in bundle.hosts(group) if h not in hosts]
        names += files
    return tuple(hosts), tuple(names)


def _not_one_host(step: StepSpec, hosts: Sequence[str]) -> Problem:
    text = Text("{s}: a run is driven by one load generator, the engagement names {n} ({h}).", "{s}：一轮由一台负载机驱动，项目给出 {n} 台（{h}）。")
    return Problem("hosts", text.fill(s=step.key, n=len(hosts), h=", ".join(hosts) or "-"), INPUTS)


def _phase_problems(step: StepSpec, pack: Pack) -> list[Problem]:
    """Return what is wrong with the phases: each that the step asks for must be there once, with its times."""
    params, where = step.params, pack.path("phases.jsonl")
    tiers = [int(t["tier"]) for t in params["tiers"]]
    soak = params["kind"] == "soak"
    measured: list[tuple[str, int | None]] = [("soak", int(params["tier"]))] if soak else [("measure", tier) for tier in tiers]
    wanted = [
        *measured,
        *((name, None) for name, asked in (("store", params["store"]), ("cool", params["cool"]), ("repeat", params["repeat"])) if asked),
    ]
    problems = []
    for name, tier in wanted:
        phase = _soak_phase(pack, tier) if soak and name == "soak" else pack.phase(name, tier)
        begun, ended = count(at(phase, "started_ns")), count(at(phase, "ended_ns"))
        label = f"{name} c{tier}" if tier else name
        if begun is None or ended is None or ended < begun:
            text = Text("{p}: the phase {n} is not there exactly once, with its times.", "{p}：阶段“{n}”缺失、重复或缺少时间。").fill(
                p=where, n=label
            )
            problems.append(Problem("phase", text, where))
    return problems


def _several_boots(step: StepSpec, pack: Pack) -> list[Problem]:
    """Return a problem when a run spans boots of its host: their clocks have nothing in common. A soak goes on after a reboot, by its own rules."""
    boots = apart.boots(pack)
    if step.params["kind"] == "soak" or len(boots) < 2:
        return []
    where = pack.path("records.jsonl")
    text = Text(
        "{p}: the run spans {n} boots of the host, and times of one boot cannot be held against those of another.",
        "{p}：该轮跨越主机的 {n} 次开机，不同开机的时间不可比较。",
    )
    return [Problem("boots", text.fill(p=where, n=len(boots)), where)]


def _soak_phase(pack: Pack, tier: int | None) -> dict[str, Any] | None:
    """Return the newest phase of a soak: after a reboot of the host the job goes on in another boot, and has a phase in each."""
    rows = [p for p in pack.phases if p.get("phase") == "soak" and p.get("tier") == tier]
    return rows[-1] if rows and len({str(p.get("boot_id")) for p in rows}) == len(rows) else None


def _wrong_job(bundle: Bundle, step: StepSpec, pack: Pack) -> list[Problem]:
    """Return a problem for each document of a pack that is of another job than this attempt's step, or does not tell of which it is.

    A job that ended before it could measure anything is followed by another, with a number from 2 behind the step's id: one number a pack.
    """
    wanted = f"{bundle.manifest['attempt'].get('id')}-{step.key}"
    problems = []
    for name, doc in pack.of_the_job():
        seen, where = doc.get("job"), pack.path(name)
        if not bundle.has(where):
            continue  # a missing file is listed by identity already
        if seen is None:
            text = Text("{p} does not say of which job it is, so it may be of another run.", "{p} 未说明属于哪个作业，可能来自其他轮次。")
            problems.append(Problem("job", text.fill(p=where), where))
        elif not (isinstance(seen, str) and re.fullmatch(re.escape(wanted) + r"(\.([2-9]|[1-9][0-9]{1,2}))?", seen)):
            text = Text("{p} is of the job {s}, not of {w}.", "{p} 属于作业 {s}，而非 {w}。").fill(p=where, s=str(seen)[:120], w=wanted)
            problems.append(Problem("job", text, where))
        elif seen != pack.job.get("job", seen):
            text = Text("{p} is of another job than {j}.", "{p} 与 {j} 不属于同一作业。").fill(p=where, j=pack.path("job.json"))
            problems.append(Problem("job", text, where))
    return problems
