"""The runner of the lane: `python -m lanes.scale.runner SOCKET SCRIPT`. It takes what a worker hands to `quadgate runner` (the run directory, the
lock), and leaves there what a real playbook host leaves after a poll, at the same pace: `started`, the events of a real poll one by one, the
journals' chunks in staging, `result.json`, the lock let go, and a nudge. No program is started, so a thousand targets fit into one process.

SCRIPT is a JSON file {events: [...], stats, reply, seconds, rate}: a poll that was really made (lanes/scale/real.py).
"""

from __future__ import annotations

import heapq
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from app.engine import durable, nudge
from app.engine.policy import ROUND_MAX
from app.engine.runner import Runner
from lanes.scale.journal import chunk

PORTIONS = 4  # in which the events of a poll come
HANDS = 4


class FakeRunner(Runner):
    """Takes requests as the real one does, and plays what it is asked for. Writes down when each run was handed to it, for whoever measures."""

    def __init__(self, path: Path, script: dict[str, Any]) -> None:
        super().__init__(path)
        self.script, self.began = script, time.monotonic()
        self._todo: list[tuple[float, int, Callable[[], None]]] = []
        self._news, self._numbers = threading.Condition(), iter(range(1 << 62))
        self._hands = ThreadPoolExecutor(HANDS)
        self._spawned = (path.parent / "spawned").open("a", buffering=1)
        threading.Thread(target=self._work, daemon=True).start()

    def _do(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if request["op"] == "spawn":
            folders = [Path(name) for name in request.get("folders") or [request["folder"]]]
            for folder, lock in zip(folders, fds, strict=True):
                self._spawned.write(f"{folder.parent.name} {folder.name} {time.time():.3f} {len(folders)}\n")
                Host(self, folder, os.dup(lock)).begin()
        room = {"room": True, "together": ROUND_MAX}  # there are no hosts that could be too many
        return {"end": {"ended": 0}, "room": room}.get(request["op"], {})

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Have something done in so many seconds."""
        with self._news:
            heapq.heappush(self._todo, (time.monotonic() + seconds, next(self._numbers), what))
            self._news.notify()

    def _work(self) -> None:
        while True:
            with self._news:
                while not self._todo or self._todo[0][0] > time.monotonic():
                    self._news.wait(self._todo[0][0] - time.monotonic() if self._todo else None)
                what = heapq.heappop(self._todo)[2]
            self._hands.submit(self._do_one, what)

    def _do_one(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception:
            traceback.print_exc()  # runner.log; the engine sees a host that never ends


class Host:
    """One playbook host that is none: a poll of the hosts of an inventory."""

    def __init__(self, runner: FakeRunner, folder: Path, lock: int) -> None:
        self.runner, self.folder, self.lock = runner, folder, lock

    def begin(self) -> None:
        """Do what a host does first, and come back later."""
        os.close(os.open(self.folder / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        private = self.folder / "private"
        self.job = json.loads((self.folder / "job.json").read_bytes())
        self.known = json.loads((private / "vars.json").read_bytes())
        self.hosts = json.loads((private / "inventory.json").read_bytes())["all"]["children"]["loadgen"]["hosts"]
        seconds = float(self.runner.script["seconds"]) * random.uniform(0.9, 1.3)
        for n in range(1, PORTIONS + 1):
            self.runner.later(seconds * n / PORTIONS, partial(self._say, n))

    def _say(self, portion: int) -> None:
        rows, at = self.runner.script["events"], datetime.now(UTC).isoformat()
        mine = rows[len(rows) * (portion - 1) // PORTIONS : len(rows) * portion // PORTIONS]
        lines = [json.dumps({**row, "uuid": str(uuid.uuid4()), "created": at}, separators=(",", ":")) + "\n" for row in mine]
        with (self.folder / "events.jsonl").open("a") as file:
            file.write("".join(lines))
        if portion == PORTIONS:
            self._end()

    def _end(self) -> None:
        script, age = self.runner.script, time.monotonic() - self.runner.began
        for host in self.hosts:
            staging = self.folder / "staging" / host
            staging.mkdir(parents=True, exist_ok=True)
            offsets = self.known["job"].get("offsets") or {}
            chunks = {name: chunk(name, int(offsets.get(name, 0)), age, script["rate"]) for name in ("records.jsonl", "telemetry.jsonl")}
            (staging / "chunks.json").write_text(json.dumps(chunks))
        shutil.rmtree(self.folder / "private", ignore_errors=True)
        (self.folder / "job.json").unlink(missing_ok=True)
        shutil.rmtree(self.job["short_dir"], ignore_errors=True)
        stats = {name: dict.fromkeys(self.hosts, max(rows.values(), default=0)) if rows else {} for name, rows in script["stats"].items()}
        replies = {host: {**script["reply"], "job": self.known["job"]["id"]} for host in self.hosts}
        told = {"status": "successful", "rc": 0, "stats": stats, "replies": replies, "failures": [], "tail": [], "problem": None}
        durable.write_json(self.folder / "result.json", {**told, "events": len(script["events"]), "events_lost": 0})
        os.close(self.lock)
        nudge.push(self.job["broker_url"], self.job["queue"], self.job["nudge"])


def main() -> None:
    """Serve until a signal comes."""
    runner = FakeRunner(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_bytes()))
    signal.signal(signal.SIGTERM, lambda *_: runner.over.set())
    runner.serve()


if __name__ == "__main__":
    main()
