"""No loss, doubling or damage of evidence ever turns a verdict that is no pass into a pass, and none of it passes silently."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, small_plan
from tests.unit.gates.damage import copied_from, verdict

GOOD = ("pass", "conditional")
TINY = {
    "workload": {"tiers": [2], "requests_per_run": {"min": 20, "per_concurrency": 1}, "identity_repeats": 2, "warmup_requests": 1},
    "g3": {"ttft_p50_drop_min": {"tiers": [2]}, "throughput_gain_band": {"tiers": [2]}},
    "g4": {"tier": 2},
}
RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def slow():
    """A candidate that misses the limit, and everything else in order."""
    return g3_evidence(Truth(drop=0.20), small_plan(TINY))


@pytest.fixture(scope="module")
def fast():
    return g3_evidence(Truth(), small_plan(TINY))


def damaged(evidence, path, how, where):
    """Return a copy with one file damaged; manifest and pack.json are made to fit, as a forger would."""
    copied = copied_from(evidence)
    data = copied.files[path]
    lines = data.decode().splitlines(keepends=True)
    row = int(where * len(lines)) if lines else 0
    if how == "remove":
        copied.drop(path)
    elif how == "empty":
        copied.files[path] = b""
    elif how == "truncate":
        copied.files[path] = data[: int(len(data) * where)]
    elif how == "drop a line":
        copied.files[path] = "".join(lines[:row] + lines[row + 1 :]).encode()
    elif how == "double a line":
        copied.files[path] = "".join(lines[: row + 1] + lines[row:]).encode()
    elif how == "swap lines":
        copied.files[path] = "".join(reversed(lines)).encode()
    elif how == "null":
        copied.files[path] = _null_one(lines, row, where)
    elif how == "nan":
        copied.files[path] = data.replace(b": 0", b": NaN").replace(b":0", b":NaN")
    parts = path.split("/")
    if len(parts) == 4 and path in copied.files and parts[3] != "pack.json":
        copied.repack(parts[1])
    return copied


def _null_one(lines, row, where):
    value = json.loads(lines[row])
    if isinstance(value, dict) and value:
        value[sorted(value)[int(where * len(value)) % len(value)]] = None
    return ("".join(lines[:row]) + json.dumps(value) + "\n" + "".join(lines[row + 1 :])).encode()


HOWS = st.sampled_from(["remove", "empty", "truncate", "drop a line", "double a line", "swap lines", "null", "nan"])


@given(data=st.data(), how=HOWS, where=st.floats(0, 0.999))
@RELAXED
def test_damaged_evidence_never_turns_a_fail_into_a_pass(slow, data, how, where):
    path = data.draw(st.sampled_from(sorted(slow.files)))
    assert verdict(damaged(slow, path, how, where)) not in GOOD


@given(data=st.data(), how=st.sampled_from(["remove", "empty", "drop a line", "double a line"]), where=st.floats(0.0, 0.999))
@RELAXED
def test_lost_or_doubled_evidence_never_passes_silently(fast, data, how, where):
    path = data.draw(st.sampled_from(sorted(fast.files)))
    changed = damaged(fast, path, how, where)
    if changed.files.get(path) != fast.files[path] and not path.endswith("events.jsonl"):
        assert verdict(changed) not in GOOD


def test_every_single_file_of_every_gate_is_needed():
    for make in (lambda: g2_evidence(plan=small_plan(TINY)), lambda: g3_evidence(plan=small_plan(TINY)), g4_evidence):
        evidence = make()
        for path in list(evidence.files):
            kept = evidence.files.pop(path)
            assert verdict(evidence) not in GOOD, path
            evidence.files[path] = kept


def test_a_slower_candidate_is_never_judged_better():
    rank = {"pass": 0, "conditional": 0, "fail": 1}
    seen = [
        rank[
            verdict(
                g3_evidence(
                    Truth(drop=d, noise=0.0),
                    small_plan({**TINY, "g3": {**TINY["g3"], "throughput_gain_band": {"tiers": [2], "low": "0.01", "high": "9"}}}),
                )
            )
        ]
        for d in (0.4, 0.3, 0.2501, 0.2499, 0.2, 0.1, 0.0)
    ]
    assert seen == sorted(seen)
    assert seen[2:4] == [0, 1]


def test_evidence_of_another_job_or_attempt_does_not_count(fast):
    stolen = copy.deepcopy(fast)
    stolen.json("run-3", "job.json", lambda d: d.update(job="other-attempt-run-3"))
    assert verdict(stolen) == "inconclusive"
    swapped = copy.deepcopy(fast)
    for name in [p for p in fast.files if p.startswith("evidence/run-2/")]:
        swapped.files[name] = fast.files[name.replace("run-2", "run-3")]
    assert verdict(swapped) not in GOOD


def test_evidence_that_no_step_can_have_brought_is_not_ignored(fast):
    foreign = copy.deepcopy(fast)
    foreign.files["evidence/run-9/gpu01/records.jsonl"] = b""
    assert verdict(foreign) == "inconclusive"
    ghost = copy.deepcopy(fast)
    ghost.files["evidence/run-1/ghost/records.jsonl"] = b""
    assert verdict(ghost) == "inconclusive"


def test_a_job_that_did_not_end_by_itself_is_no_evidence(fast):
    for outcome in ("stopped", "error"):
        ended = copy.deepcopy(fast)
        ended.json("placebo", "exit.json", lambda d, outcome=outcome: d.update(outcome=outcome, error={"kind": "x", "message": "y"}))
        assert verdict(ended) == "inconclusive"
