"""Chromium at the pages: sign in, create, seal, start, follow live, in both languages, wide and narrow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.accounts.upkeep import close_user
from app.kit.clock import now
from app.kit.db import write_session
from gates.judge import judge
from tests import scenes
from tests.bundles import Truth, g3_evidence
from tests.e2e.browser import Watched, chromium, served, sign_in
from tests.integration.web_client import DEMO, Browser, demo_engagement
from tests.people import PASSWORD, Cast

pytestmark = pytest.mark.chromium


@pytest.fixture
def base(cast: Cast) -> Iterator[str]:
    from app.main import create_app

    with served(create_app()) as url:
        yield url


def put_line(attempt_id: str, text: str, number: int) -> None:
    """Store one event of Ansible, as the engine would."""
    from sqlalchemy import select

    from app.attempts.models import Step, StepEvent

    with write_session() as s:
        step = s.scalars(select(Step).where(Step.attempt_id == attempt_id).order_by(Step.position)).first()
        assert step
        row = {"uuid": f"u{number}", "counter": number, "kind": "runner_on_ok", "host": "gpu01", "task": "t", "stdout": text, "data": {}, "at": now()}
        s.add(StepEvent(attempt_id=attempt_id, step_id=step.id, run="start-1", **row))


def finish(attempt_id: str) -> None:
    """End an attempt, as the engine would."""
    from app.attempts.models import Attempt

    with write_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        attempt.status, attempt.finished_at = "canceled", now()


def test_from_the_door_to_a_live_attempt_and_back_in_chinese(base: str) -> None:
    with chromium() as browser:
        watched = Watched(browser)
        page = watched.page
        sign_in(page, base, "li.wei", PASSWORD)
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.click("text=English")
        page.click("text=New engagement >> nth=0")
        page.fill("textarea[name=text]", DEMO)
        page.click("text=Check and create")
        page.wait_for_selector("text=Next action")
        assert page.locator("#next-action").count() == 0  # sealing is not an engineer's to do
        engagement = page.url

        page.select_option("select[name=gate]", "G2")
        page.click("button:has-text('Rehearse')")
        page.wait_for_selector("#log")
        assert page.locator(".banner-rehearsal").is_visible()
        assert page.locator(".banner-simulated").is_visible()
        attempt_id = page.url.rsplit("/", 1)[1]
        put_line(attempt_id, "TASK [arm : <b>not bold</b>] ***", 1)
        page.wait_for_selector("#L1:has-text('<b>not bold</b>')")
        assert page.locator("#log b").count() == 0
        page.click("#follow")
        for n in range(2, 60):
            put_line(attempt_id, f"ok: [gpu01] line {n}", n)
        page.wait_for_selector("#L59")
        assert page.locator("#log .k-ok").count() == 58
        page.click("#follow")
        page.set_viewport_size({"width": 390, "height": 844})  # lines break anew, and who follows still sees the newest
        page.locator("#log").scroll_into_view_if_needed()
        expect(page.locator("#L59")).to_be_in_viewport()
        finish(attempt_id)
        page.wait_for_selector("#run-badge:has-text('Canceled')")  # the page loads itself anew, once
        assert page.locator("#live[data-running=no]").count() == 1
        assert page.locator("#log p").count() == 59

        page.goto(engagement)
        page.click("text=中文")
        page.wait_for_selector("text=第 1 次预演")
        assert page.url.startswith(engagement)
        assert watched.complaints == []


def put_samples(attempt_id: str, first: int, count: int, phase: str) -> int:
    """Store requests of a job and a line of telemetry after them, as a poll would; returns the id of the last."""
    from sqlalchemy import func, select

    from app.attempts.models import Sample, Step

    with write_session() as s:
        step = s.scalars(select(Step).where(Step.attempt_id == attempt_id, Step.kind == "job").order_by(Step.position)).first()
        assert step
        line = s.scalar(select(func.count()).where(Sample.step_id == step.id, Sample.stream == "telemetry.jsonl"))  # journals have no gap
        rows = [("records.jsonl", {"seq": first + n, "phase": phase, "tier": 8}) for n in range(count)] + [("telemetry.jsonl", {"seq": line})]
        samples = [Sample(attempt_id=attempt_id, step_id=step.id, stream=stream, seq=data["seq"], data=data) for stream, data in rows]
        s.add_all(samples)
        s.flush()
        return samples[-1].id


def test_a_live_page_reads_no_sample_twice_neither_on_opening_nor_when_its_stream_begins_anew(
    base: str, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.web import stream

    engagement = demo_engagement(cast)
    attempt_id = Browser("li.wei").send(f"/engagements/{engagement}/rehearsals", gate="G2").headers["location"].rsplit("/", 1)[1]
    last = put_samples(attempt_id, 0, 3, "store")
    with chromium() as browser:
        watched = Watched(browser)
        page, asked = watched.page, []
        page.on("request", lambda request: asked.append(request.url) if "/stream?" in request.url else None)
        sign_in(page, base, "li.wei", PASSWORD)
        page.goto(f"{base}/attempts/{attempt_id}?lang=en")
        expect(page.locator("#sample-count")).to_have_text("4")
        expect(page.locator("#sample-phase")).to_have_text("storing · c = 8")  # as the page came, before any news
        newer = put_samples(attempt_id, 3, 2, "measure")
        expect(page.locator("#sample-count")).to_have_text("7")
        expect(page.locator("#sample-phase")).to_have_text("measuring · c = 8")
        monkeypatch.setattr(stream, "LIFE_SECONDS", 0.1)
        page.wait_for_function("() => performance.getEntriesByType('resource').filter((e) => e.name.includes('/stream?')).length > 1")
        assert [re.search(r"&sample=(\d+)", url)[1] for url in asked[:2]] == [str(last), str(newer)]
        monkeypatch.setattr(stream, "LIFE_SECONDS", 600)
        put_samples(attempt_id, 5, 1, "measure")
        expect(page.locator("#sample-count")).to_have_text("9")  # the stream is open
        with write_session() as s:
            close_user(s, login="li.wei", actor=cast.admin)
        page.wait_for_url(f"{base}/sign-in*")  # and a closed account sees no more of it
        assert watched.complaints == []


def test_the_plan_is_sealed_by_a_person_of_each_party(base: str, cast: Cast) -> None:
    from app.engagements.usecases import create_engagement

    with write_session() as s:
        engagement = create_engagement(s, text=DEMO, actor=cast.li_wei).id
    with chromium() as browser:
        for login in ("chen.jing", "wang.fang"):
            watched = Watched(browser)
            page = watched.page
            sign_in(page, base, login, PASSWORD)
            page.goto(f"{base}/sign-off?lang=en")
            page.click("text=Review and decide")
            page.check("input[name=decision][value=approve]")
            page.click("text=Record my decision")
            page.wait_for_url(f"{base}/sign-off")
            assert watched.complaints == []
        page.goto(f"{base}/engagements/{engagement}")
        assert page.locator("text=Sealed by both parties").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_a_phone_and_text_can_be_read_in_any_light(base: str, cast: Cast, theme: str) -> None:
    from app.engagements.usecases import create_engagement

    with write_session() as s:
        engagement = create_engagement(s, text=DEMO, actor=cast.li_wei).id
    with chromium() as browser:
        page = Watched(browser, 390).page
        sign_in(page, base, "li.wei", PASSWORD)
        for path in (
            "/",
            f"/engagements/{engagement}",
            f"/engagements/{engagement}/plan",
            "/engagements/new",
            "/sign-off",
            "/api/v1/docs",
            "/words",
            "/nothing",
        ):
            for language in ("zh-CN", "en"):
                page.goto(f"{base}{path}?lang={language}&theme={theme}")
                fits_a_phone(page, (path, language))


def fits_a_phone(page: Page, told: tuple[str, str]) -> None:
    """Hold a page of 390 px against all that a reader with a thumb needs of it."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, told
    assert page.evaluate(WORST_CONTRAST) >= 4.5, told
    assert page.evaluate(BROKEN_NUMBERS) == [], told
    assert page.evaluate(CUT_OFF) == 0, told
    assert page.evaluate(TOO_SMALL) == [], told


def judged_attempt(cast: Cast) -> str:
    """Bring an engagement to a G3 that missed its limits, with the document that the judge gives to synthetic evidence; returns its page."""
    whole = judge(g3_evidence(Truth(drop=0.20)).bundle())
    told = {key: value for key, value in whole.items() if key not in ("gate", "verdict", "plan_hash", "attempt", "status")}
    with write_session() as s:
        engagement = scenes.engage(s, cast)
        scenes.run(s, cast, engagement, "G1")
        scenes.run(s, cast, engagement, "G2")
        return f"/attempts/{scenes.run(s, cast, engagement, 'G3', 'fail', **told).id}"


def test_what_was_refused_and_what_was_judged_fits_a_phone_and_paper_has_no_menus(base: str, cast: Cast) -> None:
    judged = judged_attempt(cast)
    with chromium() as browser:
        page = Watched(browser, 390).page
        sign_in(page, base, "li.wei", PASSWORD)
        for language in ("zh-CN", "en"):
            page.goto(f"{base}/engagements/new?lang={language}")
            page.fill("textarea[name=text]", DEMO.replace("  customer:", "  customer_of_this_joint_test_by_its_legal_name:", 1))
            page.click("form.card button.primary")
            expect(page.locator(".note.bad li").first).to_be_visible()
            fits_a_phone(page, ("a refused file", language))
            page.goto(f"{base}{judged}?lang={language}")
            page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
            fits_a_phone(page, ("a judged attempt", language))
        page.emulate_media(media="print")
        assert page.evaluate(PRINTED, [".topbar", ".foot", ".console", ".tools"]) == []
        assert page.evaluate(PRINTED, ["#verdict", "#checks"]) == ["#verdict", "#checks"]


# Which of some parts of a page are seen.
PRINTED = "(parts) => parts.filter((part) => document.querySelector(part)?.offsetParent)"

# Figures of a table, a list of limits or a meter that stand on more than one line, with a unit of percent.
BROKEN_NUMBERS = r"""[...document.querySelectorAll(".table td, .limits li > b, .meter .value")].flatMap((e) => {
  const found = [], walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) for (const m of node.data.matchAll(/[\d.,]*\d(\s?%)?/g)) {
    const range = document.createRange(); range.setStart(node, m.index); range.setEnd(node, m.index + m[0].length);
    const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
    if (lines.size > 1 && !node.parentElement.closest("code, .hash, .mono")) found.push(m[0]);
  }
  return found; })"""
CUT_OFF = """[...document.querySelectorAll(".scroll")].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).length"""

# What a thumb cannot hit: buttons and fields below 38 px (a tick's label is what is hit), links that stand alone below 24 px (WCAG 2.2, 2.5.8).
TOO_SMALL = """[["a.btn, button:not([hidden]):not(.pill), select, input:not([type=hidden], [type=checkbox], [type=radio])", 38], [".choice", 36],
  [".crumbs a, .nav a, .foot a, .segment a, .hit, summary", 24]].flatMap(([which, least]) => [...document.querySelectorAll(which)]
  .filter((e) => e.offsetParent && e.getBoundingClientRect().height < least - 0.5).map((e) => e.outerHTML.slice(0, 120)))"""

# The lowest contrast of any text with its own colour against the nearest painted ground (WCAG 2.2, relative luminance).
WORST_CONTRAST = re.sub(
    r"\s+",
    " ",
    """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = (el) => { for (; el; el = el.parentElement) { const c = rgb(getComputedStyle(el).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; }
    return [255, 255, 255]; };
  let worst = 21;
  for (const el of document.querySelectorAll('body *')) {
    const own = [...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !el.offsetParent || el.disabled || el.closest('.visually-hidden, .skip, svg')) continue;
    const a = light(rgb(getComputedStyle(el).color)), b = light(ground(el));
    worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return worst; }""",
)
