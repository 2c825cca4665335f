"""How much of a folder is in the page cache, asked without bringing anything in: a read that may not wait and leaves nothing."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def resident_share(folder: Path) -> float:
    """Return resident pages over all pages of the files of a folder (mincore)."""
    pages = resident = 0
    for path in folder.iterdir():
        size = path.stat().st_size
        if not size:
            continue
        descriptor = os.open(path, os.O_RDONLY)
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        vector = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
        assert _libc.mincore(address, size, vector) == 0
        _libc.munmap(address, size)
        os.close(descriptor)
        pages += len(vector)
        resident += sum(value & 1 for value in vector)
    return resident / pages
