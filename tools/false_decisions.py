"""Write the figures of docs/false-decisions.md: how often the rules of G3 decide wrongly, by simulation. The same seed gives the same page.

Run as `.venv/bin/python -m tools.false_decisions` (some minutes of one core); `--trials 200 --print` is a short look that writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from gates.model import Verdict
from gates.odds.chances import Chances, chances
from gates.odds.effects import Noise, expected_effects
from gates.odds.false_decisions import alarm_shares, bootstrap_share, check_needs, check_shares, table
from gates.odds.identity import Engine, identity_shares
from gates.odds.planner import Need, needed, with_pairs
from gates.plan import Plan, parse_plan

PAGE = Path(__file__).resolve().parents[1] / "docs" / "false-decisions.md"
BEGIN, END = "<!-- figures: tools/false_decisions.py -->", "<!-- end of figures -->"
NOISES = (0.01, 0.02, 0.03)
SEED = 20261129
RULES = (("interval", 4), ("interval", 8), ("guarded", 4), ("simple", 2))
MIDDLE = Decimal("0.345")  # of the throughput band


def percent(share: float) -> str:
    """Return a share with one decimal."""
    return f"{share * 100:.1f} %"


def heads(first: str) -> list[str]:
    """Return the head of a table with one column a run-to-run variation."""
    return [first, *(f"{n * 100:.0f} % from run to run" for n in NOISES)]


def plan(rule: str, pairs: int, extension: int = 2) -> Plan:
    """Return the default plan under a rule with so many pairs."""
    return with_pairs(parse_plan({"g3": {"extension_pairs": extension}}), pairs, rule=rule)


def at_the_limit(trials: int) -> Iterator[str]:
    """Yield how often one check passes a true drop that stands exactly at the limit."""
    rows = []
    for rule, pairs in RULES:
        for extension in (0, 2):
            if extension and rule == "simple":
                continue
            name = f"`{rule}`, {pairs} pairs" + (f", extended by {extension} when inconclusive" if extension else "")
            chosen = plan(rule, pairs, extension)
            found = [check_shares(chosen, 0.25, Noise(n), trials=trials, seed=SEED, rule_alone=True)[Verdict.PASS] for n in NOISES]
            rows.append([name, *(percent(f) for f in found)])
    rows.append(
        ["bootstrap of 160 requests a run, 2 pairs", *(percent(bootstrap_share(0.25, Noise(n), trials=trials // 4, seed=SEED)) for n in NOISES)]
    )
    yield "### One check, true drop 25 %: how often it passes\n"
    yield table(heads("rule"), rows)


def with_the_planners_runs(trials: int) -> Iterator[str]:
    """Yield how many pairs one check takes to pass a true drop of 30 % in 90 of 100 cases."""
    rows = []
    for rule in ("simple", "interval", "guarded"):
        found = [check_needs(plan(rule, 4), 0.30, Noise(n), 0.9, trials=trials // 2, seed=SEED) for n in NOISES]
        rows.append([f"`{rule}`", *(f"{f[0]} pairs: {percent(f[1])}" if f else "none up to 20 pairs" for f in found)])
    yield "\n### One check, true drop 30 %: the fewest pairs that pass it in 90 of 100 cases, and how often they do\n"
    yield table(heads("rule"), rows)


def curve(trials: int) -> Iterator[str]:
    """Yield how often `simple` passes, drop by drop."""
    rows = []
    for drop in (20, 22, 23, 24, 25, 26, 27, 28, 30, 32):
        found = [check_shares(plan("simple", 2), drop / 100, Noise(n), trials=trials // 2, seed=SEED) for n in NOISES]
        rows.append([f"{drop} %", *(f"{percent(f[Verdict.PASS])} (+ {percent(f[Verdict.CONDITIONAL])})" for f in found)])
    yield "\n### One check, `simple`, 2 pairs: how often it passes (+ conditional, fragile), by the true drop\n"
    yield table(heads("true drop"), rows)


def gate_row(name: str, found: Chances) -> list[str]:
    """Return the chances of a gate as a row."""
    causes = sorted(found.causes.items(), key=lambda kv: -kv[1])[:3]
    return [name, *(percent(found.of(v)) for v in Verdict), ", ".join(f"{what} {percent(n / found.trials)}" for what, n in causes)]


GATE_HEAD = ["", *(str(v) for v in Verdict), "what keeps it from a pass"]


def gate_at_the_limit(trials: int) -> Iterator[str]:
    """Yield the verdicts of the whole gate at a true drop of 25 %."""
    rows = []
    for rule, pairs in (("interval", 4), ("interval", 8), ("simple", 2)):
        for n in NOISES:
            chosen = plan(rule, pairs)
            effects = expected_effects(chosen, drop=Decimal("0.25"), gain=MIDDLE)
            rows.append(gate_row(f"`{rule}`, {pairs} pairs, {n * 100:.0f} %", chances(chosen, effects, Noise(n), trials=trials, seed=SEED)))
    yield "\n### The whole gate, true drop 25 % at every tier, throughput gain 34.5 %\n"
    yield table(GATE_HEAD, rows)


Needs = dict[float, Need]  # by run-to-run variation


def planners_runs(trials: int) -> Needs:
    """Return the runs that the planner asks for under the default limits of validity, at a true drop of 30 %."""
    base = plan("interval", 4)
    effects = expected_effects(base, drop=Decimal("0.30"), gain=MIDDLE)
    return {n: needed(base, effects, Noise(n), 0.9, seed=SEED, trials=max(trials // 2, 100)) for n in NOISES}


def runs_of(need: Need) -> str:
    """Return the runs in words."""
    arms, told = need.plan.arms, [f"{need.pairs} pairs"]
    told += [f"in {arms.blocks} blocks with prompts of their own"] if arms.blocks > 1 else []
    return ", ".join([*told, f"{arms.controls} x recompute and placebo", f"requests x {need.times}"]) + ("" if need.reached else " (out of reach)")


def gate_with_the_planners_runs(trials: int, needs: Needs) -> Iterator[str]:
    """Yield the verdicts of the whole gate at a true drop of 30 % with the runs that the planner asks for, on other draws."""
    rows = []
    for n, need in needs.items():
        noise, base = Noise(n), plan("interval", 4)
        effects = expected_effects(base, drop=Decimal("0.30"), gain=MIDDLE)
        found = chances(need.plan, effects, noise, trials=trials, seed=SEED + 1, requests=need.times)
        rows.append(gate_row(f"{n * 100:.0f} %, default limits: {runs_of(need)}", found))
        at_limit = expected_effects(base, drop=Decimal("0.25"), gain=MIDDLE)
        found = chances(need.plan, at_limit, noise, trials=trials, seed=SEED + 1, requests=need.times)
        rows.append(gate_row(f"{n * 100:.0f} %, the same runs, true drop 25 %", found))
    yield "\n### The whole gate, `interval`, true drop 30 %, throughput gain 34.5 %, with the planner's runs\n"
    yield table(GATE_HEAD, rows)


def what_validity_catches(trials: int, needs: Needs) -> Iterator[str]:
    """Yield how often the claims that compare runs alarm where something is wrong."""
    rows = []
    for variation in (0.04, 0.05, 0.06, 0.08, 0.10):
        chosen = [plan("simple", 2), *(plan("interval", n) for n in (4, 8, 20))]
        found = [alarm_shares(p, Noise(variation), trials=trials, seed=SEED)["baselines_agree"] for p in chosen]
        rows.append([f"{variation * 100:.0f} %", *(percent(f) for f in found)])
    yield "\n### Baseline runs that vary too much: how often `baselines_agree` alarms, by the true run-to-run variation\n"
    yield table(["", "`simple`, 2 pairs", "`interval`, 4 pairs", "`interval`, 8 pairs", "`interval`, 20 pairs"], rows)
    rows = []
    for claim in ("replay", "placebo"):
        for wrong in (0.05, 0.06, 0.07, 0.08, 0.10, 0.20):
            told = f"TTFT {wrong * 100:.0f} % lower in a replay" if claim == "replay" else f"a placebo {wrong * 100:.0f} % above recompute"
            spoiled = {"warm": wrong} if claim == "replay" else {"placebo": wrong}
            found = [alarm_shares(d.plan, Noise(n), trials=trials, seed=SEED, requests=d.times, **spoiled)[claim] for n, d in needs.items()]
            simple = [alarm_shares(plan("simple", 2), Noise(n), trials=trials, seed=SEED, **spoiled)[claim] for n in needs]
            rows.append([told, *(f"{percent(a)} ({percent(b)})" for a, b in zip(found, simple, strict=True))])
    yield "\n### A cache that was not emptied, a placebo that gains: how often the claim alarms\n"
    yield "With the planner's runs (in brackets: with the default plan's two pairs).\n"
    yield table(heads("what is wrong"), rows)


def of_outputs(trials: int) -> Iterator[str]:
    """Yield what the comparison of outputs decides, by the engine's own noise."""
    rows = []
    for repeats in (32, 104):
        chosen = parse_plan({"workload": {"identity_repeats": repeats}})
        for noise in (0.0, 0.005, 0.01, 0.02, 0.05, 0.10):
            engine = Engine(noise, noise / 10)
            sound = identity_shares(chosen, engine, trials=trials, seed=SEED)
            wrong = [identity_shares(chosen, engine, damaged=share, trials=trials, seed=SEED) for share in (0.05, 0.10, 0.20)]
            told = (sound[Verdict.PASS], sound[Verdict.FAIL], *(share for d in wrong for share in (d[Verdict.PASS], d[Verdict.FAIL])))
            rows.append([str(repeats), percent(noise), *(percent(share) for share in told)])
    yield "\n### Outputs: how often they pass and fail, by the noise of recompute\n"
    yield "Two pairs, three tiers, first tokens a tenth as noisy; the rest is inconclusive and names the repeats that would decide.\n"
    damage = [f"{share} % of c8 wrong: {verdict}" for share in (5, 10, 20) for verdict in ("pass", "fail")]
    yield table(["repeats", "noise", "sound: pass", "sound: fail", *damage], rows)


def main() -> None:
    """Write or print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=4000, help="drawn attempts of one check; gates take a quarter")
    parser.add_argument("--print", action="store_true", help="print the figures, write nothing")
    asked = parser.parse_args()
    needs = planners_runs(asked.trials // 4)
    parts = [
        *at_the_limit(asked.trials),
        *with_the_planners_runs(asked.trials),
        *curve(asked.trials),
        *gate_at_the_limit(asked.trials // 4),
        *gate_with_the_planners_runs(asked.trials // 4, needs),
        *what_validity_catches(asked.trials // 4, needs),
        *of_outputs(asked.trials // 4),
    ]
    told = "\n".join(parts)
    if asked.print:
        print(told)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
