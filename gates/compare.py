"""Limits straight from result files of benchmark clients: one file an arm and tier, the same limit functions as G3, never a gate.

Such files say nothing about caches, hits, the device or the outputs, so the best that they can be worth is `conditional`, because `unproven`.
What keeps two files from being compared (a tier that one arm lacks, unequal work, a failed request, another client) is a named problem, and the
checks of that tier are not answered. A missed limit is a `fail` all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gates.bundle import Unreadable
from gates.canonical import sha256_hex
from gates.comparing import ARMS, Compared, Trouble, troubles
from gates.g3.limits import throughput_gain_of, ttft_drop_of
from gates.g3.product import sla_of
from gates.importing import at_tier, detect, normalise
from gates.judge import because, roll_up
from gates.model import CheckResult, Severity, Verdict
from gates.plan import Plan
from gates.readers.bench.declared import CLIENTS, OWN_TITLES
from gates.readers.registry import read
from gates.rules.claim_table import TITLES
from gates.rules.decision import risk
from gates.rules.standing import Standing
from gates.text import Text
from gates.version import JUDGE_VERSION, RULES_HASH

UNPROVEN = "unproven"
_NOTHING_KNOWN = Standing(complete=True, claims=())  # what stands beside the limits in G3 is what these files cannot prove

_SUMMARY = {
    Verdict.FAIL: Text("A limit is missed: {ids}.", "有限值未达到：{ids}。"),
    Verdict.INVALID: Text("The files cannot be compared: {ids}.", "文件不可比较：{ids}。"),
    Verdict.INCONCLUSIVE: Text("Not every limit could be held against the files: {ids}.", "有限值无法由文件判断：{ids}。"),
    Verdict.CONDITIONAL: Text(
        "Every limit is met, as far as such files can tell: {n} claims remain unproven, and no gate is passed by this.",
        "就此类文件所及，各限值均已达到；另有 {n} 项断言未经证明，不能据此通过任何门禁。",
    ),
}


@dataclass(frozen=True)
class ResultFile:
    """One result file as it was given: a name for messages, its bytes, and the tool and the tier where the caller names them."""

    name: str
    data: bytes
    tool: str | None = None
    tier: int | None = None


def compare(plan: Plan, baseline: Sequence[ResultFile], candidate: Sequence[ResultFile]) -> dict[str, Any]:
    """Return the comparison as a document (docs/importing-results.md says its shape). Raises Unreadable for a file that no reader knows."""
    files = tuple(_compared(arm, given) for arm, group in zip(ARMS, (baseline, candidate), strict=True) for given in group)
    if not baseline or not candidate:
        raise Unreadable("Both arms need at least one file.", "两个对照组都至少需要一个文件。")
    found = troubles(plan, files)
    checks = _checks(plan, files, found)
    verdict = roll_up(checks)
    if verdict is not Verdict.FAIL and any(trouble.verdict is Verdict.INVALID for trouble in found):
        verdict = Verdict.INVALID
    elif verdict in (Verdict.PASS, Verdict.CONDITIONAL):
        verdict = Verdict.INCONCLUSIVE if found else Verdict.CONDITIONAL
    unproven = _unproven(files)
    return {
        "schema": 1,
        "kind": "comparison",
        "advances_gate": False,
        "verdict": str(verdict),
        "because": [*because(checks), UNPROVEN] if verdict is Verdict.CONDITIONAL else [],
        "summary": _summary(verdict, checks, found, len(unproven)).json(),
        "risk": risk(plan.decision).json(),
        "decision": {"rule": plan.decision.rule, "comparison": plan.decision.comparison, "pairs": 1},
        "judge_version": JUDGE_VERSION,
        "rules_hash": RULES_HASH,
        "plan_hash": plan.hash,
        "tiers": _tiers(plan, files),
        "files": [f.json() for f in files],
        "problems": [t.json() for t in found],
        "checks": [{**check.json(), "limit_met": _met(check)} for check in checks],
        "unproven": unproven,
    }


def _compared(arm: str, given: ResultFile) -> Compared:
    """Return a file with its tool, figures and problems. Raises Unreadable where nobody can tell what it is, or nothing can be read."""
    tool = given.tool or detect(given.data)
    if isinstance(tool, Text):
        raise Unreadable(f"{given.name}: {tool.en}", f"{given.name}：{tool.zh}")
    if tool not in CLIENTS:
        raise Unreadable(f"{given.name}: {tool} is no benchmark client.", f"{given.name}：{tool} 不是基准测试客户端。")
    reading = read(tool, given.data)
    if not reading.observations:
        why = reading.problems[0].message
        raise Unreadable(f"{given.name}: not readable as a file of {tool}: {why.en}", f"{given.name}：无法按 {tool} 的文件读取：{why.zh}")
    if given.tier is not None:
        reading = at_tier(reading, given.tier)
    return Compared(arm, given.name, sha256_hex(given.data), tool, normalise(reading), reading.problems)


def _checks(plan: Plan, files: Sequence[Compared], found: Sequence[Trouble]) -> list[CheckResult]:
    """Return the checks of every tier of the plan and of the files, answered or with the reason why not."""
    checks = []
    for tier in _tiers(plan, files):
        pair = [next((f for f in files if f.arm == arm and f.figures.tier == tier), None) for arm in ARMS]
        names = tuple(f.name for f in pair if f is not None)
        told = next((t for t in found if t.tier == tier), None)
        base, new = (f.figures if f is not None else None for f in pair)
        if told is not None or base is None or new is None:
            reason = told.message if told is not None else Text("c{t}: an arm has no file.", "c{t}：有对照组缺少文件。").fill(t=tier)
            change = Text("a file of each arm, with the same work, would tell", "两个对照组工作量相同的文件方可判定")
            blank = CheckResult("", Text("", ""), told.verdict if told is not None else Verdict.INCONCLUSIVE, reason, change=change)
            ttft: Any = blank
            rate: Any = blank
        else:
            ttft = ((base.ttft_p50_ns, new.ttft_p50_ns),)
            rate = ((base.output_per_s, new.output_per_s),)
        limits = [ttft_drop_of(plan, tier, ttft, names), throughput_gain_of(plan, tier, rate, _NOTHING_KNOWN, names)]
        if tier not in plan.workload.tiers:  # a tier that only the files bring is there to be judged
            limits = [replace(check, severity=Severity.BLOCKING) for check in limits]
        checks += limits
        sla = (plan.g3.sla.ttft_p50 or {}).get(tier)
        if sla is not None:
            checks.append(sla_of(plan, tier, ttft, names))
    return [_with_note(check) for check in checks]


def _with_note(check: CheckResult) -> CheckResult:
    """Return an undecided check with the reason why its rule cannot decide on one pair of runs."""
    note = check.interval.note if check.interval is not None else None
    if check.verdict is not Verdict.INCONCLUSIVE or note is None:
        return check
    return replace(check, reason=Text(f"{check.reason.en} {note.en}", check.reason.zh + note.zh))


def _tiers(plan: Plan, files: Sequence[Compared]) -> list[int]:
    return sorted({*plan.workload.tiers, *(f.figures.tier for f in files if f.figures.tier is not None)})


def _met(check: CheckResult) -> bool | None:
    """Return whether the limit is met, or None where that could not be answered."""
    return {Verdict.PASS: True, Verdict.CONDITIONAL: True, Verdict.FAIL: False}.get(check.verdict)


def _unproven(files: Sequence[Compared]) -> list[dict[str, Any]]:
    """Return the claims that these files cannot prove, with the tools that leave each open."""
    tools = sorted({f.tool for f in files})
    claims = dict.fromkeys(claim for tool in tools for claim in CLIENTS[tool].cannot_prove)
    return [
        {"claim": claim, "title": (TITLES.get(claim) or OWN_TITLES[claim]).json(), "tools": [t for t in tools if claim in CLIENTS[t].cannot_prove]}
        for claim in claims
    ]


def _summary(verdict: Verdict, checks: Sequence[CheckResult], found: Sequence[Trouble], unproven: int) -> Text:
    ids = [c.id.removeprefix("g3.") for c in checks if c.verdict is verdict and c.severity is Severity.BLOCKING] or [t.code for t in found]
    return _SUMMARY[verdict].fill(ids=", ".join(dict.fromkeys(ids)), n=unproven)
