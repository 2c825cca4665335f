"""The attendant answers its own job and nobody else, does what its verbs say and nothing else, and does it once."""

import hashlib
import http.client
import json
import os
import threading
import time
from types import SimpleNamespace

import pytest
from probe import attend, attend_seal
from probe.attended import AttendedHost
from probe.errors import ProbeError, Refused
from probe.files import canonical
from probe.jobspec import check

from tests.ports import free_port
from tests.unit.probe.kit import job_spec
from tests.unit.probe.test_probe_cells import disk  # noqa: F401 - a folder on a real disk, whose page cache can be emptied

KEY = bytes(range(32))


class StandInJob:
    """What an attendant and a driver need of their job: specification, a journal, and whether to go on."""

    def __init__(self, folder, spec):
        self.folder, self.spec, self.rows, self.ended = str(folder), spec, [], None
        self.journals = SimpleNamespace(put=lambda name, row: self.rows.append((name, row)))
        self.progress, self.sleep = {}, time.sleep

    def why_stop(self):
        return None

    def check(self):
        """Go on."""

    def give_up(self, why):
        self.ended = why


def attend_spec(port, **parts):
    engine = {"base_url": "http://127.0.0.1:1", "model": "m", "control": {}, "pid_file": "", "kv_dirs": []}
    spec = {"schema": 1, "job": "a-run", "kind": "attend", "fence": 1, "host": "gpu01", "listen": {"address": "127.0.0.2", "port": port}}
    spec.update(engine=engine, soak=None, limits={"disk_quota_bytes": 1 << 20, "deadline_s": 60})
    return {**spec, **parts}


@pytest.fixture
def served(tmp_path):
    """Run an attendant in a thread, on the loopback's second address; give it with what sends raw requests to it."""
    port = free_port()
    injections = [{"label": "port down", "action": "x", "at_s": 1, "seconds": 1, "start": ["touch", str(tmp_path / "done")], "stop": ["true"]}]
    job = StandInJob(tmp_path, attend_spec(port, soak={"injections": injections}))
    attendant = attend.Attendant(job, KEY)
    server = attend._listen(job.spec["listen"], attendant)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield SimpleNamespace(job=job, attendant=attendant, port=port, folder=tmp_path)
    server.shutdown()
    server.server_close()


def driver(served, key=KEY, **place):
    job = StandInJob(served.folder, job_spec("a-run", 1))
    return AttendedHost(job, {"host": "gpu01", "address": "127.0.0.2", "port": served.port, "lost_s": 0.5, **place}, key)


def post(served, body, *, session=None, seq=1, nonce="n", key=KEY, job="a-run", seal=None, method="POST", path=attend_seal.PATH, length=None):
    """Send one request as it is given; return (status, answer)."""
    session = served.attendant.session if session is None else session
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sealed = attend_seal.seal(key, attend_seal.ASK, job, session, seq, nonce, data) if seal is None else seal
    line = http.client.HTTPConnection("127.0.0.2", served.port, timeout=10)
    head = {attend_seal.SESSION: session, attend_seal.SEQ: str(seq), attend_seal.NONCE: nonce, attend_seal.SEAL: sealed}
    line.request(method, path, data, {**head, **({"Content-Length": str(length)} if length is not None else {})})
    answer = line.getresponse()
    text = answer.read()
    line.close()
    return answer.status, json.loads(text)


def ask(verb, /, **arguments):
    return {"verb": verb, "args": arguments}


def test_a_driver_with_the_key_gets_answers_that_bear_the_host_its_boot_and_both_clocks(served):
    host = driver(served)
    row = host.reading()
    on = row["on"]
    assert (on["host"], on["asked_ns"] <= on["mono_ns"] <= on["answered_ns"]) == ("gpu01", True)  # one machine here, so one clock
    assert on["boot_id"]
    assert row["engine_io"] is None
    assert host.kv_size() == {"files": 0, "bytes": 0}
    assert host.residency()[0]["on"]["host"] == "gpu01"
    host.close("done")
    assert served.attendant.outcome == "done"
    assert [row["verb"] for _, row in served.job.rows] == ["reading", "kv_size", "residency"]
    assert served.job.rows[0][1]["mono_ns"] == on["mono_ns"]  # its own account bears the driver's row out


@pytest.mark.parametrize(
    "change",
    [{"key": bytes(32)}, {"job": "another-run"}, {"seal": ""}, {"seal": "0" * 64}, {"nonce": ""}, {"seq": -1}],
    ids=["wrong key", "another job", "no seal", "wrong seal", "no nonce", "no number"],
)
def test_what_bears_no_seal_of_the_job_is_refused_and_keeps_nobody_alive(served, change):
    heard = served.attendant.heard
    status, answer = post(served, ask("inject", label="port down", verb="start"), **change)
    assert (status, "answer" in answer) == (401, False)
    assert (served.attendant.heard, served.attendant.refused) == (heard, 1)
    assert not (served.folder / "done").exists()


def test_a_cell_is_measured_on_the_engines_host_by_its_own_specification_and_accounted_for(served, disk):  # noqa: F811 - the fixture
    served.attendant.host.engine["kv_dirs"] = [disk]
    served.attendant.host.cells["tier_read"] = {"cell": "tier_read", "bytes": 9000, "threads": 1}
    with open(os.path.join(disk, "kv"), "wb") as file:
        file.write(b"k" * 9000)
    host = driver(served)
    row = host.cell("tier_read")
    assert (row.pop("on")["host"], row["bytes"], row["cold"], row["proof"]["dir"]) == ("gpu01", 9000, True, disk)
    assert served.job.rows[-1][1]["sha256"] == hashlib.sha256(canonical(row)).hexdigest()
    served.attendant.host.cells["checkpoint"] = {"cell": "checkpoint"}
    with pytest.raises(ProbeError, match=r"gpu01: The settings of the cell checkpoint are not usable: KeyError 'bytes'"):
        host.cell("checkpoint")
    with pytest.raises(ProbeError, match="none that it takes"):
        host.cell("fio")  # of which its specification says nothing
    host.close("done")


def test_a_body_that_is_not_the_sealed_one_is_refused(served):
    sealed = attend_seal.seal(KEY, attend_seal.ASK, "a-run", served.attendant.session, 1, "n", json.dumps(ask("process")).encode())
    assert post(served, ask("drop"), seal=sealed)[0] == 401


def test_a_request_that_was_taken_already_is_refused_and_the_last_one_is_answered_again_without_being_done_again(served):
    first = ask("inject", label="port down", verb="start")
    assert post(served, first, seq=1)[1]["answer"] == 0
    (served.folder / "done").unlink()
    again = post(served, first, seq=1)
    assert (again[0], again[1]["answer"]) == (200, 0)
    assert post(served, ask("kv_size"), seq=2)[0] == 200
    late = post(served, first, seq=1)
    assert (late[0], late[1]["error"]["kind"]) == (409, "replayed")
    assert not (served.folder / "done").exists()


def test_words_to_an_earlier_attendant_are_refused(served):
    status, answer = post(served, ask("process"), session="0" * 32)
    assert (status, answer["error"]["kind"]) == (409, "session")


def test_without_a_session_there_is_a_greeting_and_nothing_else(served):
    assert post(served, ask("drop"), session="", seq=0)[1]["error"]["kind"] == "refused"
    assert post(served, ask("hello"), session="", seq=0)[1]["answer"]["session"] == served.attendant.session


@pytest.mark.parametrize(
    "words",
    [
        ask("shell", argv=["id"]),
        ask("__init__"),
        ask("control", verb="start", timeout=None, argv=["id"]),
        ask("control", verb="kill", timeout=None),
        ask("control", verb="start", timeout=-1),
        ask("residency", dir="/etc"),
        ask("drop", dir="../../etc"),
        ask("medium", needed="/etc/passwd"),
        ask("medium", needed=True),
        ask("inject", label="../../bin/id", verb="start"),
        ask("inject", label="port down", verb="id"),
        ask("words", instances=10**9),
        {"verb": ["process"], "args": {}},
        {"verb": "process"},
        ask("result", ticket=7),
    ],
    ids=lambda words: str(words["verb"]),
)
def test_a_verb_or_an_argument_that_the_specification_does_not_know_is_refused(served, words):
    assert post(served, words)[1]["error"]["kind"] == "refused"


def test_no_verb_takes_a_path_a_command_or_an_address():
    names = {name for wanted in attend.checked.__globals__["VERBS"].values() for name in wanted}
    assert names == {"verb", "timeout", "instances", "needed", "lacking_array_is_fine", "label", "kind", "drop"}  # `kind` is one of its own cells


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"path": "/"}, 404),
        ({"path": "/v1/../v1/ask"}, 404),
        ({"method": "GET"}, 501),
        ({"length": attend_seal.ASK_MAX + 1}, 413),
        ({"length": 10**12}, 411),
        ({"length": "1e3"}, 411),
    ],
)
def test_another_path_method_or_size_is_refused_before_anything_is_read(served, parts, status):
    body = b"" if parts.get("length") else ask("process")
    line = http.client.HTTPConnection("127.0.0.2", served.port, timeout=10)
    line.request(
        parts.get("method", "POST"), parts.get("path", attend_seal.PATH), body and json.dumps(body), {"Content-Length": str(parts.get("length", 34))}
    )
    answer = line.getresponse()
    answer.read()
    line.close()
    assert answer.status == status
    assert served.job.rows == []


def test_a_driver_does_not_believe_an_answer_without_the_seal(served):
    with pytest.raises(ProbeError, match="bears no seal of the job's key"):
        driver(served, key=bytes(32))
    with pytest.raises(ProbeError, match="answers as gpu01"):
        driver(served, host="gpu02")


def test_a_host_that_does_not_answer_any_more_ends_the_job_by_name(served, monkeypatch):
    host = driver(served)
    monkeypatch.setattr(host, "_once", lambda *_: (_ for _ in ()).throw(OSError("no route")))
    with pytest.raises(ProbeError, match="gave no answer"):
        host.process()
    assert host._job.ended.kind == "attendant"


def test_a_refusal_on_the_engines_host_is_the_drivers_refusal_with_the_hosts_name(served, monkeypatch):
    def full(needed):
        raise Refused("no_room", f"{needed} bytes do not fit.")

    monkeypatch.setattr(served.attendant.host, "medium", full)
    with pytest.raises(Refused, match="gpu01: 7 bytes do not fit"):
        driver(served).medium(7)


def test_what_takes_long_is_asked_for_until_it_is_done_and_ends_when_the_driver_gives_up(served, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def slow(verb, timeout, sleep):
        begun.set()
        try:
            while True:
                sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(served.attendant.host, "control", slow)
    host = driver(served)

    def give_up(_seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        host.control("start", give_up)
    assert begun.wait(5)
    assert ended.wait(5)


def test_an_attendant_that_hears_nothing_ends_and_ends_what_it_began(tmp_path):
    marks = {name: tmp_path / name for name in ("begun", "undone", "engine")}
    rows = [{"label": "x", "action": "x", "at_s": 1, "seconds": 1, "start": ["touch", str(marks["begun"])], "stop": ["touch", str(marks["undone"])]}]
    spec = attend_spec(free_port(), soak={"injections": rows}, silence_s=0.6)
    spec["engine"]["control"] = {"stop": ["touch", str(marks["engine"])]}
    job, ends = StandInJob(tmp_path, spec), []

    def work():
        try:
            attend.run_attend(job, KEY)
        except ProbeError as error:
            ends.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    here = SimpleNamespace(folder=tmp_path, port=spec["listen"]["port"])
    host = driver(here, lost_s=5, beat_s=60)
    assert host.inject("x", "start") == 0
    thread.join(20)
    assert [error.kind for error in ends] == ["silence"]
    assert all(mark.exists() for mark in marks.values())
    host._over.set()


def test_an_attendant_without_a_key_serves_nobody(tmp_path):
    with pytest.raises(ProbeError, match="without the key"):
        attend.run_attend(StandInJob(tmp_path, attend_spec(free_port())), b"")


def test_a_key_stands_in_no_specification_that_is_written():
    spec = attend_spec(1, attend_key="ab" * 32)
    assert attend_seal.take_key(spec) == bytes.fromhex("ab" * 32)
    assert "attend_key" not in spec
    with pytest.raises(ProbeError, match="64 hexadecimal"):
        attend_seal.take_key({"attend_key": "short"})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (attend_spec(7, listen={"address": "0.0.0.0", "port": 7}), "listen.address"),
        (attend_spec(7, listen={"address": "gpu01", "port": 7}), "listen.address"),
        (attend_spec(0), "listen.port"),
        (job_spec("a-run", 1, attendants=[{"host": "gpu01", "address": "127.0.0.2", "port": 7}]), "a host of its own, other than the job's"),
        (job_spec("a-run", 1, attendants=[{}, {}]), r"attendants\[1\].engine is missing"),
        (attend_spec(7, cells=[{"cell": "fio"}, {"cell": "fio"}]), "cells must be a list"),
    ],
)
def test_a_specification_that_cannot_work_is_refused_before_anything_starts(spec, field):
    with pytest.raises(ProbeError, match=field):
        check(spec)
