"""What the kit takes for its own: KV by its mark, mounts by source, file systems by UUID and drive. Whatever else is there stays, and is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hardware.kit import ARRAY, ROLES, Kit, load

EXPORT = "192.0.2.40:/export/kv"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path / "host")


def folder(path: Path) -> dict[str, Any]:
    return {"media": {"local": {"kind": "directory", "mount": str(path)}}}


def nfs(kit: Kit, **more: Any) -> dict[str, Any]:
    return {"media": {"nfs": {"kind": "nfs", "mount": str(kit.root / "mnt" / "nfs"), "source": EXPORT, **more}}}


def recorded(kit: Kit) -> bool:
    return (kit.root / "state" / "hardware.json").exists()


def test_a_folder_kv_that_was_there_before_us_is_never_used_and_survives_the_removal(kit: Kit, tmp_path: Path) -> None:
    theirs = tmp_path / "data" / "kv" / "table.db"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("a customer's")
    assert "was there before us" in kit.run("volume", "apply", folder(tmp_path / "data"))["refused"]
    kit.run("volume", "remove", {})
    assert theirs.read_text() == "a customer's"
    assert not recorded(kit)


def test_two_engagements_on_one_place_never_take_each_others_kv_and_hosts_of_one_share_it(tmp_path: Path) -> None:
    shared, hosts = tmp_path / "export", [Kit(tmp_path / name) for name in ("one", "another", "third")]
    shared.mkdir()
    first, other, second = ({"engagement": code, **folder(shared)} for code in ("A", "B", "A"))
    assert hosts[0].run("volume", "apply", first)["wrong"] == []
    assert "belongs to the engagement A, and this one is B" in hosts[1].run("volume", "apply", other)["refused"]
    assert hosts[2].run("volume", "apply", second)["changed"] == []
    (shared / "kv" / "attempt").mkdir()
    hosts[1].run("volume", "remove", {})
    assert (shared / "kv" / "attempt").is_dir()
    hosts[0].run("volume", "remove", {})
    assert list(shared.iterdir()) == []
    assert hosts[2].run("volume", "remove", {})["changed"] == []
    assert not recorded(hosts[2])


def test_kv_that_lost_its_mark_is_left_and_the_removal_says_where(kit: Kit, tmp_path: Path) -> None:
    kit.run("volume", "apply", folder(tmp_path / "data"))
    kv = tmp_path / "data" / "kv"
    (kv / ".quadgate" / "owner").unlink()
    (kv / "somebody.txt").write_text("x")
    assert f"{kv} no longer carries the mark" in kit.run("volume", "remove", {})["refused"]
    assert (kv / "somebody.txt").exists()
    assert recorded(kit)


def test_kv_on_an_export_that_no_boot_mounted_is_mounted_to_be_removed(kit: Kit) -> None:
    kit.run("volume", "apply", nfs(kit))
    (kit.root / "mnt" / "nfs" / "kv" / "attempt").mkdir()
    kit.reboot()
    assert list((kit.rack / "media").rglob("attempt"))
    changed = kit.run("volume", "remove", {})["changed"]
    assert [words.split()[0] for words in changed] == ["mount", "remove", "unmount", "remove", "remove", "remove"]
    assert not list((kit.rack / "media").rglob("*kv*"))
    assert not kit.changes().get("mounts")
    assert not recorded(kit)


def test_kv_on_an_export_that_is_out_of_reach_is_no_removal(kit: Kit) -> None:
    kit.run("volume", "apply", nfs(kit))
    kit.reboot()
    (kit.rack / "bin" / "mount").write_text("#!/bin/sh\necho 'mount.nfs: Connection timed out' >&2\nexit 32\n")
    refused = kit.run("volume", "remove", {})["refused"]
    assert f"KV of ours is still on {EXPORT}" in refused
    assert "Connection timed out" in refused
    assert recorded(kit)


def test_another_export_at_the_mount_point_is_neither_used_nor_passed(kit: Kit) -> None:
    where = kit.root / "mnt" / "nfs"
    where.mkdir(parents=True)
    kit.tool("mount", "-t", "nfs", "-o", "vers=4.1", "192.0.2.99:/home", str(where))
    assert f"192.0.2.99:/home is mounted at {where} already" in kit.run("volume", "apply", nfs(kit))["refused"]
    assert list(where.iterdir()) == []
    assert [row["check"] for row in kit.run("volume", "show", nfs(kit))["wrong"]] == ["source.nfs"]


def test_options_that_the_kernel_never_shows_are_not_missed_and_the_version_is_compared(kit: Kit) -> None:
    order = nfs(kit, options=["defaults", "nofail", "_netdev", "noatime", "nfsvers=4.2"])
    first = kit.run("volume", "apply", order)
    assert first["wrong"] == []
    assert "vers=4.2" in first["facts"]["media"]["nfs"]["in_force"]
    wanted = kit.run("volume", "show", nfs(kit, version="4.1", options=["noatime", "nconnect=8"]))
    assert [row["check"] for row in wanted["wrong"]] == ["options.nfs", "nfs_version.nfs"]


def test_lines_that_somebody_took_out_and_changed_otherwise_hold_no_removal_up(kit: Kit) -> None:
    (kit.etc / "fstab").write_text("/dev/sda1 / ext4 defaults 0 1\n")
    kit.run("volume", "apply", nfs(kit))
    (kit.etc / "fstab").write_text("/dev/sda1 / ext4 noatime 0 1\n")
    kit.run("volume", "remove", {})
    assert (kit.etc / "fstab").read_text() == "/dev/sda1 / ext4 noatime 0 1\n"
    assert not recorded(kit)


def test_a_drive_is_named_by_what_lasts_and_one_that_cannot_be_opened_is_not_blank(kit: Kit) -> None:
    medium = {"kind": "xfs", "mount": str(kit.root / "mnt" / "disk"), "device": "/dev/nvme1n1"}
    assert "another drive may have this name after a boot" in kit.run("volume", "apply", {"media": {"disk": medium}})["refused"]
    gone = {**medium, "device": "/dev/disk/by-id/nvme-eui.gone"}
    assert "cannot be opened" in kit.run("volume", "apply", {"media": {"disk": gone}})["refused"]
    assert "signatures" not in kit.changes()
    assert "the kind 'xsf'" in kit.run("volume", "apply", {"media": {"disk": {**medium, "kind": "xsf"}}})["refused"]


def test_what_a_path_was_connected_with_is_there_again_after_a_boot_and_the_policy_is_read_back(kit: Kit) -> None:
    portals = [{"address": "192.0.2.31", "host_interface": "ens8f0np0"}, {"address": "192.0.2.31", "port": 4421, "host_address": "192.0.2.9"}]
    order = {**ARRAY, "portals": portals, "io_queues": 16, "ctrl_loss_s": 600, "host_nqn": "nqn.2026-11.example:gpu01"}
    assert kit.run("array", "apply", order)["wrong"] == []
    assert sorted(path["port"] for path in next(iter(kit.changes()["subsystems"].values()))["paths"]) == ["4420", "4421"]
    line = next(row for row in (kit.etc / "nvme/discovery.conf").read_text().splitlines() if "--host-iface=ens8f0np0" in row)
    for flag in ("--nr-io-queues=16", "--ctrl-loss-tmo=600", "--hostnqn=nqn.2026-11.example:gpu01", "--trsvcid=8009"):
        assert flag in line
    assert 'ATTR{iopolicy}="round-robin"' in (kit.etc / "udev/rules.d/71-quadgate-array.rules").read_text()
    policy = next((kit.rack / "sys/class/nvme-subsystem").glob("*/iopolicy"))
    policy.write_text("numa\n")
    assert [row["check"] for row in kit.run("array", "show", order)["wrong"]] == ["iopolicy"]
    assert "to the array" in kit.run("array", "apply", {**order, "subsystem": "nqn.2026-11.example:another"})["refused"]
    kit.run("array", "remove", {})
    assert kit.changes() == {}
    assert list(kit.etc.iterdir()) == []


def test_keys_of_the_site_that_no_boot_would_read_are_refused(kit: Kit) -> None:
    assert "no path would come back" in kit.run("array", "apply", {**ARRAY, "config_json": "/root/keys.json"})["refused"]
    assert kit.changes() == {}


def test_an_arm_makes_room_by_removing_earlier_attempts_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    switch = load(ROLES / "arm/files/switch.py")
    medium = tmp_path / "mnt" / "kv"
    (medium / "customer").mkdir(parents=True)
    with pytest.raises(SystemExit):
        switch.enlist(f"{medium}/a1", str(tmp_path))
    assert "carries no mark of ours" in capsys.readouterr().err
    assert [path.name for path in medium.iterdir()] == ["customer"]
    (medium / ".quadgate").mkdir()
    (medium / ".quadgate" / "owner").write_text(json.dumps({"engagement": "DEMO"}))
    for attempt in ("a1", "a2"):
        switch.enlist(f"{medium}/{attempt}", str(tmp_path))
    switch.make_room(f"{medium}/a2")
    switch.make_room(f"{medium}/a2")
    assert sorted(path.name for path in medium.iterdir()) == [".quadgate", "a2", "customer"]
    switch.enlist(f"{tmp_path}/kv/array/a1", str(tmp_path))  # below our own root there is nobody else
