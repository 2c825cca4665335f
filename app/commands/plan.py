"""`quadgate plan check`: whether a plan is usable, its hash, and what to know before sealing it. `plan odds` stands in plan_odds.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from app.commands.language import Language
from app.commands.plan_odds import HELP as ODDS_HELP
from app.commands.plan_odds import odds
from app.engagements.file import check_document
from app.kit.i18n import N_
from app.kit.terminal import say
from gates.g1.packing import packing_warning
from gates.plan import InvalidPlan, Plan, load_yaml, parse_plan
from gates.schema import FieldProblem
from gates.text import Text

HELP = N_(
    "Check a plan, or a whole engagement file: print the plan's hash, or one sentence for each problem. Exit 0 usable, 65 not.\n\n"
    "The chances of G3 under the plan, and thin margins, are said on standard error, so that the hash stands alone."
)
NOT_USABLE = 65  # EX_DATAERR: 1 to 4 are verdicts
UNUSABLE = Text("{file} is not usable. Problems: {count}.", "{file} 不可用。问题数：{count}。")


def register(app: typer.Typer) -> None:
    """Add the group `plan`."""
    plan = typer.Typer(no_args_is_help=True, help=N_("Acceptance plans."))
    plan.command("check", help=HELP)(check)
    plan.command("odds", help=ODDS_HELP)(odds)
    app.add_typer(plan, name="plan")


def check(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help=N_("YAML: differences from the default plan, or an engagement file."))
    ],
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print hash and plan, or the problems, as JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Print the hash on standard output, what to know before sealing on standard error."""
    from gates.odds.document import at_sealing

    try:
        document = read_yaml_of(file)
        plan = check_document(document) if is_engagement(document) else parse_plan(differences_in(document))
    except InvalidPlan as error:
        refuse(error, file, language, as_json=as_json)
    found = at_sealing(plan, targets=targets_in(document))
    warned = packing_warning(document["order"], document["packing_list"]) if is_engagement(document) else None
    if as_json:
        told = {"hash": plan.hash, "plan": plan.data, "odds": found, "packing_warning": warned.json() if warned else None}
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    typer.echo(plan.hash)
    if warned:
        say(warned.in_language(language), err=True)
    alarms = [row["text"] for row in found["fitting_limits"]]  # claims that chance alone breaches at the plan's own run_variation
    for text in (found["summary"], *found["warnings"], *alarms, *found["assumptions"]):
        say(text[language], err=True)


def read_or_refuse(file: Path, language: str, *, as_json: bool) -> Plan:
    """Return the plan of a file; else print one sentence for each problem and end the command with 65."""
    try:
        return read_plan(file)
    except InvalidPlan as error:
        refuse(error, file, language, as_json=as_json)


def refuse(error: InvalidPlan, file: Path, language: str, *, as_json: bool) -> NoReturn:
    """Print one sentence for each problem of a plan, and end the command with 65."""
    if as_json:
        typer.echo(json.dumps({"problems": [{"path": p.path, **p.message.json()} for p in error.problems]}))
    else:
        for problem in error.problems:
            say(problem.message.in_language(language), err=True)
        typer.echo(UNUSABLE.fill(file=file, count=len(error.problems)).in_language(language), err=True)
    raise typer.Exit(NOT_USABLE) from None


def read_plan(file: Path) -> Plan:
    """Return the plan of a file: an engagement file's section `plan`, or the whole file as differences. Raises InvalidPlan."""
    return parse_plan(differences_in(read_yaml_of(file)))


def read_yaml_of(file: Path) -> Any:
    """Return what a YAML file holds. Raises InvalidPlan when it is no UTF-8 text or no YAML."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        message = Text(f"{file} is not UTF-8 text.", f"{file} 不是 UTF-8 文本。")
        raise InvalidPlan((FieldProblem("", message),)) from None
    return load_yaml(text)


def is_engagement(data: Any) -> bool:
    """Tell whether a file's data are an engagement's: a plan has none of these keys."""
    return isinstance(data, Mapping) and not {"engagement", "order", "packing_list", "targets"}.isdisjoint(data)


def targets_in(data: Any) -> Any:
    """Return the section `targets` of an engagement file; None for a plan."""
    return data.get("targets") if is_engagement(data) else None


def differences_in(data: Any) -> Any:
    """Return the differences from the default plan that a file states."""
    if is_engagement(data):
        data = data.get("plan")
    return {} if data is None else data
