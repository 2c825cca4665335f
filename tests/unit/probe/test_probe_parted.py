"""Which job of a soak of two hosts goes on, and beside whom: told by its own end, by the boot in its mark, and by what is on record."""

import json

import pytest
from probe import clock, reboot
from probe.errors import ProbeError
from probe.job_main import Job

from tests.unit.probe.kit import job_spec, write

AWAY = [{"host": "gpu02", "address": "127.0.0.2", "port": 1}]
DRIVER = job_spec("a-soak", 1, kind="soak", attendants=AWAY)
ATTENDANT = {"job": "a-soak", "kind": "attend", "soak": {}}
LOST = {"outcome": "error", "error": {"kind": "attendant", "message": "no answer"}}
SILENT = {"outcome": "error", "error": {"kind": "silence", "message": "nothing heard"}}
SERVED = {"outcome": "error", "error": {"kind": "served", "message": "x"}}


def job_in(folder, end=None, boot=None):
    write(folder / "started", {"boot_id": boot or clock.boot_id()})
    if end:
        write(folder / "exit.json", end)
    return str(folder)


@pytest.mark.parametrize(
    ("spec", "end", "goes_on"),
    [
        (DRIVER, LOST, True),
        (DRIVER, {"outcome": "error", "error": {"kind": "engine", "message": "x"}}, False),
        (DRIVER, {"outcome": "done", "error": None}, False),
        (DRIVER, SILENT, False),
        (job_spec("a-soak", 1, kind="soak"), LOST, False),  # of one host
        (job_spec("a-run", 1, attendants=AWAY), LOST, False),
        (ATTENDANT, SILENT, True),
        (ATTENDANT, SERVED, False),
        ({**ATTENDANT, "soak": None}, SILENT, False),  # it served a run
    ],
)
def test_a_job_goes_on_beside_a_host_only_where_it_is_of_a_soak_and_lost_that_host(tmp_path, spec, end, goes_on):
    assert reboot.parted(job_in(tmp_path, end), spec) is goes_on


@pytest.mark.parametrize(("soak", "boot", "goes_on"), [({}, "another", True), ({}, None, False), (None, "another", False)])
def test_an_attendant_of_a_soak_goes_on_in_another_boot_of_its_host(tmp_path, soak, boot, goes_on):
    folder = job_in(tmp_path, boot=boot)
    assert reboot.rebooted(folder, {**ATTENDANT, "soak": soak}) is goes_on


def test_what_went_on_keeps_mark_and_end_of_the_life_before(tmp_path):
    folder = job_in(tmp_path, LOST)
    reboot.put_mark_aside(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exit.1", "started.1"]
    assert json.loads((tmp_path / "exit.1").read_text())["error"]["kind"] == "attendant"
    assert reboot.boots_before(folder) == 1


@pytest.mark.parametrize(("there", "refused"), [("e1", True), ("e2", False)])
def test_a_driver_never_goes_on_in_a_pair_of_boots_that_is_on_record(tmp_path, there, refused):
    folder = job_in(tmp_path)
    reboot.put_mark_aside(folder)
    write(tmp_path / "job.json", DRIVER)
    row = {"seq": 0, "phase": "store", "ok": True, "boot_id": f"{clock.boot_id()}+e1"}
    (tmp_path / "phases.jsonl").write_text(json.dumps(row) + "\n")
    job = Job(folder)
    try:
        if refused:
            with pytest.raises(ProbeError, match="no host has rebooted"):
                job.beside(there)
        else:
            job.beside(there)
            job.journals.put("events.jsonl", {"kind": "x"})
            job.journals.flush()
            assert json.loads((tmp_path / "events.jsonl").read_text())["boot_id"] == job.boot_id == f"{clock.boot_id()}+e2"
    finally:
        job.journals.close()


def test_the_driver_asks_for_no_kv_here_and_the_attendant_for_what_it_put_on_the_medium(tmp_path):
    gone = {"engine": {"kv_dirs": [str(tmp_path / "kv")]}}
    write(tmp_path / "job.json", {**gone, "attendants": AWAY})
    reboot.require_medium(str(tmp_path))
    write(tmp_path / "job.json", gone)
    with pytest.raises(ProbeError, match="not there or empty"):
        reboot.require_medium(str(tmp_path))
    (tmp_path / "kv").mkdir()
    reboot.require_medium(str(tmp_path))  # nothing was stored yet
    (tmp_path / "asked.jsonl").write_text(json.dumps({"seq": 0, "verb": "sync", "error": None}) + "\n")
    with pytest.raises(ProbeError, match="not there or empty"):
        reboot.require_medium(str(tmp_path))
