"""Whole jobs, from store to exit, on the simulated engine with real files below the checkout's own var/ (a real disk: /tmp may be in memory)."""

import collections
import hashlib
import json
import sys
import tarfile

import pytest

from tests.bundles import g2_evidence
from tests.needs import oldest_python
from tests.ports import free_port
from tests.unit.gates.damage import key_paths
from tests.unit.probe.kit import ROOT, build, job_over, job_spec, lab_engine, lines, probe, workplace, write

FAST = {"read_bytes_per_s": 400_000_000}
PHASES = {"store": True, "store_concurrency": 2, "cool": True, "warmup": 2, "canary": True, "expect_hits": True, "repeat": 0, "chunk_offsets": True}


@pytest.fixture
def place():
    """Give a folder on the checkout's disk with the zipapp; whatever still runs from it at the end is ended."""
    with workplace("probe-") as folder:
        build(folder)
        yield folder


def run(place, spec, python=sys.executable):
    """Run a job to its end; return its folder and exit."""
    pyz = place / "probe.pyz"
    probe(pyz, "job", "start", "--root", place / "root", "--spec", write(place / f"{spec['job']}.json", spec), python=python)

    folder = place / "root" / "jobs" / spec["job"]
    job_over(folder)
    found = probe(pyz, "job", "poll", "--root", place / "root", "--job", spec["job"], "--max-bytes", 0)
    assert found["state"] in ("exited", "dead")
    return folder, found["exit"]


def with_lab(place, job, *, kind="run", tier=FAST, lab=None, **parts):
    engine, _, port = lab_engine(place, place / "probe.pyz", tier=tier, **(lab or {}))
    return job_spec(job, port, kind=kind, engine=engine, **{"phases": PHASES, **parts})


def _keys(data):
    """Return the paths of a document's keys, but for those whose names are values: lags by size, an engine's own settings, ways of answering."""
    return {path for path in key_paths(data) if not {"loop_lag_digits", "config", "kinds"} & {*path[:-1]} and path[-1] != "*"}


def test_a_run_stores_cools_warms_tries_a_canary_measures_and_brings_everything_home(place):
    spec = with_lab(place, "g3-run-1", arm={"engine.tier.path": "kv"})
    probe(place / "probe.pyz", "engine", "start", "--spec", place / "engine-spec.json")
    folder, end = run(place, spec)
    assert (end["outcome"], end["error"]) == ("done", None), (folder / "job.log").read_text()
    phases = lines(folder / "phases.jsonl")
    assert [(p["phase"], p["tier"]) for p in phases] == [
        ("store", None),
        ("cool", None),
        ("warmup", None),
        ("canary", None),
        ("measure", 2),
        ("measure", 4),
    ]
    assert all(p["ok"] for p in phases), phases
    records = lines(folder / "records.jsonl")
    assert [r["seq"] for r in records] == list(range(end["records"])) == list(range(end["last_seq"] + 1))
    assert collections.Counter(r["phase"] for r in records) == {"store": 15, "warmup": 2, "canary": 2, "measure": 14}
    measured = [r for r in records if r["phase"] == "measure"]
    assert {r["usage"]["cached_tokens"] for r in measured} == {512}  # the stored prefix, to the token
    assert {r["usage"]["prompt_tokens"] for r in measured} == {528} == {r["prompt_tokens_sent"] for r in measured}
    assert not {r["prompt_sha256"] for r in measured} & {r["prompt_sha256"] for r in records if r["phase"] != "measure"}
    assert all(r["sent_ns"] <= r["server"]["recv_ns"] <= r["server"]["first_ns"] <= r["first_text_ns"] <= r["end_ns"] for r in measured)
    cold = [c for c in lines(folder / "coldness.jsonl") if c["when"] != "after_tier"]
    assert [(c["when"], c["tier"], c["resident_bytes"]) for c in cold] == [("after_cool", None, 0), ("before_tier", 2, 0), ("before_tier", 4, 0)]
    assert cold[0]["engine_before"]["pid"] != cold[0]["engine"]["pid"]
    for tier, requests in ((2, 6), (4, 8)):
        before, after = (next(c for c in lines(folder / "counters.jsonl") if c["when"] == w and c["tier"] == tier) for w in ("before", "after"))
        read = after["engine_io"]["read_bytes"] - before["engine_io"]["read_bytes"]
        assert read >= requests * 512 * 256  # every hit token's KV really came from the disk
        assert after["array"]["host_read_bytes"] >= before["array"]["host_read_bytes"] >= 0
        assert int(after["diskstats"]["read_sectors"]) > int(before["diskstats"]["read_sectors"])
        assert any(name.startswith("vllm:external_prefix_cache_hits_total") for name in after["metrics"])
    workload = json.loads((folder / "workload.json").read_text())
    first = [r["prompt_sha256"] for r in sorted(measured, key=lambda r: r["prompt"]) if r["tier"] == 2]
    assert workload["tiers"][0]["prompts_sha256"] == hashlib.sha256("\n".join(first).encode()).hexdigest()
    client = json.loads((folder / "client.json").read_text())
    assert client["loop_lag_p99_ns"] > 0
    assert sum(client["loop_lag_digits"].values()) == client["loop_ticks"]
    assert max(map(int, client["loop_lag_digits"])) == client["loop_lag_max_ns"].bit_length()
    assert client["calibration"]["n"] > 0
    assert client["server_stamps"] == {"answers": 14, "stamped": 14}
    engine = json.loads((folder / "engine.json").read_text())
    assert (engine["model"], engine["kv_bytes_per_token"], engine["block_tokens"]) == ("lab", 256, 64)
    assert json.loads((folder / "arm.json").read_text())["engine.tier.path"] == "kv"
    made = g2_evidence()
    for name in ("exit.json", "client.json", "workload.json", "engine.json"):  # what the properties of the judgement are tried on, key by key
        own, told = (_keys(data) for data in (made.files[made.path("run-1", name)], (folder / name).read_bytes()))
        assert own == told, name
    packed = probe(place / "probe.pyz", "pack", "--root", place / "root", "--job", "g3-run-1", "--out", place / "run.tar")
    with tarfile.open(place / "run.tar") as tar:
        names = set(tar.getnames())
        for row in packed["files"]:
            assert hashlib.sha256(tar.extractfile(row["path"]).read()).hexdigest() == row["sha256"]
        named = {
            f"{name}.json": json.load(tar.extractfile(f"{name}.json"))["job"] for name in ("job", "exit", "engine", "client", "workload", "pack")
        }
    assert set(named.values()) == {"g3-run-1"}, named
    journals = "phases.jsonl records.jsonl coldness.jsonl counters.jsonl"
    assert set(f"{journals} job.json engine.json arm.json client.json workload.json heartbeat.json exit.json pack.json".split()) <= names


def test_a_run_on_an_engine_that_is_reset_keeps_its_process_and_shows_that_its_cache_is_empty(place):
    spec = with_lab(place, "reset", phases={**PHASES, "cool": "reset"}, workload={"tiers": [{"tier": 2, "requests": 4}]})
    spec["engine"]["reset"] = "/reset_prefix_cache"
    folder, end = run(place, spec)
    assert (end["outcome"], end["error"]) == ("done", None), (folder / "job.log").read_text()
    phases = {p["phase"]: p for p in lines(folder / "phases.jsonl")}
    assert all(p["ok"] for p in phases.values()), phases
    cold = next(c for c in lines(folder / "coldness.jsonl") if c["when"] == "after_cool")
    assert cold["engine_before"]["pid"] == cold["engine"]["pid"]
    assert (cold["reset"]["success"], float(cold["reset"]["hits_before"]), cold["reset"]["hits_after"]) == (True, 512, None)
    canary = phases["canary"]["detail"]
    assert [int(float(canary[name]["local_hit_tokens"])) for name in ("stored", "new")] == [0, 0]
    assert {r["usage"]["cached_tokens"] for r in lines(folder / "records.jsonl") if r["phase"] == "measure"} == {512}


def test_a_second_run_of_the_set_asks_the_same_prompts_and_does_not_store_again(place):
    spec = with_lab(place, "one")
    first, _ = run(place, spec)
    second, end = run(place, {**spec, "job": "two", "phases": {**PHASES, "store": False}})
    assert end["outcome"] == "done"

    def asked(folder):
        return sorted(
            (r["tier"], r["prompt"], r["prompt_sha256"], r["output_sha256"]) for r in lines(folder / "records.jsonl") if r["phase"] == "measure"
        )

    assert asked(first) == asked(second)
    assert not [p for p in lines(second / "phases.jsonl") if p["phase"] == "store"]
    assert all(p["ok"] for p in lines(second / "phases.jsonl"))


def test_an_arm_without_a_tier_measures_its_own_noise_by_repeating_under_another_cache_key(place):
    spec = with_lab(place, "recompute", tier=None, phases={**PHASES, "store": False, "expect_hits": False, "repeat": 4})
    folder, end = run(place, spec)
    assert end["outcome"] == "done"
    records = lines(folder / "records.jsonl")
    outputs = {(r["tier"], r["prompt"]): r["output_sha256"] for r in records if r["phase"] == "measure"}
    again = [r for r in records if r["phase"] == "repeat"]
    assert len(again) == 4
    assert {r["usage"]["cached_tokens"] for r in again} == {0}  # another cache key: really computed again
    assert [r["output_sha256"] for r in again] == [outputs[2, r["prompt"]] for r in again]
    assert lines(folder / "coldness.jsonl")[0]["dir"] is None


@pytest.mark.parametrize(("fault", "kind"), [("error_stream_share", "stream_error"), ("empty_stream_share", "empty_stream")])
def test_silent_errors_of_the_engine_are_on_the_account(place, fault, kind):
    folder, end = run(place, with_lab(place, "odd", lab={"faults": {fault: 0.5}}, phases={**PHASES, "canary": False}))
    assert end["outcome"] == "done"
    measured = [r for r in lines(folder / "records.jsonl") if r["phase"] == "measure"]
    kinds = collections.Counter((r["error"] or {}).get("kind") for r in measured)
    assert sum(kinds.values()) == 14
    assert set(kinds) == {None, kind}
    assert all(r["http_status"] == 200 for r in measured)


def test_an_engine_that_warms_its_files_is_seen(place):
    folder, _ = run(place, with_lab(place, "warm", lab={"faults": {"read_ahead_share": 1.0}}))
    cooled = next(p for p in lines(folder / "phases.jsonl") if p["phase"] == "cool")
    warm = [c for c in lines(folder / "coldness.jsonl") if c["when"] in ("after_cool", "before_tier") and c["resident_bytes"]]
    assert warm
    assert cooled["ok"] is (warm[0]["when"] != "after_cool")


def test_lost_kv_fails_the_canary_and_the_run_measures_on_since_the_judge_decides(place):
    lost, end = run(place, with_lab(place, "lost", lab={"faults": {"lost_kv_share": 1.0}}))
    assert end["outcome"] == "done"
    canary = next(p for p in lines(lost / "phases.jsonl") if p["phase"] == "canary")
    assert canary["ok"] is False
    assert canary["detail"]["stored"]["hit"] is False
    assert len([r for r in lines(lost / "records.jsonl") if r["phase"] == "measure"]) == 14


def test_a_used_up_quota_ends_a_run_by_name_at_a_line_end(place):
    folder, end = run(place, with_lab(place, "full", limits={"disk_quota_bytes": 9000}))
    assert (end["outcome"], end["error"]["kind"]) == ("error", "quota")
    assert (folder / "records.jsonl").read_bytes().endswith(b"\n")
    assert end["records"] == len(lines(folder / "records.jsonl"))


def test_a_soak_keeps_the_load_on_and_brings_telemetry(place):
    spec = with_lab(place, "soak", kind="soak", phases={**PHASES, "canary": False, "chunk_offsets": False})
    folder, end = run(place, spec)
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    assert [p["phase"] for p in lines(folder / "phases.jsonl")] == ["store", "cool", "warmup", "soak"]
    soak = [r for r in lines(folder / "records.jsonl") if r["phase"] == "soak"]
    assert len(soak) > 24
    assert all(r["error"] is None and r["chunk_offsets_us"] == [] for r in soak)
    assert [r["prompt"] for r in sorted(soak, key=lambda r: r["sent_ns"])][:13] == [*range(12), 0]
    assert len({r["prompt_sha256"] for r in soak}) == len(soak)  # each lap has a suffix of its own
    telemetry = lines(folder / "telemetry.jsonl")
    assert [t["seq"] for t in telemetry] == list(range(len(telemetry)))
    assert len(telemetry) >= 8
    last = telemetry[-1]
    assert last["engine"]["alive"] is True
    assert last["engine"]["rss_bytes"] > 0
    assert last["kv_dir_bytes"] > 0
    assert last["counters"]["nvme_media_errors"] == 0
    assert last["host"]["mem_available_bytes"] > 0
    assert lines(folder / "events.jsonl") == []


def test_an_engine_that_crashes_in_a_soak_is_an_event_is_started_again_and_the_outage_is_on_the_account(place):
    spec = with_lab(place, "soak", kind="soak", lab={"faults": {"crash_after_loads": 20}, "hbm_tokens": 4096}, phases={**PHASES, "canary": False})
    spec["soak"]["seconds"] = 10  # long enough for a restart on a busy machine
    folder, end = run(place, spec)
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    events = [e["kind"] for e in lines(folder / "events.jsonl")]
    assert events == ["engine_exit", "engine_restart"]
    soak = sorted((r for r in lines(folder / "records.jsonl") if r["phase"] == "soak"), key=lambda r: r["sent_ns"])
    kinds = collections.Counter((r["error"] or {}).get("kind") for r in soak)
    assert kinds["connection"] >= 1
    assert soak[-1]["error"] is None  # the load went on
    pids = {t["engine"]["pid"] for t in lines(folder / "telemetry.jsonl")}
    assert len(pids) == 2


@pytest.mark.old_python
def test_the_probe_runs_a_whole_job_on_the_oldest_python_that_it_names(place):
    spec = with_lab(place, "old")
    folder, end = run(place, spec, python=oldest_python())
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    assert json.loads((folder / "client.json").read_text())["python"].startswith(("3.8.", "3.9.", "3.10."))


def test_two_instances_serve_one_load_in_one_window_and_are_counted_together(place):
    engine, path, _ = lab_engine(place, place / "probe.pyz", tier=FAST)
    config, spec = json.loads((place / "lab.json").read_text()), json.loads(path.read_text())
    other = free_port()
    write(place / "lab-1.json", {**config, "port": other})
    argv = [sys.executable, "-m", "lab_engine", "--config"]
    processes = [{"name": n, "argv": [*argv, str(place / n)], "env": spec["env"]} for n in ("lab.json", "lab-1.json")]
    launcher = [
        sys.executable,
        str(ROOT / "playbooks/roles/engine_vllm/files/launch.py"),
        str(write(place / "processes.json", {"processes": processes})),
    ]
    write(path, {**spec, "argv": launcher, "more_health_urls": [f"http://127.0.0.1:{other}/health"]})
    urls = [engine["base_url"], f"http://127.0.0.1:{other}"]
    folder, end = run(place, job_spec("two", 1, engine={**engine, "base_urls": urls}, phases=PHASES))
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    assert all(p["ok"] for p in lines(folder / "phases.jsonl"))
    told = json.loads((folder / "engine.json").read_text())
    assert [one["url"] for one in told["instances"]] == urls
    assert {one["model"] for one in told["instances"]} == {"lab"}
    measured = [r for r in lines(folder / "records.jsonl") if r["phase"] == "measure"]
    assert {r["usage"]["cached_tokens"] for r in measured} == {512}  # also what the other instance had stored
    for tier, requests in ((2, 6), (4, 8)):
        before, after = (next(c for c in lines(folder / "counters.jsonl") if c["when"] == w and c["tier"] == tier) for w in ("before", "after"))
        grown = {
            k: float(after["metrics"][k]) - float(before["metrics"][k]) for k in after["metrics"] if k.startswith("vllm:external_prefix_cache_hits")
        }
        assert len(grown) == 2
        assert all(count > 0 for count in grown.values()), grown  # each had its share
        assert sum(grown.values()) == requests * 512
        assert after["engine_io"]["read_bytes"] - before["engine_io"]["read_bytes"] >= requests * 512 * 256
