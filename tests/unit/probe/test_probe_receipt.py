"""Receipts by the kernel's stamp, and the schedule of the open loop: what needs no server."""

import itertools
import socket
import time

import pytest

import tests.unit.probe.kit  # noqa: F401

from probe.jobspec import check  # isort: skip
from probe.open_loop import Arrivals  # isort: skip
from probe.receipt import ANCILLARY, SO_TIMESTAMPNS, Receipts  # isort: skip
from probe.errors import ProbeError  # isort: skip
from tests.unit.probe.kit import job_spec


def pair():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    listener.close()
    return client, server


def test_bytes_that_waited_for_their_reader_are_stamped_when_they_arrived():
    client, server = pair()
    receipts = Receipts()
    receipts.prepare(client)
    time.sleep(0.02)  # the kernel begins to stamp a moment after it was asked
    with client, server:
        before = time.monotonic_ns()
        server.sendall(b"text")
        after = time.monotonic_ns()
        time.sleep(0.2)
        _, ancillary, _, _ = client.recvmsg(100, ANCILLARY)
        now = time.monotonic_ns()
        at = receipts.of(ancillary, now, before)
    assert receipts.kernel == 1, "the kernel gave no stamp"
    assert before <= at < now - 150_000_000
    assert at <= after + 20_000_000
    assert receipts.facts()["read_delay_max_ns"] == now - at


@pytest.mark.parametrize("ahead", [-(10**9), 10**9])
def test_a_stamp_that_lies_before_the_request_or_in_the_future_is_not_used(ahead):
    receipts, now, wall = Receipts(), time.monotonic_ns(), time.time_ns() + ahead
    data = (wall // 10**9).to_bytes(8, "little") + (wall % 10**9).to_bytes(8, "little")
    assert receipts.of([(socket.SOL_SOCKET, SO_TIMESTAMPNS, data)], now, now - 1_000_000) == now
    assert (receipts.kernel, receipts.loop) == (0, 1)


def test_a_connection_without_stamps_is_read_by_the_loops_clock():
    receipts = Receipts()
    assert receipts.of([], 123, 0) == 123
    assert receipts.facts()["loop"] == 1


def test_a_step_of_the_wall_clock_is_followed_and_counted(monkeypatch):
    receipts = Receipts()
    step = 3_600 * 10**9
    monkeypatch.setattr("probe.receipt.wall_ns", lambda: time.time_ns() + step)
    receipts.refresh()
    assert receipts.steps == 1
    wall = time.time_ns() + step
    data = (wall // 10**9).to_bytes(8, "little") + (wall % 10**9).to_bytes(8, "little")
    low = time.monotonic_ns() - 10**9
    assert low < receipts.of([(socket.SOL_SOCKET, SO_TIMESTAMPNS, data)], time.monotonic_ns() + 10**9, low) < time.monotonic_ns() + 10**8
    assert receipts.kernel == 1


def test_constant_arrivals_are_evenly_spaced_and_do_not_drift():
    offsets = Arrivals({"rate_per_s": 30, "pattern": "constant"}, 1).offsets()
    found = [next(offsets) for _ in range(301)]
    assert found[0] == 0
    assert found[300] == 10_000_000_000


def test_poisson_arrivals_are_the_same_on_every_host_and_of_the_right_mean():
    def take(seed):
        offsets = Arrivals({"rate_per_s": 100, "pattern": "poisson"}, seed).offsets()
        return [next(offsets) for _ in range(4001)]

    first = take(7)
    assert first == take(7) != take(8)
    assert all(a < b for a, b in itertools.pairwise(first))
    gaps = [b - a for a, b in itertools.pairwise(first)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(10_000_000, rel=0.06)
    deviation = (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean, rel=0.1)  # of an exponential distribution the standard deviation is the mean


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [({"rate_per_s": 0}, "rate_per_s"), ({"rate_per_s": 5, "pattern": "bursts"}, "constant or poisson"), (7, "workload.arrivals must be")],
)
def test_a_schedule_that_is_none_is_refused_before_anything_starts(arrivals, said):
    spec = job_spec("j", 1)
    spec["workload"]["arrivals"] = arrivals
    with pytest.raises(ProbeError, match=said):
        check(spec)


def test_a_soak_takes_no_schedule():
    spec = job_spec("j", 1, kind="soak")
    spec["workload"]["arrivals"] = {"rate_per_s": 5}
    with pytest.raises(ProbeError, match="request_cap"):
        check(spec)
