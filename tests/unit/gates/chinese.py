"""What of a Chinese sentence is English: every word but the field's own terms, names of tools and fields, and what they write word for word."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gates.plan_model import EVIDENCE_GROUPS

# As the tools and the kernel call them. Names with a dot, slash, underscore, hyphen, colon or equals sign are files, fields and parameters.
TOOLS = {
    "fio",
    "smartctl",
    "nvme",
    "ethtool",
    "rdma",
    "lspci",
    "mdadm",
    "rvs",
    "perftest",
    "dmidecode",
    "fincore",
    "journalctl",
    "dmesg",
    "sysctl",
    "diskstats",
    "adjtime",
    "zip",
}
STATES = {"live", "dscp", "pcp", "powersave", "performance", "root", "true", "rounded"}
FIELDS = {
    "list",
    "chunk",
    "seq",
    "data",
    "schema",
    "plan",
    "attempt",
    "files",
    "low",
    "high",
    "rounds",
    "comparison",
    "expected",
    "journal",
    "chat",
    "choices",
}
KEYS = {"device", "transport", "model", "framework"}  # of an arm and an engine
FILE_SYSTEMS = {"xfs", "nfs", "ext4", "tmpfs"}
UNITS = {"min"}
RESULTS = {"metadata", "completed", "errored", "incomplete", "results", "successes", "filesystems"}
TERMS = {*EVIDENCE_GROUPS} | TOOLS | STATES | FIELDS | KEYS | FILE_SYSTEMS | RESULTS | UNITS
HAN = re.compile(r"[\u4e00-\u9fff]")
WORD = re.compile(r"(?<![\w./=:-])[a-z]{3,}(?![\w./=-]|:\w)")
QUOTED = re.compile(r"“[^”]*”|JSON 之前有文字：.*|字段 \S+|：Expecting [^）]*")  # a line, a field's name, the parser's own words


@functools.lru_cache(maxsize=50_000)
def english(zh: str) -> frozenset[str]:
    """Return the English words of a Chinese sentence."""
    return frozenset(WORD.findall(QUOTED.sub("", zh))) - TERMS


def written(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every Chinese text that stands in a Python source, without its placeholders; documentation is for programmers."""
    tree = ast.parse(source)
    told = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, ast.Module) and node.body and isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and HAN.search(node.value) and id(node) not in told:
            yield node.lineno, re.sub(r"\{[^}]*\}", "", node.value)


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


def english_in(document: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the Chinese sentences of a verdict that hold English words, with those words: of its summary, checks, claims, what was not tested."""
    told = {zh for part in ("summary", "risk", "checks", "claims", "not_tested", "extension") for zh in sentences(document[part])}
    return {zh: english(zh) for zh in told if english(zh)}
