"""Values that still stand as a sample has them: an engagement must never be made of those.

A sample writes what is to be filled in between angle brackets, `<serial number>`; beside them stand the two that look like real values and are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gates.schema import Problems, shown

_BRACKETED = re.compile(r"<[^<>]+>")
_NO_VALUE = re.compile(r"ssh-\S+ (A{4}|\S*EXAMPLEEXAMPLE\S*)|(\S+@)?sha256:0{64}")


def is_placeholder(value: Any) -> bool:
    """Tell whether a value is one of a sample's that is to be filled in."""
    return isinstance(value, str) and bool(_BRACKETED.fullmatch(value.strip()) or _NO_VALUE.fullmatch(value.strip()))


def refuse_placeholders(values: Iterable[tuple[str, str, Any]], problems: Problems) -> None:
    """Refuse each placeholder (path, key, value) by one sentence, which stands instead of whatever else is wrong with such a value."""
    left = [(path, value) for path, _, value in values if is_placeholder(value)]
    paths = {path for path, _ in left}
    problems.found[:] = [p for p in problems.found if p.path not in paths]
    for path, value in left:
        en, zh = shown(value).en, shown(value).zh
        problems.add(path, f"{en} is still the sample's placeholder; write the real value.", f"{zh} 仍是示例中的占位内容；请填写实际值。")
