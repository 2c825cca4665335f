"""Percentiles of any number of durations in bounded memory: a soak of 72 h sees 26 million ticks."""

from __future__ import annotations

from typing import Dict

_BITS = 6  # 64 steps within a power of two: an upper edge is at most 1.6 % above the value


class Histogram:
    """Counts of non-negative integers (ns). Percentiles are upper edges, so a figure is never flattered."""

    def __init__(self) -> None:
        self.count = 0
        self.max = 0
        self._buckets: Dict[int, int] = {}

    def add(self, value: int) -> None:
        """Count one value."""
        self.count += 1
        if value > self.max:
            self.max = value
        shift = value.bit_length() - _BITS - 1
        edge = value if shift <= 0 else ((value >> shift) + 1 << shift) - 1
        self._buckets[edge] = self._buckets.get(edge, 0) + 1

    def merge(self, other: Histogram) -> None:
        """Add all values of another one."""
        self.count += other.count
        self.max = max(self.max, other.max)
        for edge, n in other._buckets.items():
            self._buckets[edge] = self._buckets.get(edge, 0) + n

    def percentile(self, share: float) -> int:
        """Return the nearest-rank percentile (its upper edge, at most the maximum), 0 for none."""
        rank, seen = -(-int(share * 1_000_000) * self.count // 1_000_000), 0
        for edge in sorted(self._buckets):
            seen += self._buckets[edge]
            if seen >= rank:
                return min(edge, self.max)
        return self.max

    def by_digits(self) -> Dict[str, int]:
        """Return {binary digits: how many values have so many}: coarse, but it says of every percentile in which power of two it lies."""
        out: Dict[str, int] = {}
        for edge in sorted(self._buckets):
            digits = str(edge.bit_length())
            out[digits] = out.get(digits, 0) + self._buckets[edge]
        return out
