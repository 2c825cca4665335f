"""From a bundle to verdict.json: the gate's own judgement, the roll-up, and the hashes that the verdict stands on. Pure and offline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gates import declared_common
from gates.bundle import Bundle, Unreadable
from gates.canonical import canonical_bytes, plain, sha256_of
from gates.model import CheckResult, GateJudgement, Severity, Verdict
from gates.plan import Plan
from gates.registry import GATES
from gates.rules import stand_ins
from gates.rules.margins import with_margin
from gates.text import Text
from gates.version import JUDGE_VERSION, RULES_HASH
from gates.why import why

__all__ = ["JUDGE_VERSION", "RULES_HASH", "differences", "judge", "roll_up", "verdict_hash"]

# DESIGN 4.9: any blocking fail, else any invalid, else any inconclusive, else any conditional, else pass.
ORDER = (Verdict.FAIL, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.CONDITIONAL, Verdict.PASS)

_ENDS = {
    "canceled": Text("The attempt was canceled; it is never a pass.", "本次尝试已取消，不得判为通过。"),
    "error": Text("The attempt ended in error; it is never a pass.", "本次尝试因错误终止，不得判为通过。"),
    "lost_contact": Text("Contact with the target was lost; it is never a pass.", "与目标主机失去联系，不得判为通过。"),
}
_WHOLE = "finished"  # the only run status of an attempt that can pass: any other, and one that nobody knows, is none
# What would change each of them.
_RUN_THROUGH = Text("a new attempt that runs to its end would change it", "执行完毕的新尝试方可改变")
_COUNTED = Text("an attempt that counts, and is no rehearsal, would be judged", "正式尝试（非预演）方可判定")
_AS_SEALED = Text(
    "an attempt on the real target, or a plan that both parties seal for a simulated one, would change it",
    "在真实目标上的尝试，或双方为模拟环境封存的计划方可改变",
)
_REAL = Text("an attempt whose evidence comes from the real target would change it", "证据来自真实目标的尝试方可改变")


_SAME_UNDER_ANY_RULES = ("schema", "gate", "attempt", "verdict", "because", "plan_hash", "manifest_hash", "simulated", "time_scale")


def judge(bundle: Bundle) -> dict[str, Any]:
    """Return verdict.json of a bundle. Raises Unreadable when the bundle cannot be judged at all."""
    spec = GATES.get(bundle.gate)
    if spec is None:
        raise Unreadable(f"There is no gate {bundle.gate!r}.", f"不存在门禁 {bundle.gate!r}。")
    plan = bundle.plan
    judgement: GateJudgement = spec.judge(plan, bundle)
    if not judgement.checks:
        raise Unreadable(f"{spec.id} has no check at all, which is an error.", f"{spec.id} 没有任何检查项，属于错误。")
    stand_in = None if _said_to_be_simulated(plan, bundle) else stand_ins.told_by(bundle)
    checks = tuple(with_margin(check) for check in (*_attempt_checks(plan, bundle, stand_in), *judgement.checks))
    verdict = roll_up(checks)
    way_on = spec.way_on(plan, bundle, verdict, checks) if spec.way_on else None
    attempt = bundle.manifest["attempt"]
    document = {
        "schema": 1,
        "gate": spec.id,
        "attempt": {"id": attempt.get("id"), "number": attempt.get("number"), "rehearsal": attempt.get("rehearsal") is True},
        "verdict": str(verdict),
        "because": because(checks) if verdict is Verdict.CONDITIONAL else [],
        "judge_version": JUDGE_VERSION,
        "rules_hash": RULES_HASH,
        "plan_hash": plan.hash,
        "manifest_hash": bundle.manifest_hash,
        "simulated": _said_to_be_simulated(plan, bundle) or stand_in is not None,
        "time_scale": plan.rig.time_scale,
        "summary": why(spec.title, verdict, checks, way_on).json(),
        "risk": (judgement.risk or Text("Each figure is held against its limit.", "各项数值直接与限值比较。")).json(),
        "decision": {
            "rule": plan.decision.rule,
            "comparison": plan.decision.comparison,
            "confidence": plan.decision.confidence,
            "pairs": judgement.pairs or plan.decision.pairs,
        },
        "extension": way_on,
        "checks": [check.json() for check in checks],
        "claims": [claim.json() for claim in judgement.claims],
        "not_tested": list(judgement.not_tested),
        "readings": _readings(bundle),
        "figures": judgement.figures,
        "facts": judgement.facts if verdict in (Verdict.PASS, Verdict.CONDITIONAL) else {},
    }
    data: dict[str, Any] = json.loads(canonical_bytes(plain(document)))
    return data


def _readings(bundle: Bundle) -> list[dict[str, Any]]:
    """Return what the readers made of each file, in short, so that another version of a reader can be told by it (gates.whatif)."""
    return [
        {
            "path": path,
            "reader": reader,
            "observations": len(reading.observations),
            "problems": len(reading.problems),
            "sha256": sha256_of([o.json() for o in reading.observations]),
        }
        for path, (reader, reading) in sorted(bundle.read_as.items())
    ]


def roll_up(checks: Iterable[CheckResult]) -> Verdict:
    """Return the verdict of a gate from its blocking checks. Without any there is nothing that could have passed: inconclusive."""
    found = {check.verdict for check in checks if check.severity is Severity.BLOCKING}
    return next((verdict for verdict in ORDER if verdict in found), Verdict.INCONCLUSIVE)


def because(checks: Iterable[CheckResult]) -> list[str]:
    """Return why a gate is conditional, each reason once, in the order of the checks."""
    reasons = [str(c.because) for c in checks if c.severity is Severity.BLOCKING and c.verdict is Verdict.CONDITIONAL and c.because]
    return list(dict.fromkeys(reasons))


def verdict_hash(document: Mapping[str, Any]) -> str:
    """Return the hash of a verdict document."""
    return sha256_of(document)


def differences(stored: Mapping[str, Any], fresh: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Return where a stored verdict differs from the recomputed one; empty when it is the same.

    The same rules must give the same document to the last letter. Other rules (a newer judge) may word things differently: then the attempt,
    verdict, plan, manifest and the verdict of every check must be the same. Which rules there were the manifest says, whose hash the report
    prints; a stored verdict that names others was edited.
    """
    named = [key for key in ("judge_version", "rules_hash") if stored.get(key) != manifest.get(key)]
    if all(manifest.get(key) == fresh.get(key) for key in ("judge_version", "rules_hash")):
        keys = sorted({*stored, *fresh})
        return [key for key in keys if stored.get(key) != fresh.get(key) or (key in stored) != (key in fresh)]
    out = named + [key for key in _SAME_UNDER_ANY_RULES if stored.get(key) != fresh.get(key)]
    before, after = _verdicts(stored), _verdicts(fresh)
    return out + [f"checks.{name}" for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def _verdicts(document: Mapping[str, Any]) -> dict[str, Any]:
    rows = document.get("checks")
    return {str(c.get("id")): c.get("verdict") for c in rows if isinstance(c, Mapping)} if isinstance(rows, list) else {}


def _said_to_be_simulated(plan: Plan, bundle: Bundle) -> bool:
    """Return whether plan, manifest or engagement say that the target is simulated: one is enough for the watermark."""
    return plan.rig.simulated or bundle.manifest.get("simulated") is not False or bundle.inputs.get("simulated") is not False


def _end(told: Any, otherwise: Text) -> Text:
    """Return the sentence on how an attempt ended."""
    known = _ENDS.get(told) if isinstance(told, str) else None
    return known or otherwise.fill(e="-" if told is None else str(told)[:60])


def _attempt_checks(plan: Plan, bundle: Bundle, stand_in: Text | None) -> list[CheckResult]:
    """Return what keeps an attempt from being a pass whatever was measured: a rehearsal, an interruption, a rig that the plan does not name.

    `stand_in`: the sign in the evidence of a target that is said to be real and is not.
    """
    attempt = bundle.manifest["attempt"]
    found: dict[Text, Text] = {}  # reason -> what would change it
    if attempt.get("rehearsal") is not False:
        found[Text("A rehearsal is never judged; the figures are for practice.", "预演不作判定，数值仅供练习。")] = _COUNTED
    cut, status = bundle.inputs.get("interruption"), attempt.get("status")
    if cut is not None:
        found[_end(cut, Text("The attempt was interrupted ({e}).", "本次尝试被中断（{e}）。"))] = _RUN_THROUGH
    if status != _WHOLE:
        untold = Text(
            "The manifest does not say that the attempt ran to its end (its status is {e}); it is never a pass.",
            "清单未说明本次尝试已执行完毕（状态为 {e}），不得判为通过。",
        )
        found[_end(status, untold)] = _RUN_THROUGH
    if _said_to_be_simulated(plan, bundle) and not plan.rig.simulated:
        found[Text("The target is simulated, the plan was sealed for real hardware.", "目标为模拟环境，而计划是为真实硬件封存的。")] = _AS_SEALED
    elif stand_in is not None:
        said = Text(
            "The evidence is of a simulated target, whatever the engagement says ({sign}). Nothing of it is for sign-off.",
            "证据来自模拟目标，与联测项目所述不符（{sign}）；不得用于签字验收。",
        )
        found[said.fill(sign=stand_in)] = _REAL
    blank = declared_common.attempt(bundle.gate).blank(plan)
    return [
        replace(blank, id=blank.id if n == 0 else f"{blank.id}_{n + 1}", reason=reason, change=change)
        for n, (reason, change) in enumerate(found.items())
    ]
