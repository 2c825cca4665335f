"""One load shared by two engine hosts is judged host by host: no sum, and no other host, covers for one that is warm, stale, skipped or silent."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gates import g2_baseline, g3_main
from gates.judge import judge
from gates.rules.attend_account import digest
from tests.bundles.apart import ENGINE_HOST, SECOND_HOST, put_apart
from tests.bundles.evidence import Evidence, dumped
from tests.bundles.gates import g2_evidence, g3_evidence
from tests.bundles.truth import small_plan

BOTH = (ENGINE_HOST, SECOND_HOST)
SEALED = {"platform": {"layout": {"tp": 4, "ep": 1, "instances": 2}}}
TIER = 4


@pytest.fixture(scope="module")
def whole() -> Evidence:
    evidence = g2_evidence(plan=small_plan(SEALED))
    return put_apart(evidence, g2_baseline.steps(evidence.plan), BOTH)


def copied(evidence: Evidence) -> Evidence:
    return Evidence(evidence.gate, evidence.plan, files={**evidence.files}, simulated=evidence.simulated)


def reason_of(document: dict[str, Any], name: str) -> str:
    found: str = next(row for row in document["checks"] if row["id"].endswith(name))["reason"]["en"]
    return found


def test_two_hosts_that_share_a_load_have_the_verdict_of_one(whole: Evidence) -> None:
    one, two = judge(g2_evidence().bundle()), judge(whole.bundle())
    assert two["verdict"] == "pass", [row["reason"]["en"] for row in (*two["checks"], *two["claims"]) if row.get("verdict", row.get("status"))]
    told = [[(c["claim"], c["status"], c["value"]) for c in document["claims"]] for document in (one, two)]
    assert told[0] == told[1]


def test_a_main_gate_of_two_hosts_has_the_verdict_of_one() -> None:
    evidence = g3_evidence(plan=small_plan(SEALED))
    document = judge(put_apart(evidence, g3_main.steps(evidence.plan), BOTH).bundle())
    assert document["verdict"] == "pass", [c["reason"]["en"] for c in document["claims"] if c["status"] not in ("holds", "not_applicable")]


def of(host: str, rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """Return the first row of a host with these values."""
    return next(row for row in rows if row["on"]["host"] == host and all(row[key] == value for key, value in wanted.items()))


def served(rows: list[dict[str, Any]], host: str, more: int) -> None:
    """Let the engine of a host have counted so many requests more (or fewer) at a tier."""
    after = of(host, rows, phase="measure", tier=TIER, when="after")
    name = next(series for series in after["metrics"] if series.startswith("vllm:request_success_total"))
    after["metrics"][name] = f"{int(float(after['metrics'][name])) + more}.0"


def exchanged(rows: list[dict[str, Any]]) -> None:
    """Let one engine have served a request of the other: the sum over the hosts stays as it was."""
    served(rows, ENGINE_HOST, +1)
    served(rows, SECOND_HOST, -1)


def without(host: str, rows: list[dict[str, Any]], when: str) -> list[dict[str, Any]]:
    return [row for row in rows if not (row["on"]["host"] == host and row["when"] == when and row["tier"] == TIER)]


def in_account(evidence: Evidence, host: str, edit: Callable[[list[dict[str, Any]]], Any]) -> None:
    path = f"evidence/run-1/{host}/asked.jsonl"
    rows = [json.loads(line) for line in evidence.files[path].decode().splitlines()]
    edit(rows)
    evidence.files[path] = "".join(json.dumps({**row, "seq": n}) + "\n" for n, row in enumerate(rows)).encode()


def control(rows: list[dict[str, Any]], did: str) -> dict[str, Any]:
    return next(row for row in rows if row.get("did") == did)


def left_by(evidence: Evidence, host: str, outcome: str) -> None:
    path = f"evidence/run-1/{host}/exit.json"
    evidence.files[path] = dumped({**json.loads(evidence.files[path]), "outcome": outcome})


# What is done to the evidence, and the words by which its incompleteness names the host.
INCOMPLETE: dict[str, tuple[Callable[[Evidence], Any], str]] = {
    "the second host brought nothing": (
        lambda e: [e.files.pop(p) for p in list(e.files) if p.startswith(f"evidence/run-1/{SECOND_HOST}/")],
        f"run-1 on {SECOND_HOST}",
    ),
    "its attendant died": (lambda e: left_by(e, SECOND_HOST, "error"), f"served this run on {SECOND_HOST}"),
    "its counters were skipped": (
        lambda e: e.lines("run-1", "counters.jsonl", lambda rows: without(SECOND_HOST, rows, "after"), renumber=True),
        f"{SECOND_HOST} has no row measure after c{TIER}",
    ),
    "nobody looked whether it is cold": (
        lambda e: e.lines("run-1", "coldness.jsonl", lambda rows: without(SECOND_HOST, rows, "before_tier"), renumber=True),
        f"{SECOND_HOST} has no row before_tier c{TIER}",
    ),
    "the first host's counters told as its own": (
        lambda e: e.lines(
            "run-1",
            "counters.jsonl",
            lambda rows: of(SECOND_HOST, rows, phase="measure", tier=TIER, when="after").update(
                engine_io=of(ENGINE_HOST, rows, phase="measure", tier=8, when="after")["engine_io"]
            ),
        ),
        f"is not what {SECOND_HOST} answered",
    ),
    "one engine served a request of the other": (
        lambda e: e.lines("run-1", "counters.jsonl", exchanged),
        f"the driver sent {ENGINE_HOST} 12 requests",
    ),
    "one engine served somebody else too": (
        lambda e: e.lines("run-1", "counters.jsonl", lambda rows: served(rows, SECOND_HOST, +1)),
        f"the driver sent {SECOND_HOST} 12 requests",
    ),
    "a request went to the other host": (
        lambda e: e.lines("run-1", "records.jsonl", lambda rows: rows[0].update(host=BOTH[1 - BOTH.index(rows[0]["host"])])),
        "did not go to the engine host that their prompt belongs to",
    ),
    "a request went to nobody knows whom": (
        lambda e: e.lines("run-1", "records.jsonl", lambda rows: rows[0].pop("host") and None),
        "did not go to the engine host that their prompt belongs to",
    ),
    "the job knew of one host only": (
        lambda e: e.json("run-1", "job.json", lambda data: data["attendants"].pop()),
        f"and the engagement names {ENGINE_HOST}, {SECOND_HOST}",
    ),
    "its engine was started by nobody": (
        lambda e: in_account(e, SECOND_HOST, lambda rows: rows.remove(control(rows, "start"))),
        f"the account of {SECOND_HOST} does not show",
    ),
    "another process was started than was measured": (
        lambda e: in_account(e, SECOND_HOST, lambda rows: control(rows, "start")["engine"].update(start_ticks=1)),
        f"the account of {SECOND_HOST} does not show",
    ),
    "its engine was started twice and never stopped": (
        lambda e: in_account(e, SECOND_HOST, lambda rows: control(rows, "stop").update(did="start")),
        f"the account of {SECOND_HOST} does not show",
    ),
}


@pytest.mark.parametrize("case", INCOMPLETE)
def test_what_one_of_two_hosts_does_not_bear_out_is_never_a_pass_and_is_named(case: str, whole: Evidence) -> None:
    evidence = copied(whole)
    done, words = INCOMPLETE[case]
    done(evidence)
    document = judge(evidence.bundle())
    assert document["verdict"] == "inconclusive"
    assert words in reason_of(document, ".evidence")


def told_again(evidence: Evidence, name: str, edit: Callable[[list[dict[str, Any]]], Any]) -> Evidence:
    """Edit rows of the first run, and let the accounts of both hosts bear them out: what was edited is then what the host saw."""
    from gates.rules.attend_account import digest
    from gates.rules.attended import ANSWERED, ROWS

    evidence.lines("run-1", name, edit)
    verb = ROWS[name]
    for row in evidence.rows("run-1", name):
        held = {key: row[key] for key in ANSWERED[verb] if key in row}
        told = digest([held] if verb == "residency" else held)
        in_account(
            evidence,
            row["on"]["host"],
            lambda rows, row=row, told=told: [r.update(sha256=told) for r in rows if r["mono_ns"] == row["on"]["mono_ns"]],
        )
    return evidence


def warm(rows: list[dict[str, Any]]) -> None:
    row = of(SECOND_HOST, rows, when="before_tier", tier=TIER)
    row.update(resident_bytes=row["bytes"], resident_pages=row["pages"])


def not_read(rows: list[dict[str, Any]]) -> None:
    """Let the second host have read nothing and the first one twice as much: the sum is what it should be."""
    for host, factor in ((ENGINE_HOST, 2), (SECOND_HOST, 0)):
        before, after = (of(host, rows, phase="measure", tier=TIER, when=when) for when in ("before", "after"))
        for part, key in (("engine_io", "read_bytes"), ("diskstats", "read_sectors"), ("array", "host_read_bytes"), ("array", "media_read_bytes")):
            after[part][key] = before[part][key] + factor * (after[part][key] - before[part][key])


def old_process(rows: list[dict[str, Any]]) -> None:
    row = of(SECOND_HOST, rows, when="after_cool")
    row["engine_before"] = {key: row["engine"][key] for key in ("pid", "start_ticks")}


@pytest.mark.parametrize(
    ("name", "edit", "claim"),
    [
        ("coldness.jsonl", warm, "page_cache_cold"),
        ("counters.jsonl", not_read, "device_bytes"),
        ("coldness.jsonl", old_process, "engine_restarted_cold"),
    ],
    ids=["a warm page cache", "bytes of one host for both", "an engine that was not restarted"],
)
def test_one_host_that_was_not_cold_makes_the_run_invalid_by_its_name(name: str, edit: Callable[[Any], Any], claim: str, whole: Evidence) -> None:
    document = judge(told_again(copied(whole), name, edit).bundle())
    found = next(row for row in document["claims"] if (row["claim"], row["arm"]) == (claim, "baseline"))
    assert (document["verdict"], found["status"]) == ("invalid", "breached"), found["reason"]["en"]
    assert found["reason"]["en"].startswith("run-1, ")
    assert f", {SECOND_HOST}: " in found["reason"]["en"]
    assert found["reason"]["zh-CN"].partition("：")[0].endswith(f"，{SECOND_HOST}")


def given(folder: str, other: str) -> Callable[[dict[str, Any]], Any]:
    """Let the job give the second host another folder for its KV, and its engine say that it has `other`."""

    def edit(data: dict[str, Any]) -> None:
        if "attendants" in data:
            data["attendants"][1]["engine"] = {**data["engine"], "kv_dirs": [folder]}
        else:
            data["instances"][0]["config"] = {"tier": {"path": "/kv"}}
            data["instances"][1]["config"] = {"tier": {"path": other}}

    return edit


@pytest.mark.parametrize(("other", "status"), [("/srv/kv", "holds"), ("/tmp/kv", "breached")])
def test_each_hosts_engine_may_have_the_folder_that_the_job_gave_it_and_no_other(other: str, status: str, whole: Evidence) -> None:
    evidence = copied(whole)
    for name in ("job.json", "engine.json"):
        evidence.json("run-1", name, given("/srv/kv", other))
    claims = judge(evidence.bundle())["claims"]
    found = next(row for row in claims if row["claim"] == "equal_work")
    assert found["status"] == status, found["reason"]["en"]


def test_engines_of_two_hosts_that_differ_are_no_equal_work(whole: Evidence) -> None:
    evidence = copied(whole)
    evidence.json("run-1", "engine.json", lambda data: data["instances"][1].update(version="0.9"))
    found = next(row for row in judge(evidence.bundle())["claims"] if row["claim"] == "equal_work")
    assert (found["status"], "instance 1 differs from instance 0 in version" in found["reason"]["en"]) == ("breached", True)


POSTED = {"url": "http://10.0.0.9:18461/reset_prefix_cache", "answers": [{"status": 200, "success": True}], "success": True, "kv_cache_usage": "0.0"}


def by_reset(evidence: Evidence, skipped: str = "") -> None:
    """Let the engines of a run have been reset by their hosts in place of restarted; of a host that is named the driver alone says so."""
    evidence.json("run-1", "job.json", lambda data: data["phases"].update(cool="reset"))

    def edit(rows: list[dict[str, Any]]) -> None:
        for row in (row for row in rows if row["when"] == "after_cool"):
            on = row["on"]
            moment = {**on, "mono_ns": on["mono_ns"] - 1000, "asked_ns": on["asked_ns"] - 1000, "answered_ns": on["asked_ns"] - 500}
            row["engine_before"] = {key: row["engine"][key] for key in ("pid", "start_ticks")}
            row["reset"] = {**POSTED, "hits_before": "512", "hits_after": "0", "on": moment}
            told = {"verb": "reset", "error": None, "sha256": digest(POSTED), **{key: moment[key] for key in ("wall_ns", "mono_ns", "boot_id")}}
            if on["host"] != skipped:
                in_account(evidence, on["host"], lambda rows, told=told: rows.append(told))

    evidence.lines("run-1", "coldness.jsonl", edit)


def test_a_reset_from_afar_counts_where_each_host_bears_out_its_own() -> None:
    evidence = g2_evidence(plan=small_plan(SEALED))
    put_apart(evidence, g2_baseline.steps(evidence.plan), BOTH)
    by_reset(evidence)
    document = judge(evidence.bundle())
    told = next(row for row in document["claims"] if row["claim"] == "engine_restarted_cold")
    assert (document["verdict"], told["status"]) == ("pass", "holds"), reason_of(document, "evidence")


def test_a_reset_that_one_host_knows_nothing_of_is_no_pass_and_names_it() -> None:
    evidence = g2_evidence(plan=small_plan(SEALED))
    put_apart(evidence, g2_baseline.steps(evidence.plan), BOTH)
    by_reset(evidence, skipped=SECOND_HOST)
    document = judge(evidence.bundle())
    assert document["verdict"] not in ("pass", "conditional")
    assert f"the account of {SECOND_HOST} does not show that its engine was reset" in reason_of(document, "evidence")


def test_an_engine_that_its_host_restarted_behind_the_reset_is_not_the_one_that_was_reset() -> None:
    evidence = g2_evidence(plan=small_plan(SEALED))
    put_apart(evidence, g2_baseline.steps(evidence.plan), BOTH)
    by_reset(evidence)
    look = next(row for row in evidence.rows("run-1", "coldness.jsonl") if row["when"] == "after_cool" and row["on"]["host"] == ENGINE_HOST)
    moment = {**{key: look["on"][key] for key in ("wall_ns", "boot_id")}, "mono_ns": look["on"]["mono_ns"] - 1}
    in_account(
        evidence, ENGINE_HOST, lambda rows: rows.append({**moment, "verb": "control", "error": None, "did": "start", "engine": look["engine"]})
    )
    assert judge(evidence.bundle())["verdict"] not in ("pass", "conditional")
