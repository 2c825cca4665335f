"""The gates in words, from their declarations: the tables of `quadgate gate show` and the page docs/checks.md. Pure text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gates.declarations import claim_rows, rows
from gates.quantities import unit_name
from gates.registry import GATES
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

_HEAD = {
    "id": Text("id", "编号"),
    "title": Text("check", "检查项"),
    "quantity": Text("quantity", "量"),
    "unit": Text("unit", "单位"),
    "direction": Text("better", "方向"),
    "limit": Text("limit", "限值"),
    "rule": Text("rule", "规则"),
    "evidence": Text("evidence", "证据"),
    "severity": Text("weight", "性质"),
    "source": Text("source", "来源"),
    "claim": Text("claim", "断言"),
}
_DIRECTIONS = {
    "higher": Text("higher", "越大越好"),
    "lower": Text("lower", "越小越好"),
    "equal": Text("equal", "相等"),
    "band": Text("in the band", "在区间内"),
    "set": Text("same set", "集合相同"),
    "told": Text("told", "告知"),
}
_SEVERITY = {"blocking": Text("blocking", "否决项"), "advisory": Text("advisory", "参考项")}
_GROUP = Text("{s} (evidence {g}, {r})", "{s}（证据 {g}，{r}）")
_REQUIRED = {True: Text("required", "计划要求"), False: Text("not required", "计划未要求")}
_OPS = {">=": "≥ {low}", "<=": "≤ {high}", "==": "= {low}", "band": "{low} … {high}", "set": "{low}"}
_PAGE = Text(
    "Every check of the four gates under the default plan. This page is written by `python -m tools.checks_page` from the declarations\n"
    "that the judge itself uses; a test fails when it is stale. `quadgate gate show G3` prints a gate under your own plan.\n"
    "`DESIGN n` names a section of [design.md](design.md).",
    "默认计划下四道门禁的全部检查项。",
)
# Words between the names of steps and files, as the declarations write them.
_OF_EVIDENCE = {
    "every run or soak": "每轮运行或稳定性运行",
    "every file that a step must bring": "各步骤须带回的全部文件",
    "the claims below": "下列断言",
    ", where it was read again": "（如再次读取）",
    " (far end)": "（对端）",
    "photos": "照片",
    " and ": " 与 ",
    ", or ": " 或 ",
    " or ": " 或 ",
}
CHECK_COLUMNS = ("id", "title", "quantity", "unit", "direction", "limit", "rule", "evidence", "severity", "source")
CLAIM_COLUMNS = ("claim", "title", "limit", "source")


def limit_text(limit: Mapping[str, Any]) -> str:
    """Return a limit in one short form, e.g. ≥ 0.25."""
    return _OPS[limit["op"]].format(**limit) if limit["op"] in _OPS else "-"


def table(gate: str, plan: Plan, language: str) -> tuple[list[str], list[list[str]]]:
    """Return (headings, rows) of a gate's checks under a plan."""
    return _heads(CHECK_COLUMNS, language), [_check_cells(row, language) for row in rows(gate, plan)]


def claims_table(gate: str, plan: Plan, language: str) -> tuple[list[str], list[list[str]]]:
    """Return (headings, rows) of a gate's claims of validity under a plan; empty rows for a gate that has none."""
    out = []
    for row in claim_rows(gate, plan):
        title = Text.parse(row["title"]).in_language(language)
        out.append([row["claim"], title, limit_text(row["limit"]), row["source"] if row["left_out"] is None else f"not_tested: {row['left_out']}"])
    return _heads(CLAIM_COLUMNS, language), out


def document(gate: str, plan: Plan) -> dict[str, Any]:
    """Return a gate under a plan as JSON data."""
    return {
        "gate": gate,
        "title": GATES[gate].title.json(),
        "plan_hash": plan.hash,
        "checks": list(rows(gate, plan)),
        "claims": list(claim_rows(gate, plan)),
    }


def page(plan: Plan) -> str:
    """Return docs/checks.md."""
    parts = ["# Checks\n", f"{_PAGE.en}\n"]
    for gate, spec in GATES.items():
        parts.append(f"## {gate} {spec.title.en} ({spec.title.zh})\n")
        parts.append(_markdown(*_both(gate, plan)))
        heads, claims = claims_table(gate, plan, "en")
        if claims:
            zh = [row[1] for row in claims_table(gate, plan, "zh-CN")[1]]
            parts.append("Claims of validity, judged first:\n")
            parts.append(_markdown(heads, [[row[0], f"{row[1]}<br>{z}", *row[2:]] for row, z in zip(claims, zh, strict=True)]))
    return "\n".join(parts)


def _both(gate: str, plan: Plan) -> tuple[list[str], list[list[str]]]:
    heads, english = table(gate, plan, "en")
    chinese = table(gate, plan, "zh-CN")[1]
    return heads, [[row[0], *(_twice(row[n], zh[n]) for n in (1, 2)), *row[3:]] for row, zh in zip(english, chinese, strict=True)]


def _twice(english: str, chinese: str) -> str:
    return english if english == chinese else f"{english}<br>{chinese}"


def _heads(columns: Iterable[str], language: str) -> list[str]:
    return [_HEAD[name].in_language(language) for name in columns]


def _check_cells(row: Mapping[str, Any], language: str) -> list[str]:
    weight = _SEVERITY[row["severity"]]
    if row["group"]:
        weight = _GROUP.fill(s=weight, g=row["group"], r=_REQUIRED[row["required"]])
    return [
        row["id"],
        Text.parse(row["title"]).in_language(language),
        Text.parse(row["quantity_name"]).in_language(language) or "-",
        unit_name(row["unit"]).in_language(language),
        _DIRECTIONS[row["direction"]].in_language(language),
        limit_text(row["limit"]),
        Text.parse(row["rule"]).in_language(language),
        _evidence(row["evidence"], language),
        weight.in_language(language),
        row["source"],
    ]


def _evidence(items: Sequence[str], language: str) -> str:
    if language == "en":
        return ", ".join(items)
    out = []
    for item in items:
        for english, chinese in _OF_EVIDENCE.items():
            item = item.replace(english, chinese)
        out.append(item)
    return "、".join(out)


def _markdown(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in body]
    return "\n".join(lines) + "\n"
