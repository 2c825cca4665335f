"""A database that is away, cut off or busy, over real HTTP: 503, with what is known about the request and when to come again."""

from __future__ import annotations

import json
import socket
import sqlite3
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from email.message import Message
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from app.accounts.usecases import issue_token, sign_in
from app.kit import db
from app.kit.migrate import upgrade
from app.main import create_app
from app.settings import settings
from app.web.security import session_cookie
from tests import postgres
from tests.e2e.browser import served
from tests.integration.web_client import DEMO
from tests.people import PASSWORD, Cast, enrol


class Client:
    """A program with a token and a browser with a session, at one address."""

    def __init__(self, address: str, user_id: str) -> None:
        self.address = address
        with db.write_session() as s:
            self.token = issue_token(s, user_id=user_id, name="test", days=1)
            session = sign_in(s, login="li.wei", password=PASSWORD)
        self.cookie, self.csrf = f"{session_cookie()}={session.token}; qg_lang=en", session.csrf_token

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Message, str]:
        """Return status, headers and text of an answer, whatever its status."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address + path, data=body, headers=named), timeout=60) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode()

    def api(self, path: str, body: bytes | None = None, language: str = "en", **headers: str) -> tuple[int, Message, dict[str, Any]]:
        """Ask the API."""
        known = {"Authorization": f"Bearer {self.token}", "Accept_Language": language}
        status, said, text = self.ask(f"/api/v1{path}", body, **known, **headers)
        return status, said, json.loads(text)

    def create(self, key: str, language: str = "en") -> tuple[int, Message, dict[str, Any]]:
        """Create the demo's engagement."""
        return self.api("/engagements", DEMO.encode(), language, Content_Type="application/yaml", Idempotency_Key=key)

    def page(self, path: str, body: bytes | None = None) -> tuple[int, Message, str]:
        """Ask for a page, or send a form of it."""
        form = {"Origin": self.address, "Content_Type": "application/x-www-form-urlencoded"} if body is not None else {}
        return self.ask(path, body, Cookie=self.cookie, **form)


def assert_unknown(found: tuple[int, Message, dict[str, Any]]) -> None:
    status, headers, body = found
    assert (status, headers["Content-Type"], headers["Retry-After"]) == (503, "application/problem+json", "5")
    assert (body["code"], body["status"]) == ("database_away", 503)
    assert ("Idempotency-Key" in body["detail"], "not known" in body["detail"] or "尚不确定" in body["detail"]) == (True, True)


def assert_unknown_page(found: tuple[int, Message, str]) -> None:
    status, headers, text = found
    assert (status, headers["Retry-After"]) == (503, "5")
    assert "carried out is not known" in text


@contextmanager
def held(database: Path) -> Iterator[None]:
    """Be the one writer of an SQLite database."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the writer a second only; the test is about what follows."""
    monkeypatch.setattr(db, "BUSY_MS", 1_000)


@pytest.mark.sqlite
@pytest.mark.usefixtures("impatient")
def test_a_held_lock_fails_no_read_and_leaves_a_write_unknown(state: Path, cast: Cast) -> None:
    with served(create_app()) as address:
        client = Client(address, cast.li_wei.user_id)
        with held(state / "quadgate.db"):
            assert client.api("/engagements")[0] == 200  # the token's first use, which would be written down now
            assert client.page("/")[0] == 200
            assert_unknown(client.create("key-held-lock"))
            assert_unknown(client.create("key-held-lock", "zh-CN"))
            assert_unknown_page(client.page("/sign-out", f"csrf={client.csrf}".encode()))
        assert client.create("key-held-lock")[0] == 201


@pytest.mark.sqlite
def test_the_note_of_a_sight_waits_for_no_writer_however_patient_others_are(state: Path, cast: Cast) -> None:
    with served(create_app()) as address:
        client = Client(address, cast.li_wei.user_id)
        with held(state / "quadgate.db"):
            began = time.monotonic()
            assert client.api("/engagements")[0] == 200
            assert time.monotonic() - began < db.BUSY_MS / 2000
        with db.write_session() as s:  # the connection of the note has the patience of all others again
            assert s.connection().exec_driver_sql("PRAGMA busy_timeout").scalar() == db.BUSY_MS


@pytest.mark.sqlite
def test_a_statement_that_is_wrong_is_no_database_that_is_away(state: Path, cast: Cast) -> None:
    with served(create_app()) as address:
        client = Client(address, cast.li_wei.user_id)
        with closing(sqlite3.connect(state / "quadgate.db")) as other:
            other.execute("DROP TABLE idempotency_key")
        status, headers, body = client.create("key-no-table")
    assert (status, body["code"], "Retry-After" in headers) == (500, "internal", False)
    assert "nothing was changed" not in body["detail"]


class Cable:
    """What lies between the service and the server; it can be cut behind a COMMIT, before the answer comes back."""

    def __init__(self, server: Path, folder: Path) -> None:
        self.server, self.cut_next = server / ".s.PGSQL.5432", False
        self.dark: socket.socket | None = None  # the end that hears nothing any more
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(folder / ".s.PGSQL.5432"))
        self.door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(str(self.server))
            except OSError:
                near.close()
                continue
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()
            threading.Thread(target=self._bring, args=(far, near), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        while data := _read(near):
            if self.cut_next and b"COMMIT" in data:
                self.cut_next, self.dark = False, near
            far.sendall(data)
        far.close()

    def _bring(self, far: socket.socket, near: socket.socket) -> None:
        while data := _read(far):
            if self.dark is near:  # the server has answered: it is done, and nobody hears of it
                break
            near.sendall(data)
        near.shutdown(socket.SHUT_RDWR)


def _read(end: socket.socket) -> bytes:
    try:
        return end.recv(65536)
    except OSError:
        return b""


@pytest.fixture
def cable(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cable]:
    """Run a server of this test's own, behind a cable, with a migrated database in the settings."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres.server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qg-")))
        cable = Cable(server.folder, folder)
        stack.callback(cable.door.close)
        monkeypatch.setenv("QUADGATE_DATABASE_URL", server.url(server.fresh()).replace(str(server.folder), str(folder)))
        settings.cache_clear()
        upgrade()
        yield cable
        db.engine_for(settings().database_url).dispose()


@pytest.mark.postgres
def test_a_server_that_is_stopped_is_503_until_it_is_back(cable: Cable) -> None:
    with db.write_session() as s:
        cast = enrol(s)
    with served(create_app()) as address:
        client = Client(address, cast.li_wei.user_id)
        assert client.api("/engagements")[0] == 200
        postgres.stop(cable.server.parent)
        try:
            status, headers, body = client.api("/engagements")
            assert (status, headers["Retry-After"], body["code"]) == (503, "5", "database_away")
            assert "could not be read" in body["detail"]
            assert_unknown(client.create("key-stopped"))
            assert client.page("/")[0] == 503
            assert client.page("/nothing-here")[0] == 503
            assert_unknown_page(client.page("/sign-out", f"csrf={client.csrf}".encode()))
        finally:
            postgres.start(cable.server.parent)
        assert client.create("key-stopped")[0] == 201


@pytest.mark.postgres
def test_the_note_of_a_sight_waits_for_no_row_that_another_holds(cable: Cable) -> None:
    with db.write_session() as s:
        cast = enrol(s)
    with served(create_app()) as address:
        client = Client(address, cast.li_wei.user_id)
        with psycopg.connect(f"host={cable.server.parent} user=quadgate dbname={make_url(settings().database_url).database}") as other:
            other.execute("SELECT 1 FROM api_token FOR UPDATE")
            assert client.api("/engagements")[0] == 200  # it waited for the other one, which waits for this test


@pytest.mark.postgres
def test_what_was_committed_behind_a_cut_is_unknown_and_is_not_done_twice(cable: Cable) -> None:
    with db.write_session() as s:
        cast = enrol(s)
    with served(create_app()) as address:
        client = Client(address, cast.li_wei.user_id)
        assert client.api("/engagements")[2]["items"] == []  # and the token's use is noted: the next COMMIT is that of the work
        cable.cut_next = True
        assert_unknown(client.create("key-cut-behind-commit"))
        assert len(client.api("/engagements")[2]["items"]) == 1  # it was done
        status, headers, _ = client.create("key-cut-behind-commit")
        assert (status, headers["Idempotent-Replayed"]) == (201, "true")
        assert len(client.api("/engagements")[2]["items"]) == 1
