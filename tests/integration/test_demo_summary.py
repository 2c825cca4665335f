"""What a demo leaves behind: a summary, reports and bundles, each whole or not there, whenever it is interrupted."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import update

from app.demo.summary import write_summary
from app.evidence import store
from app.kit.db import write_session
from app.reports.models import Report
from tests.people import Cast
from tests.scenes import engage, run

PDF = b"%PDF-1.7\n" + b"report " * 2000


def judged(cast: Cast) -> str:
    """Return an engagement that has passed G1 and G2, with their reports in the store."""
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate, summary={"en": "Passed.", "zh-CN": "通过。"})
        s.execute(update(Report).values(sha256=store.put_bytes(PDF).sha256))
        return engagement.id


def test_an_interrupt_at_any_moment_of_writing_leaves_no_half_file_under_its_name(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engagement, write = judged(cast), os.write
    left: list[int] = []

    def interrupted(handle: int, data: bytes) -> int:
        """Write a little, as a full or slow disk does; the last that is allowed is followed by Ctrl-C."""
        left[0] -= 1
        done = write(handle, bytes(data)[:5000])
        if left[0] == 0:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(os, "write", interrupted)
    for writes in range(1, 50):
        out, left[:] = tmp_path / str(writes), [writes]
        out.mkdir()
        try:
            summary = write_summary(out, engagement, cast.li_wei, {"seed": 1})
            break
        except KeyboardInterrupt:
            pdfs = list(out.glob("reports/*.pdf"))
            assert all(pdf.read_bytes() == PDF for pdf in pdfs)
            assert not (out / "summary.json").exists()  # it comes last: what it names is there
    assert writes > 6, "two reports and a summary take more than one write each"
    assert json.loads((out / "summary.json").read_text(encoding="utf-8")) == summary
    for gate in ("G1", "G2"):
        told = summary["gates"][gate]
        assert (told["verdict"], told["reasons"]) == ("pass", [{"en": "Passed.", "zh-CN": "通过。"}])
        assert (out / told["report"]).read_bytes() == PDF
        assert "manifest.json" in zipfile.ZipFile(out / told["bundle"]).namelist()
    assert summary["gates"]["G3"]["run_status"] == "not_started"
    assert [path.name for path in out.rglob(".*.draft")] == []
