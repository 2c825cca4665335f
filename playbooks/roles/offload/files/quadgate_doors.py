"""Which doors of vLLM's server are open to whom: it runs inside the engine (`vllm serve --middleware quadgate_doors.Doors`), so it stands alone.

With its developers' endpoints open (VLLM_SERVER_DEV_MODE) a caller may do far more than reset a cache. Where the engine listens for a load generator,
everybody who reaches that address may measure it and read its counters; whatever else it serves answers its own host alone. Whose a connection is
tells the kernel: one from the host itself comes from the loopback, or from the address that it went to.
"""

import ipaddress
from typing import Any, Awaitable, Callable, Dict, Optional

OPEN = ("/health", "/metrics", "/version")
BELOW = "/v1/"
Answer = Callable[[Dict[str, Any]], Awaitable[None]]


class Doors:
    """An ASGI application around another one."""

    def __init__(self, app: Callable[[Dict[str, Any], Any, Answer], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Dict[str, Any], receive: Any, send: Answer) -> None:
        """Hand on what may pass; answer 403 to what may not, and close a web socket before it is one."""
        if scope["type"] not in ("http", "websocket") or is_open(str(scope.get("path"))) or is_own(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = b'{"error": {"message": "This endpoint answers the host of the engine alone.", "code": 403}}'
            head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))]
            await send({"type": "http.response.start", "status": 403, "headers": head})
            await send({"type": "http.response.body", "body": body})


def is_open(path: str) -> bool:
    """Tell whether a path is one that a measurement needs: the OpenAI endpoints, health, counters, version."""
    return path in OPEN or (path.startswith(BELOW) and ".." not in path)


def is_own(scope: Dict[str, Any]) -> bool:
    """Tell whether a connection comes from this very host. What is not told is somebody else's."""
    caller, listening = (_address(scope.get(end)) for end in ("client", "server"))
    return caller is not None and (caller.is_loopback or caller == listening)


def _address(end: Any) -> Optional[Any]:
    """Return the IP address of an end of the connection; an IPv4 address behind IPv6 as what it is."""
    try:
        found = ipaddress.ip_address(str(end[0]).partition("%")[0])
    except (TypeError, ValueError, IndexError):
        return None
    return getattr(found, "ipv4_mapped", None) or found
