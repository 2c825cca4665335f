"""Logs of the long-running parts: one line an event, as text or JSON, each with the attempt, step or request it is about.

The code logs through the standard library (`log.info("attempt %s ...")`); what a line is about is bound once, by `about`, and stands in
every line until the block ends. Secrets never get here: they are redacted where they are captured (engine/redact.py).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import structlog

from app.kit import traces

QUIET = ("celery", "kombu", "amqp", "alembic", "sqlalchemy", "asyncio", "fontTools")  # a line for each tick helps nobody
_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    traces.in_log,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure(form: str, *, level: int = logging.INFO) -> None:
    """Send every logger, warning and uncaught error of this process to standard error, as `text` or `json`. QUADGATE_LOG=debug shows all of it."""
    if os.environ.get("QUADGATE_LOG") == "debug":
        level = logging.DEBUG
    as_json = form == "json"
    # A plain trace: the default one prints the local variables of every frame, and a password may be among them.
    text = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback)
    end: list[Any] = [structlog.processors.JSONRenderer(ensure_ascii=False) if as_json else text]
    trace: list[Any] = [structlog.processors.format_exc_info] if as_json else []
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_SHARED, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *trace, *end]
    )
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in list(logging.root.manager.loggerDict):  # who brought handlers of its own hands its lines on instead
        logger = logging.getLogger(name)
        if logger.handlers or not logger.propagate:
            logger.handlers.clear()
            logger.propagate = True
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write down what ends this process or a thread of it, in the form of every other line."""
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        logging.getLogger("quadgate").critical("ended by an error that nothing caught", exc_info=(kind, error, trace))


@contextmanager
def about(**what: Any) -> Iterator[None]:
    """Let every line that is logged inside say what it is about, e.g. `about(attempt=..., step=...)`."""
    with structlog.contextvars.bound_contextvars(**{key: value for key, value in what.items() if value is not None}):
        yield
