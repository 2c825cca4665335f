"""A reset counts as cold when the body says success, no block is in use and a prompt that hit before does not hit: never by the status alone."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from probe import reset
from probe.engine import Engine
from probe.errors import ProbeError
from probe.prompts import Shot

FLUSHED = "Cache flushed.\nPlease check backend logs for more details.\n"  # SGLang 0.5.23, entrypoints/http_server.py
BUSY, TWICE = "Flush cache failed.\n", "Another flush_cache is already in progress."  # with HTTP 400
SHOT = Shot("cool", None, 0, "", 528, 1, b'{"prompt":[1]}')


class Serving:
    """A server whose cache hits a prompt that it saw, until it is really reset."""

    def __init__(self, answers=({"success": True},), empties=True, usage=(0.0,), counts=True, engine="vllm"):
        self.engine = engine
        self.answers, self.empties, self.usage, self.counts = list(answers), empties, list(usage), counts
        self.seen, self.hits, self.resets, self.asked = False, 0, [], 0

    def metrics(self):
        usage = self.usage[0] if not self.resets or len(self.usage) == 1 else self.usage.pop(0)
        if self.engine == "sglang":
            rank = 'model_name="m",pp_rank="0",tp_rank="0"'
            lines = [f"sglang:{name}{{{rank}}} 0.0" for name in ("num_running_reqs", "num_queue_reqs")]
            lines += [f"sglang:token_usage{{{rank}}} {usage}", f'sglang:prefill_effective_tokens_total{{mode="host_hit",{rank}}} 0.0']
            hits = [f'sglang:prefill_effective_tokens_total{{mode="device_hit",{rank}}} {self.hits}']
            return "\n".join(lines + (hits if self.counts else [])) + "\n"
        lines = ["vllm:num_requests_running 0", "vllm:num_requests_waiting 0", f"vllm:kv_cache_usage_perc {usage}"]
        return "\n".join(lines + ([f"vllm:prefix_cache_hits_total {self.hits}"] if self.counts else [])) + "\n"

    def complete(self):
        self.asked += 1
        self.hits += 512 if self.seen else 0
        self.seen = True

    def reset(self, path):
        self.resets.append(path)
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if self.empties and answer in ({"success": True}, FLUSHED):
            self.seen = False
        return answer


@pytest.fixture
def engine_of(monkeypatch, tmp_path):
    """Give a function that serves and returns the engine; no block is waited for longer than a moment."""
    monkeypatch.setattr(reset, "LIMIT_S", 0.4)
    monkeypatch.setattr(reset, "PAUSE_S", 0.02)
    servers = []

    def made(serving):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._say(200, serving.metrics())

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path == "/v1/completions":
                    serving.complete()
                    return self._say(200, "data: [DONE]\n\n")
                answer = serving.reset(self.path)
                status = 404 if answer is None else 400 if answer in (BUSY, TWICE) else 200
                return self._say(status, answer if isinstance(answer, str) else json.dumps(answer))

            def _say(self, status, text):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        spec = {"base_url": f"http://127.0.0.1:{server.server_port}", "model": "m", "reset": "/reset_prefix_cache?reset_external=true"}
        return Engine(spec, str(tmp_path))

    yield made
    for server in servers:
        server.shutdown()
        server.server_close()


def cooled(engine, again=True):
    return reset.verified_reset(engine, SHOT, again, time.sleep)


def test_a_reset_is_retried_while_blocks_are_held_and_proved_by_a_prompt_that_hits_no_more(engine_of):
    serving = Serving(answers=[{"success": False}, {"success": False}, {"success": True}])
    proof = cooled(engine_of(serving))
    assert [a["success"] for a in proof["answers"]] == [False, True]
    assert len(serving.resets) == 3
    assert serving.resets[0] == "/reset_prefix_cache?reset_external=true"
    assert (proof["success"], proof["kv_cache_usage"], proof["hits_before"], proof["hits_after"]) == (True, "0.0", "512", "0")


def test_where_the_job_has_a_canary_the_prompt_is_not_asked_again_before_it(engine_of):
    serving = Serving()
    proof = cooled(engine_of(serving), again=False)
    assert (proof["hits_after"], serving.asked) == (None, 2)


@pytest.mark.parametrize(
    ("serving", "sentence"),
    [
        (Serving(answers=[{"success": False}]), "last answer was 200 with success false"),
        (Serving(answers=["ok"]), "last answer was 200 with success null"),
        (Serving(answers=[{"success": 1}]), "with success null"),
        (Serving(answers=[None]), "last answer was 404"),
        (Serving(usage=[0.25]), "kv_cache_usage_perc is 0.25"),
        (Serving(empties=False), "512 tokens of a prompt from before still came from the GPU cache"),
        (Serving(counts=False), "a reset of it cannot be shown"),
    ],
)
def test_an_engine_that_is_not_shown_to_be_cold_is_not_measured(engine_of, serving, sentence):
    with pytest.raises(ProbeError, match=sentence):
        cooled(engine_of(serving))


def test_an_engine_that_keeps_no_prefix_has_nothing_to_show(engine_of):
    serving = Serving()
    serving.complete = lambda: None
    with pytest.raises(ProbeError, match="did not hit the GPU cache"):
        cooled(engine_of(serving))
    assert serving.resets == []


def test_sglang_s_flush_is_retried_while_requests_are_under_way_and_proved_like_any_other(engine_of):
    serving = Serving(answers=[BUSY, TWICE, FLUSHED], engine="sglang")
    proof = cooled(engine_of(serving))
    assert [(a["status"], a["success"]) for a in proof["answers"]] == [(400, False), (200, True)]
    assert (proof["success"], proof["kv_cache_usage"], proof["hits_before"], proof["hits_after"]) == (True, "0.0", "512.0", "0.0")


@pytest.mark.parametrize(
    ("serving", "sentence"),
    [
        (Serving(answers=[BUSY], engine="sglang"), "last answer was 400 with success false"),
        (Serving(answers=["OK"], engine="sglang"), "last answer was 200 with success null"),
        (Serving(answers=[None], engine="sglang"), "last answer was 404"),
        (Serving(answers=[FLUSHED], usage=[0.25], engine="sglang"), "sglang:token_usage is 0.25"),
        (Serving(answers=[FLUSHED], empties=False, engine="sglang"), "still came from the GPU cache"),
        (Serving(answers=[FLUSHED], counts=False, engine="sglang"), "sglang:prefill_effective_tokens_total counts None"),
    ],
)
def test_a_flush_of_sglang_that_is_not_shown_is_not_measured_behind(engine_of, serving, sentence):
    with pytest.raises(ProbeError, match=sentence):
        cooled(engine_of(serving))
