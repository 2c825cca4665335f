"""Users, their sessions and their API tokens. A user belongs to exactly one party."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class User(Base):
    """A person. `roles` holds names of `app.accounts.roles.Role`: admin, engineer, approver, viewer."""

    __tablename__ = "user_account"
    id: Mapped[str] = id_column()
    login: Mapped[str] = mapped_column(String(80), unique=True)
    name: Mapped[str] = mapped_column(String(120))
    title: Mapped[str] = mapped_column(String(120), default="")
    party: Mapped[str] = mapped_column(String(16))  # vendor | customer
    roles: Mapped[list[Any]]
    password_hash: Mapped[str] = mapped_column(String(255))
    locale: Mapped[str] = mapped_column(String(16), default="zh_CN")
    active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class WebSession(Base):
    """A sign-in. The cookie's value is kept only as its SHA-256."""

    __tablename__ = "web_session"
    id: Mapped[str] = id_column()
    token_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    csrf_token: Mapped[str] = mapped_column(String(64))
    user_id: Mapped[str] = mapped_column(ForeignKey("user_account.id"))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ApiToken(Base):
    """A token of the REST API, shown once and kept as its SHA-256. It can never approve anything."""

    __tablename__ = "api_token"
    id: Mapped[str] = id_column()
    token_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("user_account.id"))
    name: Mapped[str] = mapped_column(String(80))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class SignInThrottle(Base):
    """Failed sign-ins under one login, known or not, so that both look the same. `key` is a hash: a login may be a mistyped password."""

    __tablename__ = "sign_in_throttle"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    failures: Mapped[int] = mapped_column(default=0)
    blocked_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_at: Mapped[datetime] = mapped_column(UtcDateTime)
