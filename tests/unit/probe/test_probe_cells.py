"""The parts of cells and of telemetry that need no engine: bytes really moved, tools really run, doubts that are no figures."""

import importlib.util
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile

import pytest
from probe import pack, vitals
from probe.cells_host import weight_files
from probe.cells_io import NAME, read_tier, write_checkpoint
from probe.cells_tools import bandwidth_matrix, raw_fio, steady
from probe.coldness import drop_cache, residency
from probe.engine_host import LocalHost
from probe.errors import ProbeError, Refused
from probe.files import walk_files
from probe.jobspec import check
from probe.preflight import (
    QUOTA_LEAST,
    QUOTA_MOST,
    before_job,
    default_quota,
    journal_bytes,
    require_larger_than_caches,
    require_medium,
    require_room,
    store_bytes,
)

from gates.bundle_form import most_bytes
from tests.unit.probe.kit import ROOT, job_spec

_spec = importlib.util.spec_from_file_location("ask", ROOT / "playbooks" / "roles" / "arm" / "files" / "ask.py")
ask = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ask)


def calm():
    """A job that goes on."""


@pytest.fixture
def disk():
    """Give a folder on the checkout's disk, where direct input and output work."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(prefix="cells-", dir=ROOT / "var")
    yield folder
    shutil.rmtree(folder)


def tool(folder, name, body):
    """Put a program on a path of its own."""
    path = folder / name
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_checkpoint_is_written_whole_synced_measured_and_taken_away(disk):
    row = write_checkpoint(disk, 20 << 20, calm)
    assert row["bytes"] == 32 << 20  # whole blocks
    assert row["ended_ns"] - row["started_ns"] >= row["fsync_ns"] > 0
    assert row["slowest_bytes_per_s"] > 0
    assert not os.path.exists(os.path.join(disk, NAME))


def test_a_models_files_are_what_its_index_lists_behind_their_links_and_a_link_to_nothing_is_no_proof(disk):
    store, model = os.path.join(disk, "blobs"), os.path.join(disk, "snapshot")
    os.makedirs(store)
    os.makedirs(model)
    for n in (1, 2, 3):
        with open(os.path.join(store, f"b{n}"), "wb") as file:
            file.write(b"w" * 9000)
        os.symlink(f"../blobs/b{n}", os.path.join(model, f"model-{n}.safetensors"))
    os.symlink("../snapshot", os.path.join(model, "again"))  # leads back
    assert sorted(map(os.path.basename, weight_files(model))) == ["b1", "b2", "b3"]
    assert list(walk_files(model)) == []
    proof = drop_cache(model, links=True)
    assert (proof["files"], proof["bytes"], proof["resident_bytes"]) == (3, 27000, 0)
    with open(os.path.join(store, "b2"), "rb") as file:
        file.read()
    assert residency(model, links=True)["resident_bytes"] == 9000
    with open(os.path.join(model, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}}, file)
    assert sorted(map(os.path.basename, weight_files(model))) == ["b1", "b2"]
    os.unlink(os.path.join(store, "b2"))
    for look in (weight_files, lambda folder: residency(folder, links=True)):
        with pytest.raises(ProbeError, match=r"b2|model-2"):
            look(model)


def test_a_checkpoint_that_does_not_fit_is_refused_with_the_numbers(disk):
    with pytest.raises(Refused, match=r"The checkpoint needs .* GB in .* GB free") as refused:
        write_checkpoint(disk, 1 << 60, calm)
    assert refused.value.kind == "no_room"
    assert os.listdir(disk) == []


def test_the_tier_is_read_by_many_threads_and_every_byte_is_counted_once(disk):
    for n, size in enumerate((5_000_000, 4096, 1, 3_000_001)):
        with open(os.path.join(disk, f"kv{n}"), "wb") as file:
            file.write(os.urandom(size))
    assert read_tier(disk, 1 << 40, 4, 1 << 20, calm)["bytes"] == 8_004_098
    assert read_tier(disk, 6_000_000, 2, 1 << 20, calm)["bytes"] == 6_000_000
    assert read_tier(disk, 1, 1, 1 << 20, calm)["files"] == 1


def test_a_read_ends_with_its_job(disk):
    with open(os.path.join(disk, "kv"), "wb") as file:
        file.write(b"1")

    def ending():
        raise ProbeError("stopped", "The job was asked to stop.")

    with pytest.raises(ProbeError, match="asked to stop"):
        read_tier(disk, 1, 1, 1 << 20, ending)


@pytest.mark.parametrize(
    ("values", "is_steady"),
    [
        ([228.90, 240.21, 240.60, 240.71, 240.71], True),  # the published log of a test (acceptance 2.1)
        ([1, 2, 228.90, 240.21, 240.60, 240.71, 240.71], True),
        ([240.0] * 4, False),
        ([90, 110, 90, 110, 90], False),  # 22 % apart
        ([95, 98, 100, 103, 106], False),  # within 20 %, but rising by 11 %
        ([90.0, 110.0, 100.0, 90.0, 110.0], True),  # exactly 20 % apart: included
        ([0.0] * 5, False),
    ],
)
def test_steady_is_what_snia_says(values, is_steady):
    assert steady(values) is is_steady


def fio_result(iops, error=0):
    side = {"iops": iops, "total_ios": int(iops), "io_bytes": int(iops) * 4096}
    return json.dumps({"jobs": [{"error": error, "read": side, "write": {"iops": 0, "total_ios": 0}}]})


def test_fio_runs_in_rounds_until_it_is_steady(tmp_path):
    tool(tmp_path, "fio", f"[ \"$1\" = --version ] && {{ echo fio-3.33; exit; }}\necho '{fio_result(1000)}'\n")
    row = raw_fio({"filename": "/dev/nvme9n1", "runtime_s": 1, "path_prefix": [str(tmp_path)]}, calm)
    assert (row["rounds_iops"], row["steady"], row["iops_mean"], row["version"]) == ([1000.0] * 5, True, 1000.0, "fio-3.33")
    assert "--readonly" in row["argv"]


def test_fio_that_never_settles_gives_its_rounds_and_no_single_figure(tmp_path):
    tool(tmp_path, "fio", f"[ \"$1\" = --version ] && {{ echo x; exit; }}\nn=$(cat {tmp_path}/n 2>/dev/null || echo 1)\n"
         f"echo $((n * 2)) > {tmp_path}/n\necho '{fio_result(777)}' | sed \"s/777/$n/g\"\n")  # fmt: skip
    row = raw_fio({"filename": "/dev/nvme9n1", "runtime_s": 1, "rounds": 6, "path_prefix": [str(tmp_path)]}, calm)
    assert len(row["rounds_iops"]) == 6
    assert (row["steady"], "bytes" in row, "6 rounds" in row["problem"]) == (False, False, True)


@pytest.mark.parametrize("text", ["fio: io_u error on file /dev/sdb\\n{}", fio_result(1000, error=5), fio_result(0), "{}"])
def test_fio_with_errors_or_without_samples_is_a_problem_and_no_figure(tmp_path, text):
    tool(tmp_path, "fio", f"[ \"$1\" = --version ] && {{ echo x; exit; }}\nprintf '{text}'\n")
    with pytest.raises(ProbeError, match="fio"):
        raw_fio({"filename": "/dev/nvme9n1", "runtime_s": 1, "path_prefix": [str(tmp_path)]}, calm)


def test_fio_never_writes_to_a_device_that_nobody_gave_away():
    for spec in ({"rw": "randwrite"}, {"rw": "randread", "precondition": True}):
        with pytest.raises(ProbeError, match="destroy"):
            raw_fio({"filename": "/dev/nvme0n1", **spec}, calm)


def test_every_pair_and_size_of_the_matrix_is_measured_and_a_table_in_another_unit_is_no_figure(tmp_path):
    head = " #bytes     #iterations    BW peak[{u}]    BW average[{u}]   MsgRate[Mpps]"
    tool(
        tmp_path,
        "ib_write_bw",
        f'case "$*" in *mlx5_1*) u=MiB/sec;; *) u=Gb/sec;; esac\necho "{head.format(u="$u")}"\necho \' 65536 1000 0.00 92.13 0.1\'\n',
    )
    good = bandwidth_matrix({"pairs": [{"device": "mlx5_0", "peer": "10.0.0.2"}], "sizes": [4096, 65536], "path_prefix": [str(tmp_path)]}, calm)
    assert [(row["size"], row["gbit_per_s"]) for row in good["matrix"]] == [(4096, 92.13), (65536, 92.13)]
    bad = bandwidth_matrix({"pairs": [{"device": "mlx5_0", "peer": "a"}, {"device": "mlx5_1", "peer": "b"}], "path_prefix": [str(tmp_path)]}, calm)
    assert "1 of 2 pairs" in bad["problem"]
    assert "bytes" not in bad


def test_the_parts_of_a_host_are_read_from_sysfs_and_what_is_not_there_has_no_row(tmp_path):
    def put(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    put("class/drm/card0/device/mem_info_vram_total", "206141652992\n")
    put("class/drm/card0/device/mem_info_vram_used", "1024\n")
    put("class/drm/card0/device/hwmon/hwmon3/temp1_input", "45000\n")
    put("class/drm/card0/device/hwmon/hwmon3/power1_average", "650000000\n")
    put("class/drm/card0/device/ras/umc_err_count", "ue: 2\nce: 7\n")
    put("class/drm/card1/device/vendor", "0x1234\n")
    assert vitals.accelerators(str(tmp_path)) == {
        "card0": {"memory_used_bytes": 1024, "memory_total_bytes": 206141652992, "temperature_mc": 45000, "power_mw": 650000, "ecc_uncorrected": 2}
    }
    put("class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "100\n")
    assert vitals.ports(str(tmp_path)) == {"mlx5_0/1": {"rx_bytes": 400}}  # counted in words of four bytes
    put("block/nvme0n1/size", "100\n")
    put("block/nvme0n1/stat", "1 2 10 4 5 6 20 8 9 30 11\n")
    put("block/nvme1n1/stat", "broken\n")
    assert vitals.drives(str(tmp_path)) == {"nvme0n1": {"read_bytes": 5120, "write_bytes": 10240, "busy_ms": 30}}
    assert vitals.accelerators(str(tmp_path / "none"), run=lambda: "0, 100, 81920, 5, 40, 70.5, [N/A]\nbroken") == {
        "gpu0": {"memory_used_bytes": 100 << 20, "memory_total_bytes": 81920 << 20, "busy_percent": 5, "temperature_mc": 40000, "power_mw": 70500}
    }


def test_a_medium_that_cannot_be_cold_is_refused_by_its_name_before_anything_is_stored(disk):
    with pytest.raises(Refused, match="tmpfs"):
        require_medium(["/dev/shm"], 1)
    assert require_medium([disk], 1)[0]["free_bytes"] > 1
    with pytest.raises(Refused, match="GB free"):
        require_room(disk, 1 << 60, "The store phase")


def soak_of_72_hours(**more):
    spec = job_spec("soak", 1, kind="soak", limits={"disk_quota_bytes": 2_000_000_000})
    spec["soak"].update(seconds=72 * 3600, telemetry_s=5, tier=16, **more)
    return spec


def test_the_journals_of_72_hours_are_reckoned_by_the_requests_and_not_by_what_they_may_take():
    assert 500_000_000 < journal_bytes(soak_of_72_hours(request_cap=400_000)) < 700_000_000
    fast = soak_of_72_hours(requests_per_s=9.0)  # an engine that answers nine a second makes more than 2 GB of them
    assert 2_100_000_000 < journal_bytes(fast) < 2_500_000_000
    assert journal_bytes(soak_of_72_hours()) > 70_000_000_000
    assert journal_bytes(soak_of_72_hours(requests_per_s=10_000.0)) == journal_bytes(soak_of_72_hours())


def test_a_soak_that_would_end_at_its_quota_is_refused_with_the_numbers_before_anything_starts(disk):
    spec = soak_of_72_hours(requests_per_s=9.0)
    with pytest.raises(Refused, match=r"need 2\.\d+ GB for 72\.0 h, and may take 2\.000 GB.*targets\.disk_quota_bytes") as caught:
        before_job(disk, spec, 0, LocalHost(spec, disk).medium)
    assert caught.value.kind == "over_quota"
    spec["limits"]["disk_quota_bytes"] = 1 << 60
    spec["soak"]["seconds"] = 10**9
    with pytest.raises(Refused, match=r"The soak's journals, their pack and the engine's log needs .* GB free") as caught:
        before_job(disk, spec, 0, LocalHost(spec, disk).medium)
    assert caught.value.kind == "no_room"


def test_what_journals_may_take_by_default_ends_no_soak_at_any_pace_that_an_engine_can_have():
    for tier in (1, 16):
        soak = soak_of_72_hours()["soak"]
        soak["tier"] = tier
        assert default_quota(soak) >= journal_bytes(job_spec("soak", 1, kind="soak", soak=soak)) > 4_000_000_000
    assert default_quota({**soak, "tier": 1024}) == QUOTA_MOST
    assert default_quota(None) == default_quota({**soak, "seconds": 60}) == QUOTA_LEAST
    assert most_bytes("evidence/soak/gpu01/records.jsonl") >= QUOTA_MOST  # the judge reads what a job may write
    assert most_bytes("evidence/soak/gpu01/engine.json") < QUOTA_MOST


def test_a_pack_has_no_largest_file_and_is_plain_ustar_where_all_are_small():
    small, large = pack._member("records.jsonl", 700), pack._member("records.jsonl", 9 << 30)
    assert small.tobuf(pack.FORMAT) == small.tobuf(tarfile.USTAR_FORMAT)
    headers = large.tobuf(pack.FORMAT)
    with pytest.raises(ValueError, match="overflow"):
        large.tobuf(tarfile.USTAR_FORMAT)
    with tarfile.open(fileobj=io.BytesIO(headers), mode="r|") as tar:
        assert tar.next().size == 9 << 30


def test_a_large_pack_is_cut_into_parts_in_order_and_what_an_earlier_collect_left_is_gone(tmp_path):
    path = tmp_path / "pack.tar"
    for data in (bytes(range(256)) * 10, b"x" * 2100, b"x" * 1000, b"y" * 7):
        path.write_bytes(data)
        names = ask.parts_of(str(path), 1000)
        assert sorted(p.name for p in tmp_path.iterdir()) == names
        assert b"".join((tmp_path / name).read_bytes() for name in names) == data
        assert all((tmp_path / name).stat().st_size <= 1000 for name in names)
    assert names == ["pack.tar"]


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"sentinel": {"every_s": 0, "prefixes": 3}}, "soak.sentinel.every_s"),
        ({"sentinel": {"every_s": 1, "prefixes": 0}}, "soak.sentinel.prefixes"),
        ({"injections": [{"label": "x", "at_s": 1, "seconds": 1}]}, "soak.injections[0]"),
        ({"injections": [{"at_s": 1, "seconds": 1, "action": "engine-restart"}]}, "soak.injections[0].label"),
    ],
)
def test_a_mistake_in_the_sentinel_or_an_injection_is_named_before_the_start(part, field):
    spec = job_spec("soak", 1, kind="soak")
    spec["soak"].update(part)
    with pytest.raises(ProbeError, match="not usable") as wrong:
        check(spec)
    assert field in str(wrong.value)


def test_cells_name_their_kinds_once():
    check(job_spec("run", 1, cells=[{"cell": "checkpoint", "bytes": 1}]))
    for cells in ([{"cell": "reboot"}], [{"cell": "fio"}, {"cell": "fio"}], ["fio"]):
        with pytest.raises(ProbeError, match="cells must be"):
            check(job_spec("run", 1, cells=cells))


def test_a_job_that_stores_nothing_and_asks_only_new_prompts_needs_room_for_all_of_them(tmp_path):
    spec = job_spec("placebo", 1, engine={"declared": {"kv_bytes_per_token": 10}, "kv_dirs": [str(ROOT / "var")]}, phases={"warmup": 2})
    assert store_bytes(spec, 0) == 10 * (6 + 8 + 2) * (512 + 16 + 8)
    hits = job_spec("hits", 1, engine=spec["engine"], phases={"expect_hits": True, "canary": True, "warmup": 2})
    assert store_bytes(hits, 0) == 10 * 3 * (512 + 16 + 8)
    spec["engine"]["declared"]["kv_bytes_per_token"] = 10**15
    with pytest.raises(Refused, match="GB free"):
        before_job(str(tmp_path), spec, 0, LocalHost(spec, str(tmp_path)).medium)


def test_a_rotation_that_fits_into_the_caches_above_the_tier_is_refused_where_they_are_known():
    says = {"num_gpu_blocks": 96, "block_tokens": 64, "kv_bytes_per_token": 256}  # 6,144 tokens
    spec = job_spec("soak", 1, kind="soak", engine={"caches": {"l0": True, "l1_bytes": 0}})  # 12 prefixes of 512 tokens
    with pytest.raises(Refused, match="6144 tokens, and the engine's caches above the external tier hold 6144"):
        require_larger_than_caches(spec, says)
    require_larger_than_caches(spec, {**says, "num_gpu_blocks": 95})
    spec["engine"]["caches"]["l1_bytes"] = 64 * 256
    with pytest.raises(Refused):
        require_larger_than_caches(spec, {**says, "num_gpu_blocks": 95})
    require_larger_than_caches(spec, {})  # an engine that does not tell is judged by its counters
    require_larger_than_caches(job_spec("soak", 1, kind="soak"), says)
