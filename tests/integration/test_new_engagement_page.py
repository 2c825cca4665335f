"""A new engagement at its page and by REST: a sample in the reader's language, and what should be known before something is made of the file."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.commands import plan as plan_command
from app.engagements.usecases import board
from app.kit.db import read_session
from app.web.starter import starter
from tests.integration.web_client import DEMO, Browser, Robot
from tests.people import Cast

PIECE = "  - {kind: drive, model: QF-N7680, serial: QF26K0A00103, host: array01}\n"
SHORT = DEMO.replace(PIECE, "", 1)
SAID = {"en": "QF-N7680: 4 ordered, 3 packed", "zh-CN": "QF-N7680：订购 4 件，装箱 3 件"}


def made(cast: Cast) -> list[str]:
    with read_session() as s:
        return [item["code"] for item in board(s, actor=cast.li_wei)]


@pytest.mark.parametrize("language", SAID)
def test_the_sample_is_in_the_language_of_the_page(cast: Cast, language: str) -> None:
    text = unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", Browser("li.wei", language).get("/engagements/new").text, re.S)[1])
    assert text.strip() == starter(language).strip()
    assert bool(re.search("[\u4e00-\u9fff]", text)) is (language == "zh-CN")


@pytest.mark.parametrize("language", SAID)
def test_what_the_packing_list_lacks_is_said_before_anything_is_created_and_stands_on_the_engagements_page(cast: Cast, language: str) -> None:
    page = Browser("li.wei", language)
    first = page.send("/engagements", text=SHORT)
    assert (first.status_code, made(cast)) == (200, [])
    assert SAID[language] in unescape(first.text)
    seen = unescape(re.search(r'name="seen" value="([^"]+)"', first.text)[1])

    otherwise = page.send("/engagements", text=SHORT.replace("serial: QF26K0A00102,", "serial: QF26K0A00102, firmware: OLD,"), seen=seen)
    assert (otherwise.status_code, made(cast)) == (200, [])  # another warning than the one that was read

    second = page.send("/engagements", text=SHORT, seen=seen)
    assert (second.status_code, made(cast)) == (303, ["DEMO"])
    assert SAID[language] in unescape(page.get(second.headers["location"]).text)


def test_a_file_without_such_a_gap_is_created_at_once(cast: Cast) -> None:
    assert Browser("li.wei").send("/engagements", text=DEMO).status_code == 303


def test_rest_creates_it_and_its_answer_says_what_is_missing(cast: Cast) -> None:
    robot = Robot(cast.li_wei.user_id)
    answer = robot.post("/engagements", content=SHORT.encode(), Content_Type="application/yaml")
    assert answer.status_code == 201
    assert SAID["en"] in answer.json()["packing_warning"]["en"]
    assert SAID["zh-CN"] in answer.json()["packing_warning"]["zh-CN"]


@pytest.mark.parametrize("language", SAID)
def test_plan_check_says_it_beside_the_hash(tmp_path: Path, language: str) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(SHORT, encoding="utf-8")
    cli, run = typer.Typer(), CliRunner().invoke
    plan_command.register(cli)
    cli.command("other")(lambda: None)  # with one group alone Typer would drop its name
    told = run(cli, ["plan", "check", str(file), "--lang", language])
    assert (told.exit_code, SAID[language] in told.stderr, told.stdout.count("\n")) == (0, True, 1)
    as_json = run(cli, ["plan", "check", str(file), "--json"])
    assert SAID[language] in json.loads(as_json.stdout)["packing_warning"][language]
    file.write_text(DEMO, encoding="utf-8")
    assert json.loads(run(cli, ["plan", "check", str(file), "--json"]).stdout)["packing_warning"] is None
