"""G1 on the simulated rack: passes when all is well, and fails or stays inconclusive for the right reason, in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gates.g1_arrival import GATE, judge
from gates.model import CheckResult, GateJudgement, Severity, Verdict
from tests.unit.rack.simulate import GOOD_FORM, bundle_of, demo_plan, evidence, rack

Files = dict[str, bytes]
SURVEY = "evidence/survey/array01/"
STORAGE = "evidence/storage/array01/"


def judged(files: Files, **differences: Any) -> GateJudgement:
    plan = demo_plan(**differences)
    return judge(plan, bundle_of(files, plan))


def check(judgement: GateJudgement, name: str) -> CheckResult:
    return next(c for c in judgement.checks if c.id == name)


def verdicts(judgement: GateJudgement, verdict: Verdict) -> set[str]:
    return {c.id for c in judgement.checks if c.verdict is verdict and c.severity is Severity.BLOCKING}


def changed(files: Files, path: str, change: Callable[[Any], Any]) -> Files:
    """Return the files with one JSON document changed."""
    document = json.loads(files[path])
    return {**files, path: json.dumps(change(document) or document).encode()}


def with_fault(name: str, strength: float = 1) -> GateJudgement:
    return judged(evidence({name: strength}))


def test_it_passes_every_check_when_nothing_is_wrong(whole):
    judgement = judged(whole)
    assert [(c.id, c.reason.en) for c in judgement.checks if c.verdict is not Verdict.PASS] == []
    assert len(judgement.checks) >= 25
    unasked = [
        "g1.link.pfc_storms",
        "g1.rdma.bandwidth",
        "g1.link.dscp",
        "g1.fabric.transport",
        "g1.fabric.paths",
    ]  # the plan requires, or names, none
    assert sorted(n["check"] for n in judgement.not_tested) == sorted(unasked)


def test_every_fault_at_strength_zero_passes(whole):
    names = ("missing-drive", "swapped-drive", "used-drive", "wrong-firmware", "narrow-link", "port-down", "na-fields", "json-prefix", "media-errors")
    judgement = judged(evidence(dict.fromkeys(names, 0)))
    assert verdicts(judgement, Verdict.PASS) == verdicts(judged(whole), Verdict.PASS)


def test_a_missing_drive_fails_and_is_named_in_both_languages():
    result = check(with_fault("missing-drive"), "g1.serials.drive")
    assert result.verdict is Verdict.FAIL
    assert "QF26K0A00104 (QF-N7680) is missing" in result.reason.en
    assert "缺少 QF26K0A00104" in result.reason.zh


def test_a_swapped_drive_fails_naming_the_one_that_is_missing_and_the_one_that_is_there_instead():
    result = check(with_fault("swapped-drive"), "g1.serials.drive")
    assert result.verdict is Verdict.FAIL
    for text in (result.reason.en, result.reason.zh):
        assert "QF26K0A00101" in text
        assert "QF25M0B77000" in text


def test_nothing_is_said_about_the_health_of_a_drive_that_is_not_there():
    assert check(with_fault("missing-drive"), "g1.drive.media_errors").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("fault", "strength", "failed", "word"),
    [
        ("used-drive", 1, {"g1.drive.power_on_hours", "g1.drive.percentage_used"}, "QF26K0A00101: power-on time is 8766 h, limit <= 200 h"),
        ("wrong-firmware", 2, {"g1.firmware"}, "QF26K0A00102 runs firmware EDA53W0Q; the order allows EDA57F1Q"),
        ("narrow-link", 1, {"g1.pcie.width", "g1.raw.spread"}, "QF26K0A00101: PCIe width is 2 lanes, rated 4 lanes"),
        ("port-down", 1, {"g1.rdma.state", "g1.rdma.mtu", "g1.rdma.speed"}, "the port is DOWN, DISABLED"),
        ("json-prefix", 1, {"g1.raw.io"}, "io_u error on file /dev/nvme0n1"),
        ("media-errors", 3, {"g1.drive.media_errors"}, "QF26K0A00101: number of media errors is 3, limit <= 0"),
    ],
)
def test_each_fault_of_the_rack_fails_its_own_checks_and_no_other(fault, strength, failed, word):
    judgement = with_fault(fault, strength)
    assert verdicts(judgement, Verdict.FAIL) == failed
    assert any(word in c.reason.en for c in judgement.checks if c.id in failed)


def test_a_gpu_that_reports_na_as_its_name_is_inconclusive_and_not_a_pass():
    result = check(with_fault("na-fields"), "g1.gpu")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "N/A" in result.reason.en


def test_a_missing_gpu_fails(whole):
    fewer = changed(whole, "evidence/survey/gpu01/amd-smi-static.out", lambda d: {"gpu_data": d["gpu_data"][:7]})
    result = check(judged(fewer), "g1.gpu")
    assert result.verdict is Verdict.FAIL
    assert "8 expected, 7 found" in result.reason.en


def test_the_old_shape_of_nvme_list_is_judged_the_same():
    described = rack()
    described["tools"]["nvme"] = "2.10"
    judgement = judged(evidence(described=described))
    assert [(c.id, c.reason.en) for c in judgement.checks if c.verdict is not Verdict.PASS] == []


@pytest.mark.parametrize(
    "name",
    [
        "nvme-list",
        "nvme-smart-log.nvme2",
        "smartctl.nvme2",
        "rdma-link",
        "ibv-devinfo",
        "ethtool.ens8f0np0",
        "ethtool-driver.ens8f0np0",
        "lspci",
        "dmidecode",
    ],
)
@pytest.mark.parametrize("how", ["gone", "empty", "cut", "exit code", "timed out"])
def test_output_that_is_gone_cut_or_of_a_failed_command_never_passes(whole, name, how):
    path = f"{SURVEY}{name}.out"
    files = dict(whole)
    if how == "gone":
        del files[path]
    elif how == "empty":
        files[path] = b""
    elif how == "cut":
        files[path] = files[path][: len(files[path]) // 2 if files[path][:1] in b"[{" else 40]
    else:
        key, value = ("exit_code", 1) if how == "exit code" else ("timed_out", True)
        files = changed(files, f"{SURVEY}commands.json", lambda rows: [{**r, key: value} if r["name"] == name else r for r in rows])
    judgement = judged(files)
    assert verdicts(judgement, Verdict.INCONCLUSIVE)
    assert not verdicts(judgement, Verdict.FAIL)


def test_a_host_without_evidence_is_inconclusive_by_name(whole):
    files = {path: data for path, data in whole.items() if "/gpu01/" not in path}
    judgement = judged(files)
    assert check(judgement, "g1.hosts").verdict is Verdict.INCONCLUSIVE
    assert "gpu01" in check(judgement, "g1.hosts").reason.zh
    assert check(judgement, "g1.gpu").verdict is Verdict.INCONCLUSIVE


def test_a_pack_of_another_host_under_this_name_is_not_taken(whole):
    files = changed(whole, f"{SURVEY}host.json", lambda d: {**d, "host": "array02"})
    assert check(judged(files), "g1.serials.drive").verdict is Verdict.INCONCLUSIVE


def test_kelvin_read_as_degrees_is_seen_as_a_wrong_unit(whole):
    files = changed(whole, f"{SURVEY}nvme-smart-log.nvme0.out", lambda d: {**d, "temperature": 35})
    result = check(judged(files), "g1.drive.agreement")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the unit is doubtful" in result.reason.en


def test_two_tools_that_disagree_are_inconclusive_and_the_worse_figure_counts(whole):
    def one_error(d):
        d["nvme_smart_health_information_log"]["media_errors"] = 1

    judgement = judged(changed(whole, f"{SURVEY}smartctl.nvme1.out", one_error))
    assert check(judgement, "g1.drive.agreement").verdict is Verdict.INCONCLUSIVE
    assert check(judgement, "g1.drive.media_errors").verdict is Verdict.FAIL


def test_the_limits_are_the_plans(whole):
    judgement = judged(whole, g1={"drive": {"power_on_hours_max": "5 h"}, "link": {"mtu_min": "8192 B"}, "drive_spread_max": "0.001"})
    assert verdicts(judgement, Verdict.FAIL) == {"g1.drive.power_on_hours", "g1.rdma.mtu", "g1.raw.spread"}
    assert check(judgement, "g1.drive.power_on_hours").source == "g1.drive.power_on_hours_max"


def test_power_on_hours_exactly_at_the_limit_are_met(whole):
    judgement = judged(whole, g1={"drive": {"power_on_hours_max": "6 h"}})
    assert check(judgement, "g1.drive.power_on_hours").verdict is Verdict.PASS


def test_a_link_read_while_the_drives_were_idle_tells_nothing(whole):
    path = f"{STORAGE}lspci-under-load.out"
    files = {**whole, path: whole[path].replace(b"after reading: yes", b"after reading: no")}
    assert check(judged(files), "g1.pcie.speed").verdict is Verdict.INCONCLUSIVE


def test_the_same_drives_read_idle_would_show_their_low_speed(whole):
    files = {
        **whole,
        f"{STORAGE}lspci-under-load.out": b"# load alive before reading: yes\n" + whole[f"{SURVEY}lspci.out"] + b"# load alive after reading: yes\n",
    }
    assert "PCIe speed is 2.5 GT/s, rated 16 GT/s" in check(judged(files), "g1.pcie.speed").reason.en


def test_a_fio_result_without_samples_is_not_a_fast_drive(whole):
    def no_samples(d):
        d["jobs"][0]["read"]["clat_ns"] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}

    judgement = judged(changed(whole, f"{STORAGE}fio.nvme1n1.out", no_samples))
    assert check(judgement, "g1.raw.io").verdict is Verdict.INCONCLUSIVE
    assert check(judgement, "g1.raw.spread").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("mode", "says"), [("randread", "randread, not of sequential reads"), ("randwrite", "read operations"), (None, "rw is -")])
def test_a_fio_result_of_another_work_says_nothing_of_sequential_reads(whole, mode, says):
    files = changed(whole, f"{STORAGE}fio.nvme1n1.out", lambda d: d["jobs"][0]["job options"].update(rw=mode))
    result = check(judged(files), "g1.raw.io")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert says in result.reason.en


def test_a_fio_job_that_ended_with_an_error_fails(whole):
    def broken(d):
        d["jobs"][0]["error"] = 5

    assert check(judged(changed(whole, f"{STORAGE}fio.nvme1n1.out", broken)), "g1.raw.io").verdict is Verdict.FAIL


def test_a_result_that_names_another_device_is_not_this_drives(whole):
    files = {**whole, f"{STORAGE}fio.nvme1n1.out": whole[f"{STORAGE}fio.nvme0n1.out"]}
    assert check(judged(files), "g1.raw.io").verdict is Verdict.INCONCLUSIVE


def test_drives_in_another_order_than_at_the_survey_are_still_told_by_their_serial_numbers():
    described = rack()
    drives = described["hosts"]["array01"]["drives"]
    files = evidence()
    drives.reverse()
    files.update({k: v for k, v in evidence(described=described).items() if k.startswith("evidence/storage/")})
    judgement = judged(files)
    assert check(judgement, "g1.raw.io").verdict is Verdict.PASS


def order_changed(whole: Files, change: Callable[[Any], Any]) -> GateJudgement:
    return judged(changed(whole, "evidence/inputs.json", change))


def test_less_packed_than_ordered_fails_with_both_numbers(whole):
    def fewer(d):
        d["packing_list"] = [item for item in d["packing_list"] if item["serial"] != "QF26K0A00103"]

    judgement = order_changed(whole, fewer)
    assert "QF-N7680: 4 ordered, 3 packed" in check(judgement, "g1.order").reason.en
    assert "QF26K0A00103 (QF-N7680) is in array01 and not on the packing list" in check(judgement, "g1.serials.drive").reason.en


def test_another_model_than_ordered_fails(whole):
    def other(d):
        d["packing_list"][1]["model"] = "QF-N3840"

    judgement = order_changed(whole, other)
    assert "QF-N3840 (QF26K0A00101) is packed but was not ordered" in check(judgement, "g1.order").reason.en
    assert check(judgement, "g1.model").verdict is Verdict.FAIL


def test_a_drive_in_another_array_than_packed_for_fails(whole):
    def moved(d):
        d["packing_list"][1]["host"] = "array02"

    assert "is in array01, not in array02" in check(order_changed(whole, moved), "g1.serials.drive").reason.en


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("order"),
        lambda d: d.update(packing_list=[]),
        lambda d: d["order"]["lines"][1].update(quantity="four"),
        lambda d: d["order"].update(quantity=2),
        lambda d: d["order"].update(model="FX200"),
        lambda d: d["order"].update(quantity=True),
        lambda d: d["packing_list"][0].update(host=["array01"]),
        lambda d: d["order"]["lines"][1].update(capacity="7.68 furlongs"),
        lambda d: d["packing_list"][2].update(serial=""),
        lambda d: d["packing_list"].append(dict(d["packing_list"][2])),
        lambda d: d["packing_list"].append({"kind": "turbine", "model": "T", "serial": "T1"}),
        lambda d: d["hosts"].update(storage=[]),
        lambda d: d["hosts"].update(engine=[]),
    ],
)
def test_an_order_or_a_packing_list_that_cannot_be_used_never_passes(whole, change):
    def apply(d):
        change(d)

    judgement = order_changed(whole, apply)
    assert verdicts(judgement, Verdict.FAIL) | verdicts(judgement, Verdict.INCONCLUSIVE)


def form(whole: Files, **answers: Any) -> GateJudgement:
    filled = {k: v for k, v in {**GOOD_FORM, **answers}.items() if v is not None}
    return judged({**whole, "evidence/unpacking/site/form.json": json.dumps({"form": filled}).encode()})


def test_blocking_damage_fails_and_minor_marks_do_not(whole):
    assert check(form(whole, shock_tag="tripped"), "g1.unpacking").verdict is Verdict.FAIL
    assert "防震、防倾标签：已触发" in check(form(whole, shock_tag="tripped"), "g1.unpacking").reason.zh
    assert check(form(whole, packaging="minor"), "g1.unpacking").verdict is Verdict.PASS


def test_damage_of_one_item_is_named_by_its_serial_number(whole):
    result = check(form(whole, exceptions="qf26k0a00102，外壳凹陷"), "g1.unpacking")
    assert result.verdict is Verdict.FAIL
    assert "QF-N7680 (QF26K0A00102) arrived damaged or incomplete" in result.reason.en


def test_words_about_damage_that_name_no_delivered_item_are_not_passed_over(whole):
    assert check(form(whole, exceptions="the second drive from the left"), "g1.unpacking").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("answers", [{"packaging": None}, {"packaging": "perfect"}, {"accessories": "N/A"}, {"serials_match": None}])
def test_an_unanswered_form_is_inconclusive(whole, answers):
    assert check(form(whole, **answers), "g1.unpacking").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ({"receiver_customer": ""}, Verdict.INCONCLUSIVE),
        ({"receiver_customer": "N/A"}, Verdict.INCONCLUSIVE),
        ({"receiver_customer": " 李伟 "}, Verdict.FAIL),
        ({"receiver_vendor": "Li  Wei", "receiver_customer": "li wei"}, Verdict.FAIL),
        ({"receiver_vendor": {"name": "李伟", "login": "li.wei"}}, Verdict.PASS),
        ({"receiver_customer": "李\u200b伟\u2060"}, Verdict.FAIL),
        ({"receiver_customer": "\u200b\u3164"}, Verdict.INCONCLUSIVE),
        ({"receiver_vendor": "Li {Wei}", "receiver_customer": "{n} {0} {"}, Verdict.PASS),
    ],
)
def test_two_different_people_receive_the_goods(whole, answers, verdict):
    assert check(form(whole, **answers), "g1.receivers").verdict is verdict


def test_without_a_form_nothing_is_received(whole):
    files = {path: data for path, data in whole.items() if "/unpacking/" not in path}
    judgement = judged(files)
    assert {"g1.unpacking", "g1.receivers"} <= verdicts(judgement, Verdict.INCONCLUSIVE)


def test_every_sentence_and_title_is_filled_in_both_languages(whole):
    for files in (whole, evidence({"missing-drive": 1, "port-down": 1, "json-prefix": 1, "na-fields": 2, "used-drive": 1})):
        for result in judged(files).checks:
            for text in (result.title, result.reason):
                assert "{" not in text.en + text.zh
                assert text.zh != text.en or not text.en.isascii()
                assert any("\u4e00" <= c <= "\u9fff" for c in text.zh), text


def test_every_check_quotes_existing_evidence_and_a_field_of_the_plan(whole):
    for result in judged(whole).checks:
        assert result.source
        assert result.evidence
        assert set(result.evidence) <= set(whole)


def test_the_steps_are_data_that_a_page_can_render():
    steps = GATE.steps(demo_plan())
    assert [s.key for s in steps] == ["unpacking", "survey", "storage", "judge", "report"]
    fields = json.loads(json.dumps(steps[0].params))["form"]
    assert [f["name"] for f in fields if f["type"] == "person"] == ["receiver_vendor", "receiver_customer"]
    assert all(f["label"]["en"] and f["label"]["zh-CN"] for f in fields)
    assert all(f["choices"][0]["good"] for f in fields if f["type"] == "choice")


def test_a_plan_without_accelerator_and_an_order_without_gpus_says_that_gpus_were_not_tested(whole):
    def no_gpus(d):
        d["order"]["lines"] = [line for line in d["order"]["lines"] if line["kind"] != "gpu"]

    judgement = judged(changed(whole, "evidence/inputs.json", no_gpus), platform={"accelerator": None})
    assert "g1.gpu" in [n["check"] for n in judgement.not_tested]


def test_what_was_not_tested_says_whether_the_order_or_the_packing_list_lacks_it(whole):
    """Where the packing list lacks every drive, nobody may read that the order did not state what it states."""

    def told(judgement: GateJudgement) -> dict[str, str]:
        return {row["check"]: row["reason"]["en"] for row in judgement.not_tested}

    def without_drives(d: dict[str, Any]) -> None:
        d["packing_list"] = [item for item in d["packing_list"] if item["kind"] != "drive"]

    def without_readable(d: dict[str, Any]) -> None:
        d["packing_list"] = [{"kind": "cable", "model": "DAC", "quantity": 1}]

    def one_drive(d: dict[str, Any]) -> None:
        without_drives(d)
        d["packing_list"].append({"kind": "drive", "model": "QF-N7680", "serial": "QF26K0A00101", "host": "array01"})

    def silent_order(d: dict[str, Any]) -> None:
        for line in d["order"]["lines"]:
            line.pop("capacity", None)
            line.pop("firmware", None)

    packed = told(order_changed(whole, without_drives))
    assert packed["g1.capacity"] == "The packing list holds no drive of which the order states the capacity."
    assert packed["g1.raw.spread"] == "The packing list holds no drive."
    assert "The packing list holds no part" in told(order_changed(whole, without_readable))["g1.firmware"]
    assert told(order_changed(whole, one_drive))["g1.raw.spread"] == "The packing list holds only one drive of each model."
    ordered = told(order_changed(whole, silent_order))
    assert ordered["g1.capacity"] == "The order states no capacity of a drive."
    assert ordered["g1.firmware"] == "The order names no firmware."
