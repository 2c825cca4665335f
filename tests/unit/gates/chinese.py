"""What of a Chinese sentence is English: every word but the field's own terms, names of tools and fields, and what they write word for word."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

# As the tools and the kernel call them. Names with a dot, a slash, an underscore, a hyphen or an equals sign are files, fields and parameters.
TERMS = {"live", "dscp", "pcp", "powersave", "performance", "fio", "smartctl", "nvme", "list", "ethtool", "rdma", "lspci", "mdadm", "root"}
WORD = re.compile(r"(?<![\w./=-])[a-z]{3,}(?![\w./=-])")
QUOTED = re.compile(r"“[^”]*”|JSON 之前有文字：.*|字段 \S+|：Expecting [^）]*")  # a line, a field's name, the parser's own words


@functools.lru_cache(maxsize=50_000)
def english(zh: str) -> frozenset[str]:
    """Return the English words of a Chinese sentence."""
    return frozenset(WORD.findall(QUOTED.sub("", zh))) - TERMS


def sentences(value: Any) -> Iterator[str]:
    """Yield the Chinese half of every sentence in what a verdict is made of."""
    if isinstance(value, Mapping):
        if "zh-CN" in value:
            yield value["zh-CN"]
        for inner in value.values():
            yield from sentences(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from sentences(inner)
