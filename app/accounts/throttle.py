"""Slow down the guessing of passwords: five free tries for a login, then a delay that doubles up to 15 minutes, never a lock.

A login that does not exist is counted in the same way. Beside it, a count over all logins slows down one who tries many.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.accounts.models import SignInThrottle
from app.kit.clock import now

FREE_TRIES = 5
FREE_TRIES_OF_ALL = 200
FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(minutes=15)
LONGEST_DELAY_OF_ALL = timedelta(seconds=10)  # an outsider must not be able to keep everybody out
FORGOTTEN_AFTER = timedelta(hours=24)
_ALL = "*"


def key_of(login: str) -> str:
    """Return the key of a login."""
    return hashlib.sha256(login.strip().lower().encode()).hexdigest()


def delay(failures: int, free: int = FREE_TRIES, longest: timedelta = LONGEST_DELAY) -> timedelta:
    """Return how long the next try must wait after so many failures: 0 for the free ones, then 1, 2, 4... seconds."""
    if failures < free:
        return timedelta(0)
    doublings = min(failures - free, 20)  # far beyond the longest delay; keeps the power small
    return min(FIRST_DELAY * (1 << doublings), longest)


def wait_for(s: Session, login: str) -> timedelta:
    """Return how long this login must still wait; 0 when it may try."""
    at = now()
    rows = [row for key in (key_of(login), _ALL) if (row := s.get(SignInThrottle, key, populate_existing=True))]
    return max((row.blocked_until - at for row in rows if row.blocked_until and row.blocked_until > at), default=timedelta(0))


def count_failure(s: Session, login: str) -> None:
    """Count one failure for the login and for all; forget what is a day old."""
    at = now()
    s.execute(delete(SignInThrottle).where(SignInThrottle.last_at < at - FORGOTTEN_AFTER))
    _count(s, key_of(login), at, FREE_TRIES, LONGEST_DELAY)
    _count(s, _ALL, at, FREE_TRIES_OF_ALL, LONGEST_DELAY_OF_ALL)


def forget(s: Session, login: str) -> None:
    """Start afresh after a good sign-in."""
    s.execute(delete(SignInThrottle).where(SignInThrottle.key == key_of(login)))


def _count(s: Session, key: str, at: datetime, free: int, longest: timedelta) -> None:
    row = s.get(SignInThrottle, key, populate_existing=True)
    if row is None:
        row = SignInThrottle(key=key, failures=0, last_at=at)
        s.add(row)
    if key == _ALL and at - row.last_at > timedelta(minutes=10):
        row.failures = 0  # a quiet spell: what happens now is not the same attack
    row.failures += 1
    row.last_at = at
    row.blocked_until = at + delay(row.failures, free, longest)
    s.flush()
