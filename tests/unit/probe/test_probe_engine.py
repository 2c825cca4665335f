"""The engine as a job sees it: how long it may load, how it is ended, and whose bytes and memory are counted."""

import sys
import time

import pytest
from probe import engine as engine_module
from probe.engine import Engine
from probe.errors import Ended, ProbeError
from probe.jobspec import check

from tests.unit.probe.kit import job_spec, processes_with


def engine(folder, limits=None, **spec):
    return Engine({"base_url": "http://127.0.0.1:1", "model": "m", **spec}, str(folder), limits)


def test_a_model_may_load_for_as_long_as_the_job_file_says(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_module, "GRACE_S", 0.0)
    slow = {"start": [sys.executable, "-c", "import time; time.sleep(0.5)"]}
    engine(tmp_path, {"start_timeout_s": 3600}, control=slow).control("start")
    with pytest.raises(ProbeError, match=r"did not end within 0\.1 s"):
        engine(tmp_path, {"start_timeout_s": 0.1}, control=slow).control("start")
    with pytest.raises(ProbeError, match=r"did not answer .*/health within 0\.2 s"):
        engine(tmp_path, {"start_timeout_s": 0.2}).wait_healthy(time.sleep)
    assert engine(tmp_path, {"start_timeout_s": 3600}).start_s == 3600


def test_a_job_that_shall_end_does_not_wait_for_a_model_to_load(tmp_path):
    def asked(_seconds):
        raise Ended("stopped", "The job was asked to stop.")

    mark = str(tmp_path / "loads")
    with pytest.raises(Ended):
        engine(tmp_path, control={"start": [sys.executable, "-c", "import time; time.sleep(600)", mark]}).control("start", asked)
    assert processes_with(mark) == []


def test_a_time_that_is_no_number_is_refused_before_anything_starts():
    with pytest.raises(ProbeError, match=r"limits\.start_timeout_s must be a number above 0"):
        check(job_spec("a-run", 1, limits={"start_timeout_s": "an hour"}))
