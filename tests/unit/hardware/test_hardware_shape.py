"""The sections fabric, array and volume of an engagement file: a mistyped key or kind is refused at entry, with what was probably meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from app.engagements.hardware_shape import ARRAY, FABRIC, PACKAGES, VOLUME
from app.settings import ROOT
from gates.schema import BAD, Problems, Spec

EXAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "playbooks/inventories/example/engagement.yaml").read_text(encoding="utf-8"))["targets"]
SHAPES = {"packages": PACKAGES, "fabric": FABRIC, "array": ARRAY, "volume": VOLUME}


def read(section: str, value: Any) -> tuple[Any, list[str]]:
    problems = Problems()
    spec: Spec = SHAPES[section]
    return spec.read(value, f"targets.{section}", problems), [problem.message.en for problem in problems.found]


def specified(role: str) -> dict[str, Any]:
    """Return the options of a role's argument_specs."""
    told = yaml.safe_load((ROOT / "playbooks/roles" / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    options: dict[str, Any] = told["argument_specs"]["main"]["options"]
    return options


@pytest.mark.parametrize("section", SHAPES)
def test_the_example_is_of_this_shape(section: str) -> None:
    value, problems = read(section, EXAMPLE[section])
    assert problems == []
    assert value is not BAD


@pytest.mark.parametrize(
    ("section", "change", "said"),
    [
        ("volume", {"array": {"kind": "md_xfs", "mount": "/m", "chunk_kb": 64}}, "Did you mean `chunk_kib`?"),
        ("volume", {"array": {"kind": "md_xsf", "mount": "/m"}}, "md_xfs | xfs | loop_xfs | nfs | directory"),
        ("volume", {"array": {"mount": "/m"}}, "targets.volume.array.kind: this key is missing"),
        ("volume", {"a": {"kind": "xfs", "mount": "/m", "device": "/dev/nvme1n1"}}, "another drive at the next boot"),
        ("volume", {"a": {"kind": "nfs", "mount": "/m", "source": "s:/e", "options": ["noatime,hard"]}}, "without a comma"),
        ("volume", {"a": {"kind": "nfs", "mount": "/m m", "source": "s:/e"}}, "without spaces"),
        ("array", {**EXAMPLE["array"], "io_queue": 4}, "Did you mean `io_queues`?"),
        ("array", {**EXAMPLE["array"], "portals": ["192.0.2.31"]}, "a map with address"),
        ("array", {**EXAMPLE["array"], "iopolicy": "roundrobin"}, "numa | round-robin | queue-depth"),
        ("packages", {"need": ["fio"]}, "Did you mean `needed`?"),
        ("packages", {"needed": ["fio; reboot"]}, "the name of a package"),
        ("packages", {"needed": ["fio"], "archive": "/a.tar", "archive_sha256": "6" * 63}, "64 hexadecimal digits"),
        ("fabric", {**EXAMPLE["fabric"], "gid_idx": 3}, "Did you mean `gid_index`?"),
    ],
)
def test_what_no_role_would_read_is_refused_with_what_was_meant(section: str, change: Mapping[str, Any], said: str) -> None:
    _, problems = read(section, change)
    assert any(said in problem for problem in problems), problems


def test_a_version_may_be_written_as_a_bare_number() -> None:
    value, problems = read("volume", yaml.safe_load("n: {kind: nfs, mount: /m, source: 's:/e', version: 4.1}"))
    assert problems == []
    assert value["n"]["version"] == "4.1"


def test_roles_and_the_file_know_the_same_keys() -> None:
    fabric, array = specified("fabric")["fabric_section"]["options"], specified("array")["array_section"]["options"]
    assert set(fabric) == set(FABRIC.optional)
    assert set(specified("packages")["packages_section"]["options"]) == {*PACKAGES.required, *PACKAGES.optional}
    assert set(array) == {*ARRAY.required, *ARRAY.optional}
    medium = specified("volume")["volume_described"]["options"]["medium"]["options"]
    kinds = VOLUME.entry.kinds  # type: ignore[attr-defined]
    assert set(medium["kind"]["choices"]) == set(kinds)
    assert set(medium) == {"kind", *(key for keys in kinds.values() for key in (*keys.required, *keys.optional))}
