"""The page of the plan shows everything that the seal covers, and gives the very bytes that the hash is of."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from app.kit.db import read_session, write_session
from app.plans.usecases import add_revision, current
from app.reports.thresholds import section_rows
from app.reports.words import Words
from gates.plan import parse_plan
from tests.integration.web_client import Browser, demo_engagement
from tests.people import Cast

FULL = {  # what the default plan leaves empty
    "calendar": {"start": "2026-12-01"},
    "platform": {"accelerator": "MI308X", "framework": "vllm", "model": "m", "cpu": {"model": "EPYC 9654", "sockets": 2, "cores": 96}},
    "workload": {"cells": ["checkpoint"], "clients": [{"tool": "aiperf", "tier": 8, "requests": 80}]},
    "decision": {"comparison": "rounded", "digits": 1},
    "g3": {"sla": {"ttft_p50": {8: "2 s"}}},
    "g4": {"injections": [{"label": "port-flap", "action": "port-down", "at": "24 h", "lasts": "10 min"}], "drive_wear_max": "2 %"},
    "expected": {"ttft_p50_drop": {8: "0.3"}, "throughput_gain": {8: "0.35"}},
    "not_tested": [{"claim": "placebo", "reason": "双方约定不测"}],
    "g1": {"host": {"cmdline": ["iommu=pt"]}},
    "validity": {"client_cpu_max": "0.5"},
}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every leaf of canonical JSON: list entries one by one, what is empty as itself."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def changed(plan: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """Return the plan with another value at one leaf, of whatever kind."""
    copy = json.loads(json.dumps(plan))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    old = holder[path[-1]]
    number = isinstance(old, str) and re.fullmatch(r"-?[0-9.]+", old)
    holder[path[-1]] = (
        not old if isinstance(old, bool) else old + 1 if isinstance(old, int) else f"{old}1" if number else f"{old}x" if isinstance(old, str) else "x"
    )
    return copy


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("differences", [{}, FULL], ids=["default", "everything named"])
def test_no_leaf_of_the_sealed_json_can_change_without_a_row_of_the_page_that_changes(differences: dict[str, Any], language: str) -> None:
    plan, words = parse_plan(differences).data, Words(language)
    before = section_rows(plan, list(plan), words)
    told = [path for path in leaves(plan) if section_rows(changed(plan, path), list(plan), words) == before]
    assert told == []
    assert len(list(leaves(plan))) > 150


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_every_row_of_the_plan_stands_on_its_page_and_has_words(cast: Cast, language: str) -> None:
    engagement = demo_engagement(cast)
    text = unescape(Browser("wang.fang", language).get(f"/engagements/{engagement}/plan").text).replace("\u00a0", " ")
    with read_session() as s:
        plan = json.loads(current(s, engagement).canonical)
    rows = section_rows(plan, list(plan), Words(language))
    missing = [row for row in rows if f'id="{row["source"]}"' not in text or f"<b>{row['limit']}</b>" not in text]
    assert missing == []
    assert [row["source"] for row in section_rows(parse_plan(FULL).data, list(plan), Words(language)) if row["title"] == row["source"]] == []


def test_the_file_that_the_page_gives_is_what_the_hash_is_of_for_every_revision(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    with write_session() as s:
        add_revision(s, engagement_id=engagement, differences={"workload": {"context_tokens": 16384}}, actor=cast.li_wei)
    browser = Browser("wang.fang")
    page = browser.get(f"/engagements/{engagement}/plan").text
    hashes = []
    for number in (0, 1):
        assert f"/engagements/{engagement}/plan/{number}.json" in page
        given = browser.get(f"/engagements/{engagement}/plan/{number}.json")
        assert (given.status_code, given.headers["content-disposition"].startswith("attachment")) == (200, True)
        hashes.append(f"sha256:{hashlib.sha256(given.content).hexdigest()}")
        assert hashes[-1] in page
    assert len(set(hashes)) == 2
    assert browser.get(f"/engagements/{engagement}/plan/2.json").status_code == 404
    assert Browser().get(f"/engagements/{engagement}/plan/0.json").status_code == 303  # to the door
