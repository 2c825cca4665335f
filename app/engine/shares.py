"""What one playbook is to each of the runs that it is played for: its hosts, its events, its result. Used by the host process; standard library only.

Alone a run has the playbook to itself. Of a round (rounds.py) each run has a share: its hosts stand in one inventory with those of others, by a name
that nobody else can have, and every event goes to the run whose host it is about, under the name that its own inventory knows. What is about the
play as a whole goes to all, without the lines about hosts of others.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from app.engine import durable
from app.engine.capture import Capture
from app.engine.control import close_masters
from app.engine.redact import Redactor

HOSTS_FAILED = (0, 2, 4)  # exit codes of a play that went to its end: hosts failed (2), hosts did not answer (4)
_SHARED = re.compile(r"qg\d\d~")  # a name in an engagement holds no tilde


class Share:
    """One run's share of what a host process plays. `number`: its place in a round, None when it is alone."""

    def __init__(self, folder: Path, job: dict[str, Any], number: int | None, secrets: Iterable[str]) -> None:
        self.folder, self.job = folder, job
        self.prefix = "" if number is None else f"qg{number:02d}~"
        self._others = re.compile(rf"qg(?!{self.prefix[2:]})\d\d~") if self.prefix else None
        self.redactor = Redactor(secrets, self.prefix)
        self.capture = Capture(folder / "events.jsonl", self.redactor)

    def event(self, event: dict[str, Any]) -> None:
        """Keep an event, or what of it is this run's. Never raises."""
        try:
            own = self._own(event) if self.prefix else event
        except Exception:
            self.capture.lost += 1
            return
        if own is not None:
            self.capture.event(own)

    def _own(self, event: dict[str, Any]) -> dict[str, Any] | None:
        host = str((event.get("event_data") or {}).get("host") or "")
        if host.startswith(self.prefix):
            return {**event, "counter": self.capture.count + 1}
        if _SHARED.match(host):
            return None
        own: dict[str, Any] = self._without_others(event)
        return {**own, "counter": self.capture.count + 1}

    def _without_others(self, value: Any) -> Any:
        if isinstance(value, str):
            return "\n".join(line for line in value.split("\n") if not self._of_others(line)) if self._of_others(value) else value
        if isinstance(value, dict):
            return {key: self._without_others(item) for key, item in value.items() if not self._of_others(key)}
        if isinstance(value, list | tuple):
            return [self._without_others(item) for item in value if not self._of_others(item)]
        return value

    def _of_others(self, value: Any) -> bool:
        return isinstance(value, str) and self._others is not None and self._others.search(value) is not None

    def hosts(self) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Return the hosts of this run with all variables of its playbook, and its groups, by the names of the round."""
        private, short = self.folder / "private", Path(self.job["short_dir"])
        inventory = json.loads((private / "inventory.json").read_bytes())["all"]
        known = json.loads((private / "vars.json").read_bytes())
        own = {"ansible_remote_tmp": str(short / "remote"), "ansible_control_path_dir": str(short / "cp")}
        hosts = {self.prefix + name: {**own, **variables, **known} for name, variables in inventory["hosts"].items()}
        return hosts, {group: [self.prefix + name for name in members["hosts"]] for group, members in inventory["children"].items()}

    def clear(self) -> None:
        """Remove what the playbook needed and nobody else: connections, inventory, variables, artifacts."""
        close_masters(Path(self.job["control_dir"]))
        shutil.rmtree(self.folder / "private", ignore_errors=True)
        (self.folder / "job.json").unlink(missing_ok=True)
        shutil.rmtree(self.job["short_dir"], ignore_errors=True)

    def end(self, status: str, rc: int | None, problem: str | None) -> dict[str, Any]:
        """Leave result.json, whatever happened, and return it. `status`, `rc`: of the playbook; of a round each run's follow from its own hosts."""
        stats = self.capture.stats
        if self.prefix:
            for path in (self.folder / "staging").glob(f"{self.prefix}*"):
                path.rename(path.with_name(path.name.removeprefix(self.prefix)))
            if rc in HOSTS_FAILED and not any((stats.get("failures") or {}).values()) and not any((stats.get("dark") or {}).values()):
                status, rc = "successful", 0
        result = {
            "status": status,
            "rc": rc,
            "stats": stats,
            "replies": self.capture.replies,
            "failures": self.capture.failures,
            "events": self.capture.count,
            "events_lost": self.capture.lost,
            "tail": self.capture.tail,
            "problem": problem,
        }
        try:
            durable.write_json(self.folder / "result.json", result)
        except OSError as error:  # fits into what was reserved
            why = f"the result could not be written: {error.strerror}"
            result |= {"replies": {}, "tail": [], "failures": [], "status": "failed", "problem": why}
            durable.write_json(self.folder / "result.json", result)
        return result


def document(shares: Sequence[Share]) -> dict[str, Any]:
    """Return the inventory of a round, as Ansible's YAML plugin reads it."""
    hosts: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for share in shares:
        own, members = share.hosts()
        hosts |= own
        for group, names in members.items():
            groups.setdefault(group, {"hosts": {}})["hosts"].update({name: {} for name in names})
    return {"all": {"hosts": hosts, "children": groups}}


def ended(shares: Sequence[Share], status: str, rc: int | None, problem: str | None) -> list[Share]:
    """Leave the results of a playbook that is over, and return the shares that have one.

    What became of each run of a round is told by the recap of its own hosts. Where there is none (a time-out, an error of Ansible's own) nobody can
    say whose fault it was: no run gets a result, so each counts as lost, and is tried again by itself.
    """
    told = status in ("successful", "failed") and rc in HOSTS_FAILED and problem is None and all(share.capture.stats for share in shares)
    if len(shares) > 1 and not told:
        tail = " / ".join(shares[0].capture.tail)[-300:]
        print(f"the round of {len(shares)} ended as {status}, {rc}: {problem or tail}; no run of it has a result", file=sys.stderr)  # noqa: T201 - host.log
        return []
    for share in shares:
        share.end(status, rc, problem)
    return list(shares)
