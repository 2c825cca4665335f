"""`quadgate restore`: bring a backup back, here or on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.accounts.actor import command_line
from app.commands.language import in_terminal, of_terminal, say
from app.kit.clock import shown
from app.kit.i18n import N_, pair
from app.kit.terminal import say as tell
from gates.text import Text

if TYPE_CHECKING:
    from app.ops.restore import Restored

CREDENTIALS = "credentials"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("restore", help=N_("Bring a backup back into an empty state directory; what ran at its targets is adopted."))(restore)


def restore(
    folder: Annotated[Path, typer.Argument(help=N_("The backup."), exists=True, file_okay=False)],
    accept_damage: Annotated[
        bool, typer.Option("--accept-damage", help=N_("Restore the rest of a damaged backup; each file that is lost is named and recorded."))
    ] = False,
) -> None:
    """Restore, then start the service as usual."""
    from app.ops.restore import restore as bring_back
    from app.settings import settings

    restored = bring_back(folder, actor=command_line(), accept_damage=accept_damage)
    for sentence in restored.damage:
        tell(sentence.in_language(of_terminal()), err=True)
    say(N_("Restored {n} files into {state}; audit chain whole to {head}"), n=restored.files, state=settings().state_dir, head=restored.audit_head)
    for attempt_id in restored.adopted:
        tell(in_terminal(N_("  goes on: attempt {id}"), id=attempt_id))
    for number, sentence in enumerate(what_next(restored), 1):
        tell(in_terminal(N_("Next, {number}: {what}"), number=number, what=sentence))


def what_next(restored: Restored) -> list[Text]:
    """Return what is to be done after a restore, in this order: nothing of it is done by the restore itself."""
    from app.settings import settings

    state = settings().state_dir
    old = {"node": restored.from_node, "at": shown(restored.made_at)}
    steps = [
        pair(
            N_(
                "See that the controller of the backup ({node}) is stopped and stays stopped, before this one starts: until this one has asked a "
                "target for the first time, that target still obeys the old one; from then on it refuses the old one."
            )
            if restored.adopted
            else N_(
                "See that the controller of the backup ({node}) stays stopped. Nothing was under way when the backup was made ({at}); whatever it "
                "began since is not known here."
            ),
            **old,
        )
    ]
    if not restored.credentials:
        steps.append(
            pair(
                N_("Copy the credentials of the targets, which the backup does not hold, to {folder} (each file mode 0600)."),
                folder=state / CREDENTIALS,
            )
        )
    steps.append(
        pair(N_("Start the service on this state directory: QUADGATE_STATE_DIR={state} quadgate up (in compose: docker compose up -d)."), state=state)
    )
    steps.append(
        pair(
            N_("Ask `quadgate health` whether work gets done, and `quadgate audit verify --anchor {head}` whether the record is whole."),
            head=restored.audit_head,
        )
    )
    return steps
