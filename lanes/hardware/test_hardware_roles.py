"""XFS on a loop device, which is real. Fabric, array and volume over SSH: test_there_and_back.py; wipes: test_wipes.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lanes.hardware.leftovers import outside
from tests.integration.playbook_lab import PlaybookLab, playbook_lab

LOOP = {"volume": {"loop": {"kind": "loop_xfs", "mount": "{root}/mnt/loop", "image": "{root}/media/loop.img", "size_mib": 640, "chunk_kib": 64}}}


@pytest.mark.loop_xfs
def test_xfs_on_a_loop_device_is_made_with_its_stripes_takes_o_direct_and_goes_without_a_trace() -> None:
    with playbook_lab() as lab:
        root, machine = lab.add("gpu01"), outside(lab.folder)
        site = {**LOOP, "rack": "", "engine": engine_of_the_site(lab, root), "offload": {"kind": "native", "l1": {"keep": True}}}
        site["arms"] = {"recompute": {}, "baseline": {"mount_path": "loop"}, "candidate": {"mount_path": "loop"}}
        first = lab.play("deploy.yml", lab.variables({"key": "deploy"}, site=site, plan={"g4": {"fatal_counters": []}}))
        assert first.rc == 0, first.output
        mounted = next(line.split() for line in outside(lab.folder)["mounts"] if str(root / "mnt/loop") in line)
        assert mounted[2] == "xfs"
        assert {"noatime", "sunit=128", "swidth=512"} <= set(mounted[3].split(","))
        assert (root / "mnt/loop/kv").is_dir()
        again = lab.play("deploy.yml", lab.variables({"key": "deploy"}, site=site, plan={"g4": {"fatal_counters": []}}))
        assert (again.rc, again.changed) == (0, {"gpu01": 0}), again.output
        removed = lab.play("remove.yml", lab.variables({"key": "remove"}, site=site))
        assert removed.rc == 0, removed.output
        assert not root.exists()
        assert outside(lab.folder) == machine
        assert (lab.folder / "venv/bin/python").exists()


def engine_of_the_site(lab: PlaybookLab, root: Path) -> dict[str, Any]:
    """Return an engine whose environment and model the site has brought itself: the role uses them and never takes them away."""
    (lab.folder / "venv/bin").mkdir(parents=True)
    (lab.folder / "packages").mkdir()
    (lab.folder / "packages" / "vllm.py").write_text("")
    program = lab.folder / "venv/bin/python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={lab.folder}/packages exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    (lab.folder / "model").mkdir()
    (lab.folder / "model/config.json").write_text("{}")
    return {
        "kind": "vllm",
        "accelerator": "cpu",
        "model": "m",
        "model_dir": str(lab.folder / "model"),
        "venv": str(lab.folder / "venv"),
        "port": lab.port,
    }
