"""Passwords: argon2id, at most two hashes at once, since each takes 64 MiB."""

from __future__ import annotations

import threading
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_

SHORTEST, LONGEST = 12, 256
_HASHER = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1)
_TURN = threading.BoundedSemaphore(2)  # without it, many sign-ins at once would take the machine's memory


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password (64 MiB, 3 passes, one lane)."""
    with _TURN:
        return _HASHER.hash(password)


def matches(password: str, password_hash: str | None) -> bool:
    """Tell whether a password fits a hash. Without a hash the work is done all the same, so that time tells nothing."""
    with _TURN:
        try:
            return _HASHER.verify(password_hash or _nobody(), password) and password_hash is not None
        except (VerificationError, InvalidHashError):
            return False


def outdated(password_hash: str) -> bool:
    """Tell whether a hash was made with other costs than today's, so that a sign-in should renew it."""
    return _HASHER.check_needs_rehash(password_hash)


def check_new(password: str, login: str, pointer: str = "/password") -> None:
    """Refuse a new password that is too short, too long or holds the login.

    Raises BadInput with one sentence that never repeats the password.
    """
    problem = None
    if not SHORTEST <= len(password) <= LONGEST:
        problem = FieldProblem(pointer, N_("The password needs {low} to {high} characters."), {"low": SHORTEST, "high": LONGEST})
    elif login.lower() in password.lower() or len(set(password)) < 5:
        problem = FieldProblem(pointer, N_("The password is too easy to guess: it holds the login or repeats few characters."))
    if problem:
        raise BadInput("weak_password", N_("This password cannot be used."), [problem])


@lru_cache(maxsize=1)
def _nobody() -> str:
    """Return a hash that belongs to nobody, made with the same costs."""
    return _HASHER.hash("nobody's password")
