"""The ports on which the engine of a demo will listen, found and kept before anything is started: it starts only in G2, a minute later.

Instances of one engine listen on consecutive ports (roles/arm). Looking alone is not enough: two demos that begin together would both see the same
port free. So each keeps a name of the kernel's for every port that it means to use; the kernel gives it back when the process ends, however it does.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from app.kit.errors import BadInput, Refused
from app.kit.i18n import N_
from gates.text import Text

DEFAULT = 18461  # what roles/arm takes where the engagement names none
LAST, STEP = 65535, 100  # others are tried in such steps, above the wanted one and below the kernel's own ports for connections
MOVED = Text("port {taken} is taken by another program: the engine takes {port}", "端口 {taken} 已被其他程序占用，引擎改用 {port}")


@contextmanager
def kept(engine: dict[str, Any], *, own: bool) -> Iterator[Text | None]:
    """Keep the ports of `targets.engine` for the length of the block; yields what to tell a person where others than the named ones were taken.

    `own`: a person's own file, whose port is not changed: raises Refused with the port that is taken. The shipped file's is, in place.
    """
    wanted, count = engine.get("port", DEFAULT), engine.get("instances", 1)
    if not all(isinstance(value, int) and value > 0 for value in (wanted, count)):
        yield None  # said by whoever reads the file
        return
    with ExitStack() as held:
        taken = _take(wanted, count, held)
        if taken is None:
            yield None
            return
        if own and "port" in engine:
            raise Refused(
                "port_taken",
                N_("Port {port} of this machine is taken by another program, and the engine is to listen there (targets.engine.port). Name another."),
                port=taken,
            )
        for port in range(wanted + STEP, LAST - count, STEP):
            if _take(port, count, held) is None:
                engine["port"] = port
                yield MOVED.fill(taken=taken, port=port)
                return
        raise BadInput("no_port", N_("No port of 127.0.0.1 is free for the engine."))


def _take(first: int, count: int, held: ExitStack) -> int | None:
    """Keep `count` consecutive ports; returns None, or the first that is taken, with none of them kept."""
    with ExitStack() as mine:
        for port in range(first, first + count):
            if port > LAST or not (_listenable(port) and _ours(port, mine)):
                return port
        held.push(mine.pop_all())
    return None


def _listenable(port: int) -> bool:
    """Tell whether a server could listen there now: connections of an earlier one that still fade away do not count."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", port))
            door.listen()
        except OSError:
            return False
    return True


def _ours(port: int, mine: ExitStack) -> bool:
    """Keep the name of a port, unless another demo of this machine has it."""
    name = mine.enter_context(socket.socket(socket.AF_UNIX))
    try:
        name.bind(f"\0quadgate-engine-port-{port}")
    except OSError:
        return False
    return True
