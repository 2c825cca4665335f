"""Playbooks run for real, without the service: an inventory, variables as the engine gives them, and ansible-playbook."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from app.settings import ROOT
from app.targets.probe_archive import build_probe
from tests.bundles.evidence import SEED
from tests.ports import free_port

ATTEMPT = "01900000-0000-7000-8000-0000000000a1"
STEP = {
    "key": "run-1",
    "kind": "run",
    "arm": "baseline",
    "run_index": 1,
    "set": "g2",
    "store": True,
    "cool": True,
    "repeat": 0,
    "tiers": [{"tier": 2, "requests": 6}],
    "context_tokens": 8192,
    "suffix_tokens": 16,
    "output_tokens": 8,
    "warmup": 1,
    "canary": True,
}


@dataclass
class Played:
    """What a playbook run left: exit code, output, `changed` by host, and the reply by host."""

    rc: int
    output: str
    changed: dict[str, int]
    replies: dict[str, Any]


@dataclass
class PlaybookLab:
    """Hosts with roots of their own on a real disk, and the variables of one attempt."""

    folder: Path
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    groups: tuple[str, ...] = ("engine", "loadgen")
    before: tuple[str, ...] = ()  # words before ansible-playbook, such as those that give it a copy of this machine's system
    members: dict[str, list[str]] = field(default_factory=dict)  # of groups that do not hold every host

    def __post_init__(self) -> None:
        self.probe = self.folder / "probe.pyz"
        build_probe(self.probe)
        self.staging = self.folder / "staging"
        self.staging.mkdir()

    def add(self, name: str, **variables: Any) -> Path:
        """Add a host of the groups engine and loadgen; return its root."""
        root = self.folder / name
        self.hosts[name] = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "qg_root": str(root), **variables}
        return root

    def variables(self, step: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Return the variables of a playbook as docs/architecture.md lists them."""
        demo = yaml.safe_load((ROOT / "app" / "demo" / "engagement.yaml").read_text(encoding="utf-8"))
        site = {key: value for key, value in demo["targets"].items() if key != "hosts"}
        site["engine"] = {**site["engine"], "port": self.port}
        step = {**STEP, **(step or {})}
        known = {
            "attempt": {"id": ATTEMPT, "gate": "G2", "number": 1, "fence": 3, "seed": SEED, "engagement": "DEMO", "rehearsal": False},
            "plan": {"g4": {"fatal_counters": ["nvme_media_errors"]}},
            "site": {**site, "order": {}, "packing_list": [], **more.pop("site", {})},
            "step": step,
            "staging": str(self.staging),
            "probe": str(self.probe),
            "job": {"id": f"{ATTEMPT}-{step['key']}", "offsets": {}},
        }
        for key, value in more.items():
            known[key] = {**known[key], **value}
        return known

    def play(self, playbook: str, variables: dict[str, Any], *arguments: str) -> Played:
        """Run a playbook and read what it said."""
        groups = {**{group: list(self.hosts) for group in self.groups}, **self.members}
        children = {group: {"hosts": {name: {} for name in names}} for group, names in groups.items()}
        inventory = {"all": {"hosts": self.hosts, "children": children}}
        for name, document in (("inventory.json", inventory), ("vars.json", variables)):
            (self.folder / name).write_text(json.dumps(document))
        control = Path(tempfile.mkdtemp(prefix="qgc-"))  # a socket's path must stay below 108 bytes
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": os.environ.get("HOME", "/"),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "local"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(control),
            "ANSIBLE_PIPELINING": "true",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
        }
        argv = [
            *self.before,
            "ansible-playbook",
            str(ROOT / "playbooks" / playbook),
            *arguments,
            "-v",
            "-i",
            str(self.folder / "inventory.json"),
            "-e",
            f"@{self.folder / 'vars.json'}",
        ]
        try:
            done = subprocess.run(argv, env=environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=240)
        finally:
            for master in control.iterdir():
                subprocess.run(["ssh", "-o", f"ControlPath={master}", "-O", "exit", "-"], capture_output=True, check=False, timeout=10)
            shutil.rmtree(control, ignore_errors=True)
        output = done.stdout + done.stderr
        changed = {host: int(count) for host, count in re.findall(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", output, re.M)}
        return Played(done.returncode, output, changed, _replies(done.stdout))

    def wait(self, root: Path, job: str, seconds: float = 240) -> dict[str, Any]:
        """Wait until a job has ended and return its exit.json."""
        path, end = root / "jobs" / job / "exit.json", time.monotonic() + seconds
        while not path.exists():
            assert time.monotonic() < end, f"{job} did not end; {(path.parent / 'job.log').read_text()[-800:]}"
            time.sleep(0.1)
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def phases(self, root: Path, job: str) -> dict[str, Any]:
        """Return the phases of a job by name, the last of each."""
        rows = [json.loads(line) for line in (root / "jobs" / job / "phases.jsonl").read_text().splitlines()]
        return {row["phase"]: row for row in rows}


def _replies(output: str) -> dict[str, Any]:
    """Return the JSON of the tasks `reply` by host, from a command's stdout or a debug's msg; several plays may have one."""
    found = {}
    for block in output.split("TASK [reply]")[1:]:
        said = block.partition("\nTASK [")[0].partition("\nPLAY ")[0]
        for host, text in re.findall(r"^(?:ok|changed): \[([^\]]+)\] => (\{.*?\n?\})(?=\n(?:ok|changed|skipping|fatal)|\s*\Z)", said, re.M | re.S):
            data = json.loads(text)
            found[host] = json.loads(data["stdout"]) if "stdout" in data else data.get("msg")
    return found


@contextmanager
def playbook_lab() -> Iterator[PlaybookLab]:
    """Give a lab on a real disk; at the end everything that it started is ended by its own playbook."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="play-", dir=ROOT / "var"))
    lab = PlaybookLab(folder)
    try:
        yield lab
    finally:
        if any((folder / name / part).exists() for name in lab.hosts for part in ("engine", "state")):
            stopped = lab.play("remove.yml", lab.variables())
            assert stopped.rc == 0, stopped.output
        shutil.rmtree(folder, ignore_errors=True)
