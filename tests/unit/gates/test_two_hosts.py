"""A bundle of two hosts is judged as strictly as one of one: the same verdict where all is borne out, and never a pass where it is not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gates import g2_baseline, g3_main, g4_soak
from gates.judge import judge
from gates.rules.attended import on_that_clock
from tests.bundles.apart import AHEAD, ENGINE_HOST, THERE, put_apart
from tests.bundles.evidence import HOST, Evidence, dumped
from tests.bundles.gates import g2_evidence, g3_evidence, g4_evidence


def g2() -> Evidence:
    evidence = g2_evidence()
    return put_apart(evidence, g2_baseline.steps(evidence.plan))


def evidence_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in document["checks"] if row["id"].endswith(".evidence"))
    return found


def test_a_baseline_of_two_hosts_has_the_verdict_of_one_and_says_how_far_their_clocks_are_known() -> None:
    one, two = judge(g2_evidence().bundle()), judge(g2().bundle())
    assert (one["verdict"], two["verdict"]) == ("pass", "pass"), [row["reason"] for row in two["checks"] if row["verdict"] != "pass"]
    assert [(c["claim"], c["status"], c["value"]) for c in one["claims"]] == [(c["claim"], c["status"], c["value"]) for c in two["claims"]]
    assert one["facts"] == two["facts"]
    assert f"What {ENGINE_HOST} answered is placed to within 0.010 ms" in evidence_of(two)["reason"]["en"]
    assert "placed" not in evidence_of(one)["reason"]["en"]


def test_a_main_gate_and_a_soak_of_two_hosts_have_the_verdicts_of_one() -> None:
    for made, steps in ((g3_evidence, g3_main.steps), (g4_evidence, g4_soak.steps)):
        evidence = made()
        one, two = judge(evidence.bundle()), judge(put_apart(evidence, steps(evidence.plan)).bundle())
        assert one["verdict"] == two["verdict"], [row["reason"] for row in two["checks"] if row["verdict"] != "pass"]
        assert evidence_of(two)["verdict"] == "pass", evidence_of(two)["reason"]


def there(evidence: Evidence, name: str, edit: Callable[[Any], Any]) -> Evidence:
    """Edit a file that the engine's host brought of the first run."""
    path = f"evidence/run-1/{ENGINE_HOST}/{name}"
    text = evidence.files[path].decode()
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in text.splitlines()]
        edit(rows)
        evidence.files[path] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        data = json.loads(text)
        edit(data)
        evidence.files[path] = dumped(data)
    return evidence


def here(name: str, edit: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Evidence], Any]:
    return lambda evidence: evidence.lines("run-1", name, edit)


BAD: dict[str, Callable[[Evidence], Any]] = {
    "the engine's host brought nothing of a run": lambda e: [e.files.pop(p) for p in list(e.files) if p.startswith(f"evidence/run-1/{ENGINE_HOST}/")],
    "its account is missing": lambda e: e.files.pop(f"evidence/run-1/{ENGINE_HOST}/asked.jsonl"),
    "the inventory names no host apart": lambda e: e.inputs(lambda d: d["hosts"].update(engine=[HOST])),
    "the inventory names another": lambda e: e.inputs(lambda d: d["hosts"].update(engine=["gpu10"])),
    "the inventory names two": lambda e: e.inputs(lambda d: d["hosts"].update(engine=[ENGINE_HOST, "gpu10"])),
    "counters of another host": here("counters.jsonl", lambda rows: rows[2]["on"].update(host="gpu10")),
    "counters of another boot": here("counters.jsonl", lambda rows: rows[2]["on"].update(boot_id="b009-0008")),
    "counters without a host": here("counters.jsonl", lambda rows: rows[2].pop("on")),
    "counters that the host never answered": here("counters.jsonl", lambda rows: rows[2]["on"].update(mono_ns=rows[2]["on"]["mono_ns"] + 1)),
    "counters answered behind the first request": here("counters.jsonl", lambda rows: rows[2]["on"].update(answered_ns=2**62)),
    "counters asked before the last answer": here("counters.jsonl", lambda rows: rows[3]["on"].update(asked_ns=1)),
    "answered before it was asked": here("counters.jsonl", lambda rows: rows[2]["on"].update(answered_ns=0)),
    "an older look told again": here("coldness.jsonl", lambda rows: rows[-1].update(on=rows[0]["on"])),
    "counters with another figure": here(
        "counters.jsonl", lambda rows: rows[3]["engine_io"].update(read_bytes=rows[3]["engine_io"]["read_bytes"] + 1)
    ),
    "a look with another figure": here("coldness.jsonl", lambda rows: rows[1].update(bytes=rows[1]["bytes"] + 4096)),
    "an engine of another boot": here("coldness.jsonl", lambda rows: rows[1]["engine"].update(boot_id="b007-0001")),
    "an attendant of another job": lambda e: there(e, "job.json", lambda d: d.update(job="0193-attempt-run-2")),
    "an attendant with another specification": lambda e: there(e, "job.json", lambda d: d["engine"].update(kv_dirs=["/other"])),
    "an attendant that did not end as done": lambda e: there(e, "exit.json", lambda d: d.update(outcome="error")),
    "an attendant whose host rebooted": lambda e: there(e, "exit.json", lambda d: d.update(boot_id="b009-0008")),
    "an account of two boots": lambda e: there(e, "asked.jsonl", lambda rows: rows[0].update(boot_id="b009-0008")),
}


@pytest.fixture(scope="module")
def baseline() -> Evidence:
    return g2()


@pytest.mark.parametrize("case", BAD)
def test_what_the_engines_host_does_not_bear_out_is_never_a_pass(case: str, baseline: Evidence) -> None:
    evidence = Evidence("G2", baseline.plan, files={**baseline.files}, simulated=baseline.simulated)
    BAD[case](evidence)
    document = judge(evidence.bundle())
    assert (document["verdict"], evidence_of(document)["verdict"]) == ("inconclusive", "inconclusive")


def test_samples_of_another_boot_of_the_engines_host_are_never_a_pass() -> None:
    evidence = g4_evidence()
    put_apart(evidence, g4_soak.steps(evidence.plan))
    evidence.lines("soak", "telemetry.jsonl", lambda rows: rows[len(rows) // 2]["on"].update(boot_id="b009-0008"))
    assert "not all samples are of" in evidence_of(judge(evidence.bundle()))["reason"]["en"]


def test_a_sample_that_the_engines_host_gave_and_the_driver_left_out_is_missed() -> None:
    evidence = g4_evidence()
    put_apart(evidence, g4_soak.steps(evidence.plan))
    evidence.lines("soak", "telemetry.jsonl", lambda rows: [row for n, row in enumerate(rows) if n != 7], renumber=True)
    assert f"and {ENGINE_HOST} gave" in evidence_of(judge(evidence.bundle()))["reason"]["en"]


def test_a_moment_of_the_driver_lies_at_its_latest_on_the_other_clock() -> None:
    on = {"host": ENGINE_HOST, "boot_id": THERE, "mono_ns": 1_000 + AHEAD, "asked_ns": 400, "answered_ns": 1_000}
    assert on_that_clock({"on": on}, 500) == 500 + AHEAD + 600  # the clocks differ by AHEAD to AHEAD + 600
    assert on_that_clock({}, 500) == 500
    assert on_that_clock({"on": {"mono_ns": 1}}, 500) is None
