"""Cells that no check reads stand beside the checks, in both languages, and decide nothing: fio, RDMA bandwidth, what a checkpoint sustained."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Truth, g2_evidence, g3_evidence, small_plan
from tests.bundles.evidence import Evidence, journal
from tests.unit.gates.test_properties import TINY

Row = dict[str, Any]
FIO: Row = {
    "cell": "fio",
    "cold": True,
    "steady": True,
    "rounds_iops": [1, 100, 102, 98, 100, 100.5],
    "argv": ["fio", "--rw=randread", "--bs=4k", "--iodepth=32"],
}
PAIRS = [
    {"device": "mlx5_0", "peer": "192.0.2.1", "size": 65536, "gbit_per_s": 196.4},
    {"device": "mlx5_1", "peer": "192.0.2.2", "size": 65536, "gbit_per_s": 181.2},
]
IB: Row = {"cell": "ib_write_bw", "cold": True, "matrix": PAIRS}
CHECKPOINT: Row = {"cell": "checkpoint", "cold": True, "slowest_bytes_per_s": 7_400_000_000, "fsync_ns": 250_000_000}


def lines(*rows: Row, run: str = "run-2", evidence: Evidence | None = None) -> tuple[str, list[Row]]:
    """Return (verdict, lines of cells) of a gate in which one run brought these rows."""
    evidence = evidence or g3_evidence(Truth(), small_plan(TINY))
    evidence.files[evidence.path(run, "cells.jsonl")] = journal(list(rows))
    document = judge(evidence.repack(run).bundle())
    return document["verdict"], [line for line in document["figures"]["diagnostics"] if line["kind"].startswith("cell_")]


def test_each_cell_is_a_line_of_its_arm_with_its_figure() -> None:
    verdict, found = lines(FIO, IB, CHECKPOINT)
    assert [(line["kind"], line["values"], line["decides"]) for line in found] == [
        ("cell_fio", {"arm": "candidate", "run-2": "100.1"}, False),
        ("cell_ib_write_bw", {"arm": "candidate", "run-2": "181.2"}, False),
        ("cell_checkpoint", {"arm": "candidate", "run-2": "7400000000"}, False),
    ]
    said = [line["text"] for line in found]
    assert "100.1 IOPS (randread 4k, queue depth 32" in said[0]["en"]
    assert "181.2 to 196.4 Gbit/s over 2 pairs, the slowest mlx5_1 to 192.0.2.2" in said[1]["en"]
    assert "任一秒内不低于 7.400 GB/s，最后一次同步耗时 0.250 s" in said[2]["zh-CN"]
    assert verdict == judge(g3_evidence(Truth(), small_plan(TINY)).bundle())["verdict"]


@pytest.mark.parametrize(
    "row",
    [
        {**FIO, "steady": False},
        {**FIO, "rounds_iops": [100, 100]},
        {**FIO, "rounds_iops": [100, 100, "x", 100, 100]},
        {**FIO, "cold": False},
        {**IB, "matrix": [*PAIRS, {"device": "mlx5_2", "peer": "192.0.2.3", "size": 65536, "problem": "no route"}]},
        {**IB, "matrix": []},
        {**CHECKPOINT, "slowest_bytes_per_s": 0},
        {"cell": "checkpoint", "cold": False, "problem": "The checkpoint needs 5 GB."},
    ],
)
def test_a_cell_without_its_proof_has_no_figure_and_says_so(row: Row) -> None:
    _, (line,) = lines(row)
    assert line["values"] == {"arm": "candidate", "run-2": None}
    assert "not measured" in line["text"]["en"]


def test_g2_shows_them_too() -> None:
    _, found = lines(FIO, run="run-1", evidence=g2_evidence(plan=small_plan(TINY)))
    assert [line["values"] for line in found] == [{"arm": "baseline", "run-1": "100.1"}]


def test_an_invalid_measurement_shows_none() -> None:
    evidence = g3_evidence(Truth(), small_plan(TINY))
    evidence.lines("run-2", "coldness.jsonl", lambda rows: [{**row, "resident_bytes": row["bytes"]} for row in rows])
    verdict, found = lines(FIO, evidence=evidence)
    assert (verdict, found) == ("invalid", [])
