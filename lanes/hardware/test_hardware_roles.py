"""Fabric, array and volume over real SSH: deployed twice, removed twice. The rack's tools keep their state; XFS on a loop device is real."""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.playbook_lab import PlaybookLab, playbook_lab
from tests.integration.ssh_lab import ssh_lab
from tests.unit.hardware.kit import ARRAY, FABRIC

FSTAB = "# /etc/fstab: a line without an end"
SITE: dict[str, Any] = {
    "rack": "roce",
    "fabric": FABRIC,
    "array": {**ARRAY, "io_queues": 16},
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


def outside(folder: Path) -> dict[str, list[str]]:
    """Return what this machine itself has of ours: mounts, loop devices, processes, units, lines of fstab. Others may work here too."""
    ours = (str(folder), "quadgate", "Quadgate")

    def of_us(texts: Iterable[str]) -> list[str]:
        return sorted(text for text in texts if any(word in text for word in ours))

    return {
        "mounts": of_us(Path("/proc/self/mounts").read_text().splitlines()),
        "loops": of_us(path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")),
        "processes": [text for text in of_us(commands()) if str(folder) in text],
        "units": sorted(path.name for path in Path("/etc/systemd/system").glob("quadgate*")),
        "fstab": of_us(Path("/etc/fstab").read_text().splitlines() if Path("/etc/fstab").exists() else []),
    }


def commands() -> Iterator[str]:
    """Give the command line of every process but the servers of this test."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def play(lab: PlaybookLab, playbook: str, site: dict[str, Any], *arguments: str) -> Any:
    variables = lab.variables({"key": "deploy"}, site=site)
    etc = {"qg_etc": "{{ qg_root }}.etc"}
    done = lab.play(playbook, {**variables, **etc}, *arguments)
    assert done.rc == 0, done.output
    return done


def etc_of(lab: PlaybookLab, name: str) -> Path:
    return Path(f"{lab.hosts[name]['qg_root']}.etc")


@pytest.fixture
def lab() -> Iterator[PlaybookLab]:
    """Two hosts behind SSH, each with a folder that plays its /etc."""
    with ssh_lab() as made:
        for name in made.hosts:
            etc_of(made, name).mkdir()
            (etc_of(made, name) / "fstab").write_text(FSTAB)
        yield made


@pytest.mark.sshd
def test_over_ssh_what_is_deployed_stays_as_it_is_and_removing_it_leaves_nothing_twice_over(lab: PlaybookLab) -> None:
    machine = outside(lab.folder)
    before = {name: files(etc_of(lab, name)) for name in lab.hosts}
    for round_no in range(2):
        play(lab, "deploy.yml", SITE)
        for name in lab.hosts:
            now = tables(lab, name)
            assert [len(entry["paths"]) for entry in now["subsystems"].values()] == [2]
            assert [mount["fstype"] for mount in now["mounts"]] == ["xfs", "nfs4"]
            assert now["nics"]["ens8f0np0"] == {"mtu": 9000, "qos": {"trust": "dscp", "pfc": [3]}}
            etc = etc_of(lab, name)
            assert "--traddr=192.0.2.31" in (etc / "nvme/discovery.conf").read_text()
            assert "ARRAY /dev/md/qg-array metadata=1.2 UUID=" in (etc / "mdadm/mdadm.conf").read_text()
            assert "LABEL=qg-array" in (etc / "fstab").read_text()
        if round_no == 0:
            again = play(lab, "deploy.yml", SITE)
            assert again.changed == dict.fromkeys(lab.hosts, 0), again.output
        play(lab, "remove.yml", SITE)
        for name in lab.hosts:
            assert not Path(lab.hosts[name]["qg_root"]).exists()
            assert files(etc_of(lab, name)) == before[name]
            assert [path.name for path in etc_of(lab, name).iterdir()] == ["fstab"]
    assert outside(lab.folder) == machine


LOOP = {"volume": {"loop": {"kind": "loop_xfs", "mount": "{root}/mnt/loop", "image": "{root}/media/loop.img", "size_mib": 640, "chunk_kib": 64}}}


@pytest.mark.loop_xfs
def test_xfs_on_a_loop_device_is_made_with_its_stripes_takes_o_direct_and_goes_without_a_trace() -> None:
    with playbook_lab() as lab:
        root, machine = lab.add("gpu01"), outside(lab.folder)
        site = {**LOOP, "rack": "", "engine": engine_of_the_site(lab, root), "offload": {"kind": "native", "l1": {"keep": True}}}
        site["arms"] = {"recompute": {}, "baseline": {"mount_path": "loop"}, "candidate": {"mount_path": "loop"}}
        first = lab.play("deploy.yml", lab.variables({"key": "deploy"}, site=site, plan={"g4": {"fatal_counters": []}}))
        assert first.rc == 0, first.output
        mounted = next(line.split() for line in outside(lab.folder)["mounts"] if str(root / "mnt/loop") in line)
        assert mounted[2] == "xfs"
        assert {"noatime", "sunit=128", "swidth=512"} <= set(mounted[3].split(","))
        assert (root / "mnt/loop/kv").is_dir()
        again = lab.play("deploy.yml", lab.variables({"key": "deploy"}, site=site, plan={"g4": {"fatal_counters": []}}))
        assert (again.rc, again.changed) == (0, {"gpu01": 0}), again.output
        removed = lab.play("remove.yml", lab.variables({"key": "remove"}, site=site))
        assert removed.rc == 0, removed.output
        assert not root.exists()
        assert outside(lab.folder) == machine
        assert (lab.folder / "venv/bin/python").exists()


def engine_of_the_site(lab: PlaybookLab, root: Path) -> dict[str, Any]:
    """Return an engine whose environment and model the site has brought itself: the role uses them and never takes them away."""
    (lab.folder / "venv/bin").mkdir(parents=True)
    (lab.folder / "venv/bin/python").symlink_to(sys.executable)
    (lab.folder / "model").mkdir()
    (lab.folder / "model/config.json").write_text("{}")
    return {
        "kind": "vllm",
        "accelerator": "cpu",
        "model": "m",
        "model_dir": str(lab.folder / "model"),
        "venv": str(lab.folder / "venv"),
        "port": lab.port,
    }


WIPE = {"method": "sanitize", "action": "block", "approvals": {"vendor": "a-1", "customer": "a-2"}}
PACKED = [{"kind": "drive", "model": "QF-N7680", "serial": f"QF26K0A0010{n}", "host": "array01"} for n in (1, 2)]


def test_a_unit_on_loan_is_wiped_by_serial_number_and_its_record_and_return_slip_come_home() -> None:
    with playbook_lab() as lab:
        lab.groups = ("storage",)
        lab.add("array01")
        told = lab.variables({"key": "wipe"}, site={"rack": "roce", "packing_list": PACKED})
        for broken in ({**WIPE, "approvals": {"vendor": "a-1"}}, {**WIPE, "serials": ["QF26K0A00101", "QF26K0A00109"]}):
            refused = lab.play("wipe.yml", {**told, "wipe": broken})
            assert refused.rc != 0
            assert "Nothing was wiped" in refused.output
        done = lab.play("wipe.yml", {**told, "wipe": WIPE})
        assert done.rc == 0, done.output
        with tarfile.open(lab.staging / "array01" / "wipe.tar") as tar:
            record = json.load(tar.extractfile("wipe-record.json"))  # type: ignore[arg-type]
            slip = json.load(tar.extractfile("return-slip.json"))  # type: ignore[arg-type]
            journal = tar.extractfile("records.jsonl").read().decode().splitlines()  # type: ignore[union-attr]
        assert {row["serial"]: row["outcome"] for row in record["facts"]["records"]} == {piece["serial"]: "wiped" for piece in PACKED}
        assert [json.loads(line)["outcome"] for line in journal] == ["begun", "wiped"] * 2
        assert slip["drives_not_wiped"] == []
        assert [piece["wipe"] for piece in slip["pieces"]] == ["wiped", "wiped"]
