"""The engine as a process: its HTTP, its counters, its files."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.lab_engine.lab import BLOCK, PACKAGE, Lab, empty_page_cache, prompt  # first: it puts the engine's package on the path

from lab_engine import kv  # isort: skip
from lab_engine.prompt import Prompt  # isort: skip


def tier(disk: Path, **more: object) -> dict[str, object]:
    return {"path": str(disk / "kv"), "read_bytes_per_s": 5e7, **more}


def test_a_stream_has_one_event_a_token_then_usage_with_stamps_then_the_end_mark(disk: Path) -> None:
    before = time.monotonic_ns()
    with Lab(disk) as engine:
        events = engine.events(prompt(1), 20)
    *tokens, usage, done = events
    assert done == "[DONE]"
    assert len(tokens) == 20
    assert all(event["choices"][0]["text"].strip().isdigit() for event in tokens)
    assert [event["choices"][0]["finish_reason"] for event in tokens] == [None] * 19 + ["length"]
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 4 * BLOCK + 8,
        "completion_tokens": 20,
        "total_tokens": 4 * BLOCK + 28,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    stamps = usage["server"]
    assert before < stamps["recv_ns"] < stamps["first_ns"] <= stamps["send_ns"] < time.monotonic_ns()


def test_the_same_prompt_gives_the_same_tokens_and_another_one_others(disk: Path) -> None:
    with Lab(disk) as engine:
        texts = [engine.complete(prompt(n), 12)["choices"][0]["text"] for n in (1, 2, 1)]
        ids = engine.complete(prompt(1), 12, return_token_ids=True)["choices"][0]["token_ids"]
    assert texts[0] == texts[2] != texts[1]
    assert texts[0] == "".join(f" {token}" for token in ids)


def test_one_connection_serves_many_requests_and_text_prompts_too(disk: Path) -> None:
    body = json.dumps({"prompt": "hello", "max_tokens": 2}).encode()
    message = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with Lab(disk) as engine, socket.create_connection(("127.0.0.1", engine.port), timeout=20) as wire:
        for _ in range(3):
            wire.sendall(message)
            data = b""
            while b'"server"' not in data or not data.endswith(b"}"):
                data += wire.recv(65536)
            assert data.startswith(b"HTTP/1.1 200")
            assert b'"prompt_tokens": 5' in data


def test_small_pages_answer_and_unknown_ones_say_so(disk: Path) -> None:
    with Lab(disk) as engine:
        assert engine.call("GET", "/health")[0] == 200
        assert json.loads(engine.call("GET", "/version")[1])["version"].startswith("lab-")
        assert json.loads(engine.call("GET", "/v1/models")[1])["data"][0]["id"] == "lab"
        told = json.loads(engine.call("GET", "/server_info")[1])
        assert (told["kv_bytes_per_token"], told["block_tokens"], told["num_gpu_blocks"]) == (16, BLOCK, 64)
        assert told == json.loads(engine.call("GET", "/config")[1])
        assert "faults" not in told["config"]
        assert engine.call("GET", "/nothing")[0] == 404
        assert engine.call("GET", "/v1/completions")[0] == 405
        status, body = engine.call("POST", "/v1/completions", {"prompt": [-1]})
        assert status == 400
        assert "whole numbers" in json.loads(body)["error"]["message"]


def test_a_prefix_in_gpu_memory_is_a_local_hit_until_the_cache_is_reset(disk: Path) -> None:
    with Lab(disk) as engine:
        engine.complete(prompt(1))
        assert engine.complete(prompt(1))["usage"]["prompt_tokens_details"]["cached_tokens"] == 4 * BLOCK
        assert engine.metric("vllm:prefix_cache_hits_total") == 4 * BLOCK
        assert json.loads(engine.call("POST", "/reset_prefix_cache")[1]) == {"success": True}
        assert engine.complete(prompt(1))["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_another_salt_shares_no_cache_and_answers_alike(disk: Path) -> None:
    with Lab(disk) as engine:
        plain, salted = engine.complete(prompt(1)), engine.complete(prompt(1), cache_salt="repeat")
    assert salted["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert plain["choices"][0]["text"] == salted["choices"][0]["text"]


def test_kv_survives_a_restart_and_every_byte_of_it_comes_from_the_disk_once(disk: Path) -> None:
    stats = disk / "array" / "stats.json"
    config = {"tier": tier(disk, array={"stats_path": str(stats), "counters": ["nvme_media_errors"]})}
    with Lab(disk, **config) as engine:
        first = engine.complete(prompt(1))
        assert engine.metric("vllm:kv_offload_store_bytes_total") == 4 * BLOCK * 16
    assert len(list((disk / "kv").iterdir())) == 4
    empty_page_cache(disk / "kv")
    with Lab(disk, **config) as engine:
        assert engine.process is not None
        read = lambda: int(Path(f"/proc/{engine.process.pid}/io").read_text().split("\nread_bytes: ")[1].split()[0])  # noqa: E731
        before = read()
        again = engine.complete(prompt(1))
        assert read() - before == 4 * BLOCK * 16
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 4 * BLOCK
        assert engine.metric("vllm:external_prefix_cache_hits_total") == 4 * BLOCK
        assert engine.metric("vllm:prefix_cache_hits_total") == 0
        by = {s: engine.metric("vllm:prompt_tokens_by_source_total", source=s) for s in ("local_compute", "external_kv_transfer")}
        assert by == {"local_compute": 8, "external_kv_transfer": 4 * BLOCK}
        assert engine.metric("vllm:kv_offload_load_bytes_total") == 4 * BLOCK * 16
    assert first["choices"][0]["text"] == again["choices"][0]["text"]
    told = json.loads(stats.read_text())
    assert told == {"host_read_bytes": 4 * BLOCK * 16, "media_read_bytes": 4 * BLOCK * 16, "counters": {"nvme_media_errors": 0}}


def test_a_missing_block_ends_the_hit_and_the_rest_is_computed_and_stored_again(disk: Path) -> None:
    with Lab(disk, tier=tier(disk)) as engine:
        text = engine.complete(prompt(1))["choices"][0]["text"]
    files = {path.name: path for path in (disk / "kv").iterdir()}
    first = kv.key_of(kv.chain(Prompt(b",".join(b"%d" % token for token in prompt(1))), BLOCK, kv.root_of("lab", BLOCK, 16))[0], "") + ".kv"
    assert first in files
    for name, path in files.items():
        if name != first:
            path.unlink()
    with Lab(disk, tier=tier(disk)) as engine:
        again = engine.complete(prompt(1))
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == BLOCK
    assert again["choices"][0]["text"] == text
    assert {path.name for path in (disk / "kv").iterdir()} == set(files)


def test_a_short_file_is_a_load_failure_and_never_an_answer(disk: Path) -> None:
    with Lab(disk, tier=tier(disk)) as engine:
        text = engine.complete(prompt(1))["choices"][0]["text"]
    for path in (disk / "kv").iterdir():
        path.write_bytes(b"")
    with Lab(disk, tier=tier(disk)) as engine:
        assert engine.complete(prompt(1))["choices"][0]["text"] == text
        assert engine.metric("vllm:kv_offload_load_failures_total") == 1


def test_a_changed_byte_in_a_file_changes_the_answer_and_nothing_else(disk: Path) -> None:
    with Lab(disk, tier=tier(disk)) as engine:
        good = engine.complete(prompt(1), 16)
    victim = next((disk / "kv").iterdir())
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    with Lab(disk, tier=tier(disk)) as engine:
        bad = engine.complete(prompt(1), 16)
    assert bad["choices"][0]["text"] != good["choices"][0]["text"]
    assert bad["choices"][0]["finish_reason"] == "length"
    assert bad["usage"]["prompt_tokens_details"]["cached_tokens"] == 4 * BLOCK


def test_requests_wait_in_line_when_gpu_memory_is_full_and_all_are_served(disk: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with Lab(disk, hbm_tokens=6 * BLOCK) as engine, ThreadPoolExecutor(6) as clients:
        answers = list(clients.map(lambda n: engine.complete(prompt(n)), range(12)))
        assert engine.metric("vllm:num_requests_running") == engine.metric("vllm:num_requests_waiting") == 0
        assert engine.metric("vllm:kv_cache_usage_perc") == 0
        assert engine.metric("vllm:request_success_total", finished_reason="length") == 12
    assert all(answer["usage"]["completion_tokens"] == 4 for answer in answers)


def test_a_client_that_goes_away_does_not_keep_its_place(disk: Path) -> None:
    body = json.dumps({"prompt": prompt(1), "max_tokens": 2000, "stream": True, "ignore_eos": True}).encode()
    with Lab(disk, decode_base_s=0.001) as engine:
        with socket.create_connection(("127.0.0.1", engine.port), timeout=20) as wire:
            wire.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
            assert wire.recv(65536)
        for _ in range(100):
            if engine.metric("vllm:num_requests_running") == 0:
                break
            time.sleep(0.02)
        assert engine.metric("vllm:num_requests_running") == 0
        assert engine.metric("vllm:request_success_total", finished_reason="abort") == 1


def test_a_configuration_that_cannot_be_used_ends_with_a_sentence(disk: Path) -> None:
    (disk / "c.json").write_text('{"speed": 1}')
    done = subprocess.run(
        [sys.executable, "-m", "lab_engine", "--config", str(disk / "c.json")], cwd=PACKAGE, capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 64
    assert "speed is not a key" in done.stderr


@pytest.mark.parametrize(
    "word",
    ["baseline", "candidate", "recompute", "placebo", "tuned", "G1", "G2", "G3", "G4", "gate ", "quadgate", "0.25", "0.29", "0.40", "25 %", "soak"],
)
def test_the_engine_knows_nothing_of_arms_gates_or_limits(word: str) -> None:
    for source in sorted((PACKAGE / "lab_engine").glob("*.py")):
        assert word.lower() not in source.read_text().lower(), f"{word} stands in {source.name}"
