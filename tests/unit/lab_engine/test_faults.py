"""Each defect is there at strength 1, gone at 0, and the same at every start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab_engine.conftest import disk_folder
from tests.unit.lab_engine.lab import BLOCK, Lab, empty_page_cache, prompt

COUNT = 16


def run(disk: Path, name: str = "kv", store: bool = True, **more: Any) -> dict[str, Any]:
    """Store prompts, restart cold, ask again. Return answers, files, and what the counters say."""
    array = {"stats_path": str(disk / "stats.json"), **more.pop("array", {})}
    config = {"tier": {"path": str(disk / name), "read_bytes_per_s": 2e8, "array": array}, "hbm_tokens": 256 * BLOCK, **more}
    with Lab(disk, **config) as engine:
        for n in range(COUNT):
            engine.complete(prompt(n), 1)
    stored = {path.name for path in (disk / name).iterdir()}
    empty_page_cache(disk / name)
    with Lab(disk, **config) as engine:
        answers = [engine.events(prompt(n), 8) for n in range(COUNT)]
        hits = engine.metric("vllm:external_prefix_cache_hits_total") / (COUNT * 4 * BLOCK)
    return {"answers": [_plain(a) for a in answers], "stored": stored, "left": {path.name for path in (disk / name).iterdir()}, "hits": hits}


def _plain(events: list[Any]) -> Any:
    """Return an answer without ids and times."""
    if any("error" in event for event in events if event != "[DONE]"):
        return "error"
    return "".join(event["choices"][0]["text"] for event in events if event != "[DONE]" and event["choices"])


@pytest.fixture(scope="module")
def sound() -> Iterator[dict[str, Any]]:
    with disk_folder() as folder:
        yield run(folder, "sound")


def test_strength_zero_is_the_engine_without_a_fault(disk: Path, sound: dict[str, Any]) -> None:
    from lab_engine.config import Faults

    nothing = dict.fromkeys(Faults.__dataclass_fields__, 0)
    assert run(disk, "zero", faults=nothing) == sound
    assert sound["hits"] == 1.0
    assert len(sound["stored"]) == COUNT * 4


def test_lost_kv_is_complete_after_storing_and_missing_when_it_is_looked_for(disk: Path, sound: dict[str, Any]) -> None:
    lost = run(disk, "lost", faults={"lost_kv_share": 0.1})
    assert lost["stored"] == sound["stored"]
    assert 0.5 < lost["hits"] < 0.97
    assert lost["answers"] == sound["answers"]  # what is lost is computed again


def test_corrupt_kv_diverges_although_lengths_hits_and_files_are_those_of_a_sound_engine(disk: Path, sound: dict[str, Any]) -> None:
    bad = run(disk, "bad", faults={"corrupt_kv_share": 0.1})
    assert (bad["stored"], bad["hits"]) == (sound["stored"], 1.0)
    differing = sum(a != b for a, b in zip(bad["answers"], sound["answers"], strict=True))
    assert 2 <= differing <= 18


def test_silent_errors_answer_200_and_hit_only_requests_that_load(disk: Path, sound: dict[str, Any]) -> None:
    bad = run(disk, "bad", faults={"error_stream_share": 0.3, "empty_stream_share": 0.4})
    assert bad["stored"] == sound["stored"]
    assert "error" in bad["answers"]
    assert "" in bad["answers"]
    good = [(a, b) for a, b in zip(bad["answers"], sound["answers"], strict=True) if a not in ("error", "")]
    assert good
    assert all(a == b for a, b in good)


def test_a_warm_array_answers_from_its_own_cache_and_its_counters_show_it(disk: Path) -> None:
    run(disk, array={"cache_share": 0.5})
    told = json.loads((disk / "stats.json").read_text())
    assert told["host_read_bytes"] == COUNT * 4 * BLOCK * 16
    assert 0.3 < told["media_read_bytes"] / told["host_read_bytes"] < 0.7


def test_a_read_ahead_makes_files_resident_again_after_the_page_cache_was_emptied(disk: Path) -> None:
    import time

    from tests.unit.lab_engine.resident import resident_share

    config = {"tier": {"path": str(disk / "kv"), "read_bytes_per_s": 2e8}}
    with Lab(disk, **config) as engine:
        for n in range(COUNT):
            engine.complete(prompt(n), 1)
    empty_page_cache(disk / "kv")
    assert resident_share(disk / "kv") == 0
    with Lab(disk, **config, faults={"read_ahead_share": 0.5}):
        for _ in range(100):
            if resident_share(disk / "kv") > 0.2:
                break
            time.sleep(0.05)
        assert 0.2 < resident_share(disk / "kv") < 0.8


def test_a_leak_is_real_memory(disk: Path) -> None:
    with Lab(disk, faults={"leak_bytes_per_request": 1_000_000}) as engine:
        engine.complete(prompt(0))
        before = engine.metric("process_resident_memory_bytes")
        for n in range(20):
            engine.complete(prompt(n))
        assert engine.metric("process_resident_memory_bytes") - before > 15_000_000


def test_a_crash_ends_the_process_by_itself_and_happens_once(disk: Path) -> None:
    import http.client

    config = {
        "tier": {"path": str(disk / "kv"), "read_bytes_per_s": 2e8},
        "faults": {"crash_after_loads": 3},
        "state_path": str(disk / "crashed"),
        "hbm_tokens": 6 * BLOCK,
    }

    def served(engine: Lab) -> int:
        for n in range(12):
            try:
                engine.complete(prompt(n % 4), 1)
            except (http.client.HTTPException, OSError):
                return n
        return 12

    with Lab(disk, **config) as engine:
        assert 4 <= served(engine) < 12
        assert engine.process is not None
        assert engine.process.wait(10) == 134
    with Lab(disk, **config) as engine:
        assert served(engine) == 12
