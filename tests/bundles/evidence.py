"""The files of a bundle in memory, open for edits."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gates.bundle import Bundle, make_manifest, write_manifest
from gates.canonical import canonical_bytes, sha256_hex
from gates.plan import Plan

HOST, ATTEMPT, BOOT = "gpu01", "0193-attempt", "b007-0001"
SEED = 7  # of the attempt, which each pack of it must name


def dumped(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, sort_keys=True) + "\n").encode()


_LINE = json.JSONEncoder(separators=(",", ":"))


def journal(rows: list[dict[str, Any]], *, number: bool = True) -> bytes:
    numbered = ({"seq": n, **row} for n, row in enumerate(rows)) if number else iter(rows)
    return b"".join((_LINE.encode(row) + "\n").encode() for row in numbered)


@dataclass
class Evidence:
    """The files of a bundle, open for edits."""

    gate: str
    plan: Plan
    files: dict[str, bytes] = field(default_factory=dict)
    attempt: dict[str, Any] = field(default_factory=lambda: {"id": ATTEMPT, "number": 1, "rehearsal": False, "seed": SEED, "status": "finished"})
    simulated: bool = False

    def path(self, step: str, name: str) -> str:
        """Return the path of a step's file."""
        return f"evidence/{step}/{HOST}/{name}"

    def read(self, step: str, name: str) -> Any:
        """Return a JSON file's data."""
        return json.loads(self.files[self.path(step, name)])

    def rows(self, step: str, name: str) -> list[dict[str, Any]]:
        """Return a journal's rows."""
        return [json.loads(line) for line in self.files[self.path(step, name)].decode().splitlines()]

    def json(self, step: str, name: str, edit: Callable[[dict[str, Any]], Any], *, repack: bool = True) -> Evidence:
        """Edit a JSON file in place; a returned value replaces it."""
        data = self.read(step, name)
        new = edit(data)
        self.files[self.path(step, name)] = dumped(data if new is None else new)
        return self.repack(step) if repack else self

    def lines(self, step: str, name: str, edit: Callable[[list[dict[str, Any]]], Any], *, repack: bool = True, renumber: bool = False) -> Evidence:
        """Edit a journal's rows in place; a returned list replaces them."""
        rows = self.rows(step, name)
        rows = edit(rows) or rows
        if renumber:
            rows = [{**row, "seq": n} for n, row in enumerate(rows)]
        self.files[self.path(step, name)] = journal(rows, number=False)
        if name == "records.jsonl" and repack:
            end = self.read(step, "exit.json")
            self.files[self.path(step, "exit.json")] = dumped({**end, "records": len(rows), "last_seq": len(rows) - 1})
        return self.repack(step) if repack else self

    def inputs(self, edit: Callable[[dict[str, Any]], Any]) -> Evidence:
        """Edit evidence/inputs.json."""
        data = json.loads(self.files["evidence/inputs.json"])
        edit(data)
        self.files["evidence/inputs.json"] = dumped(data)
        return self

    def drop(self, path: str) -> Evidence:
        """Remove a file."""
        del self.files[path]
        return self

    def repack(self, step: str) -> Evidence:
        """Make pack.json fit the files of a step again."""
        prefix = self.path(step, "")
        names = sorted(p.removeprefix(prefix) for p in self.files if p.startswith(prefix) and not p.endswith("/pack.json"))
        listed = [{"path": n, "size": len(self.files[prefix + n]), "sha256": sha256_hex(self.files[prefix + n])} for n in names]
        job = self.read(step, "pack.json").get("job") if prefix + "pack.json" in self.files else f"{ATTEMPT}-{step}"
        self.files[prefix + "pack.json"] = dumped({"schema": 1, "job": job, "files": listed})
        return self

    def manifest(self) -> dict[str, Any]:
        """Return a manifest that fits the files as they are now."""
        listed = [
            {"path": p, "size": len(b), "sha256": sha256_hex(b), "step": p.split("/")[1], "host": HOST, "tool": "probe"}
            for p, b in self.files.items()
        ]
        return make_manifest(
            plan=self.plan, gate=self.gate, attempt=self.attempt, simulated=self.simulated, created_at="2026-11-29T00:00:00Z", files=listed
        )

    def bundle(self, verdict: Mapping[str, Any] | None = None) -> Bundle:
        """Return the bundle in memory."""
        return Bundle(self.manifest(), self.files.__getitem__, verdict=verdict)

    def write(self, folder: Path, verdict: Mapping[str, Any] | None = None) -> Path:
        """Write the bundle as a directory, and return it."""
        for path, data in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        write_manifest(folder, self.manifest())
        if verdict is not None:
            (folder / "verdict.json").write_bytes(canonical_bytes(verdict))
        return folder

    def zip(self, path: Path, verdict: Mapping[str, Any] | None = None) -> Path:
        """Write the bundle as a zip, and return its path."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in self.files.items():
                out.writestr(name, data)
            out.writestr("manifest.json", canonical_bytes(self.manifest()))
            if verdict is not None:
                out.writestr("verdict.json", canonical_bytes(verdict))
        return path
