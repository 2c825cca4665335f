"""Signing in, sessions, forged forms, headers: what keeps strangers out of the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.web_client import Browser, demo_engagement
from tests.people import PASSWORD, Cast


def test_a_stranger_is_led_to_the_door_and_back_again(cast: Cast) -> None:
    stranger = Browser()
    answer = stranger.get("/sign-off")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Fsign-off")
    inside = stranger.post("/sign-in", login="li.wei", password=PASSWORD, next="/sign-off")
    assert (inside.status_code, inside.headers["location"]) == (303, "/sign-off")
    assert "Sign-off inbox" in stranger.get("/sign-off").text


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Browser().post("/sign-in", login="li.wei", password=PASSWORD)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    from app.settings import settings

    monkeypatch.setattr(settings(), "secure_cookies", True)
    cookie = Browser().post("/sign-in", login="li.wei", password=PASSWORD).headers["set-cookie"]
    assert cookie.startswith("__Host-qg_session=")
    assert "Secure" in cookie


def test_a_wrong_password_says_the_same_for_known_and_unknown_people(cast: Cast) -> None:
    known, unknown = (Browser().post("/sign-in", login=login, password="wrong") for login in ("li.wei", "nobody.here"))
    assert known.status_code == unknown.status_code == 403
    assert known.text.replace("li.wei", "") == unknown.text.replace("nobody.here", "")


def test_signing_out_ends_the_session_on_the_server_too(cast: Cast) -> None:
    browser = Browser("li.wei")
    token = browser.http.cookies["qg_session"]
    assert browser.send("/sign-out").status_code == 303
    browser.http.cookies.set("qg_session", token)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "evil", "//[", "//℀"])
def test_a_sign_in_never_leads_to_another_site(cast: Cast, target: str) -> None:
    answer = Browser().post("/sign-in", login="li.wei", password=PASSWORD, next=target)
    assert answer.headers["location"] == "/"


def test_an_address_that_is_none_is_no_error_of_the_service(cast: Cast) -> None:
    assert Browser().get("/sign-in?next=//[").status_code == 200
    assert Browser("li.wei").get("/sign-in?next=//[").headers["location"] == "/"
    assert Browser().post("/sign-in", headers={"Origin": "http://["}, login="li.wei", password=PASSWORD).status_code == 403


@pytest.mark.parametrize("charset", ["unicode_escape", "punycode", "undefined"])
@pytest.mark.parametrize("field", ['name="login"', 'name="file"; filename="\\\\ud800"'])
def test_a_form_in_a_charset_that_decodes_to_no_text_is_refused(cast: Cast, charset: str, field: str) -> None:
    body = f"--b\r\nContent-Disposition: form-data; {field}\r\n\r\n\\ud800\r\n--b--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary=b; charset={charset}", "Origin": "http://testserver"}
    answer = Browser().http.post("/sign-in", content=body, headers=kind)
    assert answer.status_code == 422
    assert "not UTF-8 text" in answer.text


def test_a_form_without_the_token_of_this_session_does_nothing(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    browser, other = Browser("li.wei"), Browser("chen.jing")
    path = f"/engagements/{engagement}/rehearsals"
    for token in ("", "guess", other.csrf()):
        answer = browser.post(path, csrf=token, gate="G1")
        assert answer.status_code == 403, token
        assert "security token" in answer.text
    assert browser.send(path, gate="G1").status_code == 303


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])
def test_a_form_from_another_site_does_nothing_even_with_the_token(cast: Cast, headers: dict[str, str]) -> None:
    engagement = demo_engagement(cast)
    browser = Browser("li.wei")
    answer = browser.post(f"/engagements/{engagement}/rehearsals", headers=headers, csrf=browser.csrf(), gate="G1")
    assert answer.status_code == 403
    assert "another site" in answer.text
    sign_in = Browser().post("/sign-in", headers=headers, login="li.wei", password=PASSWORD)
    assert "set-cookie" not in sign_in.headers


def test_every_answer_carries_the_headers_that_browsers_obey(cast: Cast) -> None:
    browser = Browser("li.wei")
    for path in ("/", "/nothing", "/static/quadgate.css", "/api/v1/engagements", "/healthz", "/sign-in"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-request-id"]


def test_a_well_formed_request_id_is_kept_and_another_is_replaced(cast: Cast) -> None:
    browser = Browser()
    assert browser.get("/healthz", **{"X-Request-Id": "trace-12345678"}).headers["x-request-id"] == "trace-12345678"
    assert browser.get("/healthz", **{"X-Request-Id": "no spaces here"}).headers["x-request-id"] != "no spaces here"


def test_too_large_a_body_is_refused_by_its_length_and_while_it_arrives(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient

    from app.main import create_app
    from app.web.asgi import BodyLimit, Shell

    client = TestClient(Shell(BodyLimit(create_app(), limit=1000)))
    assert client.post("/sign-in", content=b"x" * 2000).status_code == 413
    chunked = client.post(
        "/sign-in", content=iter([b"login=" + b"x" * 600, b"y" * 600]), headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert chunked.status_code == 413
    assert chunked.json()["code"] == "too_large"


def test_too_large_a_body_is_a_page_in_the_readers_language_for_a_browser(cast: Cast) -> None:
    from starlette.testclient import TestClient

    from app.main import create_app

    client = TestClient(create_app(body_limit=2**20), cookies={"qg_lang": "zh-CN"})
    for content in (b"x" * (2**20 + 1), iter([b"login=", b"y" * 2**20, b"z" * 2**20])):
        headers = {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
        refused = client.post("/sign-in", content=content, headers=headers)
        assert (refused.status_code, refused.headers["content-type"]) == (413, "text/html; charset=utf-8")
        assert "发送的内容超过 1 MiB" in refused.text
    assert client.post("/api/v1/engagements", content=b"x" * (2**20 + 1), headers={"Accept": "text/html"}).json()["code"] == "too_large"


def test_alive_means_that_the_process_answers() -> None:
    assert Browser().get("/healthz").status_code == 200


def test_no_template_switches_escaping_off_or_carries_an_inline_script() -> None:
    from app.settings import ROOT

    for path in (Path(ROOT) / "templates" / "web").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "|safe" not in text.replace(" ", ""), path
        assert "autoescape" not in text, path
        assert "<script>" not in text, path
        assert " style=" not in text, path
        assert " onclick=" not in text, path
