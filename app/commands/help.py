"""`--help` and usage errors in the language of the terminal.

The texts of our commands are msgids, marked where they stand; what Typer says itself is marked here. Typer is translated at its own hooks: the
texts of the tree that it builds, the class of a command's context, the words of `typer.rich_utils`, and an error's message. English is never
touched. What a later Typer says otherwise stays English, and a test tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import typer
from typer._click import Command, HelpFormatter  # Typer's own base classes, which it names nowhere else
from typer.exceptions import TyperException

from app.commands.language import in_terminal, of_terminal
from app.kit.i18n import N_

ATTRIBUTES = ("help", "short_help", "epilog", "show_default", "rich_help_panel", "options_metavar", "subcommand_metavar")
METAVARS = (N_("[OPTIONS]"), N_("COMMAND [ARGS]..."), N_("Show this message and exit."))
# What Typer's parser and the types say; the first that fits is taken, so a longer form stands before its beginning.
MESSAGES = (
    N_("No such option: {name} (Possible options: {names})"),
    N_("No such option: {name}"),
    N_("No such command {name}. Did you mean {names}?"),
    N_("No such command {name}."),
    N_("Missing command."),
    N_("Missing {kind} {name}. Choose from:{choices}"),
    N_("Missing {kind} {name}."),
    N_("Option {name} requires an argument."),
    N_("Option {name} does not take a value."),
    N_("Got unexpected extra argument(s) ({words})"),
    N_("Invalid value for {name}: {why}"),
    N_("Invalid value: {why}"),
    N_("Value error, {why}"),
    N_("{value} is not one of {choices}."),
    N_("{kind} {path} does not exist."),
    N_("{kind} {path} is a file."),
    N_("{kind} {path} is a directory."),
    N_("{kind} {path} is not readable."),
    N_("Input should be a valid integer, unable to parse string as an integer"),
    N_("Unable to parse input string as an integer, exceeded maximum size"),
    N_("Input should be a valid number, unable to parse string as a number"),
    N_("Input should be greater than or equal to {limit}"),
    N_("Input should be less than or equal to {limit}"),
)
KINDS = (N_("argument"), N_("option"), N_("file"), N_("path"), N_("dir"))
NESTED = frozenset({"why", "kind"})  # the parts of a message that are words of Typer's again
_FILLED: dict[str, tuple[str, dict[str, object]]] = {}


def filled(msgid: str, /, **values: object) -> str:
    """Return a help text with its `{placeholders}` filled, as an f-string would, that can still be translated."""
    text = msgid.format(**values)
    _FILLED[text] = (msgid, values)
    return text


def msgid_of(text: str) -> str:
    """Return the msgid from which a help text was made."""
    return _FILLED.get(text, (text, {}))[0]


def texts(command: Command) -> Iterator[tuple[object, str, str]]:
    """Yield every text for people of a command and of those below it: the object that holds it, its attribute, and the text."""
    for one in _tree(command):
        for owner in (one, *one.params):
            for name in ATTRIBUTES:
                if isinstance(text := getattr(owner, name, None), str) and text:
                    yield owner, name, text


def translate_tree(command: Command) -> None:
    """Put a command and all below it, as `typer.main.get_command` has just built them, into the language of the terminal."""
    if of_terminal() == "en":
        return
    for owner, name, text in texts(command):
        setattr(owner, name, _said(text))
    for one in _tree(command):
        one.context_class = _Context


def usage_error(error: TyperException) -> str:
    """Return usage, the way to the help, and what is wrong with the words of a command line, in the language of the terminal."""
    message = error.format_message()
    if not message:  # a group without a command: Typer has printed its help
        return ""
    context: typer.Context | None = getattr(error, "ctx", None)
    lines = [context.get_usage(), in_terminal(N_("Try '{command} --help' for help."), command=context.command_path), ""] if context else []
    return "\n".join([*lines, in_terminal(N_("Error: {said}"), said=rephrased(message))])


def rephrased(message: str) -> str:
    """Return a message of Typer's in the language of the terminal; one that it does not know stays as it is."""
    if of_terminal() == "en":
        return message
    for msgid, pattern in _patterns():
        if found := pattern.fullmatch(message):
            return in_terminal(msgid, **{key: rephrased(part) if key in NESTED else part for key, part in found.groupdict().items()})
    return message


class _Formatter(HelpFormatter):
    """Writes the line of usage."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix or in_terminal(N_("Usage: ")))


class _Context(typer.Context):
    """The context of a command whose texts are translated."""

    formatter_class = _Formatter

    def get_help(self) -> str:
        """Print the help with its titles, and what the option --help says of itself, in the language of the terminal."""
        option = self.command.get_help_option(self)  # made on first asking, so it is not in the tree
        if option is not None and option.help:
            option.help = _said(option.help)
        from app.commands.help_panels import translated  # slow to import, and only a help needs it

        with translated():
            return super().get_help()


def _tree(command: Command) -> Iterator[Command]:
    """Yield a command and all below it."""
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from _tree(child)


def _said(text: str) -> str:
    msgid, values = _FILLED.get(text, (text, {}))
    return in_terminal(msgid, **values)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each message of Typer's with the pattern that takes it apart."""
    return tuple((msgid, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(msgid)), re.DOTALL)) for msgid in (*MESSAGES, *KINDS))
