"""A client of the whole ASGI application for tests: signs in, sends forms as a browser would, reads pages."""

from __future__ import annotations

import re
from typing import Any

from starlette.testclient import TestClient

from app.accounts.usecases import issue_token
from app.engagements.usecases import create_engagement
from app.kit.db import write_session
from app.settings import ROOT
from tests.people import PASSWORD, Cast

DEMO = (ROOT / "app" / "demo" / "engagement.yaml").read_text(encoding="utf-8")


class Browser:
    """A person at the pages."""

    def __init__(self, login: str = "", language: str = "en") -> None:
        from app.main import create_app

        self.http = TestClient(create_app(), base_url="http://testserver", follow_redirects=False, raise_server_exceptions=False)
        self.http.cookies.set("qg_lang", language)
        if login:
            answer = self.post("/sign-in", login=login, password=PASSWORD)
            assert answer.status_code == 303, answer.text

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(path, headers=headers)

    def csrf(self, path: str = "/") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        return found[1] if found else ""

    def post(self, path: str, files: Any = None, headers: dict[str, str] | None = None, **form: str) -> Any:
        return self.http.post(path, data=form, files=files, headers={"Origin": "http://testserver", **(headers or {})})

    def send(self, path: str, files: Any = None, **form: str) -> Any:
        """Send a form with the token of the session."""
        return self.post(path, files=files, csrf=self.csrf(), **form)


class Robot:
    """A program at the API, with a token."""

    def __init__(self, user_id: str, language: str = "en") -> None:
        from app.main import create_app

        with write_session() as s:
            token = issue_token(s, user_id=user_id, name="test", days=1)
        self.http = TestClient(create_app(), raise_server_exceptions=False, headers={"Authorization": f"Bearer {token}", "Accept-Language": language})

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(f"/api/v1{path}", headers=headers)

    def post(self, path: str, json: Any = None, content: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(f"/api/v1{path}", json=json, content=content, headers=named)


def demo_engagement(cast: Cast) -> str:
    """Create the demo's engagement and return its id."""
    with write_session() as s:
        return create_engagement(s, text=DEMO, actor=cast.li_wei).id


def seal(cast: Cast, engagement_id: str) -> None:
    """Let both parties seal the plan."""
    from app.approvals.usecases import approve, pending

    for actor in (cast.chen_jing, cast.wang_fang):
        with write_session() as s:
            item = next(p for p in pending(s, actor=actor) if p["engagement_id"] == engagement_id and p["object_kind"] == "plan")
            approve(s, object_kind="plan", object_id=item["object_id"], object_hash=item["object_hash"], decision="approve", comment="", actor=actor)
