"""What is wrong with one field of a request, as a sentence: what was expected there, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.kit.i18n import N_, translate
from gates.system_words import of_words
from gates.text import Text

WORDS: dict[str, str] = {
    "missing": N_("This field is missing; add it."),
    "extra_forbidden": N_("There is no field of this name; check its spelling, or leave it out."),
    "json_invalid": N_("The body is not valid JSON: {reason}."),
    "string_type": N_("This must be text: a JSON string in quotes."),
    "bool_parsing": N_("This must be true or false."),
    "bool_type": N_("This must be true or false."),
    "int_parsing": N_("This must be a whole number."),
    "int_type": N_("This must be a whole number."),
    "int_from_float": N_("This must be a whole number."),
    "int_parsing_size": N_("This must be a whole number."),
    "greater_than_equal": N_("This number is too small: {ge} or more is taken."),
    "less_than_equal": N_("This number is too large: {le} or less is taken."),
    "literal_error": N_("Choose one of these values: {expected}."),
    "string_too_long": N_("This text is too long: at most {max_length} characters are taken."),
    "string_too_short": N_("This text is empty or too short: at least {min_length} characters are needed."),
    "too_short": N_("Too few entries: at least {min_length} are needed."),
    "too_long": N_("Too many entries: at most {max_length} are taken."),
    "list_type": N_("This must be a list: JSON in square brackets."),
    "dict_type": N_("This must be a JSON object: names and values in braces."),
    "model_type": N_("This must be a JSON object: names and values in braces."),
    "model_attributes_type": N_("This must be a JSON object: names and values in braces."),
}
WHOLE_MISSING = N_("The body is missing: send a JSON object with the fields that the API's page names.")
OTHER = N_("This value is not taken ({kind}); the API's page says what is expected here.")
_QUOTED = re.compile(r"'([^']*)'")


def pointer(location: Sequence[Any]) -> str:
    """Return where a field stands: a JSON pointer in the body, or `/query/limit` for what is not in it."""
    parts = [str(part).replace("~", "~0").replace("/", "~1") for part in location]
    return "".join(f"/{part}" for part in (parts[1:] if parts[:1] == ["body"] else parts))


def field_error(found: Mapping[str, Any], locale: str) -> dict[str, str]:
    """Return one entry of `errors` for one finding of the validation: where, a code for programs, a sentence for people."""
    kind, where, context = str(found["type"]), pointer(found["loc"]), dict(found.get("ctx") or {})
    words = WHOLE_MISSING if kind == "missing" and not where else WORDS.get(kind, OTHER)
    expected = ", ".join(_QUOTED.findall(str(context.get("expected", ""))))  # the validation joins them by an English "or"
    told = {**context, "kind": kind, "expected": expected, "reason": _reason(context.get("error", ""))}
    return {"pointer": where, "code": kind, "message": translate(words, locale, **told)}


def _reason(said: Any) -> Text:
    """Return why JSON was refused: our own reason (app/api/strict.py) is in both languages already, Python's words are brought to them."""
    return said if isinstance(said, Text) else of_words(str(said))
