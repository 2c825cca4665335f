"""A prompt as it came over the wire: token ids in decimal, joined by commas, cut into blocks without turning them into numbers.

Turning 30,000 texts into numbers costs more than all the rest of a request, and a simulated engine needs the tokens only to tell
prompts apart.
"""

from __future__ import annotations

from typing import List, Optional

_WIDEST = 10


class Prompt:
    """Token ids, `count` of them. `text` holds decimal ids joined by commas, nothing else."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._width = next((w for w in range(1, _WIDEST) if _uniform(text, w)), 0)
        self._parts: Optional[List[bytes]] = None if self._width else text.split(b",")
        self.count = len(text) // (self._width + 1) + 1 if self._parts is None else len(self._parts)

    def slice(self, start: int, end: int) -> bytes:
        """Return the tokens from `start` up to `end`, in decimal, joined by commas."""
        if self._parts is not None:
            return b",".join(self._parts[start:end])
        step = self._width + 1
        return self._text[start * step : max(0, min(end, self.count) * step - 1)]

    @property
    def whole(self) -> bool:
        """Tell whether every token has a digit."""
        return bool(self._width) or all(self._parts or [])


def _uniform(text: bytes, width: int) -> bool:
    """Tell whether all ids have `width` digits: then a cut is arithmetic."""
    step = width + 1
    return (len(text) + 1) % step == 0 and text.count(b",") == len(text) // step and text[width::step].count(b",") == len(text) // step
