"""Downloads: always as an attachment, never sniffed, never rendered in our own origin."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from app.accounts.actor import Actor
from app.attempts import usecases as attempts
from app.attempts.forms import kind_of
from app.evidence import store
from app.evidence import usecases as evidence
from app.kit.db import read_session
from app.reports import usecases as reports
from app.settings import settings
from app.web.lines import all_lines
from app.wipes import usecases as wipes

SANDBOX = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}
LOG_BATCH = 2000
SCAN_TYPES = {"pdf": "application/pdf", "png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}


def disposition(name: str) -> str:
    """Return the header that makes a browser save a file under a name, in every alphabet (RFC 6266)."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def attachment(data: bytes, name: str, media_type: str) -> Response:
    """Return bytes as a download."""
    return Response(data, media_type=media_type, headers={**SANDBOX, "Content-Disposition": disposition(name)})


def report(report_id: str, actor: Actor) -> Response:
    """Return a report's PDF. Raises NotFound for an unknown or foreign one."""
    with read_session() as s:
        found, data = reports.report_file(s, report_id=report_id, actor=actor)
        attempts.attempt_view(s, attempt_id=found.attempt_id, actor=actor)  # whoever may not see the attempt gets no paper of it
    return attachment(data, f"{found.number}-{found.language}.pdf", "application/pdf")


def bundle(attempt_id: str, actor: Actor) -> Response:
    """Return the evidence bundle of an attempt as a zip that lies in a temporary folder until it is sent."""
    folder = Path(tempfile.mkdtemp(prefix="bundle-", dir=_spool()))
    path = folder / "bundle.zip"
    try:
        with read_session() as s:
            view = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)
            evidence.export_bundle(s, attempt_id=attempt_id, dest=path, actor=actor)
    except BaseException:
        _remove(folder)
        raise
    kind = "rehearsal" if view["rehearsal"] else "attempt"
    name = f"{view['engagement']['code']}-{view['gate']}-{kind}-{view['number']}.zip"
    headers = {**SANDBOX, "Content-Disposition": disposition(name)}
    return FileResponse(path, media_type="application/zip", headers=headers, background=BackgroundTask(_remove, folder))


def scan(sha256: str) -> Response:
    """Return a stored scan under a name by what it is. The caller has checked that the person may see it."""
    data = store.read(sha256)
    kind = kind_of(data) or "bin"
    return attachment(data, f"scan-{sha256[:16]}.{kind}", SCAN_TYPES.get(kind, "application/octet-stream"))


def of_wipe(file_id: str, actor: Actor) -> Response:
    """Return a file that a wipe brought home. Raises NotFound for an unknown or foreign one."""
    with read_session() as s:
        name, data = wipes.wipe_file(s, file_id=file_id, actor=actor)
    return attachment(data, name, "application/octet-stream")


def log_text(attempt_id: str, actor: Actor) -> Response:
    """Return all lines of all playbooks of an attempt as text, read in batches."""
    with read_session() as s:
        view = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)

    def batches() -> Iterator[bytes]:
        after = 0
        while True:
            with read_session() as s:
                events = attempts.events(s, attempt_id=attempt_id, after=after, limit=LOG_BATCH, actor=actor)
            if not events:
                return
            after = events[-1]["id"]
            yield "".join(f"{line['text']}\n" for line in all_lines(events)).encode()

    name = f"{view['engagement']['code']}-{view['gate']}-{view['number']}.log.txt"
    return StreamingResponse(batches(), media_type="text/plain; charset=utf-8", headers={**SANDBOX, "Content-Disposition": disposition(name)})


def _spool() -> Path:
    """Return the folder for files on their way out, on the disk of the state directory, which is sized for evidence."""
    folder = settings().state_dir / "tmp"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
    folder.rmdir()
