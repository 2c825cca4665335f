"""`quadgate whatif`: stored evidence under another plan, read only. It is no verdict, and no exit code of it reads as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from app.commands.language import Language, in_words
from app.commands.plan import differences_in, read_yaml_of, refuse
from app.kit.i18n import N_
from app.kit.terminal import say
from gates.bundle import Bundle, Unreadable, read_bundle
from gates.canonical import canonical_bytes
from gates.plan import InvalidPlan, Plan, changed_plan
from gates.text import Text
from gates.whatif import what_if

UNREADABLE = 4
REFUSED = Text("This bundle cannot be looked at. ", "无法查看此证据包。")
SAME_JUDGE = Text(
    "The bundle was made by this judge; without another plan (--plan) nothing differs.",
    "证据包由本判定程序生成；未给出另一计划（--plan），没有差异。",
)
NO_STORED = Text("The bundle holds no verdict to compare with.", "证据包中没有可供比较的判定。")
SAME_PLAN = Text("The plan is the sealed one: nothing differs.", "该计划与封存的计划相同：没有差异。")
OTHER_JUDGE = Text(
    "The bundle was made by judge {then}, rules {rules}; it is looked at by judge {here}. What that alone changes is marked.",
    "证据包由判定程序 {then}（规则 {rules}）生成；此处使用判定程序 {here}。仅由此引起的差异已注明。",
)
PLAN_FIELDS = Text("Fields of the plan that differ: {n}", "计划中不同的字段：{n} 项")
CHECKS = Text("Checks that would be answered otherwise: {n}", "结果将不同的检查项：{n} 项")
CLAIMS = Text("Claims that would stand otherwise: {n}", "结果将不同的有效性断言：{n} 项")
BY_JUDGE = Text("Checks that this judge answers otherwise under the sealed plan: {n}", "在封存计划下本判定程序结果不同的检查项：{n} 项")
READ = Text("Evidence files of which this judge makes something else: {n}", "本判定程序得出不同结果的证据文件：{n} 个")
READ_AS = Text("read as {a}", "读取为 {a}")
FOUND = Text("{reader}, {n} observations, {p} problems", "{reader}：{n} 项观测、{p} 个问题")
UNSAID = Text("not used", "未使用")
BY_ITSELF = Text("{before} in the bundle, {after} by this judge", "证据包中为 {before}，本判定程序为 {after}")
WHOLE = Text("{before} under the sealed plan, {after} under the other", "封存计划下为 {before}，另一计划下为 {after}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "whatif",
        help=N_(
            "Look at an evidence bundle under another plan, or by this judge, check by check. It is no verdict. Exit 0 when it ran, 4 unreadable."
        ),
    )(whatif)


def whatif(
    bundle: Annotated[Path, typer.Argument(help=N_("Evidence bundle: a directory or a zip."))],
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            exists=True,
            dir_okay=False,
            readable=True,
            help=N_("YAML: differences from the bundle's plan, or a whole plan. Without it: what this judge by itself answers otherwise."),
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print the differences as JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Show what would be judged otherwise. Nothing is stored, nothing follows from it."""
    try:
        found = read_bundle(bundle)
    except Unreadable as error:
        _refuse(error, language, as_json=as_json)
    other = _plan(found, plan, language, as_json=as_json) if plan is not None else None
    try:
        told = what_if(found, other)
    except Unreadable as error:
        _refuse(error, language, as_json=as_json)
    if as_json:
        typer.echo(canonical_bytes(told).decode())
    else:
        _print(told, language, plan=other is not None)


def _refuse(error: Unreadable, language: str, *, as_json: bool) -> NoReturn:
    if as_json:
        typer.echo(json.dumps({"error": error.text.json()}, sort_keys=True))
    else:
        say(REFUSED.in_language(language) + error.text.in_language(language), err=True)
    raise typer.Exit(UNREADABLE)


def _plan(bundle: Bundle, file: Path, language: str, *, as_json: bool) -> Plan:
    try:
        return changed_plan(bundle.plan, differences_in(read_yaml_of(file)))
    except InvalidPlan as error:
        refuse(error, file, language, as_json=as_json)


def _print(told: dict[str, Any], language: str, *, plan: bool) -> None:
    warning = told["no_verdict"][language]
    say(warning)
    judge = told["judge"]
    if not judge["same"]:
        then, here = judge["bundle"], judge["here"]
        say(OTHER_JUDGE.fill(then=then["judge_version"], rules=str(then["rules_hash"])[:19], here=here["judge_version"]).in_language(language))
    if plan and not told["plan"]:
        say(SAME_PLAN.in_language(language))
    if not plan and (judge["same"] or told["before"] is None):
        say((SAME_JUDGE if judge["same"] else NO_STORED).in_language(language))
    say("")
    if plan or told["before"] is None:
        before, after = told["sealed"]["verdict"], told["other"]["verdict"]
        say(WHOLE.fill(before=in_words("verdict", before, language), after=in_words("verdict", after, language)).in_language(language))
    else:
        before, after = told["before"]["verdict"], told["sealed"]["verdict"]
        say(BY_ITSELF.fill(before=in_words("verdict", before, language), after=in_words("verdict", after, language)).in_language(language))
    for head, lines in (
        (PLAN_FIELDS, [f"{r['path']}: {r['from']} -> {r['to']}" for r in told["plan"]]),
        (BY_JUDGE, [_check(r, language) for r in told["stored"]]),
        (READ, [_file(r, language) for r in told["read"]]),
        (CHECKS, [_check(r, language) for r in told["checks"]]),
        (CLAIMS, [_claim(r, language) for r in told["claims"]]),
    ):
        if lines:
            say("")
            say(head.fill(n=len(lines)).in_language(language))
            for line in lines:
                say("  " + line)
    say("")
    say(warning)


def _check(row: dict[str, Any], language: str) -> str:
    before, after = row["from"], row["to"]
    said = (after["reason"] or before["reason"] or {}).get(language, "")
    return f"{in_words('verdict', before['verdict'], language)} -> {in_words('verdict', after['verdict'], language)}  {row['check']}: {said}"


def _claim(row: dict[str, Any], language: str) -> str:
    arm = in_words("arm", row["arm"], language)
    return f"{row['title'][language]} ({arm}): {in_words('claim', row['from'], language)} -> {in_words('claim', row['to'], language)}"


def _file(row: dict[str, Any], language: str) -> str:
    """Return one file with what each judge's checks took from it."""
    unsaid = UNSAID.in_language(language)
    read = row["read"]
    shown = f"{_found(read['from'], unsaid, language)} -> {_found(read['to'], unsaid, language)}" if read else ""
    told = [READ_AS.fill(a=shown).in_language(language)] if shown else []
    told += [
        f"{c['check']} {_value(c['from'], used=row['before'], unsaid=unsaid)} -> {_value(c['to'], used=row['after'], unsaid=unsaid)}"
        for c in row["checks"]
    ]
    return f"{row['path']}: " + "; ".join(told)


def _found(of: dict[str, Any] | None, unsaid: str, language: str) -> str:
    """Return how many observations and problems a reader made of a file."""
    return FOUND.fill(reader=of["reader"], n=of["observations"], p=of["problems"]).in_language(language) if of else unsaid


def _value(of: dict[str, Any], *, used: bool, unsaid: str) -> str:
    if not used:
        return unsaid
    unit = f" {of['unit']}" if of["unit"] not in (None, "1") else ""
    return f"{of['value']}{unit}" if of["value"] is not None else str(of["verdict"])
