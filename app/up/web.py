"""The web server of one machine, and the port that it listens on."""

from __future__ import annotations

import socket
import sys

from app.kit.errors import Refused
from app.kit.i18n import N_
from gates.system_words import said


def argv(host: str, port: int) -> list[str]:
    """Return the command of the web server."""
    return [sys.executable, "-m", "app.server", host, str(port)]


def require_free(host: str, port: int) -> None:
    """Raise Refused where the web server could not listen, before it is started again and again."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: the last connections of an earlier one do not count
            door.bind(address)
    except OSError as error:
        sentence = N_("The web pages cannot be served on {host} port {port}: {why}. Set QUADGATE_WEB_PORT or QUADGATE_WEB_HOST to one that is free.")
        raise Refused("port_taken", sentence, host=host, port=port, why=said(error)) from error


def answers(host: str, port: int) -> bool:
    """Tell whether somebody accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
