"""The playbooks of a run on this machine: deploy, start, look, collect, stop, remove."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine import packs
from app.engine.steps.journal import never_began
from gates.readers.prometheus import sources
from gates.rules.engine import IDENTITY
from gates.rules.stand_ins import told_by
from gates.steps import RUN_PACK
from tests.integration.playbook_lab import ATTEMPT, PlaybookLab, playbook_lab
from tests.unit.rack.simulate import bundle_of, demo_plan


@pytest.fixture(scope="module")
def lab() -> Iterator[PlaybookLab]:
    """One host on which everything is deployed."""
    with playbook_lab() as made:
        made.add("gpu01")
        done = made.play("deploy.yml", made.variables({"key": "deploy"}))
        assert done.rc == 0, done.output
        with tarfile.open(made.staging / "gpu01" / "pack.tar") as tar:
            assert {"pack.json", "commands.json", "host.json", "calibration.json"} <= set(tar.getnames())
        yield made


LARGE = 200 << 20  # bytes of a journal with holes


def test_a_large_pack_comes_home_in_parts_from_a_host_that_is_entered_by_another_user(lab: PlaybookLab, tmp_path: Path) -> None:
    """Through `become` Ansible takes each file into memory whole, on both sides: so none may be large."""
    root, variables = Path(lab.hosts["gpu01"]["qg_root"]), lab.variables({"key": "large"})
    folder = root / "jobs" / variables["job"]["id"]
    folder.mkdir(parents=True)
    for name, data in (("lock", b""), ("started", b"{}"), ("exit.json", b'{"outcome": "done"}'), ("records.jsonl", b"")):
        (folder / name).write_bytes(data)
    with (folder / "records.jsonl").open("r+b") as journal:
        journal.seek(LARGE - 1)
        journal.write(b"\n")
    lab.hosts["gpu01"].update(ansible_become=True, ansible_become_method="ansible.builtin.su")
    try:
        collected = lab.play("job_collect.yml", variables)
    finally:
        for key in ("ansible_become", "ansible_become_method"):
            del lab.hosts["gpu01"][key]
    assert collected.rc == 0, collected.output
    reply = collected.replies["gpu01"]
    assert (reply["packed"], reply["journal_bytes"], len(reply["parts"])) == (True, LARGE, 7)
    brought = sorted((lab.staging / "gpu01").glob("pack.tar.*"))
    assert [path.name for path in brought] == reply["parts"]
    assert max(path.stat().st_size for path in brought) <= 32 << 20
    (lab.staging / "gpu01" / "pack.tar").unlink(missing_ok=True)  # of the deployment
    files, found = packs.read_all(lab.staging, ["gpu01"], tmp_path)
    assert found == []
    assert {file.name: file.path.stat().st_size for file in files}["records.jsonl"] == LARGE
    for path in brought:
        path.unlink()
    shutil.rmtree(folder)


def engine_pid(root: Path) -> int:
    return int(json.loads((root / "engine" / "engine.pid").read_text())["pid"])


def test_a_run_stores_cools_and_measures_and_its_pack_holds_all_evidence(lab: PlaybookLab) -> None:
    variables, root, job = lab.variables(), Path(lab.hosts["gpu01"]["qg_root"]), f"{ATTEMPT}-run-1"
    started = lab.play("job_start.yml", variables)
    assert started.rc == 0, started.output
    assert started.replies["gpu01"]["state"] == "started"
    assert started.replies["gpu01"]["expected_s"] > 0
    assert lab.wait(root, job)["outcome"] == "done"
    phases = lab.phases(root, job)
    assert list(phases) == ["store", "cool", "warmup", "canary", "measure"]
    assert all(row["ok"] for row in phases.values()), phases

    looked = lab.play("job_poll.yml", variables)
    assert looked.replies["gpu01"]["state"] == "exited"
    assert "chunks" not in looked.replies["gpu01"]
    chunks = json.loads((lab.staging / "gpu01" / "chunks.json").read_text())
    assert chunks["records.jsonl"]["data"].count("\n") == 7 + 1 + 2 + 6

    collected = lab.play("job_collect.yml", variables)
    assert (collected.replies["gpu01"]["state"], collected.replies["gpu01"]["packed"]) == ("exited", True)
    with tarfile.open(lab.staging / "gpu01" / "pack.tar") as tar:
        assert set(RUN_PACK) <= set(tar.getnames())
        arm = json.load(tar.extractfile("arm.json"))  # type: ignore[arg-type]
        records = [json.loads(line) for line in tar.extractfile("records.jsonl")]  # type: ignore[union-attr]
        engine_json = {"evidence/run-1/gpu01/engine.json": tar.extractfile("engine.json").read()}  # type: ignore[union-attr]
    sign = told_by(bundle_of(engine_json, demo_plan()))  # whatever any flag says
    assert sign is not None
    assert "the simulated engine's" in sign.en
    assert arm["mount_path"] == "nfs"
    assert "baseline" not in json.dumps(arm)
    measured = [record for record in records if record["phase"] == "measure"]
    assert all(record["error"] is None and record["usage"]["cached_tokens"] == 8192 for record in measured)
    assert all(record["server"]["recv_ns"] < record["server"]["first_ns"] for record in measured)

    engine = engine_pid(root)
    repeated = lab.play("job_start.yml", {**variables, "attempt": {**variables["attempt"], "fence": 4}})
    assert repeated.replies["gpu01"]["state"] == "adopted"
    assert repeated.changed["gpu01"] == 0
    assert engine_pid(root) == engine

    late = lab.play("job_start.yml", variables)
    assert late.rc != 0
    assert "fenc" in late.output


def test_another_arm_runs_cold_on_another_engine_process_and_other_media_stay_untouched(lab: PlaybookLab) -> None:
    root = Path(lab.hosts["gpu01"]["qg_root"])
    before = sorted(path.name for path in (root / "kv" / "nfs" / ATTEMPT).iterdir())
    variables = lab.variables({"key": "recompute", "arm": "recompute", "store": False, "canary": False, "repeat": 2}, attempt={"fence": 5})
    started = lab.play("job_start.yml", variables)
    assert started.rc == 0, started.output
    lab.wait(root, f"{ATTEMPT}-recompute")
    phases = lab.phases(root, f"{ATTEMPT}-recompute")
    assert list(phases) == ["cool", "warmup", "measure", "repeat"]
    assert all(row["ok"] for row in phases.values()), phases
    assert sorted(path.name for path in (root / "kv" / "nfs" / ATTEMPT).iterdir()) == before
    arm = json.loads((root / "jobs" / f"{ATTEMPT}-recompute" / "arm.json").read_text())
    assert "mount_path" not in arm


def test_an_engine_that_speaks_as_sglang_does_is_stored_reset_and_measured_like_any_other(lab: PlaybookLab) -> None:
    root, job = Path(lab.hosts["gpu01"]["qg_root"]), f"{ATTEMPT}-sglang"
    variables = lab.variables({"key": "sglang", "set": "sglang"}, attempt={"fence": 5})
    variables["site"]["engine"].update(dialect="sglang", cool="reset")
    started = lab.play("job_start.yml", variables)
    assert started.rc == 0, started.output
    assert lab.wait(root, job)["outcome"] == "done"
    phases = lab.phases(root, job)
    assert all(row["ok"] for row in phases.values()), phases
    assert phases["cool"]["detail"]["reset"]["url"].endswith("/flush_cache")
    engine = json.loads((root / "jobs" / job / "engine.json").read_text())
    assert not [key for key in IDENTITY if engine[key] is None]
    rows = [json.loads(line) for line in (root / "jobs" / job / "counters.jsonl").read_text().splitlines()]
    before, after = (next(row["metrics"] for row in rows if (row["when"], row["phase"]) == (when, "measure")) for when in ("before", "after"))
    found = sources(before, after, engine["metrics_names"])
    assert found is not None
    assert (found.total, found.hbm, found.host, found.external) == (6 * 8208, 0, 0, 6 * 8192)


def test_a_job_whose_engine_cannot_start_proves_by_its_own_files_that_it_measured_nothing(lab: PlaybookLab, tmp_path: Path) -> None:
    root, job = Path(lab.hosts["gpu01"]["qg_root"]), f"{ATTEMPT}-run-9.2"
    step = {"key": "run-9", "arm": "recompute", "store": False, "canary": False, "timeout_s": 86400}
    broken = {"kind": "lab", "port": lab.port, "model": "m", "physics": {"hbm_tokens": -1}}
    variables = lab.variables(step, attempt={"fence": 5}, site={"engine": broken}, job={"id": job})
    started = lab.play("job_start.yml", variables)
    assert (started.rc, started.replies["gpu01"]["state"]) == (0, "started"), started.output
    assert lab.wait(root, job)["error"]["kind"] == "engine"
    assert json.loads((root / "jobs" / job / "job.json").read_text())["limits"]["deadline_s"] == 86400
    reply = lab.play("job_collect.yml", variables).replies
    with tarfile.open(lab.staging / "gpu01" / "pack.tar") as tar:
        tar.extractall(tmp_path / "gpu01" / "pack.d", filter="data")
    said = never_began(reply, tmp_path)
    assert said is not None
    assert "hbm_tokens" in said["gpu01"][1]


def test_stopping_ends_the_job_and_the_engine_and_says_so(lab: PlaybookLab) -> None:
    root = Path(lab.hosts["gpu01"]["qg_root"])
    variables = lab.variables({"key": "long", "store": False, "tiers": [{"tier": 2, "requests": 4000}]}, attempt={"fence": 6})
    assert lab.play("job_start.yml", variables).replies["gpu01"]["state"] == "started"
    collected = lab.play("job_collect.yml", variables)
    assert (collected.replies["gpu01"]["state"], collected.replies["gpu01"]["packed"]) == ("running", False)
    stopped = lab.play("stop.yml", variables)
    assert stopped.rc == 0, stopped.output
    reply = stopped.replies["gpu01"]
    assert (reply["state"], reply["could_not_stop"]) == ("stopped", [])
    assert [job["job"] for job in reply["jobs"]] == [f"{ATTEMPT}-long"]
    assert json.loads((root / "jobs" / f"{ATTEMPT}-long" / "exit.json").read_text())["outcome"] == "stopped"
    assert not (root / "engine" / "engine.pid").exists()


def test_an_arm_that_is_not_described_is_refused_in_a_sentence(lab: PlaybookLab) -> None:
    done = lab.play("job_start.yml", lab.variables({"key": "x", "arm": "other"}, attempt={"fence": 7}))
    assert done.rc != 0
    assert "describe no arm other" in done.output


def test_a_dry_run_changes_nothing_and_finds_a_deployed_host_as_it_should_be(lab: PlaybookLab) -> None:
    root = Path(lab.hosts["gpu01"]["qg_root"])
    before = sorted(str(path) for path in root.rglob("*"))
    variables = lab.variables({"key": "dry"}, attempt={"fence": 8})
    for playbook in ("deploy.yml", "job_start.yml", "job_collect.yml"):
        done = lab.play(playbook, variables, "--check")
        assert done.rc == 0, done.output
        assert done.changed["gpu01"] == 0
    assert sorted(str(path) for path in root.rglob("*")) == before


def test_removal_leaves_no_file_can_be_repeated_and_refuses_a_root_that_is_not_ours(lab: PlaybookLab) -> None:
    root = Path(lab.hosts["gpu01"]["qg_root"])
    etc = lab.folder / "etc"
    etc.mkdir()
    (etc / "fstab").write_text("# BEGIN Quadgate volume array\nLABEL=qg-array /mnt/quadgate/array xfs nofail 0 0\n# END Quadgate volume array\n")
    lab.hosts["gpu01"]["qg_etc"] = str(etc)
    without_record = lab.play("remove.yml", lab.variables())
    assert (without_record.rc != 0, root.exists()) == (True, True), without_record.output
    assert f"{etc}/fstab has the lines" in without_record.output
    del lab.hosts["gpu01"]["qg_etc"]
    for changed in (1, 0):
        done = lab.play("remove.yml", lab.variables())
        assert done.rc == 0, done.output
        assert done.changed["gpu01"] == changed
        assert not root.exists()
    lab.hosts["gpu01"]["qg_root"] = "/var/tmp"
    refused = lab.play("remove.yml", lab.variables())
    assert refused.rc != 0
    assert "not removed" in refused.output
