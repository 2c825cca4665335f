"""What the target archive says of a distribution's packages: read from the files themselves, refused in a sentence where they are none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.os_packages import tiny_deb, tiny_rpm
from tools.os_packages import gather, read_deb, read_rpm

with_dpkg = pytest.mark.skipif(
    not shutil.which("dpkg-deb"), reason="NOT RUN: dpkg-deb, which builds the packages to be read, is not on this machine."
)


@with_dpkg
def test_a_deb_says_what_it_is_and_what_it_needs_by_bare_names(tmp_path: Path) -> None:
    made = tiny_deb(
        tmp_path, "tiny", "2:1.5-1", Architecture="amd64", Pre_Depends="libc6:any (>= 2.36)", Depends="a (>= 1) | b:any, c", Provides="d (= 2)"
    )
    told = read_deb(made)
    assert (told["kind"], told["name"], told["version"], told["architecture"]) == ("deb", "tiny", "2:1.5-1", "amd64")
    assert (told["needs"], told["provides"]) == ([["libc6"], ["a", "b"], ["c"]], ["d"])


def test_an_rpm_says_what_it_is_and_provides_the_files_that_others_need_by_path(tmp_path: Path) -> None:
    tiny_rpm(tmp_path, "tiny", "1.5-1.el9", needs=["rpmlib(PayloadIsZstd)", "config(tiny)", "libtiny.so.1()(64bit)", "/usr/bin/helper", "(a if b)"])
    tiny_rpm(tmp_path, "help", provides=["libtiny.so.1()(64bit)"], files=["/usr/bin/helper", "/usr/share/help/long-list"])
    told = {row["name"]: row for row in gather([f"rhel-9={tmp_path}"], tmp_path / "out")}
    assert told["tiny"]["needs"] == [["/usr/bin/helper"], ["libtiny.so.1()(64bit)"]]
    assert told["help"]["provides"] == ["help", "libtiny.so.1()(64bit)", "/usr/bin/helper"]
    assert (told["tiny"]["version"], told["tiny"]["distribution"], told["tiny"]["architecture"]) == ("1.5-1.el9", "rhel-9", "x86_64")
    assert "long-list" not in json.dumps(told)
    assert (tmp_path / "out" / told["tiny"]["path"]).read_bytes() == (tmp_path / "tiny-1.5-1.el9.x86_64.rpm").read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.deb", b"<html>not found</html>", "does not begin as an ar archive"),
        ("a.deb", b"!<arch>\n", "no control file"),
        ("a.rpm", b"<html>not found</html>", "no rpm package that can be read"),
        ("a.rpm", b"\xed\xab\xee\xdb".ljust(96, b"\0") + b"\x8e\xad\xe8\x01", "no rpm package that can be read"),
        ("a.txt", b"", "no .deb or .rpm is in this folder"),
    ],
)
def test_what_is_no_package_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said):
        gather([f"debian-12={tmp_path}"], tmp_path / "out")


def test_two_versions_of_one_package_and_a_folder_without_its_distribution_are_refused(tmp_path: Path) -> None:
    tiny_rpm(tmp_path, "tiny", "1.0-1")
    with pytest.raises(ValueError, match="say DISTRIBUTION=FOLDER"):
        gather([str(tmp_path)], tmp_path / "out")
    tiny_rpm(tmp_path, "tiny", "2.0-1")
    with pytest.raises(ValueError, match=r"twice \(1.0-1 and 2.0-1\)"):
        gather([f"rhel-9={tmp_path}"], tmp_path / "out")
    with pytest.raises(ValueError, match="no rpm package"):
        read_rpm(Path("/etc/os-release"))
