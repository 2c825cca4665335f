"""The open loop, one cell by hand, and the calibration against the server of known truth."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.unit.probe.kit import build, lines, probe, write


@pytest.fixture(scope="module")
def pyz(tmp_path_factory):
    return build(tmp_path_factory.mktemp("probe"))


@contextmanager
def truth(pyz, journal, *options):
    """Run the truth server; its journal is complete when the block ends."""
    command = [sys.executable, "-I", str(pyz), "calibration-server", "--journal", str(journal), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield json.loads(server.stdout.readline())["port"]
        server.stdin.close()
        server.wait(30)


def load(port, **parts):
    workload = {"seed": 3, "set": "t", "context_tokens": 64, "suffix_tokens": 0, "output_tokens": 6, "vocab": [1, 900]}
    workload.update(parts.pop("workload", {}))
    return {"base_url": f"http://127.0.0.1:{port}", "model": "truth", "concurrency": 4, "requests": 24, "workload": workload, **parts}


def joined(folder):
    """Return pairs (our record, the server's truth) of the same request."""
    truths = {row["word"]: row for row in lines(folder / "truth.jsonl")}
    return [(record, truths[record["output_head"][0].strip()]) for record in lines(folder / "records.jsonl")]


def test_every_receipt_lies_after_its_own_send_stamp_and_before_the_next(pyz, tmp_path):
    with truth(pyz, tmp_path / "truth.jsonl", "--ttft-ms", "30", "--spread-ms", "40", "--gap-ms", "10") as port:
        said = probe(pyz, "drive", "--spec", write(tmp_path / "spec.json", load(port)), "--out", tmp_path / "records.jsonl")
    pairs = joined(tmp_path)
    assert len(pairs) == 24
    assert said["failed"] == 0
    for record, server in pairs:
        assert record["sent_ns"] <= server["recv_ns"] < server["sends_ns"][0] <= record["first_text_ns"]
        assert len(record["chunk_offsets_us"]) == len(server["sends_ns"]) == 6
        assert record["end_ns"] >= server["sends_ns"][-1]
        assert record["usage"]["prompt_tokens"] == 64
    # the median, so that a busy machine may delay some: how late our own loop read them does not stand in the receipts
    late = sorted(record["first_text_ns"] - server["sends_ns"][0] for record, server in pairs)
    assert late[len(late) // 2] < 5_000_000


def test_an_open_loop_sends_by_its_schedule_and_shows_who_waited(pyz, tmp_path):
    arrivals = {"arrivals": {"rate_per_s": 100, "pattern": "constant"}}
    with truth(pyz, tmp_path / "truth.jsonl", "--ttft-ms", "60", "--gap-ms", "1") as port:
        spec = load(port, requests=30, concurrency=2, workload=arrivals)  # 2 connections take about 30/s: most must wait, none may be dropped
        probe(pyz, "drive", "--spec", write(tmp_path / "spec.json", spec), "--out", tmp_path / "records.jsonl")
    records = sorted(lines(tmp_path / "records.jsonl"), key=lambda r: r["prompt"])
    assert [r["prompt"] for r in records] == list(range(30))
    assert all(r["error"] is None for r in records)
    start = records[0]["scheduled_ns"]
    assert [r["scheduled_ns"] - start for r in records] == [n * 10_000_000 for n in range(30)]
    assert all(r["sent_ns"] >= r["scheduled_ns"] for r in records)
    assert records[-1]["sent_ns"] - records[-1]["scheduled_ns"] > 300_000_000  # (30 - 2) x 65 ms / 2 connections, less 290 ms of schedule
    edges = sorted([(r["sent_ns"], 1) for r in records] + [(r["end_ns"], -1) for r in records])
    flights, most = 0, 0
    for _, step in edges:
        flights += step
        most = max(most, flights)
    assert most == 2


def test_a_calibration_tells_all_kinds_apart_and_says_how_late_receipts_are(pyz, tmp_path):
    probe(pyz, "calibrate", "--out", tmp_path / "calibration.json")
    found = json.loads((tmp_path / "calibration.json").read_text())
    assert found["n"] == 16
    assert found["true_ttft_ns"] >= 100_000_000
    assert found["measured_ttft_p50_ns"] > found["true_ttft_ns"]
    assert found["told_apart"] is True
    assert [row["kind"] for row in found["kinds"] if not row["as_expected"]] == []
    assert {row["error"] for row in found["kinds"]} == {
        None,
        *["http", "stream_error", "empty_stream", "no_finish", "short", "connection", "timeout"],
    }
    assert found["receipt"]["n"] >= 32
    assert 0 <= found["receipt"]["late_min_ns"] <= found["receipt"]["late_p50_ns"] <= found["receipt"]["late_p99_ns"]
    assert found["receipt"]["tokens_exact"] is True


def test_a_calibration_whose_account_mixes_kinds_up_says_so(monkeypatch):
    from probe import calibrate

    monkeypatch.setitem(calibrate.EXPECTED, "role", (None, 8, 0, 1, False))  # as if a role were an empty chunk
    found = calibrate.calibrate()
    assert found["told_apart"] is False
    assert [row["kind"] for row in found["kinds"] if not row["as_expected"]] == ["role"]


def test_a_load_that_lacks_a_field_sends_nothing(pyz, tmp_path):
    spec = load(1)
    del spec["workload"]["vocab"]
    done = probe(pyz, "drive", "--spec", write(tmp_path / "spec.json", spec), "--out", tmp_path / "r.jsonl", expect=1)
    assert "Nothing was sent" in done.stderr
    assert not (tmp_path / "r.jsonl").exists()
