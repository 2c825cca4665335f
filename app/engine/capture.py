"""Events of a running playbook, stored complete and redacted. The handler never raises: an exception would cut the play mid-task."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.engine.redact import Redactor
from app.engine.spoken import MOST, spoken

REPLY = "reply"  # the task that answers the engine
_FAILED = ("runner_on_failed", "runner_item_on_failed", "runner_on_unreachable")


class Capture:
    """The event handler of one run, and what it learned from the events."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._redactor = redactor
        self._seen: set[str] = set()
        self.count = 0  # distinct events that the runner delivered
        self.lost = 0  # of these, not written (disk full): the engine refuses the run then
        self.replies: dict[str, Any] = {}
        self.failures: list[dict[str, Any]] = []
        self.stats: dict[str, Any] = {}
        self.tail: list[str] = []

    def event(self, event: dict[str, Any]) -> bool:
        """Store one event. Returns False, so that the runner keeps no unredacted copy."""
        try:
            self._store(event)
        except Exception:
            self.lost += 1
        return False

    def _store(self, event: dict[str, Any]) -> None:
        uuid = str(event["uuid"])
        again = uuid in self._seen  # the runner splits one event by lines of its output
        self._seen.add(uuid)
        if not again:
            self.count += 1
        clean = {
            "uuid": uuid,
            "counter": event.get("counter", 0),
            "event": event.get("event", ""),
            "created": event.get("created", ""),
            "stdout": self._redactor.text(str(event.get("stdout", ""))),
            "data": self._redactor.tree(event.get("event_data") or {}),
        }
        if not again:
            self._learn(clean)
            line = json.dumps(clean, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
            if not self._written(line):
                self.lost += 1

    def _written(self, line: bytes) -> bool:
        """Append a line, whole or not at all: a torn one would be glued to the next event once there is room again, and neither could be read."""
        end = os.fstat(self._fd).st_size
        try:
            whole = os.write(self._fd, line) == len(line)
        except OSError:
            whole = False
        if not whole:
            os.ftruncate(self._fd, end)
        return whole

    def _learn(self, event: dict[str, Any]) -> None:
        data, kind = event["data"], event["event"]
        self.tail = (self.tail + [line for line in event["stdout"].splitlines() if line.strip()])[-12:]
        if kind == "playbook_on_stats":
            self.stats = {name: data.get(name, {}) for name in ("ok", "changed", "dark", "failures", "skipped", "rescued", "ignored")}
        elif kind in _FAILED and not data.get("ignore_errors"):
            if len(self.failures) < 20:
                self.failures.append(
                    {
                        "host": data.get("host", ""),
                        "task": data.get("task", ""),
                        "unreachable": kind == "runner_on_unreachable",
                        **_message(data.get("res")),
                    }
                )
        elif (said := reply_of(event)) is not None:
            self.replies[said[0]] = said[1]


def reply_of(event: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return the host and what it answered, when an event is that of the task that answers."""
    data = event["data"]
    if event["event"] != "runner_on_ok" or str(data.get("task", "")).rpartition(" : ")[2] != REPLY:
        return None
    return str(data.get("host", "")), _reply(data.get("res") or {})


def _message(res: Any) -> dict[str, Any]:
    """Return {message} with what a failed task said, in at most 600 characters, and {both} where it said it in both languages."""
    res = res if isinstance(res, dict) else {"msg": str(res)}
    if not res.get("stderr") and not res.get("msg") and isinstance(res.get("results"), list):
        res = next((item for item in res["results"] if isinstance(item, dict) and item.get("failed")), res)
    parts = [str(res[key]).strip() for key in ("msg", "stderr", "module_stderr", "stdout") if res.get(key)]
    if both := next((text for part in parts if (text := spoken(part))), None):
        return {"message": both.en, "both": both.json()}
    return {"message": " | ".join(dict.fromkeys(parts))[:MOST]}


def _reply(res: dict[str, Any]) -> Any:
    """Return the JSON that the task printed, or a text that says that it is none."""
    text = res.get("stdout", res.get("msg"))
    if isinstance(text, dict):
        return text
    try:
        value = json.loads(str(text))
    except ValueError:
        return {"unreadable": str(text)[:300]}
    return value if isinstance(value, dict) else {"unreadable": str(text)[:300]}
