"""From the dataset to a PDF: Typst, PDF/A-3a and PDF/UA-1, fixed time, data handed over as JSON so that text never becomes markup."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal
from xml.etree import ElementTree

import typst

from app.kit.errors import QuadgateError
from app.kit.i18n import N_
from app.reports.charts import interval_bar, repeatability, soak, throughput_band, ttft_ecdf
from app.reports.glyphs import fonts, printable
from app.reports.words import Words
from app.settings import settings
from gates.canonical import canonical_bytes

STANDARDS: list[Literal["a-3a", "ua-1"]] = ["a-3a", "ua-1"]


def render_pdf(dataset: dict[str, Any], manifest: dict[str, Any] | None = None) -> bytes:
    """Return the PDF of a dataset: the same dataset gives the same bytes.

    The dataset is attached as results.json, the evidence manifest, when given, as manifest.json. Raises QuadgateError with the
    compiler's sentence when the template and the data do not fit together.
    """
    try:
        pdf: bytes = typst.compile(
            _main(),
            root=_root(),
            font_paths=fonts(),
            ignore_system_fonts=True,
            format="pdf",
            sys_inputs=_inputs(dataset, manifest),
            pdf_standards=[*STANDARDS],
            timestamp=_timestamp(dataset),
        )
    except typst.TypstError as error:
        raise QuadgateError(
            "report_not_made",
            N_("The report {number} could not be made: {problem}. The verdict and the evidence are untouched; tell the maintainers this sentence."),
            number=dataset["document"]["number"],
            problem=str(error.message).strip().rstrip("."),
        ) from error
    return pdf


def seal_boxes(dataset: dict[str, Any]) -> list[dict[str, Any]]:
    """Return where the seal boxes stand: party, page (from 1), x, y, width, height in millimetres from the page's top left."""
    found = typst.query(
        _main(),
        "<seal>",
        field="value",
        root=_root(),
        font_paths=fonts(),
        ignore_system_fonts=True,
        sys_inputs=_inputs(dataset, None),
    )
    boxes: list[dict[str, Any]] = json.loads(found)
    return boxes


def charts(dataset: dict[str, Any], theme: str = "print") -> list[dict[str, str]]:
    """Return the charts of a dataset in their order: {title, svg, alt}."""
    figures, language = dataset["figures"], dataset["language"]
    drawn = [ttft_ecdf(figures, tier, language, theme) for tier in sorted(figures.get("ttft") or {}, key=int)]
    for key, draw in (("throughput", throughput_band), ("tiers", repeatability), ("soak", soak)):
        if figures.get(key):
            drawn.append(draw(figures, language, theme))
    return [_chart(svg) for svg in drawn]


def _chart(svg: str) -> dict[str, str]:
    """Take title and description out of an SVG for the caption and the alternative text."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - parses only what this service drew
    space = "{http://www.w3.org/2000/svg}"
    title = root.findtext(f"{space}title") or ""
    return {"title": title, "svg": svg, "alt": f"{title}. {root.findtext(f'{space}desc') or ''}"}


def _inputs(dataset: dict[str, Any], manifest: dict[str, Any] | None) -> dict[str, str]:
    """Return what the template reads: the dataset made printable, the charts, and the attachments as they are."""
    cut = Words(dataset["language"])("cut")
    shown = _printable({key: value for key, value in dataset.items() if key != "source"}, cut)
    bars = [_chart(interval_bar(panel["check"], dataset["language"], "print")) if panel["check"] else None for panel in shown["headlines"]]
    inputs = {
        "data": json.dumps(shown, ensure_ascii=False),
        "charts": json.dumps(charts(shown), ensure_ascii=False),
        "bars": json.dumps(bars, ensure_ascii=False),
        "results": canonical_bytes(dataset).decode(),
    }
    if manifest:
        inputs["manifest"] = canonical_bytes(manifest).decode()
    return inputs


def _printable(value: Any, cut: str) -> Any:
    """Make every text of a tree printable; keys are ours and stay."""
    if isinstance(value, str):
        return printable(value, cut)
    if isinstance(value, dict):
        return {key: _printable(inner, cut) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(inner, cut) for inner in value]
    return value


def _timestamp(dataset: dict[str, Any]) -> int:
    return int(datetime.fromisoformat(dataset["document"]["issued_at"]).timestamp())


def _root() -> str:
    return str(settings().template_dir / "report")


def _main() -> str:
    return str(settings().template_dir / "report" / "report.typ")
