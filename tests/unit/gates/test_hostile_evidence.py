"""A forged bundle, manifest rebuilt to fit, ends in a verdict or in a sentence: never in an exception, whatever stands in whatever field."""

import json
import random

import pytest

from gates.bundle import Unreadable
from gates.judge import judge
from gates.model import Verdict
from tests.bundles import g2_evidence, g3_evidence, g4_evidence, small_plan

TINY = {
    "workload": {"tiers": [2], "requests_per_run": {"min": 20, "per_concurrency": 1}, "identity_repeats": 2, "warmup_requests": 1},
    "g3": {"ttft_p50_drop_min": {"tiers": [2]}, "throughput_gain_band": {"tiers": [2]}},
    "g4": {"tier": 2},
}
RAW = "RAW:"  # written into the JSON without quotes
HOSTILE = [
    None,
    "",
    "{n}{",
    "{0.x}",
    "\ud800",
    "\0",
    True,
    -1,
    0,
    1.5,
    10**400,
    [],
    {},
    [[]],
    {"a": 1},
    "NaN",
    "1e999999999",
    "1e-999999999",
    "Infinity",
]
HOSTILE += [f"{RAW}{raw}" for raw in ("NaN", "Infinity", "1e999999999", "1e-999999999", "9" * 5000, "[" * 3000 + "]" * 3000, '{"a":1,"a":2}', "")]


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:4]):
            yield from places(item, (*path, index))


def with_value(document, path, hostile):
    """Return the JSON text of a document with one hostile value at a place."""
    mark = "\x01mark\x01"
    if path:
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = mark
    else:
        document = mark
    written = hostile.removeprefix(RAW) if isinstance(hostile, str) and hostile.startswith(RAW) else json.dumps(hostile)
    return json.dumps(document).replace(json.dumps(mark), written)


def forge(evidence, path, rng):
    """Return a file's text with one value replaced: at a random place of a random line."""
    text = evidence.files[path].decode()
    rows = text.splitlines() if path.endswith(".jsonl") else [text]
    row = rng.randrange(len(rows))
    document = json.loads(rows[row])
    where = rng.choice(list(places(document)))
    hostile = rng.choice(HOSTILE)
    rows[row] = with_value(document, where, hostile)
    return ("\n".join(rows) + ("\n" if path.endswith(".jsonl") else "")).encode("utf-8", "surrogatepass"), (where, hostile)


def ends(evidence):
    try:
        return judge(evidence.bundle())["verdict"]
    except Unreadable as error:
        return "unreadable" if error.text.zh and str(error).encode() else "speechless"


@pytest.mark.parametrize("make", [g2_evidence, g3_evidence, lambda plan: g4_evidence()], ids=["G2", "G3", "G4"])
def test_one_hostile_value_anywhere_ends_in_a_verdict_or_a_sentence(make):
    evidence = make(plan=small_plan(TINY))
    rng = random.Random(20260101)
    files = [p for p in sorted(evidence.files) if p.endswith((".json", ".jsonl")) and evidence.files[p].strip()]
    for path in [p for p in files for _ in range(2)] + ["evidence/inputs.json"] * 20:
        whole = evidence.files[path]
        evidence.files[path], what = forge(evidence, path, rng)
        try:
            assert ends(evidence) in {*map(str, Verdict), "unreadable"}, (path, what)
        finally:
            evidence.files[path] = whole


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_list_of_tiers_that_is_none_ends_in_a_verdict(hostile):
    evidence = g2_evidence(plan=small_plan(TINY))
    path = evidence.path("run-1", "workload.json")
    evidence.files[path] = with_value(json.loads(evidence.files[path]), ("tiers",), hostile).encode("utf-8", "surrogatepass")
    assert ends(evidence) in {"invalid", "inconclusive"}


def test_a_fraction_or_a_list_in_a_field_that_shapes_a_line_ends_in_a_verdict():
    evidence = g4_evidence()
    for name, path, raw in (
        ("telemetry.jsonl", ("engine", "start_ticks"), "0.1"),
        ("telemetry.jsonl", ("boot_id",), "[0.5]"),
        ("records.jsonl", ("http_status",), "200.0"),
        ("records.jsonl", ("tier",), '[{"a": 8.0}]'),
    ):
        whole = evidence.files[evidence.path("soak", name)]
        first, rest = whole.split(b"\n", 1)
        evidence.files[evidence.path("soak", name)] = with_value(json.loads(first), path, RAW + raw).encode() + b"\n" + rest
        assert ends(evidence) in {*map(str, Verdict)}, (name, path)
        evidence.files[evidence.path("soak", name)] = whole


@pytest.mark.parametrize("name", ["records.jsonl", "phases.jsonl", "exit.json"])
def test_a_run_whose_times_are_of_two_boots_of_the_host_is_no_pass(name):
    evidence = g2_evidence(plan=small_plan(TINY))
    if name == "exit.json":
        evidence.json("run-1", name, lambda d: d.update(boot_id="another"))
    else:
        evidence.lines("run-1", name, lambda rows: [*rows[:-1], {**rows[-1], "boot_id": "another"}])
    document = judge(evidence.bundle())
    assert document["verdict"] == "inconclusive"
    assert "spans 2 boots" in next(c["reason"]["en"] for c in document["checks"] if c["id"] == "g2.evidence")


@pytest.mark.parametrize(
    "key", ["engagement", "order", "packing_list", "hosts", "simulated", "g2_baseline", "injections", "rig_causes", "interruption"]
)
def test_every_key_of_the_inputs_takes_every_hostile_value(key):
    evidence = g4_evidence()
    document = json.loads(evidence.files["evidence/inputs.json"])
    for hostile in HOSTILE:
        evidence.files["evidence/inputs.json"] = with_value(dict(document), (key,), hostile).encode("utf-8", "surrogatepass")
        assert ends(evidence) in {*map(str, Verdict), "unreadable"}
