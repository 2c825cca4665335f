"""What G1 reads as a number: capacities line by line, memory modules that are all told, latencies that are there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.model import Verdict
from gates.readers.registry import read
from tests.unit.rack.simulate import check, judged

Files = dict[str, bytes]
SERVER = "evidence/survey/gpu01/dmidecode.out"
ARRAY = "evidence/survey/array01/dmidecode.out"


def two_lines(files: Files, small: str, large: str) -> Files:
    """Return the files with the drives ordered in two lines: two small ones (half as large) and two large ones."""
    told = json.loads(files["evidence/inputs.json"])
    line = next(x for x in told["order"]["lines"] if x["kind"] == "drive")
    others = [x for x in told["order"]["lines"] if x["kind"] != "drive"]
    told["order"]["lines"] = [*others, line | {"model": "SMALL", "quantity": 2, "capacity": small}, line | {"quantity": 2, "capacity": large}]
    drives = [x for x in told["packing_list"] if x["kind"] == "drive"]
    for item in drives[:2]:
        item["model"] = "SMALL"
    serials = {item["serial"] for item in drives[:2]}
    listing = json.loads(files["evidence/survey/array01/nvme-list.out"])
    for subsystem in listing["Devices"][0]["Subsystems"]:
        controller = subsystem["Controllers"][0]
        if controller["SerialNumber"].strip() in serials:
            controller["ModelNumber"] = "SMALL"
            controller["Namespaces"][0]["PhysicalSize"] //= 2
    out = {"evidence/inputs.json": told, "evidence/survey/array01/nvme-list.out": listing}
    return files | {path: json.dumps(data).encode() for path, data in out.items()}


@pytest.mark.parametrize(("small", "large"), [("3.84 TB", "7.68 TB"), ("3 TB", "7.68 TB"), ("3.84 TB", "7 TB")])
def test_the_capacity_that_is_printed_stands_beside_the_limit_of_its_own_line(whole, small, large):
    result = check(judged(two_lines(whole, small, large)), "g1.capacity")
    assert result.verdict is Verdict.PASS
    assert result.value >= result.limit.low
    assert result.margin == result.value - result.limit.low
    for text in (result.reason.en, result.reason.zh):
        assert "SMALL: 3840" in text
        assert "QF-N7680: 768" in text


def test_a_line_whose_drives_are_too_small_fails_although_another_lines_are_large(whole):
    result = check(judged(two_lines(whole, "4 TB", "7 TB")), "g1.capacity")
    assert result.verdict is Verdict.FAIL
    assert result.value < result.limit.low


@pytest.mark.parametrize("said", ["Unknown", "", "4800"])
def test_a_module_that_does_not_tell_its_speed_is_inconclusive_and_the_machine_is_still_known(whole, said):
    files = dict(whole)
    files[ARRAY] = whole[ARRAY].replace(b"\tSpeed: 4800 MT/s", f"\tSpeed: {said}".encode(), 1)
    assert files[ARRAY] != whole[ARRAY]
    judgement = judged(files)
    assert check(judgement, "g1.memory").verdict is Verdict.INCONCLUSIVE
    assert "Speed" in check(judgement, "g1.memory").reason.en
    assert check(judgement, "g1.serials.array").verdict is Verdict.PASS


def without_module(text: bytes, n: int = 1) -> bytes:
    """Return the output of dmidecode with the first modules gone: their slots say so."""
    return text.replace(b"\tSize: 128 GB", b"\tSize: No Module Installed", n)


def more_modules(text: bytes, n: int) -> bytes:
    block = text[text.index(b"Handle 0x0040") : text.index(b"Handle 0x0041")]
    return text + b"".join(block.replace(b"0x0040", f"0x00{90 + i}".encode()).replace(b"A1", f"B{i}".encode()) for i in range(n))


def test_an_odd_number_of_modules_may_lack_one_and_is_no_pass(whole):
    four = more_modules(whole[SERVER], 2)
    assert check(judged(whole | {SERVER: four}), "g1.memory").verdict is Verdict.PASS
    result = check(judged(whole | {SERVER: without_module(four)}), "g1.memory")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "3 modules in 4 slots" in result.reason.en
    assert "可能缺一条" in result.reason.zh


def test_fewer_modules_than_in_a_host_of_the_same_product_fail(whole):
    told = json.loads(whole["evidence/inputs.json"])
    told["hosts"]["engine"] = ["gpu01", "gpu02"]
    files: dict[str, Any] = dict(whole) | {"evidence/inputs.json": json.dumps(told).encode()}
    files |= {path.replace("/gpu01/", "/gpu02/"): data for path, data in whole.items() if "/gpu01/" in path}
    files["evidence/survey/gpu02/host.json"] = json.dumps({"host": "gpu02", "boot_id": "c", "kernel": "k"}).encode()
    files[SERVER] = more_modules(whole[SERVER], 2)
    result = check(judged(files), "g1.memory")
    assert result.verdict is Verdict.FAIL
    assert "gpu02: 2 memory modules; gpu01, the same product, has 4" in result.reason.en


@pytest.mark.parametrize("edit", [lambda c: c.pop("percentile"), lambda c: c["percentile"].update({"99.000000": 0})])
def test_a_fio_result_without_a_99th_percentile_is_a_problem_and_no_silence(whole, edit):
    document = json.loads(whole["evidence/storage/array01/fio.nvme0n1.out"])
    edit(document["jobs"][0]["read"]["clat_ns"])
    reading = read("fio", json.dumps(document).encode())
    assert any("99.000000" in p.message.en for p in reading.problems)
