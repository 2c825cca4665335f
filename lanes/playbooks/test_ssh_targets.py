"""The same playbooks over real SSH: two OpenSSH servers on 127.0.1.1 and 127.0.1.2 are two hosts."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gates.steps import RUN_PACK
from tests.integration.playbook_lab import ATTEMPT, PlaybookLab
from tests.integration.ssh_lab import ADDRESSES, ssh_lab

pytestmark = pytest.mark.sshd


@pytest.fixture
def lab() -> Iterator[PlaybookLab]:
    """Two hosts behind SSH, with pinned host keys, as the service describes them to Ansible."""
    with ssh_lab() as made:
        yield made


def test_a_run_over_ssh_on_two_hosts_outlives_its_playbook_and_brings_two_packs(lab: PlaybookLab) -> None:
    deployed = lab.play("deploy.yml", lab.variables({"key": "deploy"}))
    assert deployed.rc == 0, deployed.output
    variables, job = lab.variables(), f"{ATTEMPT}-run-1"
    started = lab.play("job_start.yml", variables)
    assert started.rc == 0, started.output
    assert {host: reply["state"] for host, reply in started.replies.items()} == dict.fromkeys(ADDRESSES, "started")
    for name in ADDRESSES:
        assert lab.wait(Path(lab.hosts[name]["qg_root"]), job)["outcome"] == "done"
    collected = lab.play("job_collect.yml", variables)
    assert collected.rc == 0, collected.output
    engines = set()
    for name in ADDRESSES:
        with tarfile.open(lab.staging / name / "pack.tar") as tar:
            assert set(RUN_PACK) <= set(tar.getnames())
            told = json.load(tar.extractfile("job.json"))  # type: ignore[arg-type]
        assert told["host"] == name
        engines.add(told["engine"]["base_url"])
    assert len(engines) == 2
    stopped = lab.play("stop.yml", variables)
    assert stopped.rc == 0, stopped.output
    assert all(reply["state"] == "stopped" and reply["could_not_stop"] == [] for reply in stopped.replies.values())
    assert not any((Path(lab.hosts[name]["qg_root"]) / "engine" / "engine.pid").exists() for name in ADDRESSES)
