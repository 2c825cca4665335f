"""The words for what should not be."""

from __future__ import annotations

from dataclasses import dataclass

LOST, DOUBLED, WRONG = "lost", "doubled", "wrong verdict"


@dataclass(frozen=True)
class Finding:
    """One thing that should not be: which kind, and the sentence."""

    kind: str
    text: str
