"""The scheduler of beat, by the monotonic clock: Celery's own goes by the wall clock, and one that is set back by hours sends nothing for as long."""

from __future__ import annotations

import time
from typing import Any

from celery.beat import Scheduler


class Steady(Scheduler):  # type: ignore[misc]
    """Sends every entry of the schedule once an interval, from its start on, whatever becomes of the wall clock."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self._due: dict[str, float] = {}  # by name of the entry: when it is sent next
        super().__init__(*args, **more)

    def tick(self, *_: Any, **__: Any) -> float:
        """Send what is due and return the seconds until the next look."""
        for name, entry in self.schedule.items():
            if self._due.get(name, 0.0) <= (now := time.monotonic()):
                self._due[name] = now + entry.schedule.run_every.total_seconds()
                self.apply_entry(entry, producer=self.producer)
        most: float = self.max_interval
        return min(most, max(0.0, min(self._due.values()) - time.monotonic()))
