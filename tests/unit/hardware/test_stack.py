"""From an engagement on real hardware to what each arm runs: the example file, arm by arm, and what is refused because software would not obey it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import ROOT
from tests.ports import free_port
from tests.unit.hardware.kit import ROLES, load

EXAMPLE = yaml.safe_load((ROOT / "playbooks/inventories/example/engagement.yaml").read_text(encoding="utf-8"))
SITE: dict[str, Any] = EXAMPLE["targets"]
HOST = {"name": "gpu01", "root": "/var/tmp/quadgate", "python": "/usr/bin/python3", "index": 0, "counters": []}
arms = load(ROLES / "arm/filter_plugins/arm_engine.py")


def engine(arm: str, **change: Any) -> dict[str, Any]:
    found: dict[str, Any] = arms.arm_engine({**SITE, **change}, arm, "G3", 1, "a1", HOST)
    return found


def offload(**change: Any) -> dict[str, Any]:
    return {**SITE["offload"], **change}


def test_every_arm_of_the_example_is_the_same_software_but_for_its_medium() -> None:
    baseline, candidate = engine("baseline"), engine("candidate")
    assert {k for k in baseline["arm"] if baseline["arm"][k] != candidate["arm"].get(k)} == {"mount_path", "device", "transport"}
    assert baseline["kv_dirs"] == ["/mnt/quadgate/nfs/kv/a1"]
    assert candidate["kv_dirs"] == ["/mnt/quadgate/array/kv/a1"]
    assert engine("placebo")["arm"] == candidate["arm"]


def test_every_arm_says_on_which_mount_its_kv_must_lie() -> None:
    array, nfs = {"sources": ["/dev/md/qg-array"], "fs_types": ["xfs"]}, {"sources": ["192.0.2.40:/export/kv"], "fs_types": ["nfs", "nfs4"]}
    assert engine("candidate")["media"] == [{"dir": "/mnt/quadgate/array/kv/a1", "mount_point": "/mnt/quadgate/array", **array}]
    assert engine("baseline")["media"] == [{"dir": "/mnt/quadgate/nfs/kv/a1", "mount_point": "/mnt/quadgate/nfs", **nfs}]
    assert engine("recompute")["media"] == []
    rack = {"findmnt": "/var/tmp/quadgate/rack/bin/findmnt"}  # what a simulated rack mounts the kernel does not know
    assert engine("candidate", rack="roce")["media"] == [{"dir": "/mnt/quadgate/array/kv/a1", "mount_point": "/mnt/quadgate/array", **array, **rack}]
    assert engine("baseline", rack="roce")["media"][0]["findmnt"] == rack["findmnt"]
    assert engine("candidate", rack="roce", volume={"array": {"kind": "directory", "mount": "/data"}})["media"][0].get("findmnt") is None
    folder = {"array": {"kind": "directory", "mount": "/data", "source": "fx:/kv", "fs_type": "lustre", "mount_point": "{root}/x"}}
    row = {"dir": "/data/kv/a1", "mount_point": "/var/tmp/quadgate/x", "fs_types": ["lustre"], "sources": ["fx:/kv"]}
    assert engine("candidate", volume=folder)["media"] == [row]


def test_an_arm_may_load_its_model_from_its_own_medium() -> None:
    site_arms = {**SITE["arms"], "candidate": {**SITE["arms"]["candidate"], "model_dir": "/mnt/quadgate/array/m"}}
    found, baseline = engine("candidate", arms=site_arms), engine("baseline", arms=site_arms)
    assert (found["model_dir"], found["arm"]["model_dir"], baseline["model_dir"]) == (("/mnt/quadgate/array/m",) * 2 + (SITE["engine"]["model_dir"],))
    assert "/mnt/quadgate/array/m" in found["files"][found["spec_path"]]["argv"]
    assert {k for k in {*found["arm"], *baseline["arm"]} if found["arm"].get(k) != baseline["arm"].get(k)} == {
        *("mount_path", "device", "transport", "model_dir"),
    }


def test_a_real_site_whose_medium_nobody_describes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mount_path array, and targets\.volume describes no medium of that name"):
        engine("candidate", volume={}, simulated=False)


def test_the_recompute_arm_has_no_connector() -> None:
    alone = engine("recompute")
    assert alone["kv_dirs"] == []
    assert "kv_connector" not in json.dumps(alone)


def test_the_tuned_baseline_follows_from_the_other_two() -> None:
    site_arms = {**SITE["arms"], "candidate": {**SITE["arms"]["candidate"], "l2.read_threads": 64}}
    tuned = engine("baseline_tuned", arms=site_arms)
    assert (tuned["arm"]["mount_path"], tuned["arm"]["engine.l2.read_threads"]) == ("nfs", 64)
    assert engine("baseline", arms=site_arms)["arm"]["engine.l2.read_threads"] == 32
    with pytest.raises(ValueError, match="medium of baseline with the software of candidate"):
        engine("baseline", arms={**site_arms, "baseline_tuned": {"mount_path": "nfs"}})


def test_a_container_is_named_by_its_digest_and_sees_its_kv() -> None:
    argv = json.loads(json.dumps(engine("candidate")["files"]))[engine("candidate")["spec_path"]]["argv"]
    assert "/mnt/quadgate/array/kv/a1:/mnt/quadgate/array/kv/a1" in argv
    assert "/dev/kfd" in argv
    pulled = {key: value for key, value in SITE["engine"].items() if key not in ("image_archive", "image_id")}
    assert SITE["engine"]["image"] in json.dumps(engine("candidate", engine=pulled)["files"])
    with pytest.raises(ValueError, match="with its digest"):
        engine("candidate", engine={**pulled, "image": "vllm:latest"})


def test_a_carried_image_is_run_by_its_id_since_its_archive_keeps_no_digest() -> None:
    ran = json.dumps(engine("candidate")["files"])
    assert SITE["engine"]["image_id"] in ran
    assert SITE["engine"]["image"] not in ran
    with pytest.raises(ValueError, match=r"targets\.engine\.image_id is ''"):
        engine("candidate", engine={key: value for key, value in SITE["engine"].items() if key != "image_id"})


def test_the_developers_endpoints_are_open_only_where_the_reset_is_used() -> None:
    assert "VLLM_SERVER_DEV_MODE" not in json.dumps(engine("candidate")["files"])
    native = {"kind": "native", "storage": "fs", "l1": {"gib": 20, "keep": True}}
    reset = engine("candidate", engine={**SITE["engine"], "cool": "reset"}, offload=native)
    assert "VLLM_SERVER_DEV_MODE=1" in json.dumps(reset["files"])
    assert (reset["reset"], reset["arm"]["engine.cool"]) == ("/reset_prefix_cache?reset_external=true", "reset")
    assert engine("recompute", engine={**SITE["engine"], "cool": "reset"}, offload=native)["reset"] == "/reset_prefix_cache"


def test_where_others_reach_the_engine_its_developers_endpoints_answer_its_own_host_alone() -> None:
    native = {"kind": "native", "storage": "fs", "l1": {"gib": 20, "keep": True}}
    found = {}
    for listen in ("127.0.0.1", "::1", "10.0.0.11", "0.0.0.0", "gpu01"):
        made = engine("candidate", engine={**SITE["engine"], "cool": "reset", "listen": listen, "env": {"PYTHONPATH": "/opt/site"}}, offload=native)
        doors = [path for path in made["files"] if path.endswith("/doors/quadgate_doors.py")]
        argv = made["files"][made["spec_path"]]["argv"]
        found[listen] = (len(doors), "quadgate_doors.Doors" in argv, [word for word in argv if word.startswith("PYTHONPATH=")])
        if doors:
            assert found[listen][2] == [f"PYTHONPATH={doors[0].rpartition('/')[0]}:/opt/site"]
            compile(made["files"][doors[0]], doors[0], "exec")
    assert {listen: row[:2] for listen, row in found.items()} == {
        **dict.fromkeys(("127.0.0.1", "::1"), (0, False)),
        **dict.fromkeys(("10.0.0.11", "0.0.0.0", "gpu01"), (1, True)),
    }
    away = arms.arm_engine(
        {**SITE, "engine": {**SITE["engine"], "cool": "reset"}, "offload": native}, "candidate", "G3", 1, "a1", {**HOST, "address": "10.0.0.11"}
    )
    assert "quadgate_doors.Doors" in json.dumps(away["files"])


def test_sglang_is_reset_by_its_flush_with_or_without_hicache_on_files() -> None:
    site = {"engine": {**SITE["engine"], "kind": "sglang", "cool": "reset", "listen": "192.0.2.7"}, "offload": {"kind": "hicache", "l1": {"gib": 20}}}
    assert [engine(arm, **site)["reset"] for arm in ("candidate", "recompute")] == ["/flush_cache"] * 2
    assert "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=false" in json.dumps(engine("candidate", **site)["files"])


@pytest.mark.parametrize(
    ("change", "offloaded", "sentence"),
    [
        ({"cool": "reset"}, {}, "says success without emptying what serves"),
        ({"cool": "reset"}, {"kind": "lmcache_mp", "storage": "fs_native"}, "says success without emptying what serves"),
        ({"cool": "reset", "kind": "sglang"}, {"kind": "hicache", "storage": "mooncake"}, "hicache on files"),
        ({"cool": "warm"}, {}, "one of restart, reset"),
    ],
)
def test_a_reset_that_would_prove_nothing_is_refused(change: dict[str, Any], offloaded: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        engine("candidate", engine={**SITE["engine"], **change}, offload=offload(**offloaded))


def test_the_way_to_make_an_engine_cold_reaches_the_job() -> None:
    arm_job = load(ROLES / "arm/filter_plugins/arm_job.py").arm_job
    step = {"key": "run-1", "kind": "run", "arm": "recompute", "set": "g3", "tiers": [{"tier": 1, "requests": 1}]}
    step |= {"context_tokens": 512, "suffix_tokens": 16, "output_tokens": 8, "cool": True}
    told = {}
    for cool in ("restart", "reset"):
        site = {**SITE, "engine": {**SITE["engine"], "cool": cool}, "offload": {"kind": "native", "l1": {"gib": 20, "keep": True}}}
        job = arm_job(arms.arm_engine(site, "recompute", "G3", 1, "a1", HOST), step, {"id": "a1", "fence": 1, "seed": 1}, site, HOST, {})
        told[cool] = (job["phases"]["cool"], job["engine"].get("reset"))
    assert told == {"restart": (True, None), "reset": ("reset", "/reset_prefix_cache")}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "lmcache", "storage": "local_disk"}, "cannot serve a cold recovery"),
        ({"kind": "lmcache", "storage": "fs"}, "has no setting for it"),
        ({"kind": "native", "storage": "fs"}, "l1.keep is false"),
        ({"kind": "hicache"}, "is one of lmcache"),
        ({"chunk_tokens": 250}, "multiple of 16"),
        ({"l1": {"gib": 0}}, "must be more than 0"),
        ({"l2": {"threads": 8}}, "which no software here reads"),
    ],
)
def test_a_setting_that_the_software_would_not_obey_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        engine("candidate", offload=offload(**change))


def test_a_key_of_an_arm_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the key l2\.readers"):
        engine("candidate", arms={**SITE["arms"], "candidate": {"mount_path": "array", "l2.readers": 2}})


SERVER = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.BaseHTTPRequestHandler).serve_forever()"


def launched(folder: Path, second: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    port = free_port()
    first = {"name": "store", "argv": [sys.executable, "-c", SERVER, str(port)], "env": {}, "wait": {"tcp": f"127.0.0.1:{port}"}, "timeout_s": 60}
    path = folder / "processes.json"
    path.write_text(json.dumps({"processes": [first, {"name": "engine", "argv": second, "env": {"WHO": "engine"}}]}))
    argv = [sys.executable, "-I", str(ROLES / "engine_vllm/files/launch.py"), str(path)]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL), port


def listens(port: int) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"], capture_output=True, check=False
    )
    return done.returncode == 0


def test_the_launcher_starts_the_store_before_the_engine_and_ends_both_when_it_is_told_to(tmp_path: Path) -> None:
    mark = tmp_path / "began"
    launcher, port = launched(
        tmp_path, [sys.executable, "-c", f"import os, time; open({str(mark)!r}, 'w').write(os.environ['WHO']); time.sleep(600)"]
    )
    end = time.monotonic() + 60
    while not mark.exists() or not mark.read_text():
        assert time.monotonic() < end
        assert launcher.poll() is None
        time.sleep(0.05)
    assert listens(port)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == 0
    assert not listens(port)


def test_the_launcher_ends_the_store_when_the_engine_dies_and_gives_its_exit_code(tmp_path: Path) -> None:
    launcher, port = launched(tmp_path, [sys.executable, "-c", "raise SystemExit(7)"])
    assert launcher.wait(60) == 7
    assert not listens(port)


def test_the_time_that_a_model_may_load_reaches_the_probe_and_the_job() -> None:
    step = {"key": "run-1", "kind": "run", "arm": "candidate", "set": "g3", "tiers": [{"tier": 8, "requests": 100}]}
    step.update(context_tokens=32768, suffix_tokens=64, output_tokens=64)
    site = {**SITE, "engine": {**SITE["engine"], "start_timeout_s": 5400}}
    found = engine("candidate", engine=site["engine"])
    job = load(ROLES / "arm/filter_plugins/arm_job.py").arm_job(found, step, {"id": "a1", "fence": 1, "seed": 1}, site, HOST, {})
    assert (found["files"][found["spec_path"]]["timeout_s"], job["limits"]["start_timeout_s"]) == (5400, 5400)


def test_a_container_and_a_unit_are_stopped_by_their_own_commands_and_have_two_minutes_to_end() -> None:
    def spec(**change: Any) -> dict[str, Any]:
        found = engine("candidate", engine={**SITE["engine"], **change})
        specification: dict[str, Any] = found["files"][found["spec_path"]]
        return specification

    assert spec()["stop_argv"] == [["docker", "stop", "-t", "110", "quadgate-engine"], ["docker", "rm", "--force", "quadgate-engine"]]
    assert (spec()["stop_timeout_s"], spec(stop_timeout_s=300)["stop_argv"][0][3]) == (120, "290")
    unit = spec(install="venv", venv="/opt/vllm", supervision="unit")
    assert unit["stop_argv"] == [["systemctl", "stop", "quadgate-engine.service"]]
    assert spec(install="venv", venv="/opt/vllm")["stop_argv"] == []  # the probe's own child: SIGTERM, and time


def test_the_engine_s_processes_are_those_of_its_containers_or_of_its_unit() -> None:
    venv = {"install": "venv", "venv": "/opt/vllm"}

    def group(**change: Any) -> Any:
        return engine("candidate", engine={**SITE["engine"], **change})["group"]

    assert group() == {"kind": "container", "runtime": "docker", "names": ["quadgate-engine"]}
    assert group(**venv, supervision="unit") == {"kind": "unit", "name": "quadgate-engine.service"}
    assert group(supervision="unit")["kind"] == "container"  # a unit's control group holds only the clients
    assert group(**venv) is None
    both = offload(kind="lmcache_mp", storage="fs_native")
    assert engine("candidate", offload=both)["group"]["names"] == ["quadgate-engine", "quadgate-lmcache-server"]


def test_each_offload_names_its_own_endpoints_and_what_must_be_seen_there() -> None:
    def asked(**change: Any) -> tuple[list[str], list[str]]:
        found = engine("candidate", offload=offload(**change), engine={**SITE["engine"], "tensor_parallel": 2})
        return found["metrics_urls"], found["idle"]["families"]

    workers = ["http://127.0.0.1:7000/metrics", "http://127.0.0.1:7001/metrics"]
    assert asked() == (workers, ["lmcache:num_stored_tokens"])
    assert asked(storage="fs", l2={}) == (workers, ["lmcache:num_stored_tokens", "lmcache:num_remote_write_bytes"])
    assert asked(kind="lmcache_mp", storage="fs_native") == (["http://127.0.0.1:8080/metrics"], ["lmcache_mp_l2_store_completed_objects_chunks"])
    assert asked(kind="native", storage="fs", l1={"keep": True}) == ([], ["vllm:kv_offload_tiering_write_bytes"])
    alone = engine("recompute")
    assert (alone["metrics_urls"], alone["idle"]) == ([], None)


def test_what_may_answer_above_the_external_tier_is_told_to_the_soak() -> None:
    assert engine("candidate")["caches"] == {"l0": True, "l1_bytes": 0}  # L1 stages and never answers
    kept = engine("candidate", offload=offload(l1={"gib": 10, "keep": True}, l0={"prefix_caching": False}))
    assert kept["caches"] == {"l0": False, "l1_bytes": 8 * 10 * 2**30}


TWO = {"tensor_parallel": 4, "expert_parallel": False, "instances": 2, "port": 18400}


def processes_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the launcher starts."""
    listed: list[dict[str, Any]] = next(content for path, content in found["files"].items() if path.endswith("/processes.json"))["processes"]
    return listed


@pytest.mark.parametrize(("accelerator", "variable"), [("rocm", "HIP_VISIBLE_DEVICES"), ("cuda", "CUDA_VISIBLE_DEVICES")])
def test_two_instances_have_accelerators_and_ports_of_their_own_and_one_medium(accelerator: str, variable: str) -> None:
    venv = {key: value for key, value in SITE["engine"].items() if not key.startswith("image")}
    found = engine("candidate", engine={**venv, **TWO, "accelerator": accelerator, "install": "venv", "venv": "/v"})
    assert found["base_urls"] == ["http://127.0.0.1:18400", "http://127.0.0.1:18401"]
    assert found["files"][found["spec_path"]]["more_health_urls"] == ["http://127.0.0.1:18401/health"]
    mains = [process for process in processes_of(found) if process["name"].startswith("engine")]
    assert [process["env"][variable] for process in mains] == ["0,1,2,3", "4,5,6,7"]
    assert [process["argv"][process["argv"].index("--port") + 1] for process in mains] == ["18400", "18401"]
    assert len({json.dumps(process["argv"]).replace("18401", "18400") for process in mains}) == 1
    assert len(found["kv_dirs"]) == 1
    assert found["arm"]["engine.instances"] == 2


def test_two_instances_in_containers_have_names_of_their_own_and_both_are_stopped() -> None:
    found = engine("candidate", engine={**SITE["engine"], **TWO})
    names = [process["container"]["name"] for process in processes_of(found) if process["name"].startswith("engine")]
    assert names == ["quadgate-engine", "quadgate-engine-1"]
    stopped = {argv[-1] for argv in found["files"][found["spec_path"]]["stop_argv"]}
    assert set(names) <= stopped
    assert "HIP_VISIBLE_DEVICES=4,5,6,7" in json.dumps(processes_of(found)[-1]["argv"])


def test_the_servers_of_lmcache_in_the_workers_of_two_instances_do_not_share_a_port() -> None:
    found = engine("candidate", engine={**SITE["engine"], **TWO}, offload={"kind": "lmcache", "storage": "fs"})
    configs = {path: content for path, content in found["files"].items() if path.endswith("lmcache.yaml")}
    starts = sorted(content["internal_api_server_port_start"] for content in configs.values())
    assert (len(configs), starts[1] - starts[0]) == (2, 5)
    assert len(found["metrics_urls"]) == len(set(found["metrics_urls"])) == 8
    for process in processes_of(found):
        named = [word.partition("=")[2] for word in process["argv"] if word.startswith("LMCACHE_CONFIG_FILE=")]
        assert set(named) <= set(configs), named


@pytest.mark.parametrize(
    ("change", "word"),
    [({"instances": 0}, "whole number from 1"), ({"instances": 2, "cool": "reset"}, "restarted"), ({"instances": True}, "whole number")],
)
def test_a_number_of_instances_that_cannot_be_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        engine("candidate", engine={**SITE["engine"], **change})
