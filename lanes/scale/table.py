"""The figures as a table, the limits that they are held against, and docs/scaling.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.engine.policy import LOST_CONTACT_FIRST_S
from app.settings import ROOT

PAGE = ROOT / "docs" / "scaling.md"
MARKS = "<!-- figures of make scale: begin -->", "<!-- figures of make scale: end -->"
INTERVALS_S = (60, 120, 300)
MOST_RATIO = 1.25  # cost of a poll with the most soaks over that with the fewest
LATE_MOST_S = LOST_CONTACT_FIRST_S  # a silent target is asked again this soon: a later poll would tell of a lost one too late


def lines(found: dict[str, Any]) -> list[str]:
    """Return the table in Markdown."""
    head = "soaks | polls | late p50 / p99 / max, s | CPU ms a poll (worker, postgres, rest) | write transactions a poll | rows a poll"
    head += " | WAL KB a poll | queue p50 / max | memory MB | a page, CPU ms/s"
    table = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    for row in found["rows"]:
        late, cpu, per, queue = row["lateness_s"], row["cpu_ms_per_poll"], row["per_poll"], row["queue_depth"]
        rest = cpu["all"] - cpu["worker"] - cpu["postgres"]
        cells = [
            f"{row['soaks']:,}",
            f"{row['polls']:,}",
            f"{late['p50']:.2f} / {late['p99']:.2f} / {late['max'] or 0:.2f}",
            f"{cpu['all']:.0f} ({cpu['worker']:.0f}, {cpu['postgres']:.0f}, {rest:.0f})",
            f"{per['written']:.1f}" if per else "-",
            f"{per['rows']:.0f}" if per else "-",
            f"{per['wal_bytes'] / 1024:.0f}" if per else "-",
            f"{queue['p50']} / {queue['max']}",
            f"{sum(row['memory_mb'].values()):.0f}",
            f"{sum(row['pages']['cpu_ms_per_page_second'].values()):.0f}",
        ]
        table.append("| " + " | ".join(cells) + " |")
    table += ["", "| hosts of one real poll | CPU s | CPU s a host | s |", "|---|---|---|---|"]
    table += [f"| {r['hosts']} | {r['cpu_s']:.2f} | {r['cpu_s'] / r['hosts']:.2f} | {r['wall_s']:.1f} |" for r in found["real"]]
    return table + _cores(found["real"][0]["cpu_s"])


def _cores(cpu_s: float) -> list[str]:
    """Return how many cores real polls take, by interval: one poll a playbook, and nothing else on the core."""
    table = ["", "| `QUADGATE_SOAK_POLL_SECONDS` | soaks a core | cores for 100 | for 1,000 | for 10,000 |", "|---|---|---|---|---|"]
    for interval in INTERVALS_S:
        cores = [f"{soaks * cpu_s / interval:.1f}" for soaks in (100, 1000, 10000)]
        table.append(f"| {interval} | {interval / cpu_s:.0f} | " + " | ".join(cores) + " |")
    return table


def breaches(found: dict[str, Any]) -> list[str]:
    """Return a sentence for every limit that was not kept."""
    said, rows = [], sorted(found["rows"], key=lambda row: row["soaks"])
    for row in rows:
        said += row["problems"]
        if row["lateness_s"]["p99"] > LATE_MOST_S:
            said.append(f"{row['soaks']} soaks: p99 of the lateness is {row['lateness_s']['p99']:.1f} s (at most {LATE_MOST_S:g} s)")
    if len(rows) > 1:
        few, many = rows[0], rows[-1]
        for name, low, high in (
            ("CPU", few["cpu_ms_per_poll"]["all"], many["cpu_ms_per_poll"]["all"]),
            ("write transactions", few["per_poll"].get("written"), many["per_poll"].get("written")),
        ):
            if low is not None and high > MOST_RATIO * low:
                said.append(f"{name} of a poll: {low:.1f} with {few['soaks']} soaks, {high:.1f} with {many['soaks']} (at most {MOST_RATIO} times)")
    return said


def write(found: dict[str, Any], page: Path = PAGE) -> None:
    """Put the table between the marks of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    about = f"{found['database']}, {found['cores']} cores, {found['rate']:g} requests a second of each soak."
    page.write_text("\n".join([before + MARKS[0], "", about, "", *lines(found), "", MARKS[1] + after]), encoding="utf-8")
