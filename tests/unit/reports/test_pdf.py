"""The PDFs, made by the real compiler and read back: complete, equal twice, archivable, and deaf to hostile text."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pypdf
import pytest

from app.kit.errors import QuadgateError
from app.reports.dataset import build
from app.reports.pdf import render_pdf, seal_boxes
from gates.canonical import canonical_bytes, sha256_of
from tests.unit.reports import samples

GATES = ("G1", "G2", "G3", "G4")
LANGUAGES = ("zh-CN", "en")
BOTH = [(gate, language) for gate in GATES for language in LANGUAGES]
EVIL = '#import "x": * ; #panic() <script>alert(1)</script> \U0001f680 \u202e $x^2$ *b* _i_ `c` @ref \\ ]]}} '


@lru_cache
def made(gate: str, language: str) -> tuple[dict[str, Any], bytes]:
    facts = samples.facts(gate)
    data = build(facts, language)
    return data, render_pdf(data, facts.manifest)


@lru_cache(maxsize=64)
def pages(pdf: bytes) -> list[str]:
    return [re.sub(r"[\u200b\u00ad]", "", page.extract_text()).replace("\u00a0", " ") for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_the_report_is_tagged_pdf_a_3a_in_its_language_with_its_number_as_title(gate: str, language: str) -> None:
    data, pdf = made(gate, language)
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    xmp = reader.root_object["/Metadata"].get_data().decode()
    assert re.search(r"<pdfaid:part>3</pdfaid:part>", xmp)
    assert re.search(r"<pdfaid:conformance>A</pdfaid:conformance>", xmp)
    assert re.search(r"<pdfuaid:part>1</pdfuaid:part>", xmp)
    assert reader.root_object["/MarkInfo"]["/Marked"]
    assert str(reader.root_object["/Lang"]).startswith("zh" if language == "zh-CN" else "en")
    assert str(reader.metadata.title).startswith(data["document"]["number"])


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_only_the_one_font_family_is_embedded(gate: str, language: str) -> None:
    _, pdf = made(gate, language)
    fonts = {
        str(font["/BaseFont"])
        for page in pypdf.PdfReader(io.BytesIO(pdf)).pages
        for font in (f.get_object() for f in page["/Resources"]["/Font"].values())
    }
    assert fonts
    assert all("NotoSansCJK" in name for name in fonts)


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_two_renders_of_the_same_facts_are_equal_to_the_byte(gate: str, language: str) -> None:
    facts = samples.facts(gate)
    again = render_pdf(build(facts, language), facts.manifest)
    assert hashlib.sha256(again).hexdigest() == hashlib.sha256(made(gate, language)[1]).hexdigest()


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_every_page_carries_marks_number_page_of_pages_and_manifest_hash(gate: str, language: str) -> None:
    data, pdf = made(gate, language)
    found = pages(pdf)
    assert 6 <= len(found) <= 16
    for n, text in enumerate(found, 1):
        flat = squeezed(text)
        assert "shortenedsoak,simulatedtarget,notforsign-off" in flat
        assert "缩时稳定性运行、模拟目标，不得用于签署" in flat
        assert data["document"]["number"] in flat
        assert data["integrity"]["manifest_hash"].removeprefix("sha256:")[:16] in flat
        assert (f"第{n}页，共{len(found)}页" if language == "zh-CN" else f"Page{n}of{len(found)}") in flat


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_page_one_holds_parties_verdict_scope_and_all_attempts(gate: str, language: str) -> None:
    data, pdf = made(gate, language)
    flat = squeezed(pages(pdf)[0])
    wanted = [samples.VENDOR, samples.CUSTOMER, "HT-DEMO-0001", data["verdict"]["text"], data["verdict"]["summary"], data["scope"]["tries"]]
    wanted += [data["scope"]["not_tested_none"], data["scope"]["array_cache"], *(a["kind_text"] + str(a["number"]) for a in data["attempts"])]
    wanted += [panel["value"] for panel in data["headlines"]]
    for text in wanted:
        assert squeezed(text) in flat, text


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_all_numbers_hashes_serials_and_statements_of_the_dataset_are_in_the_pdf(gate: str, language: str) -> None:
    data, pdf = made(gate, language)
    flat = squeezed("".join(pages(pdf)))
    for check in data["checks"]:
        assert squeezed(check["value"]) in flat, check["id"]
        assert squeezed(check["limit"]) in flat, check["id"]
    for row in data["exact"]:
        assert row["value"] in flat, row["id"]
    for key in ("manifest_hash", "verdict_hash", "rules_hash", "plan_hash", "command"):
        assert squeezed(data["integrity"][key]) in flat, key
    for item in data["items"]["rows"]:
        assert item["serial"] in flat
    for row in data["thresholds"]:
        assert squeezed(row["limit"]) in flat, row["source"]
    words = (
        ("仅对所列被测物", "不得部分复制", "不声称具备认可资质", "报告结束")
        if language == "zh-CN"
        else ("relateonlytotheitems", "notbereproducedinpart", "noaccreditationisclaimed", "Endofreport")
    )
    for text in words:
        assert text in flat


@pytest.mark.parametrize("gate", GATES)
def test_results_and_manifest_are_attached_as_they_are(gate: str) -> None:
    data, pdf = made(gate, "zh-CN")
    files = pypdf.PdfReader(io.BytesIO(pdf)).attachments
    assert files["results.json"] == [canonical_bytes(data)]
    assert sha256_of(json.loads(files["manifest.json"][0])) == data["integrity"]["manifest_hash"]


@pytest.mark.parametrize(("gate", "language"), BOTH)
def test_both_seal_boxes_are_at_least_42_millimetres_square_side_by_side_on_one_page(gate: str, language: str) -> None:
    data, pdf = made(gate, language)
    boxes = seal_boxes(data)
    assert {box["party"] for box in boxes} == {"vendor", "customer"}
    assert all(box["width"] >= 42 and box["height"] >= 42 for box in boxes)
    first, second = boxes
    assert first["page"] == second["page"] <= len(pages(pdf))
    assert abs(first["y"] - second["y"]) < 0.5
    assert abs(first["x"] - second["x"]) > 42
    for box in boxes:
        assert box["x"] >= 10
        assert box["x"] + box["width"] <= 200
        assert box["y"] + box["height"] <= 277


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_text_in_every_field_is_printed_as_text_and_changes_nothing(language: str) -> None:
    long = EVIL + "A" * 10_000
    engagement = samples.engagement()
    engagement.update(customer=EVIL, vendor=long, site="x" * 10_000, contract=EVIL)
    engagement["people"]["vendor"][0].update(name=EVIL, title=long)
    engagement["packing_list"][0].update(serial=long, model=EVIL)
    document = samples.document("G3")
    document["summary"] = {"en": EVIL, "zh-CN": EVIL}
    document["checks"][0]["title"] = {"en": long, "zh-CN": long}
    document["checks"][0]["reason"] = {"en": long, "zh-CN": long}
    document["checks"][0]["evidence"] = [long]
    document["claims"][0].update(status="breached", reason={"en": EVIL, "zh-CN": EVIL}, title={"en": long, "zh-CN": long})
    document["figures"]["ttft"]["8"]["baseline"][0]["run"] = EVIL
    approvals = [samples.approval("vendor", "sign_off", "sha256:x", "2026-12-09T01:00:00+00:00", comment=long, person=EVIL)]
    facts = samples.facts("G3", engagement=engagement, document=document, approvals=approvals)
    data = build(facts, language)
    pdf = render_pdf(data, facts.manifest)
    found = pages(pdf)
    flat = squeezed("".join(found))
    assert len(found) <= 20
    assert squeezed('#import "x": * ; #panic() <script>alert(1)</script> [U+1F680] [U+202E] $x^2$ *b* _i_ `c` @ref \\') in flat
    assert str(len(long)) in flat
    assert pypdf.PdfReader(io.BytesIO(pdf)).attachments["results.json"] == [canonical_bytes(data)]
    assert squeezed(data["verdict"]["text"]) in squeezed(found[0])
    assert len(seal_boxes(data)) == 2


def test_an_attempt_without_a_verdict_gives_a_draft_and_no_number() -> None:
    facts = replace(samples.facts("G1"), verdict=None, verdicts=[], manifest={})
    data = build(facts, "en")
    text = pages(render_pdf(data))
    assert data["document"]["state"] == "draft"
    assert all("DRAFT: not issued" in page for page in text)
    assert "NOT JUDGED" in text[0]


@pytest.mark.parametrize("verdict", ["conditional", "fail", "inconclusive", "invalid"])
def test_a_report_of_every_other_verdict_prints_its_word_and_what_follows(verdict: str) -> None:
    data = build(samples.facts("G1", verdict), "en")
    flat = squeezed("".join(pages(render_pdf(data))))
    assert data["verdict"]["text"] in flat
    for sentence in data["consequence"]["sentences"]:
        assert squeezed(sentence) in flat


def test_a_template_that_does_not_fit_the_data_is_one_sentence_and_not_a_trace() -> None:
    data, _ = made("G1", "en")
    broken = {**data, "attempt": {**data["attempt"], "gate": "G9"}}
    with pytest.raises(QuadgateError) as caught:
        render_pdf(broken)
    assert "ACC-DEMO-G1-R0" in str(caught.value)


@pytest.mark.parametrize(("language", "told"), [("en", "1of1didnothold"), ("zh-CN", "1个参考项中有1个未达标")])
def test_page_one_names_the_advisory_checks_that_did_not_hold_and_their_page(language: str, told: str) -> None:
    document = samples.document("G3")
    document["checks"] = [{**c, "verdict": "fail"} if c["severity"] == "advisory" else c for c in document["checks"]]
    facts = samples.facts("G3", document=document)
    found = [squeezed(page) for page in pages(render_pdf(build(facts, language), facts.manifest))]
    assert told in found[0]
    place = re.search(r'under"Advisorychecks"onpage(\d+)\.' if language == "en" else r"详见第(\d+)页“参考项”", found[0])
    assert place is not None
    row = next(c for c in build(facts, language)["checks"] if c["severity"] == "advisory")
    assert squeezed(row["id"]) in found[int(place[1]) - 1] + found[min(int(place[1]), len(found) - 1)]
