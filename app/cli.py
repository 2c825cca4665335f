"""The command `quadgate`: the one place that knows every sub-command and what its exit code may mean.

Codes 1 to 4 are verdicts (DESIGN section 8). A usage error is 64 and an internal error 70 in every command, so that a typo can
never read as a verdict.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
from functools import cache

import typer
from pydantic import ValidationError
from typer.exceptions import Abort, TyperException

from app.commands.help import translate_tree, usage_error
from app.commands.language import in_terminal, of_terminal
from app.kit.errors import QuadgateError
from app.kit.i18n import N_
from app.kit.terminal import say
from app.settings import Settings, settings
from gates.system_words import said
from gates.text import Text

USAGE, INTERNAL, REFUSED, INTERRUPTED, NO_READER = 64, 70, 65, 130, 141

# Each names a module of app.commands; a module offers `register(app)` and is imported only when it is needed to build the command list.
COMMANDS = (
    "demo",
    "judge",
    "whatif",
    "attempt",
    "compare",
    "read",
    "reference",
    "plan",
    "gate",
    "up",
    "serve",
    "worker",
    "beat",
    "runner",
    "health",
    "backup",
    "restore",
    "retention",
    "targets",
    "user",
    "db",
    "audit",
)

app = typer.Typer(
    name="quadgate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=N_("Runs the joint test of a KV-cache-offload storage product as four gates, and judges them from evidence."),
)


@cache
def build() -> typer.Typer:
    """Return the application with every sub-command registered, each once."""
    for name in COMMANDS:
        importlib.import_module(f"app.commands.{name}").register(app)
    return app


def sentences(error: QuadgateError) -> str:
    """Return what is wrong, in the language of the terminal, with one line for each field of an input."""
    language = of_terminal().replace("-", "_")
    return "\n".join([error.text(language), *(f"  {problem.text(language)}" for problem in getattr(error, "errors", ()))])


def main() -> None:
    """Run the command line and turn every end into the documented exit code."""
    level = logging.DEBUG if os.environ.get("QUADGATE_LOG") == "debug" else logging.WARNING
    logging.basicConfig(level=level, format="%(levelname)s %(name)s %(message)s")
    try:
        code = _run()
        if sys.stdout is not None:  # None where the caller closed it
            sys.stdout.flush()
    except OSError as error:  # what was to be said could not be said: never with a code that reads as a verdict
        code = NO_READER if error.errno in (errno.EPIPE, errno.EIO) else INTERNAL
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - so that the interpreter's own last flush has somewhere to go
    sys.exit(code)


def _run() -> int:
    """Return the exit code of the command."""
    try:
        command = typer.main.get_command(build())
        translate_tree(command)
        code = command(prog_name="quadgate", standalone_mode=False)  # its name, however Python was told to run it; the code of a typer.Exit, or None
    except (Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (SystemExit, BrokenPipeError):  # how Typer and rich end when nobody reads on: with 1, which would read as a verdict
        return NO_READER
    except TyperException as error:  # Typer's own base of every usage error
        if said := usage_error(error):
            say(said, err=True)
        return USAGE
    except QuadgateError as error:
        say(sentences(error), err=True)
        return REFUSED
    except ValidationError as error:
        if error.title != Settings.__name__:
            return _internal(error)
        say("\n".join(_unusable(error)), err=True)
        return REFUSED
    except Exception as error:
        return _internal(error)
    return code if isinstance(code, int) else 0


def _unusable(error: ValidationError) -> list[str]:
    """Return a sentence for each setting with a value that it cannot have; a value is never repeated, since it may be a secret."""
    told = N_("The setting {name} has a value that it cannot have ({why}). Mend the environment variable, the line of .env or the secret's file.")
    found = error.errors(include_input=False, include_url=False)
    return [in_terminal(told, name=f"QUADGATE_{one['loc'][0]}".upper(), why=in_terminal(WHY.get(one["type"], OTHER))) for one in found]


WHY = {
    "int_parsing": N_("it must be a whole number"),
    "float_parsing": N_("it must be a number"),
    "bool_parsing": N_("it must be true or false"),
    "greater_than_equal": N_("it is too small"),
    "less_than_equal": N_("it is too large"),
    "value_error": N_("it is no time zone of this machine, like Asia/Shanghai; the package tzdata brings them"),
}
OTHER = N_("it is of another kind")


def _internal(error: Exception) -> int:
    """Say that something failed which nobody foresaw."""
    logging.getLogger("quadgate").debug("internal error", exc_info=True)
    if _lacks_tables(error):
        told = N_(
            "The database of the state folder {folder} has not the tables of this version: nothing was started with this folder yet, or another "
            "version was. Let QUADGATE_STATE_DIR name the right folder, or bring it up to date: quadgate db upgrade"
        )
        say(in_terminal(told, folder=settings().state_dir), err=True)
        return REFUSED
    told = N_("quadgate met an internal error: {kind}: {error}. QUADGATE_LOG=debug shows where.")
    say(in_terminal(told, kind=type(error).__name__, error=_said(error)), err=True)
    return INTERNAL


def _said(error: Exception) -> Text | str:
    """Return what an error says; of the operating system's, which names a file, with the file."""
    if not isinstance(error, OSError):
        return str(error)
    told, file = said(error), f" ({error.filename})" if error.filename else ""
    return Text(told.en + file, told.zh + file)


def _lacks_tables(error: Exception) -> bool:
    """Tell whether a command failed since its database is empty or of another version."""
    if "sqlalchemy" not in sys.modules:  # a command without a database; the import alone would take longer than it does
        return False
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    from app.kit import migrate

    if not isinstance(error, DBAPIError):
        return False
    try:
        return migrate.current() != migrate.head()
    except SQLAlchemyError:  # the database is away: that is another story
        return False
