"""The driver against servers that misbehave, over real sockets."""

import itertools
import socket
import time

from tests.ports import free_port
from tests.unit.probe.kit import END, HEAD, event, job_spec, odd_server, text_event, usage_event, whole_stream

from probe.driver import ClosedLoop  # isort: skip
from probe.prompts import Prompts  # isort: skip
from probe.slot import Target  # isort: skip


def shots(count, context=512):
    workload = {**job_spec("j", 1)["workload"], "context_tokens": context}
    prompts = Prompts(workload, "lab")
    return [prompts.shot("measure", 4, n, prompts.prefix("c4", n), "c4", "m", 8) for n in range(count)]


def drive(server_port, count, concurrency=4, timeout=30.0, records=None, **options):
    records = [] if records is None else records
    loop = ClosedLoop([Target(f"http://127.0.0.1:{server_port}")], concurrency, timeout, records.append, **options)
    result = loop.run(iter(shots(count)))
    return records, result


def send(data, keep=True):
    def behave(connection):
        connection.sendall(data)
        return keep

    return behave


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return False


def stall(connection):
    connection.sendall(HEAD + text_event(" a"))
    connection.recv(1)  # says no more until the client has gone
    return False


MISDEEDS = {
    None: send(whole_stream()),
    "http": send(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"),
    "stream_error": send(HEAD + event({"error": {"message": "KV load failed"}}) + END),
    "empty_stream": send(HEAD + usage_event(0) + END),
    "no_finish": send(HEAD + text_event(" a") + END),
    "short": send(HEAD + text_event(" a", "stop") + usage_event(1) + END),
    "timeout": stall,
    "connection": reset,
}


def test_every_request_of_a_misbehaving_server_is_on_the_account_with_its_own_kind():
    order = [*MISDEEDS, *(kind for kind in MISDEEDS if kind != "timeout")]  # a stall once: it takes a whole timeout
    with odd_server(lambda n: MISDEEDS[order[n]]) as server:
        records, result = drive(server.port, len(order), concurrency=1, timeout=4)
    assert [(r["error"] or {}).get("kind") for r in records] == order
    assert [r["prompt"] for r in records] == list(range(len(order)))
    assert result["stopped"] is None


def test_exactly_c_requests_are_in_flight_and_each_slot_keeps_its_connection():
    def slow(connection):
        connection.sendall(HEAD)
        time.sleep(0.03)
        connection.sendall(whole_stream()[len(HEAD) :])
        return True

    with odd_server(lambda _: slow) as server:
        records, _ = drive(server.port, 40)
        assert server.connections == 4
    assert all(r["error"] is None for r in records)
    edges = sorted([(r["sent_ns"], 1) for r in records] + [(r["end_ns"], -1) for r in records])
    flights = list(itertools.accumulate(step for _, step in edges))
    assert max(flights) == 4
    ended = sorted(r["end_ns"] for r in records)
    after_start, before_end = sorted(r["sent_ns"] for r in records)[3], ended[-5]
    busy = sum(
        min(r["end_ns"], before_end) - max(r["sent_ns"], after_start) for r in records if r["end_ns"] > after_start and r["sent_ns"] < before_end
    )
    assert busy / (before_end - after_start) > 2  # ends are when the last text arrived; on a busy machine the loop reads it later


def test_a_server_that_closes_after_each_answer_costs_a_connection_and_no_request():
    close = whole_stream().replace(b"Content-Type", b"Connection: close\r\nContent-Type")
    with odd_server(lambda _: send(close, keep=False)) as server:
        records, _ = drive(server.port, 12)
        assert server.connections >= 12
    assert [r["error"] for r in records] == [None] * 12


def test_a_connection_that_died_while_idle_is_replaced_before_the_request_is_sent():
    def answer_then_hang_up(connection):
        connection.sendall(whole_stream())
        return False  # closes without having said so

    with odd_server(lambda _: answer_then_hang_up) as server:
        records, _ = drive(server.port, 6, concurrency=1)
    failed = [r for r in records if r["error"]]
    assert len(records) == 6
    assert all(r["error"]["kind"] == "connection" and r["first_byte_ns"] is None for r in failed)


def test_a_server_that_is_not_there_fails_every_request_and_loses_none():
    records, _ = drive(free_port(), 9)
    assert [r["error"]["kind"] for r in records] == ["connection"] * 9
    assert "ECONNREFUSED" in records[0]["error"]["message"]


def test_backoff_keeps_an_outage_from_exploding_in_number():
    began, records = time.monotonic(), []
    stop = lambda: "over" if len(records) >= 4 and time.monotonic() - began > 1.2 else None  # noqa: E731
    drive(free_port(), 5000, records=records, backoff=True, why_stop=stop)
    assert 4 <= len(records) < 60


def test_a_loop_that_is_told_to_end_records_what_was_in_flight():
    arrived = []

    def never(connection):
        arrived.append(connection)
        connection.recv(1)
        return False

    with odd_server(lambda _: never) as server:
        records, result = drive(server.port, 50, why_stop=lambda: "stopped" if len(arrived) == 4 else None)
    assert result["stopped"] == "stopped"
    assert len(records) == 4
    assert all("had to end (stopped)" in r["error"]["message"] for r in records)


def test_spacing_bounds_the_number_of_starts():
    began = time.monotonic()
    with odd_server(lambda _: send(whole_stream())) as server:
        records, _ = drive(server.port, 10, spacing_ns=50_000_000)
    assert len(records) == 10
    assert time.monotonic() - began > 0.4


def test_the_time_to_the_first_text_agrees_with_the_server_and_ignores_a_role_chunk():
    stamps = []

    def behave(connection):
        connection.sendall(HEAD + event({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}))
        time.sleep(0.05)
        stamps.append(time.monotonic_ns())
        connection.sendall(whole_stream()[len(HEAD) :])
        return True

    with odd_server(lambda _: behave) as server:
        records, _ = drive(server.port, 8, concurrency=1)
    for record, stamp in zip(records, stamps, strict=True):
        assert record["first_byte_ns"] < stamp <= record["first_text_ns"]
        assert record["sent_ns"] < record["first_byte_ns"]


def test_a_prompt_larger_than_the_socket_takes_at_once_arrives_whole():
    lengths = []

    def behave(connection):
        lengths.append(True)
        connection.sendall(whole_stream())
        return True

    records = []
    with odd_server(lambda _: behave) as server:
        big = shots(3, context=400_000)
        ClosedLoop([Target(f"http://127.0.0.1:{server.port}")], 3, 20, records.append).run(iter(big))
    assert [r["error"] for r in records] == [None] * 3
    assert len(lengths) == 3
