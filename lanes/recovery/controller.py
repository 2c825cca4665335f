"""A controller of one attempt in a process of its own, so that it can be killed: `python -m lanes.recovery.controller ATTEMPT`.

The engine moves the attempt when it is due, as a worker does on the word of the tick, and its playbooks are the shipped ones in real playbook
hosts. Only its intervals are shorter, and it keeps every line of a journal, so that each can be held against the target's own.
"""

from __future__ import annotations

import sys
import time

from lanes.chaos import scaled

# Before whoever uses the intervals is imported. No broker brings the nudge of a host here, and a soak of seconds is asked as often as one of days.
scaled.SHORT.update(POLL_WATCH_S=0.2, SOAK_POLL_MIN_S=0.5, SOAK_POLL_MAX_S=0.5)
scaled.shorten()

from app.attempts.models import Attempt  # noqa: E402
from app.engine.advance import advance  # noqa: E402
from app.kit.db import database_now, read_session  # noqa: E402

OVER = ("finished", "canceled")
LOOK_S = 0.1


def main(attempt_id: str) -> None:
    """Move the attempt until it is over; in an error it waits for a person."""
    while True:
        with read_session() as s:
            attempt, now = s.get_one(Attempt, attempt_id), database_now(s)
        if attempt.status in OVER:
            return
        if attempt.next_due_at is not None and attempt.next_due_at <= now:
            advance(attempt_id, attempt.generation)
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main(sys.argv[1])
