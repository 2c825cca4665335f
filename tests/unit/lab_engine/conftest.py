"""A folder on a real disk: a page cache that cannot be emptied (tmpfs) would hide what the tests look at."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.settings import ROOT


@contextmanager
def disk_folder() -> Iterator[Path]:
    """Give a fresh folder below the checkout's own var/."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="lab-", dir=ROOT / "var"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def disk() -> Iterator[Path]:
    """Give a fresh folder on a real disk."""
    with disk_folder() as folder:
        yield folder
