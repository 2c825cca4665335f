"""What counts as a wiped drive: every namespace formatted, none in use in any way, and nothing of what was there readable afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.hardware.kit import Kit

FIRST = "QF26K0A00101"
WIPE: dict[str, Any] = {"method": "format", "serials": [FIRST], "approvals": {"vendor": "a-1", "customer": "a-2"}}


def storage(tmp_path: Path, **drive: Any) -> Kit:
    """Return an array head whose first drive is otherwise than described."""
    kit = Kit(tmp_path / "array", "storage")
    if drive:
        kit.describe(lambda rack: rack["drives"][0].update(drive))
    return kit


def test_a_drive_of_which_a_partition_or_a_second_namespace_is_used_is_never_wiped(tmp_path: Path) -> None:
    kit = storage(tmp_path, partitions=1, namespaces=2)
    (kit.root / "m").mkdir()
    block, swaps = kit.rack / "sys/class/block", kit.rack / "proc/swaps"
    kit.tool("mount", "-t", "ext4", "-o", "rw", "/dev/nvme0n1p1", str(kit.root / "m"))
    assert f"the mount {kit.root}/m" in kit.run("wipe", "apply", WIPE)["refused"]
    kit.tool("umount", str(kit.root / "m"))
    kit.tool("mount", "-t", "ext4", "-o", "rw", "/dev/nvme0n2", str(kit.root / "m"))
    assert f"the mount {kit.root}/m" in kit.run("wipe", "apply", {**WIPE, "method": "sanitize"})["refused"]
    kit.tool("umount", str(kit.root / "m"))
    (block / "nvme0n1p1/holders/dm-0").mkdir()
    assert "dm-0 on /dev/nvme0n1p1" in kit.run("wipe", "apply", WIPE)["refused"]
    (block / "nvme0n1p1/holders/dm-0").rmdir()
    swaps.write_text("Filename Type Size Used Priority\n/dev/nvme0n2p1 partition 1 0 -2\n")
    assert "swap on /dev/nvme0n2p1" in kit.run("wipe", "apply", WIPE)["refused"]
    assert kit.node("/dev/nvme0n1").read_bytes().strip(b"\0")


def test_every_namespace_of_a_drive_is_formatted_and_read_afterwards(tmp_path: Path) -> None:
    kit = storage(tmp_path, namespaces=2)
    record = kit.run("wipe", "apply", WIPE)["facts"]["records"][0]
    assert (record["outcome"], record["namespaces"]) == ("wiped", ["/dev/nvme0n1", "/dev/nvme0n2"])
    assert [argv[2] for argv in record["commands"]] == record["namespaces"]
    assert not kit.node("/dev/nvme0n2").read_bytes().strip(b"\0")


@pytest.mark.parametrize(
    ("drive", "why"),
    [
        ({"format_keeps": True}, "blocks of /dev/nvme0n1 hold the same as before"),
        ({"format_loses": True}, "/dev/nvme0n1 cannot be opened"),
    ],
)
def test_a_drive_that_says_success_and_is_not_blank_or_is_gone_was_not_wiped(tmp_path: Path, drive: dict[str, Any], why: str) -> None:
    answer = storage(tmp_path, **drive).run("wipe", "apply", WIPE)
    assert answer["facts"]["records"][0]["outcome"] == "failed"
    assert why in answer["facts"]["records"][0]["why"]
    assert [row["check"] for row in answer["wrong"]] == [f"wiped.{FIRST}"]


def test_a_drive_that_keeps_a_namespace_which_nobody_shows_is_refused(tmp_path: Path) -> None:
    kit = storage(tmp_path, unattached=1)
    assert "has 2 namespaces and shows 1 here" in kit.run("wipe", "apply", WIPE)["refused"]
    assert kit.node("/dev/nvme0n1").read_bytes().strip(b"\0")
