"""The hand-made data of the pages' tests has the shape of the real use cases: a page can never be seen with data that the service does not make."""

from __future__ import annotations

from typing import Any

from app.attempts.usecases import attempt_view
from app.engagements.views import board, overview
from app.kit.db import write_session
from tests.integration import web_data as made
from tests.people import Cast
from tests.scenes import engage, run


def _shape(name: str, real: Any, made: Any) -> list[str]:
    """Return the places where one of both has a key that the other lacks; lists are held by their first entries."""
    if isinstance(real, dict) and isinstance(made, dict):
        odd = [f"{name}.{key}" for key in sorted(real.keys() ^ made.keys())]
        return odd + [line for key in sorted(real.keys() & made.keys()) for line in _shape(f"{name}.{key}", real[key], made[key])]
    if isinstance(real, list) and isinstance(made, list) and real and made:
        return _shape(f"{name}[0]", real[0], made[0])
    return []


# What differs by content, not by shape: parameters of a step, words of an engagement file, figures of a verdict.
FREE = (".params", ".targets", ".halted", ".verdict.", ".calendar", ".error.params", "figures", "document")


def _held(name: str, real: Any, made: Any) -> list[str]:
    return [line for line in _shape(name, real, made) if not any(part in line for part in FREE)]


def test_the_hand_made_attempt_has_the_keys_of_a_real_one(cast: Cast) -> None:
    with write_session() as s:
        attempt = run(s, cast, engage(s, cast), "G1")
        real = attempt_view(s, attempt_id=attempt.id, actor=cast.li_wei)
    assert _held("attempt", real, made.attempt()) == []


def test_the_hand_made_board_and_engagement_have_the_keys_of_real_ones(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        assert _held("item", board(s, actor=cast.li_wei)[0], made.item()) == []
        held = _held("overview", overview(s, engagement_id=engagement.id, actor=cast.li_wei), made.overview())
        assert not held, " ".join(held)
