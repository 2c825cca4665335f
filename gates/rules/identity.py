"""Is a pack that of its step: its host, its kind, its prompts, and an engine of the same host, boot and model that its counters are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gates.bundle import Bundle
from gates.model import ATTENDED, Problem, StepSpec
from gates.readers.prometheus import parse_series
from gates.readers.run_pack import Pack
from gates.readers.strict import at, count
from gates.rules.apart import boots
from gates.rules.engine import same_name
from gates.text import Text

_NOT_ITS_OWN = Text("{p}: {k} is {v}, where {w} must stand for this step.", "{p}：{k} 为“{v}”，而本步骤应为“{w}”。")


def problems(bundle: Bundle, step: StepSpec, pack: Pack) -> Iterator[Problem]:
    """Yield by what a pack is not its step's. A document that is missing is told by completeness, unequal work by its claim."""
    seed = bundle.manifest["attempt"].get("seed")
    if pack.job:
        yield from _held(pack, "job.json", (("host", pack.job.get("host"), pack.host), ("kind", pack.job.get("kind"), step.params["kind"])))
        if not count(pack.job.get("fence")):
            yield from _held(pack, "job.json", (("fence", pack.job.get("fence"), "1, 2, 3, ..."),))
    told = at(pack.job, "workload")
    for name, doc in (("workload.json", pack.workload), ("job.json", told if isinstance(told, dict) else {})):
        if doc:
            yield from _held(pack, name, (("seed", doc.get("seed"), seed), ("set", doc.get("set"), step.params["set"])))
    if not (ATTENDED in step.expects and bundle.hosts(ATTENDED)):  # rows of a host elsewhere have rules of their own
        yield from _engine_boot(step, pack)


def _held(pack: Pack, name: str, rows: tuple[tuple[str, Any, Any], ...]) -> Iterator[Problem]:
    for key, seen, wanted in rows:
        if seen != wanted or isinstance(seen, bool):
            text = _NOT_ITS_OWN.fill(p=pack.path(name), k=key, v="-" if seen is None else str(seen)[:80], w=str(wanted))
            yield Problem("identity", text, pack.path(name))


def _engine_boot(step: StepSpec, pack: Pack) -> Iterator[Problem]:
    """Yield where the engine that served a run was seen in another boot than the run itself, though both are on one host."""
    seen = {str(boot) for row in pack.coldness if (boot := at(row, "engine", "boot_id")) is not None}
    if step.params["kind"] == "run" and (other := sorted(seen - boots(pack))):
        where = pack.path("coldness.jsonl")
        text = Text("{p}: the engine was seen in the boot {b}, in which the run was not.", "{p}：引擎所在的开机“{b}”并非该轮所在的开机。")
        yield Problem("boots", text.fill(p=where, b=other[0]), where)


def other_model(pack: Pack) -> str | None:
    """Return the model that counters are labelled with, where it is not the one that the engine says it serves; else None."""
    told = pack.engine.get("model")
    named = {value for row in pack.counters for series in _series(row) if (value := _model_of(series)) is not None}
    return next((name for name in sorted(named) if isinstance(told, str) and not same_name(told, name)), None)


def _series(row: dict[str, Any]) -> list[str]:
    metrics = row.get("metrics")
    return [name for name in metrics if "model_name=" in name] if isinstance(metrics, dict) else []


def _model_of(series: str) -> str | None:
    parsed = parse_series(series)
    return None if parsed is None else dict(parsed[1]).get("model_name")
