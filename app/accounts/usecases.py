"""Users sign in, get tokens, and are recognised. Secrets are kept only as hashes and shown once."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import uuid
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, event, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.accounts import repository, throttle
from app.accounts.actor import Actor, Via, require
from app.accounts.models import ApiToken, User, WebSession
from app.accounts.passwords import check_new, hash_password, matches, outdated
from app.accounts.roles import PARTIES, Permission, Role
from app.audit.chain import record
from app.kit.clock import now
from app.kit.db import is_away, is_id, new_id, said, write_session, writes
from app.kit.errors import BadInput, FieldProblem, Forbidden, NotFound
from app.kit.i18n import LOCALES, N_
from gates.text import seen

log = logging.getLogger("quadgate.accounts")
IDLE = timedelta(minutes=30)
ABSOLUTE = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)  # how coarse the time of the last sight is: a page must not write for each request
NOTE_PATIENCE_MS = 200  # for which the note of a sight waits for other writers
LONGEST_TOKEN_DAYS = 366
LONGEST_TOKEN_NAME = 80  # characters; the column's width


@dataclass(frozen=True)
class SignIn:
    """A fresh sign-in: the cookie's value and the CSRF token, both shown only here, and who signed in."""

    token: str
    csrf_token: str
    actor: Actor


def create_user(
    s: Session, *, login: str, name: str, title: str, party: str, roles: list[str], password: str, locale: str = "zh_CN", actor: Actor
) -> User:
    """Add a user. Raises BadInput that names each field, Forbidden without the permission."""
    require(actor, Permission.MANAGE_USERS)
    problems = _problems_of_user(s, login, name, party, roles, locale, title)
    if problems:
        raise BadInput("bad_user", N_("This user cannot be added."), problems)
    check_new(password, login)
    user = User(
        id=new_id(),
        login=login.strip(),
        name=name.strip(),
        title=title.strip(),
        party=party,
        roles=sorted(set(roles)),
        password_hash=hash_password(password),
        locale=locale,
        active=True,
        created_at=now(),
    )
    s.add(user)
    s.flush()
    record(s, actor=actor, action="user.add", object_kind="user", object_id=user.id, data={"login": user.login, "party": party, "roles": user.roles})
    return user


def sign_in(s: Session, *, login: str, password: str) -> SignIn:
    """Sign a person in. Raises Forbidden with one and the same sentence for a wrong password, an unknown and a closed account.

    A failure is counted although the caller's transaction is rolled back by the error: the count is written right after the
    rollback, in a transaction of its own.
    """
    wait = throttle.wait_for(s, login)
    if wait > timedelta(0):
        raise too_soon(wait)
    user = repository.user_by_login(s, login)
    if not matches(password, user.password_hash if user and user.active else None) or user is None:
        count_after_rollback(s, login)
        raise Forbidden("wrong_sign_in", N_("The login or the password is wrong."))
    throttle.forget(s, login)
    if outdated(user.password_hash):
        user.password_hash = hash_password(password)
    at, token, csrf = now(), secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    s.execute(delete(WebSession).where(WebSession.expires_at < at))
    s.add(WebSession(id=new_id(), token_sha256=_sha256(token), csrf_token=csrf, user_id=user.id, created_at=at, seen_at=at, expires_at=at + ABSOLUTE))
    actor = actor_of(user, "web")
    record(s, actor=actor, action="user.sign_in", object_kind="user", object_id=user.id, data={})
    return SignIn(token, csrf, actor)


def sign_out(s: Session, *, token: str) -> None:
    """End a sign-in; an unknown one is ended already."""
    s.execute(delete(WebSession).where(WebSession.token_sha256 == _sha256(token)))


def actor_of_session(s: Session, token: str, *, noted: bool = True) -> tuple[Actor, str] | None:
    """Return who stands behind a cookie, and the CSRF token; None when it is unknown, idle for 30 min, or 12 h old.

    `noted`: the person is here now. A program that only asks whether the sign-in still holds does not keep it from growing idle.
    """
    found = repository.session_by_hash(s, _sha256(token))
    if found is None:
        return None
    session, user = found
    at = now()
    if not user.active or at >= session.expires_at or at >= session.seen_at + IDLE:
        return None
    if noted and at - session.seen_at >= SEEN_EVERY:
        sight = update(WebSession).where(WebSession.id == session.id).values(seen_at=at)
        _note(s, sight)
    return actor_of(user, "web"), session.csrf_token


def issue_token(s: Session, *, user_id: str, name: str, days: int, actor: Actor | None = None) -> str:
    """Make an API token `qg_<id>_<secret>` for a user and return it; it is shown this once. It can never approve anything."""
    user = repository.user(s, user_id)
    if user is None or not user.active:
        raise NotFound("no_such_user", N_("There is no active user with the id {user_id}."), user_id=user_id)
    actor = actor or actor_of(user, "web")
    if actor.user_id != user_id:
        require(actor, Permission.MANAGE_USERS)
    problems, name = [], name.strip()
    if not 1 <= days <= LONGEST_TOKEN_DAYS:
        problems.append(FieldProblem("/days", N_("A token lives from 1 to {most} days."), {"most": LONGEST_TOKEN_DAYS}))
    if not seen(name):
        problems.append(FieldProblem("/name", N_("Say what the token is for.")))
    elif len(name) > LONGEST_TOKEN_NAME:
        problems.append(FieldProblem("/name", N_("The name of a token has at most {most} characters."), {"most": LONGEST_TOKEN_NAME}))
    if problems:
        raise BadInput("bad_token", N_("This token cannot be made."), problems)
    at, token_id = now(), new_id()
    token = f"qg_{token_id.replace('-', '')}_{secrets.token_urlsafe(32)}"
    s.add(ApiToken(id=token_id, token_sha256=_sha256(token), user_id=user_id, name=name, created_at=at, expires_at=at + timedelta(days=days)))
    s.flush()
    record(s, actor=actor, action="token.issue", object_kind="api_token", object_id=token_id, data={"user": user.login, "name": name, "days": days})
    return token


def actor_of_token(s: Session, token: str, *, noted: bool = True) -> Actor | None:
    """Return who stands behind an API token; None when it is malformed, unknown, expired, revoked, or its user is closed.

    `noted`: this is a use of the token, and not only the question whether it still holds.
    """
    match = re.fullmatch(r"qg_([0-9a-f]{32})_[A-Za-z0-9_-]{20,100}", token)
    found = repository.token_by_id(s, str(uuid.UUID(match[1]))) if match else None
    if found is None:
        return None
    row, user = found
    at = now()
    if not hmac.compare_digest(row.token_sha256, _sha256(token)) or at >= row.expires_at or row.revoked_at or not user.active:
        return None
    if noted and (row.last_used_at is None or at - row.last_used_at >= SEEN_EVERY):
        _note(s, update(ApiToken).where(ApiToken.id == row.id).values(last_used_at=at))
    return actor_of(user, "token")


def actor_of(user: User, via: Via) -> Actor:
    """Return a user as an actor who came in that way."""
    return Actor(user.id, user.login, user.name, user.title, user.party, frozenset(user.roles), user.locale, via)


def people(s: Session, user_ids: set[str]) -> dict[str, str]:
    """Return the names of users by id, for lists that show who did something."""
    found = {user_id: repository.user(s, user_id) for user_id in user_ids if is_id(user_id)}
    return {user_id: user.name for user_id, user in found.items() if user}


def without_account(s: Session, logins: set[str]) -> set[str]:
    """Return those of the logins that nobody could sign in with: an engagement may name people before they are added."""
    found = {login: repository.user_by_login(s, login) for login in logins}
    return {login for login, user in found.items() if user is None or not user.active}


def too_soon(wait: timedelta) -> Forbidden:
    """Return the error for a password that is tried too soon after wrong ones."""
    return Forbidden("try_later", N_("Too many failed sign-ins. Try again in {seconds} s."), seconds=int(wait.total_seconds()) + 1)


def _note(s: Session, statement: object) -> None:
    """Write down that somebody was seen: in the caller's transaction when it writes, else in a short one of its own.

    That one is left out where the database is busy or away: nobody's request waits for it, or fails by it.
    """
    if writes(s):
        s.execute(statement)  # type: ignore[call-overload]
        return
    try:
        with write_session(patience_ms=NOTE_PATIENCE_MS) as own:
            own.execute(statement)  # type: ignore[call-overload]
    except SQLAlchemyError as error:
        if not is_away(error):
            raise
        log.info("that somebody was seen was not written down, since the database is busy or away: %s", said(error))


def count_after_rollback(s: Session, login: str) -> None:
    """Count a failed sign-in once the caller's transaction has been rolled back by the error that follows."""

    @event.listens_for(s, "after_rollback", once=True)
    def _count(_session: Session) -> None:
        with write_session() as own:
            throttle.count_failure(own, login)


def _problems_of_user(s: Session, login: str, name: str, party: str, roles: list[str], locale: str, title: str) -> list[FieldProblem]:
    """Return a sentence for each field that is wrong."""
    found = []
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,79}", login.strip()):
        found.append(FieldProblem("/login", N_("A login has 2 to 80 letters, digits, dots, dashes or underscores.")))
    elif repository.user_by_login(s, login):
        found.append(FieldProblem("/login", N_("The login {login} is taken."), {"login": login}))
    if not seen(name) or len(name.strip()) > 120:
        found.append(FieldProblem("/name", N_("A name of 1 to 120 characters is needed.")))
    if len(title.strip()) > 120:
        found.append(FieldProblem("/title", N_("A title has at most 120 characters.")))
    if any(c < " " or "\x7f" <= c < "\xa0" for c in name + title):
        found.append(FieldProblem("/name", N_("A name or title holds a character that is no text.")))
    if party not in PARTIES:
        found.append(FieldProblem("/party", N_("The party is vendor or customer, not {party}."), {"party": repr(party)}))
    if unknown := [role for role in roles if role not in list(Role)]:
        found.append(
            FieldProblem("/roles", N_("Unknown roles: {unknown}. There are: {known}."), {"unknown": ", ".join(unknown), "known": ", ".join(Role)})
        )
    if not roles:
        found.append(FieldProblem("/roles", N_("At least one role is needed.")))
    if locale not in LOCALES:
        found.append(FieldProblem("/locale", N_("The language is one of {known}."), {"known": ", ".join(LOCALES)}))
    return found


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
