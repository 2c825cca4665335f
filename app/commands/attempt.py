"""`quadgate attempt judge ID`: judge a stored attempt again. Exit codes as `quadgate judge`: they are the verdict's."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from app.commands.judge import EXIT
from app.commands.language import Language, in_terminal, in_words
from app.kit.clock import shown
from app.kit.i18n import N_, known, translate
from gates.text import Text

commands = typer.Typer(no_args_is_help=True, help=N_("Attempts that the service holds."))


def register(app: typer.Typer) -> None:
    """Add the commands below `attempt`."""
    app.add_typer(commands, name="attempt")


@commands.command(
    name="judge",
    help=N_("Judge an attempt again from its stored evidence and what is known now; a further judgement is added, none is replaced."),
)
def judge(
    attempt_id: Annotated[str, typer.Argument(metavar="ID", help=N_("The attempt's id, as its page's address shows it."))],
    why: Annotated[str, typer.Option(help=N_("Why it is judged again; stands in the record. Asked for at a terminal when it is not given."))] = "",
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print every judgement as JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Judge again, print what changed, and end with the verdict's code."""
    from app.accounts.actor import command_line
    from app.attempts.judging import judge_again
    from app.attempts.usecases import attempt_view
    from app.kit.db import read_session, write_session

    if not why.strip() and _at_a_terminal():
        why = typer.prompt(in_terminal(N_("Why is it judged again? The reason stands in the record (empty: none)")), default="", show_default=False)
    actor = command_line()
    revision = judge_again(write_session, attempt_id=attempt_id, why=why, actor=actor)
    with read_session() as s:
        view = attempt_view(s, attempt_id=attempt_id, actor=actor)
    newest = view["revisions"][-1]
    if as_json:
        print(json.dumps({"verdict": view["verdict"], "because": view["because"], "judgements": view["revisions"]}, ensure_ascii=False, indent=2))
    else:
        print(Text.parse(revision.document["summary"]).in_language(language))
        for change in newest["changed"]:
            title = Text.parse(change["title"]).in_language(language)
            before, after = (in_words("verdict", change[way], language) for way in ("from", "to"))
            print(f"  {title}: {before} ({change['value_from'] or '-'}) -> {after} ({change['value_to'] or '-'})")
        for row in view["revisions"]:
            print(_in_a_line(row, language))
    raise typer.Exit(EXIT[revision.verdict])


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


def _in_a_line(row: dict[str, Any], language: str) -> str:
    """Return one judgement of the history: number, verdict, time, who, why, hash."""
    said = row["why"]  # by a person, or by the service in both languages
    why = Text.parse(said).in_language(language) if isinstance(said, dict) else str(said or "")
    if not why and row["revision"] > 1:  # the first judgement is the engine's, at the end of the run
        why = translate(N_("no reason was given"), known(language))
    told = (str(row["revision"]), in_words("verdict", row["verdict"], language), shown(row["at"]), row["by"], why, row["hash"])
    return "  ".join(part for part in told if part)
