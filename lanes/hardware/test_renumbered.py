"""RAIDs and drives of ours after a boot that renumbered devices, and RAIDs whose devices are named by links: made, checked, removed by the kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.hardware.kit import ARRAY, Kit


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    made = Kit(tmp_path / "host")
    made.run("array", "apply", {**ARRAY, "namespaces": 4})
    return made


def by_id(kit: Kit) -> dict[str, Any]:
    """Return the order with the members under the names that last."""
    links = sorted(path.name for path in (kit.rack / "dev/disk/by-id").iterdir())
    return kit.media(devices=[f"/dev/disk/by-id/{name}" for name in links])


def test_members_named_by_links_are_the_members(kit: Kit) -> None:
    order = by_id(kit)
    first = kit.run("volume", "apply", order)
    assert first["wrong"] == []
    assert "md_members.array" in {row["check"] for row in first["checks"]}
    assert kit.run("volume", "apply", order)["changed"] == []
    order["media"]["array"]["devices"][1] = order["media"]["array"]["devices"][0]
    kit.run("volume", "remove", {})
    assert "one stands there twice" in kit.run("volume", "apply", order)["refused"]
    assert "md" not in kit.changes()


def test_after_a_boot_only_members_of_our_raid_are_blanked_under_whichever_name(kit: Kit) -> None:
    order = by_id(kit)
    order["media"]["array"].update(members=2, devices=order["media"]["array"]["devices"][:2])
    assert kit.run("volume", "apply", order)["wrong"] == []
    names = [device.rpartition("/")[2] for device in kit.media()["media"]["array"]["devices"]]
    theirs = [f"/dev/{name}" for name in names[2:]]
    shape = ["--run", "--level=0", "--metadata=1.2", "--name=theirs", "--raid-devices=2", "--chunk=512K"]
    kit.reboot()
    kit.tool("mdadm", "--create", "/dev/md/theirs", *shape, *theirs)
    kit.tool("mdadm", "--stop", "/dev/md/theirs")
    kit.renumber({names[0]: names[2], names[2]: names[0], names[1]: names[3], names[3]: names[1]})
    told = kit.run("volume", "remove", {})
    assert [words for words in told["changed"] if words.startswith("blank ")] == [f"blank {device}" for device in theirs]
    assert {device: row["LABEL"] for device, row in kit.changes()["signatures"].items()} == {f"/dev/{name}": "any:theirs" for name in names[:2]}
    assert not (kit.root / "state" / "hardware.json").read_text().count("volume")


def test_a_member_that_is_not_there_holds_the_removal_and_says_what_brings_it_back(kit: Kit) -> None:
    kit.run("volume", "apply", kit.media())
    kit.reboot()
    for path in next(iter(kit.changes()["subsystems"].values()))["paths"]:
        kit.tool("nvme", "disconnect", "-d", path["name"])
    refused = kit.run("volume", "remove", {})["refused"]
    assert "not on this host now" in refused
    assert "Connect the array again" in refused
    kit.run("array", "apply", ARRAY)
    kit.run("volume", "remove", {})
    kit.run("array", "remove", {})
    assert kit.changes() == {}
    assert not (kit.root / "state" / "hardware.json").exists()


def test_after_a_boot_that_renumbered_drives_only_our_file_system_goes(tmp_path: Path) -> None:
    array = Kit(tmp_path / "array", "storage")
    array.run("volume", "apply", array.drive(0))
    array.tool("mkfs.xfs", "-q", "-L", "theirs", "/dev/nvme1n1")
    array.reboot()
    array.renumber({"nvme0n1": "nvme1n1", "nvme1n1": "nvme0n1"})
    assert array.run("volume", "apply", array.drive(0))["wrong"] == []
    changed = array.run("volume", "remove", {})["changed"]
    assert "take the file system off /dev/nvme1n1" in changed
    assert not any(words.startswith("remove the KV") for words in changed), "what goes with its file system need not be removed file by file"
    assert {device: row["LABEL"] for device, row in array.changes()["signatures"].items()} == {"/dev/nvme0n1": "theirs"}


def test_a_drive_that_was_made_anew_by_somebody_is_left_and_one_that_is_away_holds_the_removal(tmp_path: Path) -> None:
    array = Kit(tmp_path / "array", "storage")
    array.run("volume", "apply", array.drive(0))
    array.reboot()
    device = array.node("/dev/nvme0n1")
    device.rename(device.with_name("pulled"))
    assert "is not on this host now" in array.run("volume", "remove", {})["refused"]
    device.with_name("pulled").rename(device)
    array.tool("wipefs", "--all", "/dev/nvme0n1")
    array.tool("mkfs.xfs", "-q", "-L", "theirs", "/dev/nvme0n1")
    assert "holds LABEL=theirs TYPE=xfs now" in array.run("volume", "remove", {})["facts"]["left"][0]["en"]
    assert array.changes()["signatures"]["/dev/nvme0n1"]["LABEL"] == "theirs"
    assert not (array.root / "state" / "hardware.json").exists()
