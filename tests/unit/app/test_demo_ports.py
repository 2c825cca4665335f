"""The demo looks for its engine's ports before anything is started, and keeps what it found."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from app.demo.options import DemoOptions, dumped, engagement_text
from app.demo.ports import kept
from app.demo.run import ports_of
from app.kit.errors import Refused
from gates.plan import load_yaml
from tests.ports import free_port


def listener(port: int) -> socket.socket:
    """Return a server of another program."""
    server = socket.create_server(("127.0.0.1", port))
    server.listen()
    return server


def test_the_shipped_file_takes_another_port_and_says_so_in_both_languages(tmp_path: Path) -> None:
    document = load_yaml(engagement_text(DemoOptions(out=tmp_path)))
    document["targets"]["engine"]["port"] = port = free_port()
    with listener(port), ports_of(dumped(document), own=False) as (text, moved):
        mine = load_yaml(text)["targets"]["engine"]["port"]
        assert moved is not None
        assert mine != port
        assert all(f"{number}" in said for number in (port, mine) for said in (moved.en, moved.zh))


def test_a_file_of_ones_own_with_a_taken_port_is_refused_by_the_ports_number() -> None:
    port = free_port()
    with listener(port), pytest.raises(Refused, match=f"Port {port} "), kept({"port": port}, own=True):
        raise AssertionError("the demo went on")


def test_every_instance_has_its_port_looked_at() -> None:
    port = free_port()
    with listener(port + 1):
        with pytest.raises(Refused, match=f"Port {port + 1} "), kept({"port": port, "instances": 2}, own=True):
            raise AssertionError("the demo went on")
        with kept({"port": port, "instances": 1}, own=True) as moved:
            assert moved is None


def test_two_demos_that_begin_together_do_not_take_the_same_port() -> None:
    first, second = ({"port": free_port()} for _ in "ab")
    second["port"] = port = first["port"]
    with kept(first, own=False) as untold:
        with kept(second, own=False) as moved:
            assert (untold, first["port"]) == (None, port)
            assert moved is not None
            assert second["port"] != port
        server = listener(port)  # what is kept keeps the engine itself from nothing
        server.close()
    with kept({"port": port}, own=True) as moved:
        assert moved is None, "a port was not given back"
