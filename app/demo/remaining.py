"""About how long a demo still takes, from the steps that the plan lays out and from what the runs of G2 took. It is shown as what it is: about.

Runs of G3 teach it nothing: while they are sealed nobody shall learn from a clock which arm was faster (DESIGN 4.11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gates.model import StepKind, StepSpec
from gates.text import Text

OVER = ("done", "canceled", "failed")
LEARNED_FROM = "G2"
# Seconds on two cores, as three whole demos took them. A run takes `RUN_S` beside its requests: two playbooks, the engine's restart, the warm-up.
STEP_S = {StepKind.PLAYBOOK: 8.5, StepKind.MANUAL: 1.0, StepKind.JUDGE: 1.0, StepKind.REPORT: 1.5, StepKind.JOB: 0.0}
RUN_S, STORE_S, ENDING_S = 14.0, 4.0, 3.0
STORE_SHARE = 0.5  # of a run, where nothing but a finished run tells how long one takes


@dataclass
class Remaining:
    """`steps`: what each gate that is to run consists of, in order; `prefill_tokens_per_s`: of the simulated engine, None for any other."""

    steps: Mapping[str, Sequence[StepSpec]]
    prefill_tokens_per_s: float | None = None
    _ended: dict[tuple[str, str], float] = field(default_factory=dict)
    _since: float = 0.0  # when the present step became the present one, on the caller's clock
    _taken: float = 0.0  # by finished runs of G2, in seconds
    _planned: float = 0.0  # for the same runs

    def begin(self, now: float) -> None:
        """Note that a gate begins at a time in seconds."""
        self._since = now

    def look(self, gate: str, shown: Iterable[Mapping[str, Any]], now: float) -> None:
        """See where an attempt's steps ({key, status}, as its view has them) stand at a time in seconds."""
        known = {step.key: step for step in self.steps[gate]}
        for step in shown:
            key = (gate, str(step["key"]))
            if step["status"] in OVER and key not in self._ended:
                spec = known.get(key[1])
                if gate == LEARNED_FROM and step["status"] == "done" and spec is not None and spec.kind is StepKind.JOB:
                    self._taken += now - self._since
                    self._planned += self._run(spec)
                self._ended[key], self._since = now, now

    def seconds(self, gate: str, now: float) -> float | None:
        """Return about how many seconds the demo still takes; None while nothing tells how long a run takes."""
        present = list(self.steps)
        rest = [(g, step) for g in present[present.index(gate) :] for step in self.steps[g] if (g, step.key) not in self._ended]
        if not self._planned and self.prefill_tokens_per_s is None and any(step.kind is StepKind.JOB for _, step in rest):
            return None
        pace = self._taken / self._planned if self._planned else 1.0
        wanted = [
            self._run(step) * pace + float(step.params.get("seconds", 0)) if step.kind is StepKind.JOB else STEP_S[step.kind] for _, step in rest
        ]
        if wanted:
            wanted[0] = max(0.0, wanted[0] - (now - self._since))
        return sum(wanted) + ENDING_S

    def _run(self, step: StepSpec) -> float:
        """Return how long a run, or all of a soak but its load, takes by what is planned: in seconds of the simulated engine, else in runs."""
        params = step.params
        if self.prefill_tokens_per_s is None:
            return 1.0 + (STORE_SHARE if params.get("store") else 0.0)
        requests = sum(int(tier["requests"]) for tier in params["tiers"])
        computed = requests * (int(params["context_tokens"]) + int(params["suffix_tokens"])) / self.prefill_tokens_per_s
        measured = 0.0 if "seconds" in params else computed  # the load of a soak has its length from the plan
        return RUN_S + measured + (STORE_S + computed if params.get("store") else 0.0)


def remaining_of(document: Mapping[str, Any], until: str) -> Remaining:
    """Return the estimate for a checked engagement file's data, up to a gate."""
    from gates.plan import parse_plan
    from gates.registry import GATES

    plan, engine = parse_plan(document.get("plan")), document["targets"]["engine"]
    names = list(GATES)
    steps = {gate: GATES[gate].steps(plan) for gate in names[: names.index(until) + 1]}
    rate = (engine.get("physics") or {}).get("prefill_tokens_per_s") if engine.get("kind") == "lab" else None
    return Remaining(steps, float(rate) if rate else None)


def about(seconds: float) -> Text:
    """Return the estimate in words: whole minutes, and tens of seconds at the end. Nobody knows it better."""
    if seconds < 90:
        n = max(10, round(seconds / 10) * 10)
        return Text(f"about {n} s left", f"约剩 {n} 秒")
    n = round(seconds / 60)
    return Text(f"about {n} min left", f"约剩 {n} 分钟")
