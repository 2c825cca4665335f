"""The guide's list of what runs as root is complete and true: every task that becomes root and every tool of the kit is in it, in two languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import ROOT
from tests.unit.hardware.kit import ROLES

KIT = ROLES / "hardware/files/kit/hardware"
PARTS = ("packages", "fabric", "array", "volume", "wipe")
PAGES = {"en": ("Commands that need root", "What is installed where"), "zh-CN": ("需要 root 的命令", "安装位置")}
# The laboratory's own: they run on simulated hosts, where nothing becomes root.
SIMULATED = {"lab_engine", "lab_rack"}


def rows(language: str, section: int) -> dict[str, str]:
    """Return the rows of a table of the page by the names in their first two cells."""
    text = (ROOT / f"docs/guide/hardware.{language}.md").read_text(encoding="utf-8")
    part = text.split(f"## {PAGES[language][section]}\n")[1].split("\n## ")[0]
    found = {}
    for line in part.splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            names = line.split("|")[1 : 3 if section else 2]
            found.update({name: line for cell in names for name in re.findall(r"`([\w.]+)`", cell)})
    return found


def tasks_of(path: Path) -> Iterator[dict[str, Any]]:
    """Return every task of a file, those in blocks too, and in the plays of a playbook."""

    def walk(entries: Any) -> Iterator[dict[str, Any]]:
        for entry in entries or []:
            yield entry
            for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
                yield from walk(entry.get(key))

    yield from walk(yaml.safe_load(path.read_text(encoding="utf-8")))


def as_root() -> dict[str, list[dict[str, Any]]]:
    """Return the tasks that become root, by role or playbook."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in [*(ROOT / "playbooks").glob("*.yml"), *(ROOT / "playbooks/tasks").glob("*.yml"), *ROLES.glob("*/tasks/*.yml")]:
        role = path.relative_to(ROLES).parts[0] if path.is_relative_to(ROLES) else path.name
        found.setdefault(role, []).extend(task for task in tasks_of(path) if task.get("become", False) is not False)
    return {role: tasks for role, tasks in found.items() if tasks}


def tools_of(part: str) -> set[str]:
    """Return the programs that a part of the kit runs, with the modules of the kit that it uses."""
    seen: set[str] = set()
    waiting, found = [part], set()
    while waiting:
        module = waiting.pop()
        if module in seen or not (KIT / f"{module}.py").exists():
            continue
        seen.add(module)
        tree = ast.parse((KIT / f"{module}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hardware"):
                waiting += [node.module.partition(".")[2], *(name.name for name in node.names)]  # type: ignore[union-attr]
            if isinstance(node, ast.List) and node.elts and isinstance(first := node.elts[0], ast.Constant) and isinstance(first.value, str):
                words = [str(one.value) for one in node.elts if isinstance(one, ast.Constant)]
                name = words[0] if words[0] != "env" else words[2]
                if name in PROGRAMS:
                    found.add(name)
    return found


# What the kit runs. A word that begins a command and is missing here fails the first test, so that a new program cannot be overlooked.
PROGRAMS = {
    *(
        "dpkg",
        "dpkg-query",
        "apt-get",
        "rpm",
        "ip",
        "mlnx_qos",
        "ethtool",
        "rdma",
        "ibv_devinfo",
        "lsmod",
        "modprobe",
        "nvme",
        "systemctl",
        "mdadm",
        "blkid",
    ),
    *("wipefs", "mkfs.xfs", "xfs_info", "mount", "umount", "findmnt", "losetup"),
}


def test_every_word_that_begins_a_command_of_the_kit_is_known() -> None:
    for path in KIT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("ask", "need", "do", "json") and node.args
            ):
                continue
            argv = node.args[0]
            if isinstance(argv, ast.List) and isinstance(argv.elts[0], ast.Constant):
                assert argv.elts[0].value in PROGRAMS, f"{path.name}: {argv.elts[0].value} is in no list"


@pytest.mark.parametrize("language", PAGES)
def test_every_task_that_becomes_root_stands_in_the_list_with_what_it_runs(language: str) -> None:
    listed, found = rows(language, 0), as_root()
    assert set(found) == set(listed)
    for role, tasks in found.items():
        for task in tasks:
            argv = next((task[key].get("argv", []) for key in task if key.endswith(".command")), [])
            place = next((str(task[key].get("dest") or task[key].get("path")) for key in task if key.endswith((".file", ".template", ".copy"))), "")
            words = [str(word) for word in argv]
            if any(word.endswith("hardware.pyz") for word in words):
                part = words[next(i for i, word in enumerate(words) if word.endswith("hardware.pyz")) + 1]
                missing = {tool for tool in tools_of(part) if f"`{tool}`" not in listed[role]}
                assert missing == set(), f"{role}: {task['name']}"
            elif words:
                assert f"`{words[0]}`" in listed[role], task["name"]
                assert words[1] in listed[role], task["name"]
            elif "etc" in place:
                assert "/etc" + place.split("}}")[-1].rpartition("/")[0] in listed[role], task["name"]
            else:
                assert "qg_root" in place, f"{role}: what {task['name']} does as root is not told apart here"


@pytest.mark.parametrize("language", PAGES)
def test_nothing_stands_in_the_list_that_no_task_does(language: str) -> None:
    for role, line in rows(language, 0).items():
        part = "wipe" if role == "wipe.yml" else role
        told = {word for word in re.findall(r"`([^`]+)`", line.split("|", 2)[2]) if not word.startswith("/")}
        of_tasks = {str(argv[0]) for task in as_root()[role] for key in task if key.endswith(".command") for argv in [task[key]["argv"]]}
        runs = (tools_of(part) if part in PARTS else set()) | of_tasks
        assert told <= runs, role


@pytest.mark.parametrize("language", PAGES)
def test_every_role_says_what_it_puts_where(language: str) -> None:
    roles = {path.name for path in ROLES.iterdir() if (path / "tasks").is_dir()} - SIMULATED
    assert roles <= set(rows(language, 1))
