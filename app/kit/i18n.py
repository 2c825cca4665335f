"""Words in two languages: the catalogue, the choice of a locale, sizes and spans of time.

English sentences are the msgids. The Chinese catalogue is read directly from its .po file once a process, so that nothing
has to be compiled. Placeholders are `{name}`, filled by `str.format`; Jinja's own `%(name)s` is left to Jinja.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from babel import dates, numbers
from babel.core import negotiate_locale
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from app.settings import ROOT, settings
from gates.text import Text

LOCALES = ("zh_CN", "en")
LOCALE_DIR = ROOT / "locale"
DOMAIN = "quadgate"


def N_(msgid: str) -> str:  # noqa: N802 - the name that every gettext tool knows
    """Mark a sentence for the catalogue and return it unchanged."""
    return msgid


def catalogue_path(locale: str) -> Path:
    """Return the .po file of a locale."""
    return LOCALE_DIR / locale / "LC_MESSAGES" / f"{DOMAIN}.po"


@lru_cache(maxsize=4)
def catalogue(locale: str) -> Mapping[str, str]:
    """Return msgid -> sentence of a locale; English has none, since the msgids are English."""
    path = catalogue_path(locale)
    if locale == "en" or not path.exists():
        return {}
    with path.open("rb") as file:
        parsed: Catalog = read_po(file, locale=locale, abort_invalid=True)
    return {str(message.id): str(message.string) for message in parsed if message.id and message.string}


def lookup(msgid: str, locale: str) -> str:
    """Return the sentence of a locale with its placeholders unfilled; the English one where none was written."""
    return catalogue(known(locale)).get(msgid, msgid)


def translate(msgid: str, locale: str, /, **params: Any) -> str:
    """Return a sentence in a locale with its `{placeholders}` filled; a `Text` among them goes in language by language."""
    sentence = lookup(msgid, locale)
    if not params:
        return sentence
    return sentence.format(**{key: value.in_language(locale) if isinstance(value, Text) else value for key, value in params.items()})


def pair(msgid: str, /, **params: Any) -> Text:
    """Return a sentence of the catalogue in both languages, for what is stored or shown to readers of either."""
    return Text(en=translate(msgid, "en", **params), zh=translate(msgid, "zh_CN", **params))


def known(locale: str) -> str:
    """Return the name of the supported locale that a name means: zh, zh-CN, zh_Hans_CN are zh_CN; anything else is English."""
    return "zh_CN" if locale.replace("-", "_").lower().startswith("zh") else "en"


def language_tag(locale: str) -> str:
    """Return the BCP 47 tag that stands in documents and HTML: zh-CN or en."""
    return "zh-CN" if known(locale) == "zh_CN" else "en"


def negotiate(accept_language: str | None, preferred: str | None = None) -> str:
    """Choose the locale of a request: the person's own choice, then the Accept-Language header, then the service's default."""
    if preferred:
        return known(preferred)
    wanted = [tag.replace("-", "_") for tag in _by_quality(accept_language or "")]
    available = [*LOCALES, "zh"]
    found = negotiate_locale(wanted, available, sep="_")
    return known(found) if found else known(settings().default_locale)


def _by_quality(header: str) -> list[str]:
    """Return the tags of an Accept-Language header, the most wanted first; a malformed weight counts as 0."""
    weighted: list[tuple[float, int, str]] = []
    for place, part in enumerate(header.split(",")):
        tag, _, weight = part.strip().partition(";q=")
        try:
            quality = float(weight) if weight else 1.0
        except ValueError:
            quality = 0.0
        if tag and quality > 0:
            weighted.append((-quality, place, tag))
    return [tag for _, _, tag in sorted(weighted)]


def format_ago(delta: timedelta, locale: str) -> str:
    """Return a span of time in words, the largest unit only: "3 minutes", "3分钟"."""
    return dates.format_timedelta(delta, granularity="second", locale=known(locale))


def format_bytes(size: int, locale: str) -> str:
    """Return a size in bytes in the largest binary unit that keeps it at or above 1, with one decimal."""
    value = Decimal(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{numbers.format_decimal(round(value, 0 if unit == 'B' else 1), locale=known(locale))} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit returns")
