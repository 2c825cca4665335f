"""`quadgate plan check`: whether a plan is usable, and its hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.language import Language
from app.kit.terminal import say
from gates.plan import InvalidPlan, Plan, load_yaml, parse_plan
from gates.schema import FieldProblem
from gates.text import Text

NOT_USABLE = 65  # EX_DATAERR: 1 to 4 are verdicts
UNUSABLE = Text("{file} is not usable. Problems: {count}.", "{file} 不可用。问题数：{count}。")


def register(app: typer.Typer) -> None:
    """Add the group `plan`."""
    plan = typer.Typer(no_args_is_help=True, help="Acceptance plans.")

    @plan.callback()
    def _group() -> None:
        """Keep `plan` a group while it has one command only."""

    plan.command("check")(check)
    app.add_typer(plan, name="plan")


def check(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="YAML: differences from the default plan, or an engagement file.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print hash and plan, or the problems, as JSON.")] = False,
    *,
    language: Language,
) -> None:
    """Check a plan: print its hash, or one sentence for each problem. Exit 0 usable, 65 not."""
    try:
        plan = read_plan(file)
    except InvalidPlan as error:
        if as_json:
            typer.echo(json.dumps({"problems": [{"path": p.path, **p.message.json()} for p in error.problems]}))
        else:
            for problem in error.problems:
                say(problem.message.in_language(language), err=True)
            typer.echo(UNUSABLE.fill(file=file, count=len(error.problems)).in_language(language), err=True)
        raise typer.Exit(NOT_USABLE) from None
    typer.echo(json.dumps({"hash": plan.hash, "plan": plan.data}, ensure_ascii=False) if as_json else plan.hash)


def read_plan(file: Path) -> Plan:
    """Return the plan of a file: an engagement file's section `plan`, or the whole file as differences. Raises InvalidPlan."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        message = Text(f"{file} is not UTF-8 text.", f"{file} 不是 UTF-8 文本。")
        raise InvalidPlan((FieldProblem("", message),)) from None
    return parse_plan(differences_in(load_yaml(text)))


def differences_in(data: Any) -> Any:
    """Return the differences from the default plan that a file states. An engagement file names its `engagement`; a plan has no such key."""
    if isinstance(data, Mapping) and "engagement" in data:
        data = data.get("plan")
    return {} if data is None else data
