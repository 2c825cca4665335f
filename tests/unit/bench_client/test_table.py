"""The limits of `make bench-client`, from outcomes that are written by hand; the launcher's account of a process tree."""

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from lanes.bench_client import launch
from lanes.bench_client.__main__ import _again
from lanes.bench_client.cell import Outcome
from lanes.bench_client.clients import OURS
from lanes.bench_client.table import Row, breaches, markdown

MS = 1_000_000


def row(client, errors, cpu=1.0, load=None, concurrency=16, asked=None):
    asked = asked or len(errors)
    return Row(client, concurrency, [Outcome(asked, list(errors), cpu_s=cpu * asked / 1e3, load_cpu_s=(load or cpu) * asked / 1e3)])


def test_a_driver_that_is_better_in_everything_breaks_no_limit():
    assert breaches([row("us", [MS] * 99 + [2 * MS]), row("peer", [2 * MS] * 100, cpu=3)], "us") == []


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (row("us", [3 * MS] * 100, 1), "p50 error is 3.000 ms, at most 2.000"),
        (row("us", [MS] * 90 + [6 * MS] * 10, 1), "p99 error is 6.000 ms, at most 5.000"),
        (row("us", [MS] * 100, 3), "our CPU is 3.00 ms"),
        (row("us", [MS] * 100, 1, load=3), "our CPU under load is 3.00 ms"),
        (row("us", [MS] * 99, 1, asked=100), "only 99 of our requests"),
        (row("us", [-3 * MS] * 100, 1), "p50 error is 3.000 ms"),
    ],
)
def test_each_limit_is_broken_by_itself(ours, said):
    found = breaches([ours, row("peer", [2 * MS] * 90 + [10 * MS] * 10, 2)], "us")
    assert any(said in sentence for sentence in found), found


def test_the_best_peer_counts_and_one_that_did_not_run_is_no_peer():
    absent = Row("gone", 16, not_run="cannot be installed")
    rows = [row("us", [MS] * 100), row("good", [MS // 2] * 100, 3), row("bad", [9 * MS] * 100, 9), absent]
    assert len(breaches(rows, "us")) == 2  # p50 and p99, by the good one
    assert "nothing to compare" in breaches([row("us", [MS] * 100), absent], "us")[0]


def test_the_page_names_who_did_not_run_and_each_broken_limit():
    rows = [row("us", [MS] * 100), Row("gone", 16, not_run="cannot be installed")]
    text = markdown(rows, breaches(rows, "us"), {"machine": "2 processors"}, "us")
    assert "| gone | NOT RUN: cannot be installed |" in text
    assert "NOT KEPT: c16: nothing to compare" in text
    assert "All kept." not in text


def test_the_page_gives_each_clients_own_ttft_beside_its_error():
    ours = row("us", [MS] * 100)
    ours.outcomes[0].ttfts = [150 * MS] * 98 + [200 * MS] * 2
    text = markdown([ours, row("peer", [2 * MS] * 100, 3)], [], {}, "us")
    head = next(line for line in text.splitlines() if line.startswith("| concurrency | client"))
    (mine, theirs) = (line.split(" | ") for line in text.splitlines() if line.startswith("| 16 | ") and len(line.split(" | ")) > 6)
    assert head.split(" | ")[3:5] == ["TTFT p50 ms", "TTFT p99 ms"]
    assert (mine[3:5], theirs[3:5]) == (["150.00", "200.00"], ["-", "-"])
    assert len(mine) == len(theirs) == len(head.split(" | "))


def test_the_page_says_against_whom_the_limits_were_kept():
    rows = [row("us", [MS] * 100), row("peer", [3 * MS] * 100, 3), Row("gone", 16, not_run="cannot be installed")]
    text = markdown(rows, breaches(rows, "us"), {}, "us")
    assert "All kept." not in text
    assert "All kept against those that ran" in text
    assert "c16: peer (NOT RUN: gone)" in text


@pytest.mark.parametrize(("read", "said"), [(779_000, "would NOT keep the limit at p99: 0.779 ms against 0.5 of 1.394 ms"), (600_000, "would keep")])
def test_the_page_says_what_our_loop_alone_would_have_kept(read, said):
    ours = row("us", [39_000] * 100)
    ours.outcomes[0].read_errors = [read] * 100
    assert said in markdown([ours, row("peer", [1_394_000] * 100, 3)], [], {}, "us")


def test_an_earlier_run_gives_the_same_page_again(tmp_path):
    rows = [row(OURS.name, [MS] * 100), row("peer", [3 * MS] * 100, 3)]
    (tmp_path / "rows.json").write_text(json.dumps({"rows": [asdict(one) for one in rows], "facts": {"when": "then"}}))
    options = argparse.Namespace(earlier=tmp_path / "rows.json", out=tmp_path / "page.md")
    assert _again(options) == 0
    assert (tmp_path / "page.md").read_text() == markdown(rows, [], {"when": "then"}, OURS.name)


def test_the_launcher_counts_what_orphans_used_and_passes_the_exit_code_on(tmp_path):
    burn = "import time\nwhile time.process_time() < 0.15: pass"
    child = f"import os\nif os.fork() == 0:\n os.setsid()\n {burn.splitlines()[0]}\n {burn.splitlines()[1]}\n os._exit(0)\nos._exit(7)"
    result = tmp_path / "result.json"
    subprocess.run([sys.executable, "-I", str(Path(launch.__file__)), str(result), "60", sys.executable, "-c", child], check=True)
    found = json.loads(result.read_text())
    assert found["exit_code"] == 7
    assert found["cpu_s"] >= 0.15
    assert found["timed_out"] is False
