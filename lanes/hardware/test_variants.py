"""Over real SSH, as in test_there_and_back: an engine in a virtual environment, as a unit, and in a container: deployed, measured, removed, twice.

The engine is the simulated one under vLLM's name and command line (tests/integration/tiny_vllm.py). pip, ssh, and the container's daemon with its
control groups are real; systemctl is the stand-in of tests/integration/systemctl_standin.py, since systemd is no test machine's first process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from app.settings import ROOT
from gates.steps import RUN_PACK
from lanes.compose import docker
from lanes.hardware.leftovers import of_hosts, outside
from tests.integration import tiny_vllm
from tests.integration.playbook_lab import ATTEMPT, PlaybookLab, Played
from tests.integration.ssh_lab import ADDRESSES, ssh_lab
from tests.needs import NOT_RUN

pytestmark = pytest.mark.sshd

JOB = f"{ATTEMPT}-run-1"
UNIT = "quadgate-engine.service"


class Place:
    """Two hosts behind SSH, each with a folder that plays its /etc, a systemctl, and the container runtime of this machine."""

    def __init__(self, lab: PlaybookLab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text("{}")

    def play(self, playbook: str, engine: dict[str, Any]) -> Played:
        """Play one of the shipped playbooks for a step; it must end well on every host."""
        engine = {"kind": "vllm", "accelerator": "cpu", "port": self.lab.port, "model": "m", "model_dir": str(self.folder / "model"), **engine}
        site = {"rack": "", "simulated": True, "engine": engine, "arms": {"recompute": {}}}
        step = {"key": "run-1", "arm": "recompute", "store": False, "canary": False}
        variables = {**self.lab.variables(step, plan={"g4": {"fatal_counters": []}}), "qg_etc": "{{ qg_root }}.etc", "hardware_become": False}
        variables["site"] = {**variables["site"], **site}
        done = self.lab.play(playbook, variables)
        assert done.rc == 0, done.output
        return done

    def measure(self, engine: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Run the arm that recomputes; return the last line of counters.jsonl of each host."""
        started = self.play("job_start.yml", engine)
        assert {host: reply["state"] for host, reply in started.replies.items()} == dict.fromkeys(self.lab.hosts, "started")
        found = {}
        for name in self.lab.hosts:
            root = Path(self.lab.hosts[name]["qg_root"])
            ended = self.lab.wait(root, JOB)
            assert ended["outcome"] == "done", f"{ended}\n{(root / 'engine/engine.log').read_text()[-2000:]}"
        self.play("job_collect.yml", engine)
        for name in self.lab.hosts:
            with tarfile.open(self.lab.staging / name / "pack.tar") as tar:
                assert set(RUN_PACK) <= set(tar.getnames())
                rows = [json.loads(line) for line in tar.extractfile("records.jsonl")]  # type: ignore[union-attr]
                found[name] = json.loads(list(tar.extractfile("counters.jsonl"))[-1])  # type: ignore[arg-type]
                said = tar.extractfile("engine.json").read().decode()  # type: ignore[union-attr]
            assert "vllm.entrypoints.openai.api_server" in said  # the engine's own words, not those of a launcher or of a runtime's client
            assert [row["error"] for row in rows if row["phase"] == "measure"] == [None] * 6
        return found

    def systemd(self, name: str) -> Path:
        """Return where the stand-in keeps what it knows of a host."""
        return self.folder / f"{name}.systemd"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        programs = {}
        for name in ADDRESSES:
            programs[name] = tmp_path / f"bin-{name}"
            programs[name].mkdir()
        lab = stack.enter_context(ssh_lab(programs))
        made = Place(lab, tmp_path)
        for name, folder in programs.items():
            etc = Path(f"{lab.hosts[name]['qg_root']}.etc")
            (etc / "systemd/system").mkdir(parents=True)
            words = [sys.executable, "-I", str(ROOT / "tests/integration/systemctl_standin.py"), str(etc / "systemd/system"), str(made.systemd(name))]
            (folder / "systemctl").write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
            (folder / "systemctl").chmod(0o755)
            lab.hosts[name]["engine_vllm_path"] = {"PATH": f"{folder}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        yield made


def archive(folder: Path, *arguments: str) -> dict[str, str]:
    """Make the archive that a site without internet carries in; return the section that names it."""
    argv = [sys.executable, "-m", "tools.target_archive", "--accelerator", "cpu", "--out", str(folder / "target.tar"), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return {"archive": told["archive"], "archive_sha256": told["archive_sha256"]}


@pytest.mark.parametrize("supervision", ["process", "unit"])
def test_an_environment_from_the_archive_is_deployed_measured_and_removed_twice(place: Place, supervision: str) -> None:
    lab, folder = place.lab, place.folder
    tiny_vllm.wheel(folder / "wheels")
    carried = archive(folder, "--pip-args", f"--no-index --find-links {folder / 'wheels'}")
    engine = {"install": "venv", "venv": "{{ qg_root }}.venv", "supervision": supervision, **carried}
    del lab.hosts["gpu02"]  # an environment takes its time, and test_there_and_back has two hosts
    ports = (lab.port, lab.port + 1)
    machine, hosts = outside(lab.folder, ports), of_hosts(lab)
    for round_no in range(2):
        assert all(place.play("deploy.yml", engine).changed.values())
        told = place.measure(engine)
        for name in lab.hosts:
            unit = Path(f"{lab.hosts[name]['qg_root']}.etc") / "systemd/system" / UNIT
            assert unit.exists() == (supervision == "unit")
            if supervision == "unit":
                known = json.loads(place.systemd(name).read_text())
                assert list(known) == [UNIT]
        assert all(row["engine_io"] for row in told.values()), told  # of the unit's control group
        if round_no == 0:
            again = place.play("deploy.yml", engine)
            assert again.changed == dict.fromkeys(lab.hosts, 0), again.output
        assert outside(lab.folder, ports)["ports"], "no engine listened, so that its end proves nothing"
        place.play("remove.yml", engine)
        assert of_hosts(lab) == hosts
        assert outside(lab.folder, ports) == machine
        assert [name for name in lab.hosts if place.systemd(name).exists()] == []


def runtime(folder: Path) -> Path:
    """Return a docker that speaks to the lane's daemon, whatever the environment of a session.

    Where this machine lets nobody lock memory without a limit, no container could start with one: the words for it are left out.
    """
    path = folder / "docker"
    limited = subprocess.run(["prlimit", "--memlock=unlimited:unlimited", "true"], capture_output=True, check=False).returncode != 0
    without = 'for word; do shift; case "$word" in --ulimit|memlock=-1) ;; *) set -- "$@" "$word" ;; esac; done\n' if limited else ""
    where = f"-H {os.environ['DOCKER_HOST']} " if os.environ.get("DOCKER_HOST") else ""
    path.write_text(f'#!/bin/sh\n{without}exec {shutil.which("docker")} {where}"$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.skipif(bool(docker.why_not()), reason=NOT_RUN + docker.why_not())
@pytest.mark.skipif(not tiny_vllm.PYTHON.exists(), reason=f"{NOT_RUN}{tiny_vllm.PYTHON}, which goes into the image, is not on this machine.")
def test_a_container_from_the_archive_is_deployed_measured_and_removed_as_a_process_and_as_a_unit(place: Place) -> None:
    lab, folder = place.lab, place.folder
    del lab.hosts["gpu02"]  # one daemon is one host's
    file, made = tiny_vllm.image(folder)
    tiny_vllm.wheel(folder / "wheels")
    carried = archive(folder, "--pip-args", f"--no-index --find-links {folder / 'wheels'}", "--image", str(file))
    with docker.daemon():
        program = runtime(folder)

        def of_docker() -> list[str]:
            told = [["image", "ls", "--all", "--quiet"], ["ps", "--all", "--quiet"], ["volume", "ls", "--quiet"]]
            return [subprocess.run([str(program), *words], capture_output=True, text=True, check=True).stdout for words in told]

        machine, hosts, before = outside(lab.folder, (lab.port,)), of_hosts(lab), of_docker()
        for supervision in ("process", "unit"):
            engine = {
                "install": "container",
                "image": "vllm@" + made,
                "image_id": made,
                "runtime": str(program),
                "supervision": supervision,
                **carried,
            }
            assert all(place.play("deploy.yml", engine).changed.values())
            told = place.measure(engine)
            assert told["gpu01"]["engine_io"], told  # of the container's control group, not of the runtime's client
            again = place.play("deploy.yml", engine)
            assert again.changed == {"gpu01": 0}, again.output
            assert outside(lab.folder, (lab.port,))["ports"]
            place.play("remove.yml", engine)
            assert of_hosts(lab) == hosts
            assert of_docker() == before
            assert outside(lab.folder, (lab.port,)) == machine
            assert not place.systemd("gpu01").exists()
