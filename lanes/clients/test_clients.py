"""AIPerf, GuideLLM and vLLM bench drive the simulated engine as a cell of a run, and their readers read what they wrote.

The real ones where they are installed (below var/bench-clients, by `make bench-client`, or BENCH_CLIENTS); else a stand-in that asks the engine too
and writes what the real one once wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gates.importing import normalise
from gates.readers.registry import read
from lanes.bench_client.clients import FOLDER, Work, describe
from lanes.bench_client.tokenizer import write_tokenizer
from lanes.probe.test_probe_run import PHASES, run, with_lab
from tests.unit.probe.kit import ROOT, build, lines, workplace

SAMPLES = ROOT / "tests" / "unit" / "readers" / "fixtures"
STAND_IN = ROOT / "tests" / "unit" / "probe" / "stand_in_client.py"
TIER, REQUESTS, PROMPT, OUTPUT = 4, 20, 512, 8
PROGRAMS = {"aiperf": "aiperf/bin/aiperf", "guidellm": "guidellm/bin/guidellm", "vllm-bench": "vllm/bin/python"}
WROTE = {"aiperf": "good-summary-plain.json", "guidellm": "good-plain.json", "vllm-bench": "good-plain.json"}


@pytest.fixture
def place() -> Iterator[Path]:
    """Give a folder on the checkout's disk with the zipapp; whatever still runs from it at the end is ended."""
    with workplace("clients-") as folder:
        build(folder)
        yield folder


def started(tool: str, url: str, place: Path) -> tuple[bool, dict[str, Any]]:
    """Return whether the real client is there, and how it, or its stand-in, is started."""
    program = FOLDER / PROGRAMS[tool]
    write_tokenizer(place / "tokenizer")
    made = describe(tool, str(program), Work(url, "lab", TIER, REQUESTS, PROMPT, OUTPUT, str(place / "tokenizer")))
    if program.exists():
        return True, made
    print(f"{tool} is not installed below {FOLDER}: a stand-in plays it")
    argv = [sys.executable, str(STAND_IN), url, "lab", str(REQUESTS), str(SAMPLES / tool / WROTE[tool]), "{folder}/" + made["result"]]
    return False, {**made, "argv": argv}


@pytest.mark.parametrize("tool", list(PROGRAMS))
def test_a_client_measures_cold_recovery_and_its_reader_reads_what_it_wrote(place: Path, tool: str) -> None:
    # A run of seconds: the windows that a client measures by differ by milliseconds.
    spec = with_lab(place, f"run-{tool}", lab={"decode_base_s": 0.25}, phases={**PHASES, "canary": False})
    real, made = started(tool, spec["engine"]["base_url"], place)
    env = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "VLLM_TARGET_DEVICE": "cpu"}
    spec["cells"] = [{"cell": "client", "tool": tool, "tier": TIER, "requests": REQUESTS, "file": f"client-{tool}-c{TIER}.json", "env": env, **made}]
    spec["limits"]["deadline_s"] = 600
    folder, end = run(place, spec)
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    (row,) = lines(folder / "cells.jsonl")
    assert ("problem" in row, row["cold"]) == (False, True), row
    reading = read(tool, (folder / row["file"]).read_bytes())
    figures = normalise(reading)
    assert [problem.message.en for problem in reading.problems] == []
    assert (figures.tier, figures.ok) == (TIER, REQUESTS)
    assert figures.ttft_p50_ns
    assert figures.output_per_s
    hits = row["engine_metrics"]["tier_hits"]
    assert float(hits) >= (0.9 if real else 1) * REQUESTS * (PROMPT // 64 - 1) * 64, (
        "the measuring pass asked other prompts than the first had stored"
    )
