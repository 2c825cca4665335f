"""People who look at a soak: the real event stream of the real web server, read as a browser does."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import Any

from app.accounts.usecases import issue_token
from app.kit.db import write_session
from app.settings import settings
from lanes.scale.measure import between, usage
from lanes.scale.service import Service
from tests.people import enrol

PEOPLE, SECONDS = 4, 12.0


def watch(attempts: list[str], service: Service, tell: Callable[[str], None]) -> dict[str, Any]:
    """Open some streams for a while. Returns the web server's CPU milliseconds and the database's transactions for one page and second."""
    with write_session() as s:
        cast = enrol(s)
        token = issue_token(s, user_id=cast.li_wei.user_id, name="scale", days=1)
    watched = attempts[:PEOPLE]
    tell(f"{len(attempts)} soaks: {len(watched)} people look at one each")
    quiet = usage(service.roots)
    time.sleep(SECONDS)
    before, over = usage(service.roots), threading.Event()
    readers = [threading.Thread(target=_read, args=(attempt, token, over), daemon=True) for attempt in watched]
    for reader in readers:
        reader.start()
    time.sleep(SECONDS)
    after = usage(service.roots)
    over.set()
    without, _ = between(quiet, before)
    with_pages, _ = between(before, after)
    each = len(watched) * SECONDS
    found = {name: 1000 * (with_pages.get(name, 0.0) - without.get(name, 0.0)) / each for name in ("web", "postgres")}
    return {"cpu_ms_per_page_second": found}


def _read(attempt: str, token: str, over: threading.Event) -> None:
    connection = http.client.HTTPConnection(settings().web_host, settings().web_port, timeout=30)
    connection.request("GET", f"/api/v1/attempts/{attempt}/stream", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.status
    while not over.is_set() and answer.readline():
        pass
    connection.close()
