"""The pages: who may do what, what they say, in which language, and that no text becomes markup."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app.attempts.models import Attempt
from app.attempts.usecases import start_attempt
from app.kit.clock import now
from app.kit.db import new_id, write_session
from app.plans.usecases import add_revision
from tests.integration import web_data as d
from tests.integration.web_client import DEMO, Browser, demo_engagement, seal
from tests.people import Cast
from tests.scenes import engage, run
from tests.unit.reports import samples

PEOPLE = ("li.wei", "chen.jing", "wang.fang", "zhao.lei", "admin", "viewer")
EVIL = "<script>alert('&\"')</script>"


def foreign(cast: Cast) -> str:
    """Create an engagement of another customer, whom none of the cast's customer side is named by."""
    from app.engagements.usecases import create_engagement

    text = DEMO.replace("code: DEMO", "code: OTHER").replace("login: wang.fang", "login: someone").replace("login: zhao.lei", "login: else")
    with write_session() as s:
        return create_engagement(s, text=text, actor=cast.admin).id


def test_an_engineer_creates_an_engagement_and_sees_its_next_action(cast: Cast) -> None:
    browser = Browser("li.wei")
    made = browser.send("/engagements", text=DEMO)
    assert made.status_code == 303
    page = browser.get(made.headers["location"]).text
    assert "示例智算科技有限公司" in page
    assert "Seal the plan" in page
    assert "SIMULATED" in page
    assert "DEMO" in browser.get("/").text


def test_a_person_who_is_named_and_has_no_account_yet_is_said_on_the_engagement(cast: Cast) -> None:
    hidden = foreign(cast)
    page = Browser("li.wei").get(f"/engagements/{hidden}").text
    assert [page.count(f"{login}: no account here yet") for login in ("someone", "else", "chen.jing")] == [1, 1, 0]


def test_a_bad_file_is_answered_with_a_sentence_for_each_field_and_the_text_is_kept(cast: Cast) -> None:
    bad = DEMO.replace("  contract: HT-DEMO-0001", "  contrakt: HT-DEMO-0001")
    answer = Browser("li.wei").send("/engagements", text=bad)
    assert answer.status_code == 422
    assert "/engagement/contrakt" in answer.text or "contrakt" in answer.text
    assert "contrakt: HT-DEMO-0001" in answer.text  # still in the text field
    assert "<li>engagement.contrakt: " in answer.text  # one line for each, with the field in its sentence and not a second time as a pointer


@pytest.mark.parametrize(
    ("login", "may"), [("li.wei", True), ("zhao.lei", True), ("admin", True), ("chen.jing", False), ("wang.fang", False), ("viewer", False)]
)
def test_only_engineers_start_and_the_refusal_says_why(cast: Cast, login: str, may: bool) -> None:
    engagement = demo_engagement(cast)
    seal(cast, engagement)
    answer = Browser(login).send(f"/engagements/{engagement}/gates/G1/attempts")
    assert answer.status_code == (303 if may else 403)
    assert may or "may not do this" in answer.text


def test_a_gate_out_of_order_is_refused_on_the_page_with_the_reason(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    seal(cast, engagement)
    answer = Browser("li.wei").send(f"/engagements/{engagement}/gates/G3/attempts")
    assert answer.status_code == 409
    assert "G1 comes first" in answer.text


def test_ids_of_another_customer_tell_nothing(cast: Cast) -> None:
    hidden = foreign(cast)
    browser = Browser("wang.fang")
    for path in (
        f"/engagements/{hidden}",
        f"/engagements/{hidden}/plan",
        f"/engagements/{new_id()}",
        f"/attempts/{new_id()}",
        f"/reports/{new_id()}.pdf",
    ):
        answer = browser.get(path)
        assert answer.status_code == 404, path
    assert "OTHER" not in browser.get("/").text
    assert "OTHER" in Browser("li.wei").get("/").text
    assert browser.send(f"/engagements/{hidden}/rehearsals", gate="G1").status_code == 404


def test_both_parties_seal_the_plan_at_the_page_and_nobody_for_both(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    nothing = {"expected": {"ttft_p50_drop": None, "throughput_gain": None, "run_variation": "0.02"}}  # then the published figures stand in
    with write_session() as s:
        add_revision(s, engagement_id=engagement, differences=nothing, actor=cast.li_wei)
    for login in ("chen.jing", "wang.fang"):
        browser = Browser(login)
        inbox = browser.get("/sign-off").text
        path = re.search(r'href="(/sign-off/plan/[^"]+)"', inbox)[1]  # type: ignore[index]
        page = browser.get(path).text
        assert "Chances of the main gate" in page
        assert "thin margin" in page
        seen = re.search(r'name="object_hash" value="([^"]+)"', page)[1]  # type: ignore[index]
        assert browser.send(path, object_hash=seen, decision="approve").status_code == 303
        again = browser.send(path, object_hash=seen, decision="approve")
        assert again.status_code in (404, 409)
    assert "Sealed by both parties" in Browser("li.wei").get(f"/engagements/{engagement}").text


def test_a_decision_on_another_hash_than_the_present_one_is_refused(cast: Cast) -> None:
    demo_engagement(cast)
    browser = Browser("wang.fang")
    path = re.search(r'href="(/sign-off/plan/[^"]+)"', browser.get("/sign-off").text)[1]  # type: ignore[index]
    answer = browser.send(path, object_hash="sha256:" + "0" * 64, decision="approve")
    assert answer.status_code == 412
    assert "changed since you looked" in answer.text


def test_a_cancel_needs_the_typed_confirmation(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    browser = Browser("li.wei")
    attempt = browser.send(f"/engagements/{engagement}/rehearsals", gate="G2").headers["location"]
    assert "REHEARSAL" in browser.get(attempt).text
    wrong = browser.send(f"{attempt}/cancel", reason="the site lost cooling", confirmation="DEMO")
    assert wrong.status_code == 422
    assert "DEMO-G2" in wrong.text
    assert "the site lost cooling" in wrong.text
    assert browser.send(f"{attempt}/cancel", reason="the site lost cooling", confirmation="DEMO-G2").status_code == 303
    assert "the site lost cooling" in browser.get(attempt).text


def test_pages_say_of_a_canceled_attempt_what_is_final(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        attempt.status, attempt.counted_at = "running", now()
        attempt_path, engagement_path = f"/attempts/{attempt.id}", f"/engagements/{engagement.id}"
    browser = Browser("li.wei")
    asked = browser.get(f"{attempt_path}/cancel").text
    assert "only if every target proves" in asked  # no sample came yet: whether a request was measured, nobody here knows
    assert "Measured requests were made" not in asked
    assert browser.send(f"{attempt_path}/cancel", reason="no power", confirmation="DEMO-G1").status_code == 303
    assert "Canceling was asked for: no power" in browser.get(attempt_path).text
    with write_session() as s:
        row = s.get_one(Attempt, attempt_path.rpartition("/")[2])
        row.status, row.counted_at = "canceled", None
    page, listed = browser.get(attempt_path).text, browser.get(engagement_path).text
    assert "Canceled, and there will be no verdict: no power" in page
    assert "no: it was canceled before any measured request" in page
    assert not any(word in page for word in ("was asked for", "not yet: it counts"))
    assert "does not count" in listed
    assert "No verdict yet" not in listed


def test_a_sign_off_of_a_simulated_engagement_is_called_an_exercise(cast: Cast) -> None:
    with write_session() as s:
        run(s, cast, engage(s, cast), "G1", summary={"en": "Passed.", "zh-CN": "通过。"})
    for language, words in (("en", "this sign-off is an exercise"), ("zh-CN", "仅为演练")):
        browser = Browser("wang.fang", language)
        path = re.search(r'href="(/sign-off/sign_off/[^"]+)"', browser.get("/sign-off").text)[1]  # type: ignore[index]
        assert words in browser.get(path).text


def test_the_language_switch_keeps_the_address_and_is_remembered(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    browser = Browser("li.wei", language="")
    page = browser.get(f"/engagements/{engagement}?tab=1")
    assert '<html lang="zh-CN"' in page.text  # Chinese unless somebody asks otherwise
    assert f'href="/engagements/{engagement}?tab=1&amp;lang=en"' in page.text
    english = browser.get(f"/engagements/{engagement}?tab=1&lang=en")
    assert '<html lang="en"' in english.text
    assert '<html lang="en"' in browser.get("/").text
    assert 'data-theme="dark"' in browser.get("/?theme=dark").text
    assert 'data-theme="dark"' in browser.get("/").text


@pytest.mark.parametrize("path", ["/", "/engagements/new", "/sign-off", "/nothing-here", "/api/v1/docs"])
def test_no_page_in_chinese_is_left_in_english(cast: Cast, path: str) -> None:
    page = Browser("li.wei", language="zh-CN").get(path).text
    text = re.sub(r"<(script|style|textarea|pre)\b.*?</\1>|<code>.*?</code>|<[^>]+>", " ", page, flags=re.S)
    if path.startswith("/api"):
        text = text.split("操作", 1)[0]  # the operations themselves are written in English
        text = re.sub(r"Create an engagement.*?first answer again\.", "", text, flags=re.S)
    english = re.findall(r"(?:\b[a-z]{3,}\b[ ,]+){3,}\b[a-z]{3,}\b", text)
    assert not english, english


def data_with(text: str) -> dict[str, Any]:
    """Return a dataset with a text in every free field."""
    usual = {
        "board": [d.item()],
        "overview": d.overview(),
        "attempt": d.finished(),
        "events": d.events(),
        "samples": d.samples(),
        "pending": [d.pending()],
        "odds": d.odds(),
    }
    return d.filled(text, usual)


def test_no_text_becomes_markup_whoever_wrote_it_and_wherever_it_stands(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_with(EVIL)
    manual = d.filled(EVIL, d.step("unpacking", "manual", "Unpacking", "开箱", "waiting", 0, params={"form": d.FORM}))
    paths = {
        "/": data,
        f"/engagements/{d.ENGAGEMENT}": data,
        f"/engagements/{d.ENGAGEMENT}/plan": data,
        f"/attempts/{d.ATTEMPT}": data,
        f"/attempts/{d.ATTEMPT}/cancel": data,
        f"/attempts/{d.ATTEMPT}/steps/{manual['id']}": data | {"attempt": data["attempt"] | {"steps": [manual]}},
        "/sign-off": data,
        f"/sign-off/sign_off/{d.ATTEMPT}": data,
    }
    for path, shown in paths.items():
        d.replace_use_cases(monkeypatch, shown)
        answer = Browser("wang.fang").get(path)
        assert answer.status_code == 200, path
        assert "<script>alert" not in answer.text, path
        assert "&lt;script&gt;alert" in answer.text, path  # it stands there, as text


def test_what_a_form_sends_back_is_escaped_too(cast: Cast) -> None:
    browser = Browser("li.wei")
    for answer in (
        browser.send("/engagements", text=EVIL + "</textarea>" + EVIL),
        Browser().post("/sign-in", login=EVIL, password="x", next=EVIL),
        browser.get(f"/{EVIL}"),
    ):
        assert "<script>alert" not in answer.text


def test_before_the_end_of_g3_the_page_shows_no_rate_and_no_comparison(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {"board": [d.item()], "overview": d.overview(), "attempt": d.attempt(), "events": d.events(), "samples": d.samples(), "pending": []}
    d.replace_use_cases(monkeypatch, usual)
    sealed = Browser("li.wei").get(f"/attempts/{d.ATTEMPT}").text
    assert "no comparison of the arms" in sealed
    assert 'id="sample-rate"' not in sealed
    assert 'id="checks"' not in sealed
    d.replace_use_cases(monkeypatch, usual | {"attempt": d.finished()})
    open_page = Browser("li.wei").get(f"/attempts/{d.ATTEMPT}").text
    assert 'id="g3.ttft_p50_drop.c8"' in open_page
    assert "25.96 %" in open_page
    assert "≥ 25 %" in open_page


def test_an_internal_error_is_a_page_with_the_request_id_and_without_a_trace(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.web.pages import board

    def broken(*_a: Any, **_k: Any) -> None:
        raise RuntimeError("secret detail")

    browser = Browser("li.wei")
    monkeypatch.setattr(board.engagements, "board", broken)
    answer = browser.get("/")
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.text
    assert "secret detail" not in answer.text


@pytest.mark.parametrize("gate", ["G2", "G3", "G4"])
def test_a_real_verdict_is_shown_with_every_check_claim_and_chart(cast: Cast, monkeypatch: pytest.MonkeyPatch, gate: str) -> None:
    from gates.judge import judge
    from tests import bundles

    evidence = {"G2": bundles.g2_evidence, "G3": bundles.g3_evidence, "G4": bundles.g4_evidence}[gate]()
    document = judge(evidence.bundle())
    shown = d.finished(gate=gate, verdict=document["verdict"], document=document)
    usual = {"board": [d.item()], "overview": d.overview(), "attempt": shown, "events": d.events(), "samples": d.samples(), "pending": []}
    d.replace_use_cases(monkeypatch, usual)
    browser = Browser("li.wei")
    page = browser.get(f"/attempts/{d.ATTEMPT}").text
    assert all(f'id="{check["id"]}"' in page for check in document["checks"])
    pictures = re.findall(r'<img src="([^"]+)"', page)
    assert pictures
    for address in pictures:
        picture = browser.get(address.replace("&amp;", "&"))
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/svg+xml")
        assert picture.headers["content-security-policy"].startswith("default-src 'none'")
    assert browser.get(f"/attempts/{d.ATTEMPT}/charts/none.svg").status_code == 404


def test_a_verdict_without_intervals_shows_no_empty_column_and_the_readers_edition_comes_first(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = d.finished(reports=[{"id": f"paper-{language}", "language": language} for language in ("en", "zh-CN")])
    usual = {"board": [d.item()], "overview": d.overview(), "events": [], "samples": [], "pending": [d.pending()]}
    plain = shown["document"] | {"checks": [check | {"interval": None} for check in shown["document"]["checks"]]}
    for document, columns in ((shown["document"], 7), (plain, 6)):
        d.replace_use_cases(monkeypatch, usual | {"attempt": shown | {"document": document}})
        page = Browser("li.wei").get(f"/attempts/{d.ATTEMPT}").text
        assert f'colspan="{columns}"' in page
        assert ("Interval</th>" in page) == (columns == 7)
    for language, other in (("en", "zh-CN"), ("zh-CN", "en")):
        for address in (f"/attempts/{d.ATTEMPT}", f"/sign-off/sign_off/{d.ATTEMPT}"):
            page = Browser("wang.fang", language).get(address).text
            assert page.index(f"paper-{language}") < page.index(f"paper-{other}")


def test_receivers_stand_side_by_side_whatever_stands_above_them(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    form = [{"name": "notes", "type": "text"}, {"name": "a", "type": "person"}, {"name": "note", "type": "text"}, {"name": "b", "type": "person"}]
    manual = d.step("unpacking", "manual", "Unpacking inspection", "开箱检验", "waiting", 0, params={"form": form})
    shown = d.attempt(
        gate="G1", steps=[manual], may={"cancel": True, "retry": False, "extend": False, "judge": False, "claim_cause": False, "form": True}
    )
    usual = {"board": [d.item()], "overview": d.overview(), "events": [], "samples": [], "pending": []}
    d.replace_use_cases(monkeypatch, usual | {"attempt": shown})
    page = Browser("li.wei").get(f"/attempts/{d.ATTEMPT}/steps/{manual['id']}").text
    groups = [re.findall(r'<input type="text" name="(\w+)"', part) for part in page.split('class="fields-2"')[1:]]
    assert groups == [["notes", "note"], ["a", "b"]]


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_a_file_in_another_encoding_is_refused_and_never_guessed_at(cast: Cast, encoding: str) -> None:
    browser = Browser("li.wei")
    answer = browser.send("/engagements", files={"file": ("engagement.yaml", DEMO.encode(encoding))})
    assert answer.status_code == 422
    assert "not UTF-8 text" in answer.text
    assert "DEMO-0001" not in browser.get("/").text


def test_a_form_with_a_character_that_is_no_text_is_refused(cast: Cast) -> None:
    assert Browser("li.wei").send("/engagements", text=DEMO + "\0").status_code == 422


def test_an_attempt_page_names_the_advisory_checks_that_did_not_hold_beside_the_verdict(cast: Cast) -> None:
    told = samples.document("G3")
    told["checks"] = [c | {"verdict": "fail"} if c["severity"] == "advisory" else c for c in told["checks"]]
    with write_session() as s:
        attempt = run(s, cast, engage(s, cast), "G1", **{k: told[k] for k in ("checks", "summary", "figures", "not_tested", "manifest_hash", "risk")})
    for language, words in (("en", "Advisory checks, which decide nothing: 1 of 1 did not hold."), ("zh-CN", "1 个参考项中有 1 个未达标")):
        page = Browser("li.wei", language).get(f"/attempts/{attempt.id}").text
        assert page.index(words) < page.index('id="checks"')
        assert '<a href="#g3.ttft_p99_ratio.c8">' in page
