"""The state of each path to a drive, as the kernel tells it, stands beside the drive's health: also where the drive itself answers nothing."""

from pathlib import Path

from probe.part_health import PartHealth, drives


def controller(root: Path, name: str, serial: str, state: str) -> None:
    folder = root / "class/nvme" / name
    folder.mkdir(parents=True)
    for key, text in (("serial", serial), ("state", state), ("model", "M"), ("subsysnqn", f"nqn.{serial}")):
        if text:
            (folder / key).write_text(text + "\n")


def silent(argv: list[str]) -> str:
    return ""


def test_each_controller_of_a_drive_is_a_path_with_its_state(tmp_path: Path) -> None:
    controller(tmp_path, "nvme0", "S1", "live")
    controller(tmp_path, "nvme1", "S1", "connecting")
    controller(tmp_path, "nvme2", "S2", "live")
    told = PartHealth(silent).reading(drives(silent, str(tmp_path)))
    assert told == {"paths": {"S1": {"nvme0": "live", "nvme1": "connecting"}, "S2": {"nvme2": "live"}}}


def test_a_kernel_that_tells_no_state_and_a_host_without_a_drive_tell_no_path(tmp_path: Path) -> None:
    assert PartHealth(silent).reading(drives(silent, str(tmp_path))) == {}
    controller(tmp_path, "nvme0", "S1", "")
    assert PartHealth(silent).reading(drives(silent, str(tmp_path))) == {}
