"""Every form that a page shows is for whoever sees it: none ends in a refusal for want of a role, and who may is said instead."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.integration.hostile import web_addresses
from tests.integration.test_who_may_what import addresses, ids  # noqa: F401 - the fixture
from tests.integration.web_client import Browser
from tests.people import Cast

PEOPLE = ("li.wei", "chen.jing", "wang.fang", "zhao.lei", "admin", "viewer")
FILLED = {"reason": "because", "confirmation": "DEMO-G1", "text": "g3: {agreement_max: 0.04}", "do": "keep", "gate": "G1", "closing": "done"}
OWN = ("/sign-out", "/account", "/sign-in")  # everybody's own


class Forms(HTMLParser):
    """Reads the forms of a page with what they would send as they stand, and the links that lead to a page of a form."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a = {name: value or "" for name, value in attrs}
        if tag == "form" and a.get("method") == "post":
            self.forms.append((a["action"], {}))
        elif tag in ("input", "select", "textarea", "button") and self.forms and a.get("name"):
            self.forms[-1][1].setdefault(a["name"], a.get("value", "") if tag in ("input", "button") else "")
        elif tag == "a" and a.get("href", "").startswith("/"):
            self.links.append(a["href"].partition("?")[0].partition("#")[0])


def read(page: Any) -> Forms:
    found = Forms()
    found.feed(page.text)
    return found


@pytest.mark.parametrize("login", PEOPLE)
def test_no_form_and_no_link_of_any_page_ends_in_a_refusal_for_whoever_sees_it(cast: Cast, ids: dict[str, str], login: str) -> None:  # noqa: F811
    browser = Browser(login)
    todo = ["/", *(address for method, _, address in addresses(web_addresses(), ids) if method == "GET" and "stream" not in address)]
    linked, seen, forms, refused = {"/"}, set(), {}, []
    while todo:
        path = todo.pop()
        if path in seen or path.startswith(("/static", "/api", "/metrics")) or path.endswith((".pdf", ".zip", "/stream", ".svg", ".txt")):
            continue
        seen.add(path)
        page = browser.get(path)
        if path in linked and page.status_code == 403:
            refused.append(f"link {path}")
        if page.status_code == 200 and page.headers["content-type"].startswith("text/html"):
            found = read(page)
            forms |= {action: (path, fields) for action, fields in found.forms if not action.startswith(OWN)}
            linked |= set(found.links)
            todo += found.links
    csrf = browser.csrf()
    for action, (path, fields) in sorted(forms.items()):
        answer = browser.post(action, **{name: FILLED.get(name, value) for name, value in fields.items()} | {"csrf": csrf})
        if answer.status_code == 403:
            refused.append(f"form {action} of {path}: {re.search(r'<p><b>(.*?)</b>', answer.text)[1]}")  # type: ignore[index]
    assert refused == [], "\n".join(refused)


@pytest.mark.parametrize(("language", "engineer", "words"), [("en", "engineer", "One of these"), ("zh-CN", "工程师", "需要")])
def test_whoever_may_not_is_told_which_roles_may_in_the_place_of_the_form(
    cast: Cast,
    ids: dict[str, str],  # noqa: F811
    language: str,
    engineer: str,
    words: str,
) -> None:
    browser = Browser("viewer", language)
    engagement, attempt = f"/engagements/{ids['engagement_id']}", f"/attempts/{ids['attempt_id']}"
    for path in (
        "/engagements/new",
        engagement,
        f"{engagement}/register",
        f"{engagement}/wipes",
        f"{engagement}/plan/revise",
        attempt,
        f"{attempt}/cancel",
        f"{attempt}/steps/{ids['step_id']}",
    ):
        told = re.findall(r'<p class="only-for[^>]*>(.*?)</p>', browser.get(path).text, re.S)
        assert told, path
        assert engineer in told[0], (path, told)
        assert "周敏" in told[0]
        assert words.lower() in told[0].lower()
