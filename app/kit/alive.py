"""A file that is touched whenever work was done: a health check reads its age without starting a program of ours."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from app.settings import settings


def touch() -> None:
    """Touch the file of the settings, if there is one. A full disk is told elsewhere."""
    if settings().alive_file:
        with suppress(OSError):
            Path(settings().alive_file).touch()
