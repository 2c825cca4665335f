"""The figures as a table, the limits that they are held against, and docs/scaling.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.engine.policy import LOST_CONTACT_FIRST_S
from app.settings import ROOT

PAGE = ROOT / "docs" / "scaling.md"
MARK = "<!-- figures of make scale, {part}: {end} -->"
SOAKS, ROUNDS = "soaks", "real polls"
INTERVALS_S = (60, 120, 300)
MOST_RATIO = 1.25  # cost of a poll with the most soaks over that with the fewest
LATE_MOST_S = LOST_CONTACT_FIRST_S  # a silent target is asked again this soon: a later poll would tell of a lost one too late


def parts(found: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return what was measured as tables in Markdown, by the part of the page that they are for."""
    measured = [(SOAKS, _soaks(found))] if found["rows"] else []
    return [*measured, (ROUNDS, [*_rounds(found), *_cores(found["real"])])]


def _soaks(found: dict[str, Any]) -> list[str]:
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
    about = f"{found['database']}, {found['cores']} cores, {found['rate']:g} requests a second of each soak."
    return [about, "", *table]


def _rounds(found: dict[str, Any]) -> list[str]:
    """Return what real polls of targets that are due at once took, a playbook each against one for all."""
    head = "targets due | playbooks, singly / round | processes begun a poll | CPU s a poll | s until all are in | CPU, round / singly"
    table = [f"{found['cores']} cores, {found['rate']:g} requests a second of each soak.", "", f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    for row in found["real"]:
        n, one, all_ = row["targets"], row["singly"], row["together"]
        begun = [f"{part['processes'] / n:.0f}" if part["processes"] else "-" for part in (one, all_)]
        cells = [str(n), f"{n} / 1", " / ".join(begun), f"{one['cpu_s'] / n:.2f} / {all_['cpu_s'] / n:.2f}"]
        cells += [f"{one['wall_s']:.1f} / {all_['wall_s']:.1f}", f"{all_['cpu_s'] / one['cpu_s']:.2f}"]
        table.append("| " + " | ".join(cells) + " |")
    return table


def _cores(real: list[dict[str, Any]]) -> list[str]:
    """Return how many cores real polls take, by interval, with nothing else on the core: every poll by itself, and in the largest rounds measured."""
    head = "`QUADGATE_SOAK_POLL_SECONDS` | soaks a core | cores for 100 | for 1,000 | for 10,000"
    table = ["", f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    singly, together = real[0]["singly"]["cpu_s"] / real[0]["targets"], real[-1]["together"]["cpu_s"] / real[-1]["targets"]
    for interval in INTERVALS_S:
        cores = [f"{soaks * singly / interval:.1f} / {soaks * together / interval:.1f}" for soaks in (100, 1000, 10000)]
        table.append(f"| {interval} | {interval / singly:.0f} / {interval / together:.0f} | " + " | ".join(cores) + " |")
    return [*table, "", f"Singly / in rounds of {real[-1]['targets']}."]


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
    """Put each table between its marks of the page."""
    for part, lines in parts(found):
        begin, end = (MARK.format(part=part, end=word) for word in ("begin", "end"))
        before, _, rest = page.read_text(encoding="utf-8").partition(begin)
        _, _, after = rest.partition(end)
        page.write_text("\n".join([before + begin, "", *lines, "", end + after]), encoding="utf-8")
