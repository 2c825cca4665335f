"""Cells behind a measured run, on the simulated engine with real files: what they moved, that it was cold, and what is no figure."""

import hashlib
import json
import sys

import pytest

from lanes.probe.test_probe_run import PHASES, run, with_lab
from tests.unit.probe.kit import ROOT, build, lines, probe, workplace


@pytest.fixture
def place():
    """Give a folder on the checkout's disk with the zipapp; whatever still runs from it at the end is ended."""
    with workplace("cells-") as folder:
        build(folder)
        yield folder


def test_cells_come_behind_the_measurement_cold_with_bytes_and_times_and_a_missing_tool_is_said(place):
    weights = place / "weights"
    weights.mkdir()
    (place / "blob").write_bytes(b"w" * (3 << 20))
    (weights / "model-00001.safetensors").symlink_to(place / "blob")  # as a store of models lays them out
    wanted = [
        {"cell": "checkpoint", "bytes": 1 << 20},
        {"cell": "tier_read", "bytes": 1 << 16, "threads": 2},
        {"cell": "ib_write_bw", "pairs": [{"device": "mlx5_0", "peer": "192.0.2.1"}]},
        {"cell": "model_load"},
    ]
    spec = with_lab(place, "cells", phases={**PHASES, "canary": False}, cells=wanted)
    spec["engine"]["model_dir"] = str(weights)
    started = json.loads((place / "engine-spec.json").read_text())
    started["argv"] = ["sh", "-c", f'cat {weights}/* > /dev/null; exec "$@"', "sh", *started["argv"]]  # what an engine does that has weights
    (place / "engine-spec.json").write_text(json.dumps(started))
    folder, end = run(place, spec)
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    rows = {row["cell"]: row for row in lines(folder / "cells.jsonl")}
    assert list(rows) == ["checkpoint", "tier_read", "ib_write_bw", "model_load"]
    for kind, size in (("checkpoint", 16 << 20), ("tier_read", 1 << 16), ("model_load", 3 << 20)):
        row = rows[kind]
        assert (row["bytes"], row["cold"], row["ended_ns"] > row["started_ns"]) == (size, True, True), row
    load = rows["model_load"]
    assert load["disk_after"]["read_sectors"] - load["disk_before"]["read_sectors"] >= (3 << 20) // 512  # cold, so the device was asked
    assert rows["model_load"]["started_ns"] < rows["model_load"]["healthy_ns"] < rows["model_load"]["ended_ns"]
    assert rows["tier_read"]["proof"]["resident_bytes"] == 0
    assert "not installed" in rows["ib_write_bw"]["matrix"][0]["problem"]
    assert (rows["ib_write_bw"]["cold"], "bytes" in rows["ib_write_bw"]) == (False, False)
    phases = lines(folder / "phases.jsonl")
    measured = max(p["ended_ns"] for p in phases if p["phase"] == "measure")
    assert all(p["started_ns"] >= measured for p in phases if p["phase"] == "cell")
    assert [p["ok"] for p in phases if p["phase"] == "cell"] == [True, True, False, True]
    assert "cells.jsonl" in {row["path"] for row in packed(place, "cells")}


def packed(place, job):
    return probe(place / "probe.pyz", "pack", "--root", place / "root", "--job", job, "--out", place / "pack.tar")["files"]


def test_a_tier_with_too_few_bytes_is_told_and_is_not_cold(place):
    spec = with_lab(place, "few", phases={**PHASES, "canary": False}, cells=[{"cell": "tier_read", "bytes": 1 << 50}])
    folder, _ = run(place, spec)
    (row,) = lines(folder / "cells.jsonl")
    assert 0 < row["bytes"] < 1 << 50
    assert row["cold"] is False
    assert json.loads((folder / "exit.json").read_text())["outcome"] == "done"


SAMPLE = ROOT / "tests" / "unit" / "readers" / "fixtures" / "guidellm" / "good-plain.json"


def a_client(spec, name, **over):
    """Return the cell of a client: a stand-in that asks the engine, and writes what GuideLLM wrote of another."""
    argv = [sys.executable, str(ROOT / "tests/unit/probe/stand_in_client.py"), spec["engine"]["base_url"], spec["engine"]["model"], "6", str(SAMPLE)]
    row = {
        "cell": "client",
        "tool": "guidellm",
        "tier": 4,
        "requests": 6,
        "file": f"client-{name}.json",
        "env": {"HF_ENDPOINT": "http://127.0.0.1:9"},
    }
    return {**row, "argv": [*argv, "{folder}/guidellm/benchmarks.json"], "result": "benchmarks.json", **over}


def test_a_client_drives_the_engine_cold_and_its_result_comes_home_as_it_wrote_it(place):
    spec = with_lab(place, "client", phases={**PHASES, "canary": False})
    absent = a_client(spec, "absent", argv=["guidellm-is-not-here", "run"])
    silent = a_client(spec, "silent", argv=[sys.executable, "-c", "print('no tokenizer'); raise SystemExit(3)"])
    empty = a_client(spec, "empty", argv=[sys.executable, "-c", "pass"])
    spec["cells"] = [a_client(spec, "good"), absent, silent, empty]
    folder, end = run(place, spec)
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    rows = {row["file"]: row for row in lines(folder / "cells.jsonl")}
    good = rows["client-good.json"]
    assert (good["cold"], good["ended_ns"] > good["started_ns"], good["bytes"]) == (True, True, SAMPLE.stat().st_size), good
    assert good["proof"]["resident_bytes"] == 0 < good["proof"]["bytes"]
    assert good["proof"]["engine"]["pid"] != good["proof"]["engine_before"]["pid"]
    assert float(good["engine_metrics"]["tier_hits"]) >= 6 * 7 * 64  # what its first pass had stored
    assert (folder / "client-good.json").read_bytes() == SAMPLE.read_bytes()
    assert good["sha256"] == hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    assert "client-good.json" in {row["path"] for row in packed(place, "client")}
    for name, word in (("absent", "not installed"), ("silent", "ended with 3. It said last: no tokenizer"), ("empty", "0 files benchmarks.json")):
        row = rows[f"client-{name}.json"]
        assert (word in row["problem"], row["cold"], "started_ns" in row) == (True, False, False), row
        assert not (folder / (f"client-{name}.json")).exists()
    assert not (folder / "client").exists()
    assert [p["ok"] for p in lines(folder / "phases.jsonl") if p["phase"] == "cell"] == [True, False, False, False]
    last = max(row["mono_ns"] for row in lines(folder / "counters.jsonl"))
    assert last < good["started_ns"]  # nothing of the client is in what our own driver's run is judged by
