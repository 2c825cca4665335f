"""A tick every 10 ms from the kernel, and how late we were to notice it: the loop's own lag, honest to microseconds.

`epoll` in Python rounds its timeout up to milliseconds; a timerfd does not, and its number of expirations shows missed ticks too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from typing import Any

from probe.clock import mono_ns
from probe.histogram import Histogram

PERIOD_NS = 10_000_000
_CLOCK_MONOTONIC, _TFD_TIMER_ABSTIME, _FLAGS = 1, 1, os.O_NONBLOCK | os.O_CLOEXEC


class _Spec(ctypes.Structure):
    _fields_ = [("interval_s", ctypes.c_long), ("interval_ns", ctypes.c_long), ("value_s", ctypes.c_long), ("value_ns", ctypes.c_long)]


class Ticker:
    """A timerfd with its account of lateness."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._next = mono_ns() + PERIOD_NS
        spec = _Spec(0, PERIOD_NS, self._next // 1_000_000_000, self._next % 1_000_000_000)
        libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None)
        self.lags = Histogram()

    def read(self) -> None:
        """Take the tick and note how late the earliest untaken one is noticed."""
        try:
            expired = int.from_bytes(os.read(self.fd, 8), sys.byteorder)
        except BlockingIOError:
            return
        self.lags.add(max(0, mono_ns() - self._next))
        self._next += expired * PERIOD_NS

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


class Alarm:
    """A timerfd that goes off once, at a moment of CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def set(self, at_ns: int) -> None:
        """Go off at `at_ns`; a moment that has passed goes off at once."""
        at_ns = max(1, at_ns)  # 0 would disarm it
        spec = _Spec(0, 0, at_ns // 1_000_000_000, at_ns % 1_000_000_000)
        self._libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None)

    def read(self) -> None:
        """Take the event."""
        with suppress(BlockingIOError):
            os.read(self.fd, 8)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)
