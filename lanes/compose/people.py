"""The people of an engagement at the pages, through the proxy and its TLS; and a program at the API."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any

import httpx2

from app.demo.inspection import picture
from lanes.compose.stack import PATIENCE_S, Stack, wait_until

PASSWORD = "correct horse battery 电池"
PEOPLE = {
    "li.wei": ("李伟", "vendor", "engineer"),
    "chen.jing": ("陈静", "vendor", "approver"),
    "wang.fang": ("王芳", "customer", "approver"),
    "zhao.lei": ("赵磊", "customer", "engineer"),
}


class Person:
    """A browser: it signs in, reads pages, sends forms."""

    def __init__(self, base: str, certificate: Path, login: str) -> None:
        self.base = base
        self.http = httpx2.Client(base_url=base, verify=ssl.create_default_context(cafile=str(certificate)), timeout=60, headers={"Origin": base})
        answer = self.http.post("/sign-in", data={"login": login, "password": PASSWORD})
        assert answer.status_code == 303, answer.text[-2000:]

    def get(self, path: str) -> str:
        """Return a page."""
        answer = self.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}\n{answer.text[-2000:]}"
        return answer.text

    def send(self, page: str, path: str, files: Any = None, **form: str) -> None:
        """Send the form of a page."""
        token = re.search(r'name="csrf" value="([^"]+)"', self.get(page))
        answer = self.http.post(path, data={**form, "csrf": token[1] if token else ""}, files=files)
        assert answer.status_code == 303, f"{path}: {answer.status_code}\n{answer.text[-3000:]}"

    def agree(self) -> int:
        """Approve all that waits for this person. Returns how much it was."""
        links = list(dict.fromkeys(re.findall(r'class="btn primary" href="(/sign-off/[^"]+)"', self.get("/sign-off"))))
        for link in links:
            found = re.search(r'name="object_hash" value="([^"]+)"', self.get(link))
            assert found, link
            scan = {"scan": ("scan.png", picture("SIMULATED: no scan"), "image/png")} if "/sign_off/" in link else None
            self.send(link, link, files=scan, object_hash=found[1], decision="approve", comment="演示 / demo")
        return len(links)

    def inspect(self, attempt: dict[str, Any]) -> None:
        """Fill in the form that waits, each field with its good answer."""
        step = next(step for step in attempt["steps"] if step["kind"] == "manual")
        names = iter(("李伟", "赵磊", "陈静"))
        form = {}
        for field in step["params"]["form"]:
            choice = (field.get("choices") or [""])[0]
            good = {"person": lambda: next(names), "bool": lambda: "yes", "text": lambda: "—"}
            form[field["name"]] = good.get(field["type"], lambda c=choice: c["value"] if isinstance(c, dict) else c)()
        page = f"/attempts/{attempt['id']}/steps/{step['id']}"
        self.send(page, page, files={"photos": ("unpacking.png", picture("unpacking"), "image/png")}, **form)


class Program:
    """A client of the REST interface."""

    def __init__(self, base: str, certificate: Path, token: str) -> None:
        context = ssl.create_default_context(cafile=str(certificate))
        self.http = httpx2.Client(base_url=f"{base}/api/v1", verify=context, timeout=60, headers={"Authorization": f"Bearer {token}"})

    def get(self, path: str) -> Any:
        """Return a document."""
        answer = self.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-2000:]}"
        return answer.json()

    def bytes(self, path: str) -> bytes:
        """Return a file."""
        answer = self.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-2000:]}"
        return answer.content

    def create(self, text: str) -> str:
        """Create an engagement and return its id."""
        answer = self.http.post("/engagements", content=text.encode(), headers={"Content-Type": "application/yaml"})
        assert answer.status_code == 201, answer.text[-3000:]
        return str(answer.json()["id"])

    def start(self, engagement: str, gate: str, *, rehearsal: bool = False) -> str:
        """Start an attempt, or a rehearsal, and return its id."""
        key = {"Idempotency-Key": f"lane-{engagement[-8:]}-{gate}-{rehearsal}"}
        answer = self.http.post(f"/engagements/{engagement}/gates/{gate}/attempts", headers=key, json={"rehearsal": rehearsal})
        assert answer.status_code == 201, answer.text[-3000:]
        return str(answer.json()["id"])

    def first_line_of_the_stream(self, attempt: str) -> str:
        """Return the first line of the live stream: it comes at once, or the proxy keeps it in a buffer."""
        with self.http.stream("GET", f"/attempts/{attempt}/stream", timeout=20) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            return next(line for line in answer.iter_lines() if line)

    def answers(self) -> bool:
        """Tell whether the API answers."""
        try:
            return bool(self.http.get("/engagements").status_code == 200)
        except Exception:
            return False


def sign_up(stack: Stack) -> dict[str, Person]:
    """Enter the people of an engagement once everything is healthy, and sign them in."""
    stack.all_healthy()
    for login, (name, party, role) in PEOPLE.items():
        stack.quadgate("user", "add", login, "--name", name, "--party", party, "--role", role, "--password-stdin", given=f"{PASSWORD}\n")
    certificate = stack.folder / "secrets" / "tls_certificate"
    return {login: Person(stack.base, certificate, login) for login in PEOPLE}


def automation(stack: Stack) -> Program:
    """Return a program with a token of its own."""
    token = stack.quadgate("user", "token", "li.wei", "--name", "lane").split()[-1]
    return Program(stack.base, stack.folder / "secrets" / "tls_certificate", token)


def followed(program: Program, people: dict[str, Person], attempt_id: str, strike: Any = None) -> dict[str, Any]:
    """Follow an attempt to its end; fill in the form that it waits for; strike once when its condition holds."""
    struck: list[bool] = []

    def over() -> dict[str, Any] | None:
        attempt = program.get(f"/attempts/{attempt_id}")
        if attempt["may"]["form"]:
            people["zhao.lei"].inspect(attempt)
        if strike is not None and not struck and strike(attempt):
            struck.append(True)
        return attempt if attempt["status"] in ("finished", "canceled", "error") else None

    attempt: dict[str, Any] = wait_until(over, PATIENCE_S, lambda: program.get(f"/attempts/{attempt_id}")["steps"])
    assert strike is None or struck, attempt["problem"] or attempt["steps"]
    return attempt
