"""Every numeric field of what each breach changed, told in every other unit: none of it makes the attempt pass (docs/false-decisions.md).

The property tests draw such harm at random; this lane tries all of it. No field is left out: where evidence had one source only, it has a second now.
Three things are not tried twice, since they are the same attempt: a file that another unit leaves as it is (a field that is 0 everywhere), a pack
that did not change (it is read once, tests/unit/gates/shared_reading.py), and the other units of a field that nothing looks at: where a thousand
millionth and a thousand million of it leave every check and every claim as they are, word for word with their values, no unit in between is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gates.bundle import Unreadable
from tests.bundles import Evidence
from tests.unit.gates import breaches, breaches_g4
from tests.unit.gates.damage import FACTORS, GOOD, fields, in_another_unit
from tests.unit.gates.shared_reading import judged

EXTREME = max(FACTORS)
WAYS = [(EXTREME, True), (EXTREME, False), *((factor, up) for factor in FACTORS if factor != EXTREME for up in (True, False))]


def _changed(evidence: Evidence, good: Evidence) -> list[str]:
    """Return the files in which a breach differs from an attempt where nothing is wrong, but for lists of files."""
    return [p for p, data in sorted(evidence.files.items()) if good.files.get(p) != data and not p.endswith("pack.json")]


def _said(evidence: Evidence) -> tuple[str, Any]:
    """Return the verdict, and all that was said of it."""
    try:
        document = judged(evidence)
    except Unreadable as error:
        return "unreadable", str(error)
    return str(document["verdict"]), [document[part] for part in ("because", "checks", "claims")]


def _slips(evidence: Evidence, good: Evidence) -> list[str]:
    """Return the fields, factors and directions that make the attempt pass."""
    out, as_it_is = [], _said(evidence)
    for path in _changed(evidence, good):
        for field in fields(evidence.files[path]):
            plain, unlike = in_another_unit(evidence, path, field, 1, up=True).files[path], False
            for n, (factor, up) in enumerate(WAYS):
                if n == 2 and not unlike:
                    break
                harmed = in_another_unit(evidence, path, field, factor, up=up)
                if harmed.files[path] == plain:
                    continue
                told = _said(harmed)
                unlike = unlike or told != as_it_is
                if told[0] in GOOD:
                    out.append(f"{path}{field} {'x' if up else '/'} {factor}")
    return out


def _one_gate(make: Callable[[str], Evidence], name: str, good: Evidence) -> list[str]:
    return _slips(make(name), good)


@pytest.mark.parametrize("name", breaches.G3)
def test_no_field_of_a_main_gate_in_another_unit_makes_it_pass(name: str) -> None:
    assert _one_gate(breaches.g3, name, breaches.good()) == []


@pytest.mark.parametrize("name", breaches.G2)
def test_no_field_of_a_baseline_in_another_unit_makes_it_pass(name: str) -> None:
    assert _one_gate(breaches.g2, name, breaches.good_g2()) == []


@pytest.mark.parametrize("name", sorted(breaches_g4.G4))
def test_no_field_of_a_soak_in_another_unit_makes_it_pass(name: str) -> None:
    assert _one_gate(breaches_g4.g4, name, breaches_g4.load()) == []
