"""Signing in, tokens, throttling, permissions: on a real database, with real argon2."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from app.accounts import usecases
from app.accounts.actor import SYSTEM, command_line, require
from app.accounts.models import ApiToken, User, WebSession
from app.accounts.roles import Permission
from app.accounts.throttle import LONGEST_DELAY, delay
from app.kit import clock
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Forbidden
from tests.people import PASSWORD, Cast, by_token


def _sign_in(login: str, password: str) -> usecases.SignIn:
    with write_session() as s:
        return usecases.sign_in(s, login=login, password=password)


def _refused(login: str, password: str) -> Forbidden:
    with pytest.raises(Forbidden) as caught:
        _sign_in(login, password)
    return caught.value


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch):
    """Move the service's clock forward."""
    offset = [timedelta(0)]
    real = clock.now
    for module in (usecases, usecases.throttle):
        monkeypatch.setattr(module, "now", lambda: real() + offset[0])

    def move(by: timedelta) -> None:
        offset[0] += by

    return move


def test_a_person_signs_in_and_is_recognised_until_they_sign_out(cast: Cast) -> None:
    signed = _sign_in("LI.WEI", PASSWORD)
    with read_session() as s:
        assert usecases.actor_of_session(s, signed.token) == (cast.li_wei, signed.csrf_token)
    with write_session() as s:
        usecases.sign_out(s, token=signed.token)
    with read_session() as s:
        assert usecases.actor_of_session(s, signed.token) is None


def test_neither_a_cookie_nor_an_api_token_is_kept_in_clear(cast: Cast) -> None:
    signed = _sign_in("li.wei", PASSWORD)
    with write_session() as s:
        token = usecases.issue_token(s, user_id=cast.li_wei.user_id, name="ci", days=7)
        rows = [*s.execute(select(WebSession)).scalars(), *s.execute(select(ApiToken)).scalars()]
    kept = repr([vars(row) for row in rows])
    assert signed.token not in kept
    assert token not in kept
    assert token.rsplit("_", 1)[1] not in kept


def test_an_unknown_login_a_closed_account_and_a_wrong_password_get_the_same_answer(cast: Cast) -> None:
    with write_session() as s:
        s.get(User, cast.viewer.user_id).active = False
    answers = {(e.code, e.text("zh_CN")) for e in (_refused("nobody", PASSWORD), _refused("viewer", PASSWORD), _refused("li.wei", "wrong password!"))}
    assert len(answers) == 1


@pytest.mark.parametrize("login", ["li.wei", "no.such.login"])
def test_after_five_failures_a_login_must_wait_whether_it_exists_or_not_and_the_wait_doubles(cast: Cast, login: str, later) -> None:
    for _ in range(5):
        assert _refused(login, "guess guess guess").code == "wrong_sign_in"
    assert _refused(login, PASSWORD).code == "try_later"
    later(timedelta(seconds=1, milliseconds=50))
    assert _refused(login, "guess guess guess").code == "wrong_sign_in"
    later(timedelta(seconds=1, milliseconds=50))
    assert _refused(login, PASSWORD).code == "try_later"


def test_the_delay_grows_up_to_fifteen_minutes_and_is_never_a_lock() -> None:
    delays = [delay(n) for n in range(200)]
    assert delays[:5] == [timedelta(0)] * 5
    assert delays[5:8] == [timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4)]
    assert max(delays) == delays[-1] == LONGEST_DELAY == timedelta(minutes=15)


def test_a_good_sign_in_makes_earlier_failures_forgotten_and_renews_a_cheap_hash(cast: Cast) -> None:
    for _ in range(4):
        _refused("li.wei", "guess guess guess")
    _sign_in("li.wei", PASSWORD)
    for _ in range(4):
        assert _refused("li.wei", "guess guess guess").code == "wrong_sign_in"
    with read_session() as s:
        assert "$argon2id$v=19$m=65536,t=3,p=1$" in s.get(User, cast.li_wei.user_id).password_hash


def test_a_sign_in_ends_after_half_an_hour_without_a_request_and_twelve_hours_in_any_case(cast: Cast, later) -> None:
    signed = _sign_in("li.wei", PASSWORD)

    def alive() -> bool:
        with read_session() as s:
            return usecases.actor_of_session(s, signed.token) is not None

    for _ in range(25):  # 12 h 5 min in steps of 29 min, each with a request
        later(timedelta(minutes=29))
        if not alive():
            break
    with read_session() as s:
        row = s.execute(select(WebSession)).scalar_one()
        assert usecases.now() >= row.expires_at
    second = _sign_in("li.wei", PASSWORD)
    later(timedelta(minutes=30))
    with read_session() as s:
        assert usecases.actor_of_session(s, second.token) is None


def test_a_token_speaks_for_its_user_until_it_expires_and_a_changed_one_does_not(cast: Cast, later) -> None:
    with write_session() as s:
        token = usecases.issue_token(s, user_id=cast.chen_jing.user_id, name="ci", days=1)
    with read_session() as s:
        assert usecases.actor_of_token(s, token) == by_token(cast.chen_jing)
        for wrong in (token[:-1] + ("A" if token[-1] != "A" else "B"), "qg_zz_" + token, "", token.replace("qg_", "qg_0", 1)):
            assert usecases.actor_of_token(s, wrong) is None
    later(timedelta(days=1))
    with read_session() as s:
        assert usecases.actor_of_token(s, token) is None


@pytest.mark.parametrize("name", ["", "   ", "n" * 81])
def test_a_token_has_a_name_of_a_sensible_length_and_another_one_is_refused_whole(cast: Cast, name: str) -> None:
    with pytest.raises(BadInput) as refused, write_session() as s:
        usecases.issue_token(s, user_id=cast.chen_jing.user_id, name=name, days=1)
    assert [problem.pointer for problem in refused.value.errors] == ["/name"]
    with write_session() as s:
        assert usecases.issue_token(s, user_id=cast.chen_jing.user_id, name="n" * 80, days=1)


def test_a_token_and_the_command_line_can_never_approve(cast: Cast) -> None:
    require(cast.chen_jing, Permission.APPROVE)
    for actor in (by_token(cast.chen_jing), command_line(), SYSTEM, cast.admin, cast.li_wei, cast.viewer):
        with pytest.raises(Forbidden):
            require(actor, Permission.APPROVE)


def test_what_is_not_granted_is_not_allowed(cast: Cast) -> None:
    for permission in set(Permission) - {Permission.VIEW, Permission.EXPORT_EVIDENCE, Permission.VERIFY_AUDIT}:
        assert not cast.viewer.may(permission)


def test_only_an_administrator_adds_users_and_bad_fields_are_named_all_at_once(cast: Cast, state: Path) -> None:
    user = {"name": "孙悦", "title": "工程师", "party": "vendor", "roles": ["engineer"], "password": PASSWORD}
    with write_session() as s, pytest.raises(Forbidden):
        usecases.create_user(s, login="sun.yue", actor=cast.li_wei, **user)
    with write_session() as s:
        usecases.create_user(s, login="sun.yue", actor=cast.admin, **user)
    bad = {"name": "", "title": "", "party": "both", "roles": ["boss"], "password": PASSWORD, "locale": "fr"}
    with write_session() as s, pytest.raises(BadInput) as caught:
        usecases.create_user(s, login="Sun.Yue", actor=cast.admin, **bad)
    assert [e.pointer for e in caught.value.errors] == ["/login", "/name", "/party", "/roles", "/locale"]


@pytest.mark.parametrize("password", ["short", "sun.yue-2026-11", "aaaaaaaaaaaaaaa", "x" * 300])
def test_a_password_that_is_easy_to_guess_is_refused_without_being_repeated(cast: Cast, password: str) -> None:
    with write_session() as s, pytest.raises(BadInput) as caught:
        usecases.create_user(s, login="sun.yue", name="孙悦", title="", party="vendor", roles=["viewer"], password=password, actor=cast.admin)
    assert caught.value.errors[0].pointer == "/password"
    assert password not in str(caught.value)
