"""From the plan's cells and injections to the job file: settings are the site's, and what is lacking is said before anything starts."""

import sys

import pytest

from gates.plan import parse_plan
from gates.steps import run_step, soak_step, with_clients
from tests.unit.probe.kit import ROOT

sys.path.insert(0, str(ROOT / "playbooks" / "roles" / "arm" / "filter_plugins"))
from arm_attend import arm_attend, arm_driven
from arm_job import arm_job, cells_parts, kv_bytes
from probe.errors import ProbeError
from probe.jobspec import check
from probe.preflight import journal_bytes

ENGINE = {
    "base_url": "http://127.0.0.1:1",
    "model": "m",
    "spec_path": "/s",
    "pid_file": "/p",
    "kv_dirs": ["/kv"],
    "array_stats": None,
    "declared": {},
    "arm": {},
    "kv_token_bytes": 16,
    "prefill_token_s": 1e-6,
    "load_token_s": 1e-6,
    "start_timeout_s": 3600,
    "stop_timeout_s": 120,
}
ATTEMPT = {"id": "a", "fence": 1, "seed": 1}
HOST = {"name": "gpu01", "root": "/r", "python": "/usr/bin/python3"}
INJECTED = {"g4": {"injections": [{"label": "path-1", "action": "path-down", "at": "24 h", "lasts": "10 min"}]}}


def job(step, site, engine=ENGINE):
    return arm_job(engine, {**step.params, "key": step.key}, ATTEMPT, site, HOST, {})


def test_cells_come_with_the_settings_of_their_arm_and_of_the_simulated_rack():
    plan = parse_plan({"workload": {"cells": ["model_load", "fio", "tier_read"]}})
    site = {"rack": "lab", "cells": {"tier_read": {"bytes": 9}, "model_load": {"by_arm": {"candidate": {"weights": "/w"}}}}}
    step = run_step(plan, key="run-2", arm="candidate", run_index=2, prompts="g3", store=True)
    assert job(step, site)["cells"] == [
        {"cell": "tier_read", "bytes": 9},
        {"cell": "fio", "path_prefix": ["/r/rack/bin"]},
        {"cell": "model_load", "weights": "/w"},
    ]
    assert "cells.jsonl" in step.expects["loadgen"]
    baseline = run_step(plan, key="run-1", arm="baseline", run_index=1, prompts="g3", store=True)
    with pytest.raises(ValueError, match=r"targets\.cells\.model_load lacks weights"):
        job(baseline, site)


def test_an_attendant_has_the_cells_of_the_job_that_it_serves_but_for_its_clients_and_knows_whether_that_is_a_soak():
    plan, place = parse_plan({"workload": {"cells": ["checkpoint", "fio"]}}), {"name": "gpu01", "attend": {"address": "10.0.0.11", "port": 18460}}
    site = {"cells": {"checkpoint": {"bytes": 9}, "fio": {"bytes": 9}}}
    made = job(run_step(plan, key="run-2", arm="candidate", run_index=2, prompts="g3", store=True), site)
    made["cells"].append({"cell": "client", "tool": "aiperf", "argv": ["aiperf"], "result": "r.json", "file": "client-aiperf-c8.json"})
    assert [row["cell"] for row in check(arm_driven(made, "load01", [place], [made["engine"]]))["cells"]] == ["checkpoint", "fio", "client"]
    attendant = check(arm_attend(made, place))
    assert (attendant["cells"], attendant["soak"]) == (made["cells"][:2], None)
    with pytest.raises(ProbeError, match="a client drives the engine from the load generator"):
        check({**attendant, "cells": made["cells"]})
    assert check(arm_attend(job(soak_step(parse_plan()), {}), place))["soak"] == {"kernel_log": True}  # by that it goes on after a reboot


def test_several_engine_hosts_have_the_cells_with_settings_of_their_own():
    plan = parse_plan({"workload": {"cells": ["fio", "ib_write_bw"]}})
    pairs = {name: {"pairs": [{"device": "mlx5_0", "peer": name}]} for name in ("gpu01", "gpu02")}
    site = {"rack": "lab", "cells": {"fio": {"bytes": 9}, "ib_write_bw": {"by_host": pairs}}}
    step = run_step(plan, key="run-2", arm="candidate", run_index=2, prompts="g3", store=True)
    hosts = [{"name": name, "root": f"/{name}", "attend": {"address": f"10.0.0.{n}", "port": 18460}} for n, name in enumerate(pairs, 11)]
    made = arm_job(ENGINE, {**step.params, "key": step.key}, ATTEMPT, site, {**HOST, **hosts[0]}, {})
    own = cells_parts([(ENGINE, host) for host in hosts], step.params, site)
    driven = check(arm_driven(made, "load01", hosts, [made["engine"]] * 2, own))
    for host, row in zip(hosts, driven["attendants"], strict=True):
        there = arm_job(ENGINE, {**step.params, "key": step.key}, ATTEMPT, site, {**HOST, **host}, {})
        assert row["cells"] == check(arm_attend(there, host))["cells"]  # what the judge holds against each other
        assert [cell["path_prefix"] for cell in row["cells"]] == [[f"/{host['name']}/rack/bin"]] * 2
        assert row["cells"][1]["pairs"][0]["peer"] == host["name"]
    with pytest.raises(ProbeError, match=r"attendants\[1\]\.cells must be those of the job"):
        check({**driven, "attendants": [driven["attendants"][0], {**driven["attendants"][1], "cells": []}]})
    assert "cells" not in arm_driven(made, "load01", hosts[:1], [made["engine"]], own[:1])["attendants"][0]


def test_each_engine_host_of_a_soak_needs_room_for_its_share_and_for_a_sentinel_of_its_own():
    step = soak_step(parse_plan()).params
    prefixes, sentinel = sum(tier["requests"] for tier in step["tiers"]), step["sentinel"]
    own = sentinel["prefixes"] + int(step["seconds"] // sentinel["every_s"]) + 1
    rest = [kv_bytes(ENGINE, {**step, "warmup": 0}, hosts) // (16 * step["context_tokens"]) for hosts in (1, 2)]
    assert rest[0] - prefixes - own == rest[1] - prefixes // 2 - own  # what is left is the canary's
    assert 0 <= rest[0] - prefixes - own <= 1


def test_the_weights_of_a_model_load_are_those_that_the_engine_loads():
    plan = parse_plan({"workload": {"cells": ["model_load"]}})
    step, loads = run_step(plan, key="run-2", arm="candidate", run_index=2, prompts="g3", store=True), {**ENGINE, "model_dir": "/mnt/array/m"}
    made = job(step, {}, loads)
    assert (made["cells"], made["engine"]["model_dir"]) == ([{"cell": "model_load", "weights": "/mnt/array/m"}], "/mnt/array/m")
    with pytest.raises(ValueError, match=r"weights is /w, and the engine loads /mnt/array/m"):
        job(step, {"cells": {"model_load": {"weights": "/w"}}}, loads)


def test_without_cells_nothing_is_asked_for():
    step = run_step(parse_plan(), key="run-1", arm="baseline", run_index=1, prompts="g3", store=True)
    assert "cells" not in job(step, {})
    assert "cells.jsonl" not in step.expects["loadgen"]


@pytest.mark.parametrize("rates", [{"load_token_s": 3e-5}, {"load_token_s": None}, {"load_token_s": 1e-9}])
def test_a_fast_soak_of_72_hours_does_not_end_at_a_hidden_quota(rates):
    step = soak_step(parse_plan())
    seconds = step.params["seconds"]
    made = job(step, {}, {**ENGINE, **rates})
    assert made["limits"]["disk_quota_bytes"] >= 9 * 900 * seconds  # nine requests a second are not fast
    assert made["limits"]["disk_quota_bytes"] >= journal_bytes(made)
    assert made["soak"]["requests_per_s"] > 0
    assert job(step, {"disk_quota_bytes": 5_000_000_000}, ENGINE)["limits"]["disk_quota_bytes"] == 5_000_000_000


CLIENTS = {
    "guidellm": {"program": "/opt/guidellm/bin/guidellm", "tokenizer": "/tok"},
    "aiperf": {"program": "/opt/aiperf/bin/aiperf"},
    "vllm-bench": {"python": "/opt/vllm/bin/python", "env": {"VLLM_LOGGING_LEVEL": "ERROR"}, "timeout_s": 900},
}


def test_a_client_comes_with_its_command_line_the_plans_lengths_and_the_place_where_the_site_has_it():
    plan = parse_plan({"workload": {"clients": [{"tool": tool, "tier": 16, "requests": 40} for tool in CLIENTS]}})
    step = with_clients(plan, run_step(plan, key="run-2", arm="candidate", run_index=2, prompts="g3", store=True))
    site = {"clients": CLIENTS, "engine": {"model_dir": "/models/m"}}
    made = check(job(step, site))
    rows = {row["tool"]: row for row in made["cells"]}
    assert list(rows) == list(CLIENTS)
    assert {row["file"] for row in rows.values()} == {client.file for client in plan.workload.clients}
    said = {tool: " ".join(row["argv"]) for tool, row in rows.items()}
    for tool, words in {
        "guidellm": (
            "/opt/guidellm/bin/guidellm run",
            "target=http://127.0.0.1:1,model=m",
            "streams=16",
            "count=40",
            "prompt_tokens=32832,output_tokens=64",
        ),
        "aiperf": (
            "/opt/aiperf/bin/aiperf profile",
            "--tokenizer /models/m",
            "--concurrency 16",
            "--request-count 40",
            "-mean 32832",
            "{folder}/aiperf",
        ),
        "vllm-bench": ("/opt/vllm/bin/python -c", "--max-concurrency 16", "--num-prompts 40", "--random-input-len 32832", "--result-dir {folder}"),
    }.items():
        assert [word for word in words if word not in said[tool]] == [], said[tool]
    assert rows["vllm-bench"]["env"]["VLLM_LOGGING_LEVEL"] == "ERROR"
    assert rows["vllm-bench"]["timeout_s"] == 900
    assert all(row["env"]["HF_ENDPOINT"].startswith("http://127.0.0.1") for row in rows.values())
    with pytest.raises(ValueError, match=r"targets\.clients\.aiperf lacks program, tokenizer"):
        job(step, {"clients": {"guidellm": CLIENTS["guidellm"]}})


def test_what_a_client_asks_is_counted_against_the_room_and_the_time_of_the_run():
    plain, plan = parse_plan(), parse_plan({"workload": {"clients": [{"tool": "aiperf", "tier": 16, "requests": 40}]}})
    steps = [with_clients(p, run_step(p, key="run-2", arm="candidate", run_index=2, prompts="g3", store=True)) for p in (plain, plan)]
    without, asked = (kv_bytes(ENGINE, step.params) for step in steps)
    assert asked - without == 16 * 40 * 32896
    site = {"clients": CLIENTS, "engine": {"model_dir": "/m"}}
    assert job(steps[1], site)["expected_s"] > job(steps[0], site)["expected_s"] + 2 * 40 * 32832 * ENGINE["prefill_token_s"]


def test_an_injection_has_its_times_by_the_plan_and_its_commands_by_the_site():
    step = soak_step(parse_plan({**INJECTED, "rig": {"simulated": True, "time_scale": "4320"}}))
    planned = job(step, {"injections": {"path-down": {"start": ["nvme", "disconnect"], "stop": ["nvme", "connect"]}}})["soak"]["injections"]
    assert planned == [
        {
            "label": "path-1",
            "action": "path-down",
            "at_s": 20.0,
            "seconds": pytest.approx(0.1389, abs=1e-3),
            "start": ["nvme", "disconnect"],
            "stop": ["nvme", "connect"],
        }
    ]
    with pytest.raises(ValueError, match=r"targets\.injections\.path-down\.start is missing"):
        job(step, {})


def test_the_soak_of_the_default_plan_samples_every_5_s_has_an_hourly_sentinel_and_its_room_counts_all_that_it_stores():
    step = soak_step(parse_plan())
    soak = job(step, {})["soak"]
    assert (soak["telemetry_s"], soak["sentinel"], "injections" in soak) == (5.0, {"every_s": 3600.0, "prefixes": 16}, False)
    prefixes = soak["rotate_prefixes"] + 16 + 73  # one that was never stored in each of 73 windows at most
    new = 16 + 1  # throw-away prompts and the canary, whole: 32,768 + 64 + 64 tokens each
    assert kv_bytes(ENGINE, {**step.params, "key": "soak"}) == 16 * (prefixes * 32768 + new * 32896)


def test_the_storage_ports_and_the_place_of_a_racks_programs_go_into_every_job():
    for step in (soak_step(parse_plan()), run_step(parse_plan(), key="run-1", arm="candidate", run_index=1, prompts="g3", store=True)):
        found = job(step, {"fabric": {"interfaces": [{"netdev": "ens8"}]}, "rack": "lab"})
        assert (found["ports"], found["path_prefix"]) == (["ens8"], [f"{HOST['root']}/rack/bin"])
        assert not {"ports", "path_prefix"} & job(step, {}).keys()


def test_the_placebo_s_bytes_are_counted_though_it_stores_nothing():
    plan = parse_plan()
    requests = sum(plan.workload.requests(tier) for tier in plan.workload.tiers)

    def written(arm, store, engine=ENGINE, ahead=0):
        return kv_bytes(engine, run_step(plan, key="run", arm=arm, run_index=1, prompts="g3", store=store, ahead=ahead).params) // 16

    assert written("placebo", False) == (requests + 16) * 32896
    assert written("candidate", True) == requests * 32768 + 17 * 32896
    assert written("candidate", True, ahead=2) == 3 * requests * 32768 + 17 * 32896  # two more sets will lie beside it
    assert written("candidate", False, ahead=2) == 17 * 32896  # what it asks is there already
    assert written("recompute", False, {**ENGINE, "kv_dirs": []}) == 0


def test_the_time_of_a_soak_does_not_depend_on_a_guess_of_how_long_its_model_loads():
    soak, run = soak_step(parse_plan()), run_step(parse_plan(), key="run-1", arm="candidate", run_index=1, prompts="g3", store=True)
    for step in (soak, run):
        made = job(step, {})
        assert made["limits"]["deadline_s"] >= 2 * made["limits"]["start_timeout_s"]
    assert job(soak, {})["limits"]["deadline_s"] < job(soak, {})["soak"]["seconds"]  # the load is not part of it


def test_the_plans_time_is_what_ends_a_job_and_no_estimate_of_ours_ends_it_sooner():
    plan = parse_plan()
    run, soak = run_step(plan, key="run-1", arm="candidate", run_index=1, prompts="g3", store=False), soak_step(plan)

    def deadline_s(step, engine=ENGINE, **more):
        params = {**step.params, "key": step.key, "timeout_s": step.timeout_s, **more}
        return arm_job(engine, params, ATTEMPT, {}, HOST, {})["limits"]["deadline_s"]

    allowed = int(plan.workload.run_timeout.base)
    assert (deadline_s(run), deadline_s(soak)) == (allowed, allowed)  # of a soak: beside its load
    assert deadline_s(run, timeout_s=None) < allowed
    slow = {**ENGINE, "load_token_s": 1.0}
    assert deadline_s(run, slow) > allowed  # a run that is known to take longer has its ten times


def test_a_job_has_the_id_that_the_engine_gives_it_and_by_default_that_of_its_step():
    step = run_step(parse_plan(), key="run-1", arm="recompute", run_index=1, prompts="g3", store=False)
    given = arm_job(ENGINE, {**step.params, "key": step.key}, ATTEMPT, {}, HOST, {}, "a-run-1.2")
    assert (given["job"], job(step, {})["job"]) == ("a-run-1.2", "a-run-1")
    assert {**given, "job": "a-run-1"} == job(step, {})


def test_a_request_may_take_as_long_as_the_largest_tier_needs_to_be_computed():
    plan = parse_plan()  # up to 32 prompts of 32,832 tokens at once
    step = run_step(plan, key="run-1", arm="recompute", run_index=1, prompts="g3", store=False)

    def timeout(site, **change):
        return job(step, site, {**ENGINE, **change})["limits"]["request_timeout_s"]

    assert timeout({}) == 60
    slow = 32832 * 32 * 0.0001
    assert timeout({}, prefill_token_s=0.0001) >= 3 * slow > 300
    assert timeout({"engine": {"request_timeout_s": 900}}, prefill_token_s=0.0001) == 900
    assert timeout({"engine": {"request_timeout_s": 30}}, prefill_token_s=0.0001) >= 3 * slow  # a wish for less would fail what is only slow
