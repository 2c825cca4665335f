"""An inconclusive G3 is extended once, by the run pairs that the plan sealed for this, and judged over all runs (DESIGN 4.6, 4.11).

The runs of an extension follow the rules of the first ones: whole ABBA blocks, the same prompts within them (or within each, as the plan says),
stored by the first run of each arm, and no prompt that was stored or asked before. A recompute run over each new set of prompts goes with them,
without which nobody could tell whether the outputs of the new runs are right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gates.bundle import INPUTS, Bundle
from gates.canonical import sha256_of
from gates.model import MORE_PAIRS, CheckResult, Problem, Severity, StepSpec, Verdict
from gates.plan import Plan
from gates.steps import arm_name, judge_step, numbered, report_step, run_step
from gates.text import Text

PROMPTS = "g3-extension"
FIRST_VERDICT = "evidence/extension/verdict.json"  # the verdict that was extended, as judged then


def extension(plan: Plan) -> tuple[StepSpec, ...]:
    """Return the steps that extend an attempt: run pairs in whole ABBA blocks, recompute where the plan has it, judge, report. Empty: not allowed."""
    if not plan.g3.extension_pairs:
        return ()
    arms = plan.arms
    first = arms.order[0]
    second = "candidate" if first == "baseline" else "baseline"
    before, index = len(arms.order), len(arms.order) + len(arms.beside)
    out: list[StepSpec] = []
    for n, arm in enumerate((first, second, second, first) * (plan.g3.extension_pairs // 2), 1):
        prompts = numbered(PROMPTS, arms.block(n))
        store = all((step.params["arm"], step.params["set"]) != (arm, prompts) for step in out)
        step = run_step(plan, key=f"run-{before + n}", arm=arm, run_index=index + n, prompts=prompts, store=store)
        out.append(replace(step, title=_TITLE.fill(n=before + n, arm=arm_name(arm))))
    for n, prompts in enumerate(dict.fromkeys(step.params["set"] for step in out) if "recompute" in arms.once else (), arms.controls + 1):
        step = run_step(plan, key=numbered("recompute", n), arm="recompute", run_index=index + len(out) + 1, prompts=prompts, store=False)
        out.append(replace(step, title=Text("Extension: {arm}", "补充轮次：{arm}").fill(arm=arm_name("recompute"))))
    judged = replace(judge_step("judge-2"), title=Text("Judge all runs, old and new", "合并全部轮次判定"))
    return (*out, judged, report_step("report-2"))


_TITLE = Text("Extension, run {n}: {arm}", "补充第 {n} 轮：{arm}")


@dataclass(frozen=True)
class Claimed:
    """What a bundle says of an extension: whether it says so at all, the pairs that must then be there, and what is wrong with the saying."""

    said: bool = False
    pairs: int = 0
    problems: tuple[Problem, ...] = ()


def claimed(plan: Plan, bundle: Bundle) -> Claimed:
    """Return what evidence/inputs.json says of an extension, held against the plan and against the verdict that it extends.

    Nothing said: then a run of an extension is a foreign file, and the evidence is not complete.
    """
    told = bundle.inputs.get("extension")
    if told is None:
        return Claimed()
    told = told if isinstance(told, Mapping) else {}
    allowed, said = plan.g3.extension_pairs, told.get("pairs")
    problems = []
    if not allowed or said is True or said != allowed:
        text = Text(
            "{p} says that the attempt was extended by {s} run pairs; the plan allows {a}.", "{p} 称本次尝试补充了 {s} 个轮次对；计划允许 {a} 个。"
        ).fill(p=INPUTS, s=said, a=allowed)
        problems.append(Problem("extension", text, INPUTS))
    wrong = _wrong_verdict(bundle, told)
    if wrong is not None:
        problems.append(Problem("extension", wrong, FIRST_VERDICT))
    return Claimed(True, allowed, tuple(problems))


def _wrong_verdict(bundle: Bundle, told: Mapping[str, Any]) -> Text | None:
    """Return what is wrong with the verdict that was extended, or None: it must be there whole, this attempt's, inconclusive, and open to it."""
    if not bundle.has(FIRST_VERDICT):
        return Text("{p} is missing: the verdict that was extended.", "缺少 {p}：被补充的判定。").fill(p=FIRST_VERDICT)
    try:
        first = json.loads(bundle.text(FIRST_VERDICT))
    except (ValueError, RecursionError):
        first = None
    if not isinstance(first, dict) or sha256_of(first) != told.get("from_verdict"):
        return Text("{p} is not the verdict that {i} names.", "{p} 不是 {i} 所指的判定。").fill(p=FIRST_VERDICT, i=INPUTS)
    attempt, way_on = first.get("attempt"), first.get("extension")
    mine = isinstance(attempt, Mapping) and attempt.get("id") == bundle.manifest["attempt"].get("id")
    if not mine or first.get("plan_hash") != bundle.sealed_plan_hash or first.get("gate") != bundle.gate:
        return Text("{p} is the verdict of another attempt or plan.", "{p} 属于其他尝试或计划。").fill(p=FIRST_VERDICT)
    if first.get("verdict") != Verdict.INCONCLUSIVE or not isinstance(way_on, Mapping) or way_on.get("may") is not True:
        return Text("{p} is no verdict that may be extended.", "{p} 不是可以补充的判定。").fill(p=FIRST_VERDICT)
    return None


_DONE = Text("It was extended once already, by {n} run pairs; a new attempt counts.", "已补充过一次（{n} 个轮次对），不再补充；如再尝试，另行计数。")
_NEVER = Text(
    "The plan allows no extension (g3.extension_pairs is 0); a new attempt counts.", "计划不允许补充（g3.extension_pairs 为 0）；新的尝试另行计数。"
)
_MAY = Text(
    "{n} more run pairs can decide it, as the plan foresees: extend this attempt once; it is then judged over all run pairs.",
    "按计划可补充 {n} 个轮次对（仅一次），之后合并全部轮次对判定。",
)
_USELESS = Text(
    "More run pairs would not decide it: {t} must be answered first{c}. A new attempt counts.",
    "补充轮次对无法解决：须先解决「{t}」{c}；新的尝试另行计数。",
)


def way_on(plan: Plan, bundle: Bundle, verdict: Verdict, checks: Sequence[CheckResult]) -> dict[str, Any]:
    """Return what verdict.json says of an extension.

    {pairs: the plan's, done: null | {pairs, from_verdict, at}, may: whether this verdict may be extended, reason: what would change an
    inconclusive one (null for any other)}. It may where every blocking check that is undecided can be decided by more run pairs.
    """
    allowed, told = plan.g3.extension_pairs, bundle.inputs.get("extension")
    told = told if isinstance(told, Mapping) or told is None else {}
    done = None if told is None else {key: told.get(key) for key in ("pairs", "from_verdict", "at")}
    out: dict[str, Any] = {"pairs": allowed, "done": done, "may": False, "reason": None}
    if verdict is not Verdict.INCONCLUSIVE:
        return out
    others = [c for c in checks if c.severity is Severity.BLOCKING and c.verdict is Verdict.INCONCLUSIVE and c.remedy != MORE_PAIRS]
    if done is not None:
        reason = _DONE.fill(n=done["pairs"])
    elif not allowed:
        reason = _NEVER
    elif others:
        change = others[0].change
        told = Text(f" ({change.en})", f"（{change.zh}）") if change is not None else Text("", "")
        reason = _USELESS.fill(t=others[0].title, c=told)
    else:
        reason = _MAY.fill(n=allowed)
        out["may"] = True
    return out | {"reason": reason.json()}
