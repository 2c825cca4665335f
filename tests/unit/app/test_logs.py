"""A line of the log says what it is about, in a form that people or machines can read."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest

from app.kit import logs


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook
    yield
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_lines_carry_the_attempt_and_the_step_and_nothing_of_the_line_before(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    with logs.about(attempt="0197-a", step="run-1", gate=None):
        logging.getLogger("quadgate.engine").info("moved %s", "on")
    logging.getLogger("quadgate.engine").warning("alone")
    first, second = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (first["event"], first["attempt"], first["step"], first["level"], first["logger"]) == (
        "moved on",
        "0197-a",
        "run-1",
        "info",
        "quadgate.engine",
    )
    assert "gate" not in first
    assert "timestamp" in first
    assert "attempt" not in second


def test_an_error_keeps_its_trace_on_one_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    try:
        raise ValueError("说不清")
    except ValueError:
        logging.getLogger("quadgate.web").exception("request failed")
    line = json.loads(capsys.readouterr().err)
    assert "ValueError: 说不清" in line["exception"]


def test_text_lines_say_the_same_to_people_and_chatter_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text")
    logging.getLogger("celery.worker").info("received a task")
    with logs.about(attempt="0197-a"):
        logging.getLogger("quadgate.engine").info("start")
    shown = capsys.readouterr().err
    assert "attempt=0197-a" in shown
    assert "received" not in shown


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_trace_names_the_line_and_never_the_variables(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(form)
    password = "marzipan-" + "canary-4711"
    try:
        raise ValueError(len(password))
    except ValueError:
        logging.getLogger("quadgate.test").exception("it failed")
    said = capsys.readouterr().err
    assert ("test_logs.py" in said, "marzipan-canary-4711" in said) == (True, False)


def test_warnings_and_errors_that_nothing_caught_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)  # the test runner records warnings itself, so ours is put on top
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
    sys.excepthook(ValueError, ValueError("at last"), None)
    warned, divided, ended = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert "old ways" in warned["event"]
    assert ("ZeroDivisionError" in divided["exception"], "at last" in ended["exception"]) == (True, True)
