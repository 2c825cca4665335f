"""PostgreSQL for the lane: a server that can be stopped and started, behind a proxy that can cut a connection after COMMIT was sent."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from tests import postgres

SOCKET = ".s.PGSQL.5432"
COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"


class Postgres:
    """A server of our own in a folder, with its proxy. `close` stops both."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self.server = self._stack.enter_context(postgres.server())
        self.url = self.server.url(self.server.fresh())
        self.proxy = Proxy(self.server.folder / SOCKET, folder)
        self.proxied_url = self.url.replace(f"host={self.server.folder}", f"host={folder}")

    def stop_and_start(self) -> None:
        """Stop the server as a crash would, and start it again."""
        postgres.stop(self.server.folder)
        postgres.start(self.server.folder)

    def close(self) -> None:
        """Stop proxy and server."""
        self.proxy.close()
        self._stack.close()


class Proxy:
    """Hands bytes on between clients and the server. `armed`: how many of the next COMMITs are passed on and their answers kept back."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server, self.armed, self.cuts = str(server), 0, 0
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / SOCKET))
        self._door.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more clients."""
        self._door.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._hand_on, args=(client,), daemon=True).start()

    def _hand_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    (server if source is client else client).sendall(data)
                    if source is client and self.armed > 0 and data == COMMIT:
                        self.armed -= 1
                        self.cuts += 1
                        server.recv(65536)  # it is committed, and nobody will say so
                        return
