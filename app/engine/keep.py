"""Keeping a lease while work takes longer than it lasts: renewed every third of it from beside the work, and given up when somebody else has it."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from sqlalchemy.exc import SQLAlchemyError

from app.engine.claim import Claim, renew
from app.kit import alive
from app.settings import settings

log = logging.getLogger("quadgate.engine")
THIRDS = 3.0
JOIN_S = 5.0


class LeaseLost(Exception):  # noqa: N818 - no error: somebody else goes on with the attempt
    """The lease is somebody else's: what was worked out here is thrown away."""


class Keeping:
    """A context in which a lease is renewed. `check` is asked at every piece of a long work."""

    def __init__(self, held: Claim) -> None:
        self._held = held
        self._over, self._lost = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Keeping:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(JOIN_S)

    def check(self) -> None:
        """Return while the lease is ours as far as anybody knows. Raises LeaseLost."""
        if self._lost.is_set():
            raise LeaseLost(f"attempt {self._held.attempt_id}, generation {self._held.generation}: somebody else has the lease")

    def _renew(self) -> None:
        while not self._over.wait(settings().lease_seconds / THIRDS):
            try:
                ours = renew(self._held)
            except SQLAlchemyError as error:  # busy or away: the next time; whether it is still ours is told by the row alone
                log.warning("attempt %s: its lease was not renewed (%s); tried again", self._held.attempt_id, type(error).__name__)
                continue
            if not ours:
                self._lost.set()
                return
            alive.touch()  # long work is work
