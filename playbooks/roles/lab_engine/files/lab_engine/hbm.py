"""The KV memory of the GPU: a number of blocks, a prefix cache of the least recently used kind, and admission by free blocks."""

from __future__ import annotations

from collections import OrderedDict
from typing import Dict, List, Sequence


class Hbm:
    """Blocks of KV memory. A cached block stays until its room is needed; a block that a request holds is never taken."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self._cached: "OrderedDict[str, bytes]" = OrderedDict()  # key -> fingerprint of the content
        self._held: Dict[str, int] = {}
        self._reserved = 0  # blocks promised to running requests and not yet in the cache

    @property
    def usage(self) -> float:
        """Return the share of blocks that running requests hold (cached but idle blocks count as free, as in vLLM)."""
        return (len(self._held) + self._reserved) / self.blocks

    def hits(self, keys: Sequence[str]) -> List[bytes]:
        """Return the fingerprints of the leading blocks that are cached."""
        found = []
        for key in keys:
            if key not in self._cached:
                break
            found.append(self._cached[key])
        return found

    def admit(self, keys: Sequence[str], blocks: int) -> bool:
        """Hold the cached blocks `keys` and reserve `blocks` new ones; False, and nothing changed, when there is no room."""
        new_holds = sum(1 for key in keys if key not in self._held)
        if len(self._held) + new_holds + self._reserved + blocks > self.blocks:
            return False
        for key in keys:
            self._hold(key)
        self._reserved += blocks
        idle = (key for key in list(self._cached) if key not in self._held)
        while len(self._cached) + self._reserved > self.blocks:
            del self._cached[next(idle)]
        return True

    def put(self, key: str, fingerprint: bytes) -> bool:
        """Turn one reserved block into a cached one that the caller holds. False when somebody cached it meanwhile."""
        if key in self._cached:
            self._hold(key)
            return False
        self._reserved -= 1
        self._cached[key] = fingerprint
        self._hold(key)
        return True

    def release(self, keys: Sequence[str], blocks: int) -> None:
        """Give back held blocks, which stay cached, and reserved ones."""
        self._reserved -= blocks
        for key in reversed(keys):  # the end of a prefix goes first
            left = self._held[key] - 1
            if left:
                self._held[key] = left
            else:
                del self._held[key]
                self._cached.move_to_end(key)

    def reset(self) -> bool:
        """Forget the prefix cache; refused while requests run."""
        if self._held or self._reserved:
            return False
        self._cached.clear()
        return True

    def _hold(self, key: str) -> None:
        self._held[key] = self._held.get(key, 0) + 1
