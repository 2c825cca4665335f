"""Outputs as tools really write them, good and bad: fixtures/<reader>/good-*.* are read without a problem, bad-<code>-*.* name it.

The bad ones are known from public reports: error lines before fio's JSON, a temperature in another unit, a blank of 2^63, a table that lost a
column, a version that renamed its list, text where JSON was asked for.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gates.model import Reading
from gates.readers.registry import READERS, read

FIXTURES = Path(__file__).with_name("fixtures")
GOOD = sorted(FIXTURES.glob("*/good-*"))
BAD = sorted(FIXTURES.glob("*/bad-*"))
NEVER_WHOLE = {"long-doc-qa"}  # its file never says whether requests failed, so none of it is read without a problem


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def seen(reader: str, name: str) -> Reading:
    return read(reader, (FIXTURES / reader / name).read_bytes())


def values(reading: Reading, quantity: str, **labels: str) -> list[tuple[Decimal | str, str]]:
    return [(o.value, o.unit) for o in reading.observations if o.quantity == quantity and labels.items() <= o.labels.items()]


@pytest.mark.parametrize("path", GOOD, ids=named)
def test_a_good_output_is_read_without_a_problem(path):
    reading = read(path.parent.name, path.read_bytes())
    assert [p.message.en for p in reading.problems] == []
    assert reading.observations
    assert all(o.unit for o in reading.observations)


@pytest.mark.parametrize("path", BAD, ids=named)
def test_a_known_bad_output_is_named_for_what_it_is(path):
    code = path.name.split("-")[1].split(".")[0]
    problems = read(path.parent.name, path.read_bytes()).problems
    assert code in {p.code for p in problems}
    assert all(p.message.en and p.message.zh for p in problems)


def test_every_reader_has_a_good_and_a_bad_fixture():
    assert set(READERS) - {p.parent.name for p in GOOD} == NEVER_WHOLE
    assert set(READERS) - {p.parent.name for p in BAD} == set()
    assert {p.parent.name for p in (*GOOD, *BAD)} <= set(READERS)


@pytest.mark.parametrize("path", GOOD, ids=named)
def test_a_good_output_cut_in_its_middle_never_raises(path):
    data = path.read_bytes()
    for cut in range(0, len(data), max(1, len(data) // 25)):
        reading = read(path.parent.name, data[:cut])
        assert reading.observations or reading.problems


def test_a_second_json_document_behind_the_first_is_a_problem():
    for path in GOOD:
        if path.suffix == ".json":
            assert {"text_after_json", "several_runs"} & {p.code for p in read(path.parent.name, path.read_bytes() * 2).problems}, path


def test_figures_are_exact_and_in_one_unit_whatever_the_tool_counts_in():
    xfs = seen("xfs-info", "good-raid0-of-4.txt")
    assert values(xfs, "xfs.stripe_unit") == [(Decimal(128 * 4096), "B")]
    assert values(xfs, "xfs.stripe_width") == [(Decimal(512 * 4096), "B")]
    assert values(seen("mdadm", "good-detail.txt"), "md.size") == [(Decimal(30005821440 * 1024), "B")]
    assert values(seen("npu-smi", "good-910.txt"), "gpu.memory", chip="1") == [(Decimal(65536 * 2**20), "B")]
    assert values(seen("npu-smi", "good-910.txt"), "gpu.power") == [(Decimal("162.6"), "W")]
    heat = seen("nvme-smart-log", "good-heat-told.json")
    assert values(heat, "health.warning_temperature_time") == [(Decimal(180), "s")]  # the log counts minutes
    assert values(heat, "health.throttle1_time") == [(Decimal(45), "s")]
    assert values(seen("perftest", "good-gid-of-roce-v2.txt"), "perftest.gid_index") == [(Decimal(3), "1")]
    assert values(seen("dmidecode", "good-one-socket-empty.txt"), "cpu.cores") == [(Decimal(96), "1")]
    assert values(seen("amd-smi-topology", "good-xgmi.json"), "gpu.link_type") == [("XGMI", "text")] * 2
    assert values(seen("amd-smi-partition", "good-spx-nps1.json"), "gpu.memory_partition", gpu="1") == [("NPS1", "text")]
    assert values(seen("nvme-list-subsys", "good-fabrics.json"), "drive.transport") == [("rdma", "text")] * 2
    assert values(seen("ethtool-module", "good-optics.txt"), "optics.temperature") == [(Decimal("308.36"), "K")]
    assert values(seen("amd-smi-metric", "good-list.json"), "gpu.temperature", gpu="0", sensor="hotspot") == [(Decimal("310.15"), "K")]
    assert values(seen("diskstats", "good-three-shapes.txt"), "disk.read_bytes", device="nvme0n1") == [(Decimal(40960000 * 512), "B")]
    assert values(seen("vllm-metrics", "good-one-engine.txt"), "process_resident_memory_bytes") == [(Decimal("1234000000"), "B")]
    assert values(seen("sglang-metrics", "good-hicache.txt"), "sglang:prefill_effective_tokens_total", mode="storage_hit") == [(Decimal(32768), "1")]
    assert values(seen("fio", "good-old-without-bw-bytes.json"), "io.bandwidth") == [(Decimal(2569047 * 1024), "B/s")]
    assert values(seen("fio", "good-old-without-bw-bytes.json"), "io.latency_p99") == [(Decimal(6_324_000), "ns")]  # microseconds before fio 3


def test_the_lines_of_a_kernel_log_are_counted_by_what_they_tell_and_those_of_an_ordinary_start_are_none():
    told = seen("kernel-log", "good-ring-with-faults.txt")
    counts = {o.labels["family"]: int(o.value) for o in told.observations if o.quantity == "kernel.event"}
    assert counts == {
        "nvme_timeout": 4,
        "nvme_fabric": 5,
        "block_io": 2,
        "pcie_uncorrected": 1,
        "pcie_corrected": 2,
        "machine_check": 2,
        "gpu": 1,
        "link_down": 1,
        "hung_task": 3,
        "file_system": 3,
        "out_of_memory": 1,
    }
    calm = [o.value for o in seen("kernel-log", "good-journal.txt").observations if o.quantity == "kernel.event"]
    assert (set(calm), values(seen("kernel-log", "good-journal.txt"), "kernel.whole")) == ({Decimal(0)}, [(Decimal(1), "1")])


def test_both_root_shapes_of_amd_smi_tell_the_same():
    assert seen("amd-smi-metric", "good-list.json") == seen("amd-smi-metric", "good-gpu-data.json")


def test_a_self_test_that_never_ran_is_no_record_and_a_failed_one_is_one():
    assert values(seen("nvme-self-test-log", "good-never-run.json"), "selftest.records") == [(Decimal(0), "1")]
    failed = seen("nvme-self-test-log", "good-failed-segment.json")
    assert values(failed, "selftest.result", record="0") == [(Decimal(7), "1")]
    assert values(failed, "selftest.power_on_hours", record="0") == [(Decimal(0x6EC), "h")]


def test_the_stress_intervals_are_kept_beside_the_tools_own_answer():
    reading = seen("rvs", "good-gst.txt")
    assert [v for v, _ in values(reading, "rvs.flops")] == [Decimal("95123.25"), Decimal("96210.5")]
    assert values(reading, "rvs.met") == [("TRUE", "text")]
