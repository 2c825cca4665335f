"""A text that was cut at the end of a line, and one that holds a thing twice, are never read as whole.

Most tools end their text without a mark. A reader knows the fields that its tool always writes; of a list that goes on (counters, devices, log
lines) only the survey's own account of the output tells that its end is missing, and the judge holds each output against that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gates.model import Reading
from gates.readers.registry import read
from tests.unit.readers.test_fixtures import FIXTURES, GOOD, named

TEXTS = [path for path in GOOD if path.suffix == ".txt"]
# reader -> how the last line begins that the tool always writes: without it the text is not whole.
LAST = {
    "aer": "/sys/bus/pci/devices/0000:41:00.0/aer_dev_fatal:TOTAL_ERR_FATAL",
    "diskstats": None,
    "dmidecode": "End Of Table",
    "ethtool": "\tLink detected:",
    "ethtool-driver": "bus-info:",
    "ethtool-fec": "Active FEC encoding:",
    "ethtool-module": "\tVendor SN",
    "ethtool-stats": None,
    "gid-types": None,
    "gpu-ras": "/sys/bus/pci/devices/0000:0c:00.0/ras/umc_err_count:ce",
    "host-tuning": "/proc/cmdline:",
    "ib-counters": None,
    "ibv-devinfo": "\t\t\tlink_layer:",
    "kernel-log": None,
    "lmcache-metrics": None,
    "lspci": "\t\tLnkSta:",
    "mdadm": ("       3     259", "MD_DEVICE_dev_nvme1n1_DEV"),
    "mlnx-qos": "\tenabled",
    "mountstats": "\tbytes:",
    "npu-smi": "| 0     0",
    "npu-smi-board": "        PCIe Bus Info",
    "npu-smi-ecc": "        Chip ID",
    "perfquery": None,
    "perftest": " 65536",
    "rvs": "[RESULT] [ 512390",
    "sglang-metrics": None,
    "sonic-pfcwd": "Ethernet0:3",
    "sysfs-link": "/sys/bus/pci/devices/0000:41:00.0/max_link_width",
    "vllm-metrics": None,
    "xfs-info": "         =                       sunit=128",
}
# Lists of things of one kind: what is cut between two of them is told by the survey's account alone; what is told of each must still be whole.
ONE = {
    "aer": ("address", "side"),
    "diskstats": ("device",),
    "gid-types": ("device", "port", "index"),
    "ib-counters": ("device", "port", "name"),
    "ibv-devinfo": ("device",),
    "lspci": ("address",),
    "npu-smi": ("gpu", "chip"),
    "perfquery": ("port", "name"),
    "sonic-pfcwd": ("queue",),
}
# Every line stands for itself.
OPEN = {"ethtool-fec", "ethtool-module", "ethtool-stats", "kernel-log", "lmcache-metrics", "sglang-metrics", "vllm-metrics"}
REPEATS = {"kernel-log"}  # a kernel says the same line as often as it happens


def facts(reading: Reading) -> list[tuple[Any, ...]]:
    return [(o.quantity, o.value, o.unit, tuple(sorted(o.labels.items()))) for o in reading.observations]


def cuts(path: Path) -> Iterator[bytes]:
    lines = path.read_bytes().splitlines(keepends=True)
    return (b"".join(lines[:n]) for n in range(1, len(lines)))


def test_every_reader_of_texts_names_the_last_line_that_its_tool_always_writes():
    assert {path.parent.name for path in TEXTS} == set(LAST)


@pytest.mark.parametrize("path", [p for p in TEXTS if LAST[p.parent.name]], ids=named)
def test_a_text_that_ends_before_the_last_needed_line_is_a_problem(path):
    lines, needed = path.read_bytes().splitlines(keepends=True), LAST[path.parent.name]
    at = [n for n, line in enumerate(lines) if line.decode().startswith(needed)]
    for end in range(1, at[0] + 1):
        assert read(path.parent.name, b"".join(lines[:end])).problems, lines[end - 1]


@pytest.mark.parametrize("path", [p for p in TEXTS if p.parent.name not in OPEN], ids=named)
def test_a_text_that_is_cut_at_the_end_of_a_line_is_a_problem_or_tells_the_same(path):
    reader, labels = path.parent.name, ONE.get(path.parent.name, ())
    whole = read(reader, path.read_bytes())
    for data in cuts(path):
        reading = read(reader, data)
        if not reading.problems:
            told = {tuple(o.labels.get(key) for key in labels) for o in reading.observations}
            kept = [o for o in whole.observations if tuple(o.labels.get(key) for key in labels) in told]
            assert facts(reading) == facts(Reading(tuple(kept))), data[-80:]


@pytest.mark.parametrize("path", [p for p in TEXTS if p.parent.name not in REPEATS], ids=named)
def test_a_text_that_holds_everything_twice_is_a_problem(path):
    assert read(path.parent.name, path.read_bytes() * 2).problems


@pytest.mark.parametrize("reader", ["rdma-link", "ip-link"])
def test_a_list_that_names_one_port_twice_is_a_duplicate(reader):
    text = next(iter(sorted((FIXTURES / reader).glob("good-*")))).read_text().strip()
    twice = f"[{text[1:-1]}, {text[1:-1]}]".encode()
    assert {p.code for p in read(reader, twice).problems} == {"duplicate"}
