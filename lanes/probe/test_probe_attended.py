"""A load generator and an engine host apart: two roots, 127.0.0.1 and 127.0.0.2, real HTTP between them (soaks: lanes/recovery/test_attended.py)."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from gates.model import ATTENDED
from gates.rules import attended
from gates.steps import ATTEND_PACK, run_step
from tests.bundles.evidence import Evidence
from tests.bundles.truth import small_plan
from tests.ports import free_port
from tests.unit.probe.kit import build, job_over, job_spec, lab_engine, lines, probe, workplace, write

KEY = "5e" * 32
FAST = {"read_bytes_per_s": 400_000_000}
PHASES = {"store": True, "store_concurrency": 2, "cool": True, "warmup": 2, "canary": True, "expect_hits": True, "repeat": 0, "chunk_offsets": True}
THERE = "127.0.0.2"


class Two:
    """A load generator `load01` and an engine host `gpu01`, each with a root of its own."""

    def __init__(self, folder):
        self.folder, self.pyz = folder, build(folder)
        self.engine, path, port = lab_engine(folder, self.pyz, tier=FAST, host=THERE)
        url = f"http://{THERE}:{port}"
        self.engine["base_url"] = url
        self.engine_path = write(path, {**json.loads(path.read_text()), "health_url": f"{url}/health"})
        self.place = {"host": "gpu01", "address": THERE, "port": free_port()}

    def start(self, job, *, silence_s=30.0, lost_s=30.0, key=KEY, **parts):
        """Start the attendant and then the job, as the playbook does."""
        spec = job_spec(job, 1, host="load01", engine=self.engine, attendants=[{**self.place, "lost_s": lost_s, "beat_s": 0.2}], **parts)
        given = spec["soak"] or {}
        attend = {"schema": 1, "job": job, "kind": "attend", "fence": 1, "host": "gpu01", "engine": spec["engine"], "silence_s": silence_s}
        attend.update(listen={k: self.place[k] for k in ("address", "port")}, limits={"disk_quota_bytes": 1 << 22, "deadline_s": 300})
        attend.update({"cells": spec["cells"]} if spec.get("cells") else {})
        attend["soak"] = {key: given[key] for key in ("injections", "kernel_log") if key in given} if spec["kind"] == "soak" else None
        self.orders = {"there": {**attend, "attend_key": KEY}, "here": {**spec, "attend_key": key}}
        assert self.order() == {"there": "started", "here": "started"}
        return SimpleNamespace(here=self.folder / "here" / "jobs" / job, there=self.folder / "there" / "jobs" / job)

    def order(self):
        """Order both jobs, as the start playbook does each time, and return what each host said."""
        said = {}
        for root, one in self.orders.items():
            path = write(self.folder / f"{root}-spec.json", one)
            said[root] = self.ask(root, "start", "--spec", path)["state"]
            path.unlink()
        return said

    def ask(self, root, verb, *words):
        return probe(self.pyz, "job", verb, "--root", self.folder / root, *words)

    def state(self, root, job):
        return self.ask(root, "poll", "--job", job, "--max-bytes", 0)

    def ended(self, root, job):
        folder = self.folder / root / "jobs" / job
        job_over(folder, what=f"the end of {job} in {root}")
        return self.state(root, job)


def read_json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


@contextmanager
def two_hosts():
    with workplace("two-") as folder:
        yield Two(folder)


@pytest.fixture
def two():
    with two_hosts() as made:
        yield made


@pytest.fixture(scope="module")
def whole():
    """Give two hosts on which one whole run was measured."""
    with two_hosts() as made:
        (made.folder / "model").mkdir()
        (made.folder / "model" / "weights.bin").write_bytes(b"w" * 8192)
        cells = [{"cell": "checkpoint", "bytes": 1}, {"cell": "tier_read", "bytes": 65536, "threads": 2}]
        cells.append({"cell": "model_load", "weights": str(made.folder / "model")})
        yield made, made.start("apart", arm={"engine.tier.path": "kv"}, phases=PHASES, cells=cells)


def problems(folders):
    """Return what the judge finds wrong with these rows."""
    from gates.readers.run_pack import read_pack

    step = run_step(small_plan(), key="run-1", arm="candidate", run_index=1, prompts="g", store=True)
    evidence = Evidence("G3", small_plan(), simulated=True)
    evidence.files["evidence/inputs.json"] = json.dumps({"hosts": {"engine": ["gpu01"], "loadgen": ["load01"]}}).encode()
    for host, folder, names in (("load01", folders.here, None), ("gpu01", folders.there, ATTEND_PACK)):
        for path in sorted(folder.iterdir()):
            if path.suffix in (".json", ".jsonl") or path.name in (names or ()):
                evidence.files[f"evidence/run-1/{host}/{path.name}"] = path.read_bytes()
    bundle = evidence.bundle()
    assert bundle.hosts(ATTENDED) == ("gpu01",)
    names = [name for name in step.expects["loadgen"] if name != "pack.json"]
    return [p.message.en for p in attended.problems(bundle, step, read_pack(bundle, "run-1", "load01", names))]


def test_a_load_generator_of_its_own_runs_a_whole_job_and_every_row_of_the_engines_host_is_borne_out_there(whole):
    two, job = whole
    end = two.ended("here", "apart")["exit"]
    assert (end["outcome"], end["error"]) == ("done", None), (job.here / "job.log").read_text()
    phases = lines(job.here / "phases.jsonl")
    assert [p["phase"] for p in phases] == ["store", "cool", "warmup", "canary", "measure", "measure", "cell", "cell", "cell"]
    assert all(p["ok"] for p in phases), phases
    there = two.ended("there", "apart")
    assert (there["exit"]["outcome"], there["exit"]["error"]) == ("done", None), (job.there / "job.log").read_text()

    measured = [r for r in lines(job.here / "records.jsonl") if r["phase"] == "measure"]
    assert {(r["usage"]["cached_tokens"], r["server"]) for r in measured} == {(512, None)}  # no stamp of another clock
    assert json.loads((job.here / "client.json").read_text())["server_stamps"] == {"answers": 14, "stamped": 0}
    cold = lines(job.here / "coldness.jsonl")
    assert {c["on"]["host"] for c in cold} == {"gpu01"}
    assert [c["resident_bytes"] for c in cold if c["when"] != "after_tier"] == [0, 0, 0]
    assert cold[0]["engine_before"]["pid"] != cold[0]["engine"]["pid"]
    for tier, requests in ((2, 6), (4, 8)):
        before, after = (next(c for c in lines(job.here / "counters.jsonl") if c["when"] == w and c["tier"] == tier) for w in ("before", "after"))
        assert after["engine_io"]["read_bytes"] - before["engine_io"]["read_bytes"] >= requests * 512 * 256
    assert json.loads((job.here / "engine.json").read_text())["hash_seed"] is not None
    assert problems(job) == []

    checkpoint, tier, load = lines(job.here / "cells.jsonl")
    assert [(row["cell"], row["cold"]) for row in (checkpoint, tier, load)] == [("checkpoint", True), ("tier_read", True), ("model_load", True)]
    assert {on["host"] for on in (checkpoint["on"], tier["on"], load["on_before"], load["on_after"])} == {"gpu01"}
    assert (checkpoint["dir"], tier["bytes"], load["bytes"]) == (str(two.folder), 65536, 8192)
    assert load["started_ns"] < load["healthy_ns"] < load["ended_ns"]

    files = [path for root in ("here", "there") for path in (two.folder / root).rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    again = write(two.folder / "again.json", {**json.loads((job.there / "job.json").read_text()), "attend_key": KEY})
    assert probe(two.pyz, "job", "start", "--root", two.folder / "there", "--spec", again)["state"] == "adopted"
    assert two.state("there", "apart")["state"] == "exited"  # an attendant that has served is not started anew


def test_the_engines_host_resets_its_engine_and_bears_it_out_for_a_driver_elsewhere(two):
    two.engine["reset"] = "/reset_prefix_cache"
    job = two.start("reset", arm={"engine.tier.path": "kv"}, phases={**PHASES, "cool": "reset"})
    end = two.ended("here", "reset")["exit"]
    assert (end["outcome"], end["error"]) == ("done", None), (job.here / "job.log").read_text()
    two.ended("there", "reset")
    cool, canary = (next(row for row in lines(job.here / "phases.jsonl") if row["phase"] == name) for name in ("cool", "canary"))
    proof = cool["detail"]["reset"]
    assert (cool["ok"], cool["detail"]["restarted"], proof["on"]["host"], proof["success"]) == (True, False, "gpu01", True)
    assert float(canary["detail"]["stored"]["local_hit_tokens"]) == 0
    measured = [r for r in lines(job.here / "records.jsonl") if r["phase"] == "measure"]
    assert {r["usage"]["cached_tokens"] for r in measured} == {512}
    done = [row["verb"] for row in lines(job.there / "asked.jsonl") if row["verb"] in ("control", "reset")]
    assert done[-1] == "reset"
    assert problems(job) == []

    kept = (job.here / "coldness.jsonl").read_bytes()
    for spoil in (
        lambda proof: proof.update(success=False),
        lambda proof: proof.update(answers=[]),
        lambda proof: proof["on"].update(host="load01"),
        lambda proof: proof["on"].update(mono_ns=proof["on"]["mono_ns"] - 1),
        lambda proof: proof["on"].update(answered_ns=2**62),
        lambda proof: proof.pop("on"),
        lambda proof: proof.clear(),
    ):
        rows = lines(job.here / "coldness.jsonl")
        spoil(next(row for row in rows if row["when"] == "after_cool")["reset"])
        (job.here / "coldness.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert "does not show that its engine was reset" in " ".join(problems(job))
        (job.here / "coldness.jsonl").write_bytes(kept)


def test_a_job_with_another_key_than_its_attendant_measures_nothing(two):
    job = two.start("other", key="00" * 32, lost_s=1.0, silence_s=1.0)
    end = two.ended("here", "other")["exit"]
    assert (end["outcome"], end["error"]["kind"], end["records"]) == ("error", "attendant", 0)
    assert lines(job.here / "phases.jsonl") == []
    assert two.ended("there", "other")["exit"]["error"]["kind"] == "silence"


def test_rows_that_the_engines_host_does_not_bear_out_are_a_problem(whole):
    two, job = whole
    two.ended("here", "apart")
    two.ended("there", "apart")
    kept = {path: path.read_bytes() for folder in (job.here, job.there) for path in folder.iterdir() if path.suffix in (".json", ".jsonl")}

    def spoilt(path, edit):
        rows = lines(path)
        edit(rows)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = problems(job)
        path.write_bytes(kept[path])
        return " ".join(found)

    counters, cold, asked = job.here / "counters.jsonl", job.here / "coldness.jsonl", job.there / "asked.jsonl"
    assert "row 3 is not what gpu01 answered" in spoilt(counters, lambda rows: rows[3]["on"].update(host="gpu02"))
    assert "is not what gpu01 answered" in spoilt(counters, lambda rows: rows[3]["on"].update(boot_id="another"))
    assert "is not what gpu01 answered" in spoilt(counters, lambda rows: rows[3].pop("on"))
    assert "is not what gpu01 answered" in spoilt(cold, lambda rows: rows[1]["on"].update(rows[0]["on"], mono_ns=7))
    assert "is not what gpu01 answered" in spoilt(counters, lambda rows: rows[3]["engine_io"].update(read_bytes=1 << 40))
    assert "is not what gpu01 answered" in spoilt(cold, lambda rows: rows[1].update(resident_bytes=0, bytes=rows[1]["bytes"] + 1))
    assert "not taken on that side" in spoilt(counters, lambda rows: rows[2]["on"].update(answered_ns=2**62))
    assert "not taken on that side" in spoilt(cold, lambda rows: rows[-1]["on"].update(asked_ns=1))
    cells = job.here / "cells.jsonl"
    assert "the cell checkpoint is not what gpu01 measured" in spoilt(cells, lambda rows: rows[0].update(ended_ns=rows[0]["ended_ns"] - 1))
    assert "the cell tier_read is not what gpu01 measured" in spoilt(cells, lambda rows: rows[1].pop("on"))
    assert "the cell model_load is not what gpu01 measured" in spoilt(cells, lambda rows: rows[2]["proof"].update(resident_bytes=1))
    assert "the cell model_load is not what gpu01 measured" in spoilt(cells, lambda rows: rows[2].update(started_ns=1))
    assert "the cell checkpoint is not what gpu01 measured" in spoilt(cells, lambda rows: [rows[0].pop("on"), rows[0].update(problem="x")])
    assert "in one boot" in spoilt(asked, lambda rows: rows[0].update(boot_id="another"))
    assert "is not what gpu01 answered" in spoilt(asked, lambda rows: [row.update(mono_ns=row["mono_ns"] + 1) for row in rows])
