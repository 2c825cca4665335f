"""One gate from the door to the signatures, as people do it: Chromium at the pages of the real service, with real playbooks on the simulated rack."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from app.demo.inspection import picture
from app.settings import ROOT, settings
from tests.e2e.browser import Watched, chromium, sign_in
from tests.people import PASSWORD, Cast
from tests.processes import mentions

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(600)]

ENGAGEMENT_FILE = ROOT / "app" / "demo" / "engagement.yaml"
LONG = 200_000  # ms that we wait for a step of the gate before we call it lost: a machine may be very busy
APPROVERS = ("chen.jing", "wang.fang")


@pytest.fixture
def service(cast: Cast, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the whole service over a fresh state directory and give the address of its pages; afterwards nothing of it is left."""
    from app.up import Supervisor

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    monkeypatch.setenv("QUADGATE_WEB_PORT", str(port))
    settings.cache_clear()
    supervisor = Supervisor()
    supervisor.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        supervisor.stop()
        for log in sorted((state / "log").glob("*.log")):  # shown when the test fails
            print(f"--- {log.name}\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}")
    assert mentions(state) == []


def test_a_gate_is_passed_at_the_pages_from_the_engagement_file_to_both_signatures(service: str, tmp_path: Path) -> None:
    assert ready(service) == {"code": 200, "status": "ready"}
    with chromium() as browser:
        engineer = Watched(browser)
        approvers = [Watched(browser) for _ in APPROVERS]
        page = engineer.page
        sign_in(page, service, "li.wei", PASSWORD)
        assert page.locator("html").get_attribute("lang") == "zh-CN"

        engagement = hand_in_the_engagement(page)
        for person, login in zip(approvers, APPROVERS, strict=True):
            sign_in(person.page, service, login, PASSWORD)
            decide(person.page, service, "plan")
        page.goto(engagement)
        page.wait_for_selector("text=双方已封存")
        page.click("#next-action")

        attempt = fill_in_the_form(page, tmp_path)
        follow_live(page)
        report, bundle = take_the_papers(page, tmp_path)
        assert_passed(report, bundle)

        for person in approvers:
            decide(person.page, service, "sign_off", scan=report)
        page.goto(service)
        gate = page.locator(".gate:has([data-gate=G1])")
        assert "通过" in gate.inner_text()
        assert "done" in (gate.get_attribute("class") or "")
        page.goto(engagement)
        assert page.locator("a:has-text('已签署报告的扫描件')").count() == len(APPROVERS)

        page.goto(f"{attempt}?from=mail")
        page.click("text=English")
        page.wait_for_selector("#verdict .badge.v-pass:has-text('Pass')")
        assert page.url.split("?")[0] == attempt
        assert "from=mail" in page.url
        page.set_viewport_size({"width": 390, "height": 844})
        keep(page, "after-en-390")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert [line for one in (engineer, *approvers) for line in one.complaints] == []


def ready(base: str) -> dict[str, Any]:
    """Ask the service whether work gets done."""
    with urllib.request.urlopen(f"{base}/readyz", timeout=10) as answer:
        return {"code": answer.status, "status": json.load(answer)["status"]}


def hand_in_the_engagement(page: Any) -> str:
    """Choose the engagement file on the page for a new one; returns the page of the engagement."""
    page.click("a[href='/engagements/new'] >> nth=0")
    page.set_input_files("input[name=file]", ENGAGEMENT_FILE)
    expect(page.locator("#text")).to_have_value(re.compile("示例智算科技有限公司"))  # it can be read before it is sent
    page.click("main button[type=submit]")
    page.wait_for_selector("text=下一步")
    return str(page.url)


def decide(page: Any, base: str, kind: str, scan: Path | None = None) -> None:
    """Approve what waits in the inbox of the person at the page."""
    page.goto(f"{base}/sign-off")
    page.click(f"a.btn.primary[href^='/sign-off/{kind}/']")
    page.check("input[name=decision][value=approve]")
    page.fill("textarea[name=comment]", "已核对")
    if scan:
        page.set_input_files("input[name=scan]", scan)
    keep(page, f"decide-{kind}-zh-1280")
    page.click("main button[type=submit]")
    page.wait_for_url(f"{base}/sign-off")


def fill_in_the_form(page: Any, folder: Path) -> str:
    """Wait until the attempt asks for a person, and hand in the unpacking form with its photo; returns the page of the attempt."""
    page.click("a:has-text('填写表单')", timeout=LONG)
    page.wait_for_selector("main form[enctype]")
    for choice in page.locator("form select").all():
        choice.select_option(index=1)  # the first answer is the good one
    page.check("input[name=serials_match][value=yes]")
    page.fill("input[name=receiver_vendor]", "李伟")
    page.fill("input[name=receiver_customer]", "赵磊")
    photo = folder / "开箱.png"
    photo.write_bytes(picture("unpacking"))
    page.set_input_files("input[name=photos]", photo)
    keep(page, "form-zh-1280")
    page.click("main form button[type=submit]")
    page.wait_for_selector("#run-badge:has-text('运行中')", timeout=LONG)
    return str(page.url)


def follow_live(page: Any) -> None:
    """See lines of Ansible arrive on the page as it stands, without a reload, until the verdict is there."""
    page.evaluate("window.sameDocument = true")
    page.wait_for_selector("#log p[id]", timeout=LONG)
    seen = page.locator("#log p[id]").count()
    page.wait_for_selector(f"#L{seen + 1}", timeout=LONG)
    keep(page, "live-zh-1280")
    page.set_viewport_size({"width": 390, "height": 844})
    keep(page, "live-zh-390")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate("window.sameDocument")
    page.wait_for_selector("#log p:has-text('TASK [')")
    page.wait_for_selector("#verdict .badge.large.v-pass:has-text('通过')", timeout=LONG)


def take_the_papers(page: Any, folder: Path) -> tuple[Path, Path]:
    """Download the Chinese report and the evidence bundle, when the attempt has ended."""
    page.wait_for_selector("#run-badge:has-text('已结束')", timeout=LONG)
    keep(page, "after-zh-1280")
    files = []
    for link in ("#verdict a:has-text('中文')", "#verdict a[href$='/bundle.zip']"):
        with page.expect_download() as coming:
            page.click(link)
        path = folder / coming.value.suggested_filename
        coming.value.save_as(path)
        files.append(path)
    return files[0], files[1]


def assert_passed(report: Path, bundle: Path) -> None:
    """The paper says what the page said, and anyone can judge the evidence again."""
    assert report.suffix == ".pdf"
    text = "".join(page.extract_text() for page in PdfReader(report).pages)
    quadgate = Path(sys.executable).with_name("quadgate")
    judged = subprocess.run([quadgate, "judge", bundle, "--json"], cwd=report.parent, capture_output=True, text=True, timeout=60, check=False)
    assert judged.returncode == 0, judged.stderr
    document = json.loads(judged.stdout)
    assert document["stored_verdict"] == "same"
    assert "判定" in text
    assert "通过" in text
    assert document["manifest_hash"].removeprefix("sha256:") in "".join(text.split())


def keep(page: Any, name: str) -> None:
    """Keep a picture of the page when somebody wants to look at it: QUADGATE_SHOTS names a folder."""
    if folder := os.environ.get("QUADGATE_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
