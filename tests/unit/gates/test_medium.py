"""KV that lay on another medium than the declared one: cold, hit and read from a device all the same, and never a pass."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, merged, small_plan
from tests.bundles.evidence import Evidence
from tests.unit.gates.test_properties import TINY

Row = dict[str, Any]
ROOT_DISK = {"mount_point": "/", "source": "/dev/sda2", "names": []}


@functools.lru_cache(maxsize=1)
def base() -> Evidence:
    return g3_evidence(Truth(), small_plan(TINY))


def attempt(edit: Callable[[Evidence], Any]) -> tuple[str, str, str]:
    """Return (verdict of G3, status and reason of the claim about the candidate)."""
    evidence = copy.deepcopy(base())
    edit(evidence)
    document = judge(evidence.bundle())
    claim = next(c for c in document["claims"] if (c["claim"], c["arm"]) == ("on_its_medium", "candidate"))
    return document["verdict"], claim["status"], claim["reason"]["en"] + claim["reason"]["zh-CN"]


def lay(step: str, when: str = "", **place: Any) -> Callable[[Evidence], Any]:
    """Let the checks of a run (those of one moment) find the KV elsewhere."""
    return lambda e: e.lines(step, "coldness.jsonl", lambda rows: [{**r, **(place if r["when"].startswith(when) else {})} for r in rows])


def job(edit: Callable[[Row], Any], *steps: str) -> Callable[[Evidence], Any]:
    def change(evidence: Evidence) -> None:
        for step in steps or ("run-2", "run-3"):
            evidence.json(step, "job.json", lambda data: edit(data["engine"]) and None)

    return change


def without(key: str) -> Callable[[Evidence], Any]:
    return lambda e: e.lines("run-2", "coldness.jsonl", lambda rows: [{k: v for k, v in r.items() if k != key} for r in rows])


def test_kv_on_its_medium_is_a_claim_that_holds() -> None:
    verdict, status, _ = attempt(lambda _: None)
    assert (verdict, status) == ("pass", "holds")


@pytest.mark.parametrize("when", ["", "after_cool", "before_tier", "after_tier"])
def test_kv_on_the_system_disk_makes_the_attempt_invalid_whenever_it_was_seen_there(when: str) -> None:
    verdict, status, why = attempt(lay("run-2", when, **ROOT_DISK))
    assert (verdict, status) == ("invalid", "breached")
    assert "/dev/sda2" in why
    assert "/dev/md/qg-array" in why


def test_another_mount_point_or_file_system_of_one_run_is_a_breach() -> None:
    for place in ({"mount_point": "/mnt/other"}, {"fs_type": "ext4"}):
        assert attempt(lay("run-3", **place))[:2] == ("invalid", "breached")


def test_a_source_is_known_by_its_own_name_too() -> None:
    assert attempt(lay("run-2", source="/dev/md/qg-array", names=[]))[:2] == ("pass", "holds")


@pytest.mark.parametrize(
    ("said", "seen", "status"),
    [
        ("rdma", ["rdma"], "holds"),
        ("rdma", ["tcp"], "breached"),
        ("rdma", ["pcie", "rdma"], "breached"),
        ("local", ["pcie"], "holds"),
        ("rdma", [], "holds"),
        ("a cable", ["tcp"], "holds"),
    ],
)
def test_the_transport_is_the_one_that_the_kernel_tells(said: str, seen: list[str], status: str) -> None:
    def edit(evidence: Evidence) -> None:
        for step in ("run-2", "run-3"):
            evidence.json(step, "arm.json", lambda data: data.update(transport=said))
            evidence.json(step, "job.json", lambda data: data["arm"].update(transport=said))
            lay(step, transports=seen)(evidence)

    assert attempt(edit)[1] == status


def test_a_plain_folder_must_be_on_one_mount_in_every_run() -> None:
    def plain(engine: Row) -> None:
        engine["media"] = [{"dir": "/kv", "mount_point": None, "fs_types": [], "sources": []}]

    assert attempt(job(plain))[:2] == ("pass", "holds")

    def moved(evidence: Evidence) -> None:
        job(plain)(evidence)
        lay("run-3", mount_point="/data")(evidence)

    assert attempt(moved)[:2] == ("invalid", "breached")


@pytest.mark.parametrize(
    "edit",
    [
        *map(without, ("source", "mount_point", "fs_type")),
        job(lambda engine: engine.pop("media")),
        job(lambda engine: engine.update(media=None)),
        job(lambda engine: engine.update(media=[])),
        job(lambda engine: engine.update(media=[{**engine["media"][0], "dir": "/elsewhere"}])),
        job(lambda engine: engine.update(media=engine["media"] * 2)),
        lambda e: e.lines("run-2", "coldness.jsonl", lambda rows: [r for r in rows if r["when"] != "before_tier"], renumber=True),
    ],
)
def test_what_does_not_tell_is_never_a_pass(edit: Callable[[Evidence], Any]) -> None:
    verdict, status, _ = attempt(edit)
    assert (verdict, status) == ("inconclusive", "unknown")


def test_only_a_simulated_site_may_describe_no_medium() -> None:
    for simulated, status in ((True, "not_applicable"), (False, "unknown")):
        evidence = g2_evidence(plan=small_plan(merged(TINY, {"rig": {"simulated": simulated, "time_scale": "1"}})))
        job(lambda engine: engine.update(media=None), *(f"run-{n}" for n in (1, 2, 3)))(evidence)
        claims = judge(evidence.bundle())["claims"]
        assert {c["status"] for c in claims if c["claim"] == "on_its_medium"} == {status}


def on_a_rack(simulated: bool, **place: Any) -> set[str]:
    """Say how the claim stands where the kernel has the KV on the system disk, and a simulated rack's own word is the declared medium or `place`."""
    evidence = g2_evidence(plan=small_plan(merged(TINY, {"rig": {"simulated": simulated, "time_scale": "1"}})))
    told = {"fs_type": "xfs", "source": "/dev/md/qg-array", "mount_point": "/", **place}
    for step in ("run-1", "run-2", "run-3"):
        lay(step, rack=told, **ROOT_DISK)(evidence)
    return {c["status"] for c in judge(evidence.bundle())["claims"] if c["claim"] == "on_its_medium"}


def test_what_a_simulated_rack_mounts_is_judged_by_its_own_word_and_only_on_a_simulated_rig() -> None:
    assert on_a_rack(simulated=True) == {"holds"}
    assert on_a_rack(simulated=True, source="/dev/md/other") == {"breached"}
    assert on_a_rack(simulated=True, mount_point="/mnt/other") == {"breached"}
    assert on_a_rack(simulated=True, source=None) == {"unknown"}
    assert on_a_rack(simulated=False) == {"breached"}


def test_a_soak_on_another_medium_is_no_pass() -> None:
    evidence = g4_evidence()
    lay("soak", **ROOT_DISK)(evidence)
    assert judge(evidence.bundle())["verdict"] == "invalid"
