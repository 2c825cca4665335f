"""A running web server and Debian's Chromium, for tests of pages and for pictures of them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from playwright.sync_api import expect, sync_playwright

from tests.needs import CHROMIUM

ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=30_000)  # a page that comes late is late; how late is no subject of these tests


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a free port of the loopback, in a thread, and end it afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        if time.monotonic() > deadline:
            raise RuntimeError("the web server did not start within 20 s")
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def chromium() -> Iterator[Any]:
    """Give a Chromium that is closed afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGS)
        try:
            yield browser
        finally:
            browser.close()


def sign_in(page: Any, base: str, login: str, password: str) -> None:
    """Sign in through the form."""
    page.goto(f"{base}/sign-in")
    page.fill("input[name=login]", login)
    page.fill("input[name=password]", password)
    page.click("form[action='/sign-in'] button[type=submit]")
    page.wait_for_url(f"{base}/")


class Watched:
    """A page that remembers everything its console complained about: a blocked script or style would show here."""

    def __init__(self, browser: Any, width: int = 1280) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 900}, locale="en-GB").new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
