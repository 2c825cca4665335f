"""From the site's description to engine, fairness keys and job: pure functions of the role `arm`."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
import yaml

from app.settings import ROOT
from gates.plan import parse_plan
from gates.plan_model import MEDIUM_KEYS
from gates.steps import run_step, soak_step
from tests.unit.hardware.kit import load as load_file
from tests.unit.lab_engine import lab  # noqa: F401 - puts the engine's package on the path

DEMO = yaml.safe_load((ROOT / "app" / "demo" / "engagement.yaml").read_text(encoding="utf-8"))
PLAN = parse_plan(DEMO["plan"])
HOST = {"name": "gpu01", "root": "/r", "python": "/p/python", "index": 0, "counters": ["nvme_media_errors"]}
ATTEMPT = {"id": "a-1", "gate": "G3", "fence": 4, "seed": 9}


def load(name: str) -> Any:
    return load_file(ROOT / "playbooks" / "roles" / "arm" / "filter_plugins" / f"{name}.py")


engines, jobs = load("arm_engine"), load("arm_job")


def site(**more: Any) -> dict[str, Any]:
    return {**{key: value for key, value in DEMO["targets"].items() if key != "hosts"}, **more}


def step(arm: str, store: bool = False) -> dict[str, Any]:
    spec = run_step(PLAN, key=f"run-1-{arm}", arm=arm, run_index=1, prompts="g3", store=store)
    return {"key": spec.key, **spec.params}


def engine(arm: str, where: dict[str, Any] | None = None, gate: str = "G3") -> dict[str, Any]:
    found: dict[str, Any] = engines.arm_engine(where or site(), arm, gate, 9, "a-1", HOST)
    return found


def config(arm: str, where: dict[str, Any] | None = None, gate: str = "G3") -> dict[str, Any]:
    files = engine(arm, where, gate)["files"]
    return next(content for path, content in files.items() if path.endswith("config.json"))


@pytest.mark.parametrize("kind", ["lab", "vllm_cpu"])
def test_a_stand_in_is_not_started_on_a_target_that_is_said_to_be_real(kind: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} stands in"):
        engine("candidate", site(simulated=False, engine={**site()["engine"], "kind": kind}))


@pytest.mark.parametrize("arm", ["baseline", "candidate", "recompute", "placebo"])
def test_every_arm_of_the_demo_gives_a_configuration_that_the_engine_takes(arm: str) -> None:
    from lab_engine.config import parse

    parsed = parse(config(arm))
    assert (parsed.tier is None) == (arm == "recompute")
    assert parsed.seed == 9


@pytest.mark.parametrize("arm", ["baseline", "candidate", "recompute", "placebo"])
def test_nothing_that_goes_to_the_target_holds_the_name_of_the_arm_but_the_job_id(arm: str) -> None:
    found = engine(arm)
    job = jobs.arm_job(found, step(arm), ATTEMPT, site(), HOST, {})
    assert arm not in json.dumps(found)
    assert arm not in json.dumps({**job, "job": ""})


def test_renaming_arms_changes_nothing_but_the_names() -> None:
    renamed = site(arms={"x": DEMO["targets"]["arms"]["candidate"]})
    assert engine("x", renamed) == engine("candidate")


def test_baseline_and_candidate_differ_in_the_keys_of_the_medium_and_in_no_other() -> None:
    one, two = engine("baseline")["arm"], engine("candidate")["arm"]
    differing = {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)}
    assert differing == {"mount_path", "device", "transport"}
    assert tuple(engines.MEDIUM) == MEDIUM_KEYS


def test_a_software_key_of_one_arm_shows_up_as_a_difference() -> None:
    arms = {**DEMO["targets"]["arms"], "candidate": {**DEMO["targets"]["arms"]["candidate"], "prefill_tokens_per_s": 2e6}}
    assert engine("candidate", site(arms=arms))["arm"]["engine.prefill_tokens_per_s"] == 2e6


def test_each_medium_has_a_directory_of_its_own_and_the_placebo_shares_that_of_the_product() -> None:
    places = {arm: engine(arm)["kv_dirs"] for arm in ("baseline", "candidate", "placebo", "recompute")}
    assert places["baseline"] == ["/r/kv/nfs/a-1"]
    assert places["candidate"] == places["placebo"] == ["/r/kv/array/a-1"]
    assert places["recompute"] == []


def test_another_configuration_lies_in_another_folder_so_no_running_job_is_disturbed() -> None:
    folders = {engine(arm)["folder"] for arm in ("baseline", "candidate", "recompute")}
    assert len(folders) == 3
    assert engine("baseline")["folder"] == engine("baseline")["folder"]


FAULTS = ["slow-tier", "warm-cache", "warm-array-cache", "lost-kv", "corrupt-kv", "silent-errors"]
OVER_TIME = ["drift", "leak", "engine-crash"]


@pytest.mark.parametrize("name", FAULTS + OVER_TIME)
def test_a_fault_hits_the_candidate_of_its_gate_and_nobody_else(name: str) -> None:
    faulty = site(faults={name: 1})
    home = "G4" if name in OVER_TIME else "G3"
    other = "G3" if home == "G4" else "G4"
    assert config("candidate", faulty, home) != config("candidate", gate=home)
    assert config("candidate", faulty, other) == config("candidate", gate=other)
    for arm in ("baseline", "recompute", "placebo"):
        assert config(arm, faulty, home) == config(arm, gate=home)
    assert engine("candidate", faulty, home)["arm"] == engine("candidate", gate=home)["arm"]


@pytest.mark.parametrize("name", FAULTS + OVER_TIME)
def test_strength_zero_is_no_fault_and_every_strength_is_a_configuration_that_the_engine_takes(name: str) -> None:
    from lab_engine.config import parse

    gate = "G4" if name in OVER_TIME else "G3"
    assert config("candidate", site(faults={name: 0}), gate) == config("candidate", gate=gate)
    for strength in (0.1, 1, 5):
        parse(config("candidate", site(faults={name: strength}), gate))


def test_a_fault_can_be_aimed_at_other_arms_and_gates() -> None:
    aimed = site(faults={"slow-tier": {"strength": 1, "arms": ["baseline"], "gates": ["G2"]}})
    assert config("baseline", aimed, "G2")["faults"] == {"tier_slowdown": 0.3}
    assert "faults" not in config("candidate", aimed, "G3")


def test_faults_of_other_simulators_are_passed_over_and_negative_strengths_refused() -> None:
    assert engines.faults_of({"missing-drive": 1, "worker-kill": 1}, "candidate", "G3") == {}
    with pytest.raises(ValueError, match="nothing below"):
        engines.faults_of({"drift": -1}, "candidate", "G4")


def test_unequal_work_asks_one_arm_for_fewer_tokens_and_tells_the_engine_nothing() -> None:
    faults = engines.faults_of({"unequal-work": 1}, "candidate", "G3")
    job = jobs.arm_job(engine("candidate"), step("candidate"), ATTEMPT, site(), HOST, faults)
    assert job["workload"]["output_tokens"] == 48
    assert config("candidate", site(faults={"unequal-work": 1})) == config("candidate")
    assert jobs.arm_job(engine("baseline"), step("baseline"), ATTEMPT, site(), HOST, {})["workload"]["output_tokens"] == 64


def test_the_job_of_every_step_is_one_that_the_probe_takes_and_the_same_at_each_call() -> None:
    import sys

    sys.path.insert(0, str(ROOT / "playbooks" / "roles" / "probe" / "files"))
    from probe.jobspec import check

    soak = soak_step(PLAN)
    steps = [step(arm, store) for arm in ("baseline", "candidate", "recompute", "placebo") for store in (True, False)]
    for one in [*steps, {"key": soak.key, **soak.params}]:
        job = jobs.arm_job(engine(one["arm"]), one, ATTEMPT, site(), HOST, {})
        check(job)
        assert job == jobs.arm_job(engine(one["arm"]), one, ATTEMPT, site(), HOST, {})
        assert job["job"] == f"a-1-{one['key']}"
        assert job["phases"]["store"] == (one["store"] and one["arm"] != "recompute")
        assert job["phases"]["expect_hits"] == (one["arm"] in ("baseline", "candidate"))


def test_the_expected_time_grows_with_requests_and_with_storing() -> None:
    plain, storing = (jobs.expected_s(engine("baseline"), step("baseline", store)) for store in (False, True))
    assert storing > plain + 10
    assert jobs.expected_s(engine("candidate"), step("candidate")) < plain < jobs.expected_s(engine("recompute"), step("recompute"))


def test_a_step_that_lacks_something_is_refused_in_a_sentence() -> None:
    lame = {key: value for key, value in step("baseline").items() if key != "tiers"}
    with pytest.raises(ValueError, match="lacks tiers"):
        jobs.arm_job(engine("baseline"), lame, ATTEMPT, site(), HOST, {})


def test_vllm_on_the_cpu_gets_a_connector_only_where_there_is_a_medium_and_takes_no_fault() -> None:
    where = site(
        engine={"kind": "vllm_cpu", "venv": "/v", "model_dir": "/m", "model": "tiny", "port": 8000, "kv_bytes_per_token": 8192},
        arms={"recompute": {}, "candidate": {"mount_path": "disk", "device": "local"}},
    )
    argv = {arm: next(v for k, v in engine(arm, where)["files"].items() if k.endswith("spec.json"))["argv"] for arm in ("recompute", "candidate")}
    assert "--kv-transfer-config" not in argv["recompute"]
    transfer = json.loads(argv["candidate"][argv["candidate"].index("--kv-transfer-config") + 1])
    assert transfer["kv_connector_extra_config"]["shared_storage_path"] == "/r/kv/disk/a-1"
    assert engine("candidate", where)["declared"]["kv_bytes_per_token"] == 8192
    with pytest.raises(ValueError, match="takes no faults"):
        engine("candidate", {**where, "faults": {"slow-tier": 1}})
    with pytest.raises(ValueError, match="lacks venv"):
        engine("candidate", {**where, "engine": {"kind": "vllm_cpu"}})


def test_the_archive_of_the_engine_is_the_same_bytes_each_time_and_starts_its_package() -> None:
    module = load_file(ROOT / "playbooks" / "lookup_plugins" / "sources_zipapp.py")
    package = ROOT / "playbooks" / "roles" / "lab_engine" / "files" / "lab_engine"
    data = module.zipapp_bytes(package, package=True)
    assert data == module.zipapp_bytes(package, package=True)
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert names[0] == "__main__.py"
    assert {"lab_engine/__init__.py", "lab_engine/__main__.py"} <= set(names)
