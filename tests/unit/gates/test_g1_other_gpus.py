"""The GPU checks of G1 work from whichever tool a host has: amd-smi, rocm-smi with the kernel's counters, or npu-smi."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.g1_arrival import judge
from gates.model import GateJudgement, Severity, Verdict
from gates.readers.registry import read
from tests.unit.rack.argv import argv_of
from tests.unit.rack.simulate import bundle_of, demo_plan, survey_spec

Files = dict[str, bytes]
SURVEY = "evidence/survey/gpu01/"
ASCEND = {"accelerator": "Ascend 910B3", "count": 8, "framework": "vllm-ascend", "model": "m"}
LINE = "+---------------------------+---------------+-------------------------------------------------------+\n"
HEAD = (
    "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page) |\n"
    "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)         |\n"
)
BOARD = """        NPU ID                         : {n}
        Product Name                   : NA
        Model                          : NA
        Manufacturer                   : Huawei
        Serial Number                  : {serial}
        Software Version               : 23.0.rc3
        Firmware Version               : {firmware}
        PCIe Bus Info                  : 0000:{n}1:00.0
        Chip Count                     : 1
"""
ECC = """        NPU ID                              : {n}
        Chip Count                          : 1

        DDR Single Bit Error Count          : NA
        DDR Double Bit Error Count          : NA
        HBM Single Bit Error Count          : 2
        HBM Double Bit Error Count          : {double}
        HBM Double Bit Aggregate Total Err Cnt : 0
        HBM Double Bit Isolated Pages Count : 0
        Chip ID                             : 0
"""


def npu_info(count: int = 8) -> str:
    rows = "".join(
        f"| {n}     910B3               | OK            | 90.1        40                0    / 0              |\n"
        f"| 0                         | 0000:{n}1:00.0  | 0           0    / 0          3419 / 65536          |\n"
        for n in range(count)
    )
    return f"{LINE}| npu-smi 23.0.rc3          Version: 23.0.rc3 |\n{LINE}{HEAD}{LINE}{rows}{LINE}"


def lspci(addresses: list[str], width: int = 16) -> str:
    return "".join(
        f"{a} Processing accelerators: Device\n\tCapabilities: [70] Express (v2) Endpoint, MSI 00\n"
        f"\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n\t\tLnkSta:\tSpeed 16GT/s, Width x{width}\n\n"
        for a in addresses
    )


def with_tools(files: Files, outputs: dict[str, tuple[str, str]]) -> Files:
    """Return the files with the engine host's outputs of amd-smi replaced by others: name -> (tool, text)."""
    rows = [r for r in json.loads(files[f"{SURVEY}commands.json"]) if not r["tool"].startswith("amd-smi") and r["name"] != "lspci"]
    out = {path: data for path, data in files.items() if "/gpu01/amd-smi" not in path}
    for name, (tool, text) in outputs.items():
        about = {"argv": argv_of(name, tool), "exit_code": 0, "timed_out": False, "stdout": f"{name}.out", "stderr": f"{name}.err"}
        rows.append({"name": name, "tool": tool, **about})
        out[f"{SURVEY}{name}.out"] = text.encode()
    return out | {f"{SURVEY}commands.json": json.dumps(rows).encode()}


def ascend(files: Files, *, serial: str = "S{n}", firmware: str = "6.4.0", double: int = 0, width: int = 16, count: int = 8) -> Files:
    told: dict[str, Any] = json.loads(files["evidence/inputs.json"])
    told["order"]["lines"] = [line for line in told["order"]["lines"] if line["kind"] != "gpu"]
    outputs = {"npu-smi": ("npu-smi", npu_info(count)), "lspci": ("lspci", lspci([f"0000:{n}1:00.0" for n in range(8)], width))}
    for n in range(8):
        last = n == 7
        outputs[f"npu-smi-board.{n}"] = ("npu-smi-board", BOARD.format(n=n, serial=serial.format(n=n), firmware=firmware if last else "6.4.0"))
        outputs[f"npu-smi-ecc.{n}"] = ("npu-smi-ecc", ECC.format(n=n, double=double if last else 0))
    return with_tools(files, outputs) | {"evidence/inputs.json": json.dumps(told).encode()}


def judged(files: Files, platform: dict[str, Any] | None = None) -> GateJudgement:
    plan = demo_plan(**({"platform": platform} if platform else {}))
    return judge(plan, bundle_of(files, plan))


def verdict(judgement: GateJudgement, name: str) -> Verdict:
    return next(c.verdict for c in judgement.checks if c.id == name)


def wrong(judgement: GateJudgement) -> list[tuple[str, str]]:
    return [(c.id, c.reason.en) for c in judgement.checks if c.verdict is not Verdict.PASS and c.severity is Severity.BLOCKING]


def test_an_ascend_host_passes_every_gpu_check(whole):
    judgement = judged(ascend(whole), ASCEND)
    assert wrong(judgement) == []
    assert {verdict(judgement, f"g1.{name}") for name in ("gpu", "gpu.ecc", "gpu.link", "gpu.firmware")} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("faults", "name", "expected"),
    [
        ({"count": 7}, "g1.gpu", Verdict.FAIL),
        ({"double": 1}, "g1.gpu.ecc", Verdict.FAIL),
        ({"firmware": "6.3.0"}, "g1.gpu.firmware", Verdict.FAIL),
        ({"width": 8}, "g1.gpu.link", Verdict.FAIL),
    ],
)
def test_a_fault_of_an_ascend_card_fails_its_own_check(whole, faults, name, expected):
    assert verdict(judged(ascend(whole, **faults), ASCEND), name) is expected


def test_the_serial_numbers_of_ascend_cards_are_read_from_their_boards(whole):
    files = ascend(whole)
    told = json.loads(files["evidence/inputs.json"])
    told["order"]["lines"].append({"kind": "gpu", "model": "Ascend 910B3", "quantity": 8})
    told["packing_list"] += [{"kind": "gpu", "model": "Ascend 910B3", "serial": f"S{n}", "host": "gpu01"} for n in range(8)]
    inputs = {"evidence/inputs.json": json.dumps(told).encode()}
    judgement = judged(files | inputs, ASCEND)
    assert (verdict(judgement, "g1.serials.gpu"), verdict(judgement, "g1.model")) == (Verdict.PASS, Verdict.PASS)
    assert verdict(judged(ascend(whole, serial="NA") | inputs, ASCEND), "g1.serials.gpu") is Verdict.INCONCLUSIVE


def rocm(ue: int = 0, last: str = "SPX") -> dict[str, tuple[str, str]]:
    """Return what a host with rocm-smi alone brings: cards, their partitions, the kernel's own counts, links."""
    addresses = [f"0000:{n}c:00.0" for n in range(8)]
    cards = {
        f"card{n}": {"Card Series": "AMD Instinct MI308X", "Serial Number": f"R{n}", "PCI Bus": a.upper(), "MEC firmware version": "149"}
        for n, a in enumerate(addresses)
    }
    path = "/sys/bus/pci/devices/{a}/ras/umc_err_count"
    ras = "".join(f"{path}:ue: {ue if n == 7 else 0}\n{path}:ce: 1\n".replace("{a}", a) for n, a in enumerate(addresses))
    divided = {f"card{n}": {"Compute Partition": last if n == 7 else "SPX", "Memory Partition": "NPS1"} for n in range(8)}
    told = {"rocm-smi": json.dumps(cards), "rocm-smi-partition": json.dumps(divided), "gpu-ras": ras, "lspci": lspci(addresses)}
    return {name: (name, text) for name, text in told.items()}


def test_a_host_with_rocm_smi_alone_passes_every_gpu_check_and_its_errors_are_named_by_its_own_numbers(whole):
    assert wrong(judged(with_tools(whole, rocm()))) == []
    judgement = judged(with_tools(whole, rocm(ue=3)))
    result = next(c for c in judgement.checks if c.id == "g1.gpu.ecc")
    assert (result.verdict, "GPU 7: 3" in result.reason.en) == (Verdict.FAIL, True)


def test_partitions_are_judged_from_rocm_smi_where_amd_smi_is_missing(whole):
    assert verdict(judged(with_tools(whole, rocm())), "g1.gpu.partition") is Verdict.PASS
    result = next(c for c in judged(with_tools(whole, rocm(last="CPX"))).checks if c.id == "g1.gpu.partition")
    assert (result.verdict, "GPU 7: CPX, NPS1" in result.reason.en) == (Verdict.FAIL, True)
    silent = {name: told for name, told in rocm().items() if name != "rocm-smi-partition"}
    planned = {"accelerator": "MI308X", "framework": "vllm", "model": "m", "partition": {"compute": "SPX", "memory": "NPS1"}}
    assert verdict(judged(with_tools(whole, silent), planned), "g1.gpu.partition") is Verdict.INCONCLUSIVE


def test_a_card_that_counts_no_double_bit_errors_is_a_problem():
    one = b"NPU ID : 0\nChip Count : 1\nHBM Single Bit Error Count : 0\nChip ID : 0\n"
    assert [p.code for p in read("npu-smi-ecc", one).problems] == ["unknown_shape"]
    ras = b"/sys/bus/pci/devices/0000:0c:00.0/ras/umc_err_count:ce: 0\n"
    assert [p.code for p in read("gpu-ras", ras).problems] == ["unknown_shape", "missing_field"]
    assert {p.code for p in read("npu-smi-board", b"NPU ID : 0\nSerial Number : NA\n").problems} == {"not_available", "missing_field"}


AMD_SMI = {f"amd-smi-{what}" for what in ("static", "metric", "firmware", "partition", "topology")}


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ("amd-smi\nrocm-smi\n", AMD_SMI),
        ("rocm-smi\n", {"rocm-smi", "rocm-smi-partition", "gpu-ras"}),
        ("npu-smi\n", {"npu-smi", "npu-smi-board.0", "npu-smi-ecc.0", "npu-smi-board.5", "npu-smi-ecc.5"}),
        ("", AMD_SMI),
    ],
)
def test_the_survey_asks_the_tools_that_the_host_has(tools, names):
    listed = "\tNPU ID                         : 0\n\tNPU ID                         : 5\n"
    seen = f'{{"Devices": []}}\n--- rdma\n[]\n--- tools\n{tools}--- npus\n{listed if "npu" in tools else ""}'
    commands = {c["name"] for c in survey_spec(seen, "survey", "gpu01", ["engine"], [], {})["commands"]}
    assert commands - {"dmidecode", "dmidecode-cpu", "lspci", "kernel-log", "host-tuning", "nvme-list-subsys"} == names
