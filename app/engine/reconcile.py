"""Whether a playbook run did what it should on every host it should cover. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from app.engine import words
from app.engine.outcome import Trouble
from app.engine.spoken import said
from app.targets.inventory import Inventory

# The tasks of job_start.yml from which on a host may have the job. Linear play: a host that failed before never got to them.
HANDS_OVER = ("Hand the job to the probe", "See that the job was started", "reply")


def covered(playbook: Path, inventory: Inventory, groups: Iterable[str] = ()) -> list[str]:
    """Return the hosts that a playbook must touch: those its plays name, and those of the groups whose evidence is expected.

    A pattern with anything but names of groups and hosts (`!`, `&`, a template) names nobody here; what it must cover is then told by
    the expected evidence alone.
    """
    names: list[str] = []
    try:
        plays = yaml.safe_load(playbook.read_text(encoding="utf-8"))
    except yaml.YAMLError:
        plays = []  # ansible says what is wrong with it, better than we could
    for play in plays if isinstance(plays, list) else []:
        pattern = play.get("hosts", "") if isinstance(play, dict) else ""
        parts = [str(part) for part in pattern] if isinstance(pattern, list) else re.split(r"[,:]", str(pattern))
        if all(re.fullmatch(r"[A-Za-z0-9._-]+", part.strip()) for part in parts if part.strip()):
            names += [host for part in parts for host in inventory.members(part.strip())]
    names += [host for group in groups for host in inventory.members(group)]
    return list(dict.fromkeys(names))


def troubles(result: Mapping[str, Any], expected: list[str], *, playbook: str, addresses: Mapping[str, str]) -> list[Trouble]:
    """Return all that is wrong with a run, the most telling first; an empty list means ok on every expected host."""
    stats: Mapping[str, Mapping[str, int]] = result.get("stats") or {}
    failures = result.get("failures") or []
    found: list[Trouble] = []
    dark = [host for host, n in (stats.get("dark") or {}).items() if n]
    messages = {f["host"]: f["message"] for f in failures if f.get("unreachable")}
    found += [words.unreachable(host, addresses.get(host, ""), messages.get(host, "no message")) for host in dark or messages]
    failed = [host for host, n in (stats.get("failures") or {}).items() if n]
    for host in failed:
        last = next((f for f in reversed(failures) if f["host"] == host and not f.get("unreachable")), {"task": "", "message": ""})
        found.append(words.task_failed(host, str(last["task"]), said(last), playbook))
    if found:
        return found
    if result.get("problem"):
        return [words.broken_run(playbook, str(result.get("status")), str(result["problem"]))]
    if result.get("status") == "timeout" or (result.get("rc") != 0 or result.get("status") != "successful"):
        text = " / ".join(result.get("tail") or [])[-500:]
        last = next(iter(reversed(failures)), None)
        return [
            words.task_failed(last["host"], last["task"], said(last), playbook)
            if last
            else words.broken_run(playbook, str(result.get("status")), text)
        ]
    ok: Mapping[str, int] = stats.get("ok") or {}
    if not expected or not any(ok.values()):
        return [words.no_hosts(playbook)]
    if idle := [host for host in expected if not ok.get(host)]:
        return [words.unmatched(idle, playbook)]
    return []


def began_nothing(result: Mapping[str, Any], host: str) -> bool:
    """Tell whether a host was unreachable before any of its tasks ran: then a start certainly started nothing there."""
    stats: Mapping[str, Mapping[str, int]] = result.get("stats") or {}
    return not (stats.get("ok") or {}).get(host)


def never_handed_over(result: Mapping[str, Any], host: str) -> bool:
    """Tell whether a start certainly handed no job to a host: it failed there in a task before that one, or the play passed the host by.

    A host that was lost, or failed, in the task that hands over (or in one that nobody knows) may have the job all the same.
    """
    stats: Mapping[str, Mapping[str, int]] = result.get("stats") or {}
    if result.get("status") == "successful" and result.get("rc") == 0:
        return not (stats.get("ok") or {}).get(host)
    tasks = [str(f.get("task") or "").rpartition(" : ")[2] for f in result.get("failures") or [] if f.get("host") == host]
    stopped = (stats.get("failures") or {}).get(host) or (stats.get("dark") or {}).get(host)
    return bool(stopped) and bool(tasks) and not {"", *HANDS_OVER} & set(tasks)


def only_unreachable(result: Mapping[str, Any]) -> bool:
    """Tell whether all that went wrong is that hosts did not answer."""
    stats: Mapping[str, Mapping[str, int]] = result.get("stats") or {}
    return any((stats.get("dark") or {}).values()) and not any((stats.get("failures") or {}).values()) and not result.get("problem")
