"""A PostgreSQL server of the tests' own: on a socket, as another user when we are root, with a fresh database for whoever asks.

With QUADGATE_TEST_DATABASE=postgres (`make test-postgres`) every test that uses the fixture `state` runs on it instead of on SQLite.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.needs import postgres_programs

TEMPLATE = "quadgate_template"


def asked_for() -> bool:
    """Tell whether the tests are to run on PostgreSQL."""
    return os.environ.get("QUADGATE_TEST_DATABASE") == "postgres"


class Server:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)

    def url(self, name: str = "postgres") -> str:
        """Return the address of a database, as the settings take it."""
        return f"postgresql+psycopg://quadgate@/{name}?host={self.folder}"

    def fresh(self, template: str = "template0") -> str:
        """Make a database, empty or as a copy of another, and return its name."""
        name = f"t{next(self._numbers)}"
        self._do(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def drop(self, name: str) -> None:
        """Remove a database with whoever still holds it."""
        self._do(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _do(self, statement: sql.Composed) -> None:
        with psycopg.connect(f"host={self.folder} user=quadgate dbname=postgres", autocommit=True) as connection:
            connection.execute(statement)


def run_as(folder: Path) -> dict[str, Any]:
    """Return how the server's programs are run. PostgreSQL refuses to run as root, so root lends it another user."""
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"check": True, "capture_output": True, "cwd": folder, "env": {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}, **user}


def start(folder: Path, *, durable: bool = False) -> None:
    """Start the server of a folder that holds its data. Tests lose nothing by a crash of the machine; whoever measures asks for `durable`."""
    programs = postgres_programs()
    assert programs is not None
    fast = "" if durable else " -c fsync=off -c full_page_writes=off"
    options = f"-c listen_addresses='' -k {folder} -c max_connections=200{fast}"
    argv = [programs / "pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "start"]
    subprocess.run(argv, **{**run_as(folder), "capture_output": False, "stdout": subprocess.DEVNULL})


def stop(folder: Path) -> None:
    """Stop it as a crash of the server would."""
    programs = postgres_programs()
    assert programs is not None
    subprocess.run([programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop"], **run_as(folder))


@contextmanager
def server(*, durable: bool = False) -> Iterator[Server]:
    """Start a server, and stop it whatever happens."""
    programs = postgres_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="qg-pg-"))
    initdb = [programs / "initdb", "-D", folder / "data", "-U", "quadgate", "--auth=trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(initdb, **run_as(folder))
    start(folder, durable=durable)
    try:
        yield Server(folder)
    finally:
        stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
