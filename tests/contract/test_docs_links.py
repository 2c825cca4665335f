"""What the documentation refers to is there: files, anchors, sections of the design, sections of the reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from app.settings import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("playbooks/**/README.md"), *ROOT.glob("ops/**/*.md")])
BODIES = ("g1", "g2", "g3", "g4")


def prose(page: Path) -> str:
    """Return a page without its code blocks: what stands there is no link."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings as hosting sites write them, and what it names itself."""
    text = prose(page)
    found: set[str] = set(re.findall(r'id="([^"]+)"', text))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_an_anchor_that_are_there(page: Path) -> None:
    broken = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / unquote(path)).resolve() if path else page
        if not file.exists():
            broken.append(f"{target}: no such file")
        elif anchor and file.suffix == ".md" and unquote(anchor) not in anchors(file):
            broken.append(f"{target}: no such anchor")
    assert broken == []


def test_every_page_that_is_named_by_its_path_is_there() -> None:
    named = {(page, path) for page in PAGES for path in re.findall(r"\bdocs/[\w./-]+\.md\b", page.read_text(encoding="utf-8"))}
    sources = [path for folder in ("app", "gates", "templates", "tools") for path in (ROOT / folder).rglob("*.py")]
    named |= {(source, path) for source in sources for path in re.findall(r"\bdocs/[\w./-]+\.md\b", source.read_text(encoding="utf-8"))}
    assert [f"{page.relative_to(ROOT)}: {path}" for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_section_of_the_design_that_is_named_is_there() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    sections: set[str] = set()
    number = ""
    for line in design.splitlines():
        if heading := re.match(r"## (\d+)", line):
            number = heading[1]
            sections.add(number)
        elif item := re.match(r"(\d+)\. ", line):
            sections.add(f"{number}.{item[1]}")
    files = [*PAGES, *(path for folder in ("app", "gates") for path in (ROOT / folder).rglob("*.py"))]
    named = {(file, found) for file in files for found in re.findall(r"DESIGN (?:section )?(\d+(?:\.\d+)?)", file.read_text(encoding="utf-8"))}
    assert [f"{file.relative_to(ROOT)}: DESIGN {found}" for file, found in sorted(named) if found not in sections] == []


@pytest.mark.parametrize(("guide", "words"), [("en.md", "words.en.json"), ("zh-CN.md", "words.zh.json")])
def test_the_guide_names_every_section_of_every_report_by_the_title_that_it_has_there(guide: str, words: str) -> None:
    labels = json.loads((ROOT / "templates" / "report" / words).read_text(encoding="utf-8"))["labels"]
    sections = "\n".join((ROOT / "templates" / "report" / f"{name}.typ").read_text(encoding="utf-8") for name in ("record", "results"))
    titles = {labels[key] for key in re.findall(r"heading\(L\.(\w+)\)", sections)} | {labels["unpacking"]}
    table = (ROOT / "docs" / "guide" / guide).read_text(encoding="utf-8")
    table = table[re.search(r"^## (Reading a report|阅读报告)$", table, re.M).start() :].split("\n## ", 2)[0:2]  # type: ignore[union-attr]
    assert [title for title in sorted(titles) if f"*{title}*" not in "".join(table)] == []


@pytest.mark.parametrize("gate", BODIES)
def test_the_sections_of_a_report_come_in_the_order_of_the_guide(gate: str) -> None:
    order = ("control", "items", "forms", "thresholds", "rule", "results", "baseline", "figures", "validity", "all-attempts", "left-out")
    order += ("consequence", "integrity", "approvals", "signatures")
    body = re.findall(r"^  ([a-z-]+)(?:\(.*\))?$", (ROOT / "templates" / "report" / f"{gate}.typ").read_text(encoding="utf-8"), re.M)
    known = [name for name in body if name in order and name not in ("figures", "validity")]
    assert known == [name for name in order if name in known]
