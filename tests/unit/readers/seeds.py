"""One real output, or more, of every reader in the registry: what the fuzzers cut, join and change. A new reader is found here by its fixture."""

from __future__ import annotations

import json
from pathlib import Path

from gates.readers.registry import READERS
from tests.unit.rack.simulate import evidence

FIXTURES = Path(__file__).with_name("fixtures")


def seeds() -> dict[str, list[bytes]]:
    """Return the outputs of each reader: those of the simulated rack first, then its fixtures, good ones before bad ones."""
    files, found = evidence(), {name: [] for name in READERS}
    for path, data in files.items():
        if path.endswith("/commands.json"):
            for row in json.loads(data):
                if not found.get(row["tool"]):
                    found.setdefault(row["tool"], []).append(files[path.replace("commands.json", row["stdout"])])
    for kind in ("good-*", "bad-*"):
        for path in sorted(FIXTURES.glob(f"*/{kind}")):
            found.setdefault(path.parent.name, []).append(path.read_bytes())
    return found
