"""`quadgate targets wipes` shows the wipe orders of an engagement, `quadgate targets wipe` begins one that both parties approved and follows it."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer

from app.commands.language import ask, of_terminal, say
from app.engine.spoken import why_of
from app.kit.clock import shown
from app.kit.i18n import N_
from app.kit.words import in_words
from gates.text import Text

NOT_CLEAN = 65  # EX_DATAERR: 1 to 4 are verdicts
LOOK_S = 0.5
HELP = N_(
    "Wipe the drives of an order that a person of each party approved; whoever asks again follows the same wipe. It cannot be undone. "
    "Exit 0: every drive is wiped; 65: one is not, or is not known to be.\n\n"
    "Everything else must be removed before. The records by serial number and the return slip are kept with the order."
)
Code = Annotated[str, typer.Argument(help=N_("The code of the engagement, e.g. HT-2026-01."))]


def register(commands: typer.Typer) -> None:
    """Add the commands to the group `targets`."""
    commands.command("wipes", help=N_("Show the wipe orders of an engagement, with their approvals and the record of each drive."))(wipes)
    commands.command("wipe", help=HELP)(wipe)


def wipes(engagement: Code, as_json: Annotated[bool, typer.Option("--json", help=N_("Print JSON."))] = False) -> None:
    """Print all orders, the newest first."""
    items = _orders(engagement)
    if as_json:
        typer.echo(json.dumps({"items": items}, ensure_ascii=False, indent=2))
        return
    if not items:
        say(N_("No wipe was ordered."))
    for item in items:
        _print(item)


def wipe(
    engagement: Code,
    number: Annotated[int, typer.Option("--order", min=1, help=N_("The number of the order: 1 of E-1."))],
    yes: Annotated[bool, typer.Option("--yes", help=N_("Do not ask."))] = False,
) -> None:
    """Begin the wipe, or adopt the one that is going on, and follow it to its end."""
    from app.accounts.actor import command_line
    from app.engine import wiping
    from app.kit.db import read_session, write_session
    from app.kit.errors import NotFound, Refused
    from app.wipes import usecases
    from app.wipes.models import WipeOrder

    item = next((item for item in _orders(engagement) if item["number"] == number), None)
    if item is None:
        raise NotFound("no_such_wipe", N_("There is no wipe order {id}."), id=f"E-{number}")
    if item["finished_at"] is None and item["started_at"] is None:
        with read_session() as s:
            usecases.approved(s, s.get_one(WipeOrder, item["id"]))  # before anybody is asked anything
        serials = ", ".join(drive["serial"] for drive in item["drives"])
        if not yes:
            if not sys.stdin.isatty():
                raise Refused("not_confirmed", N_("There is no terminal to ask at; give --yes to wipe {serials}."), serials=serials)
            ask(N_("Wipe {serials} of {code}? All data on them is destroyed for good."), serials=serials, code=engagement)
    with write_session() as s:
        order = wiping.begin(s, order_id=item["id"], actor=command_line())
    say(N_("Wiping (order {id})"), id=order.id)
    while order.finished_at is None:
        order = wiping.go_on(order.id, command_line())
        if order.finished_at is None:
            time.sleep(LOOK_S)
    told = next(item for item in _orders(engagement) if item["number"] == number)
    _print(told)
    raise typer.Exit(0 if told["state"] == "wiped" else NOT_CLEAN)


def _orders(code: str) -> list[dict[str, Any]]:
    from app.accounts.actor import command_line
    from app.engagements import repository
    from app.kit.db import read_session
    from app.kit.errors import NotFound
    from app.wipes import usecases

    with read_session() as s:
        found = repository.by_code(s, code)
        if found is None:
            raise NotFound("no_such_engagement", N_("There is no engagement {id}."), id=code)
        items: list[dict[str, Any]] = usecases.wipes(s, engagement_id=found.id, actor=command_line())["items"]
        return items


def _print(item: dict[str, Any]) -> None:
    way, state = in_words("wipe_way", item["way"]), in_words("wipe_state", item["state"])
    say(N_("{label}: {state} ({way}), {hash}"), label=item["label"], state=state, way=way, hash=item["hash"])
    for given in item["approvals"]:
        words = {"party": in_words("party", given["party"]), "decision": in_words("decision", given["decision"])}
        say(N_("  {decision}: {person}, {party}, {at}"), person=given["person"], at=shown(given["at"]), **words)
    for drive in item["records"] or item["drives"]:
        outcome = in_words("wipe_outcome", drive["outcome"]) if "outcome" in drive else "-"
        say(N_("  {host} {serial}: {outcome} {why}"), host=drive["host"], serial=drive["serial"], outcome=outcome, why=why_of(drive))
    if item["problem"]:
        print(f"  {Text.parse(item['problem']).in_language(of_terminal())}")
    for file in item["files"]:
        print(f"  {file['host']}/{file['name']} sha256:{file['sha256']}")
