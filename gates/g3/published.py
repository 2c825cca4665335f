"""The product's published figures beside what was measured: only where the plan's platform, framework and model are those of the publication."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gates.g1.order import same_model
from gates.strict_yaml import read_yaml
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

LIBRARY = Path(__file__).parents[1] / "reference/published.yaml"
# claim -> (what the library calls it, where its figure stands there)
_WHAT = {
    "recompute_speedup": ("against recompute without external storage", ("derived", "ttft_ratio")),
    "model_load_speedup": ("model service load", ("derived", "speedup")),
    "checkpoint_speedup": ("checkpoint save", ("derived", "speedup")),
    "tier_read_bandwidth": ("LMCache parallel-read path", ("read_bandwidth_gb_s", "after")),
}
_UNITS = {"tier_read_bandwidth": "GB/s"}


@lru_cache(maxsize=1)
def library() -> dict[str, Any]:
    """Return the published results as data."""
    data: dict[str, Any] = read_yaml(LIBRARY.read_text(encoding="utf-8"))
    return data


def published(plan: Plan, claim: str, tier: int | None = None) -> tuple[str, str] | None:
    """Return (figure with unit, report) published for exactly this platform, framework, model and concurrency, or None.

    A simulated rig has no equal: nothing that was measured on it is comparable with a product's figure.
    """
    what, path = _WHAT[claim]
    for result in library()["results"]:
        if plan.rig.simulated or result.get("what") != what or not _equal_platform(plan, result):
            continue
        if tier is not None and result.get("concurrency") != tier:
            continue
        value = result
        for key in path:
            value = value.get(key, {})
        return f"{value}{' ' + _UNITS[claim] if claim in _UNITS else 'x'}", str(result["report"])
    return None


def with_published(plan: Plan, claim: str, told: Text, tier: int | None = None) -> Text:
    """Return a sentence with the published figure behind it, where there is one for an equal platform."""
    found = published(plan, claim, tier)
    if found is None:
        return told
    more = Text(" Published for this platform: {v} ({r}).", "同平台公开值：{v}（{r}）。").fill(v=found[0], r=found[1])
    return Text(told.en + more.en, told.zh + more.zh)


def _equal_platform(plan: Plan, result: dict[str, Any]) -> bool:
    """Tell whether accelerator, number, framework and model are those of a result. A result without a model holds for no other than its own setup."""
    platforms = library()["platforms"]
    name = result.get("platform") or next((key for key, p in platforms.items() if result["report"] in p.get("reports", ())), None)
    if name not in platforms or not plan.platform.accelerator or not plan.platform.model:
        return False
    described = str(platforms[name]["name"])
    mine = f"{plan.platform.accelerator.removeprefix('AMD ').removeprefix('Huawei ')}"
    eight = f"x {plan.platform.count}" in described or " x " not in described
    framework = (plan.platform.framework or "").lower().split(" ")[0]
    fits = "vllm" not in described.lower() or framework == "vllm"
    model = result.get("model")
    return same_model(mine, described) and eight and fits and (model is None or model.lower() == plan.platform.model.lower())
