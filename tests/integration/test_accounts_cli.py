"""`quadgate user`, `quadgate db` and `quadgate audit` as a person runs them, by their own programs and exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner

from app.accounts.repository import all_users
from app.accounts.usecases import actor_of_token, sign_in
from app.commands import audit, db, user
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput
from app.kit.migrate import head
from tests.people import PASSWORD


@pytest.fixture
def run(state: Path):
    app = typer.Typer()
    for module in (user, db, audit):
        module.register(app)

    def call(*argv: str, stdin: str = "", fails: bool = False):
        result = CliRunner().invoke(app, list(argv), input=stdin)
        if result.exception and not isinstance(result.exception, SystemExit) and not fails:
            raise result.exception
        return result

    return call


ADD = ("user", "add", "sun.yue", "--name", "孙悦", "--party", "vendor", "--role", "engineer", "--role", "approver", "--password-stdin")


def test_a_person_is_added_with_the_password_from_standard_input_and_can_sign_in(run) -> None:
    result = run(*ADD, stdin=PASSWORD + "\n")
    assert (result.exit_code, PASSWORD in result.output) == (0, False)
    with write_session() as s:
        assert sign_in(s, login="sun.yue", password=PASSWORD).actor.roles == {"engineer", "approver"}


def test_a_language_is_named_by_one_option_in_any_usual_spelling(run) -> None:
    spelled = {
        "person.an": ("--lang", "en"),
        "person.ba": ("--lang", "zh"),
        "person.bb": ("--lang", "zh_CN"),
        "person.bc": ("--lang", "zh-CN"),
        "person.ab": ("--locale", "en"),
        "person.bd": (),
    }
    for login, words in spelled.items():
        assert run(*ADD[:2], login, *ADD[3:], *words, stdin=PASSWORD + "\n").exit_code == 0
    with read_session() as s:
        assert {u.login: u.locale for u in all_users(s)} == {login: "en" if "en" in words else "zh_CN" for login, words in spelled.items()}
    assert run(*ADD, "--lang", "fr", fails=True).exit_code not in (0, 1, 3, 4)
    assert "--locale" not in run("user", "add", "--help").output


def test_a_weak_password_is_refused(run) -> None:
    with pytest.raises(BadInput):
        run(*ADD, stdin="short\n")


def test_a_password_that_is_typed_in_two_ways_is_asked_for_again_in_the_language_of_the_terminal(
    run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*ADD, stdin=PASSWORD + "\n")
    typed = iter((PASSWORD, "another one", "a new one, 2026", "a new one, 2026"))
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setattr(user.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(user.typer, "prompt", lambda *_, **__: next(typed))
    user.password("sun.yue")
    assert list(typed) == []
    assert "两次输入不一致" in capsys.readouterr().out
    with write_session() as s:
        assert sign_in(s, login="sun.yue", password="a new one, 2026").actor.login == "sun.yue"


def test_a_token_is_printed_once_and_speaks_for_the_person(run) -> None:
    run(*ADD, stdin=PASSWORD + "\n")
    token = run("user", "token", "sun.yue", "--name", "ci").output.strip()
    with read_session() as s:
        assert actor_of_token(s, token).login == "sun.yue"


def test_a_person_gets_a_new_password_a_token_is_revoked_and_an_account_is_closed_and_opened(run) -> None:
    run(*ADD, stdin=PASSWORD + "\n")
    token = run("user", "token", "sun.yue", "--name", "ci").output.strip()
    listed = run("user", "tokens", "sun.yue").output
    assert ("ci\tvalid" in listed, token in listed) == (True, False)
    run("user", "revoke", listed.split("\t")[0])
    assert "ci\trevoked" in run("user", "tokens", "sun.yue").output
    run("user", "password", "sun.yue", "--password-stdin", stdin=PASSWORD + " 2\n")
    with write_session() as s:
        assert sign_in(s, login="sun.yue", password=PASSWORD + " 2").actor.login == "sun.yue"
    run("user", "close", "sun.yue")
    assert "\tclosed" in run("user", "list").output
    run("user", "reopen", "sun.yue")
    assert "\tclosed" not in run("user", "list").output


def test_upgrade_says_where_the_database_stands(run) -> None:
    assert head() in run("db", "upgrade").output


def test_verify_exits_1_when_a_row_was_altered_and_finds_a_cut_off_end_by_its_anchor(run) -> None:
    run(*ADD, stdin=PASSWORD + "\n")
    anchor = run("audit", "head").output.strip()
    assert re.fullmatch(r"1:sha256:[0-9a-f]{64}", anchor)
    assert run("audit", "verify", "--anchor", anchor).exit_code == 0
    with write_session() as s:
        s.execute(text("DELETE FROM audit_row"))
        s.execute(text("UPDATE audit_head SET seq = 0, hash = :hash"), {"hash": "sha256:" + "0" * 64})
    assert run("audit", "verify").exit_code == 0
    cut = run("audit", "verify", "--anchor", anchor, "--lang", "zh-CN")
    assert (cut.exit_code, "截断" in cut.output) == (65, True)


def test_a_malformed_anchor_is_a_usage_error_and_not_a_broken_chain(run) -> None:
    assert run("audit", "verify", "--anchor", "zzz", fails=True).exit_code == 2
