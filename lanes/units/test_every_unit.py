"""Every numeric field of what each breach changed, told in every other unit: none of it makes the attempt pass (docs/false-decisions.md).

The property tests draw such harm at random; this lane tries all of it, and names the fields of which evidence has only one source: nothing can
be held against them, and whoever forges one forges the breach itself.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bundles import Evidence
from tests.unit.gates import breaches, breaches_g4
from tests.unit.gates.damage import FACTORS, GOOD, fields, in_another_unit, verdict

# (breach, field): the only word on the matter. A lag a little above its limit, told as an eighth, is a lag that a loop may have.
SINGLE_SOURCE = frozenset({("lagging loop without the kernel", "/loop_lag_p99_ns")})


def _changed(evidence: Evidence, good: Evidence) -> list[str]:
    """Return the files in which a breach differs from an attempt where nothing is wrong, but for lists of files."""
    return [p for p, data in sorted(evidence.files.items()) if good.files.get(p) != data and not p.endswith("pack.json")]


def _slips(name: str, evidence: Evidence, good: Evidence) -> list[str]:
    """Return the fields, factors and directions that make the attempt pass."""
    out = []
    for path in _changed(evidence, good):
        for field in fields(evidence.files[path]):
            for factor in FACTORS:
                for up in (True, False):
                    if verdict(in_another_unit(evidence, path, field, factor, up=up)) in GOOD and (name, field) not in SINGLE_SOURCE:
                        out.append(f"{path}{field} {'x' if up else '/'} {factor}")
    return out


def _one_gate(make: Callable[[str], Evidence], name: str, good: Evidence) -> list[str]:
    return _slips(name, make(name), good)


@pytest.mark.parametrize("name", breaches.G3)
def test_no_field_of_a_main_gate_in_another_unit_makes_it_pass(name: str) -> None:
    assert _one_gate(breaches.g3, name, breaches.good()) == []


@pytest.mark.parametrize("name", breaches.G2)
def test_no_field_of_a_baseline_in_another_unit_makes_it_pass(name: str) -> None:
    assert _one_gate(breaches.g2, name, breaches.good_g2()) == []


@pytest.mark.parametrize("name", sorted(breaches_g4.G4))
def test_no_field_of_a_soak_in_another_unit_makes_it_pass(name: str) -> None:
    assert _one_gate(breaches_g4.g4, name, breaches_g4.load()) == []
