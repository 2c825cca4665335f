"""A soak whose load several engine hosts share: the worst host decides, by its name; no other one, and no sum, covers for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gates import g4_soak
from gates.judge import judge
from gates.readers.soak_kernel import FILE
from tests.bundles import g4_evidence, soak_plan
from tests.bundles.apart import BOOTS, ENGINE_HOST, SECOND_HOST, put_apart
from tests.bundles.evidence import BOOT, Evidence
from tests.bundles.kernel import kernel_says
from tests.bundles.truth import Truth
from tests.unit.gates.test_soak_clock import HOUR, breaks, cause, check

BOTH = (ENGINE_HOST, SECOND_HOST)
SEALED = {"platform": {"layout": {"instances": 2}}}
Edit = Callable[[Evidence], Any]


@pytest.fixture(scope="module")
def whole() -> Evidence:
    evidence = g4_evidence(Truth(engine_hosts=2), plan=soak_plan(SEALED))
    return put_apart(evidence, g4_soak.steps(evidence.plan), BOTH)


def edited(whole: Evidence, *edits: Edit) -> dict[str, Any]:
    evidence = Evidence(whole.gate, whole.plan, files={**whole.files}, simulated=whole.simulated)
    for edit in edits:
        edit(evidence)
    return judge(evidence.bundle())


def test_a_sound_soak_of_two_engine_hosts_passes_and_each_is_looked_at(whole: Evidence) -> None:
    document = edited(whole)
    assert document["verdict"] == "pass", [
        (row.get("id") or row.get("claim"), row["reason"]["en"])
        for row in (*document["checks"], *document["claims"])
        if row.get("verdict", row.get("status")) not in ("pass", "holds", "not_applicable")
    ]
    assert check(document, "engine_restarts")["reason"]["en"].startswith(f"{ENGINE_HOST}, {SECOND_HOST}, each: One engine process")


def of(host: str, edit: Callable[[dict[str, Any]], Any], since: float = 0.0) -> Callable[[list[dict[str, Any]]], Any]:
    """Return an edit of each sample of a host from an hour on."""

    def apply(rows: list[dict[str, Any]]) -> None:
        begun = rows[0]["mono_ns"] + int(since * HOUR)
        for row in rows:
            if row["on"]["host"] == host and row["mono_ns"] >= begun:
                edit(row)

    return apply


def samples(edit: Callable[[list[dict[str, Any]]], Any]) -> Edit:
    return lambda e: e.lines("soak", "telemetry.jsonl", edit, renumber=True)


def leaking(e: Evidence) -> None:
    begun = e.rows("soak", "telemetry.jsonl")[0]["mono_ns"]

    def more(row: dict[str, Any]) -> None:
        row["engine"]["rss_bytes"] += int(2**31 * (row["mono_ns"] - begun) / (24 * HOUR)) // 4096 * 4096

    samples(of(SECOND_HOST, more))(e)


def restarted(e: Evidence) -> None:
    samples(of(SECOND_HOST, lambda row: row["engine"].update(pid=9999), since=12))(e)


def grown(e: Evidence) -> None:
    name = e.plan.g4.fatal_counters[0]
    samples(of(SECOND_HOST, lambda row: row["counters"].update({name: 3}), since=12))(e)


FAILS = {"leak": leaking, "engine_restarts": restarted}


@pytest.mark.parametrize("name", FAILS)
def test_what_one_host_does_is_its_fail_by_name_though_the_other_is_well(whole: Evidence, name: str) -> None:
    document = edited(whole, FAILS[name])
    row = check(document, name)
    assert (row["verdict"], row["host"]) == ("fail", SECOND_HOST), row["reason"]
    assert row["reason"]["en"].startswith(f"{SECOND_HOST}: ")
    assert document["verdict"] == "fail"


def test_a_fatal_counter_that_grew_on_one_host_fails_by_its_name(whole: Evidence) -> None:
    document = edited(whole, grown)
    row = check(document, f"counter_{whole.plan.g4.fatal_counters[0]}")
    assert (row["verdict"], row["host"]) == ("fail", SECOND_HOST)


def silent(e: Evidence, since: float, until: float) -> None:
    """Let the second host have given no sample between two hours."""
    begun = e.rows("soak", "telemetry.jsonl")[0]["mono_ns"]
    low, high = (begun + int(hour * HOUR) for hour in (since, until))
    lost = {row["on"]["mono_ns"] for row in e.rows("soak", "telemetry.jsonl") if row["on"]["host"] == SECOND_HOST and low < row["mono_ns"] < high}
    samples(lambda rows: [row for row in rows if not (row["on"]["host"] == SECOND_HOST and row["on"]["mono_ns"] in lost)])(e)
    path = f"evidence/soak/{SECOND_HOST}/asked.jsonl"
    rows = [json.loads(line) for line in e.files[path].decode().splitlines()]
    kept = [row for row in rows if not (row["verb"] == "sample" and row["mono_ns"] in lost)]
    e.files[path] = "".join(json.dumps({**row, "seq": n}) + "\n" for n, row in enumerate(kept)).encode()


def test_a_silence_of_one_host_breaks_the_run_by_its_name_until_its_cause_is_approved(whole: Evidence) -> None:
    document = edited(whole, lambda e: silent(e, 8, 12))
    assert document["verdict"] == "inconclusive"
    (event,) = breaks(document)
    assert event.endswith(f":{SECOND_HOST}")
    assert SECOND_HOST in check(document, "clock_restarts")["reason"]["en"]
    assert check(document, "telemetry_gap")["host"] == SECOND_HOST
    known = edited(whole, lambda e: silent(e, 8, 12), cause(event))
    assert check(known, "clock_restarts")["verdict"] == "pass"
    assert float(check(known, "duration")["value"]) < 13  # behind the gap of that one host the clock of all began anew


INCOMPLETE: dict[str, tuple[Edit, str]] = {
    "the second host brought nothing": (
        lambda e: [e.files.pop(path) for path in list(e.files) if path.startswith(f"evidence/soak/{SECOND_HOST}/")],
        SECOND_HOST,
    ),
    "the driver has no sample of it": (
        samples(lambda rows: [row for row in rows if row["on"]["host"] != SECOND_HOST]),
        f"are of {SECOND_HOST}",
    ),
    "one of its samples was left out": (
        samples(lambda rows: rows[:101] + rows[102:] if rows[101]["on"]["host"] == SECOND_HOST else rows[:100] + rows[101:]),
        f"{SECOND_HOST} gave",
    ),
    "samples of a host that nobody named": (
        samples(of(SECOND_HOST, lambda row: row["on"].update(host="gpu99"), since=20)),
        "not all samples are of an engine host of the job",
    ),
    "a request went to the other host": (
        lambda e: e.lines("soak", "records.jsonl", lambda rows: rows[-1].update(host=next(h for h in BOTH if h != rows[-1]["host"]))),
        "1 requests of the soak did not go to the engine host",
    ),
    "a request does not say where it went": (
        lambda e: e.lines("soak", "records.jsonl", lambda rows: rows[-1].pop("host") and None),
        "1 requests of the soak did not go to the engine host",
    ),
    "nobody looked whether it was cold": (
        lambda e: e.lines("soak", "coldness.jsonl", lambda rows: [r for r in rows if r["on"]["host"] != SECOND_HOST], renumber=True),
        f"{SECOND_HOST} has no row",
    ),
}


@pytest.mark.parametrize("case", INCOMPLETE)
def test_a_soak_of_which_one_host_does_not_bear_out_its_part_is_never_a_pass(whole: Evidence, case: str) -> None:
    edit, words = INCOMPLETE[case]
    document = edited(whole, edit)
    assert document["verdict"] not in ("pass", "conditional")
    assert words in json.dumps(document, ensure_ascii=False), check(document, "evidence")["reason"]


def exchanged(rows: list[dict[str, Any]]) -> None:
    """Let one engine have served a request of the other: the sum stays as it was."""
    for row in rows:
        if (row["phase"], row["when"]) == ("soak", "after"):
            name = next(series for series in row["metrics"] if "request_success_total" in series)
            row["metrics"][name] = f"{int(float(row['metrics'][name])) + (1 if row['on']['host'] == ENGINE_HOST else -1)}.0"


def test_an_engine_that_served_a_request_of_the_other_breaches_the_account_by_its_host(whole: Evidence) -> None:
    document = edited(whole, lambda e: e.lines("soak", "counters.jsonl", exchanged))
    told = next(row for row in document["claims"] if row["claim"] == "requests_accounted")
    assert told["status"] == "breached"
    assert any(host in told["reason"]["en"] for host in BOTH)
    assert document["verdict"] not in ("pass", "conditional")


def slower(e: Evidence) -> None:
    """Let the second host answer 40 % later from hour 14 on; half of the requests say so."""

    def edit(rows: list[dict[str, Any]]) -> None:
        begun = min(row["sent_ns"] for row in rows if row["phase"] == "soak")
        for row in rows:
            if row["phase"] == "soak" and row["host"] == SECOND_HOST and row["sent_ns"] > begun + 14 * HOUR:
                late = (row["first_text_ns"] - row["sent_ns"]) * 2 // 5
                row["first_text_ns"] += min(late, row["end_ns"] - row["first_text_ns"])

    e.lines("soak", "records.jsonl", edit)


def test_a_host_whose_time_to_first_token_drifts_fails_by_its_name(whole: Evidence) -> None:
    row = check(edited(whole, slower), "drift_ttft_p50")
    assert (row["verdict"], row["host"]) == ("fail", SECOND_HOST), row["reason"]


def rebooted(e: Evidence) -> None:
    """Let the second host have rebooted at hour 5: what came before bears its boot before."""
    before, now = (f"{BOOT}+{BOOTS[ENGINE_HOST]}+{boot}" for boot in ("b010-0002", BOOTS[SECOND_HOST]))
    edge = min(row["sent_ns"] for row in e.rows("soak", "records.jsonl") if row["phase"] == "soak") + 5 * HOUR

    def stamped(row: dict[str, Any], key: str) -> dict[str, Any]:
        old = row[key] < edge
        row = {**row, "boot_id": before if old else now}
        if old and row.get("on", {}).get("host") == SECOND_HOST:
            row = {**row, "on": {**row["on"], "boot_id": "b010-0002"}}
        return row

    e.lines("soak", "records.jsonl", lambda rows: [stamped(row, "sent_ns") for row in rows])
    samples(lambda rows: [stamped(row, "mono_ns") for row in rows])(e)


def test_a_reboot_of_one_of_two_engine_hosts_is_told_by_its_name(whole: Evidence) -> None:
    document = edited(whole, rebooted)
    assert document["verdict"] not in ("pass", "conditional")
    assert any(f"the engine hosts {SECOND_HOST} booted anew" in row["what"]["en"] for row in document["figures"]["breaks"])


def test_the_kernel_log_of_each_engine_host_is_held_by_its_own_clock_and_none_may_lack(whole: Evidence) -> None:
    lost = check(edited(whole, lambda e: kernel_says(e, "nvme nvme4: Reconnecting in 10 seconds...", host=SECOND_HOST)), "kernel_log")
    assert (lost["verdict"], f"{SECOND_HOST}, first at hour" in lost["reason"]["en"]) == ("fail", True)
    silent = edited(whole, lambda e: e.lines("soak", FILE, lambda rows: [row for row in rows if row["host"] != SECOND_HOST], renumber=True))
    assert (check(silent, "kernel_log")["verdict"], silent["verdict"]) == ("inconclusive", "inconclusive")
    assert f"{SECOND_HOST}: no kernel log" in check(silent, "kernel_log")["reason"]["en"]
