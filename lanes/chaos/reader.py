"""Somebody who watches an attempt by its event stream, over kills of the web server: each event must come once, whichever connection brings it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Sequence

from lanes.chaos.findings import DOUBLED, LOST, Finding

REST_S, SILENT_S = 0.3, 30.0


class Reader(threading.Thread):
    """Follows one attempt; after a break it goes on behind the last event that it had whole."""

    def __init__(self, port: int, token: str, attempt: str) -> None:
        super().__init__(daemon=True)
        self.attempt, self.breaks = attempt, 0
        self.seen: list[int] = []
        self._port, self._token, self._last, self._connected = port, token, "", False
        self._ending, self._over = threading.Event(), threading.Event()

    def run(self) -> None:
        """Follow until the stream says that the attempt has ended, after `end` was called: an attempt in error may go on."""
        while not self._over.is_set():
            ending = self._ending.is_set()
            try:
                if self._follow() and ending:
                    return
            except (OSError, http.client.HTTPException):
                self.breaks += self._connected  # one that could not be made is no break
            self._over.wait(REST_S)

    def end(self, seconds: float) -> bool:
        """Let the reader come to the end of an attempt that has ended. False: the stream did not get there."""
        self._ending.set()
        self.join(seconds)
        self._over.set()
        return not self.is_alive()

    def _follow(self) -> bool:
        """Read one connection to its end. True when it said good-bye because the attempt has ended."""
        self._connected = False
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SILENT_S)
        try:
            headers = {"Authorization": f"Bearer {self._token}", **({"Last-Event-ID": self._last} if self._last else {})}
            connection.request("GET", f"/api/v1/attempts/{self.attempt}/stream", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise ConnectionError(f"the stream answers {answer.status}")
            frame: dict[str, str] = {}
            self._connected = True
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    frame[name] = value
                    continue
                if self._take(frame):
                    return True
                frame = {}
            raise ConnectionError("the stream broke off")
        finally:
            connection.close()

    def _take(self, frame: dict[str, str]) -> bool:
        """Take one whole frame; what came of it before a break comes again."""
        if "id" not in frame:
            return False
        self._last = frame["id"]
        data = json.loads(frame["data"])
        if frame["event"] == "log":
            self.seen += [event["id"] for event in data]
        return frame["event"] == "bye" and bool(data["ended"])


def compare(seen: Sequence[int], stored: Sequence[int]) -> list[Finding]:
    """Hold what a reader was told against the stored events, by their numbers in order."""
    found = []
    if len(seen) != len(set(seen)):
        found.append(Finding(DOUBLED, f"a reader of the event stream was told {len(seen) - len(set(seen))} events twice"))
    if missed := set(stored) - set(seen):
        found.append(Finding(LOST, f"a reader of the event stream was never told {len(missed)} of {len(stored)} events"))
    return found
