"""The form of the unpacking inspection (开箱检验), as two named people filled it in.

Observations: unpacking.<field> (text) for every answered field, unpacking.receiver (text, label `party`).
"""

from __future__ import annotations

import unicodedata
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, load_json

RECEIVER = "receiver_"
FIELDS = ("packaging", "shock_tag", "appearance", "accessories", "serials_match", "exceptions", "notes")  # what every form asks (gates/g1/people.py)


def read_unpacking(data: bytes) -> Reading:
    """Read form.json: {form: {field: answer}, ...} as the service writes it, or the answers alone."""
    found = Collector()
    form = load_json(data, found)
    if form is None:
        return found.reading()
    if not isinstance(form, dict):
        found.trouble("unknown_shape", "The form is not an object of answers.", "表单不是由答案组成的对象。")
        return found.reading()
    inner = form.get("form")
    answers: dict[str, Any] = inner if isinstance(inner, dict) else form
    if not any(key in FIELDS or key.startswith(RECEIVER) for key in answers):
        found.trouble("unknown_shape", "It holds no answer of the form of the unpacking.", "其中没有开箱检验表的任何回答。")
        return found.reading()
    for key, raw in answers.items():
        value = _answer(raw)
        if key.startswith(RECEIVER) and value:
            found.see("unpacking.receiver", person_name(value), "text", party=key.removeprefix(RECEIVER))
        elif value:
            found.see(f"unpacking.{key}", value, "text")
    return found.reading()


def person_name(text: str) -> str:
    """Return a name in one spelling, so that two spellings of one person are seen to be one."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _answer(raw: Any) -> str:
    """Return an answer as text: yes or no for a tick, the name of a person, else the text itself; empty for anything else."""
    if isinstance(raw, bool):
        return "yes" if raw else "no"
    if isinstance(raw, dict):
        raw = raw.get("name")
    return raw.strip() if isinstance(raw, str) else ""
