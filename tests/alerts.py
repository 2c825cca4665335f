"""Whether an alert of ops/alerts.yml would fire now: its expression, held against what /metrics says. `for` is not waited for."""

from __future__ import annotations

import operator
import re

import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.ops import metrics
from app.settings import ROOT

COMPARE = {">": operator.gt, "<": operator.lt, "==": operator.eq}
ONE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<compare>[<>]|==) (?P<limit>[0-9.e]+)")


def fires(alert: str) -> bool:
    """Tell whether every comparison of the alert's expression holds for some sample. Raises ValueError for an expression that is more than that."""
    document = yaml.safe_load((ROOT / "ops/alerts.yml").read_text(encoding="utf-8"))
    rule = next(rule for group in document["groups"] for rule in group["rules"] if rule["alert"] == alert)
    families = text_string_to_metric_families(metrics.text().decode())
    samples = [sample for family in families for sample in family.samples]
    for part in str(rule["expr"]).split(" and "):
        found = ONE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part!r} is no comparison of one metric with a number")
        labels = dict(re.findall(r'(\w+)="([^"]*)"', found["labels"] or ""))
        values = [sample.value for sample in samples if sample.name == found["name"] and labels.items() <= sample.labels.items()]
        if not any(COMPARE[found["compare"]](value, float(found["limit"])) for value in values):
            return False
    return True
