"""An output proves something only of what its command was run for: argv must name the tool and the device that the file's name claims."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.g1.argv import ASKED, other_command
from gates.g1.pack import HostPack
from gates.judge import judge as judge_bundle
from gates.model import Problem
from tests.unit.rack.argv import commands
from tests.unit.rack.simulate import bundle_of, demo_plan

Files = dict[str, bytes]
SURVEY, STORAGE = "evidence/survey/array01/", "evidence/storage/array01/"
# Of every command of a survey that is kept by device or interface.
KEPT = sorted(name for name in commands() if "." in name and not name.startswith("perftest."))


def tool_of(name: str) -> str:
    return {"dmidecode-cpu": "dmidecode", "lspci-under-load": "lspci"}.get(name, name.partition(".")[0])


def told(name: str, argv: Any) -> str | None:
    problem = other_command(name, tool_of(name), argv)
    return None if problem is None else problem.code


@pytest.mark.parametrize("name", sorted(commands()))
def test_what_this_release_runs_is_what_its_name_says(name: str) -> None:
    assert tool_of(name) in ASKED
    assert told(name, commands()[name]) is None


@pytest.mark.parametrize("name", [name for name in KEPT if "far-of" not in name])
def test_the_command_for_another_device_is_not_this_ones(name: str) -> None:
    own = name.partition(".")[2]
    for other in ("nvme3", "nvme3n1", "nvme01", "ens9f0np0", f"{own}0", f"x{own}", "7"):
        argv = [word.replace(own, other) for word in commands()[name]]
        assert told(name, argv) == "other_device", argv


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_command_of_another_tool_is_not_this_ones(name: str) -> None:
    assert told(name, ["cat", "/tmp/kept", *commands()[name][1:]]) == "other_command"
    assert told(name, ["sh", "-c", "cat /tmp/kept", *commands()[name]]) == "other_command"
    for other, argv in commands().items():
        if tool_of(other) != tool_of(name) and {argv[0], commands()[name][0]} != {"nvme"}:
            assert told(name, argv) in ("other_command", "other_device") or argv[0] == commands()[name][0], other


def test_each_log_of_a_drive_is_told_from_the_others() -> None:
    logs = [name for name in commands() if name.startswith("nvme-")]
    for name in logs:
        for other in logs:
            assert (told(name, commands()[other]) is None) == (name == other)


@pytest.mark.parametrize("argv", [None, [], "nvme smart-log /dev/nvme0", [1], {}, ["nvme", None]])
def test_a_command_that_does_not_tell_what_was_run_proves_nothing(argv: Any) -> None:
    assert told("nvme-smart-log.nvme0", argv) == "no_argv"


def test_several_devices_in_one_command_are_of_none_of_them() -> None:
    assert told("nvme-smart-log.nvme0", ["nvme", "smart-log", "/dev/nvme3", "--of", "/dev/nvme0"]) == "other_device"
    assert told("fio.nvme0n1", ["fio", "--filename=/dev/nvme0n1:/dev/nvme1n1", "--rw=read"]) == "other_device"


def test_a_namespace_of_the_drive_and_a_path_to_the_program_are_the_same_thing() -> None:
    assert told("nvme-smart-log.nvme0", ["/usr/sbin/nvme", "smart-log", "/dev/nvme0n1"]) is None
    assert told("smartctl.nvme1", ["smartctl", "-x", "--json", "-d", "nvme", "/dev/nvme1"]) is None


def with_argv(files: Files, place: str, name: str, argv: Any) -> Files:
    rows = [{**row, "argv": argv} if row["name"] == name else row for row in json.loads(files[f"{place}commands.json"])]
    return {**files, f"{place}commands.json": json.dumps(rows).encode()}


def problems_of(files: Files, step: str, name: str) -> tuple[Problem, ...]:
    answer = HostPack(bundle_of(files, demo_plan()), step, "array01").answer(name)
    assert not answer.reading.observations
    return answer.problems


@pytest.mark.parametrize(
    ("step", "name", "argv"),
    [
        ("survey", "nvme-smart-log.nvme1", ["nvme", "smart-log", "/dev/nvme3", "-o", "json"]),
        ("survey", "nvme-id-ctrl.nvme1", ["nvme", "id-ctrl", "/dev/nvme3", "-o", "json"]),
        ("survey", "ethtool.ens8f0np0", ["ethtool", "ens8f1np1"]),
        ("storage", "fio.nvme1n1", ["fio", "--filename=/dev/nvme3n1", "--rw=read", "--direct=1"]),
    ],
)
def test_an_arrival_with_the_output_of_another_device_does_not_pass_and_says_why(whole: Files, step: str, name: str, argv: list[str]) -> None:
    assert judge_bundle(bundle_of(whole, demo_plan()))["verdict"] == "pass"
    files = with_argv(whole, f"evidence/{step}/array01/", name, argv)
    (problem,) = problems_of(files, step, name)
    assert problem.code == "other_device"
    assert problem.message.en == f"{name} is kept as the output for {name.partition('.')[2]}, but what was run is: {' '.join(argv)}"
    document = judge_bundle(bundle_of(files, demo_plan()))
    assert document["verdict"] == "inconclusive"
    assert any(problem.message.en in check["reason"]["en"] for check in document["checks"])


@pytest.mark.parametrize("name", ["nvme-smart-log.nvme1", "ethtool.ens8f0np0", "nvme-list", "rdma-link", "dmidecode", "lspci"])
def test_a_command_of_which_argv_is_gone_keeps_an_arrival_from_passing(whole: Files, name: str) -> None:
    (problem,) = problems_of(with_argv(whole, SURVEY, name, None), "survey", name)
    assert problem.code == "no_argv"
    assert judge_bundle(bundle_of(with_argv(whole, SURVEY, name, None), demo_plan()))["verdict"] in ("inconclusive", "fail")


def test_two_commands_do_not_share_one_output(whole: Files) -> None:
    rows = json.loads(whole[f"{SURVEY}commands.json"])
    for row in rows:
        if row["name"] == "nvme-smart-log.nvme1":
            row["stdout"] = "nvme-smart-log.nvme3.out"
    files = {**whole, f"{SURVEY}commands.json": json.dumps(rows).encode()}
    (problem,) = problems_of(files, "survey", "nvme-smart-log.nvme1")
    assert problem.code == "other_output"
    assert judge_bundle(bundle_of(files, demo_plan()))["verdict"] == "inconclusive"
