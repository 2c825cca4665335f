"""A stand-in for ansible-runner's `run`: the same modules on the same target, as real processes, without Ansible's seconds a playbook.

It speaks ansible-runner's side of the contract (events to a handler, status, exit code), and it loses the connection where the target's
folder says so: `cut-PLAYBOOK` holds `before` (nothing was done), `during` (the module goes on there, and what it brought
is half a file) or `after` (it was done, and the answer was lost). Every event that it
emits is written down first, for the run of the host that it is about (of a round there are several, and what is about no host
is written down for all), so that others can count.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lanes.chaos.witness import EMITTED, notebook

TARGET = Path(__file__).with_name("target.py")
SCRIPTS = "script"  # below the root of a host
PLAYED_ON = re.compile(r"^  hosts: ([a-z:]+)$", re.MULTILINE)
CHATTER = 12  # more events than a playbook of this size has: enough to lose one


def module_argv(playbook: str, root: str, host: str, known: dict[str, Any]) -> list[str]:
    """Return what a playbook does on a target, as playbooks/ says it for Ansible."""
    attempt, job, step = known["attempt"], known["job"], known["step"]
    out = f"{known['staging']}/{host}"
    there = f"{root}/{SCRIPTS}/{attempt['gate']}/{step.get('key')}"  # what a host has of a gate's step, where the step itself names nothing
    return [
        *(sys.executable, "-I", "-S", "-B", str(TARGET)),
        *{
            **{name: ["bring", root, there, out] for name in ("survey.yml", "storage.yml", "deploy.yml")},
            "prepare.yml": ["prepare", root],
            "job_start.yml": [
                "start",
                root,
                job.get("id"),
                attempt["id"],
                str(attempt["fence"]),
                str(attempt["seed"]),
                str(step.get("seconds")),
                step.get("script") or there,
            ],
            "job_poll.yml": ["poll", root, job.get("id"), json.dumps(job.get("offsets") or {}), out],
            "job_collect.yml": ["collect", root, job.get("id"), out],
            "stop.yml": ["stop", root, attempt["id"]],
        }[playbook],
    ]


class Play:
    """One playbook on the hosts of its group."""

    def __init__(self, inventory: Path, known: dict[str, Any], playbook: Path, handler: Callable[[dict[str, Any]], bool]) -> None:
        self.playbook, self.handler = playbook.name, handler
        everyone = json.loads(inventory.read_text())["all"]
        wanted = PLAYED_ON.search(playbook.read_text())[1].split(":")  # type: ignore[index]
        names = {name for group in wanted for name in (everyone["children"].get(group) or {"hosts": everyone["hosts"]})["hosts"]}
        self.hosts = {name: {**own, **known} for name, own in everyone["hosts"].items() if name in names}
        self.folders = {name: Path(own["staging"]).parent for name, own in self.hosts.items()}
        self.stats: dict[str, dict[str, int]] = {name: {} for name in ("ok", "changed", "dark", "failures", "skipped", "rescued", "ignored")}
        self.number = 0

    def emit(self, kind: str, text: str = "", **data: Any) -> None:
        self.number += 1
        row = {"uuid": str(uuid.uuid4()), "counter": self.number, "event": kind, "created": datetime.now(UTC).isoformat(), "stdout": text}
        for folder in [self.folders[data["host"]]] if "host" in data else sorted(set(self.folders.values())):
            with notebook(folder, EMITTED).open("a") as file:
                file.write(row["uuid"] + "\n")
        self.handler({**row, "event_data": data})

    def run(self) -> int:
        self.emit("playbook_on_start")
        for host, variables in self.hosts.items():
            self.on(host, str(variables["qg_root"]))
        self.emit("playbook_on_stats", **self.stats)
        return 0 if not self.stats["dark"] and not self.stats["failures"] else 4 if self.stats["dark"] else 2

    def on(self, host: str, root: str) -> None:
        cut = self._cut(Path(root), str(self.hosts[host]["attempt"]["id"]))
        if cut == "before":
            return self.lost(host)
        for n in range(CHATTER):
            self.emit("runner_on_ok", f"ok: [{host}]", host=host, task=f"task {n}", res={})
        self.stats["ok"][host] = CHATTER
        done = subprocess.run(module_argv(self.playbook, root, host, self.hosts[host]), capture_output=True, text=True, check=False)
        if cut == "during":
            for name in ("pack.tar", "chunks.json"):
                self.halve(Path(self.hosts[host]["staging"]) / host / name)
        if cut in ("during", "after"):
            return self.lost(host)
        if done.returncode:
            self.stats["failures"][host] = 1
            return self.emit("runner_on_failed", done.stderr, host=host, task="reply", res={"msg": done.stderr[-500:]})
        self.stats["ok"][host] += 1
        return self.emit("runner_on_ok", host=host, task="reply", res={"stdout": done.stdout})

    def lost(self, host: str) -> None:
        self.stats["dark"][host] = 1
        self.emit("runner_on_unreachable", host=host, task="Hand the job to the probe", res={"msg": "Connection reset by peer"})

    @staticmethod
    def halve(path: Path) -> None:
        """Leave of a file what was transferred when the connection was lost."""
        if path.exists():
            os.truncate(path, path.stat().st_size // 2)

    def _cut(self, root: Path, attempt: str) -> str:
        flag = root / f"cut-{self.playbook}"
        try:
            how = flag.read_text()
            flag.unlink()
        except FileNotFoundError:
            return ""
        with (root / f"cuts-{attempt}").open("a") as file:
            file.write(f"{self.playbook} {how}\n")
        return how


def run(*, playbook: str, inventory: str, event_handler: Callable[[dict[str, Any]], bool], cmdline: str = "", **_: Any) -> types.SimpleNamespace:
    """Play one playbook and return status and exit code as ansible-runner does."""
    known = json.loads(Path(cmdline.removeprefix("-e @")).read_text()) if cmdline else {}  # of a round it stands at each host
    code = Play(Path(inventory), known, Path(playbook), event_handler).run()
    return types.SimpleNamespace(status="successful" if code == 0 else "failed", rc=code)


def install() -> None:
    """Let `import ansible_runner` find this."""
    sys.modules["ansible_runner"] = sys.modules[__name__]
