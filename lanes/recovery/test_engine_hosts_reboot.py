"""A soak of two engine hosts of which one reboots: driver and the other host wait for it, all go on, and the judge follows the boots of all three."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gates.judge import judge
from lanes.probe.test_probe_attended import FAST, KEY, PHASES, read_json
from lanes.recovery.test_soak_reboot import IN_A_BOOT
from tests.bundles import g4_evidence, soak_plan
from tests.bundles.evidence import ATTEMPT, SEED
from tests.ports import free_port
from tests.unit.probe.kit import SOURCES, grown, job_over, job_spec, kill, lab_engine, lines, probe, processes_with, wait_for, workplace, write

JOB = f"{ATTEMPT}-soak"
ENGINES = {"gpu01": "127.0.0.2", "gpu02": "127.0.0.3"}
SOAK = {"seconds": 3, "tier": 4, "telemetry_s": 0.2, "rotate_prefixes": 24, "request_cap": None, "sentinel": {"every_s": 1.0, "prefixes": 4}}


class Site:
    """A load generator `here` and two engine hosts, each with a root, a boot, and (an engine host) an engine and a medium of its own."""

    def __init__(self, folder: Path, job: dict[str, Any] | None = None, engine_keys: dict[str, Any] | None = None) -> None:
        """Prepare the orders of a soak, or of another `job` (parts of its file), with further keys of each engine."""
        self.folder, self.programs = folder, {root: folder / f"{root}.pyz" for root in ("here", *ENGINES)}
        for root, path in self.programs.items():
            path.write_text(IN_A_BOOT.format(sources=str(SOURCES), boot=str(folder / f"{root}.boot"), me=str(path)))
            (folder / f"{root}.boot").write_text(f"{root}-1")
        self.orders: dict[str, dict[str, Any]] = {}
        attendants = []
        for name, address in ENGINES.items():
            (folder / f"{name}-engine").mkdir()
            engine, path, port = lab_engine(folder / f"{name}-engine", self.programs[name], tier=FAST, host=address, hbm_tokens=3072)
            engine.update(engine_keys or {}, base_url=f"http://{address}:{port}")
            write(path, {**json.loads(path.read_text()), "health_url": f"{engine['base_url']}/health"})
            place = {"address": address, "port": free_port()}
            attendants.append({"host": name, **place, "engine": engine, "lost_s": 3.0, "beat_s": 0.2})
            attend = {"schema": 1, "job": JOB, "kind": "attend", "fence": 1, "host": name, "engine": engine, "silence_s": 60.0, "listen": place}
            attend.update(limits={"disk_quota_bytes": 1 << 22, "deadline_s": 300}, soak=None if job else {}, attend_key=KEY)
            attend.update({"cells": job["cells"]} if job and "cells" in job else {})
            self.orders[name] = attend
        soak = {"kind": "soak", "workload": {"seed": SEED, "set": "g4"}, "soak": SOAK}
        soak["phases"] = {**PHASES, "canary": False, "chunk_offsets": False}
        told = {"arm": {"engine.tier.path": "kv"}, "attendants": attendants, **(job or soak)}
        self.orders["here"] = {**job_spec(JOB, 1, host="load01", engine=attendants[0]["engine"], **told), "attend_key": KEY}

    def ask(self, root: str, verb: str, *words: Any) -> Any:
        return probe(self.programs[root], "job", verb, "--root", self.folder / root, *words)

    def order(self) -> dict[str, str]:
        """Order all jobs, as the start playbook does each time, and return what each host said."""
        said = {}
        for root, one in self.orders.items():
            path = write(self.folder / f"{root}-spec.json", one)
            said[root] = self.ask(root, "start", "--spec", path)["state"]
            path.unlink()
        return said

    def job(self, root: str) -> Path:
        return self.folder / root / "jobs" / JOB

    def state(self, root: str) -> Any:
        return self.ask(root, "poll", "--job", JOB, "--max-bytes", 0)

    def ended(self, root: str) -> Any:
        job_over(self.job(root), what=f"the end in {root}")
        return self.state(root)

    def under_load(self) -> None:
        wait_for(lambda: (read_json(self.job("here") / "heartbeat.json") or {}).get("phase") == "soak", what="the load")
        grown(self.job("here") / "records.jsonl", 40)
        grown(self.job("here") / "telemetry.jsonl", 4)

    def reboot(self, name: str, boot: str) -> None:
        for pid in (*processes_with(str(self.folder / name / "jobs")), *processes_with(str(self.folder / f"{name}-engine" / "lab.json"))):
            kill(pid)
        wait_for(lambda: self.state(name)["state"] == "dead", what="the death")
        (self.folder / f"{name}.boot").write_text(boot)

    def judged(self) -> dict[str, Any]:
        """Judge what all three hosts bring."""
        sizes = {"context_tokens": 512, "suffix_tokens": 16, "output_tokens": 8}
        evidence = g4_evidence(plan=soak_plan(), hours=0.1)
        evidence.plan = soak_plan({"rig": {"time_scale": "28800"}, "workload": sizes, "platform": {"layout": {"instances": 2}}})
        for path in [path for path in evidence.files if path.startswith("evidence/soak/")]:
            del evidence.files[path]
        for root, host in (("here", "load01"), *((name, name) for name in ENGINES)):
            tar = self.folder / f"{root}.tar"
            self.ask_pack(root, tar)
            with tarfile.open(tar) as packed:
                for member in packed:
                    evidence.files[f"evidence/soak/{host}/{member.name}"] = packed.extractfile(member).read()  # type: ignore[union-attr]
        evidence.inputs(lambda d: d["hosts"].update(engine=list(ENGINES), loadgen=["load01"]))
        return judge(evidence.bundle())

    def ask_pack(self, root: str, tar: Path) -> None:
        probe(self.programs[root], "pack", "--root", self.folder / root, "--job", JOB, "--out", tar)


@pytest.fixture
def site() -> Iterator[Site]:
    with workplace("three-") as folder:
        yield Site(folder)


def evidence_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in document["checks"] if row["id"] == "g4.evidence")
    return found


def test_a_soak_rotates_on_two_engine_hosts_and_each_bears_out_all_of_its_part(site: Site) -> None:
    assert set(site.order().values()) == {"started"}
    ends = {root: site.ended(root)["exit"] for root in site.orders}
    assert {root: end["outcome"] for root, end in ends.items()} == dict.fromkeys(site.orders, "done"), (
        ends,
        (site.job("here") / "job.log").read_text(),
    )
    records = [row for row in lines(site.job("here") / "records.jsonl") if row["phase"] == "soak"]
    assert {(row["prompt"] % 2, row["host"]) for row in records} == set(enumerate(ENGINES))
    assert {row["usage"]["cached_tokens"] for row in records if row["prompt"] < 24} == {512}
    windows = [row["detail"] for row in lines(site.job("here") / "events.jsonl") if row["kind"] == "sentinel"]
    assert {window["host"] for window in windows} == set(ENGINES)
    assert all(window["requests"] == 5 for window in windows if window["whole"])
    document = site.judged()
    assert evidence_of(document)["verdict"] == "pass", evidence_of(document)["reason"]["en"]
    claims = {row["claim"]: row for row in document["claims"]}
    for name in ("requests_accounted", "store_complete"):
        assert claims[name]["status"] == "holds", claims[name]["reason"]["en"]


def test_when_one_engine_host_reboots_the_other_lets_go_and_all_go_on_together(site: Site) -> None:
    site.order()
    site.under_load()
    site.reboot("gpu02", "gpu02-2")
    end = site.ended("here")
    assert (end["exit"]["error"]["kind"], end["parted"], end["rebooted"]) == ("attendant", True, False)
    other = site.ended("gpu01")
    assert (other["exit"]["error"]["kind"], other["parted"], other["rebooted"]) == ("silence", True, False)
    assert (site.state("gpu02")["state"], site.state("gpu02")["rebooted"]) == ("dead", True)
    assert set(site.order().values()) == {"resumed"}
    ends = {root: site.ended(root)["exit"] for root in site.orders}
    assert {root: end["outcome"] for root, end in ends.items()} == dict.fromkeys(site.orders, "done"), (
        ends,
        (site.job("here") / "job.log").read_text(),
    )
    boots = list(dict.fromkeys(row["boot_id"] for row in lines(site.job("here") / "telemetry.jsonl")))
    assert boots == ["here-1+gpu01-1+gpu02-1", "here-1+gpu01-1+gpu02-2"]
    document = site.judged()
    assert evidence_of(document)["verdict"] == "pass", evidence_of(document)["reason"]["en"]
    (told,) = [row for row in document["figures"]["breaks"] if row["kind"] == "reboot"]
    assert "the engine hosts gpu02 booted anew" in told["what"]["en"]
    assert document["verdict"] not in ("pass", "conditional")
