"""Where a fault may strike."""

from __future__ import annotations

import random
from dataclasses import dataclass

import redis

from app.up.broker import socket_path
from lanes.chaos.fleet import Fleet
from lanes.chaos.soak import Soak


@dataclass
class Strike:
    """Where a fault may strike: the fleet, one of its open attempts that stands at a boundary, and the dice."""

    fleet: Fleet
    soak: Soak | None
    dice: random.Random
    whose: tuple[str, ...] = ()  # attempts that were struck, where it was not the whole service
    how: str = ""  # what is told of it in place of where it struck

    def broker(self) -> redis.Redis:
        """Return a client of the broker."""
        return redis.Redis(unix_socket_path=str(socket_path(self.fleet.folder)), socket_timeout=3)
