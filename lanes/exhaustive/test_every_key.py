"""No key of a run's documents whose loss, or exchange with another, makes evidence pass that did not: all keys that are there, one after the other.

The documents are those that the breach of an attempt is told by; lanes/probe holds that the probe itself writes these very keys.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest

from tests.bundles.evidence import Evidence, dumped
from tests.unit.gates import breaches, breaches_g4
from tests.unit.gates.damage import GOOD, NOT_GOOD, Path, copied_from, key_paths, verdict, without
from tests.unit.gates.shared_reading import judged

DOCUMENTS = ("exit.json", "engine.json", "client.json", "workload.json", "job.json", "pack.json")
MADE: dict[str, Callable[[str], Evidence]] = {"g3": breaches.g3, "g2": breaches.g2, "g4": breaches_g4.g4}
NAMES = [
    *(("g3", name) for name in (*breaches.G3, *breaches.TRUTHS)),
    *(("g2", name) for name in (*breaches.G2, *breaches.G2_TRUTHS)),
    *(("g4", name) for name in breaches_g4.G4),
]
Harm = Callable[[bytes], bytes]


@functools.lru_cache(maxsize=2)
def made(gate: str, name: str) -> Evidence:
    return MADE[gate](name)


def told_by(evidence: Evidence) -> list[str]:
    """Return the documents that what is wrong with an attempt is told by, as the verdict itself names them."""
    document = judged(evidence)
    wrong = [check for check in document["checks"] if check["verdict"] not in GOOD and check["severity"] == "blocking"]
    wrong += [claim for claim in document["claims"] if claim["status"] not in ("holds", "left_out")]
    named = {path for row in wrong for path in row.get("evidence") or ()}
    return sorted(path for path in named if path in evidence.files and path.rpartition("/")[2] in DOCUMENTS)


def harms(data: bytes) -> Iterator[tuple[str, Harm]]:
    """Yield every loss of a key of a document, and every exchange of the values of two keys that stand beside each other."""
    for path in key_paths(data):
        yield f"without {'.'.join(path)}", functools.partial(without, path=path)
        yield f"{'.'.join(path)} null", functools.partial(put, path=path, value=None)
        yield f"{'.'.join(path)} NaN", functools.partial(put, path=path, value=float("nan"))
    for one, other in combinations(key_paths(data), 2):
        if one[:-1] == other[:-1] and "*" not in one and type(value := at(data, one)) is type(at(data, other)) and value != at(data, other):
            yield f"{'.'.join(one)} <-> {'.'.join(other)}", functools.partial(exchanged, one=one, other=other)


@functools.cache
def as_they_are_well(gate: str, path: str) -> frozenset[str]:
    """Return the harms that put null where null stands when nothing is wrong: to take a fault away is no harm."""
    files = {"g3": breaches.good, "g2": breaches.good_g2, "g4": breaches_g4.load}[gate]().files
    data = files.get(path, b"{}")
    return frozenset(f"{'.'.join(keys)} null" for keys in key_paths(data) if "*" not in keys and at(data, keys) is None)


def at(data: bytes, path: Path) -> Any:
    value = json.loads(data)
    for key in path:
        value = value[key]
    return value


def put(data: bytes, path: Path, value: Any) -> bytes:
    """Return a document with another value at a path: in every entry of a list at `*`."""
    document = json.loads(data)
    _put(document, path, value)
    return dumped(document)


def _put(holder: Any, path: Path, value: Any) -> None:
    for key in range(len(holder)) if path[0] == "*" and isinstance(holder, list) else [path[0]]:
        if len(path) == 1:
            holder[key] = value
        elif isinstance(holder, list) or path[0] in holder:
            _put(holder[key], path[1:], value)


def exchanged(data: bytes, one: Path, other: Path) -> bytes:
    first, second = at(data, one), at(data, other)
    return put(put(data, one, second), other, first)


def harmed(evidence: Evidence, path: str, harm: Harm) -> Evidence:
    copied = copied_from(evidence)
    copied.files[path] = harm(copied.files[path])
    return copied if path.endswith("pack.json") else copied.repack(path.split("/")[1])


@functools.cache
def dealt(gate: str) -> dict[str, list[tuple[str, int, int]]]:
    """Return, by the name of a breach, (document, its place, of how many) for each document that the breach is told by.

    The harms of a document are dealt out among the breaches of its gate that are told by it, so that each is tried, on a breach that it could
    hide; each on every breach takes half an hour, most of it of soaks.
    """
    found = {name: told_by(made(gate, name)) for of, name in NAMES if of == gate}
    told = {name: {path.rpartition("/")[2]: path for path in paths} for name, paths in found.items()}
    of = {document: [name for name, paths in told.items() if document in paths] for document in DOCUMENTS}
    return {name: [(path, of[document].index(name), len(of[document])) for document, path in paths.items()] for name, paths in told.items()}


@pytest.mark.parametrize(("gate", "name"), NAMES)
def test_no_key_is_one_without_which_a_breach_passes(gate: str, name: str) -> None:
    shares = dealt(gate)[name]
    evidence = made(gate, name)
    passed = [
        f"{path}: {what}"
        for path, place, of in shares
        for what, harm in list(harms(evidence.files[path]))[place::of]
        if what not in as_they_are_well(gate, path) and verdict(harmed(evidence, path, harm)) not in NOT_GOOD
    ]
    assert passed == []


@pytest.mark.parametrize("gate", MADE)
def test_every_document_but_the_list_of_a_pack_tells_some_breach(gate: str) -> None:
    """Else its keys would be tried on nothing."""
    told = {path.rpartition("/")[2] for shares in dealt(gate).values() for path, _, _ in shares}
    assert {"exit.json", "engine.json", "client.json"} <= told


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_key_is_one_without_which_a_product_that_is_too_slow_passes(document: str) -> None:
    evidence = made("g3", "slow")
    path = evidence.path(breaches.STEP, document)
    assert [what for what, harm in harms(evidence.files[path]) if verdict(harmed(evidence, path, harm)) not in NOT_GOOD] == []


@pytest.mark.parametrize("name", breaches.CONDITIONAL)
def test_no_key_is_one_without_which_a_conditional_gate_passes(name: str) -> None:
    evidence = breaches.conditional(name)
    paths = [evidence.path(breaches.STEP, document) for document in DOCUMENTS]
    assert [f"{p}: {what}" for p in paths for what, harm in harms(evidence.files[p]) if verdict(harmed(evidence, p, harm)) == "pass"] == []
