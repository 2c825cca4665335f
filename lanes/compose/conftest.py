"""A Docker daemon and the images, once for all tests of the lane, and a folder for each stack."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanes.compose import docker


@pytest.fixture(scope="session")
def build() -> Iterator[Path]:
    """Have a daemon with all images; return the folder in which images are built."""
    if why := docker.why_not():
        pytest.skip(f"NOT RUN: {why}")
    with tempfile.TemporaryDirectory(prefix="qg-compose-") as folder, docker.daemon():
        stand_ins = docker.images(Path(folder))
        print("stand-ins for images of a registry:", ", ".join(stand_ins) or "none")
        yield Path(folder)


@pytest.fixture(scope="module")
def site(build: Path) -> Iterator[Path]:
    """Return the folder of one stack."""
    with tempfile.TemporaryDirectory(prefix="qg-site-") as folder:
        yield Path(folder)
