"""The product's published figures beside what was measured: only where the plan's whole platform is that of the publication."""

from __future__ import annotations

import re
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
    """Return (figure with unit, report) published for exactly this platform, framework, model, layout and concurrency, or None.

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
    """Tell whether accelerator, number, framework, model and layout are those of a result.

    What a publication does not state is equal to nothing: a result without a model or a layout stands beside no plan.
    """
    mine = plan.platform
    platforms = library()["platforms"]
    name = result.get("platform") or next((key for key, p in platforms.items() if result["report"] in p.get("reports", ())), None)
    if name not in platforms or not mine.accelerator or not mine.model or not mine.framework:
        return False
    described = str(platforms[name]["name"])
    number = re.search(r" x ([0-9]+)\b", described)
    return (
        same_model(mine.accelerator.removeprefix("AMD ").removeprefix("Huawei "), described)
        and number is not None
        and int(number[1]) == mine.count
        and _same_framework(mine.framework, described)
        and str(result.get("model", "")).casefold() == mine.model.casefold()
        and _layout(result) == (mine.layout.tp, mine.layout.ep, mine.layout.instances)
    )


def _same_framework(sealed: str, described: str) -> bool:
    """Compare the name, and the version where the plan seals one ("vllm 0.20.1" is the 0.20.1+rocm721 of a publication)."""
    name, _, version = sealed.strip().partition(" ")
    stated = re.search(rf"(?<![a-z0-9]){re.escape(name.casefold())} ([0-9][^ ,;]*)", described.casefold())
    wanted = version.strip().removeprefix("v")
    return stated is not None and (not wanted or stated[1] == wanted or stated[1].startswith((f"{wanted}.", f"{wanted}+")))


def _layout(result: dict[str, Any]) -> tuple[int, int, int] | None:
    """Return (tp, ep, instances) of a result: its own, else that of its whole report where there is but one; None: not stated."""
    stated = result.get("parallel")
    if stated is None:
        others = {str(r["parallel"]) for r in library()["results"] if r["report"] == result["report"] and "parallel" in r}
        stated = others.pop() if len(others) == 1 else ""
    found = re.match(r"TP([0-9]+)(?: x ([0-9]+))?(?![0-9])", str(stated))
    return (int(found[1]), 1, int(found[2] or 1)) if found else None
