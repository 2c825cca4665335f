"""One machine, whoever names it and how: its lock is for all engagements, and its fence only grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.engine import locks
from app.kit.db import write_session
from app.settings import settings
from app.targets.inventory import build
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step, steps_of

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


def hosts(name: str, root: Path) -> dict[str, Any]:
    return {name: {"groups": ["engine", "loadgen"], "connection": "local", "root": str(root)}}


def test_two_engagements_on_one_root_change_it_one_after_the_other(tmp_path: Path) -> None:
    first = make_attempt(
        playbook_step(playbook="slow.yml", params={"seconds": 1}, changes_target=True), hosts=hosts("gpu01", tmp_path / "r"), code="A"
    )
    second = make_attempt(playbook_step(changes_target=True), hosts=hosts("node-7", tmp_path / "r"), code="B")
    drive(first, until=lambda a: steps_of(a.id)[0].status == "starting")
    waiting = drive(second, until=lambda a: a.generation >= 2)
    assert (waiting.status, steps_of(second)[0].status) == ("running", "pending")
    assert drive(first, until=ended).status == "finished"
    after = drive(second, until=ended)
    assert (after.status, after.fence) == ("finished", attempt_of(first).fence + 1)


def test_two_engagements_on_two_machines_wait_for_nobody_and_no_fence_is_given_twice(tmp_path: Path) -> None:
    first, second = (make_attempt(playbook_step(), code=code) for code in ("A", "B"))
    assert locks.take(first, ["10.0.0.1:22"]) == 1
    assert locks.take(second, ["10.0.0.2:22"]) == 2
    assert locks.take(second, ["10.0.0.1:22"]) == first
    with write_session() as s:
        locks.release(s, first)
    assert locks.take(second, ["10.0.0.1:22", "10.0.0.2:22"]) == 3


def test_a_machine_is_named_by_address_and_port_and_by_its_key_and_on_this_one_by_its_root() -> None:
    described = {
        "a": {"groups": ["engine"], "address": "GPU.example", "port": 22, "host_key": KEY},
        "b": {"groups": ["loadgen"], "address": "gpu.example", "host_key": KEY},
        "c": {"groups": ["storage"], "connection": "local"},
    }
    found = build(code="E", targets={"hosts": described}, state_dir=Path("/s")).machines
    assert found[:2] == ["gpu.example:22", "/s/lab/E/c"]
    assert len(found) == 3  # and the one key that both names have


def test_one_machine_entered_by_name_and_by_ip_address_has_one_lock() -> None:
    def machines(address: str, key: str) -> list[str]:
        return build(code=address, targets={"hosts": {"gpu01": {"address": address, "host_key": key}}}, state_dir=Path("/s")).machines

    first, second = (make_attempt(playbook_step(), code=code) for code in ("A", "B"))
    assert locks.take(first, machines("gpu.example", f"{KEY} root@gpu")) == 1
    assert locks.take(second, machines("10.0.0.11", KEY)) == first
    assert locks.take(second, machines("10.0.0.12", KEY.replace("OMqq", "OMqr"))) == 2


@pytest.mark.parametrize(
    ("how", "holder", "status"), [("marked", "elsewhere", "finished"), ("held", "ended", "finished"), ("held", "elsewhere", "error")]
)
def test_a_higher_fence_on_a_target_is_outgrown_when_its_holder_has_ended_and_only_then(how: str, holder: str, status: str) -> None:
    before = make_attempt(playbook_step())
    drive(before, until=ended)
    told = {"seen": 41, "how": how, "holder": before if holder == "ended" else holder}
    attempt = drive(make_attempt(playbook_step(playbook="fenced.yml", params=told, changes_target=True)), until=ended)
    assert (attempt.status, attempt.fence) == (status, 42 if status == "finished" else 1)
    if status == "error":
        assert "fencing number 41" in attempt.problem["en"]
