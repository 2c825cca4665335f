"""Every query about users, sessions and tokens."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import ApiToken, User, WebSession


def user_by_login(s: Session, login: str) -> User | None:
    """Return the user of a login, upper and lower case alike."""
    return s.execute(select(User).where(func.lower(User.login) == login.strip().lower())).scalar_one_or_none()


def user(s: Session, user_id: str) -> User | None:
    """Return a user by id."""
    return s.get(User, user_id)


def all_users(s: Session) -> list[User]:
    """Return all users by login."""
    return list(s.execute(select(User).order_by(User.login)).scalars())


def session_by_hash(s: Session, token_sha256: str) -> tuple[WebSession, User] | None:
    """Return a sign-in and its user."""
    row = s.execute(select(WebSession, User).join(User, User.id == WebSession.user_id).where(WebSession.token_sha256 == token_sha256)).one_or_none()
    return (row[0], row[1]) if row else None


def tokens_of(s: Session, user_id: str) -> list[ApiToken]:
    """Return the API tokens of a user, the newest first."""
    return list(s.execute(select(ApiToken).where(ApiToken.user_id == user_id).order_by(ApiToken.created_at.desc(), ApiToken.id.desc())).scalars())


def token_by_id(s: Session, token_id: str) -> tuple[ApiToken, User] | None:
    """Return an API token and its user."""
    row = s.execute(select(ApiToken, User).join(User, User.id == ApiToken.user_id).where(ApiToken.id == token_id)).one_or_none()
    return (row[0], row[1]) if row else None
