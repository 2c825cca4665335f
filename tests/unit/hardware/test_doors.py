"""The module that runs inside vLLM's server: what a measurement needs is open to the load generator, all else to the engine's own host alone."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[3] / "playbooks/roles/offload/files/quadgate_doors.py"
HERE, ELSEWHERE = "10.0.0.11", "10.0.0.12"
SPEC = importlib.util.spec_from_file_location("quadgate_doors", FILE)
assert SPEC is not None
assert SPEC.loader is not None
doors = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(doors)


def said(path: str, client: Any, server: Any = (HERE, 18461), kind: str = "http") -> list[dict[str, Any]]:
    """Return what a caller is answered: the application behind the doors says `inside`."""
    sent: list[dict[str, Any]] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "inside"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(doors.Doors(app)({"type": kind, "path": path, "client": client, "server": server}, None, send))
    return sent


INSIDE = [{"type": "inside"}]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/models", "/health", "/metrics", "/version"])
def test_a_load_generator_measures_through_open_doors(path: str) -> None:
    assert said(path, (ELSEWHERE, 40000)) == INSIDE


@pytest.mark.parametrize(
    "path", ["/reset_prefix_cache", "/collective_rpc", "/server_info", "/sleep", "/", "", "/v1", "/v1/../reset_prefix_cache", "/healthz"]
)
@pytest.mark.parametrize("client", [(ELSEWHERE, 40000), None, ("", 0), ("gpu02", 1)])
def test_what_else_the_server_has_is_refused_to_other_hosts_and_to_nobody_knows_whom(path: str, client: Any) -> None:
    answer = said(path, client)
    assert [message["type"] for message in answer] == ["http.response.start", "http.response.body"]
    assert answer[0]["status"] == 403


@pytest.mark.parametrize("client", ["127.0.0.1", "::1", HERE, f"::ffff:{HERE}", "127.0.0.2"])
def test_the_engine_s_own_host_may_ask_for_everything(client: str) -> None:
    assert said("/reset_prefix_cache", (client, 40000)) == INSIDE


def test_a_server_that_does_not_say_where_it_was_reached_answers_the_loopback_alone() -> None:
    assert said("/reset_prefix_cache", (HERE, 1), server=None)[0]["status"] == 403
    assert said("/reset_prefix_cache", ("127.0.0.1", 1), server=None) == INSIDE


def test_a_web_socket_elsewhere_is_closed_and_what_is_no_request_passes() -> None:
    assert said("/debug", (ELSEWHERE, 1), kind="websocket") == [{"type": "websocket.close", "code": 1008}]
    assert said("", None, kind="lifespan") == INSIDE
