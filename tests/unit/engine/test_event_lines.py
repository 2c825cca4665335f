"""Events of a run under a full disk: a line is there whole or not at all, and one that is no event spoils its own run only."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.engine import capture, events
from app.engine.redact import Redactor


def event(n: int) -> dict[str, Any]:
    return {"uuid": f"u{n}", "counter": n, "event": "runner_on_ok", "created": "", "stdout": "x" * 50, "event_data": {"host": "gpu01"}}


def test_an_event_that_the_disk_took_in_part_is_taken_back_so_that_the_next_one_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    seen = capture.Capture(path, Redactor([]))
    seen.event(event(1))
    whole = os.write
    with monkeypatch.context() as patch:
        patch.setattr(capture.os, "write", lambda fd, line: whole(fd, line[: len(line) // 2]))
        seen.event(event(2))
    seen.event(event(3))
    assert [one["uuid"] for one in events.read_new(path, 0)[0]] == ["u1", "u3"]
    assert (seen.count, seen.lost) == (3, 1)


@pytest.mark.parametrize("torn", [b'{"uuid": "u2", "cou{"uuid": "u3"}', b"null", b'{"uuid": "u2"}', b"\xff\xfe"])
def test_a_line_that_is_no_event_is_a_named_problem_behind_all_that_came_before_it(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "run-1" / "events.jsonl"
    path.parent.mkdir()
    good = json.dumps({**event(1), "data": {}}).encode()
    path.write_bytes(good + b"\n" + torn + b"\n" + good + b"\n")
    read, at = events.read_new(path, 0)
    assert ([one["uuid"] for one in read], at) == (["u1"], len(good) + 1)
    with pytest.raises(events.Torn) as caught:
        events.read_new(path, at)
    assert caught.value.code == "events_torn"
    assert "run-1" in caught.value.text("en")
    assert f"第 {at} 字节" in caught.value.text("zh_CN")
