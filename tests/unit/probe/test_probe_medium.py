"""Where KV lies, seen by the kernel: a mount that is not there is refused before a folder is made on the system disk."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from probe.coldness import mount_of
from probe.engine_host import LocalHost
from probe.errors import Refused
from probe.medium import declared_names, mount_told, names_of, require_declared, transports, transports_of_device
from probe.preflight import before_job

from tests.unit.probe.kit import ROOT, build, job_spec

SWITCH = ROOT / "playbooks" / "roles" / "arm" / "files" / "switch.py"


def declared(folder, **other):
    """Return the declaration that fits the mount of a folder, but for what is given."""
    mount = mount_of(folder)
    return {"dir": str(folder), "mount_point": mount["mount_point"], "fs_types": [mount["fs_type"]], "sources": [mount["source"]], **other}


def test_a_folder_that_is_yet_to_be_made_belongs_to_the_mount_of_its_parent(tmp_path):
    assert require_declared(str(tmp_path / "kv" / "a1"), declared(tmp_path))["mount_point"] == mount_of(tmp_path)["mount_point"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [{"mount_point": "/mnt/quadgate/array"}, {"fs_types": ["no-such"]}, {"sources": ["/dev/md/qg-no-such"]}])
def test_another_mount_file_system_or_source_is_refused_with_both_names(tmp_path, other):
    wanted = declared(tmp_path, **other)
    with pytest.raises(Refused, match="Nothing was stored") as refused:
        require_declared(str(tmp_path), wanted)
    (value,) = other.values()
    assert str(value if isinstance(value, str) else value[0]) in str(refused.value)
    assert str(mount_of(tmp_path)["source"]) in str(refused.value)


def test_what_is_left_open_is_not_held_against_anything(tmp_path):
    assert require_declared(str(tmp_path), {"dir": str(tmp_path), "mount_point": None, "fs_types": [], "sources": []})


def test_a_link_to_the_device_and_a_link_to_the_mount_point_are_names_of_the_mount(tmp_path):
    mount = {**mount_of("/dev"), "source": "/dev/null", "dir": "/kv"}  # a device that is on every machine stands for the medium's
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "point").symlink_to(mount["mount_point"])
    link, point = str(tmp_path / "link"), str(tmp_path / "point")
    assert names_of(mount, ["/dev/zero", link, str(tmp_path)]) == [link]
    assert declared_names([{"dir": "/kv", "sources": [link], "mount_point": point}, {"dir": "/x", "sources": [link]}], mount) == [link, point]


def test_the_transport_of_drives_is_found_below_a_raid_a_partition_and_a_subsystem(tmp_path):
    drives, block = tmp_path / "devices", tmp_path / "dev" / "block"
    block.mkdir(parents=True)
    for name, controller in (("nvme1n1", ""), ("nvme2n1", "nvme2")):  # one controller; a subsystem with its path
        place = drives / name / "device" / controller
        place.mkdir(parents=True)
        (place / "transport").write_text("rdma\n")
    (drives / "nvme1n1" / "nvme1n1p1").mkdir()
    (drives / "nvme1n1" / "nvme1n1p1" / "partition").write_text("1\n")
    (drives / "md127" / "slaves").mkdir(parents=True)
    for name, path in (("a", "nvme1n1/nvme1n1p1"), ("b", "nvme2n1")):
        (drives / "md127" / "slaves" / name).symlink_to(drives / path)
    (drives / "sda").mkdir()
    (drives / "sda" / "slaves").mkdir()
    for dev, name in (("9:127", "md127"), ("259:3", "nvme1n1/nvme1n1p1"), ("8:0", "sda")):
        (block / dev).symlink_to(drives / name)
    assert [transports_of_device(dev, str(tmp_path)) for dev in ("9:127", "259:3", "8:0", "1:1")] == [["rdma"], ["rdma"], [], []]
    (drives / "nvme2n1" / "device" / "nvme2" / "transport").write_text("tcp\n")
    assert transports_of_device("9:127", str(tmp_path)) == ["rdma", "tcp"]
    assert isinstance(transports(mount_of(str(ROOT))), list)


def test_a_job_asks_again_before_its_first_request_since_a_host_may_have_rebooted(tmp_path):
    spec = job_spec("run", 1, engine={"kv_dirs": [str(ROOT)], "media": [declared(ROOT)]})
    assert before_job(str(tmp_path), spec, 0, LocalHost(spec, str(tmp_path)).medium)
    spec["engine"]["media"] = [declared(ROOT, mount_point="/mnt/quadgate/array")]
    with pytest.raises(Refused) as refused:
        before_job(str(tmp_path), spec, 0, LocalHost(spec, str(tmp_path)).medium)
    assert refused.value.kind == "other_medium"


def test_an_engine_is_not_switched_to_an_arm_whose_medium_is_not_mounted(tmp_path):
    pyz, kv = build(tmp_path), tmp_path / "medium" / "kv" / "a1"
    (tmp_path / "root").mkdir()
    order = {"probe": str(pyz), "root": str(tmp_path / "root"), "attempt": "a1", "fence": 1, "job": "a1-run-2", "files": {}, "spec": "/none"}
    order.update(kv_dirs=[str(kv)], media=[declared(tmp_path, dir=str(kv), mount_point=str(tmp_path / "medium"))], store=False, kv_bytes=0)
    done = subprocess.run([sys.executable, "-I", str(SWITCH), json.dumps(order)], capture_output=True, text=True, check=False)
    assert (done.returncode, "shall lie on" in done.stderr) == (3, True), done.stderr
    assert not Path(kv).parent.exists()


def rack_of(tmp_path, rows):
    """Return a program that answers as a simulated rack's findmnt does."""
    (tmp_path / "said.json").write_text(rows if isinstance(rows, str) else json.dumps({"filesystems": rows}))
    program = tmp_path / "findmnt"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said.json\n")
    program.chmod(0o755)
    return str(program)


def test_a_simulated_rack_tells_what_it_mounted_and_what_it_did_not_lies_where_the_kernel_has_it(tmp_path):
    kv = tmp_path / "mnt" / "nfs" / "kv"
    kv.mkdir(parents=True)
    row = {"target": str(tmp_path / "mnt" / "nfs"), "source": "192.0.2.40:/export/kv", "fstype": "nfs4", "options": "rw,vers=4.1,proto=rdma"}
    outer = {"target": str(tmp_path / "mnt"), "source": "/dev/md/qg-array", "fstype": "xfs", "options": "rw"}
    findmnt = rack_of(tmp_path, [row, outer])
    told = mount_told(str(kv), findmnt)
    assert (told["fs_type"], told["source"], told["mount_point"], transports(told)) == ("nfs4", row["source"], row["target"], ["rdma"])
    wanted = {"dir": str(kv), "mount_point": row["target"], "fs_types": ["nfs", "nfs4"], "sources": [row["source"]], "findmnt": findmnt}
    assert require_declared(str(kv), wanted)
    spec = job_spec("run", 1, engine={"kv_dirs": [str(kv)], "media": [wanted]})
    (found,) = LocalHost(spec, str(tmp_path)).residency()
    assert found["rack"] == {"fs_type": "nfs4", "source": row["source"], "mount_point": row["target"]}
    assert found["names"] == [row["source"], row["target"]]
    assert (found["fs_type"], found["source"]) == (mount_of(kv)["fs_type"], mount_of(kv)["source"])
    for gone in ([], "{", "[]", '{"filesystems": 7}', ""):
        assert mount_told(str(kv), rack_of(tmp_path, gone)) == mount_of(kv)
        with pytest.raises(Refused, match="Nothing was stored"):
            require_declared(str(kv), wanted)
