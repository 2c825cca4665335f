"""The table arm x claim: findings of single runs and tiers, and how they fold into one result for an arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from gates.model import Attribution, ClaimResult, ClaimStatus, Limit, StepSpec
from gates.plan import Plan
from gates.readers.places import at_host, hosts_of, share_of
from gates.readers.run_pack import Pack
from gates.rules.claim_table import CLAIMS
from gates.rules.estimates import TierStats
from gates.steps import numbered, run_name
from gates.text import Text, joined


@dataclass(frozen=True)
class Run:
    """One run of one arm: its step, its evidence, and its statistics by tier."""

    spec: StepSpec
    pack: Pack
    stats: dict[int, TierStats] = field(default_factory=dict)
    host: str | None = None  # the engine host that this is a view of; None: the whole run

    @cached_property
    def places(self) -> tuple[Run, ...]:
        """Return the run as each of its engine hosts shows it, where those are other hosts than the driver's; else the run itself, alone."""
        names = hosts_of(self.pack) if self.host is None else ()
        return tuple(replace(self, pack=at_host(self.pack, name), host=name) for name in names) or (self,)

    def at(self, host: str | None) -> Run | None:
        """Return the view of this run at an engine host (of a run that has no such views: the run itself), None where it was not on that host."""
        return next((view for view in self.places if view.host == host), None)

    @property
    def key(self) -> str:
        """Return the step's key, which names the run everywhere."""
        return self.spec.key

    @property
    def shown(self) -> Text:
        """Return the run's name for people."""
        return run_name(self.key)

    @property
    def arm(self) -> str:
        """Return the arm."""
        return str(self.spec.params["arm"])

    @property
    def prompts(self) -> str:
        """Return the name of the prompt set."""
        return str(self.spec.params["set"])

    @property
    def tiers(self) -> tuple[int, ...]:
        """Return the concurrencies that the step asks for."""
        return tuple(int(t["tier"]) for t in self.spec.params["tiers"])

    @property
    def phase(self) -> str:
        """Return the phase whose requests are measured."""
        return "soak" if self.spec.params.get("kind") == "soak" else "measure"

    @property
    def metrics_names(self) -> tuple[str, ...] | None:
        """Return the names of the metrics that the engine exposes, by its own engine.json; None where that is not told."""
        names = self.pack.engine.get("metrics_names")
        return tuple(str(name) for name in names) if isinstance(names, list) and names else None

    @property
    def wanted(self) -> dict[int, int]:
        """Return the requests that the step asks for, by tier; of an engine host's view those that are its share (gates.readers.places)."""
        whole = {int(t["tier"]): int(t["requests"]) for t in self.spec.params["tiers"]}
        return whole if self.host is None else {tier: share_of(self.pack, self.host, n) for tier, n in whole.items()}


@dataclass(frozen=True)
class Findings:
    """What all claims are made from."""

    plan: Plan
    runs: tuple[Run, ...]
    extended_by: int = 0  # run pairs that an extension added to the plan's

    @property
    def pairs(self) -> int:
        """Return how many run pairs there must be: the plan's, and those of an extension."""
        return self.plan.decision.pairs + self.extended_by

    def first_with_prompts_of(self, run: Run) -> Run:
        """Return the first run that asked the prompt set of a run: the one that all others of the set must equal."""
        return next((r for r in self.runs if r.prompts == run.prompts), run)

    def of(self, arm: str) -> tuple[Run, ...]:
        """Return the runs of an arm, in the order of the plan."""
        return tuple(r for r in self.runs if r.arm == arm)

    def places(self, arm: str) -> tuple[Run, ...]:
        """Return the runs of an arm, each as each of its engine hosts shows it: every host by itself, so that no sum hides one."""
        return tuple(view for run in self.of(arm) for view in run.places)

    def storing(self, run: Run) -> Run | None:
        """Return the run that stored what a run asks for, seen from the same engine host; None where there is none."""
        found = next((r for r in self.of(run.arm) if r.prompts == run.prompts and r.spec.params.get("store")), None)
        return found.at(run.host) if found else None

    def control_pairs(self) -> tuple[tuple[Run, Run], ...]:
        """Return the pairs (recompute, placebo) of the plan's runs beside the order; empty where a run is missing. Those of an extension are none."""
        keys = [(numbered("recompute", n), numbered("placebo", n)) for n in range(1, self.plan.arms.controls + 1)]
        found = {run.key: run for run in self.runs}
        return tuple((found[a], found[b]) for a, b in keys) if all(a in found and b in found for a, b in keys) else ()

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the arms that have runs, in order of appearance."""
        return tuple(dict.fromkeys(r.arm for r in self.runs))


@dataclass(frozen=True)
class Finding:
    """One claim about one run (and tier)."""

    status: ClaimStatus
    reason: Text
    value: Decimal | None = None
    run: str | None = None
    tier: int | None = None
    evidence: tuple[str, ...] = ()
    change: Text | None = None  # of what is unknown: what would tell, where it is not the evidence alone
    host: str | None = None  # the engine host, where the driver's is another


_ORDER = (ClaimStatus.BREACHED, ClaimStatus.UNKNOWN, ClaimStatus.HOLDS, ClaimStatus.NOT_APPLICABLE)


def fold(plan: Plan, claim: str, arm: str, findings: Iterable[Finding], *, fault: Attribution = Attribution.RIG) -> ClaimResult:
    """Return one result for an arm: any breach wins, then any unknown; of the rest the value nearest to the declared limit. Nothing is unknown."""
    declared = CLAIMS[claim]
    limit = declared.limit(plan, arm)
    found = list(findings)
    if not found:
        found = [Finding(ClaimStatus.UNKNOWN, Text("There is no evidence for this claim.", "没有此断言的证据。"))]
    status = min((f.status for f in found), key=_ORDER.index)
    same = [f for f in found if f.status is status]
    worst = _worst(same, limit)
    reason = worst.reason
    if worst.run and status in (ClaimStatus.BREACHED, ClaimStatus.UNKNOWN):
        name = run_name(worst.run)
        parts = [*([f"c{worst.tier}"] if worst.tier else []), *([worst.host] if worst.host else [])]
        where = Text(", ".join([name.en, *parts]), "，".join([name.zh, *parts]))
        more = len(same) - 1
        others = Text(f" (and {more} more)", f"（另有 {more} 处）") if more else Text("", "")
        reason = Text("{where}: {reason}{others}", "{where}：{reason}{others}").fill(where=where, reason=reason, others=others)
    return ClaimResult(
        claim=claim,
        arm=arm,
        title=declared.title,
        status=status,
        reason=reason,
        value=worst.value,
        limit=limit,
        attribution=fault if status is ClaimStatus.BREACHED else None,
        run=worst.run,
        tier=worst.tier,
        evidence=tuple(sorted({path for f in same for path in f.evidence})),
        change=worst.change,
    )


def _worst(found: Sequence[Finding], limit: Limit) -> Finding:
    valued = [f for f in found if f.value is not None]
    if not valued:
        return found[0]
    if limit.op in ("<=", "=="):
        return max(valued, key=lambda f: f.value or Decimal(0))
    if limit.op == ">=":
        return min(valued, key=lambda f: f.value or Decimal(0))
    if limit.op == "band" and isinstance(limit.low, Decimal) and isinstance(limit.high, Decimal):
        middle = (limit.low + limit.high) / 2
        return max(valued, key=lambda f: abs((f.value or Decimal(0)) - middle))
    return valued[0]


def each(runs: Iterable[Run], findings: Callable[[Run], Iterable[Finding | None]]) -> Iterator[Finding]:
    """Yield the findings about runs (or their views), each with its engine host."""
    for run in runs:
        for found in findings(run):
            if found is not None:
                yield replace(found, host=run.host)


def not_applicable(claim: str, arm: str, en: str, zh: str) -> ClaimResult:
    """Return a claim that says nothing about this arm, and why."""
    return ClaimResult(claim=claim, arm=arm, title=CLAIMS[claim].title, status=ClaimStatus.NOT_APPLICABLE, reason=Text(en, zh))


def holds(condition: bool) -> ClaimStatus:
    """Return HOLDS or BREACHED."""
    return ClaimStatus.HOLDS if condition else ClaimStatus.BREACHED


def unknown(run: Run, en: str, zh: str, *, tier: int | None = None, files: tuple[str, ...] = (), change: Text | None = None) -> Finding:
    """Return a finding that a claim about a run cannot be decided, why, and what would decide it where it is not the files alone."""
    paths = tuple(run.pack.path(f) for f in files)
    return Finding(ClaimStatus.UNKNOWN, Text(en, zh), run=run.key, tier=tier, evidence=paths, change=change)


def lacking(data: Findings, tier: int) -> Text:
    """Return how many more answered requests it takes where a run has no statistics at a tier: a loop that was full, and answers within it."""
    silent = [run for run in data.runs if tier in run.tiers and tier not in run.stats]
    asked = data.plan.workload.requests(tier)
    missing = sum(max(0, asked - sum(r.failure is None for r in run.pack.of("measure", tier))) for run in silent)
    if missing:
        told = Text(
            "{n} more answered requests at c{t}, of {a} in each run ({r}), would tell", "c{t} 再有 {n} 个成功应答的请求（每轮 {a} 个，{r}）方可判定"
        )
        return told.fill(n=missing, t=tier, a=asked, r=joined(run.shown for run in silent[:3]))
    return Text("run pairs with {t} requests in flight at once would tell", "{t} 个请求同时在途的轮次对方可判定").fill(t=tier)
