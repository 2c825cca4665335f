"""One judgement of thousands that differ in one file: what they share is made once.

Packs that did not change are read once: a reader makes the same of the same bytes (gates/ is pure), so a pack whose every file has the digest of one
that was read is that pack. So are the long journals of a soak, each by itself, with what was wrong with them. The plan is parsed and hashed once, and
a verdict is not brought into its canonical form, which is half of the time of a small one: as JSON it is refused for the same things (a float that is
no number, half a character).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import gates.judge
from gates.bundle import Bundle
from gates.canonical import sha256_hex
from gates.model import Problem
from gates.plan import Plan
from gates.readers import soak_records, soak_telemetry
from gates.readers.run_pack import Pack, read_pack
from gates.readers.strict import Reader
from gates.rules import completeness
from tests.bundles.evidence import HOST, Evidence

HASH = "sha256:" + "0" * 64  # of the manifest: no rule looks at it
_MOST = 64  # packs (a few attempts of eight runs each), and plans
_packs: dict[Any, Pack] = {}
_journals: dict[Any, tuple[Any, list[Problem]]] = {}
_manifests: dict[Any, tuple[Plan, dict[str, Any]]] = {}  # with the plan, so that no other takes its identity


def judged(evidence: Evidence) -> dict[str, Any]:
    """Return what `gates.judge.judge` makes of evidence, but for the hash of its manifest. Raises Unreadable as it does."""
    manifest = dict(_manifest(evidence))
    manifest["files"] = sorted(
        (
            {"path": path, "size": len(data), "sha256": sha256_hex(data), "step": path.split("/")[1], "host": HOST, "tool": "probe"}
            for path, data in evidence.files.items()
        ),
        key=lambda entry: str(entry["path"]),
    )
    bundle = Bundle(manifest, evidence.files.__getitem__)
    bundle.__dict__.update(plan=evidence.plan, manifest_hash=HASH)
    with ExitStack() as stack:
        for module, name, shared in _SHARED:
            stack.enter_context(patch.object(module, name, shared))
        return gates.judge.judge(bundle)


def _manifest(evidence: Evidence) -> dict[str, Any]:
    """Return the manifest of no file, made once of each plan; an evidence and its harmed copies have one plan."""
    key = (id(evidence.plan), evidence.gate, json.dumps(evidence.attempt), evidence.simulated)
    if key not in _manifests:
        if len(_manifests) >= _MOST:
            _manifests.clear()
        bare = Evidence(evidence.gate, evidence.plan, {}, evidence.attempt, evidence.simulated)
        _manifests[key] = (evidence.plan, bare.manifest())
    return _manifests[key][1]


def _as_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def _pack(bundle: Bundle, step: str, host: str, names: Iterable[str], counters: Sequence[str] = ()) -> Pack:
    wanted, folder = tuple(names), f"evidence/{step}/{host}/"
    if "telemetry.jsonl" in wanted:  # a soak's long journals are what takes time, and one of them is what changes
        return read_pack(bundle, step, host, wanted, counters)
    files = tuple((path, bundle.files[path]["sha256"]) for path in sorted(bundle.files) if path.startswith(folder))
    key = (step, host, wanted, tuple(counters), files)
    if key not in _packs:
        if len(_packs) >= _MOST:
            _packs.pop(next(iter(_packs)))
        _packs[key] = read_pack(bundle, step, host, wanted, counters)
    return _packs[key]


def _journal(read: Callable[..., Any], default: str) -> Callable[..., Any]:
    """Return a reader of a long journal that reads the same bytes once."""

    def once(reader: Reader, what: Any, name: str = default) -> Any:
        path = reader.path(name)
        if not reader.bundle.has(path):
            return read(reader, what, name)
        key = (read.__name__, path, what, reader.bundle.files[path]["sha256"])
        if key not in _journals:
            if len(_journals) >= _MOST:
                _journals.pop(next(iter(_journals)))
            before = len(reader.problems)
            _journals[key] = (read(reader, what, name), reader.problems[before:])
        else:
            reader.problems += _journals[key][1]
        return _journals[key][0]

    return once


_SHARED = (
    (completeness, "read_pack", _pack),
    (gates.judge, "canonical_bytes", _as_json),
    (soak_records, "read_records", _journal(soak_records.read_records, "records.jsonl")),
    (soak_telemetry, "read_telemetry", _journal(soak_telemetry.read_telemetry, "telemetry.jsonl")),
)
