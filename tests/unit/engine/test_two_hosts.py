"""A job of two hosts, as the engine sees it: who measured, what a failed start proves, whose journals are whose, and the key of both ends."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.engine import drive, reconcile
from app.engine.attend_key import _secret, key_of
from app.engine.steps.job import may_have_it
from app.engine.steps.journal import chunks, never_began
from app.engine.steps.reboot import may_go_on
from app.targets.inventory import Inventory
from gates.model import ATTENDED

ENDED = {"state": "exited"}


def pack(folder: Path, host: str, job: dict[str, Any], exit_: dict[str, Any], phases: tuple[str, ...] = ()) -> None:
    """Unpack what a host brought."""
    there = folder / host / "pack.d"
    there.mkdir(parents=True)
    (there / "job.json").write_text(json.dumps(job))
    (there / "exit.json").write_text(json.dumps(exit_))
    (there / "phases.jsonl").write_text("".join(json.dumps({"phase": name}) + "\n" for name in phases))


@pytest.mark.parametrize(("kind", "phases", "proven"), [("engine", (), True), ("attendant", ("cool",), True), ("attendant", ("store",), False)])
def test_that_nothing_was_measured_is_told_by_the_job_and_not_by_its_attendant(
    tmp_path: Path, kind: str, phases: tuple[str, ...], proven: bool
) -> None:
    pack(tmp_path, "load01", {"kind": "run"}, {"outcome": "error", "error": {"kind": kind, "message": "no answer"}}, phases)
    pack(tmp_path, "gpu01", {"kind": "attend"}, {"outcome": "error", "error": {"kind": "served", "message": "x"}})
    assert never_began({"load01": ENDED, "gpu01": ENDED}, tmp_path) == ({"load01": (kind, "no answer")} if proven else None)
    assert never_began({"gpu01": ENDED}, tmp_path) is None  # an attendant alone proves nothing


def test_a_start_that_failed_on_the_engines_host_proves_that_the_load_generator_got_no_job() -> None:
    task = {"host": "gpu01", "task": "See that the attendant was started", "message": "x"}
    failed = {"status": "failed", "rc": 2, "stats": {"ok": {"gpu01": 4}, "failures": {"gpu01": 1}, "dark": {}}, "failures": [task]}
    site = Inventory({ATTENDED: ["gpu01"], "engine": ["gpu01"], "loadgen": ["load01"]}, {})
    both = ["load01", "gpu01"]
    assert may_have_it(site, both, failed) == ["gpu01"]
    assert reconcile.never_handed_over(failed, "gpu01")
    handed = {**failed, "stats": {"ok": {"gpu01": 5, "load01": 4}, "failures": {"load01": 1}}}
    handed["failures"] = [{"host": "load01", "task": "See that the job was started", "message": "x"}]
    assert may_have_it(site, both, handed) == both
    assert not reconcile.never_handed_over(handed, "load01")
    assert may_have_it(site, both, {**failed, "stats": {}}) == both
    assert may_have_it(Inventory({"loadgen": ["load01"]}, {}), ["load01"], failed) == ["load01"]


def test_each_host_goes_on_from_its_own_offsets(tmp_path: Path) -> None:
    line = '{"seq":0}\n'
    ctx: Any = SimpleNamespace(current=SimpleNamespace(offsets={}, spec={}, id="s"), attempt=SimpleNamespace(id="a"))
    one = {"from": 0, "to": len(line), "data": line}
    replies = {"load01": {"chunks": {"phases.jsonl": one}}, "gpu01": {"chunks": {"asked.jsonl": one}}}
    assert chunks(ctx, replies, tmp_path)[1] == {"phases.jsonl": len(line), "asked.jsonl": len(line)}


def test_a_journal_that_several_hosts_keep_is_not_sent_anew_by_each_at_every_poll(tmp_path: Path) -> None:
    ctx: Any = SimpleNamespace(current=SimpleNamespace(offsets={"asked.jsonl": 100}, spec={}, id="s"), attempt=SimpleNamespace(id="a"))
    brought = {host: {"chunks": {"asked.jsonl": {"from": 100, "to": to, "data": "x\n"}}} for host, to in (("gpu01", 300), ("gpu02", 200))}
    assert chunks(ctx, brought, tmp_path)[1] == {"asked.jsonl": 200}
    assert chunks(ctx, {**brought, "gpu02": {}}, tmp_path)[1] == {"asked.jsonl": 100}  # nobody knows how much that host has


def test_a_job_has_one_key_of_its_own_which_no_event_may_show(state: Path) -> None:
    key = key_of("a-run-1")
    assert (len(key), key_of("a-run-1"), key_of("a-run-2") == key) == (64, key, False)
    assert stat.S_IMODE((state / "attend.secret").stat().st_mode) == 0o600
    assert key not in (state / "attend.secret").read_bytes().hex()
    assert drive.Order("start", "x.yml", "starting", 1, {"id": "a-run-1", "attend_key": key}).secrets == (key,)
    assert drive.Order("poll", "x.yml", "polling", 1, {"id": "a-run-1"}).secrets == ()
    (state / "attend.secret").write_bytes(b"half")
    with pytest.raises(ValueError, match="holds 4 bytes"):
        _secret(state / "attend.secret")


CUT, APART, ON, OVER = {"state": "dead", "rebooted": True}, {"state": "exited", "parted": True}, {"state": "running"}, {"state": "exited"}


@pytest.mark.parametrize(
    ("driver", "attendant", "goes_on"),
    [
        (APART, CUT, True),  # the engine's host rebooted
        (CUT, APART, True),  # the load generator did
        (CUT, ON, False),  # and its attendant still waits for it
        (CUT, CUT, True),
        (ON, CUT, False),  # the driver has yet to notice
        (APART, APART, False),  # the network between was cut: nobody rebooted
        (APART, {"state": "dead"}, False),  # the attendant died within one boot
        (CUT, OVER, False),
        (OVER, CUT, False),
    ],
)
def test_a_soak_of_two_hosts_is_ordered_again_when_one_rebooted_and_the_other_lost_it(
    driver: dict[str, Any], attendant: dict[str, Any], goes_on: bool
) -> None:
    site = Inventory({ATTENDED: ["gpu01"], "engine": ["gpu01"], "loadgen": ["load01"]}, {})
    ctx: Any = SimpleNamespace(
        current=SimpleNamespace(spec={"params": {"kind": "soak"}}), plan={"g4": {"clock": {"restarts_max": 2}}}, inventory=site
    )
    replies = {"load01": driver, "gpu01": attendant}
    assert may_go_on(ctx, replies, {}) is goes_on
    assert may_go_on(ctx, replies, {"boots_before": 2}) is False
