"""The hardware kit on a simulated host: its tools keep their state in a folder, and nothing of this machine is touched."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from app.settings import ROOT

ROLES = ROOT / "playbooks" / "roles"
NQN = "nqn.2026-11.example:fx100-26110017"
FABRIC: dict[str, Any] = {
    "configure": True,
    "mtu": 9000,
    "priority": 3,
    "trust": "dscp",
    "dscp": 26,
    "gid_index": 3,
    "speed_gbit": 200,
    "interfaces": [{"netdev": "ens8f0np0", "device": "mlx5_0"}],
}
ARRAY: dict[str, Any] = {"subsystem": NQN, "transport": "rdma", "portals": [{"address": "192.0.2.31"}, {"address": "192.0.2.32"}], "namespaces": 4}


def load(path: Path) -> Any:
    """Import a plug-in file by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rack_for = load(ROLES / "lab_rack/filter_plugins/lab_rack.py").rack_for
filters = load(ROOT / "playbooks/filter_plugins/hardware.py")


sys.path.insert(0, str(ROLES / "hardware/files/kit"))
from hardware import wipe  # noqa: E402 - the kit's own package, from where it lies

__all__ = ["ARRAY", "FABRIC", "NQN", "ROLES", "STEPS", "Kit", "filters", "load", "rack_for", "wipe"]


class Kit:
    """One host with the rack's tools, and the kit's answers."""

    @classmethod
    def after(cls, place: Path, *steps: str) -> Kit:
        """Return a host in a folder, as it came or after these steps (of STEPS), which were gone once: what a host is like then is copied back.

        Its root is the same each time, since records, mounts and units hold it. One host of a folder lives at a time.
        """
        root, kept = place / "host", place / "-".join(("kept", *steps))
        shutil.rmtree(root, ignore_errors=True)
        if kept.exists():
            subprocess.run(["cp", "-a", str(kept), str(root)], check=True)
            return cls(root, fresh=False)
        found = cls(root)
        for step in steps:
            assert STEPS[step](found)["wrong"] == []
        subprocess.run(["cp", "-a", str(root), str(kept)], check=True)
        return found

    def __init__(self, root: Path, group: str = "engine", *, fresh: bool = True, python: str = sys.executable) -> None:
        self.root, self.rack, self.python = root, root / "rack", python
        self.etc = self.rack / "etc"
        if not fresh:
            return
        self.rack.mkdir(parents=True)
        description = rack_for(yaml.safe_load((ROLES / "lab_rack/files/racks/roce.yaml").read_text()), "any", [group], {})
        program = self.rack / "rack.pyz"
        program.symlink_to(
            ROLES / "lab_rack/files/rack"
        )  # the sources as they lie there: Python keeps them compiled, which it does not for an archive
        self.install(description)
        self.etc.mkdir()

    def run(self, part: str, verb: str, order: dict[str, Any]) -> dict[str, Any]:
        """Return the kit's answer; a refusal comes as {refused, refused_zh}."""
        told = filters.hardware_order({"engagement": "DEMO", **order}, str(self.root), {"rack": "roce"})
        argv = [self.python, str(ROLES / "hardware/files/kit"), part, verb]
        done = subprocess.run(argv, input=json.dumps(told), capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode:
            told = json.loads(done.stderr)
            return {"refused": told["en"], "refused_zh": told["zh-CN"]}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def traces(self) -> list[str]:
        """Return what a removal finds of ours without a record."""
        told = json.dumps(filters.hardware_order({}, str(self.root), {"rack": "roce"}))
        done = subprocess.run([sys.executable, "-I", str(ROLES / "hardware/files/traces.py"), told], capture_output=True, text=True, check=True)
        found: list[str] = json.loads(done.stdout)["found"]
        return found

    def tool(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run one of the rack's tools by hand, as somebody at the site would."""
        return subprocess.run([str(self.rack / "bin" / argv[0]), *argv[1:]], capture_output=True, text=True, check=False)

    def describe(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the description of the host: other tools, other drives."""
        rack = json.loads((self.rack / "rack.json").read_text())
        change(rack)
        self.install(rack)

    def install(self, description: dict[str, Any]) -> None:
        """Let the rack's tools and files be those of a description."""
        argv = [sys.executable, "-I", str(self.rack / "rack.pyz"), "install", str(self.rack)]
        subprocess.run(argv, input=json.dumps(description).encode(), check=True, capture_output=True)

    def changes(self) -> dict[str, Any]:
        """Return what the rack's tools hold, without what is empty."""
        path = self.rack / "changes.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        return {key: value for key, value in found.items() if value}

    def reboot(self) -> None:
        """Lose what a boot loses: mounts, and RAIDs that nothing assembles; what lies on the drives stays."""
        for mount in self.changes().get("mounts", []):
            self.tool("umount", mount["target"])
        for device in self.changes().get("md", {}):
            self.tool("mdadm", "--stop", device)

    def media(self, **more: Any) -> dict[str, Any]:
        """Return an order with one RAID over the array's namespaces."""
        devices = self.run("array", "show", ARRAY)["facts"]["devices"]
        volume = {"kind": "md_xfs", "mount": str(self.root / "mnt" / "array"), "devices": devices, **more}
        return {"media": {"array": volume}}

    def drive(self, place: int, **more: Any) -> dict[str, Any]:
        """Return an order with XFS on one of the array's namespaces, by the name that lasts."""
        device = f"/dev/disk/by-id/{sorted(os.listdir(self.rack / 'dev/disk/by-id'))[place]}"
        return {"media": {"disk": {"kind": "xfs", "mount": str(self.root / "mnt" / "disk"), "device": device, **more}}}

    def node(self, device: str) -> Path:
        """Return the file that stands for a device."""
        return self.rack / device.lstrip("/")

    def renumber(self, names: dict[str, str]) -> None:
        """Give devices other names, as a boot may: what they are and what lies on them goes along."""
        text = json.dumps(self.changes())
        for old in names:
            text = text.replace(f'/dev/{old}"', f'/dev/<{old}>"')
        for old, new in names.items():
            text = text.replace(f'/dev/<{old}>"', f'/dev/{new}"')
        (self.rack / "changes.json").write_text(text)
        block, dev = self.rack / "sys/class/block", self.rack / "dev"
        links = {link: link.readlink().name for link in (dev / "disk/by-id").iterdir()}
        for folder in (block, dev):
            for old in names:
                (folder / old).rename(folder / f"{old}.moving")
            for old, new in names.items():
                (folder / f"{old}.moving").rename(folder / new)
        for link, name in links.items():
            link.unlink()
            link.symlink_to(f"../../{names.get(name, name)}")


STEPS: dict[str, Callable[[Kit], dict[str, Any]]] = {
    "connected": lambda kit: kit.run("array", "apply", ARRAY),
    "mounted": lambda kit: kit.run("volume", "apply", kit.media()),
}
