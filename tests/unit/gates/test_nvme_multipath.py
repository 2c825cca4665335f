"""Drives behind several controllers and several heads: one drive read as one; two drives with one serial number stay a fault."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from gates.model import GateJudgement, Severity, Verdict
from gates.readers.registry import read
from tests.unit.rack.simulate import check, judged

Files = dict[str, bytes]
SPACE = {"NameSpace": "nvme8n1", "NSID": 1, "PhysicalSize": 7_680_000_000_000, "SectorSize": 512}


def controller(name: str, cntlid: str, **more: Any) -> dict[str, Any]:
    """Return a controller as nvme-cli 2.11 lists it under native multipath: its namespaces stand below the subsystem."""
    own = {"Controller": name, "Cntlid": cntlid, "SerialNumber": "A06A4A6D            ", "ModelNumber": "M", "Firmware": "R221", "Transport": "pcie"}
    return own | {"Address": f"0000:{cntlid}1:00.0", "Namespaces": [], "Paths": [{"Path": f"{name}c1n1", "ANAState": "optimized"}]} | more


def listing(*subsystems: dict[str, Any]) -> bytes:
    return json.dumps({"Devices": [{"HostNQN": "nqn", "Subsystems": list(subsystems)}]}).encode()


def subsystem(*controllers: dict[str, Any], name: str = "nvme-subsys8", **more: Any) -> dict[str, Any]:
    return {"Subsystem": name, "SubsystemNQN": f"nqn.1992-05.com.wdc:{name}", "Controllers": list(controllers), "Namespaces": [SPACE]} | more


def seen(data: bytes, quantity: str) -> list[Any]:
    return [o.value for o in read("nvme-list", data).observations if o.quantity == quantity]


def test_the_controllers_of_one_subsystem_are_ports_of_one_drive():
    data = listing(subsystem(controller("nvme32", "2"), controller("nvme8", "1")))
    assert read("nvme-list", data).problems == ()
    assert seen(data, "drive.serial") == ["A06A4A6D"]
    assert seen(data, "drive.capacity") == [Decimal(7_680_000_000_000)]
    assert {o.labels["controller"] for o in read("nvme-list", data).observations if o.quantity == "drive.serial"} == {"nvme8"}  # as its namespaces
    assert sorted(seen(data, "drive.cntlid")) == ["1", "2"]
    assert len(seen(data, "drive.address")) == 2


def test_without_native_multipath_each_controller_lists_the_namespace_and_it_counts_once():
    own = [controller(f"nvme{n}", str(n), Namespaces=[SPACE | {"NameSpace": f"nvme{n}n1"}]) for n in (8, 32)]
    data = listing(subsystem(*own, Namespaces=[]))
    assert read("nvme-list", data).problems == ()
    assert seen(data, "drive.capacity") == [Decimal(7_680_000_000_000)]


def test_two_subsystems_with_one_serial_number_are_a_problem_and_so_are_ports_that_differ():
    twice = listing(subsystem(controller("nvme8", "1")), subsystem(controller("nvme9", "1"), name="nvme-subsys9"))
    assert [p.code for p in read("nvme-list", twice).problems] == ["duplicate_serial"]
    other = listing(subsystem(controller("nvme8", "1"), controller("nvme32", "2", Firmware="R999")))
    assert [p.code for p in read("nvme-list", other).problems] == ["duplicate_serial"]
    flat = [
        {"DevicePath": f"/dev/nvme{n}n1", "SerialNumber": "S", "ModelNumber": "M", "Firmware": "F", "NameSpace": 1, "PhysicalSize": 1} for n in (0, 1)
    ]
    assert [p.code for p in read("nvme-list", json.dumps({"Devices": flat}).encode()).problems] == ["duplicate_serial"]


def wrong(judgement: GateJudgement) -> list[tuple[str, str]]:
    return [(c.id, c.reason.en) for c in judgement.checks if c.verdict is not Verdict.PASS and c.severity is Severity.BLOCKING]


def edited(files: Files, edit: Any, host: str = "array01", names: tuple[str, ...] = ("nvme-list", "nvme-list-subsys")) -> Files:
    """Return the files with the lists of both steps of a host edited, subsystem by subsystem."""
    out = dict(files)
    for step in ("survey", "storage"):
        for name in names:
            path = f"evidence/{step}/{host}/{name}.out"
            document = json.loads(out[path])
            for one in (document["Devices"] if isinstance(document, dict) else document)[0]["Subsystems"]:
                edit(one)
            out[path] = json.dumps(document).encode()
    return out


def second_port(one: dict[str, Any]) -> None:
    """Give a subsystem a second controller, as a dual-ported drive under native multipath has it."""
    key = "Controllers" if "Controllers" in one else "Paths"
    if key not in one or one[key][0].get("Transport") != "pcie":
        return
    first = one[key][0]
    named = "Controller" if key == "Controllers" else "Name"
    n = int(first[named].removeprefix("nvme")) + 20
    if key == "Controllers":
        one["Namespaces"], first["Namespaces"] = first["Namespaces"], []
    one[key].append(first | {named: f"nvme{n}", "Address": f"0000:f{n % 10}:00.0"} | ({"Cntlid": "1"} if key == "Controllers" else {}))


def test_an_arrival_whose_drives_have_two_controllers_each_passes(whole):
    assert wrong(judged(edited(whole, second_port))) == []


def test_a_second_path_that_is_down_fails_although_the_drive_is_named_after_the_other(whole):
    def down(one: dict[str, Any]) -> None:
        second_port(one)
        if one.get("Paths"):
            one["Paths"][-1]["State"] = "connecting"

    assert check(judged(edited(whole, down)), "g1.drive.paths").verdict is Verdict.FAIL


def test_a_path_that_is_left_out_is_missed_by_the_name_of_its_controller(whole):
    def gone(one: dict[str, Any]) -> None:
        second_port(one)
        if one.get("Paths"):
            one["Paths"].pop()

    result = check(judged(edited(whole, gone)), "g1.drive.paths")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the path by nvme20 is not told" in result.reason.en


def two_heads(files: Files, *, cntlid: str, nqn: str) -> Files:
    """Return the files of an array with a second head that reaches the same drives by ports with this controller id."""
    out = dict(files)
    for path, data in files.items():
        if "/array01/" in path:
            out[path.replace("/array01/", "/array02/")] = data
    for step in ("survey", "storage"):
        out[f"evidence/{step}/array02/host.json"] = json.dumps({"host": "array02", "boot_id": "c", "kernel": "k"}).encode()
    text = out["evidence/survey/array02/dmidecode.out"].decode()
    told = json.loads(out["evidence/inputs.json"])
    told["hosts"]["storage"] = ["array01", "array02"]
    head = next(i for i in told["packing_list"] if i["kind"] == "array")
    told["packing_list"] = [i for i in told["packing_list"] if i["kind"] not in ("nic", "array")] + [
        head,
        head | {"serial": "HEAD2", "host": "array02"},
    ]
    told["order"]["quantity"] = 2
    told["order"]["lines"] = [line | ({"quantity": 2} if line["kind"] == "array" else {}) for line in told["order"]["lines"] if line["kind"] != "nic"]
    for step in ("survey", "storage"):
        out[f"evidence/{step}/array02/dmidecode.out"] = text.replace(head["serial"], "HEAD2").encode()
    out["evidence/inputs.json"] = json.dumps(told).encode()

    def named(one: dict[str, Any]) -> None:
        one["SubsystemNQN"] = nqn + one["Controllers"][0]["SerialNumber"].strip()

    def second(one: dict[str, Any]) -> None:
        one["Controllers"][0]["Cntlid"] = cntlid

    return edited(edited(edited(out, named, "array01", ("nvme-list",)), named, "array02", ("nvme-list",)), second, "array02", ("nvme-list",))


def test_drives_that_two_heads_reach_by_ports_of_their_own_are_there_once(whole):
    judgement = judged(two_heads(whole, cntlid="1", nqn="nqn.1992-05.com.wdc:"))
    assert check(judgement, "g1.serials.drive").verdict is Verdict.PASS
    assert [row for row in wrong(judgement) if "drive" in row[0] or "raw" in row[0]] == []


@pytest.mark.parametrize(("cntlid", "nqn"), [("0", "nqn.1992-05.com.wdc:"), ("1", "nqn.2014.08.org.nvmexpress:1e0f1e0f")])
def test_two_drives_with_one_serial_number_in_two_heads_stay_a_fault(whole, cntlid, nqn):
    result = check(judged(two_heads(whole, cntlid=cntlid, nqn=nqn)), "g1.serials.drive")
    assert result.verdict is Verdict.FAIL
    assert "is reported 2 times (array01, array02)" in result.reason.en
