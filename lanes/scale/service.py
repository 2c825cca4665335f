"""The service under measurement: the real supervisor, broker, worker, beat, web and database, with a runner whose targets are not there."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from app.kit.db import engine_for
from app.kit.migrate import upgrade
from app.settings import ROOT, settings
from app.up.part import Part
from app.up.supervisor import Supervisor
from tests import postgres
from tests.ports import free_port

NODE = "scale"


class Service:
    """What runs, by name: `roots` are the processes whose trees are measured."""

    def __init__(self, folder: Path, script: dict[str, Any], *, on_postgres: bool) -> None:
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="s", dir=folder))
        self.server = self._stack.enter_context(postgres.server(durable=True)) if on_postgres else None
        self.socket = self.folder / "runner.sock"
        (self.folder / "script.json").write_text(json.dumps(script))
        configure(self.folder, database=self.server.url(self.server.fresh()) if self.server else "", runner=str(self.socket))
        self.supervisor = Supervisor()
        self.runner = Part(
            "runner",
            [sys.executable, "-m", "lanes.scale.runner", str(self.socket), str(self.folder / "script.json")],
            environment=dict(os.environ),
            cwd=ROOT,
            log=self.folder / "log" / "runner.log",
        )

    @contextmanager
    def running(self) -> Iterator[Service]:
        """Start everything, and stop it in any case."""
        with self._stack:
            upgrade()
            try:
                self.runner.start()
                self.supervisor.start()
                yield self
            finally:
                self.supervisor.stop(cancel=False)
                self.runner.stop(5)
                engine_for(settings().database_url).dispose()

    @property
    def roots(self) -> dict[str, int]:
        """Return the processes whose trees are the parts; `runner` is the lane's own and no part of a cost."""
        found = {**self.supervisor.pids(), "runner": self.runner.pid or 0}
        if self.server:
            found["postgres"] = int((self.server.folder / "data" / "postmaster.pid").read_text().split("\n")[0])
        return found

    def spawned(self) -> dict[str, list[float]]:
        """Return when the polls of each attempt were handed to the runner, in seconds since the epoch."""
        found: dict[str, list[float]] = {}
        for line in (self.folder / "spawned").read_text().splitlines():
            attempt, _, at, _ = line.split(" ")
            found.setdefault(attempt, []).append(float(at))
        return found


def configure(folder: Path, *, database: str, runner: str = "") -> None:
    """Point this process and what it starts at a state folder."""
    os.environ.update(
        {
            "QUADGATE_STATE_DIR": str(folder),
            "QUADGATE_DATABASE_URL": database,
            "QUADGATE_BROKER_URL": "",
            "QUADGATE_NODE": NODE,
            "QUADGATE_WEB_PORT": str(free_port()),
            "QUADGATE_RUNNER_SOCKET": runner,
        }
    )
    engine_for.cache_clear()
    settings.cache_clear()
