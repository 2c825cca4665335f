"""Pack a folder of Python sources into one zipapp on the controller, byte for byte the same for the same sources, and return its path."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: sources_zipapp
author: Quadgate
short_description: one deterministic zipapp of a folder of Python sources
description: Writes <directory>/<name>.pyz from the sources below <folder>, which hold a __main__.py, and returns its path.
options:
  _terms: {description: The folder of the sources, required: true}
  name: {description: The name of the zipapp without its ending, required: true}
  package: {description: The folder is a package that is imported by its name and whose __main__ has a function main, type: bool, default: false}
  directory: {description: Where the zipapp is written on the controller, required: true, type: path}
"""
_MAIN = "import sys\n\nfrom {name}.__main__ import main\n\nsys.exit(main())\n"


def zipapp_bytes(folder: Path, *, package: bool = False) -> bytes:
    """Return the zipapp of a folder's Python files (no compression, fixed times, sorted names); of a package below its own name."""
    root = folder.parent if package else folder
    members = [("__main__.py", _MAIN.format(name=folder.name).encode())] if package else []
    members += [(path.relative_to(root).as_posix(), path.read_bytes()) for path in sorted(folder.rglob("*.py"))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data)
    return buffer.getvalue()


class LookupModule(LookupBase):
    """What Ansible loads."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Write the zipapp by rename, since two hosts may ask at once."""
        self.set_options(var_options=variables, direct=kwargs)
        directory = Path(str(self.get_option("directory")))
        directory.mkdir(parents=True, exist_ok=True)
        target = directory / f"{self.get_option('name')}.pyz"
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".zipapp-")
        with os.fdopen(handle, "wb") as out:
            out.write(zipapp_bytes(Path(str(terms[0])), package=bool(self.get_option("package"))))
        Path(temporary).replace(target)
        return [str(target)]
