"""Data that Ansible is to take as it stands: what a person typed into a form or an engagement file is never a template. Pure.

ansible-core trusts everything in a variables file and in an inventory, so that `{{ lookup('pipe', ...) }}` in the note of a packing list would be
carried out on this machine. Its JSON reader takes {"__ansible_unsafe": text} for a text that is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MARKS = ("{{", "{%", "{#")  # with which a template of Jinja can begin


def literal(value: Any) -> Any:
    """Return JSON data in which every text that could be taken for a template is marked as none."""
    if isinstance(value, str):
        return {"__ansible_unsafe": value} if any(mark in value for mark in MARKS) else value
    if isinstance(value, Mapping):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [literal(item) for item in value]
    return value
