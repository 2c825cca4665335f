"""The lane that kills worker and playbook host sees what was lost, doubled or begun twice; and it complains of nothing else."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from lanes.faults.account import begun_twice, journals, ran_twice, reply_of

NAMES = [f"evidence/soak/gpu01/{file}" for file in ("started", "heartbeat.json", "phases.jsonl", "records.jsonl", "telemetry.jsonl")]
PROCESS = {"pid": 7, "boot_id": "b"}
PHASES = [{"phase": "store", "tier": 8}, {"phase": "measure", "tier": 8}, {"phase": "measure", "tier": 16}]


def lines(*numbers: int) -> list[dict[str, Any]]:
    return [{"seq": number} for number in numbers]


def bundle(**change: Any) -> zipfile.ZipFile:
    """Return a bundle of one job, as it should be but for what is changed."""
    told = {"started": PROCESS, "heartbeat": PROCESS, "phases": PHASES, "records": lines(0, 1, 2), "telemetry": lines(0, 1)} | change
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, value in zip(NAMES, told.values(), strict=True):
            rows = value if isinstance(value, list) else [value]
            archive.writestr(name, "".join(json.dumps(row) + "\n" for row in rows))
    return zipfile.ZipFile(data)


@pytest.mark.parametrize(
    ("replies", "starts", "wrong"),
    [
        (["started"], 1, False),
        (["started"], 2, False),  # the first was killed before it got anywhere
        (["started", "adopted"], 2, False),
        (["adopted"], 2, False),  # what the first said was lost with it
        (["adopted"], 1, True),
        (["started", "started"], 2, True),
        (["adopted", "started"], 3, True),
        ([], 1, True),
    ],
)
def test_a_job_is_begun_once_however_often_it_is_ordered(replies: list[str], starts: int, wrong: bool) -> None:
    assert bool(list(begun_twice("G3 run-2", replies, starts))) is wrong


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, False),
        ({"heartbeat": {"pid": 8, "boot_id": "b"}}, True),
        ({"phases": [*PHASES, {"phase": "measure", "tier": 16}]}, True),
    ],
)
def test_a_second_process_shows_in_the_heartbeat_or_in_a_phase_that_is_there_twice(change: dict[str, Any], wrong: bool) -> None:
    assert bool(list(ran_twice("G3 run-2", bundle(**change), NAMES))) is wrong


@pytest.mark.parametrize(
    ("change", "records", "telemetry", "complaints"),
    [
        ({}, [0, 1, 2], [0, 1], 0),
        ({"telemetry": lines(0, 2)}, [0, 1, 2], [0, 2], 1),
        ({"records": lines(0, 1, 1)}, [0, 1, 1], [0, 1], 1),
        ({"records": []}, [], [0, 1], 1),
        ({}, [0, 1], [0, 1], 1),  # a live row that never came
        ({}, [0, 2, 1], [0, 1], 1),
        ({}, [0, 1, 2], [0, 0, 1], 1),
    ],
)
def test_every_line_arrives_once_in_the_bundle_and_live(change: dict[str, Any], records: list[int], telemetry: list[int], complaints: int) -> None:
    assert len(list(journals("G4 soak", bundle(**change), NAMES, {"records": records, "telemetry": telemetry}))) == complaints


def test_a_run_without_telemetry_has_no_live_rows_of_it() -> None:
    without = [name for name in NAMES if "telemetry" not in name]
    assert list(journals("G3 run-2", bundle(), without, {"records": [0, 1, 2], "telemetry": []})) == []
    assert len(list(journals("G3 run-2", bundle(), without, {"records": [0, 1, 2], "telemetry": [0]}))) == 1


def test_the_answer_of_a_start_is_read_off_the_line_that_ansible_prints() -> None:
    assert reply_of('ok: [gpu01] => {\r\n    "msg": {\r\n        "job": "x",\r\n        "state": "adopted"\r\n    }\r\n}') == "adopted"


@pytest.mark.parametrize(
    ("live", "complaints"),
    [([0, 2], 0), ([0, 1, 2], 0), ([0, 1], 1), ([1, 2], 1), ([0, 1, 1, 2], 1), ([0, 2, 1], 1), ([], 1), ([0, 2, 7], 1)],
)
def test_of_a_soak_some_lines_are_live_each_once_and_in_order_from_the_first_to_the_last(live: list[int], complaints: int) -> None:
    told = {"records": live, "telemetry": []}
    without = [name for name in NAMES if not name.endswith("telemetry.jsonl")]
    assert len(list(journals("G4 soak", bundle(), without, told, thinned=True))) == complaints
