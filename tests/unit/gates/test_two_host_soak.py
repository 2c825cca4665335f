"""A soak of a load generator and an engine host over a reboot of either: judged by the boots of both, and never a pass that hides the gap."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gates import g4_soak
from gates.judge import judge
from tests.bundles import g4_evidence, soak_plan, told_again
from tests.bundles.apart import ENGINE_HOST, THERE, put_apart
from tests.bundles.evidence import BOOT, Evidence, dumped
from tests.unit.gates.test_soak_clock import FIRST, HOUR, both, breaks, cause, check, reboot

BEFORE = "b009-0006"  # the boot of the engine's host before
Edit = Callable[[Evidence], Any]


def account(evidence: Evidence, name: str) -> str:
    return f"evidence/soak/{ENGINE_HOST}/{name}"


def gone_on(first: tuple[str, str], second: tuple[str, str], *edits: Edit, hours: float = 30) -> dict[str, Any]:
    """Judge a soak that went on at hour 5 from one pair of boots, (driver's, engine host's), in another."""
    evidence = g4_evidence(plan=soak_plan(), hours=hours)
    reboot(5)(evidence)
    put_apart(evidence, g4_soak.steps(evidence.plan))
    pairs = {FIRST: "+".join(first), BOOT: "+".join(second)}
    for name in ("records.jsonl", "telemetry.jsonl", "phases.jsonl", "events.jsonl"):
        evidence.lines("soak", name, lambda rows: [{**row, "boot_id": pairs[row["boot_id"]]} for row in rows])
    evidence.json("soak", "exit.json", lambda d: d.update(boot_id=pairs[BOOT]))
    for name in ("counters.jsonl", "coldness.jsonl"):
        evidence.lines("soak", name, lambda rows: [{**row, "boot_id": pairs[BOOT]} for row in rows])
    moved = {row["on"]["mono_ns"] for row in evidence.rows("soak", "telemetry.jsonl") if row["boot_id"] == pairs[FIRST]}

    def seen_there(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["boot_id"] == pairs[FIRST]:
                row["on"]["boot_id"] = first[1]

    evidence.lines("soak", "telemetry.jsonl", seen_there)
    rows = [json.loads(line) for line in evidence.files[account(evidence, "asked.jsonl")].decode().splitlines()]
    for row in rows:
        if row["verb"] == "sample" and row["mono_ns"] in moved:
            row["boot_id"] = first[1]
    evidence.files[account(evidence, "asked.jsonl")] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    evidence.files[account(evidence, "started.1")] = dumped({"boot_id": first[1]})
    evidence.files[account(evidence, "started")] = dumped({"boot_id": second[1]})
    for edit in edits:
        edit(evidence)
    told_again(evidence)
    return judge(evidence.bundle())


ENGINE, DRIVER = ((BOOT, BEFORE), (BOOT, THERE)), ((FIRST, THERE), (BOOT, THERE))
EVENT = f"boot:{BOOT}+{THERE}"


@pytest.mark.parametrize(("boots", "who"), [(ENGINE, "the engine's host booted anew"), (DRIVER, "the load generator booted anew")])
def test_a_reboot_of_either_host_concludes_nothing_without_a_cause_and_with_one_the_clock_restarts(boots: Any, who: str) -> None:
    bare = gone_on(*boots)
    assert (bare["verdict"], check(bare, "evidence")["verdict"]) == ("inconclusive", "pass"), check(bare, "evidence")["reason"]
    assert list(breaks(bare)) == [EVENT]
    assert who in check(bare, "clock_restarts")["reason"]["en"]
    known = gone_on(*boots, cause(EVENT))
    assert known["verdict"] == "pass", [row["reason"]["en"] for row in known["checks"] if row["verdict"] != "pass"]
    assert float(check(known, "duration")["value"]) == pytest.approx(25, abs=0.2)
    short = gone_on(*boots, cause(EVENT), hours=24)
    assert (short["verdict"], check(short, "duration")["verdict"]) == ("inconclusive", "inconclusive")


def failed_when_the_host_was_gone(e: Evidence) -> None:
    """Let the last 10 requests before the reboot fail, behind the last sample of the engine's host: it is gone, and the driver goes on asking."""
    mine = [row for row in e.rows("soak", "records.jsonl") if row["phase"] == "soak" and row["boot_id"].endswith(BEFORE)]
    chosen, begun = {row["seq"] for row in mine[-10:]}, min(row["sent_ns"] for row in mine[-10:])
    broken = {"error": {"kind": "connection", "message": "x"}, "first_text_ns": None, "usage": None, "finish_reason": None, "http_status": None}
    e.lines("soak", "records.jsonl", lambda rows: [{**r, **broken} if r["seq"] in chosen else r for r in rows])
    late = [r["seq"] for r in e.rows("soak", "telemetry.jsonl") if r["boot_id"].endswith(BEFORE) and r["mono_ns"] >= begun]
    gone = {r["on"]["mono_ns"] for r in e.rows("soak", "telemetry.jsonl") if r["seq"] in late}
    e.lines("soak", "telemetry.jsonl", lambda rows: [r for r in rows if r["seq"] not in late], renumber=True)
    rows = [json.loads(line) for line in e.files[account(e, "asked.jsonl")].decode().splitlines()]
    kept = [r for r in rows if not (r["verb"] == "sample" and r["mono_ns"] in gone)]
    e.files[account(e, "asked.jsonl")] = "".join(json.dumps({**r, "seq": n}) + "\n" for n, r in enumerate(kept)).encode()


def test_what_failed_when_the_engines_host_was_gone_belongs_to_its_reboot_and_counts_until_the_cause_is_approved() -> None:
    bare = gone_on(*ENGINE, failed_when_the_host_was_gone)
    assert list(breaks(bare)) == [EVENT]
    assert bare["verdict"] == "fail"  # 10 requests without a cause that anybody approved
    assert "s passed until the load went on" in check(bare, "clock_restarts")["reason"]["en"]
    known = gone_on(*ENGINE, failed_when_the_host_was_gone, cause(EVENT))
    assert known["verdict"] == "pass", [row["reason"]["en"] for row in known["checks"] if row["verdict"] != "pass"]


def told(name: str, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Edit:
    return lambda e: e.lines("soak", name, edit, renumber=True)


def without(hour: float) -> Edit:
    """Let the driver leave out a sample that the engine's host gave at an hour."""

    def edit(e: Evidence) -> None:
        rows = e.rows("soak", "telemetry.jsonl")
        when = rows[0]["mono_ns"] + int(hour * HOUR)
        at = next(n for n, row in enumerate(rows) if row["mono_ns"] >= when)
        told("telemetry.jsonl", lambda rows: [row for n, row in enumerate(rows) if n != at])(e)

    return edit


def last_of_the_first_boot(e: Evidence) -> None:
    """Let the sample be lost that was given last before the reboot."""
    rows = e.rows("soak", "telemetry.jsonl")
    last = max(n for n, row in enumerate(rows) if row["boot_id"].endswith(BEFORE))
    told("telemetry.jsonl", lambda rows: [row for n, row in enumerate(rows) if n != last])(e)


BAD: dict[str, Edit] = {
    "the account knows nothing of the boot before": lambda e: e.files.pop(account(e, "started.1")),
    "its mark of the boot before is of another": lambda e: e.files.update({account(e, "started.1"): dumped({"boot_id": "b009-0001"})}),
    "the driver says that the engine's host never rebooted": told(
        "telemetry.jsonl", lambda rows: [{**row, "boot_id": f"{BOOT}+{THERE}"} for row in rows]
    ),
    "a sample is missing far from the reboot": without(20),
    "the attendant did not end as done": lambda e: e.files.update(
        {account(e, "exit.json"): e.files[account(e, "exit.json")].replace(b'"done"', b'"error"')}
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_soak_whose_boots_the_engines_host_does_not_bear_out_is_never_a_pass(case: str) -> None:
    document = gone_on(*ENGINE, both(cause(EVENT), BAD[case]))
    assert document["verdict"] not in ("pass", "conditional")
    assert check(document, "evidence")["verdict"] == "inconclusive"


def test_what_one_host_recorded_last_before_the_other_went_down_may_be_on_record_there_alone() -> None:
    document = gone_on(*ENGINE, both(cause(EVENT), last_of_the_first_boot))
    assert check(document, "evidence")["verdict"] == "pass", check(document, "evidence")["reason"]
