"""The alert rules and the dashboard name what exists, and nothing that is measured is left unseen."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from app.ops.metrics import NAMES
from app.settings import ROOT

WORDS = frozenset({"absent", "sum", "by", "rate", "and", "for"})


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((ROOT / "ops/alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> dict[str, str]:
    board = json.loads((ROOT / "ops/dashboard.json").read_text(encoding="utf-8"))
    asked = {f"panel {panel['title']} {target['refId']}": target["expr"] for panel in board["panels"] for target in panel["targets"]}
    return asked | {f"alert {rule['alert']}": rule["expr"] for rule in rules()}


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"quadgate_[a-z_]+", expression))


def test_every_alert_and_every_panel_asks_for_metrics_that_exist() -> None:
    unknown = {where: metrics_in(e) - NAMES for where, e in expressions().items() if not metrics_in(e) or metrics_in(e) - NAMES}
    assert unknown == {}


def test_every_metric_is_on_the_dashboard() -> None:
    assert NAMES - set().union(*(metrics_in(e) for where, e in expressions().items() if where.startswith("panel"))) == set()


def test_the_expressions_are_balanced_and_use_no_other_word() -> None:
    for where, expression in expressions().items():
        bare = re.sub(r"\{[^}]*\}|\[\d+[smhd]\]|\d+e?\d*|quadgate_[a-z_]+", " ", expression)
        assert set(re.findall(r"[a-z_]+", bare)) <= WORDS | {"gate", "verdict"}, where
        assert all(expression.count(a) == expression.count(b) for a, b in ("()", "[]", "{}")), where


def test_every_alert_has_a_name_of_its_own_a_severity_and_two_languages() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "warn", "info")
        assert re.search("[一-鿿]", rule["annotations"]["summary"]), rule["alert"]
        assert len(rule["annotations"]["description"]) > 40
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
