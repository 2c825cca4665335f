"""Everything of ours is taken away from the targets by a real playbook, and each host says what was removed and what was left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import select

from app.accounts.actor import command_line
from app.attempts.usecases import start_attempt
from app.audit.models import AuditRow
from app.engine import locks, removal, runs
from app.engine.models import HostLock, TargetRemoval
from app.kit.db import read_session, write_session
from app.kit.errors import Forbidden, Refused
from app.settings import settings
from tests.engine_kit import PATIENCE_S
from tests.people import Cast
from tests.ports import free_port
from tests.scenes import engage

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
LOCAL = {"groups": ["engine", "loadgen"], "connection": "local"}


def _carried_out(order_id: str) -> TargetRemoval:
    end = time.monotonic() + PATIENCE_S
    while (order := removal.go_on(order_id, command_line())).finished_at is None:
        assert time.monotonic() < end
        time.sleep(0.2)
    return order


def _ordered(cast: Cast, hosts: dict[str, object]) -> tuple[str, str, str]:
    """Return the engagement's id and code, and the id of the order."""
    with write_session() as s:
        engagement = engage(s, cast)
        engagement.targets = {**engagement.targets, "hosts": hosts}
        s.flush()
        return engagement.id, engagement.code, removal.begin(s, engagement_id=engagement.id, actor=command_line()).id


def test_a_reached_host_is_emptied_a_silent_one_is_called_not_known_and_the_locks_are_let_go(cast: Cast, state: Path) -> None:
    silent = {"groups": ["storage"], "connection": "ssh", "address": "127.0.0.1", "port": free_port(), "user": "quadgate", "host_key": KEY}
    engagement_id, code, order_id = _ordered(cast, {"gpu01": LOCAL, "array01": silent})
    root = state / "lab" / code / "gpu01"
    root.mkdir(parents=True)
    (root / "kv.bin").write_bytes(b"left over")
    order = _carried_out(order_id)
    told = order.report["hosts"]
    assert {host: t["state"] for host, t in told.items()} == {"gpu01": "removed", "array01": "unknown"}
    assert (root.exists(), told["gpu01"]["root"], bool(told["array01"]["why"])) == (False, str(root), True)
    assert not removal.clean(order.report)
    assert removal.go_on(order_id, command_line()).finished_at == order.finished_at  # over is over
    with read_session() as s:
        assert s.execute(select(HostLock.attempt_id)).scalars().all() == [None] * 3  # the silent one is locked by its address and by its key
        assert [a for a in s.execute(select(AuditRow.action)).scalars() if a.startswith("targets.")] == ["targets.remove", "targets.removed"]
        assert removal.latest(s, engagement_id)["hosts"] == told


def test_whoever_asks_again_adopts_the_order_that_is_going_on_and_no_attempt_takes_the_targets_meanwhile(cast: Cast) -> None:
    engagement_id, code, order_id = _ordered(cast, {"gpu01": LOCAL})
    machine = str(settings().state_dir / "lab" / code / "gpu01")
    with write_session() as s:
        assert removal.begin(s, engagement_id=engagement_id, actor=cast.li_wei).id == order_id
        attempt_id = start_attempt(s, engagement_id=engagement_id, gate="G1", actor=cast.li_wei).id
    assert locks.take(attempt_id, [machine]) == order_id
    assert _carried_out(order_id).report["hosts"]["gpu01"]["state"] == "removed"
    assert isinstance(locks.take(attempt_id, [machine]), int)


def test_a_lost_playbook_host_is_followed_by_another_and_not_for_ever(cast: Cast) -> None:
    _, _, order_id = _ordered(cast, {"gpu01": LOCAL})
    for number in (1, 2, 3):
        folder = runs.folder_of(order_id, "remove", f"run-{number}")
        folder.mkdir(parents=True)
        for name in ("lock", "started"):
            (folder / name).touch()
        order = removal.go_on(order_id, command_line())
    assert order.report["hosts"]["gpu01"]["state"] == "unknown"
    assert "lost 3 times" in order.report["problem"]["en"]


def test_nothing_is_removed_under_a_running_attempt_nor_by_who_only_reads(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        with pytest.raises(Refused, match="going on"):
            removal.begin(s, engagement_id=engagement.id, actor=command_line())
        with pytest.raises(Forbidden):
            removal.begin(s, engagement_id=engagement.id, actor=cast.viewer)
