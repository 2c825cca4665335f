"""The job of a load generator that drives engines elsewhere: each host has the engine that its own attendant was given, and its share of the KV."""

from __future__ import annotations

from typing import Any

import pytest
from probe.jobspec import check

from tests.unit.lab_engine.test_arm import ATTEMPT, engines, jobs, load, site, step

attend = load("arm_attend")
PLACES = {"gpu01": {"address": "127.0.0.2", "port": 18460}, "gpu02": {"address": "127.0.0.3", "port": 18460}}
VARIABLES: dict[str, dict[str, Any]] = {name: {"qg_root": f"/r/{name}", "ansible_python_interpreter": "/p/python"} for name in ("load01", *PLACES)}
for name, place in PLACES.items():
    VARIABLES[name]["qg_attend"] = place


def hosts(*names: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = attend.arm_hosts(names, VARIABLES, ["load01"], [])
    return found


def job(*names: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (job, engines, hosts) as the role works them out where these are the engine hosts."""
    told = hosts(*names)
    found = engines.arm_engines(site(), "candidate", "G3", 9, "a-1", told)
    return jobs.arm_job(engines.arm_together(found), step("candidate", store=True), ATTEMPT, site(), told[0], {}), found, told


@pytest.mark.parametrize("names", [("gpu01",), ("gpu01", "gpu02")])
def test_the_driver_is_told_of_each_host_the_engine_that_its_attendant_was_given(names: tuple[str, ...]) -> None:
    made, found, told = job(*names)
    driven = check(attend.arm_driven(made, "load01", told, jobs.engine_parts(zip(found, told, strict=True), site(), {})))
    assert driven["host"] == "load01"
    for row in driven["attendants"]:
        own, _, there = job(row["host"])
        given = check(attend.arm_attend(own, there[0]))
        assert (given["host"], given["listen"], given["job"]) == (row["host"], PLACES[row["host"]], driven["job"])
        assert given["engine"] == row["engine"]
        assert row["engine"]["base_url"].startswith(f"http://{PLACES[row['host']]['address']}:")
        assert all(folder.startswith(f"/r/{row['host']}/") for folder in row["engine"]["kv_dirs"])


def test_two_hosts_take_half_the_time_and_half_the_room_each() -> None:
    one, two = job("gpu01"), job("gpu01", "gpu02")
    assert two[0]["expected_s"] < one[0]["expected_s"]
    asked = step("candidate", store=True)
    alone, shared = (jobs.kv_bytes(one[1][0], asked, n) for n in (1, 2))
    canary = jobs.kv_bytes(one[1][0], {**asked, "canary": True}) - jobs.kv_bytes(one[1][0], {**asked, "canary": False, "kind": "soak"})
    assert alone / 2 <= shared <= alone / 2 + canary


def test_a_host_without_an_attendant_listens_on_the_loopback_and_is_told_apart_by_its_place() -> None:
    told = attend.arm_hosts(["load01"], VARIABLES, ["other", "load01"], ["nvme_media_errors"])[0]
    assert (told["address"], told["attend"], told["index"], told["counters"]) == ("", {}, 1, ["nvme_media_errors"])
    assert engines.arm_engines(site(), "candidate", "G3", 9, "a-1", [told])[0]["base_url"].startswith("http://127.0.0.1:")
