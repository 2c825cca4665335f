"""Passwords change, accounts close and open again, tokens are listed and revoked. What ends, ends at once, and stands in the audit chain."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.accounts import repository, throttle
from app.accounts.actor import Actor, require
from app.accounts.models import ApiToken, User, WebSession
from app.accounts.passwords import check_new, hash_password, matches
from app.accounts.roles import Permission, Role
from app.accounts.usecases import count_after_rollback, too_soon
from app.audit.chain import record
from app.kit.clock import now, stamp
from app.kit.errors import BadInput, FieldProblem, Forbidden, NotFound, Refused
from app.kit.i18n import N_


def change_password(s: Session, *, current: str, new: str, actor: Actor) -> None:
    """Change one's own password; every session of this person ends, this one too. API tokens go on: they are revoked one by one.

    Raises Forbidden where wrong tries came too fast (as at the sign-in) and for a token, BadInput that names the field.
    """
    if actor.via != "web":
        raise Forbidden("in_person", N_("A password is changed by its person at the web page, or by an administrator with: quadgate user password."))
    user = _user(repository.user(s, actor.user_id), actor.login)
    if (wait := throttle.wait_for(s, user.login)) > timedelta(0):
        raise too_soon(wait)
    if not matches(current, user.password_hash):
        count_after_rollback(s, user.login)
        field = FieldProblem("/current", N_("This is not the present password."))
        raise BadInput("wrong_password", N_("The password was not changed."), [field])
    if new == current:
        raise BadInput("same_password", N_("The password was not changed."), [FieldProblem("/new", N_("This is the present password already."))])
    check_new(new, user.login, "/new")
    throttle.forget(s, user.login)
    _set(s, user, new, actor)


def set_password(s: Session, *, login: str, password: str, actor: Actor) -> User:
    """Give a person a new password, as an administrator. Every session of that person ends."""
    require(actor, Permission.MANAGE_USERS)
    user = _user(repository.user_by_login(s, login), login)
    check_new(password, user.login)
    throttle.forget(s, user.login)
    _set(s, user, password, actor)
    return user


def close_user(s: Session, *, login: str, actor: Actor) -> User:
    """Close an account: its sessions end and its tokens are revoked. What the person approved and recorded stays.

    Raises Refused for the last administrator: nobody could open an account again at the pages.
    """
    require(actor, Permission.MANAGE_USERS)
    user = _user(repository.user_by_login(s, login), login)
    others = s.execute(select(User).where(User.active, User.id != user.id).with_for_update()).scalars()
    if Role.ADMIN in user.roles and user.active and not any(Role.ADMIN in other.roles for other in others):
        raise Refused("last_admin", N_("{login} is the last administrator; add another one first."), login=user.login)
    if user.active:
        user.active = False
        _end_sessions(s, user)
        s.execute(update(ApiToken).where(ApiToken.user_id == user.id, ApiToken.revoked_at.is_(None)).values(revoked_at=now()))
        s.flush()
        record(s, actor=actor, action="user.close", object_kind="user", object_id=user.id, data={"login": user.login})
    return user


def reopen_user(s: Session, *, login: str, actor: Actor) -> User:
    """Open a closed account again, with its old password; revoked tokens stay revoked."""
    require(actor, Permission.MANAGE_USERS)
    user = _user(repository.user_by_login(s, login), login)
    if not user.active:
        user.active = True
        s.flush()
        record(s, actor=actor, action="user.reopen", object_kind="user", object_id=user.id, data={"login": user.login})
    return user


def tokens(s: Session, *, login: str, actor: Actor) -> list[dict[str, Any]]:
    """Return a person's API tokens, the newest first: one's own, or anybody's for an administrator. The secrets are known to nobody."""
    user = _user(repository.user_by_login(s, login), login)
    if user.id != actor.user_id:
        require(actor, Permission.MANAGE_USERS)
    at = now()
    return [
        {
            "id": row.id,
            "name": row.name,
            "created_at": stamp(row.created_at),
            "expires_at": stamp(row.expires_at),
            "last_used_at": stamp(row.last_used_at),
            "revoked_at": stamp(row.revoked_at),
            "state": "revoked" if row.revoked_at else "expired" if at >= row.expires_at else "valid",
        }
        for row in repository.tokens_of(s, user.id)
    ]


def revoke_token(s: Session, *, token_id: str, actor: Actor) -> None:
    """Revoke a token: one's own, or anybody's as an administrator. A token cannot revoke. Revoking again changes nothing."""
    found = repository.token_by_id(s, token_id)
    mine = found is not None and found[1].id == actor.user_id and actor.via == "web"
    if found is None or not (mine or actor.may(Permission.MANAGE_USERS)):
        raise NotFound("no_such_token", N_("There is no token {id}."), id=token_id)
    row, user = found
    if row.revoked_at is None:
        row.revoked_at = now()
        s.flush()
        record(s, actor=actor, action="token.revoke", object_kind="api_token", object_id=row.id, data={"user": user.login, "name": row.name})


def _set(s: Session, user: User, password: str, actor: Actor) -> None:
    user.password_hash = hash_password(password)
    _end_sessions(s, user)
    s.flush()
    record(s, actor=actor, action="user.password", object_kind="user", object_id=user.id, data={"login": user.login})


def _end_sessions(s: Session, user: User) -> None:
    s.execute(delete(WebSession).where(WebSession.user_id == user.id))


def _user(found: User | None, login: str) -> User:
    if found is None:
        raise NotFound("no_such_user", N_("There is no user {login}."), login=login)
    return found
