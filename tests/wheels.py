"""Wheels as small as they can be, made where a test needs something that pip installs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def tiny_wheel(folder: Path, name: str, version: str, modules: Mapping[str, str] | None = None, needs: Sequence[str] = ()) -> Path:
    """Write NAME-VERSION-py3-none-any.whl with these modules ({name: source}) and requirements, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    required = "".join(f"Requires-Dist: {need}\n" for need in needs)
    contents = {f"{module}.py": source for module, source in (modules or {}).items()}
    contents[f"{stem}.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
    contents[f"{stem}.dist-info/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{stem}.dist-info/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{stem}.dist-info/RECORD"])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        for inside, text in contents.items():
            out.writestr(zipfile.ZipInfo(inside), text)
    return path
