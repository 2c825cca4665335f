"""The external tier: KV blocks as real files, read and written for real; what the medium behind them would take is modelled.

A block that the page cache holds costs nothing, as from memory. Any other is read from the disk and takes, besides, its bytes at the
bandwidth of the medium, one after the other.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import threading
from dataclasses import dataclass, field
from typing import List, Optional, Sequence

from . import kv
from .clock import Serial
from .config import Config, Tier
from .faults import Defects

SUFFIX = ".kv"

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
_MAP_FAILED = ctypes.c_void_p(-1).value


@dataclass
class Loaded:
    """What a read of leading blocks brought: fingerprints of the content, and where the bytes came from."""

    fingerprints: List[bytes] = field(default_factory=list)
    medium_bytes: int = 0  # past every cache
    array_bytes: int = 0  # from the cache of the storage
    memory_bytes: int = 0  # from the page cache of this host
    failures: int = 0  # blocks that were there and could not be read in full


class ArrayStats:
    """The storage's own counters, in a file of fixed width that is rewritten in place, so that no reader sees half of it.

    The file is the storage: several instances on it add to the same counts, one after the other.
    """

    def __init__(self, path: str, counters: Sequence[str] = ()) -> None:
        self._counters = json.dumps(dict.fromkeys(counters, 0))
        self.host_read = 0
        self.media_read = 0
        self._lock = threading.Lock()
        self._descriptor: Optional[int] = None
        if path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            self.add(0, 0)

    def _go_on(self, text: bytes) -> None:
        """Go on counting where the file stands: the storage does not restart with the engine."""
        try:
            known = json.loads(text)
            self.host_read, self.media_read = int(known["host_read_bytes"]), int(known["media_read_bytes"])
        except (ValueError, KeyError, TypeError):
            self.host_read = self.media_read = 0

    def add(self, host: int, media: int) -> None:
        """Count bytes that the host read, and those of them that came from the media."""
        if self._descriptor is None:
            return
        with self._lock:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                self._go_on(os.pread(self._descriptor, 4096, 0))
                self.host_read += host
                self.media_read += media
                line = f'{{"host_read_bytes": {self.host_read:20d}, "media_read_bytes": {self.media_read:20d}, "counters": {self._counters}}}\n'
                os.pwrite(self._descriptor, line.encode(), 0)
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)


class ExternalTier:
    """A directory of KV blocks. `load` and `store` block; they are called from threads."""

    def __init__(self, config: Config, tier: Tier, defects: Defects) -> None:
        self._config = config
        self._tier = tier
        self._defects = defects
        self._bus = Serial()
        self._rate = tier.read_bytes_per_s * max(0.01, 1.0 - config.faults.tier_slowdown)
        self._array_rate = tier.array.cache_bytes_per_s or 4.0 * tier.read_bytes_per_s
        self._stats = ArrayStats(tier.array.stats_path, tier.array.counters)
        os.makedirs(tier.path, exist_ok=True)

    def path(self, key: str) -> str:
        """Return the file of a block."""
        return os.path.join(self._tier.path, key + SUFFIX)

    def load(self, keys: Sequence[str]) -> Loaded:
        """Read the leading blocks that are there. The first missing or unreadable one ends it: KV is of use only without a gap."""
        loaded = Loaded()
        opened = self._open(keys)
        try:
            probes = [_from_page_cache(descriptor, self._config.block_bytes) for descriptor in opened]
            for key, descriptor, cached in zip(keys, opened, probes):
                data = cached or _read(descriptor, self._config.block_bytes)
                if data is None:
                    loaded.failures += 1
                    break
                self._count(loaded, key, len(data), cached is not None)
                loaded.fingerprints.append(kv.fingerprint(data))
        finally:
            for descriptor in opened:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # nothing that was read stays behind, so it is cold the next time too
                os.close(descriptor)
        self._stats.add(loaded.medium_bytes + loaded.array_bytes, loaded.medium_bytes)
        return loaded

    def done_at(self, loaded: Loaded, ready: float, factor: float) -> float:
        """Return when the transfer ends that was ready to begin at `ready` (monotonic seconds); it waits for those before it."""
        seconds = loaded.medium_bytes / self._rate + loaded.array_bytes / self._array_rate
        return self._bus.reserve(ready, seconds * factor) if seconds else ready

    def store(self, keys: Sequence[str], blocks: Sequence[bytes]) -> int:
        """Write blocks that are not there yet; a file has its name only when it is whole. Return the bytes written."""
        written = 0
        for key, data in zip(keys, blocks):
            path = self.path(key)
            if os.path.exists(path):
                continue
            if self._defects.hits("corrupt_kv", key):
                middle = len(data) // 2
                data = data[:middle] + bytes(255 - b for b in data[middle : middle + 16]) + data[middle + 16 :]
            temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
            self._write(temporary, data)
            os.rename(temporary, path)
            written += len(data)
        return written

    def _write(self, path: str, data: bytes) -> None:
        """Write past the page cache, as tiers do whose reads shall come from the medium; through it where the file system allows no other."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        if len(data) % mmap.PAGESIZE == 0:
            try:
                descriptor = os.open(path, flags | os.O_DIRECT, 0o644)
            except OSError:
                descriptor = os.open(path, flags, 0o644)
        else:
            descriptor = os.open(path, flags, 0o644)
        try:
            with mmap.mmap(-1, len(data)) as aligned:  # a direct write wants aligned memory
                aligned.write(data)
                if os.write(descriptor, memoryview(aligned)) != len(data):
                    raise OSError(f"{path} could not be written in full")
        finally:
            os.close(descriptor)

    def _open(self, keys: Sequence[str]) -> List[int]:
        opened: List[int] = []
        for key in keys:
            path = self.path(key)
            try:
                if self._defects.hits("lost_kv", key):
                    os.unlink(path)
                    break
                opened.append(os.open(path, os.O_RDONLY))
            except OSError:
                break
        return opened

    def _count(self, loaded: Loaded, key: str, size: int, in_memory: bool) -> None:
        if in_memory:
            loaded.memory_bytes += size
        elif _share_of(key) < self._tier.array.cache_share:
            loaded.array_bytes += size
        else:
            loaded.medium_bytes += size


def _share_of(key: str) -> float:
    """Return a number in [0, 1) that belongs to a key."""
    return int(key[:8], 16) / 4294967296.0


def _from_page_cache(descriptor: int, size: int) -> Optional[bytearray]:
    """Return the content when the page cache holds all of it, else None.

    mincore only looks. A read that must not wait (RWF_NOWAIT) starts the transfer and, from a fast disk, may return what it has just
    fetched: a cold block would pass for a warm one.
    """
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, _MAP_FAILED):
        return None
    try:
        pages = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
        if _libc.mincore(address, size, pages) != 0 or not all(page & 1 for page in pages):
            return None
    finally:
        _libc.munmap(address, size)
    return _read(descriptor, size)


def _read(descriptor: int, size: int) -> Optional[bytearray]:
    """Return the whole content, or None when the file is shorter or cannot be read."""
    data = bytearray(size)
    try:
        return data if os.preadv(descriptor, [data], 0) == size else None
    except OSError:
        return None
