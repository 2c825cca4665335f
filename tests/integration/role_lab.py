"""One role alone on this machine, in a root of its own: what it brings, what a second time changes, what a removal leaves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.settings import ROOT
from tests.unit.hardware.kit import Kit


@dataclass
class RolePlay:
    """What a run left: exit code, output, and how many tasks changed something."""

    rc: int
    output: str
    changed: int


class RoleLab:
    """A host with the simulated rack's tools first on the roles' PATH."""

    def __init__(self, folder: Path, before: tuple[str, ...] = ()) -> None:
        """`before`: words before ansible-playbook, such as those that give it a copy of this machine's system."""
        self.before = before
        self.folder, self.root = folder, folder / "host"
        self.kit = Kit(self.root)

    def play(self, role: str, *arguments: str, **variables: Any) -> RolePlay:
        """Run a role with these variables; `qg_root` and the site's rack are filled in."""
        site = {"rack": "roce", **variables.pop("site", {})}
        known = {"qg_root": str(self.root), "ansible_python_interpreter": sys.executable, "site": site, **variables}
        tasks = [{"name": "Role", "ansible.builtin.include_role": {"name": role}}]
        playbook = self.folder / f"{role}.yml"
        playbook.write_text(yaml.safe_dump([{"name": "Play", "hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]))
        (self.folder / "vars.json").write_text(json.dumps(known))
        environment = {
            **os.environ,
            "ANSIBLE_ROLES_PATH": str(ROOT / "playbooks" / "roles"),
            "ANSIBLE_FILTER_PLUGINS": str(ROOT / "playbooks" / "filter_plugins"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "local"),
            "ANSIBLE_PIPELINING": "true",
            "LC_ALL": "C.UTF-8",
        }
        program = Path(sys.executable).parent / "ansible-playbook"
        argv = [*self.before, str(program), str(playbook), "-i", "localhost,", "-e", f"@{self.folder / 'vars.json'}", *arguments]
        done = subprocess.run(argv, env=environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=240)
        output = done.stdout + done.stderr
        counted = re.search(r"ok=\d+\s+changed=(\d+)", output)
        return RolePlay(done.returncode, output, int(counted.group(1)) if counted else -1)
