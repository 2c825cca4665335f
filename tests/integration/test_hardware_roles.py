"""Fabric, array and volume over real SSH: deployed twice, removed twice. The rack's tools keep their state; XFS on a loop device is real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.playbook_lab import PlaybookLab
from tests.integration.ssh_lab import ADDRESSES, ssh_lab

NQN = "nqn.2026-11.example:fx100-26110017"
FSTAB = "# /etc/fstab: a line without an end"
SITE: dict[str, Any] = {
    "rack": "roce",
    "fabric": {
        "configure": True,
        "mtu": 9000,
        "priority": 3,
        "trust": "dscp",
        "dscp": 26,
        "gid_index": 3,
        "speed_gbit": 200,
        "interfaces": [{"netdev": "ens8f0np0", "device": "mlx5_0"}],
    },
    "array": {
        "subsystem": NQN,
        "transport": "rdma",
        "portals": [{"address": "192.0.2.31"}, {"address": "192.0.2.32"}],
        "namespaces": 4,
        "io_queues": 16,
    },
    "volume": {
        "array": {"kind": "md_xfs", "mount": "{root}/mnt/array", "members": 4, "chunk_kib": 512},
        "nfs": {"kind": "nfs", "mount": "{root}/mnt/nfs", "source": "192.0.2.40:/export/kv"},
        "local": {"kind": "directory", "mount": "{root}/mnt/local"},
    },
}


def tables(lab: PlaybookLab, name: str) -> dict[str, Any]:
    """Return what the rack's tools say of a host's connections, RAID, mounts and interface."""
    rack = Path(lab.hosts[name]["qg_root"]) / "rack"
    changes = json.loads((rack / "changes.json").read_text()) if (rack / "changes.json").exists() else {}
    return {key: changes.get(key) or None for key in ("subsystems", "md", "mounts", "signatures", "modules", "nics")}


def outside() -> dict[str, list[str]]:
    """Return what this machine itself has of mounts, loop devices and units."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    loops = sorted(str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file"))
    units = sorted(str(path) for path in Path("/etc/systemd/system").glob("quadgate*"))
    return {
        "mounts": mounts,
        "loops": loops,
        "units": units,
        "fstab": Path("/etc/fstab").read_text().splitlines() if Path("/etc/fstab").exists() else [],
    }


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def play(lab: PlaybookLab, playbook: str, site: dict[str, Any], *arguments: str) -> Any:
    variables = lab.variables({"key": "deploy"}, site=site)
    etc = {"qg_etc": "{{ qg_root }}.etc"}
    done = lab.play(playbook, {**variables, **etc}, *arguments)
    assert done.rc == 0, done.output
    return done


@pytest.fixture
def lab() -> Iterator[PlaybookLab]:
    with ssh_lab() as made:
        for name in made.hosts:
            etc = Path(f"{made.hosts[name]['qg_root']}.etc")
            etc.mkdir()
            (etc / "fstab").write_text(FSTAB)
        yield made


@pytest.mark.sshd
def test_over_ssh_what_is_deployed_stays_as_it_is_and_removing_it_leaves_nothing_twice_over(lab: PlaybookLab) -> None:
    machine = outside()
    before = {name: files(Path(f"{lab.hosts[name]['qg_root']}.etc")) for name in ADDRESSES}
    for _ in range(2):
        play(lab, "deploy.yml", SITE)
        for name in ADDRESSES:
            now = tables(lab, name)
            assert [len(entry["paths"]) for entry in now["subsystems"].values()] == [2]
            assert [mount["fstype"] for mount in now["mounts"]] == ["xfs", "nfs4"]
            assert now["nics"]["ens8f0np0"] == {"mtu": 9000, "qos": {"trust": "dscp", "pfc": [3]}}
            etc = Path(f"{lab.hosts[name]['qg_root']}.etc")
            assert "--traddr=192.0.2.31" in (etc / "nvme/discovery.conf").read_text()
            assert "ARRAY /dev/md/qg-array metadata=1.2 UUID=" in (etc / "mdadm/mdadm.conf").read_text()
            assert "LABEL=qg-array" in (etc / "fstab").read_text()
        again = play(lab, "deploy.yml", SITE)
        assert again.changed == dict.fromkeys(ADDRESSES, 0), again.output
        play(lab, "remove.yml", SITE)
        for name in ADDRESSES:
            root = Path(lab.hosts[name]["qg_root"])
            assert not root.exists()
            assert files(Path(f"{root}.etc")) == before[name]
            assert [path.name for path in Path(f"{root}.etc").iterdir()] == ["fstab"]
    assert outside() == machine
