"""Errors are sentences: what failed, where, the evidence, what to do next; in the reader's language at the edge.

Each face maps `status` to its own answer (HTTP status, exit code, notice on the page) and prints `text(locale)`.
"""
# ruff: noqa: N818 - the names are the words of the house, "Error" would add nothing to them

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from app.kit.i18n import translate
from gates.text import Text


def sentence_in(message: str | Text, locale: str, params: dict[str, Any]) -> str:
    """Return a msgid of the catalogue, or a pair of sentences, in a locale with its placeholders filled."""
    if isinstance(message, Text):
        return (message.fill(**params) if params else message).in_language(locale)
    return translate(message, locale, **params)


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong with one field of an input: a JSON pointer ("/plan/g3/sla"; "" is the whole) and a sentence."""

    pointer: str
    message: str | Text
    params: dict[str, Any] = field(default_factory=dict)

    def text(self, locale: str) -> str:
        """Return the sentence in a locale."""
        return sentence_in(self.message, locale, self.params)


class QuadgateError(Exception):
    """Base of all errors that people see. `code` is stable and machine-readable, the sentence is for people."""

    status: ClassVar[int] = 500

    def __init__(self, code: str, message: str | Text, **params: Any) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.params = params

    def text(self, locale: str) -> str:
        """Return the sentence in a locale."""
        return sentence_in(self.message, locale, self.params)

    def pair(self) -> Text:
        """Return the sentence in both languages, as it is stored on an attempt or a step."""
        return Text(en=self.text("en"), zh=self.text("zh_CN"))

    def __str__(self) -> str:
        return self.text("en")


class Unavailable(QuadgateError):
    """The database is away, cut off or busy (`kit.db.is_away`). What was being done may or may not have been done."""

    status = 503
    retry_after_s: ClassVar[int] = 5


class BadInput(QuadgateError):
    """The input is malformed or against the schema; `errors` names each field."""

    status = 422

    def __init__(self, code: str, message: str | Text, errors: Sequence[FieldProblem] = (), **params: Any) -> None:
        super().__init__(code, message, **params)
        self.errors = list(errors)

    def __str__(self) -> str:
        return "\n".join([self.text("en"), *(f"  {e.pointer or '/'}: {e.text('en')}" for e in self.errors)])


class Refused(QuadgateError):
    """The request is well formed, and a rule of the joint test forbids it now."""

    status = 409


class Forbidden(QuadgateError):
    """Not for this person, or not by this way of coming in."""

    status = 403


class NotFound(QuadgateError):
    """There is no such thing, or it is not for this person's eyes; the answer is the same."""

    status = 404


class Conflict(QuadgateError):
    """The object changed since it was looked at."""

    status = 412
