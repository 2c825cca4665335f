"""What a lane needs beside Python, and the one way in which it says NOT RUN: a test names its need as a marker, `pytest.mark.sshd`.

Without it the test is skipped and the closing lines of pytest say why, in a sentence. Under CI=true a missing package is a failure instead.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.os_packages import copied_system

NOT_RUN = "NOT RUN: "
CHROMIUM = Path("/usr/bin/chromium")
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def postgres_programs() -> Path | None:
    """Return the folder with initdb and pg_ctl: Debian keeps them off PATH."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), *([Path(p)] if (p := shutil.which("initdb")) else [])]
    return found[0].parent if found else None


@functools.cache
def oldest_python() -> str | None:
    """Return the oldest Python from 3.8, which a target must have, to 3.10; None where there is none. No supported Debian has a package of one."""
    for version in ("3.8", "3.9", "3.10"):
        homes = [*Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")]
        homes += Path("~/.local/share/uv/python").expanduser().glob(f"cpython-{version}.*/bin/python{version}")
        for program in [*map(str, sorted(homes)), shutil.which(f"python{version}")]:
            asked = program and subprocess.run([program, "-V"], capture_output=True, text=True, check=False)  # a shim may stand for none
            if asked and asked.stdout.startswith(f"Python {version}."):
                return program
    return None


def _may_mount() -> bool:
    """Tell whether a file system can be mounted, by doing it once."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True, check=False).returncode == 0
        return done and subprocess.run(["umount", folder], capture_output=True, check=False).returncode == 0


def _may_loop_xfs() -> bool:
    """Tell whether XFS on a loop device can be made and mounted: root, the programs, and a kernel with both."""
    programs = all(shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") for name in ("mkfs.xfs", "losetup"))
    return programs and Path("/dev/loop-control").exists() and _may_mount()


def _may_copy_system() -> bool:
    """Tell whether a command can be given a copy of this machine's own system: root, dpkg, and overlays in a mount namespace."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("dpkg-deb", "apt-get", "unshare")):
        return False
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*copied_system(Path(folder)), "true"], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Need:
    """Something a machine has or lacks. `packaged` means that CI can install it, so there its absence is a failure."""

    there: Callable[[], object]
    lacking: str
    packaged: bool = True


NEEDS = {
    "sshd": Need(
        lambda: SSHD and shutil.which("ssh"),
        "OpenSSH's server and client are not both on this machine; on Debian install openssh-server and openssh-client.",
    ),
    "chromium": Need(CHROMIUM.exists, f"Chromium is not at {CHROMIUM}; on Debian install chromium."),
    "postgres": Need(postgres_programs, "PostgreSQL's server programs (initdb, pg_ctl) are not on this machine; on Debian install postgresql."),
    "memory_fs": Need(lambda: os.access("/dev/shm", os.W_OK), "/dev/shm, a file system in memory, is not writable on this machine."),
    "mounts": Need(
        _may_mount, "Only root may mount a small file system here, so full disks are left out (a container may lack the right).", packaged=False
    ),
    "loop_xfs": Need(
        _may_loop_xfs, "XFS on a loop device needs root, loop devices and mkfs.xfs (package xfsprogs), which are not all here.", packaged=False
    ),
    "copied_system": Need(
        _may_copy_system,
        "Packages are installed into a copy of this machine's system, which needs root, dpkg and a kernel with overlayfs; not all are here.",
        packaged=False,
    ),
    "old_python": Need(
        oldest_python,
        "No Python 3.8, 3.9 or 3.10 is on this machine, so what goes to a target (probe, hardware kit, scripts of the roles) was run on no "
        "interpreter older than 3.11; that it is written for 3.8 is linted and parsed only.",
        packaged=False,
    ),
}


def require(name: str) -> None:
    """Skip the test that needs what this machine lacks, or fail it under CI=true."""
    need = NEEDS[name]
    if not need.there():
        _not_run(need)


def _not_run(need: Need) -> NoReturn:
    if need.packaged and os.environ.get("CI") == "true":
        pytest.fail(NOT_RUN + need.lacking, pytrace=False)
    pytest.skip(NOT_RUN + need.lacking)


def pytest_configure(config: pytest.Config) -> None:
    """Make each need a marker."""
    for name, need in NEEDS.items():
        config.addinivalue_line("markers", f"{name}: says NOT RUN where: {need.lacking}")
    config.addinivalue_line("markers", "sqlite: asks about SQLite itself, so `make test-postgres` leaves it out")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ask for a test's needs before any of its fixtures is made."""
    for mark in item.iter_markers():
        if mark.name in NEEDS:
            require(mark.name)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at the end, in a sentence each, what was not run and why: a dot less is not seen by anyone."""
    reasons = Counter(
        str(r.longrepr[2]).removeprefix("Skipped: ") for r in terminalreporter.stats.get("skipped", []) if isinstance(r.longrepr, tuple)
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{reason} ({count} {'test' if count == 1 else 'tests'})", yellow=True)
