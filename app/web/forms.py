"""Forms of manual steps, made from the fields that a gate declares in `params.form`; and uploads.

A field: {name, type, title, required, choices}, `type` being text, long_text, bool, choice, person or number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.datastructures import FormData, UploadFile

from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_
from app.web.render import text_in

Upload = tuple[str, bytes]
LARGEST_UPLOAD = 20 * 1024 * 1024
YES, NO = "yes", "no"


def fields_of(params: Mapping[str, Any], locale: str, entered: Mapping[str, str], errors: Iterable[FieldProblem]) -> list[dict[str, Any]]:
    """Return the fields as the page shows them: words in the language, what was entered, what is wrong."""
    wrong = {error.pointer.strip("/").split("/")[-1]: error.text(locale) for error in errors}
    return [
        {
            "name": field["name"],
            "type": field["type"],
            "title": text_in(field.get("title") or field.get("label") or field["name"], locale),
            "hint": text_in(field.get("hint"), locale),
            "required": bool(field.get("required", True)),
            "choices": [_choice(choice, locale) for choice in field.get("choices") or ()],
            "value": entered.get(field["name"], ""),
            "error": wrong.get(field["name"], ""),
        }
        for field in params.get("form") or ()
    ]


def _choice(choice: Any, locale: str) -> dict[str, str]:
    if isinstance(choice, Mapping) and "value" in choice:
        return {"value": str(choice["value"]), "title": text_in(choice.get("title") or choice.get("label") or choice["value"], locale)}
    return {"value": str(choice), "title": str(choice)}


def read_form(params: Mapping[str, Any], form: FormData) -> dict[str, Any]:
    """Return the entries of a form by field; a question that was not answered is left out, so it can never read as yes or no."""
    read: dict[str, Any] = {}
    for field in params.get("form") or ():
        value = form.get(field["name"])
        text = value.strip() if isinstance(value, str) else ""
        if text:
            read[field["name"]] = {YES: True, NO: False}.get(text, text) if field["type"] == "bool" else text
    return read


async def uploads(form: FormData, name: str) -> list[Upload]:
    """Return the files of a field: (name, bytes). Raises BadInput for one that is too large."""
    found: list[Upload] = []
    for value in form.getlist(name):
        if isinstance(value, UploadFile) and value.filename:
            data = await value.read(LARGEST_UPLOAD + 1)
            if len(data) > LARGEST_UPLOAD:
                field = FieldProblem(f"/{name}", N_("{file} is larger than {limit} MiB."), {"file": value.filename, "limit": LARGEST_UPLOAD // 2**20})
                raise BadInput("file_too_large", N_("A file is too large."), [field])
            found.append((value.filename.replace("\\", "/").rsplit("/", 1)[-1][:120], data))
    return found
