"""The live page when the database goes away: it says since when there is no connection, and comes back by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import sqlalchemy.exc
from playwright.sync_api import expect

from app.accounts.upkeep import close_user
from app.kit.db import write_session
from tests.e2e.browser import Watched, chromium, served, sign_in
from tests.e2e.test_pages import put_line
from tests.integration.web_client import Browser, demo_engagement
from tests.people import PASSWORD, Cast

pytestmark = pytest.mark.chromium


class Switch:
    """A database that can be taken away from the stream, and counts how often it was asked for meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from app.web import stream

        self.away, self.asked = False, 0
        real = stream.read_session

        def session(*words: object, **more: object) -> object:
            if self.away:
                self.asked += 1
                raise sqlalchemy.exc.OperationalError("SELECT 1", {}, Exception("database is locked"))
            return real(*words, **more)

        monkeypatch.setattr(stream, "read_session", session)


@pytest.fixture
def base(cast: Cast) -> Iterator[str]:
    from app.main import create_app

    with served(create_app()) as url:
        yield url


@pytest.mark.parametrize(("language", "words"), [("en", r"No connection since \d\d:\d\d UTC"), ("zh-CN", r"自 \d\d:\d\d UTC 起连接中断")])
def test_a_page_that_nobody_touches_tells_the_loss_and_goes_on_when_the_database_is_back(
    base: str, cast: Cast, monkeypatch: pytest.MonkeyPatch, language: str, words: str
) -> None:
    engagement, switch = demo_engagement(cast), Switch(monkeypatch)
    attempt = Browser("li.wei").send(f"/engagements/{engagement}/rehearsals", gate="G2").headers["location"]
    attempt_id = attempt.rsplit("/", 1)[1]
    with chromium() as browser:
        page = Watched(browser).page
        sign_in(page, base, "li.wei", PASSWORD)
        page.goto(f"{base}{attempt}?lang={language}")
        put_line(attempt_id, "before", 1)
        page.wait_for_selector("#L1:has-text('before')")
        assert page.locator("#stale").is_hidden()
        switch.away = True
        expect(page.locator("#stale")).to_have_text(re.compile(words))
        assert page.locator("#is-live").is_hidden()  # nothing claims to be live meanwhile
        put_line(attempt_id, "meanwhile", 2)
        page.wait_for_timeout(9000)
        assert 2 <= switch.asked <= 6  # 1, 2, 4 s: again and again, at growing intervals
        switch.away = False
        page.wait_for_selector("#L2:has-text('meanwhile')")  # nothing was lost, and nobody reloaded or showed the tab
        expect(page.locator("#stale")).to_be_hidden()
        assert page.locator("#is-live").is_visible()
        put_line(attempt_id, "after", 3)
        page.wait_for_selector("#L3:has-text('after')")
        assert page.locator("#log p").count() == 3


def test_whoever_is_closed_out_while_the_connection_is_away_is_led_to_the_door(base: str, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    engagement, switch = demo_engagement(cast), Switch(monkeypatch)
    attempt = Browser("li.wei").send(f"/engagements/{engagement}/rehearsals", gate="G2").headers["location"]
    with chromium() as browser:
        page = Watched(browser).page
        sign_in(page, base, "li.wei", PASSWORD)
        page.goto(f"{base}{attempt}?lang=en")
        page.wait_for_function("() => performance.getEntriesByType('resource').length > 0")
        switch.away = True
        expect(page.locator("#stale")).to_be_visible()
        with write_session() as s:
            close_user(s, login="li.wei", actor=cast.admin)
        switch.away = False
        page.wait_for_url(f"{base}/sign-in*")
