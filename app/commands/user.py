"""`quadgate user ...`: add people and issue API tokens. Passwords are read from a prompt or from standard input, never from argv."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from app.accounts import repository, upkeep, usecases
from app.accounts.actor import command_line
from app.accounts.passwords import SHORTEST
from app.accounts.roles import Party, Role
from app.commands.language import LocaleOption, in_terminal, say, spelled
from app.kit.clock import shown
from app.kit.db import read_session, write_session
from app.kit.errors import NotFound, Refused
from app.kit.i18n import N_, known
from app.kit.migrate import upgrade

HELP = N_(
    "Add a person. The password is asked for, twice; it has at least 12 characters and does not hold the login.\n\n"
    "admin: runs the service. engineer: creates engagements, starts gates. approver: agrees for the party. viewer: reads."
)
commands = typer.Typer(no_args_is_help=True, help=N_("People who use the service, and their API tokens."))


def register(app: typer.Typer) -> None:
    """Add the commands below `user`."""
    app.add_typer(commands, name="user")


@commands.command(help=HELP)
def add(
    login: Annotated[str, typer.Argument(help=N_("What the person signs in with, and what engagement files name."))],
    name: Annotated[str, typer.Option(help=N_("The person's name."))],
    party: Annotated[Party, typer.Option(help=N_("The side that the person acts for."))],
    role: Annotated[list[Role], typer.Option(help=N_("What the person is there for; may be given several times."))],
    title: Annotated[str, typer.Option(help=N_("Function, printed below a signature."))] = "",
    lang: Annotated[str, typer.Option("--lang", callback=spelled, help=N_("The language of the person's pages: en or zh."))] = "zh-CN",
    older: LocaleOption = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help=N_("Read the password from standard input."))] = False,
) -> None:
    """Ask for the password and add the person."""
    upgrade()
    password = sys.stdin.readline().rstrip("\n") if password_stdin else _asked(login)
    with write_session() as s:
        user = usecases.create_user(
            s,
            login=login,
            name=name,
            title=title,
            party=str(party),
            roles=[str(r) for r in role],
            password=password,
            locale=known(older or lang),
            actor=command_line(),
        )
    print(f"{user.login}: {user.name}, {user.party}, {', '.join(user.roles)}")


def _asked(login: str) -> str:
    """Ask for a new password at the terminal."""
    if not sys.stdin.isatty():
        raise Refused("no_terminal", N_("There is no terminal to ask for a password: write it to standard input and give --password-stdin."))
    question = in_terminal(N_("Password for {login} (at least {n} characters, not shown)"), login=login, n=SHORTEST)
    while True:
        password = typer.prompt(question, hide_input=True)
        if password == typer.prompt(in_terminal(N_("The same again")), hide_input=True):
            return str(password)
        say(N_("The two are not the same; once more."))


@commands.command(help=N_("Issue an API token for a person and print it, this once. It can never approve anything."))
def token(
    login: Annotated[str, typer.Argument(help=N_("Whose token it is: it may do what that person may, except approve."))],
    name: Annotated[str, typer.Option(help=N_("What the token is for."))],
    days: Annotated[int, typer.Option(help=N_("How many days it lives, at most 366."))] = 90,
) -> None:
    """Print the token."""
    with write_session() as s:
        user = repository.user_by_login(s, login)
        if user is None:
            raise NotFound("no_such_user", N_("There is no user {login}."), login=login)
        print(usecases.issue_token(s, user_id=user.id, name=name, days=days, actor=command_line()))


@commands.command(help=N_("Set a person's password anew. All sessions of that person end; API tokens go on until they are revoked."))
def password(
    login: Annotated[str, typer.Argument(help=N_("Whose password is set anew."))],
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help=N_("Read the password from standard input."))] = False,
) -> None:
    """Ask for the password and set it."""
    new = sys.stdin.readline().rstrip("\n") if password_stdin else _asked(login)
    with write_session() as s:
        user = upkeep.set_password(s, login=login, password=new, actor=command_line())
    say(N_("The password of {login} is set; that person's sessions have ended."), login=user.login)


@commands.command(help=N_("Close an account: nobody signs in with it, its sessions end, its tokens are revoked. What the person approved stays."))
def close(login: Annotated[str, typer.Argument(help=N_("Whose account is closed."))]) -> None:
    """Close it."""
    with write_session() as s:
        user = upkeep.close_user(s, login=login, actor=command_line())
    say(N_("The account {login} is closed."), login=user.login)


@commands.command(help=N_("Open a closed account again, with its old password. Revoked tokens stay revoked."))
def reopen(login: Annotated[str, typer.Argument(help=N_("Whose account is opened again."))]) -> None:
    """Open it."""
    with write_session() as s:
        user = upkeep.reopen_user(s, login=login, actor=command_line())
    say(N_("The account {login} is open."), login=user.login)


@commands.command(help=N_("List a person's API tokens: id, name, state, when it ends, when it was last used. The secrets are known to nobody."))
def tokens(login: Annotated[str, typer.Argument(help=N_("Whose tokens are listed."))]) -> None:
    """Print one line a token."""
    with read_session() as s:
        for row in upkeep.tokens(s, login=login, actor=command_line()):
            print(f"{row['id']}\t{row['name']}\t{row['state']}\t{shown(row['expires_at'])}\t{shown(row['last_used_at']) or '-'}")


@commands.command(help=N_("Revoke an API token; it is refused from then on."))
def revoke(token_id: Annotated[str, typer.Argument(help=N_("The id of the token, as `user tokens` lists it."))]) -> None:
    """Revoke it."""
    with write_session() as s:
        upkeep.revoke_token(s, token_id=token_id, actor=command_line())
    say(N_("The token {id} is revoked."), id=token_id)


@commands.command(name="list", help=N_("List all people."))
def list_users() -> None:
    """Print one line a person."""
    with read_session() as s:
        for user in repository.all_users(s):
            print(f"{user.login}\t{user.name}\t{user.party}\t{','.join(user.roles)}\t{'' if user.active else 'closed'}")
