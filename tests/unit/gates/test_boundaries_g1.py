"""G1 exactly at each limit, and one unit in the last place of its evidence on either side of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from gates.g1_arrival import judge
from gates.model import Verdict
from tests.unit.gates.limits import numeric_limits, told_on_its_side
from tests.unit.gates.test_fabric_paths import subsystems
from tests.unit.gates.test_g1_more import PERFTEST, with_command
from tests.unit.rack.simulate import bundle_of, demo_plan

Files = dict[str, bytes]
Edit = Callable[[Files, Any], Files]
PASS, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE
ARRAY, GPUS, LOAD = "evidence/survey/array01/", "evidence/survey/gpu01/", "evidence/storage/array01/"
PORT, RATED = "ens8f0np0", 7681501126656  # the interface, and the bytes of a drive, of the lab's rack


def text(path: str, pattern: str, new: Callable[[Any], str] = str) -> Edit:
    """Put `new(value)` where the one group of the pattern first stands in a text."""

    def edit(files: Files, value: Any) -> Files:
        told = files[path].decode()
        found = re.search(pattern, told)
        assert found, f"{pattern} does not stand in {path}"
        return {**files, path: (told[: found.start(1)] + new(value) + told[found.end(1) :]).encode()}

    return edit


def document(path: str, *keys: str | int, new: Callable[[Any], Any] = lambda v: v) -> Edit:
    """Put `new(value)` at a place of a JSON document."""

    def edit(files: Files, value: Any) -> Files:
        root = at = json.loads(files[path])
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = new(value)
        return {**files, path: json.dumps(root).encode()}

    return edit


def health(nvme: str, smartctl: str) -> Edit:
    """Put the value into what both tools tell of one drive."""
    first = document(f"{ARRAY}nvme-smart-log.nvme2.out", nvme)
    second = document(f"{ARRAY}smartctl.nvme2.out", "nvme_smart_health_information_log", smartctl)
    return lambda files, value: second(first(files, value), value)


def rate(files: Files, value: int, *, others: int = 7 * 10**9) -> Files:
    """Let the first drive read so many bytes a second, the others as many as a good drive."""
    for n in range(4):
        path, told = f"{LOAD}fio.nvme{n}n1.out", others if n else value
        side = json.loads(files[path])["jobs"][0]["read"]
        whole = {"bw_bytes": told, "bw": told // 1024, "io_bytes": told * side["runtime"] // 1000}  # rates and totals tell the same
        for key, figure in whole.items():
            files = document(path, "jobs", 0, "read", key)(files, figure)
    return files


def slow_link(files: Files, value: int) -> Files:
    """Read over a link of 2.5 GT/s with 4 lanes, which carries 10^9 B/s exactly."""
    return link("Speed", lambda _: "2.5")(rate(files, value), value)


def link(word: str, new: Callable[[Any], str] = str) -> Edit:
    gap = "" if word == "Speed" else r"Speed [0-9.]+GT/s[^\n]*?"
    return text(f"{LOAD}lspci-under-load.out", rf"0000:41:00\.0 (?:.|\n)*?LnkSta:\s+{gap}{word} x?([0-9.]+)", new)


def receivers(files: Files, value: int) -> Files:
    names = {"receiver_vendor": "李伟", "receiver_customer": "王芳" if value > 1 else "李伟"} | ({"receiver_3": "赵磊"} if value > 2 else {})
    path = "evidence/unpacking/site/form.json"
    form = json.loads(files[path])
    return {**files, path: json.dumps({**form, "form": {**form["form"], **names}}).encode()}


def gpus(files: Files, value: int) -> Files:
    path = f"{GPUS}amd-smi-static.out"
    seen = json.loads(files[path])["gpu_data"]
    return {**files, path: json.dumps({"gpu_data": [{**seen[n % 8], "gpu": n} for n in range(value)]}).encode()}


def perftest(files: Files, value: str) -> Files:
    return with_command(files, "storage", "array01", f"perftest.{PORT}", "perftest", PERFTEST % value.encode())


def stress(files: Files, value: str) -> Files:
    gpus = range(8)
    told = "".join(f"[RESULT] [ 5123{n}.130442] [gst-0] [GPU:: {g}] GFLOPS {v}\n" for n, v in enumerate(("100000", value, "100000")) for g in gpus)
    told += "".join(f"[RESULT] [ 51239.130442] [gst-0] [GPU:: {g}] Target GFLOPS: 90000 met: TRUE\n" for g in gpus)
    return {**files, f"{GPUS}rvs.out": told.encode()}


def logged(files: Files, value: int) -> Files:
    """Let a drive log so many failed commands between the two readings."""
    log = document(f"{LOAD}nvme-error-log.nvme0.out", "errors", 0, new=lambda v: {**UNUSED, "error_count": v})(files, value)
    return document(f"{LOAD}nvme-smart-log.nvme0.out", "num_err_log_entries")(log, value)


def ordered(new: Callable[[Any], Any], key: str, line: int) -> Edit:
    return document("evidence/inputs.json", "order", "lines", line, key, new=new)


def after_reads(key: str, new: Callable[[Any], Any] = lambda v: v) -> Edit:
    """Put the value into what a drive tells behind the raw reads."""
    return document(f"{LOAD}nvme-smart-log.nvme2.out", key, new=new)


def written(files: Files, value: int) -> Files:
    """Let both tools tell so many bytes written, of a drive whose capacity is as many whole data units."""
    listed = json.loads(files[f"{ARRAY}nvme-list.out"])
    space = listed["Devices"][0]["Subsystems"][2]["Controllers"][0]["Namespaces"][0]
    space["PhysicalSize"] = 15_000_000 * 512_000
    files = {**files, f"{ARRAY}nvme-list.out": json.dumps(listed).encode()}
    return health("data_units_written", "data_units_written")(files, value)


PFCWD = b" QUEUE STATUS STORM DETECTED/RESTORED TX OK/DROP\n Ethernet0:3 operational %d/0 0/0\n"
UP_TO_2 = {1: PASS, 2: PASS, 3: FAIL}
NONE = {0: PASS, 1: FAIL}
AER = r"0000:41:00\.0/aer_dev_nonfatal:TOTAL_ERR_NONFATAL (\d+)"
UNUSED = {"error_count": 0, "sqid": 0, "cmdid": 0, "status_field": 0x281, "nsid": 0}


def connected(files: Files, others: int) -> Files:
    """Return the survey of an engine host that is connected over two paths, so many of them over TCP."""
    return {**files, f"{GPUS}nvme-list-subsys.out": subsystems([("tcp" if n < others else "rdma", "live") for n in range(2)])}


# check -> (how its evidence is set to a value, {value: verdict}, differences of the plan)
TABLE: dict[str, tuple[Edit, dict[Any, Verdict], dict[str, Any]]] = {
    "g1.receivers": (receivers, {3: PASS, 2: PASS, 1: FAIL}, {}),
    "g1.capacity": (ordered("{} B".format, "capacity", 1), {RATED - 1: PASS, RATED: PASS, RATED + 1: FAIL}, {}),
    "g1.drive.own_verdict": (
        document(f"{ARRAY}smartctl.nvme2.out", "smartctl", "exit_status"),
        {0: PASS, 8: FAIL, 16: FAIL, 32: FAIL, 64: PASS, 128: FAIL},
        {},
    ),
    "g1.drive.critical_warning": (health("critical_warning", "critical_warning"), UP_TO_2, {"g1": {"drive": {"critical_warning_max": 2}}}),
    "g1.drive.media_errors": (health("media_errors", "media_errors"), UP_TO_2, {"g1": {"drive": {"media_errors_max": 2}}}),
    "g1.drive.power_on_hours": (health("power_on_hours", "power_on_hours"), {199: PASS, 200: PASS, 201: FAIL}, {}),
    "g1.drive.percentage_used": (health("percent_used", "percentage_used"), {0: PASS, 1: PASS, 2: FAIL}, {}),
    "g1.drive.available_spare": (
        health("avail_spare", "available_spare"),
        {100: PASS, 99: PASS, 98: FAIL},
        {"g1": {"drive": {"available_spare_min": "99 %"}}},
    ),
    "g1.drive.written": (written, {14_999_999: PASS, 15_000_000: PASS, 15_000_001: FAIL}, {}),
    "g1.drive.unsafe_shutdowns": (after_reads("unsafe_shutdowns"), {19: PASS, 20: PASS, 21: FAIL}, {}),
    "g1.drive.temperature": (after_reads("temperature"), {342: PASS, 343: PASS, 344: FAIL}, {}),
    "g1.drive.overheated": (after_reads("warning_temp_time"), NONE, {}),
    "g1.kernel.log": (
        lambda files, v: {
            **files,
            f"{GPUS}kernel-log.out": files[f"{GPUS}kernel-log.out"] + b"[ 9.000000] gpu01 kernel: nvme nvme0: controller is down\n" * v,
        },
        NONE,
        {},
    ),
    "g1.link.pfc_storms": (
        lambda files, v: with_command(files, "survey", "array01", "sonic-pfcwd.leaf1", "sonic-pfcwd", PFCWD % v),
        NONE,
        {},
    ),
    "g1.host.governor": (text(f"{GPUS}host-tuning.out", r"scaling_governor:(\w+)", lambda v: "powersave" if v else "performance"), NONE, {}),
    "g1.host.numa": (text(f"{GPUS}host-tuning.out", r"MemTotal:\s+(\d+) kB", lambda v: "0" if v else "1"), NONE, {}),
    "g1.host.cmdline": (
        text(f"{GPUS}host-tuning.out", r" (iommu=\S+)", lambda v: "iommu=off" if v else "iommu=pt"),
        NONE,
        {"g1": {"host": {"cmdline": ["iommu=pt"]}}},
    ),
    "g1.raw.spread": (rate, {6_650_000_001: PASS, 6_650_000_000: PASS, 6_649_999_999: FAIL}, {}),
    "g1.raw.ceiling": (slow_link, {999_999_999: PASS, 10**9: PASS, 10**9 + 1: INCONCLUSIVE}, {}),
    "g1.pcie.width": (link("Width"), {5: PASS, 4: PASS, 3: FAIL}, {}),
    "g1.pcie.speed": (link("Speed"), {"16.1": PASS, "16": PASS, "15.9": FAIL}, {}),
    "g1.rdma.mtu": (text(f"{ARRAY}ibv-devinfo.out", r"active_mtu:\s+(\d+)"), {4097: PASS, 4096: PASS, 4095: FAIL}, {}),
    "g1.rdma.speed": (text(f"{ARRAY}ethtool.{PORT}.out", r"Speed: (\d+)Mb/s"), {100_001: PASS, 100_000: PASS, 99_999: FAIL}, {}),
    "g1.gpu": (gpus, {7: FAIL, 8: PASS, 9: FAIL}, {}),
    "g1.drive.error_log": (
        document(f"{ARRAY}nvme-error-log.nvme0.out", "errors", 0, new=lambda v: {**UNUSED, "error_count": v}),
        NONE,
        {},
    ),
    "g1.drive.error_log_kept": (logged, NONE, {}),
    "g1.drive.self_test": (document(f"{ARRAY}nvme-self-test-log.nvme0.out", "List of Valid Reports", 0, "Self test result"), NONE, {}),
    "g1.drive.paths": (text(f"{ARRAY}nvme-list-subsys.out", r'"State": "(live)"', lambda v: "connecting" if v else "live"), NONE, {}),
    "g1.pcie.aer": (text(f"{ARRAY}aer.out", AER), NONE, {}),
    "g1.rdma.gid": (
        lambda files, v: {
            **files,
            f"{ARRAY}gid-types.out": files[f"{ARRAY}gid-types.out"].replace(b":RoCE v2", b":IB/RoCE v1" if v else b":RoCE v2"),
        },
        NONE,
        {},
    ),
    "g1.link.pfc": (
        text(f"{ARRAY}mlnx-qos.{PORT}.out", r"enabled\s+((?:[01]\s+){8})", lambda v: "   ".join(str(int(n == v)) for n in range(8)) + "   \n"),
        {2: FAIL, 3: PASS, 4: FAIL},
        {},
    ),
    "g1.link.dscp": (
        text(f"{ARRAY}mlnx-qos.{PORT}.out", r"(prio:3 dscp:[\d,]+),", lambda v: "prio:2 dscp:26" if v else "prio:3 dscp:24,26"),
        {0: PASS, 1: FAIL},
        {"g1": {"link": {"dscp": [26]}}},
    ),
    "g1.fabric.transport": (connected, NONE, {"g1": {"fabric": {"transport": "rdma"}}}),
    "g1.link.mtu": (document(f"{ARRAY}ip-link.out", 1, "mtu"), {9001: PASS, 9000: PASS, 8999: FAIL}, {}),
    "g1.link.counters": (text(f"{ARRAY}ethtool-stats.{PORT}.out", r"rx_crc_errors_phy: (\d+)"), NONE, {}),
    "g1.link.fec": (text(f"{ARRAY}ethtool-fec.{PORT}.out", r"uncorrectable_blocks: (\d+)"), NONE, {}),
    "g1.link.optics": (
        text(f"{ARRAY}ethtool-module.{PORT}.out", r"temperature high alarm\s*: (\w+)", lambda v: "On" if v else "Off"),
        NONE,
        {},
    ),
    "g1.rdma.bandwidth": (
        perftest,
        {"90.000000001": PASS, "90.00": PASS, "89.999999999": FAIL, "100.00": PASS, "100.000000001": INCONCLUSIVE},
        {"evidence": {"required": ["rdma_bandwidth"]}},
    ),
    "g1.memory": (text(f"{ARRAY}dmidecode.out", r"Size: (\d+) GB", lambda v: str(64 * v)), {1: PASS, 2: FAIL}, {}),
    "g1.cpu": (text(f"{GPUS}dmidecode-cpu.out", r"Core Enabled: (\d+)", lambda v: str(96 - v)), NONE, {}),
    "g1.gpu.partition": (
        document(f"{GPUS}amd-smi-partition.out", "current_partition", 3, "accelerator_type", new=lambda v: ("SPX", "SPX", "CPX")[v]),
        {1: PASS, 2: FAIL},
        {},
    ),
    "g1.gpu.mesh": (
        document(f"{GPUS}amd-smi-topology.out", "gpu_data", 3, "links", 0, "link_status", new=lambda v: "DISABLED" if v else "ENABLED"),
        NONE,
        {},
    ),
    "g1.gpu.heat": (
        document(f"{GPUS}amd-smi-metric.out", "gpu_data", 3, "temperature", "hotspot", "value", new=lambda left: 100 - left),
        {2: PASS, 1: PASS, 0: FAIL},
        {},
    ),
    "g1.gpu.throttle": (
        document(
            f"{GPUS}amd-smi-metric.out", "gpu_data", 3, "throttle", "hbm_thermal_violation_status", new=lambda v: "ACTIVE" if v else "NOT ACTIVE"
        ),
        NONE,
        {},
    ),
    "g1.gpu.replays": (document(f"{GPUS}amd-smi-metric.out", "gpu_data", 3, "pcie", "replay_count"), NONE, {}),
    "g1.gpu.ecc": (document(f"{GPUS}amd-smi-metric.out", "gpu_data", 3, "ecc", "total_deferred_count"), NONE, {}),
    "g1.gpu.link": (document(f"{GPUS}amd-smi-metric.out", "gpu_data", 3, "pcie", "width"), {16: PASS, 15: FAIL}, {}),
    "g1.gpu.firmware": (
        document(f"{GPUS}amd-smi-firmware.out", "gpu_data", 3, "fw_list", 0, "fw_version", new=lambda v: "148" if v else "149"),
        NONE,
        {},
    ),
    "g1.gpu.stress": (stress, {"95000.01": PASS, "95000.00": PASS, "94999.99": FAIL}, {"evidence": {"required": ["gpu_stress"]}}),
}


@pytest.mark.parametrize(("check", "value", "verdict"), [(c, v, verdict) for c, row in TABLE.items() for v, verdict in row[1].items()])
def test_the_limit_itself_is_kept_and_one_unit_beyond_it_is_not(whole, check, value, verdict):
    edit, _, differences = TABLE[check]
    plan = demo_plan(**differences)
    found = next(c for c in judge(plan, bundle_of(edit(whole, value), plan)).checks if c.id == check)
    assert found.verdict is verdict, found.reason.en
    assert told_on_its_side(found), found


def test_every_number_that_a_check_of_g1_is_held_against_has_its_row():
    assert numeric_limits("G1", demo_plan()) <= set(TABLE)
