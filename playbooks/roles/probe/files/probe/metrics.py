"""The engine's /metrics: counters and gauges as exact decimal strings, as they were written, and quantities by the engine's own names for them."""

from __future__ import annotations

import json
import re
import urllib.request
from decimal import Decimal, InvalidOperation
from typing import Any, Dict, Iterable, List, Optional, Tuple

from probe.engine_counters import FACTS, SERIES, family_of
from probe.errors import ProbeError

_SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(\{.*\})?\s+(\S+)")
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url: str, timeout: float = 5.0) -> bytes:
    """Return the body of a GET, or raise a sentence."""
    try:
        with _OPENER.open(url, timeout=timeout) as answer:
            body: bytes = answer.read()
            return body
    except (OSError, ValueError) as error:
        raise ProbeError("engine", "GET %s failed: %s." % (url, error)) from error


def get_json(url: str) -> Optional[Any]:
    """Return the parsed body of a GET, or None when the engine does not offer it."""
    try:
        return json.loads(get(url).decode("utf-8"))
    except (ProbeError, ValueError):
        return None


def page(url: str) -> Optional[Dict[str, str]]:
    """Return the counters and gauges of an endpoint, or None where it does not answer."""
    try:
        return parse(get(url).decode("utf-8", "replace"))
    except ProbeError:
        return None


def parse(text: str) -> Dict[str, str]:
    """Return {name with labels: decimal string} of every counter and gauge; histograms and summaries are left out.

    A sample without a TYPE line is kept: leaving out what is not understood would hide a counter. Not-a-number stays `NaN`.
    """
    types: Dict[str, str] = {}
    out: Dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            part = line.split()
            types[part[2]] = part[3] if len(part) > 3 else ""
        elif line and not line.startswith("#"):
            found = _SAMPLE.match(line)
            if found and _kept(found.group(1), types):
                out[found.group(1) + (found.group(2) or "")] = _decimal(found.group(3))
    return out


def merged(pages: List[Dict[str, str]]) -> Dict[str, str]:
    """Return one page of several instances: each series with the label `instance`, counted from 0. One page alone stays as it is."""
    if len(pages) == 1:
        return pages[0]
    out: Dict[str, str] = {}
    for n, page in enumerate(pages):
        for series, value in page.items():
            name, _, labels = series.partition("{")
            out['%s{instance="%d"%s' % (name, n, "," + labels if labels and labels != "}" else "}")] = value
    return out


def _kept(name: str, types: Dict[str, str]) -> bool:
    kind = types.get(name)
    if kind is None:
        for ending in ("_bucket", "_sum", "_count", "_created"):
            if name.endswith(ending) and types.get(name[: -len(ending)]) in ("histogram", "summary"):
                return False
        kind = types.get(name[: -len("_total")]) if name.endswith("_total") else None  # OpenMetrics names the family without _total
    return kind not in ("histogram", "summary")


def _decimal(text: str) -> str:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return format(value, "f") if value.is_finite() else text


def total(metrics: Dict[str, str], name: str, **labels: str) -> Optional[Decimal]:
    """Return the sum of a metric over all label sets that contain `labels`, or None when it is absent or not a number."""
    found: Optional[Decimal] = None
    for key, text in metrics.items():
        if carries(key, name, labels):
            if not re.fullmatch(r"-?[0-9.]+", text):
                return None
            found = (found or Decimal(0)) + Decimal(text)
    return found


def amount(metrics: Dict[str, str], quantity: str) -> Optional[Decimal]:
    """Return a quantity of probe.engine_counters; None where the page's engine has no series of it, or one is absent or not a number."""
    parts = [total(metrics, name, **labels) for name, labels in series_of(metrics, quantity)]
    return sum((part for part in parts if part is not None), Decimal(0)) if parts and None not in parts else None


def growth(before: Dict[str, str], after: Dict[str, str], quantity: str) -> Optional[Decimal]:
    """Return by how much a quantity grew, None where one of the pages does not tell it."""
    low, high = amount(before, quantity), amount(after, quantity)
    return None if low is None or high is None else high - low


def series_of(metrics: Iterable[str], quantity: str) -> Iterable[Tuple[str, Dict[str, str]]]:
    """Return the series, each as (name, labels), that add up to a quantity of the engine whose names stand on a page; none where it has none."""
    return SERIES.get(family_of(metrics) or "", {}).get(quantity, ())


def names_of(metrics: Iterable[str], quantity: str) -> str:
    """Return the names of a quantity's series on a page, for a sentence; the quantity itself where the engine is not known."""
    return ", ".join(sorted({name for name, _ in series_of(metrics, quantity)})) or quantity


def carries(key: str, name: str, labels: Dict[str, str]) -> bool:
    """Tell whether a series has a name and these labels."""
    return (key == name or key.startswith(name + "{")) and all('%s="%s"' % item in key for item in labels.items())


def fact(metrics: Dict[str, str], what: str) -> Optional[str]:
    """Return a fact that the engine tells on its page: a label of an information series, or the value of a gauge that is alike on all ranks."""
    name, label = FACTS.get(family_of(metrics) or "", {}).get(what, ("", ""))
    if label:
        return labels_of(metrics, name).get(label)
    return next((text for key, text in metrics.items() if name and carries(key, name, {})), None)


def labels_of(metrics: Dict[str, str], name: str) -> Dict[str, str]:
    """Return the labels of the first sample of a metric, as `vllm:cache_config_info` carries its facts."""
    for key in metrics:
        if key.startswith(name + "{"):
            return dict(re.findall(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"', key[len(name) :]))
    return {}
