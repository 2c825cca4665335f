"""Keeping a lease while work takes longer than it lasts: renewed every third of it from beside the work, and given up when somebody else has it."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.attempts.models import Attempt
from app.engine.claim import Claim, renew
from app.kit import alive
from app.kit.db import read_session
from app.settings import settings

log = logging.getLogger("quadgate.engine")
THIRDS = 3.0
JOIN_S = 5.0
LOOK_S = 2.0  # between two looks for a cancel: most moves are over before the first


class LeaseLost(Exception):  # noqa: N818 - no error: somebody else goes on with the attempt
    """The lease is somebody else's: what was worked out here is thrown away."""


class CancelAsked(LeaseLost):
    """A cancel was asked for while the work went on: it is given up, so that the cancel does not wait for its end."""


class Keeping:
    """A context in which a lease is renewed. `check` is asked at every piece of a long work."""

    def __init__(self, held: Claim) -> None:
        self._held = held
        self._over, self._lost = threading.Event(), threading.Event()
        self._watched, self._canceled = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Keeping:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(JOIN_S)

    def watch_for_cancel(self) -> None:
        """Let `check` tell of a cancel from now on: whoever carries one out himself does not ask for it."""
        self._watched.set()

    def check(self) -> None:
        """Return while the lease is ours as far as anybody knows, and nobody wants the attempt canceled. Raises LeaseLost or CancelAsked."""
        if self._lost.is_set():
            raise LeaseLost(f"attempt {self._held.attempt_id}, generation {self._held.generation}: somebody else has the lease")
        if self._canceled.is_set():
            raise CancelAsked(f"attempt {self._held.attempt_id}, generation {self._held.generation}: a cancel was asked for")

    def _renew(self) -> None:
        third = settings().lease_seconds / THIRDS
        due = time.monotonic() + third
        while not self._over.wait(min(LOOK_S, max(0.0, due - time.monotonic()))):
            self._look_for_cancel()
            if time.monotonic() < due:
                continue
            due = time.monotonic() + third
            try:
                ours = renew(self._held)
            except SQLAlchemyError as error:  # busy or away: the next time; whether it is still ours is told by the row alone
                log.warning("attempt %s: its lease was not renewed (%s); tried again", self._held.attempt_id, type(error).__name__)
                continue
            if not ours:
                self._lost.set()
                return
            alive.touch()  # long work is work

    def _look_for_cancel(self) -> None:
        if not self._watched.is_set() or self._canceled.is_set():
            return
        try:
            with read_session() as s:
                asked = s.scalar(select(Attempt.cancel_requested_at).where(Attempt.id == self._held.attempt_id))
        except SQLAlchemyError:
            return  # the next look is soon
        if asked is not None:
            self._canceled.set()
