"""Readers of hardware tools on known good and known bad outputs: exact values with units, or a named problem, never a guess."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from gates.model import Reading
from gates.readers.rdma import read_perftest_json
from gates.readers.registry import READERS, read


def codes(reading: Reading) -> set[str]:
    return {p.code for p in reading.problems}


def values(reading: Reading, quantity: str) -> list[Decimal | str]:
    return [o.value for o in reading.observations if o.quantity == quantity]


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def fio(**job: object) -> bytes:
    side = {"bw_bytes": 2630704652, "bw": 2569047, "iops": 2508.8, "total_ios": 75264, "short_ios": 0, "drop_ios": 0}
    side["clat_ns"] = {"min": 1, "max": 9, "mean": 4.5, "stddev": 1.0, "N": 75264, "percentile": {"99.000000": 6324000}}
    idle = {"bw_bytes": 0, "bw": 0, "iops": 0, "total_ios": 0, "clat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}}
    whole = {"jobname": "read", "error": 0, "job options": {"filename": "/dev/nvme0n1", "rw": "read"}, "read": side, "write": idle}
    whole.update(job)
    return as_json({"fio version": "fio-3.36", "jobs": [whole]})


IO_ERROR = b"""fio: io_u error on file /dev/sdb: Input/output error: read offset=184912257024, buflen=4096
fio: pid=5509, err=5/file:io_u.c:1896, func=io_u error, error=Input/output error
"""


def test_fio_reads_bytes_per_second_exactly():
    reading = read("fio", fio())
    assert codes(reading) == set()
    assert values(reading, "io.bandwidth") == [Decimal(2630704652)]
    assert values(reading, "io.latency_p99") == [Decimal(6324000)]


def test_fio_error_lines_before_the_json_are_kept_as_a_problem_that_quotes_them():
    reading = read("fio", IO_ERROR + fio())
    assert codes(reading) == {"text_before_json"}
    assert "io_u error on file /dev/sdb" in reading.problems[0].message.en
    assert values(reading, "io.bandwidth") == [Decimal(2630704652)]


def test_an_old_fio_without_bw_bytes_counts_in_kib():
    side = {"bw": 2569047, "iops": 2508.8, "total_ios": 75264, "clat_ns": {"N": 75264, "percentile": {"99.000000": 5}}}
    assert values(read("fio", fio(read=side)), "io.bandwidth") == [Decimal(2569047 * 1024)]


def test_a_fio_result_whose_two_bandwidths_differ_by_the_factor_1024_is_refused():
    side = {"bw": 2630704, "bw_bytes": 2630704652, "iops": 1, "total_ios": 5, "clat_ns": {"N": 5, "percentile": {"99.000000": 9}}}
    reading = read("fio", fio(read=side))
    assert codes(reading) == {"unit_conflict"}
    assert values(reading, "io.bandwidth") == []


WHOLE = {"io_bytes": 78_920_000_000, "runtime": 30_000, "bw_bytes": 2_630_666_666, "bw": 2_569_010, "iops": 2508.8, "total_ios": 75264}
WHOLE["clat_ns"] = {"N": 75264, "percentile": {"99.000000": 6324000}}


def test_a_fio_result_whose_rates_are_its_totals_over_its_runtime_is_read():
    reading = read("fio", fio(read=WHOLE))
    assert codes(reading) == set()
    assert values(reading, "io.bandwidth") == [Decimal(2_630_666_666)]


@pytest.mark.parametrize(
    "changed",
    [{"io_bytes": 39_460_000_000}, {"runtime": 60_000}, {"bw_bytes": 5_261_333_332, "bw": 5_138_020}, {"iops": 5017.6}, {"total_ios": 37632}],
)
def test_a_fio_result_whose_rates_contradict_its_totals_gives_no_rate(changed: dict[str, object]):
    reading = read("fio", fio(read={**WHOLE, **changed}))
    assert codes(reading) == {"statistics_conflict"}
    assert values(reading, "io.bandwidth") == values(reading, "io.iops") == []


def test_fio_without_samples_gives_no_latency_at_all():
    side = {"bw_bytes": 0, "bw": 0, "iops": 0.0, "total_ios": 0, "clat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}}
    reading = read("fio", fio(read=side))
    assert codes(reading) == {"zero_samples"}
    assert values(reading, "io.latency_p99") == []


MODES = {
    "read": "read",
    "randread": "read",
    "read:8": "read",
    "write": "write",
    "randwrite": "write",
    "trimwrite": "write",
    "randtrimwrite": "write",
    "rw": "read write",
    "readwrite": "read write",
    "randrw": "read write",
    "trim": "",
    "randtrim": "",
}


@pytest.mark.parametrize("direction", ["read", "write"])
@pytest.mark.parametrize("mode", MODES)
def test_a_fio_result_serves_only_for_what_its_job_did(mode: str, direction: str):
    moved = json.loads(fio())["jobs"][0]["read"]
    reading = read("fio", fio(**{"read": None, "write": None, direction: moved, "job options": {"rw": mode}}))
    fits = direction in MODES[mode].split()
    assert ("mode_conflict" in codes(reading)) == (not fits)
    assert bool(values(reading, "io.bandwidth")) == fits
    assert values(reading, "io.mode") == ["rw" if mode == "readwrite" else mode.partition(":")[0]]


@pytest.mark.parametrize(
    "options", [{}, {"rw": "seqread"}, {"rw": ""}, {"rw": None}, {"rw": 1}, {"rw": ["read"]}, {"rw": "read", "readwrite": "write"}, [], None]
)
def test_a_fio_job_that_does_not_tell_what_it_did_is_named(options: object):
    reading = read("fio", fio(**{"job options": options}))
    assert codes(reading) == {"unknown_mode"}
    assert values(reading, "io.mode") == []


def test_the_mode_of_a_fio_job_is_its_own_or_that_of_all_jobs():
    document = json.loads(fio(**{"job options": {"readwrite": "read"}}))
    assert values(read("fio", as_json(document)), "io.mode") == ["read"]
    document["global options"] = {"rw": "randwrite"}
    assert values(read("fio", as_json(document)), "io.mode") == ["read"]
    del document["jobs"][0]["job options"]
    assert codes(read("fio", as_json(document))) == {"mode_conflict"}


def test_every_fio_job_is_read_not_only_the_first():
    first, second = json.loads(fio())["jobs"][0], json.loads(fio(jobname="second", error=5))["jobs"][0]
    reading = read("fio", as_json({"jobs": [first, second]}))
    assert codes(reading) == {"io_error"}
    assert len(values(reading, "io.bandwidth")) == 2


def test_jobs_of_one_name_are_told_apart_by_their_number():
    job = json.loads(fio())["jobs"][0]
    reading = read("fio", as_json({"jobs": [job, job]}))
    assert codes(reading) == set()
    assert [o.labels.get("n") for o in reading.observations if o.quantity == "io.bandwidth"] == [None, "2"]


def test_a_steady_state_that_was_not_attained_is_a_problem_although_fio_ended_well():
    assert codes(read("fio", fio(steadystate={"attained": 0, "criterion": "0.3%"}))) == {"not_steady"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xff\xfe\x00{", "not_text"),
        (b'{"jobs": []}\x00\x00', "not_text"),
        (b"fio: No such file or directory\n", "not_json"),
        (fio()[:-30], "not_json"),
        (fio() + b"\n" + fio(), "text_after_json"),
        (b'{"jobs": []}', "zero_samples"),
        (b'{"jobs": [{"error": NaN}]}', "missing_field"),
        (b'{"jobs": [{"error": -1}]}', "impossible_value"),
        (b'{"jobs": [{"error": true}]}', "not_a_number"),
        (b'{"jobs": [{"error": "N/A"}]}', "not_available"),
        (b"[" * 5000, "not_json"),
        (b'{"jobs": [{"error": ' + b"9" * 5000 + b"}]}", "missing_field"),
    ],
)
def test_a_damaged_result_is_a_named_problem(data, code):
    assert code in codes(read("fio", data))


OLD = {
    "NameSpace": 1,
    "DevicePath": "/dev/nvme0n1",
    "Firmware": "3B4QFXO7",
    "ModelNumber": "M",
    "SerialNumber": "S64D   ",
    "PhysicalSize": 1000,
    "SectorSize": 512,
}
CONTROLLER = {
    "Controller": "nvme0",
    "SerialNumber": "S64D",
    "ModelNumber": "M",
    "Firmware": "3B4QFXO7",
    "Transport": "pcie",
    "Address": "0000:41:00.0",
}
SPACE = {"NameSpace": "nvme0n1", "PhysicalSize": 1000}


@pytest.mark.parametrize(
    "devices",
    [
        [OLD],
        [{"HostNQN": "nqn", "Subsystems": [{"Subsystem": "nvme-subsys0", "Controllers": [{**CONTROLLER, "Namespaces": [SPACE]}]}]}],
        [{"HostNQN": "nqn", "Subsystems": [{"Subsystem": "nvme-subsys0", "Controllers": [CONTROLLER], "Namespaces": [SPACE]}]}],
    ],
    ids=["flat, 2.10", "nested, 2.11", "namespaces below the subsystem"],
)
def test_nvme_list_reads_every_shape_to_the_same_drive(devices):
    reading = read("nvme-list", as_json({"Devices": devices}))
    assert codes(reading) == set()
    assert values(reading, "drive.serial") == ["S64D"]
    assert values(reading, "drive.firmware") == ["3B4QFXO7"]
    assert values(reading, "drive.capacity") == [Decimal(1000)]


def test_two_namespaces_of_one_drive_are_one_drive():
    second = {**OLD, "DevicePath": "/dev/nvme0n2", "NameSpace": 2}
    reading = read("nvme-list", as_json({"Devices": [OLD, second]}))
    assert codes(reading) == set()
    assert values(reading, "drive.serial") == ["S64D"]
    assert len(values(reading, "drive.capacity")) == 2


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"Devices": []}, "empty_inventory"),
        ({}, "unknown_shape"),
        ({"Drives": [OLD]}, "unknown_shape"),
        ({"Devices": [{"Subsystems": [{"Subsystem": "nvme-subsys0"}]}]}, "missing_field"),
        ({"Devices": [{**OLD, "SerialNumber": "  "}]}, "not_available"),
        ({"Devices": [OLD, {**OLD, "DevicePath": "/dev/nvme1n1"}]}, "duplicate_serial"),
        ({"Devices": [{**OLD, "PhysicalSize": -1}]}, "impossible_value"),
    ],
)
def test_an_inventory_that_is_not_certain_is_a_problem(document, code):
    assert code in codes(read("nvme-list", as_json(document)))


LOG = {
    "critical_warning": 0,
    "temperature": 301,
    "avail_spare": 100,
    "spare_thresh": 10,
    "percent_used": 0,
    "media_errors": 0,
    "num_err_log_entries": 0,
}
LOG.update({"power_on_hours": 6, "unsafe_shutdowns": 1, "data_units_written": 1840})


def test_nvme_smart_log_is_in_kelvin_and_counts_data_units_of_512000_bytes():
    reading = read("nvme-smart-log", as_json(LOG))
    assert codes(reading) == set()
    assert values(reading, "health.temperature") == [Decimal(301)]
    assert values(reading, "health.bytes_written") == [Decimal(1840 * 512_000)]


def test_a_temperature_in_degrees_in_the_kelvin_field_is_refused():
    reading = read("nvme-smart-log", as_json({**LOG, "temperature": 28}))
    assert codes(reading) == {"wrong_unit"}
    assert values(reading, "health.temperature") == []


def test_the_critical_warning_is_read_as_a_number_and_as_an_object():
    for raw in (4, {"value": 4, "available_spare": 0, "temp_threshold": 0, "reliability_degraded": 1}):
        assert values(read("nvme-smart-log", as_json({**LOG, "critical_warning": raw})), "health.critical_warning") == [Decimal(4)]


def test_the_sentinel_minus_one_is_no_value():
    reading = read("nvme-smart-log", as_json({**LOG, "percent_used": -1}))
    assert codes(reading) == {"impossible_value"}
    assert values(reading, "health.percentage_used") == []


def smartctl(status: int = 0, **health: object) -> bytes:
    inner = {"critical_warning": 0, "temperature": 28, "available_spare": 100, "percentage_used": 0, "media_errors": 0, "power_on_hours": 6}
    inner.update({"data_units_written": 1840, **health})
    head = {"smartctl": {"exit_status": status}, "serial_number": "S1", "model_name": "M", "firmware_version": "F", "smart_status": {"passed": True}}
    return as_json({**head, "nvme_smart_health_information_log": inner})


def test_smartctl_is_in_degrees_and_agrees_with_nvme_cli_in_kelvin():
    reading = read("smartctl", smartctl())
    assert codes(reading) == set()
    assert values(reading, "health.temperature") == values(read("nvme-smart-log", as_json(LOG)), "health.temperature")


def test_smartctl_tells_a_drive_it_could_not_read_from_a_drive_that_is_failing():
    assert "command_failed" in codes(read("smartctl", smartctl(status=2)))
    failing = read("smartctl", smartctl(status=8))
    assert codes(failing) == set()
    assert values(failing, "health.exit_verdict") == [Decimal(1)]


LSPCI = b"""0000:41:00.0 Non-Volatile memory controller: Maker Drive (rev 01)
\tCapabilities: [70] Express (v2) Endpoint, MSI 00
\t\tDevSta:\tCorrErr+ NonFatalErr- FatalErr- UnsupReq+ AuxPwr- TransPend-
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x4, ASPM L1, Exit Latency L1 <64us
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x2 (downgraded)

"""


def test_lspci_reads_current_and_rated_links():
    reading = read("lspci", LSPCI)
    assert codes(reading) == set()
    found = {q: values(reading, f"pci.{q}") for q in ("speed", "speed_rated", "width", "width_rated", "fatal_error")}
    assert found == {
        "speed": [Decimal(16)],
        "speed_rated": [Decimal(16)],
        "width": [Decimal(2)],
        "width_rated": [Decimal(4)],
        "fatal_error": [Decimal(0)],
    }


def test_lspci_without_the_right_to_read_says_so():
    assert codes(read("lspci", b"41:00.0 Non-Volatile memory controller: X\n\tCapabilities: <access denied>\n")) == {"access_denied"}


def test_sysfs_link_reads_the_units_it_knows_and_refuses_unknown():
    root = "/sys/bus/pci/devices/0000:41:00.0/"
    good = f"{root}current_link_speed:16.0 GT/s PCIe\n{root}current_link_width:4\n{root}max_link_speed:16.0 GT/s PCIe\n{root}max_link_width:4\n"
    reading = read("sysfs-link", good.encode())
    assert codes(reading) == set()
    assert values(reading, "pci.speed") == [Decimal("16.0")]
    assert "not_a_number" in codes(read("sysfs-link", f"{root}current_link_speed:Unknown\n".encode()))


def test_rdma_link_reads_state_and_interface():
    row = {"ifindex": 0, "ifname": "mlx5_0", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "ens8f0np0"}
    reading = read("rdma-link", as_json([row]))
    assert (values(reading, "rdma.state"), values(reading, "rdma.netdev")) == (["ACTIVE"], ["ens8f0np0"])
    assert codes(read("rdma-link", b"[]")) == {"empty_inventory"}


IBV = b"""hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t22.41.1000
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t1024 (3)
\t\t\tlink_layer:\t\tEthernet
"""


def test_ibv_devinfo_reads_the_active_mtu_and_not_the_largest():
    reading = read("ibv-devinfo", IBV)
    assert codes(reading) == set()
    assert values(reading, "rdma.mtu_active") == [Decimal(1024)]
    assert values(reading, "rdma.port_state") == ["PORT_ACTIVE"]
    assert "not_a_number" in codes(read("ibv-devinfo", IBV.replace(b"1024 (3)", b"invalid MTU (0)")))


ETHTOOL = b"""Settings for ens8f0np0:
\tSupported link modes:   25000baseCR/Full
\t                        100000baseCR4/Full
\tAdvertised link modes:  200000baseCR4/Full
\tSpeed: 25000Mb/s
\tDuplex: Full
\tLink detected: yes
"""


def test_ethtool_reads_the_speed_and_the_best_supported_one():
    reading = read("ethtool", ETHTOOL)
    assert codes(reading) == set()
    assert values(reading, "net.speed") == [Decimal(25_000_000_000)]
    assert values(reading, "net.speed_rated") == [Decimal(100_000_000_000)]


@pytest.mark.parametrize("speed", [b"Unknown!", b"65535Mb/s", b"4294967295Mb/s"])
def test_an_unknown_speed_is_no_speed(speed):
    reading = read("ethtool", ETHTOOL.replace(b"25000Mb/s", speed))
    assert values(reading, "net.speed") == []
    assert codes(reading) == {"not_a_number"}


def test_ethtool_driver_gives_the_firmware_without_the_board_id():
    text = b"driver: mlx5_core\nversion: 6.8.0\nfirmware-version: 22.41.1000 (MT_0000000359)\nexpansion-rom-version: \nbus-info: 0000:81:00.0\n"
    assert values(read("ethtool-driver", text), "net.firmware") == ["22.41.1000"]


def test_perftest_without_its_header_line_has_no_unit_and_is_rejected():
    reading = read("perftest", b" 65536 664644 0.00 11586.3 0.185381\n")
    assert codes(reading) == {"unknown_unit"}
    assert values(reading, "perftest.bandwidth") == []


@pytest.mark.parametrize(("unit", "factor"), [("Gb/sec", 10**9), ("MiB/sec", 8 * 1024 * 1024)])
def test_perftest_text_is_read_in_the_unit_of_its_header(unit, factor):
    header = f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"
    text = f"{header}\n 65536      664644           0.00               92.5      \t\t     0.185381\n"
    reading = read("perftest", text.encode())
    assert codes(reading) == set()
    assert values(reading, "perftest.bandwidth") == [Decimal("92.5") * factor]


def test_a_header_that_says_mb_is_doubtful_since_it_meant_mib():
    text = b" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536 664644 0.00 11586.3 0.185381\n"
    assert codes(read("perftest", text)) == {"unknown_unit"}


def test_perftest_json_needs_the_command_line_for_its_unit():
    data = as_json({"test_info": {"Device": "mlx5_0"}, "results": {"MsgSize": 65536, "n_iterations": 5, "BW_average": 92.5, "MsgRate": 0.17}})
    assert codes(read("perftest", data)) == {"unknown_unit"}
    assert values(read_perftest_json(data, report_gbits=True), "perftest.bandwidth") == [Decimal("92.5") * 10**9]
    assert values(read_perftest_json(data, report_gbits=False), "perftest.bandwidth") == [Decimal("92.5") * 8 * 1024 * 1024]


def test_the_unquoted_json_of_old_perftest_builds_is_refused():
    assert codes(read("perftest", b"{\ntest_info: {\ntest: Send_BW,\n}\n}")) == {"not_json"}


GPU = {"gpu": 0, "asic": {"market_name": "AMD Instinct MI308X", "asic_serial": "0x1", "device_id": "0x74a2"}, "bus": {"bdf": "0000:05:00.0"}}
GPU["vram"] = {"size": {"value": 196592, "unit": "MB"}}


@pytest.mark.parametrize("root", [[GPU], {"gpu_data": [GPU]}], ids=["list", "gpu_data"])
def test_amd_smi_reads_both_roots(root):
    reading = read("amd-smi-static", as_json(root))
    assert codes(reading) == set()
    assert values(reading, "gpu.model") == ["AMD Instinct MI308X"]
    assert values(reading, "gpu.memory") == [Decimal(196592 * 1024**2)]


def test_amd_smis_na_is_no_model():
    reading = read("amd-smi-static", as_json([{**GPU, "asic": {**GPU["asic"], "market_name": "N/A"}}]))
    assert codes(reading) == {"not_available"}
    assert values(reading, "gpu.model") == []


DMI = """Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: Maker
\tProduct Name: FX100
\tSerial Number: FX100-1

Handle 0x0040, DMI type 17, 92 bytes
Memory Device
\tSize: {size}
\tLocator: DIMM_A1
\tSpeed: 4800 MT/s
\tVolatile Size: 1 GB

Handle 0xFEFF, DMI type 127, 4 bytes
End Of Table
"""


@pytest.mark.parametrize(("size", "value"), [("32 GB", 32 * 1024**3), ("16384 MB", 16384 * 1024**2), ("No Module Installed", 0)])
def test_dmidecode_normalises_sizes_and_ignores_the_volatile_size(size, value):
    reading = read("dmidecode", DMI.format(size=size).encode())
    assert codes(reading) == set()
    assert values(reading, "memory.size") == [Decimal(value)]
    assert values(reading, "system.serial") == ["FX100-1"]


def test_a_machine_without_a_serial_number_is_a_problem():
    assert "not_available" in codes(read("dmidecode", DMI.format(size="32 GB").replace("FX100-1", "Not Specified").encode()))


def test_every_problem_speaks_both_languages_without_open_placeholders():
    for name in READERS:
        for data in (b"", b"{}", b"[]", b"{", b"hello", b'{"Devices": [{"SerialNumber": "{x}"}]}', b"\xff"):
            for problem in read(name, data).problems:
                assert problem.message.en
                assert any("\u4e00" <= c <= "\u9fff" for c in problem.message.zh)


def test_an_unknown_tool_is_a_problem_that_lists_the_known_ones():
    reading = read("no-such-tool", b"{}")
    assert codes(reading) == {"unknown_tool"}
    assert "smartctl" in reading.problems[0].message.en


def test_a_latency_of_a_fio_whose_unit_is_not_known_is_named_and_not_guessed():
    old = json.loads((Path(__file__).parent / "fixtures/fio/good-old-without-bw-bytes.json").read_text())
    reading = read("fio", json.dumps({**old, "fio version": "fio-4.0"}).encode())
    assert values(reading, "io.latency_p99") == []
    assert [p.code for p in reading.problems] == ["missing_field"]
