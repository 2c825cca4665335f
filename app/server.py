"""The web server as a program: `python -m app.server HOST PORT`. Its lines are those of our log, from the first one."""

from __future__ import annotations

import sys

import uvicorn

from app.kit import logs
from app.settings import settings


def run(host: str, port: int, *, patience_s: int | None = None) -> None:
    """Serve until a signal comes; answers that are under way then have so many seconds to end (None: all that they need)."""
    logs.configure(settings().log_format)  # before the server's first word, and instead of a form of its own
    uvicorn.run("app.main:app", host=host, port=port, server_header=False, timeout_graceful_shutdown=patience_s, log_config=None)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), patience_s=3)
