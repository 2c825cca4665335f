"""Every address and every field that takes text, with characters that are none: the answer is a refusal, never an internal error."""

from __future__ import annotations

import re
from typing import Any

from app.web.pages import account, approvals, attempts, board, door, downloads, judgements, register, revise, whatif, wipes
from tests.integration.web_client import Browser, Robot, demo_engagement
from tests.people import Cast

BAD = ("a%00b", "%7F", "%ED%A0%80", "%F0%9F%9A%80" * 100)
RAW = ("a\0b", "a\x1f\x7f\ufffe\u202eb", "🚀" * 500)
QUERIES = ("lang", "theme", "cursor", "limit", "after", "sample", "next", "ground")


def api_addresses(robot: Robot) -> list[tuple[str, str]]:
    """Return method and path of every operation that the API says it has."""
    spec = robot.get("/openapi.json").json()
    return [(method.upper(), f"/api/v1{path}") for path, operations in spec["paths"].items() for method in operations]


def web_addresses() -> list[tuple[str, str]]:
    """Return method and path of every page."""
    routers = [module.router for module in (account, approvals, attempts, board, door, downloads, judgements, register, revise, whatif, wipes)]
    return [(method, route.path) for router in routers for route in router.routes for method in sorted(route.methods)]  # type: ignore[attr-defined]


def broken(cast: Cast) -> list[str]:
    """Return every request that was answered by 500 or more, as "METHOD address: what was sent"."""
    robot, page = Robot(cast.li_wei.user_id), Browser("li.wei")
    page.http.headers["Origin"] = "http://testserver"
    csrf, found = page.csrf(), []
    engagement = demo_engagement(cast)

    def tried(client: Any, method: str, address: str, said: str, **more: Any) -> None:
        if client.request(method, address, **more).status_code >= 500:
            found.append(f"{method} {address[:120]}: {said[:60]!r}")

    for client, addresses in ((robot.http, api_addresses(robot)), (page.http, web_addresses())):
        for method, path in addresses:
            for bad in BAD if "{" in path else ():
                address = re.sub(r"\{[^}]*\}", bad, path)
                tried(client, method, address, "", headers={"Idempotency-Key": "a-key-of-mine"}, data={"csrf": csrf})
    for bad in BAD:
        for name in QUERIES:
            path = "/api/v1/engagements" if name in ("cursor", "limit") else "/account"
            tried(robot.http if path.startswith("/api") else page.http, "GET", f"{path}?{name}={bad}", name)
    for raw in RAW:
        for path in (
            "/sign-in",
            "/account/password",
            "/account/tokens",
            f"/engagements/{engagement}/register",
            f"/engagements/{engagement}/rehearsals",
        ):
            names = ("login", "password", "name", "days", "current", "new", "again", "gate", "next", *register.FIELDS)
            tried(page.http, "POST", path, raw, data={"csrf": csrf, **dict.fromkeys(names, raw)})
        tried(
            page.http,
            "POST",
            f"/engagements/{engagement}/plan/revise",
            raw,
            data={"csrf": csrf, "text": f'g3: {{"agreement_max": "{raw}"}}', "do": "look"},
        )
        tried(page.http, "POST", "/engagements", raw, data={"csrf": csrf, "text": f"engagement: {{code: '{raw}'}}"})
        entry = dict.fromkeys(("what", "reason", "owner"), raw) | {"kind": "punch", "gate": "G1", "owner_party": "vendor", "due": raw}
        for path, body in (
            (f"/engagements/{engagement}/deviations", entry),
            (f"/engagements/{engagement}/plan", {"differences": {raw: raw}}),
            ("/approvals", dict.fromkeys(("object_kind", "object_id", "object_hash", "decision", "comment"), raw)),
            ("/approvals", {"object_kind": "plan", "object_id": raw[:30], "object_hash": raw[:60], "decision": "approve", "comment": raw}),
        ):
            tried(robot.http, "POST", f"/api/v1{path}", raw, json=body, headers={"If-Match": "*"})
        tried(
            robot.http,
            "POST",
            "/api/v1/engagements",
            raw,
            content=f'{{"engagement": {{"code": "{raw}"}}}}'.encode(),
            headers={"Content-Type": "application/yaml"},
        )
    return found
