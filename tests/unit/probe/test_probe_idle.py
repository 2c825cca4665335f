"""Nothing is stored any more: proved at the endpoints of the software that stores, or not known, never assumed."""

import itertools
import time

import pytest
from probe import metrics
from probe.engine_host import LocalHost
from probe.errors import ProbeError
from probe.idle import Quiet

CALM = {"vllm:num_requests_running": "0", "vllm:num_requests_waiting": "0"}
URL = "http://127.0.0.1:7000/metrics"
LMCACHE = {"families": ["lmcache:num_stored_tokens"], "empty": ["lmcache:remote_put_task_num"], "still_s": 0.1}


@pytest.fixture
def pages(monkeypatch):
    """Let endpoints answer with these texts, one after another and then the last for ever; None does not answer."""
    given = {}

    def get(url, timeout=5.0):
        text = next(given[url])
        if text is None:
            raise ProbeError("engine", f"GET {url} failed: refused.")
        return text.encode()

    monkeypatch.setattr(metrics, "get", get)

    def answer(*texts, url=URL):
        given[url] = itertools.chain(texts[:-1], itertools.repeat(texts[-1]))

    return answer


def wait(rule, *, urls=(URL,), timeout=20.0, page=None, kv_dirs=(), stored=True):
    spec = {"metrics_urls": list(urls), "idle": rule, "kv_dirs": list(kv_dirs)}
    return Quiet(spec, page or (lambda: dict(CALM)), LocalHost({"engine": spec}, "/")).wait(time.sleep, timeout, stored)


def test_storing_has_ended_when_the_counters_of_the_offload_s_own_endpoint_stand_still(pages):
    pages(*(f"lmcache:num_stored_tokens_total {n}\n" for n in (0, 256, 512, 768)))
    assert wait(LMCACHE)["idle"] is True


def test_storing_that_goes_on_at_the_offload_s_own_endpoint_is_not_idle(pages):
    pages(*(f"lmcache:num_stored_tokens_total {n}\n" for n in range(200)))
    found = wait(LMCACHE, timeout=0.6)
    assert (found["idle"], found["why"]) == (False, "storing goes on")


def test_what_still_waits_to_be_stored_is_not_idle(pages):
    pages("lmcache:num_stored_tokens_total 9\nlmcache:remote_put_task_num 3\n")
    assert wait(LMCACHE, timeout=0.5)["why"] == "lmcache:remote_put_task_num is 3"
    pages("lmcache_mp_l2_store_submitted_requests_total 5\nlmcache_mp_l2_store_completed_requests_total 4\n")
    pairs = {"pairs": [["lmcache_mp_l2_store_submitted_requests", "lmcache_mp_l2_store_completed_requests"]]}
    assert wait(pairs, timeout=0.5)["idle"] is False


@pytest.mark.parametrize("page", ["lmcache:num_hit_tokens_total 7\n", "lmcache:num_stored_tokens_total 0\n", ""])
def test_where_no_page_tells_what_was_stored_it_is_unknown_and_not_yes(pages, page):
    pages(page)
    found = wait(LMCACHE)
    assert (found["idle"], found["why"]) == (None, "no endpoint tells lmcache:num_stored_tokens")
    assert wait(LMCACHE, stored=False)["idle"] is True  # before a tier nothing need have been stored


def test_an_endpoint_that_does_not_answer_makes_it_unknown(pages):
    pages(None)
    found = wait(LMCACHE, timeout=0.4)
    assert found["idle"] is None
    assert "7000" in found["why"]


def test_an_endpoint_that_answers_late_is_waited_for(pages):
    pages(None, None, "lmcache:num_stored_tokens_total 9\n")
    assert wait(LMCACHE)["idle"] is True


def test_an_engine_that_does_not_say_how_many_requests_run_is_unknown(pages):
    assert wait(None, urls=(), page=dict)["idle"] is None


def test_files_that_still_grow_are_storing_where_no_counter_shows_it(pages, tmp_path):
    pages("lmcache:num_stored_tokens_total 9\n")
    grown = []

    def growing():
        if len(grown) < 12:
            grown.append((tmp_path / f"{len(grown)}.kv").write_bytes(b"x"))
        return dict(CALM)

    assert wait({**LMCACHE, "files": True}, page=growing, kv_dirs=[str(tmp_path)])["idle"] is True
    assert len(grown) == 12


def test_sglang_s_queues_are_read_by_its_own_names_and_hicache_s_count_of_stored_tokens_must_tell():
    calm = {"sglang:num_running_reqs": "0", "sglang:num_queue_reqs": "0"}
    rule = {"families": ["sglang:backuped_tokens"], "still_s": 0.1}
    assert wait(rule, urls=(), page=lambda: {**calm, "sglang:backuped_tokens_total": "512"})["idle"] is True
    assert wait(rule, urls=(), page=lambda: dict(calm))["idle"] is None
    queued = {**calm, "sglang:num_queue_reqs": "1", "sglang:backuped_tokens_total": "512"}
    assert wait(rule, urls=(), timeout=0.3, page=lambda: dict(queued))["idle"] is False
    assert wait(rule, urls=(), page=lambda: {"sglang:num_running_reqs": "0"})["idle"] is None
