"""A real OpenSSH server for the attempts by real Ansible, whose connections are killed while a playbook is at work behind them."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.ssh_lab import sshd
from tests.ports import free_port

ADDRESS = "127.0.1.1"
KILLED = {"starting": "SSH killed in start", "polling": "SSH killed in poll", "collecting": "SSH killed in collect"}  # by status of the step


@dataclass(frozen=True)
class Wire:
    """The server: where it listens, its pinned key, the key of whoever comes."""

    port: int
    host_key: str
    key: Path

    def described(self, root: Path) -> dict[str, Any]:
        """Return a host behind it as an engagement describes it; `root`: our folder there."""
        where = {"address": ADDRESS, "port": self.port, "user": getpass.getuser(), "python": sys.executable, "root": str(root)}
        return {"groups": ["engine", "loadgen"], **where, "host_key": self.host_key, "credential": str(self.key)}

    def kill(self) -> bool:
        """SIGKILL the server's ends of all connections; what they started lives on. False when there is none."""
        sessions = _children(int((self.key.parent / f"{ADDRESS}.pid").read_text()))
        for pid in [pid for session in sessions for pid in (session, *_children(session)) if _is_sshd(pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(sessions)


@contextmanager
def wire(folder: Path) -> Iterator[Wire]:
    """Run the server with keys below a folder."""
    folder.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "client")], check=True)
    port = free_port()
    with sshd(folder, ADDRESS, port) as public:
        yield Wire(port, " ".join(public.split()[:2]), folder / "client")


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found


def _is_sshd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("sshd")
    except OSError:
        return False
