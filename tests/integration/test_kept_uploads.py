"""A form that is refused keeps what was uploaded with it: for whoever uploaded it, on that very form, and for nobody and nothing else."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.approvals.models import Approval
from app.attempts.forms import LARGEST_FILE, MOST_FILES
from app.attempts.models import Attempt, Step
from app.attempts.usecases import start_attempt
from app.evidence import store, uploads
from app.evidence.models import KeptUpload
from app.evidence.repository import files_of
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput
from app.ops.references import referred
from app.web.security import PARSED_FILES
from tests.integration.web_client import Browser
from tests.people import Cast
from tests.scenes import PNG, engage, run

OTHER = PNG + b"another"
FRONT = ("photos", ("正面.png", PNG, "image/png"))


def waiting(cast: Cast) -> tuple[str, dict[str, str]]:
    """Bring an attempt at G1 to its form. Returns the form's address and answers as a browser sends them."""
    with write_session() as s:
        attempt = start_attempt(s, engagement_id=engage(s, cast).id, gate="G1", actor=cast.li_wei)
        step = s.execute(select(Step).where(Step.attempt_id == attempt.id, Step.kind == "manual")).scalar_one()
        attempt.status = step.status = "waiting"
        values = {"choice": lambda f: f["choices"][0]["value"], "bool": lambda f: "yes", "person": lambda f: f["name"], "text": lambda f: "好"}
        return f"/attempts/{attempt.id}/steps/{step.id}", {f["name"]: values[f["type"]](f) for f in step.spec["params"]["form"]}


def kept_in(page: Any) -> list[str]:
    return re.findall(r'name="kept" value="([^"]+)" checked', page.text)


def photos_of(path: str) -> dict[str, str]:
    with read_session() as s:
        return {f.path.rpartition("/")[2]: f.sha256 for f in files_of(s, path.split("/")[2]) if f.path.endswith(".png")}


def test_photos_of_a_form_that_is_refused_for_another_field_need_not_be_chosen_again(cast: Cast) -> None:
    path, answers = waiting(cast)
    browser = Browser("li.wei")
    refused = browser.send(path, files=[FRONT, ("photos", ("no.png", b"MZ", "image/png"))], **{**answers, "packaging": ""})
    assert refused.status_code == 422
    assert "正面.png" in refused.text
    assert len(kept_in(refused)) == 1  # what is no picture could not be handed in later either
    assert kept_in(browser.get(path)) == kept_in(refused)  # also for who leaves the form and comes back
    again = browser.send(path, files=[FRONT], **{**answers, "packaging": ""}, kept=kept_in(refused))
    assert kept_in(again) == kept_in(refused)  # chosen again it is still one file
    assert browser.send(path, **answers, kept=kept_in(again)).status_code == 303
    assert photos_of(path) == {"正面.png": store.put_bytes(PNG).sha256}
    with read_session() as s:
        assert s.scalars(select(KeptUpload)).all() == []


def test_a_kept_photo_that_is_unticked_is_not_handed_in(cast: Cast) -> None:
    path, answers = waiting(cast)
    browser = Browser("li.wei", "zh-CN")
    refused = browser.send(path, files=[FRONT, ("photos", ("背面.png", OTHER, "image/png"))], **{**answers, "packaging": ""})
    front, back = kept_in(refused)
    assert "此前已上传" in refused.text
    assert kept_in(browser.send(path, **{**answers, "packaging": ""}, kept=[back])) == [back]
    gone = browser.send(path, **answers, kept=[front, back])
    assert gone.status_code == 422
    assert "请重新选择" in gone.text
    assert browser.send(path, **answers, kept=[back]).status_code == 303
    assert set(photos_of(path)) == {"背面.png"}


def test_what_one_person_uploaded_is_kept_for_nobody_else_and_for_no_other_form(cast: Cast) -> None:
    path, answers = waiting(cast)
    mine = kept_in(Browser("li.wei").send(path, files=[FRONT], **{**answers, "packaging": ""}))
    other = Browser("zhao.lei")
    assert kept_in(other.get(path)) == []
    assert other.send(path, **answers, kept=mine).status_code == 422
    assert kept_in(Browser("li.wei").get(path)) == mine
    with write_session() as s, pytest.raises(BadInput):
        uploads.chosen(s, place=uploads.place_of("form", "another"), ids=mine, actor=cast.li_wei)


def test_from_whom_the_form_does_not_wait_for_nothing_is_kept(cast: Cast) -> None:
    path, answers = waiting(cast)
    viewer = Browser("viewer")
    assert viewer.send(path, files=[FRONT], **{**answers, "packaging": ""}).status_code in (403, 422)
    assert viewer.send(path, files=[FRONT], **answers, kept=["x"]).status_code in (403, 422)
    with write_session() as s:
        assert s.scalars(select(KeptUpload)).all() == []
        s.get_one(Attempt, path.split("/")[2]).status = "running"
    assert Browser("li.wei").send(path, files=[FRONT], **answers, kept=["x"]).status_code == 422
    with read_session() as s:
        assert s.scalars(select(KeptUpload)).all() == []


def test_files_are_kept_within_the_limits_of_the_form_and_for_a_day(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    place = uploads.place_of("form", "x")
    many = [(f"{n}.png", PNG + str(n).encode()) for n in range(MOST_FILES + 2)]
    with write_session() as s:
        uploads.keep(s, place=place, files=[("large.png", PNG + bytes(LARGEST_FILE)), *many], actor=cast.li_wei)
        rows = uploads.kept(s, place=place, actor=cast.li_wei)
        assert [row.name for row in rows] == [name for name, _ in many[:MOST_FILES]]
        assert {row.sha256 for row in rows} <= referred(s)  # no clean-up takes them while they wait
        later = now() + uploads.KEPT_FOR + timedelta(seconds=1)
        monkeypatch.setattr(uploads, "now", lambda: later)
        assert uploads.kept(s, place=place, actor=cast.li_wei) == []
        uploads.keep(s, place=place, files=many[:1], actor=cast.zhao_lei)
        assert [row.user_id for row in s.scalars(select(KeptUpload))] == [cast.zhao_lei.user_id]


def test_the_scan_of_a_refused_sign_off_is_kept_and_a_newly_chosen_one_is_taken_instead(cast: Cast) -> None:
    with write_session() as s:
        run(s, cast, engage(s, cast), "G1", summary={"en": "Passed.", "zh-CN": "通过。"})
    browser = Browser("wang.fang")
    path = re.search(r'href="(/sign-off/sign_off/[^"]+)"', browser.get("/sign-off").text)[1]  # type: ignore[index]
    seen = re.search(r'name="object_hash" value="([^"]+)"', browser.get(path).text)[1]  # type: ignore[index]
    scan = ("scan", ("signed.png", PNG, "image/png"))
    refused = browser.send(path, files=[scan], object_hash=seen, decision="reject", comment="")
    assert refused.status_code == 422
    assert "signed.png" in refused.text
    newer = browser.send(path, files=[("scan", ("newer.png", OTHER, "image/png"))], object_hash=seen, decision="reject", kept=kept_in(refused))
    assert "newer.png" in newer.text
    assert "signed.png" not in newer.text
    assert kept_in(Browser("chen.jing").get(path)) == []
    assert browser.send(path, object_hash=seen, decision="approve", kept=kept_in(newer)).status_code == 303
    with read_session() as s:
        given = s.scalars(select(Approval).where(Approval.object_kind == "sign_off")).one()
        assert store.read(str(given.scan_sha256)) == OTHER
        assert s.scalars(select(KeptUpload)).all() == []


def test_a_file_that_is_too_large_is_named_on_the_form_and_what_was_typed_stays(cast: Cast) -> None:
    path, answers = waiting(cast)
    text = {**answers, "notes": "箱角有划痕"} if "notes" in answers else answers
    refused = Browser("li.wei").send(path, files=[FRONT, ("photos", ("large.png", PNG + bytes(LARGEST_FILE), "image/png"))], **text)
    assert refused.status_code == 422
    assert "large.png is larger than 20 MiB." in refused.text
    assert len(kept_in(refused)) == 1
    assert all(value in refused.text for value in text.values())


def test_as_many_photos_as_the_form_names_are_taken_and_more_give_the_form_back(cast: Cast) -> None:
    path, answers = waiting(cast)
    browser = Browser("li.wei")
    assert f"at most {MOST_FILES} files" in browser.get(path).text
    photos = [("photos", (f"{i}.png", PNG + bytes([i]), "image/png")) for i in range(MOST_FILES + 1)]
    refused = browser.send(path, files=photos, **{**answers, "notes": "typed by hand"})
    assert refused.status_code == 422
    assert "typed by hand" in refused.text
    assert len(kept_in(refused)) == MOST_FILES
    assert browser.send(path, files=photos[:MOST_FILES], **answers).status_code == 303


def test_a_text_that_is_too_long_gives_the_form_back_with_all_else(cast: Cast) -> None:
    path, answers = waiting(cast)
    refused = Browser("li.wei").send(path, files=[FRONT], **{**answers, "notes": "x" * 5 * 2**20, "exceptions": "typed by hand"})
    assert refused.status_code == 422
    assert "typed by hand" in refused.text
    assert len(kept_in(refused)) == 1


def test_more_than_is_read_at_all_is_refused_in_the_readers_words_with_the_limit(cast: Cast) -> None:
    path, answers = waiting(cast)
    photos = [("photos", (f"{i}.png", b"", "image/png")) for i in range(PARSED_FILES + 1)]
    refused = Browser("li.wei", "zh-CN").send(path, files=photos, **answers)
    assert refused.status_code == 422
    assert f"超过 {PARSED_FILES} 个" in refused.text
    assert "HTTP 4" not in refused.text
