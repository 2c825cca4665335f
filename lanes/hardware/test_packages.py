"""The distribution's packages by the real apt-get and dpkg, in a copy of this machine's system: tiny .deb files installed, refused, taken away."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.settings import ROOT
from tests.integration.playbook_lab import PlaybookLab, playbook_lab
from tests.integration.role_lab import RoleLab
from tests.os_packages import copied_system, tiny_deb, tiny_rpm
from tools.os_packages import gather

pytestmark = pytest.mark.copied_system

KIT = ROOT / "playbooks/roles/hardware/files/kit"
RELEASE = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
HERE = f"{RELEASE['ID']}-{RELEASE.get('VERSION_ID', '')}".replace('"', "")


class System:
    """A copy of this machine, and the kit at work in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.debs = folder, folder / "debs"
        self.debs.mkdir()
        self.before = copied_system(folder / "copy")

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.before, *argv], capture_output=True, text=True, check=False)

    def kit(self, verb: str, *needed: str, distribution: str = HERE) -> dict[str, Any]:
        """Return the kit's answer with every package of the folder carried in; a refusal as {refused, refused_zh}."""
        carried = gather([f"{distribution}={self.debs}"], self.folder / "unpacked") if any(self.debs.glob("*.[dr]*")) else []
        return self.kit_of(verb, needed=list(needed), carried=carried)

    def kit_of(self, verb: str, **order: Any) -> dict[str, Any]:
        told = {"root": str(self.folder / "root"), "needed": [], "folder": str(self.folder / "unpacked"), **order}
        argv = [*self.before, sys.executable, str(KIT), "packages", verb]
        done = subprocess.run(argv, input=json.dumps(told), capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode:
            said = json.loads(done.stderr)
            return {"refused": said["en"], "refused_zh": said["zh-CN"]}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def packages(self) -> str:
        """Return every package with its version and state."""
        return self.run("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n").stdout

    def site_installs(self, deb: Path) -> None:
        done = self.run("dpkg", "--install", str(deb))
        assert done.returncode == 0, done.stderr


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def test_what_is_missing_comes_with_what_it_needs_and_only_that_goes_again(system: System) -> None:
    system.site_installs(tiny_deb(system.folder, "tiny-there"))
    before = system.packages()
    tiny_deb(system.debs, "tiny-tool", Depends="tiny-lib (>= 1), tiny-there, dpkg", Pre_Depends="tiny-early | tiny-nowhere")
    tiny_deb(system.debs, "tiny-lib", Provides="tiny-api")
    tiny_deb(system.debs, "tiny-early", Depends="tiny-api")
    tiny_deb(system.debs, "tiny-other")  # carried, and needed by nobody
    tiny_deb(system.debs, "tiny-there", "2.0")  # newer than the site's own, which stays
    planned = system.kit("plan", "tiny-tool", "tiny-there")
    assert planned["changed"] == ["install tiny-early, tiny-lib, tiny-tool"]
    assert system.packages() == before
    done = system.kit("apply", "tiny-tool", "tiny-there")
    assert (done["changed"], done["wrong"]) == (planned["changed"], [])
    there = system.packages()
    assert "tiny-there 1.0 installed" in there
    assert "tiny-other" not in there
    assert set(there.splitlines()) - set(before.splitlines()) == {f"tiny-{name} 1.0 installed" for name in ("early", "lib", "tool")}
    assert system.kit("apply", "tiny-tool", "tiny-there")["changed"] == []
    assert system.kit("plan-remove")["changed"] == ["remove tiny-early, tiny-lib, tiny-tool"]
    assert system.kit("remove")["facts"] == {"left": []}
    assert system.packages() == before
    assert not (system.folder / "root/state/hardware.json").exists()
    assert "tiny-tool" not in Path("/var/lib/dpkg/status").read_text()  # this machine itself


def test_one_that_lacks_is_refused_with_what_this_host_is_and_what_the_archive_holds(system: System) -> None:
    before = system.packages()
    assert "no archive with packages is named" in system.kit("apply", "tiny-tool")["refused"]
    tiny_deb(system.debs, "tiny-tool", Architecture="riscv64")
    told = system.kit("apply", "tiny-tool")
    assert f"the archive carries tiny-tool: {HERE} riscv64" in told["refused"]
    assert "归档中为 tiny-tool" in told["refused_zh"]
    (system.debs / "tiny-tool_1.0_riscv64.deb").unlink()
    tiny_deb(system.debs, "tiny-tool", "1.1", Depends="tiny-lib (>= 1)")
    assert "carries tiny-tool: debian-3 all" in system.kit("apply", "tiny-tool", distribution="debian-3")["refused"]
    assert "tiny-tool 1.1 needs tiny-lib, which is neither installed" in system.kit("apply", "tiny-tool")["refused"]
    tiny_rpm(system.folder, "tiny-tool").rename(system.debs / "a.rpm")
    (system.debs / "tiny-tool_1.1_all.deb").unlink()
    assert f"{HERE} x86_64" in system.kit("apply", "tiny-tool")["refused"]  # of the right label, and no package of this host's kind
    assert system.packages() == before


def test_what_would_change_what_is_there_is_refused_before_anything_is_done(system: System) -> None:
    system.site_installs(tiny_deb(system.folder, "tiny-there"))
    before = system.packages()
    tiny_deb(system.debs, "tiny-tool", Conflicts="tiny-there")
    assert "without changing what is there (" in system.kit("apply", "tiny-tool")["refused"]
    tiny_deb(system.debs, "tiny-new", Depends="tiny-there (>= 2)")
    assert "tiny-there (>= 2)" in system.kit("apply", "tiny-new")["refused"]
    assert system.packages() == before
    assert not (system.folder / "root/state/hardware.json").exists()


def test_a_file_that_was_changed_after_it_was_unpacked_is_not_installed(system: System) -> None:
    tiny_deb(system.debs, "tiny-tool")
    carried = gather([f"{HERE}={system.debs}"], system.folder / "unpacked")
    (system.folder / "unpacked" / carried[0]["path"]).write_bytes(tiny_deb(system.folder, "tiny-tool", "6.6").read_bytes())
    assert "is not what the archive's manifest says" in system.kit_of("apply", needed=["tiny-tool"], carried=carried)["refused"]
    assert "tiny-tool" not in system.packages()


def test_one_whose_set_up_fails_is_told_tried_again_and_taken_away(system: System) -> None:
    before = system.packages()
    tiny_deb(system.debs, "tiny-tool", fails=True)
    assert "ended with" in system.kit("apply", "tiny-tool")["refused"]
    assert "tiny-tool 1.0 half-configured" in system.packages()
    assert "ended with" in system.kit("apply", "tiny-tool")["refused"]
    assert system.kit("remove")["facts"] == {"left": []}
    assert system.packages() == before


def test_what_others_need_or_changed_since_is_left_and_named_and_settings_from_before_stay(system: System) -> None:
    system.site_installs(tiny_deb(system.folder, "tiny-set", "0.9", files={"/etc/tiny-set.conf": "the site's\n"}))
    system.run("dpkg", "--remove", "tiny-set")
    tiny_deb(system.debs, "tiny-set", files={"/etc/tiny-set.conf": "the package's\n"})
    tiny_deb(system.debs, "tiny-lib")
    tiny_deb(system.debs, "tiny-tool", Depends="tiny-lib")
    tiny_deb(system.debs, "tiny-moved")
    assert system.kit("apply", "tiny-set", "tiny-tool", "tiny-moved")["wrong"] == []
    system.site_installs(tiny_deb(system.folder, "tiny-site", Depends="tiny-lib"))
    system.site_installs(tiny_deb(system.folder, "tiny-moved", "2.0"))
    left = system.kit("remove")["facts"]["left"]
    assert [row["en"] for row in left] == [
        "The package tiny-moved has the version 2.0 now, and we installed 1.0: it was left.",
        "The package tiny-lib is needed by others by now: it was left.",
    ]
    there = {line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in system.packages().splitlines() if line.startswith("tiny-")}
    assert there == {"tiny-lib 1.0": "installed", "tiny-moved 2.0": "installed", "tiny-site 1.0": "installed", "tiny-set 1.0": "config-files"}
    assert system.run("cat", "/etc/tiny-set.conf").stdout == "the site's\n"


def archive(folder: Path) -> dict[str, str]:
    """Make an archive of one package and no engine; return the section that names it."""
    (folder / "debs").mkdir()
    tiny_deb(folder / "debs", "tiny-tool", Depends="tiny-lib")
    tiny_deb(folder / "debs", "tiny-lib")
    argv = [sys.executable, "-m", "tools.target_archive", "--engine", "none", "--os-packages", f"{HERE}={folder / 'debs'}"]
    done = subprocess.run([*argv, "--out", str(folder / "packages.tar")], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["os_packages"] == [f"tiny-lib 1.0 all ({HERE})", f"tiny-tool 1.0 all ({HERE})"]
    return {"archive": told["archive"], "archive_sha256": told["archive_sha256"]}


def test_the_role_installs_once_from_the_archive_says_so_first_in_check_mode_and_refuses_another_archive(tmp_path: Path) -> None:
    lab = RoleLab(tmp_path, copied_system(tmp_path / "copy"))
    section = {**archive(tmp_path), "needed": ["tiny-tool", "dpkg"]}
    known: dict[str, Any] = {"site": {"rack": "", "packages": section}, "hardware_become": False, "attempt": {"id": "a", "fence": 1}}
    (lab.root / "hardware.pyz").symlink_to(KIT)

    def play(*arguments: str, state: str = "present", **more: Any) -> Any:
        return lab.play("packages", *arguments, **{**known, "hardware_there": True, "packages_state": state, **more})

    dry = play("--check")
    assert (dry.rc, dry.changed) == (0, 1), dry.output
    assert not (lab.root / "os-packages").exists()
    other = play(site={"rack": "", "packages": {**section, "archive_sha256": "0" * 64}})
    assert other.rc != 0
    assert "Carry the right one in" in other.output
    first = play()
    assert (first.rc, first.changed) == (0, 2), first.output  # unpacked, installed
    assert (second := play()).changed == 0, second.output
    assert (dry := play("--check")).changed == 0, dry.output
    removed = play(state="absent", site={"rack": ""})
    assert (removed.rc, removed.changed) == (0, 1), removed.output
    shown = subprocess.run([*lab.before, "dpkg-query", "-W", "tiny-tool"], capture_output=True, text=True, check=False)
    assert shown.returncode == 1


@pytest.fixture
def host(tmp_path: Path) -> Iterator[PlaybookLab]:
    """One host that is a copy of this machine."""
    with playbook_lab() as made:
        made.before = copied_system(tmp_path / "copy")
        made.add("gpu01", hardware_become=False, ansible_python_interpreter=sys.executable)
        yield made


def test_a_deployment_brings_them_first_with_the_proof_in_its_pack_and_the_removal_takes_them_last(host: PlaybookLab, tmp_path: Path) -> None:
    section = {**archive(tmp_path), "needed": ["tiny-tool", "dpkg"]}
    variables = host.variables({"key": "deploy"}, site={"rack": "", "packages": section})
    deployed = host.play("deploy.yml", variables)
    assert deployed.rc == 0, deployed.output
    pack = subprocess.run(["tar", "-xOf", str(host.staging / "gpu01/pack.tar"), "commands.json"], capture_output=True, text=True, check=True)
    assert "os-packages" in pack.stdout
    again = host.play("deploy.yml", variables)
    assert (again.rc, again.changed) == (0, {"gpu01": 0}), again.output
    removed = host.play("remove.yml", variables)
    assert removed.rc == 0, removed.output
    assert subprocess.run([*host.before, "dpkg-query", "-W", "tiny-tool"], capture_output=True, check=False).returncode == 1
    assert not (host.folder / "gpu01").exists()
