"""Evidence bundles: a directory or zip that holds plan, evidence and their hashes, and nothing else.

Reading is strict. A file that the manifest does not list, that differs from it or that is missing makes the whole bundle unreadable,
and so does anything that a bundle of ours never has: a path that leaves it, a link, a size beyond reason.
"""

from __future__ import annotations

import builtins
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from gates.bundle_form import INPUTS, MANIFEST, VERDICT, Unreadable, check_manifest, document, match_members
from gates.bundle_source import DAMAGE, open_source
from gates.canonical import canonical_bytes, sha256_hex
from gates.model import ATTENDED, Reading
from gates.plan import InvalidPlan, Plan, load_plan
from gates.system_words import said
from gates.version import JUDGE_VERSION, RULES_HASH

__all__ = ["INPUTS", "MANIFEST", "VERDICT", "Bundle", "Unreadable", "make_manifest", "read_bundle", "write_manifest"]


class Bundle:
    """The evidence of one attempt: its manifest and the bytes of every listed file, checked when read.

    `read` gives the bytes of one path; it may read a directory, a zip, or the service's content-addressed store. `stream` gives them in
    blocks, for journals that are larger than memory should hold at once; without it a journal is read whole.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any],
        read: Callable[[str], bytes],
        *,
        stream: Callable[[str], Iterator[bytes]] | None = None,
        state: Callable[[str], object | None] | None = None,
        verdict: Mapping[str, Any] | None = None,
    ) -> None:
        self.manifest = dict(manifest)
        self._state: Callable[[str], object | None] = state or (lambda _: None)
        self._verified: dict[str, object | None] = {}
        self.stored_verdict = dict(verdict) if verdict is not None else None
        self._read, self._stream = read, stream
        self.sealed_plan_hash = str(manifest["plan_hash"])  # the evidence was gathered under it, whatever plan it is looked at under
        self.files: dict[str, dict[str, Any]] = {entry["path"]: dict(entry) for entry in manifest["files"]}
        self.read_as: dict[str, tuple[str, Reading]] = {}  # of each file that a reader read for the judge: which reader, and what it made of it

    @property
    def gate(self) -> str:
        """Return G1, G2, G3 or G4."""
        return str(self.manifest["gate"])

    @cached_property
    def manifest_hash(self) -> str:
        """Return `sha256:<hex>` of the canonical manifest."""
        return "sha256:" + sha256_hex(canonical_bytes(self.manifest))

    @cached_property
    def plan(self) -> Plan:
        """Return the sealed plan. Raises Unreadable when it is no whole plan or its hash is another."""
        try:
            plan = load_plan(self.manifest["plan"])
        except InvalidPlan as error:
            first = error.problems[0].message
            raise Unreadable(f"The plan in the manifest cannot be used: {first.en}", f"清单中的计划不可用：{first.zh}") from None
        if plan.hash != self.manifest["plan_hash"]:
            raise Unreadable(
                f"The plan in the manifest has the hash {plan.hash}, but the manifest says {self.manifest['plan_hash']}.",
                f"清单中计划的哈希为 {plan.hash}，与清单所述 {self.manifest['plan_hash']} 不符。",
            )
        return plan

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Return evidence/inputs.json: what the engagement knows and no target can tell. Raises Unreadable when it is missing."""
        if INPUTS not in self.files:
            raise Unreadable(f"{INPUTS} is missing from the bundle.", f"证据包缺少 {INPUTS}。")
        return document(self.bytes(INPUTS), INPUTS)

    def with_plan(self, plan: Plan) -> Bundle:
        """Return the same evidence under another plan, for looking only: its manifest is not what anybody sealed or signed."""
        manifest = {**self.manifest, "plan": plan.data, "plan_hash": plan.hash}
        other = Bundle(manifest, self._read, stream=self._stream, state=self._state)
        other._verified = self._verified
        other.sealed_plan_hash = self.sealed_plan_hash
        return other

    def has(self, path: str) -> bool:
        """Return whether the manifest lists a path."""
        return path in self.files

    def bytes(self, path: str) -> bytes:
        """Return the bytes of a listed file. Raises Unreadable when they are not what the manifest says."""
        entry = self.files.get(path)
        if entry is None:
            raise Unreadable(f"{path} is not in the manifest.", f"{path} 不在清单中。")
        try:
            data = self._read(path)
        except DAMAGE as error:
            raise Unreadable(f"{path} cannot be read: {said(error).en}.", f"无法读取 {path}：{said(error).zh}。") from error
        if len(data) != entry["size"] or sha256_hex(data) != entry["sha256"]:
            raise Unreadable(f"{path} differs from the manifest (size or SHA-256).", f"{path} 与清单不一致（大小或 SHA-256）。")
        return data

    def blocks(self, path: str) -> Iterator[builtins.bytes]:
        """Yield the bytes of a listed file in blocks. Raises Unreadable, at the end at the latest, when they are not what the manifest says.

        Whoever uses the blocks must read to the end before relying on any of them.
        """
        if self._stream is None or path not in self.files:
            yield self.bytes(path)
            return
        entry, digest, size = self.files[path], hashlib.sha256(), 0
        before = self._state(path)
        untouched = before is not None and self._verified.get(path) == before
        try:
            for block in self._stream(path):
                size += len(block)
                if not untouched:
                    digest.update(block)
                yield block
        except DAMAGE as error:
            raise Unreadable(f"{path} cannot be read: {said(error).en}.", f"无法读取 {path}：{said(error).zh}。") from error
        if untouched and size == entry["size"] and self._state(path) == before:
            return  # hashed a moment ago, and the file system says that nobody has written to it since
        if size != entry["size"] or digest.hexdigest() != entry["sha256"]:
            raise Unreadable(f"{path} differs from the manifest (size or SHA-256).", f"{path} 与清单不一致（大小或 SHA-256）。")

    def text(self, path: str) -> str:
        """Return a listed file as UTF-8 text; bytes that are not UTF-8 show as U+FFFD, which no parser of ours takes for data."""
        return self.bytes(path).decode("utf-8", errors="replace")

    def under(self, prefix: str) -> tuple[str, ...]:
        """Return the listed paths below a prefix, in order."""
        return tuple(path for path in sorted(self.files) if path.startswith(prefix))

    def hosts(self, group: str) -> tuple[str, ...]:
        """Return the hosts of an inventory group, as the engagement states them; ATTENDED follows from two of its groups."""
        if group == ATTENDED:
            engines, drivers = self.hosts("engine"), self.hosts("loadgen")
            return engines if drivers and not set(engines) & set(drivers) else ()
        groups = self.inputs.get("hosts")
        names = groups.get(group) if isinstance(groups, Mapping) else None
        return tuple(str(n) for n in names) if isinstance(names, list) else ()


def make_manifest(
    *,
    plan: Plan,
    gate: str,
    attempt: Mapping[str, Any],
    simulated: bool,
    created_at: str,
    files: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return a manifest, checked.

    `attempt` is {id, number, rehearsal, seed, status}; each file is {path, size, sha256, tool, version, argv, exit_code, host, step, clocks},
    of which path, size and sha256 are needed.
    """
    blank = {"tool": "", "version": "", "argv": None, "exit_code": None, "host": "", "step": "", "clocks": None}
    manifest = {
        "schema": 1,
        "judge_version": JUDGE_VERSION,
        "rules_hash": RULES_HASH,
        "plan": plan.data,
        "plan_hash": plan.hash,
        "gate": gate,
        "attempt": dict(attempt),
        "simulated": simulated,
        "created_at": created_at,
        "files": sorted(({**blank, **f} for f in files), key=lambda f: str(f["path"])),
    }
    data: dict[str, Any] = json.loads(canonical_bytes(manifest))
    check_manifest(data)
    return data


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> str:
    """Write the canonical manifest.json below a directory, and return its hash."""
    data = canonical_bytes(manifest)
    (directory / MANIFEST).write_bytes(data)
    return "sha256:" + sha256_hex(data)


def read_bundle(path: Path | str, *, expect_manifest: str | None = None) -> Bundle:
    """Read and check a bundle, every byte of it. Raises Unreadable with a sentence. Nothing is unpacked."""
    path = Path(path)
    source = open_source(path)
    members = dict(source.members())
    if MANIFEST not in members:
        raise Unreadable(f"{path} holds no {MANIFEST}, so it is not an evidence bundle.", f"{path} 中没有 {MANIFEST}，不是证据包。")
    raw = source.whole(MANIFEST)
    manifest = document(raw, MANIFEST)
    check_manifest(manifest)
    try:
        canonical = canonical_bytes(manifest)
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable(f"{MANIFEST} has no canonical form: {said(error).en}.", f"{MANIFEST} 无规范形式：{said(error).zh}。") from error
    if canonical != raw:
        raise Unreadable(f"{MANIFEST} is not canonical JSON (RFC 8785).", f"{MANIFEST} 不是规范 JSON（RFC 8785）。")
    match_members(manifest, members)
    verdict = document(source.whole(VERDICT), VERDICT) if VERDICT in members else None
    bundle = Bundle(manifest, source.read, stream=source.stream, state=source.state, verdict=verdict)
    if expect_manifest is not None and bundle.manifest_hash != "sha256:" + expect_manifest.strip().lower().removeprefix("sha256:"):
        raise Unreadable(
            f"The manifest has the hash {bundle.manifest_hash}, not the expected {expect_manifest}.",
            f"清单哈希为 {bundle.manifest_hash}，与期望的 {expect_manifest} 不符。",
        )
    for name in bundle.files:
        bundle._verified[name] = source.verify(name, bundle.files[name])
    source.check_container()
    _ = bundle.plan  # its hash must hold before anybody relies on it
    return bundle
