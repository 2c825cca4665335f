"""Pack the simulated engine into one zipapp on the controller, byte for byte the same for the same sources, and return its path."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: lab_engine_archive
author: Quadgate
short_description: one deterministic zipapp of the simulated engine
description: Writes <directory>/lab_engine.pyz from the package <folder> and returns its path.
options:
  _terms: {description: The folder of the package, required: true}
  directory: {description: Where the zipapp is written on the controller, required: true, type: path}
"""
_MAIN = "import sys\n\nfrom lab_engine.__main__ import main\n\nsys.exit(main())\n"


def archive_bytes(package: Path) -> bytes:
    """Return the zipapp of a package (stored, fixed times, sorted names)."""
    members = [("__main__.py", _MAIN.encode())] + [(f"{package.name}/{path.name}", path.read_bytes()) for path in sorted(package.glob("*.py"))]
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
        target = directory / "lab_engine.pyz"
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".lab_engine-")
        with os.fdopen(handle, "wb") as out:
            out.write(archive_bytes(Path(str(terms[0]))))
        Path(temporary).replace(target)
        return [str(target)]
