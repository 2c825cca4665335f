"""Words stay words: Ansible evaluates a text with `{{ ... }}` in an inventory or a variables file as a template, on this machine.

Everything that playbooks are told comes from people or from earlier answers (names, notes, serial numbers, paths, passwords), and none of it
is a template. So each such text is handed over marked as one that is never evaluated; the roles' own templates are in the roles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RESERVED = "__ansible_"  # keys of Ansible's own; in data of people they would be taken for a mark
_MARK = f"{RESERVED}unsafe"
_TEMPLATE = re.compile(r"\{[{%#]|#jinja2:", re.IGNORECASE)  # how a template, a statement, a comment, or other brackets for them begin


def literal(value: Any) -> Any:
    """Return JSON data in the form in which Ansible reads every text as it is written."""
    if isinstance(value, str):
        return {_MARK: value} if _TEMPLATE.search(value) else value
    if isinstance(value, Mapping):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [literal(item) for item in value]
    return value
