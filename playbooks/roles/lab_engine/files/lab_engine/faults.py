"""Defects, each with a strength where 0 means none. Which request or file is hit follows from the seed, so that a run can be repeated."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import List

from .config import Config

READ_AHEAD_S = 0.2  # between two sweeps


def chosen(name: str, seed: int, key: str, share: float) -> bool:
    """Tell whether a defect hits this key: a share of all keys, the same ones at each start."""
    if share <= 0:
        return False
    digest = hashlib.blake2b(f"{name}|{seed}|{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2.0**64


class Defects:
    """The defects of one engine process that live over its requests: leak, crash, drift, read-ahead."""

    def __init__(self, config: Config, started: float) -> None:
        self._config = config
        self._faults = config.faults
        self._started = started
        self._leaked: List[bytearray] = []
        self._loads = 0

    def slowness(self, now: float) -> float:
        """Return the factor on every duration at this time (seconds of the monotonic clock)."""
        return 1.0 + self._faults.drift_per_s * (now - self._started)

    def hits(self, name: str, key: str) -> bool:
        """Tell whether the share `<name>_share` of the configuration hits this key."""
        return chosen(name, self._config.seed, key, getattr(self._faults, name + "_share"))

    def request_served(self, loaded: bool) -> None:
        """Leak and crash, when this engine does."""
        if self._faults.leak_bytes_per_request:
            self._leaked.append(bytearray(b"\1") * self._faults.leak_bytes_per_request)
        self._loads += 1 if loaded else 0
        if self._faults.crash_after_loads and self._loads >= self._faults.crash_after_loads and not self._crashed_before():
            os._exit(134)

    def _crashed_before(self) -> bool:
        """Tell whether this has happened already, and note that it has now."""
        if not self._config.state_path:
            return False
        try:
            os.close(os.open(self._config.state_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return True
        return False

    def start_read_ahead(self) -> None:
        """Keep bringing a share of the tier's files into the page cache, from the start on."""
        if self._config.tier is None or self._faults.read_ahead_share <= 0:
            return
        threading.Thread(target=self._read_ahead, args=(self._config.tier.path,), daemon=True).start()

    def _read_ahead(self, folder: str) -> None:
        pause = threading.Event()
        while True:
            for name in os.listdir(folder):
                if self.hits("read_ahead", name):
                    try:
                        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
                    except OSError:
                        continue
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
                    os.close(descriptor)
            pause.wait(READ_AHEAD_S)
