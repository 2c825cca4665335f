"""Evidence that shows a breach, taken away: what is left never makes the claim hold, however sound it looks by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, merged, small_plan, soak_plan
from tests.bundles.evidence import Evidence
from tests.unit.gates.test_properties import TINY

Edit = Callable[[Evidence], Any]
SECOND = "/kv2"


def claim_of(evidence: Evidence, name: str, arm: str = "candidate") -> str:
    return next(c["status"] for c in judge(evidence.bundle())["claims"] if (c["claim"], c["arm"]) == (name, arm))


def client(edit: Callable[[dict[str, Any]], Any]) -> Edit:
    return lambda e: e.json("run-2", "client.json", lambda d: edit(d) and None)


def rows(name: str, edit: Callable[[dict[str, Any]], Any]) -> Edit:
    def change(found: list[dict[str, Any]]) -> None:
        for row in found:
            edit(row)

    return lambda e: e.lines("run-2", name, change)


def measured(row: dict[str, Any]) -> bool:
    return bool(row["phase"] == "measure")


def slow_client(row: dict[str, Any]) -> None:
    """Let the client take 30 % of the TTFT."""
    if measured(row):
        row["server"]["send_ns"] = row["sent_ns"] + (row["first_text_ns"] - row["sent_ns"]) * 7 // 10


def few_hits(row: dict[str, Any]) -> None:
    """Let a tenth of the tokens come from the external tier, while the engine found as many hits as ever."""
    if measured(row):
        hit = next(k for k in row["metrics"] if 'external_kv_transfer"' in k)
        computed = next(k for k in row["metrics"] if 'local_compute"' in k)
        lost = int(float(row["metrics"][hit]) * 0.9)
        row["metrics"] |= {hit: str(float(row["metrics"][hit]) - lost), computed: str(float(row["metrics"][computed]) + lost)}


def without(row: dict[str, Any], word: str) -> None:
    row["metrics"] = {k: v for k, v in row["metrics"].items() if word not in k}


def process_reads_nothing(row: dict[str, Any]) -> None:
    row["engine_io"]["read_bytes"] = 0


def device_reads_nothing(row: dict[str, Any]) -> None:
    row["diskstats"]["read_sectors"] = 0


def less_stored(row: dict[str, Any]) -> None:
    stored = next(k for k in row["metrics"] if "store_bytes" in k)
    row["metrics"][stored] = str(float(row["metrics"][stored]) / 2)


def previous_engine(row: dict[str, Any]) -> None:
    row["engine_before"] = {k: row["engine"][k] for k in ("pid", "start_ticks")}


def late_receipts(evidence: Evidence) -> None:
    """Let an engine without stamps be measured by a kernel whose stamps come late, and a loop that is quick."""
    rows("records.jsonl", lambda row: row.update(server=None) if measured(row) else None)(evidence)
    client(lambda d: d["server_stamps"].update(stamped=0))(evidence)
    client(lambda d: d["calibration"]["receipt"].update(late_p99_ns=20_000_000, late_max_ns=20_000_000))(evidence)


def lenient(**validity: str) -> dict[str, Any]:
    return {"validity": validity}


CASES: dict[str, tuple[str, Edit, Edit]] = {
    "told apart": (
        "calibration",
        client(lambda d: d["calibration"].update(told_apart=False)),
        client(lambda d: d["calibration"].pop("told_apart")),
    ),
    "stamps": ("client_healthy", rows("records.jsonl", slow_client), rows("records.jsonl", lambda row: row.pop("server"))),
    "stamps of one": (
        "client_healthy",
        rows("records.jsonl", slow_client),
        rows("records.jsonl", lambda row: row.pop("server") if row["prompt"] == 3 else None),
    ),
    "receipts": ("client_healthy", late_receipts, client(lambda d: d.pop("receipts"))),
    "lateness": ("client_healthy", late_receipts, client(lambda d: d["calibration"].pop("receipt"))),
    "stamps told": ("client_healthy", late_receipts, client(lambda d: d.pop("server_stamps"))),
    "labelled tokens": (
        "external_hits",
        rows("counters.jsonl", few_hits),
        rows("counters.jsonl", lambda row: without(row, "by_source")),
    ),
    "process": ("device_bytes", rows("counters.jsonl", process_reads_nothing), rows("counters.jsonl", lambda row: row.pop("engine_io"))),
    "device": ("device_bytes", rows("counters.jsonl", device_reads_nothing), rows("counters.jsonl", lambda row: row.pop("diskstats"))),
    "engine before": (
        "engine_restarted_cold",
        rows("coldness.jsonl", previous_engine),
        rows("coldness.jsonl", lambda row: row.pop("engine_before")),
    ),
    "half of the engine before": (
        "engine_restarted_cold",
        rows("coldness.jsonl", previous_engine),
        rows("coldness.jsonl", lambda row: row["engine_before"].pop("pid") if row["engine_before"] else None),
    ),
    "store bytes": ("store_complete", rows("counters.jsonl", less_stored), rows("counters.jsonl", lambda row: without(row, "store_bytes"))),
}


@pytest.mark.parametrize("case", CASES)
def test_a_breach_whose_evidence_is_taken_away_is_unknown_and_never_holds(case: str) -> None:
    claim, breach, take = CASES[case]
    evidence = g3_evidence(Truth(), small_plan(merged(TINY, lenient(client_share_of_ttft_max="0.05"))))
    breach(evidence)
    assert claim_of(evidence, claim) == "breached"
    take(evidence)
    assert claim_of(evidence, claim) == "unknown"


@pytest.fixture(scope="module")
def two_directories() -> Evidence:
    """Give a candidate whose KV lies in two directories, the second of which is warm in one check."""
    evidence = g3_evidence(Truth(), small_plan(TINY))
    for step in ("run-2", "run-3", "placebo"):
        evidence.json(step, "job.json", lambda d: d["engine"].update(kv_dirs=["/kv", SECOND]))
        evidence.lines(step, "coldness.jsonl", lambda found: [r for row in found for r in (row, {**row, "dir": SECOND})], renumber=True)
    return evidence


def test_every_kv_directory_is_checked_by_its_name(two_directories: Evidence) -> None:
    assert claim_of(two_directories, "page_cache_cold") == "holds"
    warm = copy.deepcopy(two_directories)

    def heat(found: list[dict[str, Any]]) -> None:
        row = next(r for r in found if r["dir"] == SECOND and r["when"] == "before_tier")
        row["resident_bytes"] = row["bytes"] // 2

    warm.lines("run-2", "coldness.jsonl", heat)
    assert claim_of(warm, "page_cache_cold") == "breached"
    gone = copy.deepcopy(warm).lines("run-2", "coldness.jsonl", lambda found: [r for r in found if not r["resident_bytes"]], renumber=True)
    assert claim_of(gone, "page_cache_cold") == "unknown"
    told = copy.deepcopy(gone).lines("run-2", "coldness.jsonl", lambda found: [r for r in found if r["dir"] != SECOND], renumber=True)
    assert claim_of(told, "page_cache_cold") == "unknown"


def test_the_same_directory_twice_is_not_two(two_directories: Evidence) -> None:
    twice = copy.deepcopy(two_directories).lines("run-2", "coldness.jsonl", lambda found: [r | {"dir": "/kv"} for r in found])
    assert claim_of(twice, "page_cache_cold") == "unknown"


def test_on_nfs_the_mount_must_have_read_what_the_process_did() -> None:
    def on_nfs(evidence: Evidence, share: float) -> Evidence:
        evidence.lines("run-2", "coldness.jsonl", lambda found: [{**r, "fs_type": "nfs4"} for r in found])

        def mounted(row: dict[str, Any]) -> None:
            row["nfs"] = {"mount_point": "/kv", "server_read_bytes": int(row["diskstats"]["read_sectors"] * 512 * share)}
            row["diskstats"] = None

        rows("counters.jsonl", mounted)(evidence)
        return evidence

    plan = small_plan(TINY)
    assert claim_of(on_nfs(g3_evidence(Truth(), plan), 1.0), "device_bytes") == "holds"
    cached = on_nfs(g3_evidence(Truth(), plan), 0.5)
    assert claim_of(cached, "device_bytes") == "breached"
    rows("counters.jsonl", lambda row: row.pop("nfs"))(cached)
    assert claim_of(cached, "device_bytes") == "unknown"


def test_on_a_file_system_without_a_block_device_the_process_alone_counts() -> None:
    evidence = g3_evidence(Truth(), small_plan(TINY))
    evidence.lines("run-2", "coldness.jsonl", lambda found: [{**r, "fs_type": "lustre"} for r in found])
    rows("counters.jsonl", lambda row: row.update(diskstats=None))(evidence)
    assert claim_of(evidence, "device_bytes") == "holds"


def test_an_engine_that_never_had_the_labelled_counter_is_told_by_its_hits() -> None:
    evidence = g3_evidence(Truth(), small_plan(TINY))
    rows("counters.jsonl", lambda row: without(row, "by_source"))(evidence)
    evidence.json("run-2", "engine.json", lambda d: d.update(metrics_names=[n for n in d["metrics_names"] if "by_source" not in n]))
    assert claim_of(evidence, "external_hits") == "holds"
    evidence.json("run-2", "engine.json", lambda d: d.pop("metrics_names") and None)
    assert claim_of(evidence, "external_hits") == "unknown"


def test_a_key_that_is_missing_in_a_configuration_is_seen_against_the_job() -> None:
    """The recompute arm has no keys of a tier, so a key that it lacks is no difference from the baseline: only the job tells that it was there."""
    evidence = g3_evidence(Truth(), small_plan(TINY))
    for name in ("arm.json", "job.json"):
        evidence.json("recompute", name, lambda d, name=name: (d if name == "arm.json" else d["arm"]).update({"engine.max_model_len": 1024}))
    assert claim_of(evidence, "equal_work", "recompute") == "breached"
    evidence.json("recompute", "arm.json", lambda d: d.pop("engine.max_model_len") and None)
    assert claim_of(evidence, "equal_work", "recompute") == "unknown"


def _end_of(gate: str, edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    evidence, step = (g4_evidence(plan=soak_plan()), "soak") if gate == "G4" else ({"G2": g2_evidence, "G3": g3_evidence}[gate](), "run-2")
    return judge(evidence.json(step, "exit.json", edit).bundle())


@pytest.mark.parametrize("gate", ["G2", "G3", "G4"])
@pytest.mark.parametrize("key", ["ended_wall_ns", "ended_ns", "boot_id", "outcome", "error", "records", "last_seq"])
def test_an_end_of_which_a_word_is_missing_is_no_whole_end(gate, key):
    assert _end_of(gate, lambda end: end.pop(key) and None)["verdict"] == "inconclusive"


@pytest.mark.parametrize("gate", ["G2", "G3", "G4"])
@pytest.mark.parametrize("ns", [1, None, "later"])
def test_an_end_before_what_the_job_did_is_none(gate, ns):
    document = _end_of(gate, lambda end: end.update(ended_ns=ns))
    assert document["verdict"] == "inconclusive"
    assert "before a phase of it did" in document["summary"]["en"]
