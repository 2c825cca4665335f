"""Every kind that an engagement file accepts is one that G1 can judge: read from a host, or confirmed by the unpacking form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.engagements.shape import LINE, PIECE
from app.kit.words import WORDS
from app.settings import ROOT
from gates.g1.kinds import KINDS, needs_serial, passive
from gates.model import GateJudgement, Severity, Verdict
from gates.schema import Problems
from tests.unit.rack.simulate import check, judged

Files = dict[str, bytes]
GPUS = "evidence/survey/gpu01/amd-smi-static.out"


def delivered(files: Files, *items: dict[str, Any], ordered: bool = True) -> Files:
    """Return the files with further items in the packing list, and in the order where it does not have them already (the demo orders 8 GPUs)."""
    told = json.loads(files["evidence/inputs.json"])
    told["order"]["lines"] += [{"kind": i["kind"], "model": i["model"], "quantity": 1} for i in items if ordered]
    told["packing_list"] += items
    return {**files, "evidence/inputs.json": json.dumps(told).encode()}


def machine(files: Files, host: str) -> tuple[str, str]:
    """Return serial number and model that a host reports of itself."""
    text = files[f"evidence/survey/{host}/dmidecode.out"].decode()
    system = text.partition("System Information")[2]
    fields = dict(line.strip().split(": ", 1) for line in system.splitlines()[1:8] if ": " in line)
    return fields["Serial Number"], fields["Product Name"]


def gpus(files: Files) -> list[dict[str, Any]]:
    """Return packing list items of the GPUs that the engine host reports."""
    rows = json.loads(files[GPUS])["gpu_data"]
    return [{"kind": "gpu", "model": "MI308X", "serial": row["asic"]["asic_serial"], "host": "gpu01"} for row in rows]


def passes(judgement: GateJudgement) -> list[tuple[str, str]]:
    return [(c.id, c.reason.en) for c in judgement.checks if c.verdict is not Verdict.PASS and c.severity is Severity.BLOCKING]


@pytest.mark.parametrize("kind", KINDS)
def test_an_arrival_with_an_item_of_any_kind_can_pass(whole, kind):
    serial, model = machine(whole, "gpu01")
    files = {
        "array": whole,  # array, drives and adapters are the demo's own delivery
        "drive": whole,
        "nic": whole,
        "gpu": delivered(whole, *gpus(whole), ordered=False),
        "server": delivered(whole, {"kind": "server", "model": model, "serial": serial, "host": "gpu01"}),
    }.get(kind) or delivered(whole, {"kind": kind, "model": "X-1", "serial": "S-1"})
    judgement = judged(files)
    assert passes(judgement) == []
    if passive(kind):
        told = next(n for n in judgement.not_tested if n["check"] == f"g1.serials.{kind}")
        assert KINDS[kind].name.zh in told["title"]["zh-CN"]
    else:
        assert check(judgement, f"g1.serials.{kind}").verdict is Verdict.PASS


@pytest.mark.parametrize("kind", KINDS)
def test_an_engagement_file_accepts_each_kind_and_names_it_in_words(kind):
    problems = Problems()
    PIECE.read({"kind": kind, "model": "X-1", "serial": "S-1"}, "packing_list.0", problems)
    LINE.read({"kind": kind, "model": "X-1", "quantity": 1}, "order.lines.0", problems)
    assert list(problems.found) == []
    assert kind in WORDS["item"]
    for language in ("en", "zh"):
        assert kind in json.loads((ROOT / f"templates/report/words.{language}.json").read_text())["item_kinds"]


def test_an_engagement_file_refuses_a_kind_that_the_judge_does_not_know():
    problems = Problems()
    PIECE.read({"kind": "toaster", "model": "X-1", "serial": "S-1"}, "packing_list.0", problems)
    assert problems.found


def test_a_gpu_on_the_packing_list_that_no_engine_host_reports_is_missing(whole):
    items = gpus(whole)
    items[3]["serial"] = "ABSENT"
    result = check(judged(delivered(whole, *items, ordered=False)), "g1.serials.gpu")
    assert result.verdict is Verdict.FAIL
    assert "ABSENT (MI308X) is missing" in result.reason.en


def test_gpus_whose_serial_numbers_cannot_be_read_are_inconclusive_and_not_missing(whole):
    document = json.loads(whole[GPUS])
    for row in document["gpu_data"]:
        row["asic"]["asic_serial"] = "N/A"
    files = delivered({**whole, GPUS: json.dumps(document).encode()}, *gpus(whole), ordered=False)
    assert check(judged(files), "g1.serials.gpu").verdict is Verdict.INCONCLUSIVE


def test_the_partitions_of_one_gpu_are_one_item_and_two_cards_of_one_serial_number_are_a_fault(whole):
    document = json.loads(whole[GPUS])
    first = document["gpu_data"][0]
    serial, bus = first["asic"]["asic_serial"], first["bus"]["bdf"].rpartition(".")[0]

    def beside(address: str) -> Verdict:
        twin = json.loads(json.dumps(first)) | {"gpu": 8}
        twin["bus"]["bdf"] = address
        files = {**whole, GPUS: json.dumps({"gpu_data": [*document["gpu_data"], twin]}).encode()}
        return check(judged(delivered(files, *gpus(whole), ordered=False)), "g1.serials.gpu").verdict

    assert serial
    assert beside(f"{bus}.1") is Verdict.PASS
    assert beside("0000:fe:00.0") is Verdict.FAIL


def test_a_server_that_another_host_reports_fails_and_one_that_nobody_reports_is_inconclusive_with_what_to_do(whole):
    wrong = check(judged(delivered(whole, {"kind": "server", "model": "X", "serial": "S-1", "host": "gpu01"})), "g1.serials.server")
    assert (wrong.verdict, wrong.reason.en) == (Verdict.FAIL, "gpu01 reports another serial number than S-1.")
    absent = check(judged(delivered(whole, {"kind": "server", "model": "X", "serial": "S-1"})), "g1.serials.server")
    assert absent.verdict is Verdict.INCONCLUSIVE
    assert "name it as a target" in absent.reason.en


WITHOUT = [kind for kind in KINDS if not needs_serial(kind)]


@pytest.mark.parametrize("kind", WITHOUT)
def test_items_that_carry_no_serial_number_are_counted_by_kind_and_model(whole, kind):
    item = {"kind": kind, "model": "X-1", "quantity": 4}
    told = json.loads(delivered(whole, item)["evidence/inputs.json"])
    told["order"]["lines"][-1]["quantity"] = 4
    judgement = judged({**whole, "evidence/inputs.json": json.dumps(told).encode()})
    assert passes(judgement) == []
    assert [row["quantity"] for row in judgement.figures["items"] if row["model"] == "X-1"] == [4]

    told["order"]["lines"][-1]["quantity"] = 5
    result = check(judged({**whole, "evidence/inputs.json": json.dumps(told).encode()}), "g1.order")
    assert (result.verdict, result.reason.en) == (Verdict.FAIL, "X-1: 5 ordered, 4 packed.")


@pytest.mark.parametrize("kind", KINDS)
def test_file_and_judge_agree_on_which_kinds_need_a_serial_number(whole, kind):
    problems = Problems()
    PIECE.read({"kind": kind, "model": "X-1"}, "packing_list[0]", problems)
    told = check(judged(delivered(whole, {"kind": kind, "model": "X-1"})), "g1.order")
    assert (problems.found == []) is (told.verdict is Verdict.PASS) is (kind in WITHOUT)


@pytest.mark.parametrize(
    "change", [{"serial": ""}, {"serial": None}, {"serial": "S-1", "quantity": 2}, {"quantity": 0}, {"quantity": True}, {"quantity": "4"}]
)
def test_an_entry_that_says_neither_one_piece_nor_a_number_of_pieces_never_passes(whole, change):
    item = {"kind": "cable", "model": "X-1", **change}
    problems = Problems()
    PIECE.read(item, "packing_list[0]", problems)
    assert problems.found
    assert check(judged(delivered(whole, item)), "g1.order").verdict is not Verdict.PASS


def test_damage_of_an_item_without_a_serial_number_is_named_by_its_model(whole):
    files = delivered(whole, {"kind": "cable", "model": "DAC 3 m"})
    form = json.loads(files["evidence/unpacking/site/form.json"])
    form["form"]["exceptions"] = "DAC 3 m: 外皮破损"
    result = check(judged({**files, "evidence/unpacking/site/form.json": json.dumps(form).encode()}), "g1.unpacking")
    assert (result.verdict, result.reason.zh) == (Verdict.FAIL, "DAC 3 m到货时有损坏或缺失。")
