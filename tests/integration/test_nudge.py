"""The nudge of a playbook's host: a message made beforehand, pushed by plain words, that the message library takes for one of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine import hints, nudge
from app.up import broker as server

PASSWORD = "wort & wort"


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a real broker behind a password; give its address."""
    folder = tmp_path_factory.mktemp("b")
    sock = folder / "redis.sock"
    process = subprocess.Popen([*server.argv(server.server_program(), sock, folder), "--requirepass", PASSWORD], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not sock.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    yield f"redis+socket://:wort%20%26%20wort@{sock}?virtual_host=3"
    process.kill()
    process.wait(10)


def taken(url: str, queue: str) -> Any:
    with hints.celery_app(url).connection_for_read() as connection, connection.SimpleQueue(queue) as waiting:
        message = waiting.get(timeout=30)
        message.ack()
        return message


def test_a_pushed_message_is_taken_as_one_that_the_library_sent(broker: str) -> None:
    nudge.push(broker, "steps@here", hints.sealed("advance", ["an-attempt", None], queue="steps@here"))
    ours = taken(broker, "steps@here")
    hints._sender(broker).send_task("advance", args=["an-attempt", None], queue="steps@here", ignore_result=True)
    theirs = taken(broker, "steps@here")
    assert ours.payload == theirs.payload
    assert ours.payload[0] == ["an-attempt", None]
    assert (ours.headers.keys(), ours.headers["task"]) == (theirs.headers.keys(), "advance")
    assert ours.properties.keys() == theirs.properties.keys()
    assert ours.delivery_info == theirs.delivery_info


def test_what_the_broker_refuses_and_what_plain_words_cannot_reach_is_said(broker: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="refused AUTH"):
        nudge.push(broker.replace("wort%20", "word%20"), "q", {})
    with pytest.raises(OSError, match="No such file"):
        nudge.push(f"redis+socket://{tmp_path}/none", "q", {})
    with pytest.raises(nudge.NotPlain):
        nudge.push("rediss://elsewhere:6380/0", "q", {})
