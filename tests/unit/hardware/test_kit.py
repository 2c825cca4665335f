"""Fabric, array and volume by the kit itself: what is set, what is checked, what is refused, and that removing gives back what was there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.hardware.kit import ARRAY, FABRIC, Kit, filters, wipe


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hosts")


@pytest.fixture
def kit(place: Path) -> Kit:
    """Give a host as it came."""
    return Kit.after(place)


@pytest.fixture
def connected(place: Path) -> Kit:
    """Give a host that reaches the array by both portals."""
    return Kit.after(place, "connected")


@pytest.fixture
def mounted(place: Path) -> Kit:
    """Give a host with a RAID over the array's namespaces, and XFS on it."""
    return Kit.after(place, "connected", "mounted")


def names(answer: dict, state: str) -> set[str]:
    return {row["check"].partition(".")[0] for row in answer["checks"] if row["state"] == state}


def test_a_fabric_as_its_maker_ships_it_is_found_wrong_and_left_alone_until_asked(kit: Kit) -> None:
    answer = kit.run("fabric", "apply", {**FABRIC, "configure": False})
    assert names(answer, "wrong") == {"mtu", "rdma_mtu", "trust", "pfc"}
    assert names(answer, "unknown") == {"dscp"}
    assert names(answer, "ok") == {"link", "speed", "rdma", "gid"}
    assert answer["changed"] == []
    assert kit.changes() == {}


def test_a_fabric_is_set_once_and_given_back_as_it_was(kit: Kit) -> None:
    planned = kit.run("fabric", "plan", FABRIC)
    assert kit.changes() == {}
    first = kit.run("fabric", "apply", FABRIC)
    assert first["changed"] == planned["changed"]
    assert len(first["changed"]) == 3
    assert first["wrong"] == []
    assert kit.run("fabric", "apply", FABRIC)["changed"] == []
    assert len(kit.run("fabric", "remove", FABRIC)["changed"]) == 3
    assert kit.changes()["nics"] == {"ens8f0np0": {"mtu": 1500, "qos": {"trust": "pcp", "pfc": []}}}
    assert not (kit.root / "state" / "hardware.json").exists()


def test_what_was_there_first_is_given_back_even_after_the_engagement_asked_for_something_else(kit: Kit) -> None:
    kit.run("fabric", "apply", FABRIC)
    kit.run("fabric", "apply", {**FABRIC, "mtu": 4200})
    kit.run("fabric", "remove", {})
    assert kit.changes()["nics"]["ens8f0np0"]["mtu"] == 1500


def test_an_interface_that_is_not_there_is_refused_by_name(kit: Kit) -> None:
    answer = kit.run("fabric", "apply", {**FABRIC, "interfaces": [{"netdev": "eth7", "device": "mlx5_7"}]})
    assert "eth7 is not on this host" in answer["refused"]


def test_the_array_is_connected_by_every_portal_once(kit: Kit) -> None:
    first = kit.run("array", "apply", ARRAY)
    assert first["wrong"] == []
    assert len(first["facts"]["devices"]) == 4
    assert first["facts"]["paths"] == ["192.0.2.31", "192.0.2.32"]
    assert kit.run("array", "apply", ARRAY)["changed"] == []
    assert (kit.etc / "nvme" / "discovery.conf").read_text().count("--transport=rdma") == 2


def test_a_path_that_is_lost_is_found_and_connected_again(connected: Kit) -> None:
    path = next(iter(connected.changes()["subsystems"].values()))["paths"][0]
    connected.tool("nvme", "disconnect", "-d", path["name"])
    assert [row["check"] for row in connected.run("array", "show", ARRAY)["wrong"]] == [f"path.{path['address']}"]
    assert connected.run("array", "apply", ARRAY)["changed"] == [f"connect {ARRAY['subsystem']} at {path['address']} over rdma"]


def test_only_what_we_connected_is_disconnected(kit: Kit) -> None:
    kit.tool("modprobe", "nvme-rdma")
    kit.tool("nvme", "connect", "-t", "rdma", "-a", "192.0.2.31", "-s", "4420", "-n", ARRAY["subsystem"])
    kit.run("array", "apply", ARRAY)
    kit.run("array", "remove", ARRAY)
    left = next(iter(kit.changes()["subsystems"].values()))
    assert [path["address"] for path in left["paths"]] == ["192.0.2.31"]
    assert kit.changes()["modules"] == ["nvme_rdma"]
    assert not (kit.etc / "nvme").exists()


def test_an_array_without_a_discovery_service_gets_a_unit_and_loses_it_again(kit: Kit) -> None:
    order = {**ARRAY, "transport": "tcp", "persistent": "service"}
    assert kit.run("array", "apply", order)["wrong"] == []
    unit = kit.etc / "systemd" / "system" / "quadgate-array.service"
    assert unit.read_text().count("ExecStart=-/usr/bin/env nvme connect --transport tcp") == 2
    assert kit.run("array", "apply", order)["changed"] == []
    kit.run("array", "remove", order)
    assert list(kit.etc.iterdir()) == []
    assert set(kit.changes()) == set()


def test_a_wrong_number_of_namespaces_is_wrong(kit: Kit) -> None:
    assert [row["check"] for row in kit.run("array", "apply", {**ARRAY, "namespaces": 8})["wrong"]] == ["namespaces"]


def test_a_raid_of_four_carries_xfs_with_its_stripes_and_everything_goes_again(connected: Kit) -> None:
    (connected.etc / "fstab").write_text("# no line end")
    order = connected.media()
    first = connected.run("volume", "apply", order)
    assert first["wrong"] == []
    geometry = next(row for row in first["checks"] if row["check"] == "geometry.array")
    assert geometry["value"] == [512 * 1024, 4 * 512 * 1024]
    assert sum(row["check"].startswith("alignment.array.") for row in first["checks"]) == 4
    assert connected.run("volume", "apply", order)["changed"] == []
    assert "in use by md127" in connected.run("array", "remove", ARRAY)["refused"]
    connected.run("volume", "remove", {"media": {}})
    connected.run("array", "remove", ARRAY)
    assert connected.changes() == {}
    assert (connected.etc / "fstab").read_text() == "# no line end"
    assert not (connected.root / "mnt").exists()
    assert not (connected.root / "state" / "hardware.json").exists()


def test_a_device_that_holds_something_is_never_overwritten(connected: Kit) -> None:
    order = connected.media()
    member = order["media"]["array"]["devices"][2]
    connected.tool("mkfs.xfs", "-q", "-L", "theirs", member)
    answer = connected.run("volume", "apply", order)
    assert f"{member} holds LABEL=theirs TYPE=xfs" in answer["refused"]
    assert "md" not in connected.changes()


def test_a_raid_that_no_boot_assembled_is_assembled_again_with_what_is_on_it(mounted: Kit) -> None:
    order = mounted.media()
    made = mounted.changes()
    mounted.reboot()
    answer = mounted.run("volume", "apply", order)
    assert answer["changed"][0] == "assemble /dev/md/qg-array again of 4 devices"
    assert answer["wrong"] == []
    assert {key: mounted.changes()[key] for key in ("md", "signatures", "mounts")} == {key: made[key] for key in ("md", "signatures", "mounts")}
    assert mounted.run("volume", "apply", order)["changed"] == []


def test_a_raid_of_somebody_else_is_never_assembled_nor_taken(mounted: Kit) -> None:
    order = mounted.media()
    mounted.reboot()
    record = mounted.root / "state" / "hardware.json"
    known = json.loads(record.read_text())
    known["volume"]["array"]["md"]["uuid"] = "0:0:0:0"
    record.write_text(json.dumps(known))
    assert "so it is not taken for the volume array" in mounted.run("volume", "apply", order)["refused"]


def test_a_raid_that_no_boot_assembled_is_removed_all_the_same(mounted: Kit) -> None:
    mounted.reboot()
    mounted.run("volume", "remove", {"media": {}})
    mounted.run("array", "remove", ARRAY)
    assert mounted.changes() == {}
    assert not (mounted.root / "state" / "hardware.json").exists()


def test_a_medium_whose_mount_point_changed_moves_and_is_never_mounted_twice(mounted: Kit) -> None:
    order = mounted.media(mount=str(mounted.root / "elsewhere" / "array"))
    answer = mounted.run("volume", "apply", order)
    assert answer["wrong"] == []
    assert [mount["target"] for mount in mounted.changes()["mounts"]] == [str(mounted.root / "elsewhere" / "array")]
    assert str(mounted.root / "mnt") not in (mounted.etc / "fstab").read_text()
    assert not (mounted.root / "mnt").exists()
    assert mounted.run("volume", "apply", order)["changed"] == []
    mounted.run("volume", "remove", {"media": {}})
    assert not (mounted.root / "elsewhere").exists()


def test_a_medium_that_became_another_is_refused_until_it_was_removed(kit: Kit) -> None:
    nfs = {"kind": "nfs", "mount": str(kit.root / "mnt" / "nfs"), "source": "192.0.2.40:/export/kv"}
    kit.run("volume", "apply", {"media": {"nfs": nfs}})
    answer = kit.run("volume", "apply", {"media": {"nfs": {**nfs, "source": "192.0.2.41:/export/kv"}}})
    assert "was made with source 192.0.2.40:/export/kv" in answer["refused"]


def test_a_file_system_that_is_mounted_elsewhere_without_our_record_is_not_mounted_again(mounted: Kit) -> None:
    order = mounted.media()
    mounted.tool("umount", order["media"]["array"]["mount"])
    (mounted.root / "theirs").mkdir()
    mounted.tool("mount", "-t", "xfs", "-o", "ro", "/dev/md/qg-array", str(mounted.root / "theirs"))
    assert "/theirs, which no record of ours knows" in mounted.run("volume", "apply", order)["refused"]


def test_media_with_alike_names_have_labels_of_their_own(connected: Kit) -> None:
    devices = connected.media()["media"]["array"]["devices"]
    names = ("array_fast_one", "array_fast_two", "array")
    media = {name: {**connected.drive(n)["media"]["disk"], "mount": str(connected.root / "mnt" / name)} for n, name in enumerate(names)}
    assert connected.run("volume", "apply", {"media": media})["wrong"] == []
    labels = [connected.changes()["signatures"][device]["LABEL"] for device in devices[:3]]
    assert len(set(labels)) == 3
    assert all(len(label) <= 12 for label in labels)
    assert [f"LABEL={label} " in (connected.etc / "fstab").read_text() for label in labels] == [True] * 3


def test_a_file_system_of_another_medium_whose_label_begins_alike_is_left_alone(connected: Kit) -> None:
    connected.tool("mkfs.xfs", "-q", "-L", "qg-a2", connected.media()["media"]["array"]["devices"][0])
    order = {"media": {"a": connected.drive(0)["media"]["disk"]}}
    assert "LABEL=qg-a2" in connected.run("volume", "apply", order)["refused"]


def test_two_media_at_one_mount_point_are_refused(kit: Kit) -> None:
    one = {"kind": "directory", "mount": str(kit.root / "mnt" / "a")}
    assert "would have one mount point" in kit.run("volume", "apply", {"media": {"a": one, "b": {**one, "mount": one["mount"] + "/"}}})["refused"]


def test_a_raid_of_three_is_refused_with_its_devices(connected: Kit) -> None:
    order = connected.media()
    order["media"]["array"]["devices"].pop()
    assert "wants 4 devices and has 3" in connected.run("volume", "apply", order)["refused"]


def test_a_chunk_off_the_64_kib_grid_is_refused(connected: Kit) -> None:
    assert "no multiple of 64 KiB" in connected.run("volume", "apply", connected.media(chunk_kib=96))["refused"]


def test_a_line_of_somebody_else_in_a_file_of_the_host_survives_the_removal(mounted: Kit) -> None:
    fstab = mounted.etc / "fstab"
    fstab.write_text("LABEL=home /home xfs defaults 0 0\n" + fstab.read_text())
    mounted.run("volume", "remove", {"media": {}})
    assert fstab.read_text() == "LABEL=home /home xfs defaults 0 0\n"


def test_what_is_ours_is_found_on_the_host_when_the_record_of_it_was_lost(kit: Kit) -> None:
    assert kit.traces() == []
    kit.run("array", "apply", {**ARRAY, "persistent": "service"})
    kit.run("volume", "apply", kit.media())
    (kit.root / "state" / "hardware.json").unlink()
    found = "; ".join(kit.traces())
    for part in ("fstab has the lines `# BEGIN Quadgate volume array`", "mdadm.conf has the lines", "quadgate-array.service is a unit of ours"):
        assert part in found
    for part in ("/dev/md/qg-array is a RAID of ours", "our label qg-array", f"/dev/md/qg-array is mounted at {kit.root}/mnt/array"):
        assert part in found


def test_nothing_of_ours_is_found_after_a_removal_by_the_record(mounted: Kit) -> None:
    mounted.run("volume", "remove", {})
    mounted.run("array", "remove", {})
    assert mounted.traces() == []


def test_the_record_carries_the_bit_that_keeps_it_from_ageing(kit: Kit) -> None:
    kit.run("fabric", "apply", FABRIC)
    assert (kit.root / "state" / "hardware.json").stat().st_mode & 0o7777 == 0o1600


def test_a_damaged_record_stops_everything(kit: Kit) -> None:
    kit.run("fabric", "apply", FABRIC)
    (kit.root / "state" / "hardware.json").write_text("{")
    assert "is damaged" in kit.run("fabric", "remove", FABRIC)["refused"]


WIPE = {"method": "sanitize", "action": "block", "serials": ["QF26K0A00101", "QF26K0A00102"], "approvals": {"vendor": "a-1", "customer": "a-2"}}


@pytest.mark.parametrize("method", ["sanitize", "format"])
def test_each_wiped_drive_has_a_record_by_its_serial_number(tmp_path: Path, method: str) -> None:
    array = Kit(tmp_path / "array", "storage")
    array.tool("mkfs.xfs", "-q", "-L", "kv", "/dev/nvme0n1")
    answer = array.run("wipe", "apply", {**WIPE, "method": method})
    assert [(row["serial"], row["outcome"]) for row in answer["facts"]["records"]] == [("QF26K0A00101", "wiped"), ("QF26K0A00102", "wiped")]
    assert all(row["model"] == "QF-N7680" and row["firmware"] and row["argv"][1] == method for row in answer["facts"]["records"])
    assert answer["wrong"] == []
    assert "signatures" not in array.changes()


@pytest.mark.parametrize("version", ["1.2", "1.16", "2.11", "2.13"])
def test_a_sanitize_is_told_done_in_every_form_that_nvme_cli_prints(tmp_path: Path, version: str) -> None:
    array = Kit(tmp_path / "array", "storage")
    array.describe(lambda rack: rack["tools"].update(nvme=version))
    answer = array.run("wipe", "apply", WIPE)
    assert [(row["outcome"], row["sanitize_log"]["state"]) for row in answer["facts"]["records"]] == [("wiped", 1), ("wiped", 1)]
    assert isinstance(answer["facts"]["records"][0]["sanitize_log"]["sstat"], int if version == "1.2" else dict)


@pytest.mark.parametrize(
    ("sstat", "state"),
    [
        (257, 1),
        ("0x101", 1),
        ("(4) Most Recent Sanitize Command (No-Deallocate After Sanitize) Completed Successfully.", 4),
        ({"status": "(2) Sanitize in Progress."}, 2),
        ({"status": "done"}, None),
        ({}, None),
        (None, None),
        (True, None),
        ("", None),
    ],
)
def test_a_sanitize_status_is_read_or_it_is_unknown(sstat: object, state: int | None) -> None:
    assert wipe.sanitize_state(sstat) == state


def test_a_drive_that_goes_wrong_leaves_every_record_and_the_next_drive_is_wiped_all_the_same(tmp_path: Path) -> None:
    array = Kit(tmp_path / "array", "storage")
    array.describe(lambda rack: rack["drives"][0].update(sanitize_fails=True))
    journal = tmp_path / "records.jsonl"
    answer = array.run("wipe", "apply", {**WIPE, "journal": str(journal)})
    assert [row["outcome"] for row in answer["facts"]["records"]] == ["failed", "wiped"]
    assert "its sanitize failed" in answer["facts"]["records"][0]["why"]
    assert [row["check"] for row in answer["wrong"]] == ["wiped.QF26K0A00101"]
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(row["serial"][-1], row["outcome"]) for row in rows] == [("1", "begun"), ("1", "failed"), ("2", "begun"), ("2", "wiped")]


def test_what_nobody_foresaw_on_one_drive_is_its_record_and_ends_nothing(tmp_path: Path) -> None:
    array = Kit(tmp_path / "array", "storage")
    tool = array.rack / "bin" / "nvme"
    tool.write_text(tool.read_text().replace("exec ", 'case "$*" in "sanitize-log /dev/nvme0 "*) echo "[]"; exit 0;; esac\nexec ', 1))
    answer = array.run("wipe", "apply", WIPE)
    assert [row["outcome"] for row in answer["facts"]["records"]] == ["failed", "wiped"]
    assert "counts as not wiped" in answer["facts"]["records"][0]["why"]


def test_a_kit_that_was_killed_still_tells_what_it_did_to_each_drive() -> None:
    rows = [{"serial": "S1", "outcome": "begun"}, {"serial": "S1", "outcome": "wiped"}, {"serial": "S2", "outcome": "begun"}]
    answer = filters.wipe_answer({"rc": -9, "stderr": ""}, "\n".join(json.dumps(row) for row in rows) + '\n{"serial": "S3"', WIPE)
    pieces = [{"kind": "drive", "serial": f"S{n}", "host": "array01"} for n in (1, 2)]
    assert [(row["serial"], row["outcome"]) for row in answer["facts"]["records"]] == [("S1", "wiped"), ("S2", "begun")]
    assert filters.return_slip(answer, {"packing_list": pieces}, "array01")["drives_not_wiped"] == ["S2"]
    assert [row["check"] for row in answer["wrong"]] == ["wipe.ended"]


@pytest.mark.parametrize("approvals", [{}, {"vendor": "a-1"}, {"vendor": "a-1", "customer": "a-1"}])
def test_a_wipe_wants_two_different_approvals(tmp_path: Path, approvals: dict[str, str]) -> None:
    array = Kit(tmp_path / "array", "storage")
    assert "approval ids of both parties" in array.run("wipe", "apply", {**WIPE, "approvals": approvals})["refused"]
    assert "sanitize" not in array.changes()


def test_a_wipe_of_an_unknown_or_a_used_drive_touches_none(tmp_path: Path) -> None:
    array = Kit(tmp_path / "array", "storage")
    assert "serial number XX" in array.run("wipe", "apply", {**WIPE, "serials": ["QF26K0A00101", "XX"]})["refused"]
    array.tool("mkfs.xfs", "-q", "-L", "kv", "/dev/nvme1n1")
    (array.root / "m").mkdir()
    array.tool("mount", "-t", "xfs", "-o", "ro", "/dev/nvme1n1", str(array.root / "m"))
    assert "QF26K0A00102) is in use" in array.run("wipe", "apply", WIPE)["refused"]
    assert "sanitize" not in array.changes()


def test_the_answer_is_plain_json_with_the_command_that_shows_each_check(kit: Kit) -> None:
    answer = kit.run("fabric", "apply", FABRIC)
    assert all(row["evidence"] for row in answer["checks"])
    assert json.loads(json.dumps(answer)) == answer
