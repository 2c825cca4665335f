"""A step of the wall clock (a machine that was suspended, the first answer of NTP) ends no playbook that is well."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ansible_runner
import pytest

from app.engine import counting, drive, host, runs
from app.engine.steps import job
from app.kit.clock import machine_time, now

ORDER = drive.Order("poll", "job_poll.yml", "polling", 600, light=True)


def watched(monkeypatch: pytest.MonkeyPatch, memo: dict[str, Any]) -> bool:
    """Look at a living poll; tell whether it was ended."""
    ended: list[object] = []
    monkeypatch.setattr(runs, "clean", lambda *_: ended.append(1))
    monkeypatch.setattr(drive, "last_words", lambda *_: [])
    step = SimpleNamespace(id="s", key="soak", title={"en": "x", "zh-CN": "x"})
    ctx: Any = SimpleNamespace(now=now() + timedelta(seconds=700), attempt=SimpleNamespace(id="a"), current=step)
    drive._watch(ctx, ORDER, {"run": "poll-1", "since": now().isoformat(), **memo}, [])
    return bool(ended)


def test_a_poll_lives_by_the_clock_of_its_machine_and_not_by_the_calendar(monkeypatch: pytest.MonkeyPatch) -> None:
    boot, seconds = machine_time()
    assert not watched(monkeypatch, {"began": [boot, seconds]})
    assert watched(monkeypatch, {"began": [boot, seconds - 640]})


def test_of_a_run_of_another_boot_or_machine_only_the_databases_clock_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, {"began": ["another-boot", machine_time()[1]]})
    assert watched(monkeypatch, {})


def test_a_playbook_host_counts_its_time_out_by_the_same_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.monotonic

    def run(**told: Any) -> Any:
        assert "job_timeout" not in told["settings"]  # which goes by the wall clock
        monkeypatch.setattr(time, "time", lambda: 2e9)
        assert not told["cancel_callback"]()
        monkeypatch.setattr(time, "monotonic", lambda: real() + 61)
        assert told["cancel_callback"]()
        return SimpleNamespace(status="canceled", rc=254)

    monkeypatch.setattr(ansible_runner, "run", run)
    share: Any = SimpleNamespace(folder=tmp_path, job={"timeout_s": 60, "playbook": str(tmp_path / "x.yml")})
    assert host._play([share]) == ("timeout", 254)


@pytest.mark.parametrize(("kind", "most"), [("soak", 60.0), ("run", 200.0)])
def test_a_job_that_goes_on_behind_a_clock_set_forward_by_hours_is_asked_in_its_own_rhythm_after_a_persons_word(kind: str, most: float) -> None:
    at = now()
    spec = {"params": {"kind": kind, "seconds": 600}, "timeout_s": 3600}
    ctx: Any = SimpleNamespace(now=at, current=SimpleNamespace(spec=spec, title={"en": "x", "zh-CN": "x"}, expected_end_at=at - timedelta(hours=8)))
    began, asked = (at - timedelta(hours=8)).isoformat(), (at - timedelta(seconds=5)).isoformat()
    outcome = job._still_running(ctx, {"expected_s": 600, counting.SINCE: began, "asked_since": asked})
    assert outcome.event is None
    assert 0 < outcome.step["result"]["ask_s"] <= most
