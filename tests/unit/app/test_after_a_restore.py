"""What a restore says at its end: what is to be done next, in order, and only what is so."""

from __future__ import annotations

import pytest

from app.commands.restore import what_next
from app.ops.restore import Restored

NONE = Restored(7, [], "12:sha256:ab", "2026-11-29T08:00:00.000Z", "old-machine", credentials=True)


def test_the_old_controller_comes_first_then_keys_then_the_start_then_the_proof() -> None:
    told = what_next(Restored(7, ["a"], "12:sha256:ab", "2026-11-29T08:00:00.000Z", "old-machine", credentials=False))
    assert [
        word
        for text, word in zip(told, ("old-machine", "credentials", "quadgate up", "quadgate audit verify --anchor 12:sha256:ab"), strict=True)
        if word in text.en and word in text.zh
    ] == ["old-machine", "credentials", "quadgate up", "quadgate audit verify --anchor 12:sha256:ab"]
    assert "until this one has asked a target for the first time" in told[0].en


@pytest.mark.parametrize("half", ["en", "zh"])
def test_nothing_is_told_of_targets_when_nothing_goes_on_nor_of_keys_that_came_with_the_backup(half: str) -> None:
    told = [getattr(text, half) for text in what_next(NONE)]
    assert len(told) == 3
    assert "credentials" not in " ".join(told)
    assert "obeys" not in told[0]
    assert "2026-11-29 08:00:00 UTC" in told[0]
