"""Where several engine hosts serve one load, each prompt goes to its own host, every host has work to the end, and one that fails ends all."""

import threading
import time
from types import SimpleNamespace

import pytest
from probe.driver import ClosedLoop
from probe.engines import Engines, all_idle
from probe.errors import Ended, ProbeError
from probe.jobspec import check
from probe.open_loop import Arrivals, OpenLoop
from probe.prompts import Prompts, Shot
from probe.shares import Shares
from probe.slot import Target

from tests.unit.probe.kit import job_spec, odd_server, whole_stream


def shot(index):
    return Shot("measure", 4, index, "", 1, 1, b"")


def answer(connection):
    connection.sendall(whole_stream())
    return True


def slow(connection):
    time.sleep(0.02)
    return answer(connection)


def test_each_host_is_given_its_own_prompts_in_order_however_fast_the_other_asks():
    shares = Shares(iter([shot(n) for n in range(7)]), 2)
    assert [shares.take(1).index for _ in range(3)] == [1, 3, 5]
    assert shares.take(1) is None
    assert not shares.empty
    assert [shares.take(0).index for _ in range(4)] == [0, 2, 4, 6]
    assert (shares.take(0), shares.empty) == (None, True)


def test_one_host_is_given_all_prompts_in_their_order():
    shares = Shares(iter([shot(n) for n in range(5)]), 1)
    assert [shares.take(0).index for _ in range(5)] == list(range(5))
    assert (shares.take(0), shares.empty) == (None, True)


@pytest.mark.parametrize("arrivals", [None, {"rate_per_s": 2000.0}], ids=["closed loop", "open loop"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_request_goes_to_the_host_of_its_prompt_and_its_record_says_so(arrivals, concurrency):
    prompts = Prompts({**job_spec("j", 1)["workload"], "output_tokens": 3}, "lab")
    shots = [prompts.shot("measure", 4, n, prompts.prefix("c4", n), "c4", "m", 3) for n in range(9)]
    records = []
    with odd_server(lambda _: answer) as fast, odd_server(lambda _: slow) as late:
        targets = [Target(f"http://127.0.0.1:{server.port}", place=n, on=f"gpu0{n + 1}") for n, server in enumerate((fast, late))]
        place = (targets, concurrency, 30.0, records.append)
        loop = OpenLoop(Arrivals(arrivals, 1), *place) if arrivals else ClosedLoop(*place)
        loop.run(iter(shots))
    assert sorted(r["prompt"] for r in records) == list(range(9))
    assert {(r["prompt"] % 2, r["host"]) for r in records} == {(0, "gpu01"), (1, "gpu02")}


def engines(count=3):
    """Give the engines of a job with so many hosts, of which nothing but the name is asked."""
    rows = [
        {"host": f"gpu0{n}", "engine": {"base_urls": [f"http://127.0.0.1:{n}1", f"http://127.0.0.1:{n}2"], "base_url": "", "model": "m"}}
        for n in range(count)
    ]
    job = SimpleNamespace(spec={"attendants": rows, "engine": {}, "limits": {}}, folder="", sleep=time.sleep)
    return Engines(job, [SimpleNamespace(name=row["host"], start_s=1.0, stop_s=1.0) for row in rows])


def test_slots_are_spread_over_the_hosts_before_a_host_has_a_second_one():
    assert [target.place for target in engines().targets()] == [0, 1, 2, 0, 1, 2]


def test_what_is_done_to_the_engines_is_done_at_once_and_comes_back_in_their_order():
    together = threading.Barrier(3)

    def work(engine, _):
        together.wait(10)
        return engine.name

    assert engines().each(work) == ["gpu00", "gpu01", "gpu02"]


@pytest.mark.parametrize("bad", ["gpu00", "gpu02"])
def test_where_one_engine_fails_the_others_end_and_its_sentence_is_the_one_that_is_told(bad):
    ended = []

    def work(engine, sleep):
        if engine.name == bad:
            raise ProbeError("engine", f"{bad} does not start.")
        try:
            while True:
                sleep(0.005)
        except Ended:
            ended.append(engine.name)
            raise

    with pytest.raises(ProbeError, match=f"{bad} does not start"):
        engines().each(work)
    assert len(ended) == 2


def test_engines_are_idle_when_each_is_and_nothing_is_known_while_one_does_not_tell():
    assert all_idle([{"idle": True}, {"idle": True}]) is True
    assert all_idle([{"idle": True}, {"idle": None}]) is None
    assert all_idle([{"idle": None}, {"idle": False}]) is False


PLACE = {"address": "127.0.0.2", "port": 18460}
TWO = [{"host": name, **PLACE, "engine": job_spec("j", 1)["engine"]} for name in ("gpu02", "gpu03")]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"attendants": []}, "one for each engine host"),
        ({"attendants": [TWO[0], TWO[0]]}, "a host of its own"),
        ({"attendants": [{**TWO[0], "host": "gpu01"}]}, "other than the job's"),
        ({"attendants": [TWO[0], {"host": "gpu03", **PLACE}]}, r"attendants\[1\].engine is missing"),
        ({"attendants": TWO, "cells": [{"cell": "client", "file": "client-a.json", "argv": ["a"], "result": "a"}]}, "have one engine host"),
    ],
)
def test_a_job_whose_engine_hosts_cannot_be_told_apart_or_shared_is_refused(parts, words):
    with pytest.raises(ProbeError, match=words):
        check(job_spec("j", 1, kind=parts.pop("kind", "run"), **parts))


def test_a_run_on_two_engine_hosts_is_a_job():
    assert check(job_spec("j", 1, attendants=TWO))["attendants"] == TWO
