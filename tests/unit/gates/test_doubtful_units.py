"""A breach told in another unit is a doubt and never a proof."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Evidence
from tests.bundles.job import lag_digits
from tests.unit.gates import breaches
from tests.unit.gates.breaches import document, metric, rows

Row = dict[str, Any]
whole = functools.cache(breaches.good)


def status(claim: str, *edits: Callable[[Evidence], Any]) -> tuple[str, str]:
    evidence = copy.deepcopy(whole())
    for edit in edits:
        edit(evidence)
    found = judge(evidence.bundle())
    return next(c["status"] for c in found["claims"] if (c["claim"], c["arm"]) == (claim, "candidate")), found["verdict"]


def array(**times: float) -> Callable[[Evidence], Any]:
    return rows("counters.jsonl", lambda row: row["array"].update({k: int(row["array"][k] * v) for k, v in times.items()}))


@pytest.mark.parametrize("times", [{"media_read_bytes": 1000}, {"media_read_bytes": 8}, {"host_read_bytes": 0.001}, {"media_read_bytes": 2.01}])
def test_media_that_read_many_times_what_hosts_did_are_no_cold_array(times):
    assert status("array_cold", array(**times)) == ("unknown", "inconclusive")


def test_read_ahead_and_parity_of_an_array_are_within_measure():
    assert status("array_cold", array(media_read_bytes=2)) == ("holds", "pass")


def test_hosts_that_read_less_than_the_engine_alone_are_a_doubt():
    assert status("array_cold", array(media_read_bytes=0.001, host_read_bytes=0.001)) == ("unknown", "inconclusive")


@pytest.mark.parametrize(("factor", "expected"), [(1024, "unknown"), (8, "unknown"), (2.01, "unknown"), (1.9, "holds"), (0.5, "breached")])
def test_stored_bytes_have_a_ceiling(factor, expected):
    def counted(row: Row) -> None:
        value = next(v for k, v in row["metrics"].items() if "store_bytes" in k)
        metric(row, "store_bytes", str(int(float(value) * factor)))

    assert status("store_complete", rows("counters.jsonl", counted))[0] == expected


@pytest.mark.parametrize(("factor", "expected"), [(512, "unknown"), (101, "unknown"), (50, "holds")])
def test_a_block_device_serves_others_too_but_not_beyond_all_measure(factor, expected):
    read = rows("counters.jsonl", lambda row: row["diskstats"].update(read_sectors=row["diskstats"]["read_sectors"] * factor))
    assert status("device_bytes", read)[0] == expected


@pytest.mark.parametrize(("factor", "expected"), [(8, "unknown"), (1.9, "holds")])
def test_a_mount_serves_nobody_else(factor, expected):
    def mounted(row: Row) -> None:
        row["nfs"] = {"mount_point": "/kv", "server_read_bytes": int(row["engine_io"]["read_bytes"] * factor)}

    assert status("device_bytes", rows("coldness.jsonl", lambda row: row.update(fs_type="nfs4")), rows("counters.jsonl", mounted))[0] == expected


def client(**told: Any) -> tuple[str, str]:
    return status("client_healthy", document("client.json", lambda d: d.update(**told)))


LAGGING = {"loop_lag_p99_ns": 40_000_000, "loop_lag_max_ns": 90_000_000, "loop_ticks": 2_900, "wall_s": 30.0}
LAGGING |= {"loop_lag_digits": lag_digits(40_000_000, 90_000_000, 2_900)}


def test_a_loop_that_lags_breaches_and_is_a_doubt_where_its_lag_is_told_in_another_unit():
    assert client(**LAGGING)[0] == "breached"
    assert client(**{**LAGGING, "loop_lag_p99_ns": 40_000}) == ("unknown", "inconclusive")
    assert client(loop_lag_p99_ns=200) == ("unknown", "inconclusive")  # no timer is that punctual


def test_a_p99_above_the_maximum_and_ticks_that_do_not_fit_the_time_are_doubts():
    assert client(loop_lag_max_ns=199_999) == ("unknown", "inconclusive")
    assert client(loop_lag_max_ns=200_000, loop_lag_digits={"18": 2_995})[0] == "holds"
    assert client(loop_ticks=2_995_000) == ("unknown", "inconclusive")
    assert client(wall_s=30_000.0) == ("unknown", "inconclusive")


@pytest.mark.parametrize(
    "digits",
    [
        *({"18": 2_994}, {"18": 2_995}, {"18": 2_994, "21": 1}, {"17": 2_994, "22": 1}, {"18": 2_900, "22": 95}, {"18": 2_994.0, "22": 1}),
        *({"18 ns": 2_994, "22": 1}, {"18": 2_994, "22": 1, "640": 0}, [2_994, 1], None),
    ],
)
def test_lags_by_size_that_are_not_those_of_the_p99_the_largest_and_the_ticks_are_a_doubt(digits):
    assert client(loop_lag_digits=digits) == ("unknown", "inconclusive")


@pytest.mark.parametrize(("factor", "up"), [(8, False), (8, True), (2.1, False), (1000, False)])
def test_a_lag_just_below_its_limit_told_in_another_unit_is_no_good_client(factor, up):
    """With it the share of TTFT was breached; an eighth of it would have been a lag that a loop may have."""
    breach, lag = unstamped_lag(4_900_000), 4_900_000
    assert breach == "breached"
    assert unstamped_lag(lag, told=int(lag * factor) if up else int(lag / factor)) in ("unknown", "breached")


@pytest.mark.parametrize("key", ["loop_ticks", "loop_lag_max_ns", "loop_lag_digits", "wall_s"])
def test_a_lag_that_nothing_can_be_held_against_is_a_doubt(key):
    assert status("client_healthy", document("client.json", lambda d: d.pop(key) and None)) == ("unknown", "inconclusive")


def unstamped_lag(lag: int, told: int | None = None) -> str:
    """Say how the claim stands where one receipt had no stamp of the kernel, so that the lag (ns) is the client's share; `told` in its place."""
    edits = (breaches.unstamped(40_000, lag, 1), document("client.json", lambda d: d.update(loop_lag_p99_ns=told or lag)))
    return status("client_healthy", *edits)[0]


def unstamped(**receipt: Any) -> str:
    def edit(d: Row) -> None:
        d["server_stamps"].update(stamped=0)
        d["calibration"]["receipt"].update(receipt)

    return status("client_healthy", rows("records.jsonl", breaches.measured(lambda row: row.update(server=None))), document("client.json", edit))[0]


def test_late_receipts_told_in_another_unit_contradict_the_largest_of_them():
    assert unstamped() == "holds"
    assert unstamped(late_p99_ns=20_000_000, late_max_ns=20_000_000) == "breached"
    assert unstamped(late_p99_ns=20_000, late_max_ns=20_000_000) == "unknown"
    assert unstamped(late_p50_ns=50_000) == "unknown"
