"""Did the external tier serve the soak, or something above it? Enough of the stored prefix tokens must have come from there."""

import pytest

from gates.judge import judge
from tests.bundles import g4_evidence

EXTERNAL, LOCAL = "vllm:external_prefix_cache_hits_total", "vllm:prefix_cache_hits_total"
STORED = "vllm:kv_offload_store_bytes_total"


def named(metrics, name):
    return next(key for key in metrics if key.startswith(name))


def served(share, *, local=0.0, stored=1.0):
    """Return the standing of the claim, and the verdict, of a soak in which the tier served a share of its tokens and the GPU cache another.

    `local` None: the engine does not tell what its GPU cache served. `stored`: the share of the bytes of its prefixes that was stored.
    """
    evidence = g4_evidence()
    rows = [r for r in evidence.rows("soak", "counters.jsonl") if r["phase"] == "soak"]
    before, after = (r["metrics"] for r in rows)
    key, hbm = named(before, EXTERNAL), named(before, LOCAL)
    low, whole = float(before[key]), float(after[key]) - float(before[key])

    def counters(lines):
        for row in lines:
            if (row["phase"], row["when"]) == ("soak", "after"):
                row["metrics"][key] = str(low + whole * share)
                row["metrics"][hbm] = str(float(before[hbm]) + whole * (local or 0))
            if local is None:
                del row["metrics"][named(row["metrics"], LOCAL)]
            if row["phase"] == "store":
                row["metrics"][named(row["metrics"], STORED)] = str(int(float(row["metrics"][named(row["metrics"], STORED)]) * stored))
        return lines

    def samples(lines):
        for row in lines:
            row["metrics"] = {name: str(int(float(value) * share)) for name, value in row["metrics"].items()}
        return lines

    evidence.lines("soak", "counters.jsonl", counters)
    document = judge(evidence.lines("soak", "telemetry.jsonl", samples).bundle())
    claim = next(c for c in document["claims"] if c["claim"] == "tier_exercised")
    return claim["status"], document["verdict"], claim["reason"]["en"]


def test_a_soak_that_the_tier_served_holds():
    assert served(1.0)[:2] == ("holds", "pass")


@pytest.mark.parametrize(("share", "local"), [(0.5, 0.5), (0.01, 0.99), (0.0, 1.0)])
def test_a_soak_that_fits_into_the_gpu_cache_says_nothing_about_the_tier(share, local):
    status, verdict, reason = served(share, local=local)
    assert (status, verdict) == ("breached", "invalid")
    assert share == 0 or "from the GPU cache" in reason


@pytest.mark.parametrize(("share", "local"), [(0.5, 0.0), (0.5, 0.3), (0.0, 0.0)])
def test_what_neither_tier_nor_gpu_cache_served_was_lost_by_the_product(share, local):
    """Whatever the GPU cache served is put to the tier's credit: even so it falls short."""
    assert served(share, local=local)[:2] == ("breached", "fail")


def test_what_was_never_stored_whole_is_not_laid_on_the_product():
    assert served(0.5, stored=0.5)[:2] == ("breached", "invalid")


def test_where_the_gpu_cache_does_not_tell_what_it_served_nobody_is_blamed():
    assert served(0.5, local=None)[:2] == ("unknown", "inconclusive")


def test_the_smaller_of_what_samples_and_counters_tell_decides():
    evidence = g4_evidence()
    evidence.lines("soak", "telemetry.jsonl", lambda rows: [{**r, "metrics": {k: str(int(v) // 2) for k, v in r["metrics"].items()}} for r in rows])
    assert judge(evidence.bundle())["verdict"] == "inconclusive"


@pytest.mark.parametrize(("share", "status"), [(1, "holds"), (2, "unknown")])
def test_an_engine_that_was_started_again_is_looked_at_between_the_samples_of_one_process_each_and_fails_by_its_crash(share, status):
    evidence = g4_evidence()
    rows = evidence.rows("soak", "telemetry.jsonl")
    half, hits = len(rows) // 2, named(rows[0]["metrics"], EXTERNAL)
    begun_anew = int(rows[half - 1]["metrics"][hits]) + 7  # what the first process counted behind its last sample is known to nobody

    def crashed(lines):
        for n, row in enumerate(lines):
            row["metrics"][hits] = str((int(row["metrics"][hits]) - (begun_anew if n >= half else 0)) // share)
            row["engine"]["pid"] += n >= half
        return lines

    def counters(lines):
        for row in lines:
            if (row["phase"], row["when"]) == ("soak", "after"):
                row["metrics"][hits] = str(float(row["metrics"][hits]) - begun_anew)
        return lines

    evidence.lines("soak", "counters.jsonl", counters)
    document = judge(evidence.lines("soak", "telemetry.jsonl", crashed).bundle())
    claim = next(c for c in document["claims"] if c["claim"] == "tier_exercised")
    assert claim["status"] == status, claim["reason"]["en"]
    assert document["verdict"] == ("fail" if status == "holds" else "inconclusive"), document["summary"]["en"]


def trend(evidence):
    check = next(c for c in judge(evidence.bundle())["checks"] if c["id"] == "g4.excursion_hits")
    return check["verdict"], check["reason"]["en"]


def test_samples_further_apart_than_a_window_never_show_more_than_all_hits():
    evidence = g4_evidence()
    evidence.lines("soak", "telemetry.jsonl", lambda rows: [r for n, r in enumerate(rows) if n % 7 == 0], renumber=True)
    verdict, reason = trend(evidence)
    middle = float(reason.rpartition("middle is ")[2].rstrip(".").replace(" %", ""))
    assert verdict in ("pass", "inconclusive")
    assert 97 <= middle <= 100


def test_the_windows_around_a_crash_are_seen_between_samples_of_one_process_each():
    whole, crashed = g4_evidence(), g4_evidence()

    def crash(rows):
        hits, half = named(rows[0]["metrics"], EXTERNAL), len(rows) // 2
        low = int(rows[half - 1]["metrics"][hits])
        for row in rows[half:]:
            row["metrics"][hits] = str(int(row["metrics"][hits]) - low)
            row["engine"]["pid"] += 1
        return rows

    crashed.lines("soak", "telemetry.jsonl", crash)
    assert trend(crashed)[1] == trend(whole)[1]
