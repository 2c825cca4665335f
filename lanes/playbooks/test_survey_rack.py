"""The real ansible-playbook on the simulated rack: three arrays with two-host engagements of their own, judged from the packs that came home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import ROOT
from app.targets.probe_archive import build_probe
from gates.g1_arrival import GATE, judge
from gates.model import CheckResult, Verdict
from gates.rules.stand_ins import told_by
from tests.ports import free_port
from tests.unit.rack.simulate import GOOD_FORM, PAIR, Files, bundle_of, demo_plan, inputs

CASES: dict[str, dict[str, Any]] = {"array01": {}, "array02": {"missing-drive": "1"}, "array03": {"swapped-drive": "1"}}
ASKED: dict[str, Any] = {"evidence": {"required": ["rdma_bandwidth"]}}
SITE = {"rack": "lab", "faults": "{{ my_faults | default({}) }}"}  # one play, another fault for each array


class Lab:
    """Local hosts below one folder, and the playbooks run on them as the engine runs them."""

    def __init__(self, root: Path) -> None:
        self.root, self.staging, self.port = root, root / "staging", free_port()
        build_probe(root / "probe.pyz")
        hosts: dict[str, Any] = {name: self._host(name, my_faults=faults) for name, faults in CASES.items()}
        hosts["gpu01"] = self._host("gpu01")
        groups = {"engine": {"gpu01": {}}, "storage": {name: {} for name in CASES}}
        (root / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "children": {g: {"hosts": m} for g, m in groups.items()}}}))

    def _host(self, name: str, **variables: Any) -> dict[str, Any]:
        home = self.root / "lab" / name
        home.mkdir(parents=True)
        return {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "qg_root": str(home), **variables}

    def run(self, playbook: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the playbook of a step with the variables of docs/architecture.md."""
        step = next(s for s in GATE.steps(demo_plan(**ASKED)) if s.playbook == playbook)
        told = {
            "attempt": {"id": "a1", "gate": "G1", "number": 1, "fence": 1, "seed": 1, "engagement": "e"},
            "step": {"key": step.key, **step.params},
            "site": {**SITE, "rdma_bandwidth": {"pairs": [{**PAIR, "host": name} for name in CASES], "seconds": 3, "port": self.port}},
            "plan": {},
            "staging": str(self.staging),
            "probe": str(self.root / "probe.pyz"),
        }
        (self.root / "vars.json").write_text(json.dumps(told))
        command = [
            str(Path(sys.executable).with_name("ansible-playbook")),
            "-i",
            "inventory.yml",
            "-e",
            "@vars.json",
            *options,
            str(ROOT / "playbooks" / playbook),
        ]
        home = {
            "ANSIBLE_HOME": str(self.root / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.root / "tmp"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        }
        env = {**os.environ, **home, "LC_ALL": "C.UTF-8", "ANSIBLE_PIPELINING": "1", "ANSIBLE_FORKS": "4"}
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, timeout=240)

    def evidence(self, array: str) -> Files:
        """Return the evidence of one engagement: gpu01 and this array, whose packing list is the demo's."""
        told = inputs()
        told["hosts"]["storage"] = [array]
        for item in told["packing_list"]:
            item["host"] = array
        form = {"schema": 1, "step": "unpacking", "form": GOOD_FORM, "photos": ["p.jpg"]}
        files = {"evidence/inputs.json": json.dumps(told).encode(), "evidence/unpacking/site/form.json": json.dumps(form).encode()}
        files["evidence/unpacking/site/p.jpg"] = b"\xff\xd8\xff"
        for step, host in (("survey", "gpu01"), ("survey", array), ("storage", array), ("rdma", "gpu01"), ("rdma", array)):
            if not (self.staging / host / f"{step}.tar").exists():
                continue
            with tarfile.open(self.staging / host / f"{step}.tar") as tar:
                for member in tar.getmembers():
                    files[f"evidence/{step}/{host}/{member.name}"] = tar.extractfile(member).read()
        return files


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Survey all hosts, and read the drives of the array that has no fault."""
    lab = Lab(tmp_path_factory.mktemp("rack"))
    for playbook, options in (("survey.yml", ()), ("storage.yml", ("--limit", "array01")), ("rdma.yml", ())):
        done = lab.run(playbook, *options)
        assert done.returncode == 0, done.stdout + done.stderr
    return lab


def judged(lab: Lab, array: str, **differences: Any) -> dict[str, CheckResult]:
    plan = demo_plan(**differences)
    return {c.id: c for c in judge(plan, bundle_of(lab.evidence(array), plan)).checks}


def test_an_arrival_without_fault_passes_every_check_from_what_the_playbooks_brought_home(lab):
    assert {c.id: c.reason.en for c in judged(lab, "array01").values() if c.verdict is not Verdict.PASS} == {}


def test_every_pair_of_ports_was_measured_one_after_the_other_and_no_far_end_is_left(lab):
    measured = []
    for array in CASES:
        result = judged(lab, array, **ASKED)["g1.rdma.bandwidth"]
        assert (result.verdict, str(result.severity)) == (Verdict.PASS, "blocking"), result.reason.en
        rows = json.loads(lab.evidence(array)[f"evidence/rdma/{array}/commands.json"])
        measured += [(row["started_ns"], row["ended_ns"]) for row in rows if row["tool"] == "perftest"]
    measured.sort()
    assert len(measured) == len(CASES)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(measured))
    assert not list((lab.root / "lab").glob("*/rdma"))


def test_a_missing_drive_fails_by_its_serial_number(lab):
    result = judged(lab, "array02")["g1.serials.drive"]
    assert result.verdict is Verdict.FAIL
    assert "QF26K0A00104 (QF-N7680) is missing" in result.reason.en


def test_a_swapped_drive_fails_by_both_serial_numbers(lab):
    result = judged(lab, "array03")["g1.serials.drive"]
    assert result.verdict is Verdict.FAIL
    assert "QF26K0A00101" in result.reason.en
    assert "QF25M0B77000" in result.reason.en


def test_a_step_that_brought_nothing_home_is_inconclusive(lab):
    assert judged(lab, "array02")["g1.raw.io"].verdict is Verdict.INCONCLUSIVE


def test_the_packs_are_whole_and_hold_what_the_steps_promise(lab):
    for step in GATE.steps(demo_plan()):
        for group, names in step.expects.items():
            for host in {"engine": ["gpu01"], "storage": ["array01"]}.get(group, []):
                files = lab.evidence("array01")
                assert {f"evidence/{step.key}/{host}/{name}" for name in names} <= set(files)


def test_what_the_rack_answered_says_by_itself_that_it_is_simulated(lab):
    files = lab.evidence("array01")
    rows = json.loads(files["evidence/storage/array01/commands.json"])
    assert {row["path"] for row in rows if row["argv"][0] == "fio"} == {str(lab.root / "lab/array01/rack/bin/fio")}
    for step, host in (("survey", "gpu01"), ("survey", "array01"), ("storage", "array01")):
        path = f"evidence/{step}/{host}/commands.json"
        sign = told_by(bundle_of({path: files[path]}, demo_plan()))
        assert sign is not None
        assert "of the simulated rack" in sign.en


def test_check_mode_after_a_run_finds_nothing_to_change_and_changes_nothing(lab):
    before = {path: path.stat().st_mtime_ns for path in (lab.root / "lab").rglob("*")}
    done = lab.run("survey.yml", "--check", "--limit", "array01")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=0" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in (lab.root / "lab").rglob("*")} == before


def test_everything_on_a_host_lies_below_its_own_folder(lab):
    assert {path.name for path in (lab.root / "lab/array01").iterdir()} == {"probe.pyz", "rack", "packs"}
