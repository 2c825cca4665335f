"""`quadgate compare`: limits straight from result files of benchmark clients, without a service and without a gate."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from app.commands.help import filled
from app.commands.judge import EXIT, PLAN, UNREADABLE, head
from app.commands.language import Language, in_terminal, in_words
from app.commands.plan import read_plan
from app.kit.i18n import N_
from app.kit.terminal import padded, say
from gates.bundle import Unreadable
from gates.canonical import canonical_bytes
from gates.compare import ResultFile, compare
from gates.importing import MOST
from gates.plan import InvalidPlan, Plan, parse_plan
from gates.readers.bench.declared import CLIENTS
from gates.readers.registry import LARGEST
from gates.system_words import said
from gates.text import Text

HELP = N_(
    "Hold the plan's limits against benchmark result files. It advances no gate: such files prove too little.\n\n"
    "A file that names no concurrency is given its tier with FILE@8, and that is held against its own times.\n\n"
    "Exit 0 pass (never reached here), 1 a limit is missed, 2 met as far as such files can tell, 3 not comparable or not complete, 4 unreadable."
)
FILES = "FILE[@TIER]..."
_AT = re.compile(r"(?P<file>.+)@(?P<tier>[0-9]{1,9})", re.DOTALL)
SEVERAL = ("--baseline", "--candidate")
REFUSED = Text("These files cannot be compared. ", "这些文件无法比较。")
NO_FILE = Text("{file} cannot be read: {why}.", "无法读取 {file}：{why}。")
TOO_LARGE = Text("{file} is larger than {n} MiB.", "{file} 大于 {n} MiB。")
MET = {True: Text("met", "达到"), False: Text("MISSED", "未达到"), None: Text("not judged", "未判定")}
UNPROVEN = Text("Not proven by such files: {claims}.", "此类文件不能证明：{claims}。")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", cls=_FilesAfterOption, help=HELP)(command)


class _FilesAfterOption(TyperCommand):
    """Lets an option take several files, `--baseline c8.json c16.json`, as well as being given once for each."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each further file."""
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Return the words with `--baseline` or `--candidate` before every file that follows one of them."""
    out: list[str] = []
    option, first = "", False
    for word in args:
        if word.startswith("-") and word != "-":
            option, first = (word, True) if word in SEVERAL else ("", False)
        elif option and not first:
            out.append(option)
        else:
            first = False
        out.append(word)
    return out


def command(
    baseline: Annotated[list[Path], typer.Option("--baseline", metavar=FILES, help=N_("Result files of the baseline, one file a tier."))],
    candidate: Annotated[list[Path], typer.Option("--candidate", metavar=FILES, help=N_("Result files of the candidate, one file a tier."))],
    plan: Annotated[Path | None, typer.Option("--plan", metavar="PLAN", help=N_("Plan or engagement file (YAML); else the default plan."))] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", help=filled(N_("Tool of all files, where they do not tell: {clients}."), clients=", ".join(CLIENTS)))
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print the comparison as canonical JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Compare, and end with the code of what was found."""
    if tool is not None and tool not in CLIENTS:
        raise typer.BadParameter(in_terminal(N_("there is no benchmark client {tool}; known: {known}"), tool=repr(tool), known=", ".join(CLIENTS)))
    limits = _plan(plan, language)
    try:
        document = compare(limits, _files(baseline, tool), _files(candidate, tool))
    except Unreadable as error:
        if as_json:
            typer.echo(json.dumps({"error": error.text.json()}, sort_keys=True))
        else:
            say(REFUSED.in_language(language) + error.text.in_language(language), err=True)
        raise typer.Exit(UNREADABLE) from None
    if as_json:
        typer.echo(canonical_bytes(document).decode())
    else:
        _print(document, language)
    raise typer.Exit(EXIT[document["verdict"]])


def _plan(file: Path | None, language: str) -> Plan:
    if file is None:
        return parse_plan()
    try:
        return read_plan(file)
    except InvalidPlan as error:
        raise typer.BadParameter("; ".join(p.message.in_language(language) for p in error.problems[:5])) from None
    except OSError as error:
        raise typer.BadParameter(NO_FILE.fill(file=file, why=said(error)).in_language(language)) from None


def at(given: Path) -> tuple[Path, int | None]:
    """Return a file and the tier that stands behind an @ in its word; a file that is really called so is that file."""
    found = _AT.fullmatch(str(given))
    if found is None or os.path.exists(given):  # noqa: PTH110 Path.exists raises for a name that is too long
        return given, None
    tier = int(found["tier"])
    if not 1 <= tier <= MOST:
        raise typer.BadParameter(in_terminal(N_("{file}: a tier is a concurrency from 1 to {most}"), file=str(given), most=MOST))
    return Path(found["file"]), tier


def _files(paths: list[Path], tool: str | None) -> list[ResultFile]:
    out = []
    for given in paths:
        path, tier = at(given)
        try:
            with path.open("rb") as stream:
                data = stream.read(LARGEST + 1)
        except OSError as error:
            text = NO_FILE.fill(file=path, why=said(error))
            raise Unreadable(text.en, text.zh) from None
        if len(data) > LARGEST:
            text = TOO_LARGE.fill(file=path, n=LARGEST // 2**20)
            raise Unreadable(text.en, text.zh)
        out.append(ResultFile(str(path), data, tool, tier))
    return out


def _print(document: dict[str, Any], language: str) -> None:
    head(PLAN, document["plan_hash"], language)
    for file in document["files"]:
        tier = f"c{file['tier']}{'@' if file['tier_from'] == 'stated' else ''}" if file["tier"] else "-"
        say(f"{padded(in_words('arm', file['arm'], language), 9)} {tier:<5} {file['tool']:<15} {file['file']}")
    say("")
    for check in document["checks"]:
        say(f"{padded(MET[check['limit_met']].in_language(language), 11)} {check['id'].removeprefix('g3.')}: {check['reason'][language]}")
    for problem in document["problems"]:
        say(f"! {problem['code']}: {problem['message'][language]}", err=True)
    say("")
    claims = "; ".join(claim["title"][language] for claim in document["unproven"])
    say(UNPROVEN.fill(claims=claims).in_language(language))
    say("")
    for line in (document["summary"][language], document["risk"][language]):
        say(line)
    because = [in_words("because", why, language) for why in document["because"]]
    say(in_words("verdict", document["verdict"], language) + (f" ({', '.join(because)})" if because else ""))
