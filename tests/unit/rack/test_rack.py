"""The simulated rack: knows nothing of limits, answers on the oldest Python that we serve, and each fault has a strength."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gates.readers.registry import read
from tests.needs import oldest_python
from tests.ports import free_port
from tests.unit.rack.simulate import RACK_FILES, ROLES, TOOLS, load, pack_files, part, rack, rack_for, run_tool, survey_spec

zipapp_bytes = load(ROLES.parent / "lookup_plugins/sources_zipapp.py").zipapp_bytes
FAULTS = load(ROLES / "lab_rack/filter_plugins/lab_rack.py").FAULTS
OLDEST = oldest_python()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install the rack's programs for array01, with the oldest Python that this machine has of those that we serve."""
    (tmp_path / "rack.pyz").write_bytes(zipapp_bytes(RACK_FILES))
    described = {**rack_for(rack(), "array01", ["storage"]), "time_scale": 10}
    command = [OLDEST or sys.executable, "-I", str(tmp_path / "rack.pyz"), "install", str(tmp_path)]
    done = subprocess.run(command, input=json.dumps(described), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["changed"] is True
    again = subprocess.run(command, input=json.dumps(described), capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["changed"] is False
    return tmp_path / "bin"


def test_every_program_answers_as_an_ordinary_command_and_is_read_without_a_problem(installed):
    asked = {
        "nvme-list": ["nvme", "list", "-o", "json"],
        "nvme-smart-log": ["nvme", "smart-log", "/dev/nvme1", "-o", "json"],
        "smartctl": ["smartctl", "-x", "--json", "/dev/nvme1"],
        "rdma-link": ["rdma", "-j", "link", "show"],
        "ibv-devinfo": ["ibv_devinfo", "-v"],
        "ethtool": ["ethtool", "ens8f0np0"],
        "dmidecode": ["dmidecode", "-t", "1,17,127"],
        "lspci": ["lspci", "-D", "-vvv"],
        "kernel-log": ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic", "-n", "100000"],
    }
    for reader, argv in asked.items():
        done = subprocess.run([str(installed / argv[0]), *argv[1:]], capture_output=True, timeout=60)
        assert (done.returncode, read(reader, done.stdout).problems) == (0, ()), reader


def test_one_end_of_the_rdma_test_waits_for_the_other_and_without_it_the_other_fails(installed):
    argv = [str(installed / "ib_write_bw"), "-d", "mlx5_0", "-p", str(free_port()), "-D", "1", "--report_gbits"]
    alone = subprocess.run([*argv, "127.0.0.1"], capture_output=True, timeout=60)
    assert (alone.returncode, b"Couldn't connect" in alone.stderr) == (1, True)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as far:
        try:
            while b"Waiting" not in far.stdout.readline():
                assert far.poll() is None
            near = subprocess.run([*argv, "127.0.0.1"], capture_output=True, timeout=60)
            assert (near.returncode, read("perftest", near.stdout).problems, far.wait(30)) == (0, (), 0)
        finally:
            far.kill()


def test_a_drives_link_is_fast_while_it_is_read_and_slow_when_idle(installed):
    def speed() -> str:
        text = subprocess.run([str(installed / "lspci"), "-D", "-vvv", "-s", "0000:41:00.0"], capture_output=True, text=True, timeout=60).stdout
        return next(line.strip() for line in text.splitlines() if "LnkSta" in line)

    assert "2.5GT/s (downgraded)" in speed()
    fio = subprocess.Popen(
        [str(installed / "fio"), "--name=load", "--filename=/dev/nvme0n1", "--rw=read", "--runtime=600"], stdout=subprocess.DEVNULL
    )
    try:
        limit = time.monotonic() + 30
        while "2.5GT/s" in speed():
            assert time.monotonic() < limit, "the link stayed slow under load"
        assert "Speed 16GT/s, Width x4" in speed()
    finally:
        fio.terminate()
        fio.wait()


def test_a_link_is_fast_at_the_very_moment_after_the_last_read_and_slow_once_it_rested(tmp_path, monkeypatch):
    seen = rack_for(rack(), "array01", ["storage"])
    state, now = part("state"), [0.0]
    monkeypatch.setattr(state, "root", lambda: str(tmp_path))
    monkeypatch.setattr(state, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def speeds(noted: float, read: float) -> set[str]:
        now[0] = noted
        run_tool(["fio", "--filename=" + ":".join(f"/dev/nvme{n}n1" for n in range(4)), "--runtime=1"], seen)
        now[0] = read
        text = run_tool(["lspci", "-D", "-vvv"], {**seen, "nics": []})[0]
        return {line.split("Speed ")[1].split(",")[0] for line in text.splitlines() if "LnkSta" in line}

    for noted in (12.3456, 12.9996, 86399.99951, 4000000.0006):  # each is less than its own three decimals
        assert speeds(noted, noted + 0.0001) == {"16GT/s"}, noted
    assert speeds(12.3456, 13.3456 + state.IDLE_AFTER_S) == {"2.5GT/s (downgraded)"}
    assert speeds(12.3456, 0.5) == {"2.5GT/s (downgraded)"}  # a note of before the last boot


def test_a_drive_that_is_not_there_is_an_error_as_in_the_real_tools():
    seen = rack_for(rack(), "array01", ["storage"], {"missing-drive": 4})
    assert run_tool(["nvme", "smart-log", "/dev/nvme0", "-o", "json"], seen)[2] != 0
    assert run_tool(["smartctl", "-x", "--json", "/dev/nvme0"], seen)[2] == 2
    assert run_tool(["fio", "--filename=/dev/nvme0n1", "--runtime=1"], seen)[2] != 0


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_of_strength_zero_is_no_fault_and_of_strength_one_is_one(name):
    for host, groups in (("array01", ["storage"]), ("gpu01", ["engine"])):
        assert rack_for(rack(), host, groups, {name: "0"}) == rack_for(rack(), host, groups)
    both = [
        rack_for(rack(), host, groups, {name: "1"}) != rack_for(rack(), host, groups)
        for host, groups in (("array01", ["storage"]), ("gpu01", ["engine"]))
    ]
    assert any(both)


def test_strengths_count_pieces():
    assert len(rack_for(rack(), "array01", ["storage"], {"missing-drive": 3})["drives"]) == 1
    swapped = rack_for(rack(), "array01", ["storage"], {"swapped-drive": 2})["drives"]
    assert [d["serial"].startswith("QF25M") for d in swapped] == [True, True, False, False]


def test_a_fault_of_another_simulator_is_left_to_it():
    assert rack_for(rack(), "array01", ["storage"], {"slow-tier": 1}) == rack_for(rack(), "array01", ["storage"])


def test_a_host_that_is_not_named_takes_its_groups_hardware_and_an_unknown_one_is_refused():
    assert len(rack_for(rack(), "storage-7", ["storage"])["drives"]) == 4
    assert len(rack_for(rack(), "node9", ["engine", "storage"])["gpus"]) == 8
    with pytest.raises(ValueError, match="describes neither the host x nor one of its groups"):
        rack_for(rack(), "x", ["bmc"])


def test_no_limit_gate_or_arm_stands_in_the_racks_sources():
    text = "".join(path.read_text() for path in [*RACK_FILES.glob("*.py"), *(ROLES / "lab_rack/files/racks").glob("*.yaml")]).lower()
    assert re.findall(r"\b(gates?|baseline|candidate|verdict|g[1-4]|acceptance|plan|threshold_max)\b", text) == []


def test_the_zipapp_is_the_same_bytes_each_time():
    assert zipapp_bytes(RACK_FILES) == zipapp_bytes(RACK_FILES)


def test_a_narrow_link_also_slows_the_drive_down():
    def rate(faults):
        reading = read("fio", pack_files("array01", ["storage"], "storage", faults)["fio.nvme0n1.out"])
        return next(o.value for o in reading.observations if o.quantity == "io.bandwidth")

    assert rate({"narrow-link": 1}) < rate({}) * 6 / 10


def test_reading_drives_never_writes_to_them():
    listing = run_tool(["nvme", "list", "-o", "json"], rack_for(rack(), "array01", ["storage"]))[0]
    commands = survey_spec(listing + "--- rdma\n[]", "storage", "array01", ["storage"], [], {})["commands"]
    reads = [c["argv"] for c in commands if "fio" in " ".join(c["argv"])]
    assert len(reads) == 5
    for argv in reads:
        assert {"--readonly", "--rw=read", "--direct=1"} <= set(argv)


@pytest.mark.parametrize(
    "seen", ["", "nonsense", "--- rdma\n", '{"Devices": [{"DevicePath": "/dev/nvme0n1; rm -rf /"}]}--- rdma\n[{"netdev": "$(reboot)"}]']
)
def test_a_survey_is_made_from_whatever_was_seen_and_names_no_strange_device(seen):
    spec = survey_spec(seen, "survey", "h", ["storage", "engine"], [], {})
    assert {"nvme-list", "dmidecode", "amd-smi-static", "rdma-link"} <= {c["name"] for c in spec["commands"]}
    assert not any(word in json.dumps(spec) for word in ("rm -rf", "reboot"))


def test_the_programs_are_named_as_the_role_says():
    told = (ROLES / "lab_rack/meta/argument_specs.yml").read_text()
    assert all(name in told for name in TOOLS if name != "ib_read_bw")
    assert os.access(RACK_FILES / "install.py", os.R_OK)
