"""What a target may have of ours, taken before and after a removal: files, mounts, loop devices, processes, ports, units."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.integration.playbook_lab import PlaybookLab


def outside(folder: Path, ports: Iterable[int] = ()) -> dict[str, list[str]]:
    """Return what this machine itself has of ours, and the files of its /etc. Others may work here too."""
    ours = (str(folder), "quadgate", "Quadgate")

    def of_us(texts: Iterable[str]) -> list[str]:
        return sorted(text for text in texts if any(word in text for word in ours))

    return {
        "mounts": of_us(Path("/proc/self/mounts").read_text().splitlines()),
        "loops": of_us(path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")),
        "processes": _processes(folder),
        "units": sorted(path.name for path in Path("/etc/systemd/system").glob("quadgate*")),
        "fstab": of_us(Path("/etc/fstab").read_text().splitlines() if Path("/etc/fstab").exists() else []),
        "ports": [str(port) for port in ports if _listens(port)],
        "etc": sorted(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in _files_of(Path("/etc"))),
    }


def of_hosts(lab: PlaybookLab) -> dict[str, bytes]:
    """Return every file and folder of the lab's hosts: root, the folder that plays /etc, Ansible's own. What is the controller's is not theirs."""
    tops = [top for name in lab.hosts for top in lab.folder.glob(f"*{name}*")]
    found = sorted({*tops, *(path for top in tops for path in top.rglob("*"))})
    return {str(path.relative_to(lab.folder)): path.read_bytes() if path.is_file() else b"" for path in found}


def tables(lab: PlaybookLab, name: str) -> dict[str, Any]:
    """Return what the rack's tools say of a host's connections, RAID, mounts and interface."""
    rack = Path(lab.hosts[name]["qg_root"]) / "rack"
    changes = json.loads((rack / "changes.json").read_text()) if (rack / "changes.json").exists() else {}
    return {key: changes.get(key) or None for key in ("subsystems", "md", "mounts", "signatures", "modules", "nics")}


def etc_of(lab: PlaybookLab, name: str) -> Path:
    """Return the folder that plays a host's /etc."""
    return Path(f"{lab.hosts[name]['qg_root']}.etc")


def _files_of(folder: Path) -> Iterable[tuple[Path, os.stat_result]]:
    for path in folder.rglob("*"):
        try:
            yield path, path.lstat()
        except OSError:
            continue


def _processes(folder: Path) -> list[str]:
    """Return the command line of every process whose words name our folder, or that works below it. What works in it itself is the controller's."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = str((path / "cwd").readlink())
        except OSError:
            continue
        if int(path.name) != os.getpid() and (str(folder) in words or where.startswith(f"{folder}/")):
            found.append(words)
    return sorted(found)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
