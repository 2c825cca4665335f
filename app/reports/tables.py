"""The smaller tables of a report: delivery, hosts, forms, runs, hours, evidence, exact values."""

from __future__ import annotations

from typing import Any

from app.reports import format as f
from app.reports.checks import arm_title
from app.reports.words import Words


def delivery(engagement: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the order line by line against the packing list: what was ordered, how many pieces are listed."""
    order = engagement.get("order") or {}
    listed = engagement.get("packing_list") or []
    rows = []
    for line in order.get("lines") or []:
        same = [item for item in listed if item.get("kind") == line.get("kind") and item.get("model") == line.get("model")]
        firmware = line.get("firmware")
        rows.append(
            {
                "kind": str(line.get("kind", "")),
                "model": str(line.get("model", "")),
                "quantity": str(line.get("quantity", "")),
                "firmware": ", ".join(str(v) for v in firmware) if isinstance(firmware, list) else str(firmware or ""),
                "listed": str(sum(item.get("quantity", 1) for item in same)) if same else "",
            }
        )
    return rows


def hosts(engagement: dict[str, Any]) -> list[dict[str, str]]:
    """Return the hosts with their roles; addresses of targets are printed, credentials never stand in the data."""
    found = (engagement.get("targets") or {}).get("hosts") or {}
    return [
        {
            "host": str(name),
            "groups": ", ".join(str(g) for g in (data or {}).get("groups") or []),
            "address": str((data or {}).get("address") or (data or {}).get("connection") or ""),
        }
        for name, data in found.items()
    ]


def platform(plan: dict[str, Any]) -> str:
    """Return the platform that the result holds for, in one line."""
    data = plan.get("platform") or {}
    layout = data.get("layout") or {}
    parts = [f"{data.get('count')} x {data['accelerator']}" if data.get("accelerator") else "", data.get("framework"), data.get("model")]
    parts.append(", ".join(f"{key} {value}" for key, value in layout.items()))
    return " / ".join(str(part) for part in parts if part)


def run_rows(figures: dict[str, Any], words: Words) -> list[dict[str, str]]:
    """Return the table twin of the G2 and G3 charts: the medians of each run, tier by tier."""
    rows = [
        {
            "tier": tier,
            "arm": "",
            "run": str(run.get("run", "")),
            "p50": f.ms_of_ns(run.get("ttft_p50_ns")),
            "throughput": f.tok_s(run.get("output_tokens_per_s")),
        }
        for tier, data in _by_tier(figures.get("tiers"))
        for run in data.get("runs") or []
    ]
    speeds = figures.get("throughput") or {}
    for tier, data in _by_tier(figures.get("ttft")):
        for arm, runs in data.items():
            if not isinstance(runs, list):
                continue
            found = ((speeds.get(tier) or {}).get("arms") or {}).get(arm) or []
            for i, run in enumerate(runs):
                speed = f.tok_s(found[i]) if i < len(found) else ""
                rows.append(
                    {"tier": tier, "arm": arm_title(arm, words), "run": str(run.get("run", "")), "p50": f.ms(run.get("p50_ms")), "throughput": speed}
                )
    return rows


def hour_rows(figures: dict[str, Any]) -> list[dict[str, str]]:
    """Return the table twin of the soak chart."""
    return [
        {
            "hour": f.exact(row.get("hour")),
            "requests": f.grouped(row.get("requests")),
            "errors": f.grouped(row.get("errors")),
            "p50": f.ms(row.get("ttft_p50_ms")),
            "throughput": f.tok_s(row.get("output_tokens_per_s")),
            "memory": f.megabytes(row.get("rss_bytes")),
        }
        for row in figures.get("soak") or []
    ]


def diagnostic_rows(figures: dict[str, Any], words: Words) -> list[dict[str, str]]:
    """Return what stands beside the checks and decides nothing: {title, text}, as the judge said it."""
    return [{"title": words.text(row.get("title")), "text": words.text(row.get("text"))} for row in figures.get("diagnostics") or []]


def evidence_rows(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the evidence by step and host: files, bytes, tools with versions. Each file by itself stands in manifest.json."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for file in manifest.get("files") or []:
        parts = str(file.get("path", "")).split("/")
        step = str(file.get("step") or (parts[1] if len(parts) > 2 else ""))
        key = (step, str(file.get("host") or ""))
        group = groups.setdefault(key, {"step": key[0], "host": key[1], "files": 0, "size": 0, "tools": []})
        group["files"] += 1
        group["size"] += int(file.get("size") or 0)
        tool = " ".join(str(v) for v in (file.get("tool"), file.get("version")) if v)
        if tool and tool not in group["tools"]:
            group["tools"].append(tool)
    return [{**group, "size": f.size(group["size"])} for group in groups.values()]


def exact_rows(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the numeric checks with all digits that were compared."""
    return [
        {"id": row["id"], "value": row["value_exact"], "limit": row["limit_exact"], "margin": row["margin_exact"] or "", "unit": row["unit"]}
        for row in checks
        if row["numeric"]
    ]


def _by_tier(tiers: Any) -> list[tuple[str, dict[str, Any]]]:
    return sorted((tiers or {}).items(), key=lambda item: int(item[0]))
