"""Drives and accelerators over the soak, each by its own name: heat by their own thresholds, throttling, wear, errors, swaps. They inform."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from gates.plan import parse_plan
from tests.bundles import Evidence, g4_evidence, soak_plan
from tests.unit.gates.part_health import DRIVE, GPU, SERIALS, an_hour, paths_that, told, with_health
from tests.unit.gates.soaks import load

Row = dict[str, Any]


def found(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in document["checks"] if c["id"] == f"g4.{name}")


def judged(evidence: Evidence) -> dict[str, Any]:
    return judge(evidence.bundle())


def drives(edit: Callable[[int, str, Row], Any]) -> dict[str, Any]:
    """Judge a soak of which `edit` changes each drive's row (number of the reading, serial, row); one that returns False takes it away."""

    def change(n: int, row: Row) -> None:
        row["drives"] = {serial: told for serial, told in row["drives"].items() if edit(n, serial, told) is not False}

    return judged(with_health(change))


def gpus(edit: Callable[[int, Row], Any]) -> dict[str, Any]:
    return judged(with_health(lambda n, row: edit(n, row["gpus"]["0"])))


CHECKS = [
    "drive_same",
    "drive_heat",
    "drive_throttle",
    "drive_media_errors",
    "drive_warning",
    "drive_spare",
    "drive_wear",
    "drive_paths",
    "gpu_heat",
    "gpu_throttle",
]


def test_healthy_parts_pass_and_a_soak_without_their_journal_names_what_is_not_told() -> None:
    document = judged(told(an_hour()))
    assert {(found(document, name)["verdict"], found(document, name)["severity"]) for name in CHECKS} == {("pass", "advisory")}
    left = {row.get("check") for row in judged(an_hour())["not_tested"]}
    assert {f"g4.{name}" for name in [*CHECKS, "gpu_throttled"]} <= left


def test_whatever_parts_say_it_informs_and_ends_nothing() -> None:
    document = judged(told(g4_evidence(plan=soak_plan()), lambda n, row: row["drives"][SERIALS[0]].update(temperature_k=359, media_errors=n)))
    assert (document["verdict"], found(document, "drive_heat")["verdict"], found(document, "drive_media_errors")["value"]) == ("pass", "fail", "10")


@pytest.mark.parametrize(
    ("check", "key", "value", "words"),
    [
        ("drive_heat", "temperature_k", 350, "reached 77 °C, its own warning temperature is 77 °C"),
        ("drive_heat", "temperature_k", 358, "its own critical temperature is 85 °C"),
        ("drive_throttle", "warning_minutes", 2, "2 min above warning"),
        ("drive_throttle", "throttle2_s", 30, "30 s of heavy throttling"),
        ("drive_media_errors", "media_errors", 1, "media errors went from 0 to 1"),
        ("drive_warning", "critical_warning", 0b1010, "temperature, read only"),
        ("drive_spare", "spare_percent", 99, "100 % of spare fell to 99 %"),
        ("drive_spare", "spare_percent", 10, "its own threshold is 10 %"),
        ("drive_wear", "used_percent", 3, "percentage used went from 1 to 3"),
    ],
)
def test_what_one_drive_says_from_the_middle_on_fails_its_check_by_serial_number(check: str, key: str, value: int, words: str) -> None:
    answer = found(drives(lambda n, serial, row: row.update({key: value}) if n >= 5 and serial == SERIALS[1] else None), check)
    assert (answer["verdict"], SERIALS[1] in answer["reason"]["en"], words in answer["reason"]["en"]) == ("fail", True, True), answer["reason"]["en"]
    assert SERIALS[0] not in answer["reason"]["zh-CN"]


@pytest.mark.parametrize(
    ("check", "key"), [("drive_media_errors", "media_errors"), ("drive_throttle", "warning_minutes"), ("drive_wear", "used_percent")]
)
def test_a_count_that_goes_back_was_reset_or_is_another_drives_and_is_no_pass(check: str, key: str) -> None:
    answer = found(drives(lambda n, serial, row: row.update({key: 7 if n < 5 else 0})), check)
    assert (answer["verdict"], "went back" in answer["reason"]["en"]) == ("inconclusive", True)


def test_a_swapped_drive_is_named_with_the_one_whose_place_it_took_and_no_growth_is_told_of_either() -> None:
    def swap(n: int, row: Row) -> None:
        if n >= 5:
            row["drives"]["NEW1"] = row["drives"].pop(SERIALS[0])

    document = judged(with_health(swap))
    assert found(document, "drive_same")["verdict"] == "fail"
    assert f"NEW1 came at reading 6 in place of {SERIALS[0]}" in found(document, "drive_same")["reason"]["en"]
    assert found(document, "drive_media_errors")["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("check", "edit"),
    [
        ("drive_heat", lambda n, serial, row: row.pop("warning_k")),
        ("drive_heat", lambda n, serial, row: row.update(temperature_k=37)),
        ("drive_heat", lambda n, serial, row: row.pop("temperature_k") if n == 10 else None),
        ("drive_throttle", lambda n, serial, row: row.pop("critical_minutes")),
        ("drive_spare", lambda n, serial, row: row.update(spare_percent="100")),
        ("drive_same", lambda n, serial, row: serial != SERIALS[1] or n < 5),
    ],
)
def test_what_a_drive_does_not_tell_from_beginning_to_end_or_in_another_unit_is_inconclusive(check: str, edit: Any) -> None:
    answer = found(drives(edit), check)
    assert answer["verdict"] == "inconclusive"
    assert answer["change"]["en"]


@pytest.mark.parametrize(
    ("edit", "verdict", "says"),
    [
        (lambda n, states: states.update(nvme3="connecting") if n == 6 else None, "fail", "nvme3 connecting at reading 7"),
        (lambda n, states: states.pop("nvme3") if n >= 9 else None, "fail", "nvme3 gone at reading 10"),
        (lambda n, states: states.update(nvme9="live") if n >= 6 else None, "pass", ""),
        (lambda n, states: states.update(nvme3=1) if n == 6 else None, "fail", "nvme3 1 at reading 7"),
        (lambda n, states: states.clear() if n == 10 else None, "fail", "gone at reading 11"),
        (lambda n, states: states.clear() if n == 0 else None, "inconclusive", ""),
    ],
)
def test_a_path_to_a_drive_that_is_not_live_at_a_reading_is_named_with_it(edit: Any, verdict: str, says: str) -> None:
    answer = found(judged(paths_that(edit)), "drive_paths")
    assert (answer["verdict"], answer["severity"], says in answer["reason"]["en"]) == (verdict, "advisory", True), answer["reason"]["en"]


def test_a_drive_whose_paths_are_not_told_at_every_reading_is_inconclusive() -> None:
    document = judged(with_health(lambda n, row: row["paths"].pop(SERIALS[1]) if n == 10 else None))
    assert found(document, "drive_paths")["verdict"] == "inconclusive"
    document = judged(with_health(lambda n, row: row.pop("paths")))
    assert "g4.drive_paths" in {row.get("check") for row in document["not_tested"]}


def test_older_drives_without_thermal_management_are_judged_by_their_minutes() -> None:
    def old(n: int, serial: str, row: Row) -> None:
        for key in list(row):
            if key.startswith("throttle"):
                del row[key]

    assert found(drives(old), "drive_throttle")["verdict"] == "pass"


def test_a_gpu_is_held_against_its_own_limits_and_heat_that_throttled_it_is_told_by_cause() -> None:
    hot = found(gpus(lambda n, gpu: gpu["temperature_c"].update(mem=105) if n == 4 else None), "gpu_heat")
    assert (hot["verdict"], hot["value"]) == ("fail", "0")
    assert "105 °C at mem" in hot["reason"]["en"]
    throttled = found(gpus(lambda n, gpu: gpu["throttle"].update(hbm_thermal=n)), "gpu_throttle")
    assert (throttled["verdict"], throttled["reason"]["en"]) == ("fail", "GPU 0: hbm_thermal +10.")
    assert found(gpus(lambda n, gpu: gpu.pop("slowdown_c")), "gpu_heat")["verdict"] == "inconclusive"
    assert found(gpus(lambda n, gpu: gpu["throttle"].update(hbm_thermal=9 - n)), "gpu_throttle")["verdict"] == "inconclusive"


def test_a_gpu_that_counts_nothing_is_judged_by_how_often_it_said_that_it_was_throttled() -> None:
    def said(times: int) -> dict[str, Any]:
        def edit(n: int, gpu: Row) -> None:
            del gpu["throttle"]
            gpu["throttled"] = n < times

        return found(gpus(edit), "gpu_throttled")

    assert (said(0)["verdict"], said(1)["verdict"]) == ("pass", "fail")


@pytest.mark.parametrize("cut", [lambda rows: rows[:4], lambda rows: rows[6:], lambda rows: rows[:1]])
def test_a_stretch_of_load_without_readings_says_nothing_of_any_part(cut: Any) -> None:
    evidence = told(load())  # 24 minutes of the clock
    assert found(judge(evidence.bundle()), "drive_heat")["verdict"] == "pass"
    document = judge(evidence.lines("soak", "health.jsonl", cut, renumber=True).bundle())
    assert {found(document, name)["verdict"] for name in CHECKS} == {"inconclusive"}
    assert "No reading of the parts" in found(document, "drive_heat")["reason"]["en"]


def test_lines_that_are_none_are_inconclusive_and_harm_nothing_else() -> None:
    evidence = told(an_hour())
    path = evidence.path("soak", "health.jsonl")
    for damage in (b"\n\n", b'{"seq": 99, "drives": 7}\n', b"\xff\xfe", b'{"seq":'):
        broken = an_hour()
        broken.files[path] = evidence.files[path] + damage
        assert found(judged(broken.repack("soak")), "drive_heat")["verdict"] == "inconclusive"


def test_residencies_may_begin_anew_with_a_boot_and_a_drives_counts_may_not() -> None:
    from gates.g4.part_series import Readings
    from gates.readers.soak_health import Health

    readings = Readings(None, Health((("a", 0), ("a", 1), ("b", 0))), None)  # type: ignore[arg-type]
    figures = dict(enumerate((4, 5, 2)))
    assert (readings.grown(figures, for_life=False), readings.grown(figures)) == (3, None)
    assert all(readings.grown(dict(enumerate(order))) in (None, 2) for order in itertools.permutations((1, 2, 3)))


def test_a_plan_that_keeps_the_limits_keeps_its_hash() -> None:
    assert parse_plan({"g4": {"drive_wear_max": "1 %", "throttled_share_max": "0.001"}}).hash == parse_plan().hash
    assert parse_plan({"g4": {"drive_wear_max": "2 %"}}).hash != parse_plan().hash
    assert (DRIVE["used_percent"], GPU["throttle"]["prochot"]) == (1, 0)
