"""Passwords change, accounts close, tokens are revoked: what ends, ends at once, and nobody locks the last administrator out."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from app.accounts import upkeep, usecases
from app.accounts.actor import command_line
from app.accounts.models import WebSession
from app.audit.models import AuditRow
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Forbidden, NotFound, Refused
from tests.integration.web_client import Browser
from tests.people import PASSWORD, Cast, by_token

NEW = "another good phrase 另一个"


def test_a_changed_password_ends_every_session_and_the_old_one_opens_nothing(cast: Cast) -> None:
    elsewhere, here = Browser("li.wei"), Browser("li.wei")
    wrong = here.send("/account/password", current="guess", new=NEW, again=NEW)
    assert (wrong.status_code, "not the present password" in wrong.text) == (422, True)
    assert "not the same" in here.send("/account/password", current=PASSWORD, new=NEW, again=NEW + "!").text
    assert "needs 12 to 256" in here.send("/account/password", current=PASSWORD, new="short", again="short").text
    done = here.send("/account/password", current=PASSWORD, new=NEW, again=NEW)
    assert (done.status_code, done.headers["location"]) == (303, "/sign-in")
    assert "Your password is changed" in here.get("/sign-in").text
    assert "Your password is changed" not in here.get("/sign-in").text  # said once
    assert elsewhere.get("/").status_code == 303
    assert here.post("/sign-in", login="li.wei", password=PASSWORD).status_code == 403
    assert here.post("/sign-in", login="li.wei", password=NEW).status_code == 303
    with read_session() as s:
        assert "user.password" in set(s.execute(select(AuditRow.action)).scalars())
        assert not any(secret in str(row.data) for row in s.execute(select(AuditRow)).scalars() for secret in (PASSWORD, NEW))


def test_guessing_the_present_password_is_slowed_down_like_the_sign_in(cast: Cast) -> None:
    for _ in range(5):
        with pytest.raises(BadInput), write_session() as s:
            upkeep.change_password(s, current="guess", new=NEW, actor=cast.li_wei)
    with pytest.raises(Forbidden, match="Too many"), write_session() as s:
        upkeep.change_password(s, current=PASSWORD, new=NEW, actor=cast.li_wei)


def test_a_token_changes_no_password_and_revokes_nothing(cast: Cast) -> None:
    with write_session() as s:
        usecases.issue_token(s, user_id=cast.li_wei.user_id, name="ci", days=7)
        token_id = upkeep.tokens(s, login="li.wei", actor=cast.li_wei)[0]["id"]
        with pytest.raises(Forbidden):
            upkeep.change_password(s, current=PASSWORD, new=NEW, actor=by_token(cast.li_wei))
        for stranger in (by_token(cast.li_wei), cast.wang_fang):
            with pytest.raises(NotFound):
                upkeep.revoke_token(s, token_id=token_id, actor=stranger)
        with pytest.raises(Forbidden):
            upkeep.tokens(s, login="li.wei", actor=cast.wang_fang)


def test_a_revoked_token_is_refused_at_once_and_stays_in_the_list(cast: Cast) -> None:
    page = Browser("li.wei")
    shown = page.send("/account/tokens", name="nightly", days="30")
    token = re.search(r"qg_[0-9a-f]{32}_[A-Za-z0-9_-]+", shown.text)[0]
    with read_session() as s:
        assert usecases.actor_of_token(s, token).login == "li.wei"
        token_id = upkeep.tokens(s, login="li.wei", actor=cast.li_wei)[0]["id"]
    assert token not in page.get("/account").text
    assert page.send(f"/account/tokens/{token_id}/revoke").status_code == 303
    with read_session() as s:
        assert usecases.actor_of_token(s, token) is None
        assert [(k["name"], k["state"]) for k in upkeep.tokens(s, login="li.wei", actor=cast.li_wei)] == [("nightly", "revoked")]


def test_a_closed_account_is_out_at_once_and_opens_again_without_its_tokens(cast: Cast) -> None:
    page = Browser("wang.fang")
    with write_session() as s:
        token = usecases.issue_token(s, user_id=cast.wang_fang.user_id, name="x", days=7)
        upkeep.close_user(s, login="wang.fang", actor=cast.admin)
    assert page.get("/").status_code == 303
    assert page.post("/sign-in", login="wang.fang", password=PASSWORD).status_code == 403
    with write_session() as s:
        assert usecases.actor_of_token(s, token) is None
        assert s.execute(select(WebSession).where(WebSession.user_id == cast.wang_fang.user_id)).first() is None
        upkeep.reopen_user(s, login="wang.fang", actor=cast.admin)
        assert usecases.actor_of_token(s, token) is None
    assert page.post("/sign-in", login="wang.fang", password=PASSWORD).status_code == 303


def test_the_last_administrator_cannot_be_closed(cast: Cast) -> None:
    with write_session() as s:
        with pytest.raises(Refused, match="last administrator"):
            upkeep.close_user(s, login="admin", actor=command_line())
        more = {"login": "second.admin", "name": "二号", "title": "", "party": "vendor", "roles": ["admin"], "password": NEW}
        usecases.create_user(s, **more, actor=command_line())
        upkeep.close_user(s, login="admin", actor=command_line())
        with pytest.raises(Refused, match="last administrator"):
            upkeep.close_user(s, login="second.admin", actor=command_line())
        with pytest.raises(Forbidden):
            upkeep.close_user(s, login="li.wei", actor=cast.li_wei)
