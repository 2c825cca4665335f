"""The report in both languages. A failure here is an error with a retry; it never touches the verdict."""

from __future__ import annotations

from app.engine import words
from app.engine.context import Ctx
from app.engine.outcome import Outcome, done, failed
from app.engine.steps import halt
from app.kit.db import write_session
from app.kit.errors import QuadgateError
from app.reports import usecases


def move(ctx: Ctx) -> Outcome:
    """End what a stop-loss leaves behind, then render one language a move, so that no move takes long; what is rendered already is left alone."""
    if (stopping := halt.move(ctx)) is not None:
        return stopping
    memo = dict(ctx.current.result or {})
    made: dict[str, str] = dict(memo.get("reports") or {})
    for language in usecases.LANGUAGES:
        if language in made:
            continue
        try:
            made[language] = usecases.render(write_session, attempt_id=ctx.attempt.id, language=language).id
        except QuadgateError as error:
            return failed(words.reports_failed(error.pair()), result={**memo, "reports": made})
        return Outcome(step={"status": "running", "result": {**memo, "reports": made}, "problem": None})
    return done(result={**memo, "reports": made}, problem=(memo.get(halt.HALT) or {}).get("problem"))
