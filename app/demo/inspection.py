"""The unpacking inspection of a demo: a person of each party fills in the form, with pictures that say that they are simulated."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from app.attempts.usecases import submit_form
from app.kit.db import write_session

GOOD = {"text": "—", "bool": True}


def fill_in(view: dict[str, Any], actors: dict[str, Any]) -> None:
    """Fill in the form of the step that waits, as it was declared by the gate, and hand it in with a picture."""
    step = next(s for s in view["steps"] if s["status"] == "waiting")
    receivers = [next(a for a in members if "engineer" in a.roles or "approver" in a.roles) for members in actors.values()]
    names = iter(f"{a.name}" for a in receivers)
    form: dict[str, Any] = {}
    for field in step["params"]["form"]:
        if field["type"] == "person":
            form[field["name"]] = next(names, "")
        elif field["type"] == "choice":
            form[field["name"]] = field["choices"][0]["value"] if isinstance(field["choices"][0], dict) else field["choices"][0]
        else:
            form[field["name"]] = GOOD[field["type"]]
    with write_session() as session:
        submit_form(session, step_id=step["id"], form=form, photos=[("unpacking.png", picture("unpacking"))], actor=receivers[0])


def picture(text: str, width: int = 96, height: int = 64) -> bytes:
    """Return a small grey PNG that carries `text` as its comment: evidence of a simulation must not look like a photograph."""
    rows = b"".join(b"\x00" + bytes((x * 2 + y) % 200 for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"tEXt", b"Comment\x00" + text.encode("latin-1")), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + body
