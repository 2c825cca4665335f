"""The Prometheus text of an engine (`vllm-metrics`, `sglang-metrics`) and of LMCache (`lmcache-metrics`): one observation a series.

The quantity is the series' name as the program gives it (vllm:prompt_tokens_total), the labels are its labels, the unit follows the
name's ending by the conventions of Prometheus: _seconds is s, _bytes is B, anything else counts (1). A series that stands twice, a value that is not
a number, and a text that ends within a line are problems.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from gates.model import Reading
from gates.readers.common import Collector, decode
from gates.readers.prometheus import parse_series

_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?)\s+(\S+)(?:\s+-?[0-9]{1,18})?$")
_VALUE = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?")
_ENDINGS = ("_total", "_sum", "_bucket", "_count", "_created")
VLLM_NEEDED = "vllm:"
SGLANG_NEEDED = "sglang:"
SGLANG_UNSET = frozenset({"sglang:fwd_occupancy"})  # NaN where nothing measures it (SGLang 0.5.23, managers/scheduler_components/metrics_reporter.py)
LMCACHE_NEEDED = "lmcache"


def read_vllm_metrics(data: bytes) -> Reading:
    """Read the text of vLLM's /metrics. Without any series of vLLM's it is the text of another program."""
    return _read(data, VLLM_NEEDED)


def read_sglang_metrics(data: bytes) -> Reading:
    """Read the text of SGLang's /metrics. A gauge that it sets to NaN because nothing measures it is left out."""
    return _read(data, SGLANG_NEEDED, SGLANG_UNSET)


def read_lmcache_metrics(data: bytes) -> Reading:
    """Read the text of LMCache's /metrics."""
    return _read(data, LMCACHE_NEEDED)


def _read(data: bytes, needed: str, unset: frozenset[str] = frozenset()) -> Reading:
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    if not text.endswith("\n"):
        found.trouble("truncated", "The text ends within a line.", "文本末行不完整。")
    families: set[str] = set()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.match(line.strip())
        series = parse_series(match[1]) if match else None
        if match is None or series is None:
            found.trouble("unknown_shape", "This line is no series: {line}", "该行不是指标序列：{line}", line=line)
            continue
        name, labels = series
        families.add(name)
        value = _number(match[2])
        if value is None and name in unset and match[2] == "NaN":
            continue
        if value is None:
            found.trouble("not_a_number", "The series {series} has the value {raw}.", "序列 {series} 的值为 {raw}。", series=match[1], raw=match[2])
        else:
            found.observe(name, value, unit_of(name), dict(labels))
    if not any(name.startswith(needed) for name in families):
        found.trouble("unknown_shape", "No series of {needed} stands in this text.", "文本中没有 {needed} 的指标。", needed=needed)
    return found.reading()


def unit_of(name: str) -> str:
    """Return the unit that a series' name tells."""
    for ending in _ENDINGS:
        if name.endswith(ending):
            if ending in ("_bucket", "_count"):
                return "1"
            name = name.removesuffix(ending)
    if name.endswith("_seconds"):
        return "s"
    return "B" if name.endswith("_bytes") else "1"


def _number(raw: str) -> Decimal | None:
    """Return a finite number that is not negative, exactly as written."""
    if not _VALUE.fullmatch(raw):
        return None
    try:
        value = Decimal(raw)
    except InvalidOperation:  # pragma: no cover - the pattern admits decimals only
        return None
    return value if value >= 0 else None
