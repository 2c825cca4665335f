"""What G3 costs under a plan: requests, bytes of KV and hours. Every figure says what it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gates.odds.effects import Effects, position, published, ttft_share
from gates.plan import Plan
from gates.text import Text

# Keys and values of Qwen3-Coder-480B: 2 x 62 layers x 8 KV heads x 128 x 2 bytes (gates/reference/published.yaml, the disputed row's note).
KV_BYTES_PER_TOKEN = 2 * 62 * 8 * 128 * 2
BETWEEN_RUNS_S = 900  # engine restart, model load and cooling before each run

_KV_ASKED = Text("{n} bytes of KV a token, as stated", "每词元 KV {n} 字节（按所给数值）")
_KV_KNOWN = Text(
    "{n} bytes of KV a token, as of the published model (62 layers, 8 KV heads of 128, 2 bytes)",
    "每词元 KV {n} 字节（公开模型：62 层、8 个 KV 头 × 128、2 字节）",
)
_MEASURED = Text("times of the baseline as G2 measured them", "基线时间取 G2 实测值")
_PUBLISHED = Text(
    "times of the baseline as published (10.17 s to 35.73 s), by position of the tier", "基线时间取公开数据（10.17 s 至 35.73 s，按档位对应）"
)
_PLACEBO = Text("the placebo's runs write {b} TB more on the product's medium", "安慰剂各轮另在产品介质上写入 {b} TB")
_PREFILL = Text(
    "{s} s of prefill a prefix where nothing is loaded (published: 149.5 s at c16), {r} min between runs for restart, model load and cooling",
    "无可加载 KV 时每个前缀预填充 {s} s（公开数据：c16 为 149.5 s），轮次间重启、加载模型和冷却 {r} 分钟",
)


@dataclass(frozen=True)
class Cost:
    """What one attempt at G3 takes. Bytes and seconds are estimates; seconds are of the plan's clock, without a simulated rig's time scale."""

    pairs: int
    controls: int  # how often recompute and placebo run each
    blocks: int  # prompt sets that the runs of the order ask, each stored
    requests: int  # measured, all runs
    stored_bytes: int  # on each medium that stores: a prompt set's bytes times the sets
    media: int
    read_bytes: int
    seconds: float
    assumptions: tuple[Text, ...]

    def json(self) -> dict[str, Any]:
        """Return the cost as data: whole bytes, hours with one decimal."""
        return {
            "pairs": self.pairs,
            "controls": self.controls,
            "blocks": self.blocks,
            "requests": self.requests,
            "stored_bytes": self.stored_bytes,
            "media": self.media,
            "read_bytes": self.read_bytes,
            "hours": f"{self.seconds / 3600:.1f}",
            "assumptions": [a.json() for a in self.assumptions],
        }


def cost(
    plan: Plan, effects: Effects, *, requests: int = 1, kv_bytes_per_token: int | None = None, g2_baseline: Mapping[str, Any] | None = None
) -> Cost:
    """Return what an attempt costs; `requests` multiplies the plan's requests a run, `g2_baseline` is the frozen baseline when there is one."""
    work, arms = plan.workload, plan.arms
    per_token = kv_bytes_per_token or KV_BYTES_PER_TOKEN
    prefixes = sum(work.requests(t) for t in work.tiers) * requests
    bytes_of_set = prefixes * work.context_tokens * per_token
    prefill = published()["recompute_s"] * work.context_tokens / 32768
    loading = {t: _seconds(plan, t, g2_baseline) for t in work.tiers}
    waves = {t: work.requests(t) * requests / t for t in work.tiers}
    base_run = sum(waves[t] * loading[t] for t in work.tiers)
    new_run = sum(waves[t] * loading[t] / (1 + float(effects.gain[t])) for t in work.tiers)
    runs = [base_run if arm == "baseline" else new_run for arm in arms.order]
    beside = [arm for arm, _ in arms.beside]
    runs += [base_run if arm == "baseline_tuned" else prefixes * prefill for arm in beside]
    every = (*arms.order, *beside)
    recovering = [arm for arm in every if arms.recovers(arm)]
    media = len(set(recovering))
    stores = media + (arms.blocks - 1) * len({arm for arm in arms.order if arms.recovers(arm)})  # each arm of the order stores once a prompt set
    kv = (_KV_ASKED if kv_bytes_per_token else _KV_KNOWN).fill(n=f"{per_token:,}")
    placebos = beside.count("placebo")
    more = (_PLACEBO.fill(b=f"{bytes_of_set * placebos / 1e12:.2f}"),) if placebos else ()
    rest = _PREFILL.fill(s=f"{prefill:.1f}", r=BETWEEN_RUNS_S // 60)
    return Cost(
        pairs=plan.decision.pairs,
        requests=prefixes * len(every),
        controls=arms.controls,
        blocks=arms.blocks,
        stored_bytes=bytes_of_set * arms.blocks,
        media=media,
        read_bytes=bytes_of_set * len(recovering),
        seconds=sum(runs) + stores * prefixes * prefill + len(every) * BETWEEN_RUNS_S,
        assumptions=(kv, _MEASURED if _is_measured(plan, g2_baseline) else _PUBLISHED, rest, *more),
    )


def stated_kv(targets: Any) -> int | None:
    """Return the KV bytes of a token that an engagement's section `targets` states for its engine, or None."""
    engine = targets.get("engine") if isinstance(targets, Mapping) else None
    places = (engine, engine.get("declared"), engine.get("physics")) if isinstance(engine, Mapping) else ()
    found = (place.get("kv_bytes_per_token") for place in places if isinstance(place, Mapping))
    return next((n for n in found if isinstance(n, int) and not isinstance(n, bool) and n > 0), None)


def _is_measured(plan: Plan, frozen: Mapping[str, Any] | None) -> bool:
    tiers = (frozen or {}).get("tiers") or {}
    return all((tiers.get(str(t)) or {}).get("output_tokens_per_s") for t in plan.workload.tiers)


def _seconds(plan: Plan, tier: int, frozen: Mapping[str, Any] | None) -> float:
    """Return the seconds of one baseline request: C x output tokens over the measured rate, else the published TTFT over its share."""
    if frozen and _is_measured(plan, frozen):
        rate = Decimal(str(frozen["tiers"][str(tier)]["output_tokens_per_s"]))
        return float(tier * plan.workload.output_tokens / rate) * float(plan.rig.time_scale)
    return float(published()["ttft_s"][position(tier, plan.workload.tiers)]) / ttft_share()
