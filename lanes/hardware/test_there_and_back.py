"""Over real SSH: deploy, measure through what was deployed, remove, twice. A second time changes nothing, and what is removed leaves nothing.

Two OpenSSH servers are two hosts. Engine, probe and driver are shipped; fabric, array, RAID and mounts are the rack's, which keeps their state.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gates.steps import RUN_PACK
from lanes.hardware.leftovers import etc_of, of_hosts, outside, tables
from tests.integration.playbook_lab import ATTEMPT, PlaybookLab, Played
from tests.integration.ssh_lab import ssh_lab
from tests.unit.hardware.kit import ARRAY, FABRIC

pytestmark = pytest.mark.sshd

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
JOB = f"{ATTEMPT}-run-1"


@pytest.fixture
def lab() -> Iterator[PlaybookLab]:
    """Two hosts behind SSH, each with a folder that plays its /etc."""
    with ssh_lab() as made:
        for name in made.hosts:
            etc_of(made, name).mkdir()
            (etc_of(made, name) / "fstab").write_text(FSTAB)
        yield made


def play(lab: PlaybookLab, playbook: str, key: str) -> Played:
    """Play one of the shipped playbooks for a step; it must end well on both hosts."""
    done = lab.play(playbook, {**lab.variables({"key": key, "arm": "candidate"}, site=SITE), "qg_etc": "{{ qg_root }}.etc"})
    assert done.rc == 0, done.output
    return done


def deploy(lab: PlaybookLab) -> Played:
    """Deploy, and see that fabric, array, RAID, mounts and what a boot needs are there."""
    done = play(lab, "deploy.yml", "deploy")
    for name in lab.hosts:
        now, etc = tables(lab, name), etc_of(lab, name)
        assert [len(entry["paths"]) for entry in now["subsystems"].values()] == [2]
        assert [mount["fstype"] for mount in now["mounts"]] == ["xfs", "nfs4"]
        assert now["nics"]["ens8f0np0"] == {"mtu": 9000, "qos": {"trust": "dscp", "pfc": [3]}}
        assert "--traddr=192.0.2.31" in (etc / "nvme/discovery.conf").read_text()
        assert "ARRAY /dev/md/qg-array metadata=1.2 UUID=" in (etc / "mdadm/mdadm.conf").read_text()
        assert "LABEL=qg-array" in (etc / "fstab").read_text()
    return done


def rows_of(tar: tarfile.TarFile, name: str) -> list[dict[str, Any]]:
    """Return the lines of a journal in a pack."""
    stream = tar.extractfile(name)
    assert stream is not None
    return [json.loads(line) for line in stream]


def measure(lab: PlaybookLab) -> None:
    """Run the candidate on both hosts at once, and see in the packs that its KV went through the volume, cold, and every answer hit."""
    started = play(lab, "job_start.yml", "run-1")
    assert {host: reply["state"] for host, reply in started.replies.items()} == dict.fromkeys(lab.hosts, "started")
    for name in lab.hosts:
        assert lab.wait(Path(lab.hosts[name]["qg_root"]), JOB)["outcome"] == "done"
    play(lab, "job_collect.yml", "run-1")
    for host in lab.hosts:
        with tarfile.open(lab.staging / host / "pack.tar") as tar:
            assert set(RUN_PACK) <= set(tar.getnames())
            told = {name: rows_of(tar, f"{name}.jsonl") for name in ("phases", "records", "coldness")}
        volume = f"{lab.hosts[host]['qg_root']}/mnt/array/kv/"
        assert all(row["ok"] for row in told["phases"]), told["phases"]
        assert all(row["dir"].startswith(volume) and row["bytes"] > 0 for row in told["coldness"])
        assert {row["rack"]["source"] for row in told["coldness"]} == {"/dev/md/qg-array"}
        assert {row["resident_bytes"] for row in told["coldness"] if row["when"] != "after_tier"} == {0}
        measured = [row for row in told["records"] if row["phase"] == "measure"]
        assert [(row["error"], row["usage"]["cached_tokens"]) for row in measured] == [(None, 8192)] * 6


def test_deployed_measured_and_removed_twice_over_ssh_the_second_time_changes_nothing_and_nothing_is_left(lab: PlaybookLab) -> None:
    ports = (lab.port, lab.port + 1)
    machine, hosts = outside(lab.folder, ports), of_hosts(lab)
    for round_no in range(2):
        first = deploy(lab)
        assert all(first.changed.values())
        measure(lab)
        if round_no == 0:
            now = [tables(lab, name) for name in lab.hosts]
            again = deploy(lab)
            assert again.changed == dict.fromkeys(lab.hosts, 0), again.output
            assert [tables(lab, name) for name in lab.hosts] == now
        assert outside(lab.folder, ports)["ports"], "no engine listened, so that its end proves nothing"
        play(lab, "remove.yml", "remove")
        assert of_hosts(lab) == hosts
        assert outside(lab.folder, ports) == machine
