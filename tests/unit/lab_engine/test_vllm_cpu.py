"""vLLM on the CPU: what it is started with, and the keys under which its connector keeps KV."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from app.settings import ROOT
from tests.unit.lab_engine.test_arm import ATTEMPT, HOST, engine, jobs, site, step

WHERE = {
    "engine": {"kind": "vllm_cpu", "venv": "/v", "model_dir": "/m", "model": "tiny", "port": 8000, "kv_bytes_per_token": 8192},
    "arms": {"recompute": {}, "candidate": {"mount_path": "disk", "device": "local"}},
}
CONNECTOR = ROOT / "playbooks" / "roles" / "engine_vllm" / "files" / "seeded_connector.py"


def spec_of(arm: str) -> dict[str, Any]:
    """Return what the probe would start for an arm."""
    files = engine(arm, site(**WHERE))["files"]
    return next(content for path, content in files.items() if path.endswith("spec.json"))


def test_every_arm_runs_under_one_hash_seed_and_finds_the_connector_beside_its_log() -> None:
    specs = {arm: spec_of(arm) for arm in WHERE["arms"]}
    assert {spec["env"]["PYTHONHASHSEED"] for spec in specs.values()} == {"0"}
    transfer = json.loads(specs["candidate"]["argv"][specs["candidate"]["argv"].index("--kv-transfer-config") + 1])
    assert transfer["kv_connector_module_path"] == CONNECTOR.stem
    assert specs["candidate"]["env"]["PYTHONPATH"] == specs["candidate"]["cwd"] == "/r/engine"
    copied = (ROOT / "playbooks/roles/engine_vllm/tasks/cpu_model.yml").read_text()
    assert f"/engine/{transfer['kv_connector_module_path']}.py" in copied
    assert transfer["kv_connector"] in CONNECTOR.read_text()


def connector(monkeypatch: pytest.MonkeyPatch, seed: str | None) -> Any:
    """Return a connector of an engine that was started under a seed, upon an example connector that names folders by the tokens alone."""

    class ExampleConnector:
        def _generate_foldername_debug(self, token_ids: Any, mm_hashes: Any, create_folder: bool = False) -> str:
            folder = f"{self.place}/{hashlib.md5(bytes(token_ids)).hexdigest()}"
            assert not create_folder, "a folder under the plain name would be one that no look-up ever asks for"
            return folder

    name = "vllm.distributed.kv_transfer.kv_connector.v1.example_connector"
    module = types.ModuleType(name)
    module.ExampleConnector = ExampleConnector  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
    spec = importlib.util.spec_from_file_location("seeded_connector", CONNECTOR)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.SeededExampleConnector()


def test_kv_is_found_again_under_the_seed_it_was_stored_under_and_under_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stored = connector(monkeypatch, "0")
    stored.place = str(tmp_path)
    folder = stored._generate_foldername_debug([1, 2, 3], [], create_folder=True)
    assert os.path.isdir(folder)
    found = {}
    for seed in ("0", "7", None):
        again = connector(monkeypatch, seed)
        again.place = str(tmp_path)
        found[seed] = os.path.exists(again._generate_foldername_debug([1, 2, 3], []))
        assert not os.path.exists(again._generate_foldername_debug([1, 2, 4], []))
    assert found == {"0": True, "7": False, None: False}


@pytest.mark.parametrize("where", [site(), site(**WHERE)], ids=["lab", "vllm_cpu"])
def test_a_restart_that_is_skipped_looks_at_the_engine_and_lets_it_run_whatever_engine_it_is(where: dict[str, Any]) -> None:
    found = engine("candidate", {**where, "faults": {"skipped-reset": 1}})
    verbs = {}
    for strength in (0, 1):
        job = jobs.arm_job(found, step("candidate", store=True), ATTEMPT, where, HOST, {"skipped-reset": strength})
        verbs[strength] = [job["engine"]["control"][verb][4] for verb in ("stop", "start")]
    assert verbs == {0: ["stop", "start"], 1: ["status", "start"]}
