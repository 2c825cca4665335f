"""`quadgate plan odds`: the chances of G3 under a plan, the runs that a wanted chance takes, and what they cost. Exit 0; 65: not usable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.language import Language, in_terminal, in_words, not_one_of
from app.kit.i18n import N_
from app.kit.terminal import padded, say
from gates.model import Verdict
from gates.text import Text

HELP = N_(
    "Say how likely G3 passes, and what runs it takes, before anybody seals the plan.\n\n"
    "Every drawn attempt is judged by the gate's own rules. Exit 0, or 65 when the plan is not usable."
)
RULES = ("simple", "interval", "guarded")
_TITLE = Text("G3 under the rule {rule} with {pairs} run pairs", "G3，规则 {rule}，{pairs} 个轮次对")
_WITHIN = Text("± {w} points, {n} trials", "± {w} 个百分点，{n} 次模拟")
_COST = Text(
    "{n} requests, {s} TB of KV stored on each of {k} media, {r} TB read, about {h} h",
    "共 {n} 个请求，{k} 种介质各写入 {s} TB KV，读取 {r} TB，约 {h} 小时",
)
_HEADS = {
    "expected": Text("Expected", "预期"),
    "causes": Text("What keeps it from a pass", "未能通过的原因"),
    "warnings": Text("Before you seal this", "封存之前请注意"),
    "cost": Text("Cost as planned", "按此计划的成本"),
    "needed": Text("For a pass", "要想通过"),
    "assumptions": Text("What this stands on", "依据与假设"),
}


def ratio(value: str | None, name: str, low: str, high: str) -> Decimal | None:
    """Return an option's ratio as an exact decimal; a usage error names the option."""
    if value is None:
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not Decimal(low) <= number <= Decimal(high):
        told = in_terminal(N_("{value} is not a ratio from {low} to {high}, such as 0.28"), value=value, low=low, high=high)
        raise typer.BadParameter(told, param_hint=name)
    return number


def odds(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help=N_("YAML: differences from the default plan, or an engagement file."))
    ],
    drop: Annotated[str | None, typer.Option(help=N_("The true TTFT p50 drop at every tier; default: the plan's, else as published."))] = None,
    gain: Annotated[str | None, typer.Option(help=N_("The true throughput gain at every tier; default: the plan's, else published."))] = None,
    noise: Annotated[str | None, typer.Option(help=N_("From run to run, standard deviation over mean; default: the plan's."))] = None,
    spread: Annotated[float, typer.Option(min=0, max=1, help=N_("From request to request within a run, standard deviation over mean."))] = 0.05,
    autocorrelation: Annotated[float, typer.Option(min=0, max=0.99, help=N_("Of neighbouring requests within a run."))] = 0.5,
    want: Annotated[
        float, typer.Option(min=0, max=0.999, help=N_("The chance of a pass to plan for; 0 skips the search, which takes seconds."))
    ] = 0.9,
    pairs: Annotated[int, typer.Option(min=0, max=20, help=N_("Run pairs instead of the plan's."))] = 0,
    rule: Annotated[str, typer.Option(help=N_("Decision rule instead of the plan's: simple, interval or guarded."))] = "",
    trials: Annotated[int, typer.Option(min=100, max=100_000, help=N_("Drawn attempts."))] = 2000,
    seed: Annotated[int | None, typer.Option(min=0, help=N_("Default: the plan's. The same seed gives the same figures."))] = None,
    kv_bytes_per_token: Annotated[
        int | None, typer.Option(min=1, help=N_("KV bytes a token; default: the engagement file's, else published."))
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print the dataset as JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Put the options together and print the dataset."""
    from app.commands.plan import read_or_refuse, read_yaml_of, targets_in
    from gates.odds.cost import stated_kv
    from gates.odds.document import document
    from gates.odds.effects import Noise, expected_effects
    from gates.odds.planner import with_pairs
    from gates.rules.decision import PAIRS_FOR_AN_INTERVAL

    plan = read_or_refuse(file, language, as_json=as_json)
    if rule and rule not in RULES:
        raise not_one_of(rule, RULES, "--rule")
    if (rule or plan.decision.rule) != "simple" and (pairs or plan.decision.pairs) < PAIRS_FOR_AN_INTERVAL:
        told = in_terminal(N_("the rule {rule} needs at least {n} run pairs"), rule=rule or plan.decision.rule, n=PAIRS_FOR_AN_INTERVAL)
        raise typer.BadParameter(told, param_hint="--pairs")
    if pairs or rule:
        plan = with_pairs(plan, pairs or plan.decision.pairs, rule=rule or None)
    run = ratio(noise, "--noise", "0", "0.5")
    found = document(
        plan,
        expected_effects(plan, drop=ratio(drop, "--drop", "-1", "0.999"), gain=ratio(gain, "--gain", "-0.99", "1000")),
        Noise(float(plan.expected.run_variation if run is None else run), spread, autocorrelation),
        want=want or None,
        trials=trials,
        seed=seed,
        kv_bytes_per_token=kv_bytes_per_token or stated_kv(targets_in(read_yaml_of(file))),
    )
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, sort_keys=True))
    else:
        show(found, language)


def show(found: Mapping[str, Any], language: str) -> None:
    """Print the dataset for people."""
    say(_TITLE.fill(rule=found["rule"], pairs=found["pairs"]).in_language(language))
    for verdict in Verdict:
        row = found["verdicts"][verdict]
        within = _WITHIN.fill(w=f"{float(row['within']) * 100:.1f}", n=found["trials"]).in_language(language)
        say(f"  {padded(in_words('verdict', str(verdict), language), 13)} {row['shown']:>8}   ({within})")
    say(f"\n{_HEADS['expected'].in_language(language)}")
    for row in found["expected"]:
        say(f"  c{row['tier']:<4} TTFT p50 -{float(row['ttft_p50_drop']) * 100:.2f} %   tok/s {float(row['throughput_gain']) * 100:+.2f} %")
    warned = [w[language] for w in found["warnings"]] + [row["text"][language] for row in found["fitting_limits"]]
    causes = [f"{row['title'][language]}: {row['shown']}" for row in found["causes"]]
    price = found["cost"]
    spent = _COST.fill(
        n=price["requests"],
        s=f"{price['stored_bytes'] / 1e12:.2f}",
        k=price["media"],
        r=f"{price['read_bytes'] / 1e12:.2f}",
        h=price["hours"],
    )
    told = [found[key]["text"][language] for key in ("needed", "needed_with_fitting_limits") if found[key]]
    based = [a[language] for a in (*found["assumptions"], *price["assumptions"])]
    for key, lines in (("causes", causes), ("warnings", warned), ("cost", [spent.in_language(language)]), ("needed", told), ("assumptions", based)):
        if lines:
            say(f"\n{_HEADS[key].in_language(language)}")
        for line in lines:
            say(f"  {line}")
