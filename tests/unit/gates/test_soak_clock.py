"""The soak's clock (DESIGN 4.12): what broke the run, whose approval is missing, from when time counts, and what counts in every boot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Evidence, Truth, counted_again, g4_evidence, record_injection, soak_plan, told_again

FIRST, SECOND = "b007-0000", "b007-0001"
PLANNED = {"label": "path-down", "action": "path-down", "at": "5 h", "lasts": "30 min"}
HOUR = 10**9  # of the plan, in nanoseconds of a clock that is 3600 times as fast


def soak(
    edit: Callable[[Evidence], Any] | None = None, *, hours: float | None = None, truth: Truth | None = None, planned: tuple[dict[str, str], ...] = ()
) -> dict[str, Any]:
    evidence = g4_evidence(truth, soak_plan({"g4": {"injections": list(planned)}}), hours=hours)
    if edit:
        edit(evidence)
        told_again(evidence)
    return judge(evidence.bundle())


def check(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in document["checks"] if c["id"] == f"g4.{name}")


def breaks(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {b["event"]: b for b in document["figures"]["breaks"]}


def begin(e: Evidence) -> int:
    return next(r["started_ns"] for r in e.rows("soak", "phases.jsonl") if r["phase"] == "soak")


def reboot(hour: float) -> Callable[[Evidence], None]:
    """Let the host boot anew: everything before the hour was in another boot; what was under way then was never written."""

    def edit(e: Evidence) -> None:
        when = begin(e) + int(hour * HOUR)

        def requests(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            lost = [r for r in rows if not (r["phase"] == "soak" and r["sent_ns"] < when <= r["end_ns"])]
            return [{**r, "boot_id": FIRST} if r["end_ns"] < when else r for r in lost]

        e.lines("soak", "records.jsonl", requests, renumber=True)
        engine = {"pid": 77, "start_ticks": 7}
        first = {"boot_id": FIRST}
        e.lines(
            "soak",
            "telemetry.jsonl",
            lambda rows: [{**r, **first, "engine": {**r["engine"], **engine}} if r["mono_ns"] < when else r for r in rows],
        )

    return edit


def cause(event: str, *, approved: bool = True, missing: tuple[str, ...] = (), text: str = "机房断电") -> Callable[[Evidence], None]:
    row = {"event": event, "kind": "power", "text": text, "approved": approved, "missing": list(missing)}
    return lambda e: e.inputs(lambda d: d["rig_causes"].append(row))


def both(*edits: Callable[[Evidence], Any]) -> Callable[[Evidence], None]:
    def run(e: Evidence) -> None:
        for edit in edits:
            edit(e)

    return run


def test_a_reboot_without_a_cause_is_inconclusive_and_says_which_event_needs_one():
    document = soak(reboot(5), hours=30)
    found = check(document, "clock_restarts")
    assert (document["verdict"], found["verdict"]) == ("inconclusive", "inconclusive")
    assert "Hour 4.9" in found["reason"]["en"]
    assert SECOND in found["reason"]["en"]
    assert "both parties approve" in found["reason"]["en"]
    assert breaks(document)[f"boot:{SECOND}"]["cause"] is None


@pytest.mark.parametrize(("missing", "named"), [(("customer",), "the customer"), (("vendor", "customer"), "the vendor and the customer")])
def test_a_cause_that_a_party_has_not_approved_restarts_nothing_and_the_party_is_named(missing: tuple[str, ...], named: str):
    document = soak(both(reboot(5), cause(f"boot:{SECOND}", approved=False, missing=missing)), hours=30)
    found = check(document, "clock_restarts")
    assert found["verdict"] == document["verdict"] == "inconclusive"
    assert named in found["reason"]["en"]
    assert "机房断电" in found["reason"]["zh-CN"]


def test_with_an_approved_cause_the_clock_restarts_at_the_boot_and_the_whole_duration_behind_it_passes():
    document = soak(both(reboot(5), cause(f"boot:{SECOND}")), hours=30)
    assert check(document, "clock_restarts")["verdict"] == "pass"
    assert float(check(document, "duration")["value"]) == pytest.approx(25, abs=0.2)
    assert document["verdict"] == "pass"


def test_with_an_approved_cause_and_too_little_time_behind_it_the_missing_hours_are_told():
    document = soak(both(reboot(5), cause(f"boot:{SECOND}")))
    found = check(document, "duration")
    assert found["verdict"] == document["verdict"] == "inconclusive"
    assert "h are missing" in found["reason"]["en"]
    assert float(found["margin"]) == pytest.approx(-5, abs=0.2)


def test_a_cause_is_for_its_own_event_only():
    for event in ("boot:b007-0009", "attempt", f"boot:{FIRST}"):
        assert soak(both(reboot(5), cause(event)), hours=30)["verdict"] == "inconclusive"


def test_a_cause_that_says_approved_while_a_party_is_missing_is_not_approved():
    document = soak(both(reboot(5), cause(f"boot:{SECOND}", approved=True, missing=("customer",))), hours=30)
    assert document["verdict"] == "inconclusive"


def test_failed_requests_before_an_approved_reboot_still_count():
    def fail_early(e: Evidence) -> None:
        when = begin(e) + 4 * HOUR
        broken = {"error": {"kind": "stream_error", "message": "x"}, "first_text_ns": None, "usage": None, "finish_reason": None}
        e.lines(
            "soak",
            "records.jsonl",
            lambda rows: [{**r, **broken} if r["phase"] == "soak" and r["end_ns"] < when and r["seq"] % 20 == 0 else r for r in rows],
        )

    document = soak(both(fail_early, reboot(5), cause(f"boot:{SECOND}")), hours=30)
    assert check(document, "error_rate")["verdict"] == document["verdict"] == "fail"
    assert "in 2 boots" in check(document, "error_rate")["reason"]["en"]


def test_a_long_clean_time_before_a_restart_dilutes_no_failures_behind_it():
    def fail_late(e: Evidence) -> None:
        when = begin(e) + 40 * HOUR
        broken = {"error": {"kind": "stream_error", "message": "x"}, "first_text_ns": None, "usage": None, "finish_reason": None}
        late = [r["seq"] for r in e.rows("soak", "records.jsonl") if r["phase"] == "soak" and r["sent_ns"] > when]
        chosen = set(late[:: round(1 / 0.0015)])  # 0.15 % of those behind the reboot, 0.06 % of all
        e.lines("soak", "records.jsonl", lambda rows: [{**r, **broken} if r["seq"] in chosen else r for r in rows])

    document = soak(both(fail_late, reboot(40), cause(f"boot:{SECOND}")), hours=66)
    found = check(document, "error_rate")
    assert found["verdict"] == document["verdict"] == "fail"
    assert "since the clock last restarted" in found["reason"]["en"]


@pytest.mark.parametrize("kind", ["engine_exit", "oom_kill"])
def test_a_crash_of_the_engine_before_an_approved_reboot_stays_a_fail(kind: str):
    def crash(e: Evidence) -> None:
        row = {"seq": 0, "wall_ns": 1, "mono_ns": begin(e) + 3 * HOUR, "boot_id": FIRST, "kind": kind, "detail": {}}
        e.lines("soak", "events.jsonl", lambda rows: [row])

    document = soak(both(crash, reboot(5), cause(f"boot:{SECOND}")), hours=30)
    assert check(document, "engine_restarts")["verdict"] == document["verdict"] == "fail"
    assert "hour 3.0" in check(document, "engine_restarts")["reason"]["en"]


def test_a_counter_that_grew_in_the_first_boot_stays_a_fail_and_one_that_starts_anew_does_not():
    def count(first: Callable[[int], int]) -> Callable[[Evidence], None]:
        def edit(e: Evidence) -> None:
            e.lines(
                "soak",
                "telemetry.jsonl",
                lambda rows: [
                    {**r, "counters": {**r["counters"], "aer_fatal": first(n) if r["boot_id"] == FIRST else 0}} for n, r in enumerate(rows)
                ],
            )

        return edit

    approved = cause(f"boot:{SECOND}")
    assert check(soak(both(reboot(5), count(lambda n: int(n > 20)), approved), hours=30), "counter_aer_fatal")["verdict"] == "fail"
    assert soak(both(reboot(5), count(lambda n: 4), approved), hours=30)["verdict"] == "pass"


def test_more_approved_restarts_than_the_plan_allows_are_inconclusive():
    evidence = g4_evidence(plan=soak_plan({"g4": {"clock": {"restarts_max": 0}}}), hours=30)
    both(reboot(5), cause(f"boot:{SECOND}"))(evidence)
    told_again(evidence)
    document = judge(evidence.bundle())
    assert check(document, "clock_restarts")["verdict"] == document["verdict"] == "inconclusive"
    assert "at most 0" in check(document, "clock_restarts")["reason"]["en"]


def _without(e: Evidence, name: str, low: float, high: float) -> None:
    start = begin(e)
    key = "mono_ns" if name == "telemetry.jsonl" else "sent_ns"
    e.lines("soak", name, lambda rows: [r for r in rows if not start + low * HOUR < r[key] < start + high * HOUR], renumber=True)
    counted_again(e)


@pytest.mark.parametrize(("name", "kind"), [("telemetry.jsonl", "telemetry_gap"), ("records.jsonl", "load_gap")])
def test_a_gap_needs_a_cause_and_with_an_approved_one_the_clock_restarts_behind_it(name: str, kind: str):
    bare = soak(lambda e: _without(e, name, 4, 6), hours=31)
    event = next(b["event"] for b in bare["figures"]["breaks"] if b["kind"] == kind)
    assert bare["verdict"] == "inconclusive"
    assert "Hour 4.0" in check(bare, "clock_restarts")["reason"]["en"]
    document = soak(both(lambda e: _without(e, name, 4, 6), cause(event)), hours=31)
    assert check(document, "clock_restarts")["verdict"] == "pass"
    assert float(check(document, "duration")["value"]) == pytest.approx(25, abs=0.2)
    assert document["verdict"] == "pass"


def test_a_counter_that_goes_back_is_a_gap_until_its_cause_is_approved():
    def reset(e: Evidence) -> None:
        when = begin(e) + 4 * HOUR
        e.lines(
            "soak",
            "telemetry.jsonl",
            lambda rows: [{**r, "counters": {**r["counters"], "link_down_events": 5 if r["mono_ns"] < when else 0}} for r in rows],
        )

    bare = soak(reset, hours=30)
    event = next(b["event"] for b in bare["figures"]["breaks"] if b["kind"] == "counter_reset")
    assert bare["verdict"] == check(bare, "counter_link_down_events")["verdict"] == "inconclusive"
    assert soak(both(reset, cause(event)), hours=30)["verdict"] == "pass"


def test_an_outage_is_the_products_until_both_parties_say_that_it_was_the_sites():
    def outage(e: Evidence) -> None:
        low, high = begin(e) + 3 * HOUR, begin(e) + 5 * HOUR
        broken = {"error": {"kind": "connection", "message": "refused"}, "first_text_ns": None, "usage": None, "finish_reason": None}
        e.lines("soak", "records.jsonl", lambda rows: [{**r, **broken} if r["phase"] == "soak" and low < r["end_ns"] < high else r for r in rows])

    bare = soak(outage, hours=31)
    event = next(b["event"] for b in bare["figures"]["breaks"] if b["kind"] == "outage")
    assert bare["verdict"] == check(bare, "error_rate")["verdict"] == "fail"
    document = soak(both(outage, cause(event, text="交换机重启")), hours=31)
    assert document["verdict"] == "pass"
    assert float(check(document, "duration")["value"]) == pytest.approx(26, abs=0.2)


def hang(e: Evidence, hours: float, failed: int = 0) -> None:
    """Let the requests under way at hour 3 end only so many hours later, some of them in vain: a closed loop that hangs sends nothing."""
    low, high = begin(e) + 3 * HOUR, begin(e) + int((3 + hours) * HOUR)
    broken = {"error": {"kind": "timeout", "message": "x"}, "first_text_ns": None, "usage": None, "finish_reason": None}

    def requests(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        hung = [r["seq"] for r in rows if r["phase"] == "soak" and r["sent_ns"] <= low < r["end_ns"]]
        kept = [r for r in rows if not (r["phase"] == "soak" and low < r["sent_ns"] < high)]
        return [{**r, **(broken if r["seq"] in hung[:failed] else {}), "end_ns": high} if r["seq"] in hung else r for r in kept]

    e.lines("soak", "records.jsonl", requests, renumber=True)
    counted_again(e)


@pytest.mark.parametrize("failed", [0, 1])
def test_a_hang_in_which_next_to_nothing_fails_is_an_outage_and_never_passes_unsaid(failed: int):
    bare = soak(lambda e: hang(e, 0.6, failed), hours=30)
    event = next(b["event"] for b in bare["figures"]["breaks"] if b["kind"] == "outage")
    assert check(bare, "clock_restarts")["verdict"] == bare["verdict"] == "inconclusive"
    assert check(bare, "error_rate")["verdict"] == "pass"
    assert f"({failed} failed)" in check(bare, "clock_restarts")["reason"]["en"]
    document = soak(both(lambda e: hang(e, 0.6, failed), cause(event, text="交换机重启")), hours=30)
    assert document["verdict"] == "pass"
    assert float(check(document, "duration")["value"]) == pytest.approx(26.4, abs=0.2)


@pytest.mark.parametrize(("hours", "verdict"), [(0.6, "pass"), (0.9, "inconclusive")])
def test_an_injection_covers_what_it_disturbs_and_not_a_hang_that_outlasts_it(hours: float, verdict: str):
    def injected(e: Evidence) -> None:
        hang(e, hours)
        record_injection(e, "path-down", begin(e) + 3 * HOUR, begin(e) + int(3.2 * HOUR))

    document = soak(injected, hours=30, planned=({**PLANNED, "at": "3 h"},))
    assert check(document, "clock_restarts")["verdict"] == document["verdict"] == verdict


def test_a_labelled_reboot_is_judged_by_its_own_check_and_needs_no_cause():
    def labelled(e: Evidence) -> None:
        when = begin(e) + int(5 * HOUR)
        record_injection(e, "path-down", when - HOUR // 2, when + HOUR // 2, FIRST)

    document = soak(both(reboot(5), labelled), hours=30, planned=(PLANNED,))
    assert check(document, "clock_restarts")["verdict"] == "pass"
    assert document["figures"]["breaks"] == []


def test_a_boot_that_comes_back_is_no_host_and_nothing_is_concluded():
    def mixed(e: Evidence) -> None:
        reboot(5)(e)
        e.lines("soak", "records.jsonl", lambda rows: [*rows[:-1], {**rows[-1], "boot_id": FIRST}])

    document = soak(mixed, hours=30)
    assert document["verdict"] == "inconclusive"
    assert "comes back after another" in check(document, "evidence")["reason"]["en"]


def carried_out(e: Evidence, *, lasted: int = HOUR // 2, **said: Any) -> None:
    when = begin(e) + 5 * HOUR
    record_injection(e, PLANNED["label"], when, when + lasted, SECOND, **said)


def recorded(times: int) -> Callable[[Evidence], Any]:
    """Let the probe's record of every injection stand so many times."""
    return lambda e: e.lines(
        "soak", "events.jsonl", lambda rows: [r for r in rows for _ in range(times if r["kind"] == "injection" else 1)], renumber=True
    )


def unsaid(key: str) -> Callable[[Evidence], Any]:
    return lambda e: e.lines("soak", "events.jsonl", lambda rows: [{**r, "detail": {k: v for k, v in r["detail"].items() if k != key}} for r in rows])


@pytest.mark.parametrize(
    ("said", "verdict", "word"),
    [
        ({"begin_exit": 0, "end_exit": 0}, "pass", "requests sent in the window after it failed"),
        ({"begin_exit": 127, "end_exit": 0}, "inconclusive", "ended with 127"),
        ({"begin_exit": 0, "end_exit": 124}, "inconclusive", "ended with 124"),
        ({"begin_exit": None}, "inconclusive", "How its command ended is not told"),
        ({"end_exit": None}, "inconclusive", "How its command ended is not told"),
        ({"begin_exit": 0, "end_exit": 0, "lasted": 602 * 10**9}, "inconclusive", "where 30 min were agreed"),
        (None, "inconclusive", "agreed for hour 5 and is not on record"),
    ],
)
def test_an_agreed_injection_must_be_on_record_as_agreed_and_its_command_must_have_worked(said: dict[str, Any] | None, verdict: str, word: str):
    document = soak(lambda e: said is None or carried_out(e, **said), planned=(PLANNED,))
    found = check(document, "injection_1")
    assert (document["verdict"], found["verdict"]) == (verdict, verdict)
    assert word in found["reason"]["en"]


def test_the_record_of_an_injection_is_missed_when_it_or_an_exit_code_is_left_out_and_an_end_without_a_command_has_none():
    for key in ("begin_exit", "end_exit"):
        document = soak(both(carried_out, unsaid(key)), planned=(PLANNED,))
        assert check(document, "injection_1")["verdict"] == document["verdict"] == "inconclusive"

    for times in (0, 2):
        document = soak(both(carried_out, recorded(times)), planned=(PLANNED,))
        assert document["verdict"] == "inconclusive"
        assert "record of it is not there exactly once" in check(document, "injection_1")["reason"]["en"]

    def endless(e: Evidence) -> None:
        carried_out(e, end_exit=None)
        planned = [{"label": PLANNED["label"], "action": "path-down", "at_s": 5, "seconds": 0.5, "start": ["pull"], "stop": None}]
        e.json("soak", "job.json", lambda d: d.update(soak={**(d.get("soak") or {}), "injections": planned}))

    assert soak(endless, planned=(PLANNED,))["verdict"] == "pass"
