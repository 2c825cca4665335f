"""The plan is revised at its page: looked at first, with what is wrong beside the text, kept only if nobody was faster."""

from __future__ import annotations

import re

from app.kit.db import read_session, write_session
from app.plans.usecases import add_revision, current
from tests.integration.web_client import Browser, demo_engagement, seal
from tests.people import Cast


def test_a_change_is_shown_against_the_sealed_plan_and_kept_only_when_told_so(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    seal(cast, engagement)
    page, where = Browser("li.wei"), f"/engagements/{engagement}/plan/revise"
    shown = page.send(where, text="g3:\n  agreement_max: 0.03\n", do="look")
    row = re.search(r"<code class=\"muted\">g3\.agreement_max</code>.*?</tr>", shown.text, re.S)[0]
    assert ("0.05" in row, "0.03" in row, "sealed revision 0" in shown.text) == (True, True, True)
    with read_session() as s:
        assert current(s, engagement).revision == 0
    base = re.search(r'name="base" value="([^"]+)"', shown.text)[1]
    kept = page.send(where, text="g3:\n  agreement_max: 0.03\n", do="keep", base=base)
    assert kept.headers["location"] == f"/engagements/{engagement}/plan"
    after = page.get(f"/engagements/{engagement}/plan").text
    assert all(words in after for words in ("Both parties approve it", "Not sealed yet", "sealed revision 0", "g3.agreement_max"))
    with read_session() as s:
        assert (current(s, engagement).revision, current(s, engagement).sealed_at) == (1, None)


def test_what_is_wrong_stands_with_its_field_and_the_text_is_kept(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    page, where = Browser("li.wei", "zh-CN"), f"/engagements/{engagement}/plan/revise"
    wrong = page.send(where, text="g3:\n  agreement_max: soon\n  speed: 3\n", do="look")
    assert wrong.status_code == 422
    assert all(told in wrong.text for told in ("<li>g3.agreement_max", "<li>g3.speed", "speed: 3"))
    for text in ("g3: [", "- a", "", "g3: {}\ng3: {}", "a: &a [*a]"):
        assert page.send(where, text=text, do="look").status_code == 422, text
    assert page.send(where, text="g3:\n  agreement_max: 0.05\n", do="look").status_code == 409  # says this already


def test_who_was_slower_looks_again(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    with write_session() as s:
        base = current(s, engagement).hash
        add_revision(s, engagement_id=engagement, differences={"g3": {"agreement_max": "0.04"}}, actor=cast.li_wei)
    page, where = Browser("li.wei"), f"/engagements/{engagement}/plan/revise"
    late = page.send(where, text="g3:\n  agreement_max: 0.03\n", do="keep", base=base)
    unseen = page.send(where, text="g3:\n  agreement_max: 0.03\n", do="keep")
    assert (late.status_code, unseen.status_code, "revised since you looked" in late.text) == (412, 412, True)


def test_an_approver_reads_and_cannot_revise(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    page = Browser("wang.fang")
    assert "Revise the plan" not in page.get(f"/engagements/{engagement}/plan").text
    assert page.send(f"/engagements/{engagement}/plan/revise", text="g3:\n  agreement_max: 0.03\n", do="look").status_code == 403
