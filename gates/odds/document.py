"""The one dataset about a plan's odds that command line, page and REST show: numbers as text, sentences in both languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gates.model import Verdict
from gates.odds.alarms import Alarm, false_alarms, fewest_controls, share_of, with_fitting_limits
from gates.odds.chances import TRIALS, Chances, chances, shown
from gates.odds.cost import Cost, cost, stated_kv
from gates.odds.effects import Effects, Noise, expected_effects
from gates.odds.margins import warnings
from gates.odds.planner import SEARCH_TRIALS, json_of, needed, with_pairs
from gates.plan import Plan
from gates.rules.claim_table import TITLES
from gates.rules.estimates import percent
from gates.text import Text

VERDICTS = {
    Verdict.PASS: Text("pass", "通过"),
    Verdict.CONDITIONAL: Text("conditional", "有条件通过"),
    Verdict.FAIL: Text("fail", "不通过"),
    Verdict.INCONCLUSIVE: Text("inconclusive", "无法判定"),
    Verdict.INVALID: Text("invalid", "无效"),
}
_SUMMARY = Text("Chances of G3 as planned: {all}.", "按此计划，G3 的判定概率：{all}。")
_FITS = Text(
    "{field} of {l}: at this noise chance alone breaches “{c}” in up to {s} of gates; with {f} in at most 1 %{way}.",
    "{field} 为 {l}：在此噪声下，仅因偶然，至多会有 {s} 的门禁违反“{c}”；取 {f} 则不超过 1 %{way}。",
)
_CONTROLS = Text(", or with arms.controls {n}", "，或将 arms.controls 设为 {n}")
_BLOCKS = Text(", or in up to {s} with arms.prompts per_block", "，或将 arms.prompts 设为 per_block，则至多 {s}")
_NOT_DRAWN = Text(
    "Not drawn: rig faults, the product's own faults, guards, outputs that differ by the engine's own noise, an SLA, drift within the gate. "
    "Cold, complete and equal work is taken for granted.",
    "未模拟：环境故障、产品自身故障、护栏、引擎自身噪声造成的输出差异、SLA、门禁期间的漂移；并假定冷态、证据完整、工作量相等均成立。",
)
_NOISE = Text(
    "Noise: {r} from run to run, {q} from request to request with an autocorrelation of {a}; runs and tiers independent of each other, the arms "
    "recompute and placebo as noisy as the others.",
    "噪声：轮次间 {r}；同一轮内请求间 {q}，自相关 {a}；各轮次、各档位相互独立，重算与安慰剂的噪声与其他对照组相同。",
)
_EXTENDED = Text(
    "An inconclusive G3 is extended once by {n} run pairs and judged over all.",
    "G3 无法判定时，按计划补充 {n} 个轮次对（仅一次），并合并全部轮次判定。",
)
_SOURCE = Text("Expected drop: {d}. Expected gain: {g}.", "预期降幅：{d}。预期吞吐提升：{g}。")
_NEED = Text(
    "A pass with a chance of at least {w} takes {p} run pairs with {m} requests a run{x}: {n} requests, {gb} TB of KV stored on each of {k} "
    "media, about {h} h. The chance is then {c}.",
    "要使通过概率不低于 {w}，需 {p} 个轮次对、每轮 {m} 个请求{x}：共 {n} 个请求，{k} 种介质各写入 {gb} TB KV，约 {h} 小时。此时通过概率为 {c}。",
)
_NO_NEED = Text(
    "No number of run pairs up to {p} brings a pass with a chance of {w}: with {p} pairs and {m} requests a run{x} it is {c}. "
    "What stands in the way: {why}.",
    "轮次对增至 {p} 个也达不到 {w} 的通过概率：{p} 个轮次对、每轮 {m} 个请求{x}时为 {c}。主要障碍：{why}。",
)
_BESIDE = Text(", recompute and placebo {n} times each (arms.controls)", "、重算与安慰剂各 {n} 轮（arms.controls）")
_OWN = Text(", prompts of its own for each of {n} blocks (arms.prompts per_block)", "、{n} 个组各用本组的提示（arms.prompts 为 per_block）")


_PLAIN = Text("{told}", "{told}")
_AGREED = Text("With the validity limits above that fit this noise: {told}", "若采用上述与噪声相适应的有效性限值：{told}")


def document(
    plan: Plan,
    effects: Effects,
    noise: Noise,
    *,
    want: float | None = None,
    trials: int = TRIALS,
    seed: int | None = None,
    kv_bytes_per_token: int | None = None,
    g2_baseline: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the odds of a plan as JSON data. `want` adds the search for the runs that reach this chance of a pass (seconds instead of one)."""
    found = chances(plan, effects, noise, trials=trials, seed=seed)
    price = cost(plan, effects, kv_bytes_per_token=kv_bytes_per_token, g2_baseline=g2_baseline)
    out: dict[str, Any] = {
        "schema": 1,
        "plan_hash": plan.hash,
        "rule": plan.decision.rule,
        "pairs": plan.decision.pairs,
        "extension_pairs": plan.g3.extension_pairs,
        "controls": plan.arms.controls,
        "prompts": plan.arms.prompts,
        "seed": plan.decision.seed if seed is None else seed,
        "noise": {"run": f"{noise.run:g}", "request": f"{noise.request:g}", "autocorrelation": f"{noise.autocorrelation:g}"},
        "expected": [{"tier": t, "ttft_p50_drop": str(effects.drop[t]), "throughput_gain": str(effects.gain[t])} for t in plan.workload.tiers],
        **found.json(),
        "causes": [{**row, "title": title_of(row["what"]).json()} for row in found.json()["causes"]],
        "summary": summary(found).json(),
        "warnings": [text.json() for text in warnings(plan, effects, noise)],
        "fitting_limits": [_row(plan, noise, alarm) for alarm in false_alarms(plan, noise)],
        "cost": price.json(),
        "assumptions": [text.json() for text in assumptions(plan, effects, noise)],
        "needed": None,
        "needed_with_fitting_limits": None,
    }
    if want is not None:
        price_of = partial(cost, kv_bytes_per_token=kv_bytes_per_token, g2_baseline=g2_baseline)
        search = Search(want, seed, min(trials, SEARCH_TRIALS))
        out["needed"] = _needed(plan, effects, noise, search, price_of)
        if not out["needed"]["reached"] and out["fitting_limits"]:
            out["needed_with_fitting_limits"] = _needed(with_fitting_limits(plan, noise), effects, noise, search, price_of, _AGREED)
    return out


def at_sealing(plan: Plan, *, targets: Any = None, g2_baseline: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the odds that are shown before a plan is sealed: at the expected effects and the run-to-run variation that the plan states.

    `targets` is the section of the engagement file, which may state the KV bytes of a token; `g2_baseline` the frozen baseline, if there is one.
    """
    noise = Noise(run=float(plan.expected.run_variation))
    return document(plan, expected_effects(plan), noise, kv_bytes_per_token=stated_kv(targets), g2_baseline=g2_baseline)


@dataclass(frozen=True)
class Search:
    """What is searched for: the chance of a pass, and how it is tried."""

    want: float
    seed: int | None
    trials: int


def _needed(plan: Plan, effects: Effects, noise: Noise, search: Search, price_of: Callable[..., Cost], words: Text = _PLAIN) -> dict[str, Any]:
    need = needed(plan, effects, noise, search.want, seed=search.seed, trials=search.trials)
    then = price_of(need.plan, effects, requests=need.times)
    told = (_NEED if need.reached else _NO_NEED).fill(
        w=shown(search.want),
        p=need.pairs,
        x=_runs(need.plan),
        m=sum(plan.workload.requests(t) for t in plan.workload.tiers) * need.times,
        n=then.requests,
        gb=f"{then.stored_bytes / 1e12:.2f}",
        k=then.media,
        h=f"{then.seconds / 3600:.0f}",
        c=shown(need.chances.of(Verdict.PASS)),
        why=_worst(need.chances),
    )
    return {"wanted": f"{search.want:g}", **json_of(need), "cost": then.json(), "text": words.fill(told=told).json()}


def _runs(plan: Plan) -> Text:
    """Say what a plan runs beside its pairs, where that is more than once each and one prompt set."""
    parts = [_BESIDE.fill(n=plan.arms.controls)] if plan.arms.controls > 1 else []
    parts += [_OWN.fill(n=plan.arms.blocks)] if plan.arms.blocks > 1 else []
    return Text("".join(p.en for p in parts), "".join(p.zh for p in parts))


def summary(found: Chances) -> Text:
    """Return the chances in one sentence, each known to about two points."""
    parts = [(words, shown(found.of(verdict))) for verdict, words in VERDICTS.items()]
    listed = Text(", ".join(f"{words.en} {share}" for words, share in parts), "，".join(f"{words.zh} {share}" for words, share in parts))
    return _SUMMARY.fill(all=listed)


def assumptions(plan: Plan, effects: Effects, noise: Noise) -> tuple[Text, ...]:
    """Return what the chances stand on."""
    extended = (_EXTENDED.fill(n=plan.g3.extension_pairs),) if plan.g3.extension_pairs else ()
    spoken = _NOISE.fill(r=shown(noise.run), q=shown(noise.request), a=f"{noise.autocorrelation:g}")
    return (_SOURCE.fill(d=effects.drop_source, g=effects.gain_source), spoken, *extended, _NOT_DRAWN)


def title_of(what: str) -> Text:
    """Return the title of a check or claim that kept a trial from a pass."""
    name, _, tier = what.partition(".")
    if name == "ttft_p50_drop":
        return Text("TTFT p50 drop at {t}", "{t} TTFT p50 降幅").fill(t=tier)
    if name == "throughput_gain":
        return Text("Throughput gain at {t}", "{t} 吞吐提升").fill(t=tier)
    return TITLES.get(name, Text(name, name))


def _worst(found: Chances) -> Text:
    rows = [(title_of(row["what"]), shown(float(row["share"]))) for row in found.json()["causes"][:3]]
    return Text("; ".join(f"{t.en} ({s})" for t, s in rows) or "-", "；".join(f"{t.zh}（{s}）" for t, s in rows) or "-")


def _row(plan: Plan, noise: Noise, alarm: Alarm) -> dict[str, Any]:
    """Return how often a limit alarms falsely, and what ends it: another limit, or more runs where they can."""
    way = Text("", "")
    if alarm.claim == "placebo":
        way = _CONTROLS.fill(n=fewest_controls(plan, noise))
    if alarm.claim == "replay" and plan.arms.prompts == "shared" and plan.decision.pairs % 2 == 0:
        own = share_of("replay", with_pairs(plan, plan.decision.pairs, prompts="per_block"), noise)
        way = _BLOCKS.fill(s=shown(own)) if own < alarm.share / 2 else way
    words = {"l": percent(alarm.limit), "f": percent(alarm.fits), "s": shown(alarm.share)}
    text = _FITS.fill(field=alarm.field, c=TITLES[alarm.claim], way=way, **words)
    limits = {"limit": str(alarm.limit), "fits": str(alarm.fits), "share": f"{alarm.share:.4f}"}
    return {"claim": alarm.claim, "field": alarm.field, **limits, "text": text.json()}
