"""What the judge really writes can be drawn, formatted and printed: the words and figures of both sides fit together."""

from __future__ import annotations

import io
import json
from typing import Any

import pypdf
import pytest

from app.reports.dataset import build
from app.reports.facts import Facts
from app.reports.pdf import charts, render_pdf
from gates.judge import judge
from tests import bundles
from tests.unit.reports import samples

MADE = {"G2": bundles.g2_evidence, "G3": bundles.g3_evidence, "G4": bundles.g4_evidence}


def facts_of(gate: str) -> Facts:
    evidence = MADE[gate]()
    document: dict[str, Any] = json.loads(json.dumps(judge(evidence.bundle())))
    manifest = evidence.manifest()
    return samples.facts(gate, document["verdict"], document=document, plan=manifest["plan"], plan_hash=document["plan_hash"], manifest=manifest)


@pytest.mark.parametrize(("gate", "drawings", "big"), [("G2", 1, 2), ("G3", 4, 2), ("G4", 1, 2)])
def test_the_judges_own_verdict_fills_charts_big_numbers_and_every_page(gate: str, drawings: int, big: int) -> None:
    facts = facts_of(gate)
    assert facts.document["verdict"] == "pass"
    for language in ("zh-CN", "en"):
        data = build(facts, language)
        drawn = charts(data)
        assert len(drawn) == drawings
        assert all("no data in the evidence" not in c["svg"] and "证据中没有" not in c["svg"] for c in drawn)
        assert len(data["headlines"]) == big
        assert all(panel["check"] for panel in data["headlines"])
        assert "n/a" not in {c["value"] for c in data["checks"]}
        assert data["runs"] or data["hours"]
        pdf = render_pdf(data, facts.manifest)
        assert 6 <= len(pypdf.PdfReader(io.BytesIO(pdf)).pages) <= 16
