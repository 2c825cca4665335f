"""Forms of manual steps, made from the fields that a gate declares in `params.form`; and uploads.

A field: {name, type, title, required, choices}, `type` being text, long_text, bool, choice, person or number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.datastructures import FormData, UploadFile

from app.attempts.forms import LARGEST_FILE, MOST_FILES
from app.kit.errors import FieldProblem
from app.web.asgi import BODY_LIMIT
from app.web.render import text_in

Upload = tuple[str, bytes]
YES, NO = "yes", "no"
# What a form with photos says beside the field, and its script checks before anything is sent. A MiB of the body is left to the texts.
PHOTO_LIMITS = {"files": MOST_FILES, "each": LARGEST_FILE // 2**20, "all": BODY_LIMIT // 2**20 - 1}


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


def elsewhere(params: Mapping[str, Any], errors: Iterable[FieldProblem]) -> list[FieldProblem]:
    """Return what is wrong with none of the fields: it stands above the form, since there is no field beside which it could."""
    names = {field["name"] for field in params.get("form") or ()}
    return [error for error in errors if error.pointer.strip("/").split("/")[-1] not in names]


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
    """Return the files of a field: (name, bytes). Of one that is too large only so much is read that whoever takes it sees that it is."""
    found: list[Upload] = []
    for value in form.getlist(name):
        if isinstance(value, UploadFile) and value.filename:
            data = await value.read(LARGEST_FILE + 1)
            found.append((value.filename.replace("\\", "/").rsplit("/", 1)[-1][:120], data))
    return found


def named_in(form: FormData, name: str) -> list[str]:
    """Return the texts of a field that may stand several times in a form."""
    return [value for value in form.getlist(name) if isinstance(value, str)]
