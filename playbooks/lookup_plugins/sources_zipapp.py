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
  directory: {description: Where the zipapp is written on the controller, required: true, type: path}
"""


def zipapp_bytes(folder: Path) -> bytes:
    """Return the zipapp of a folder's Python files (no compression, fixed times, sorted names)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(folder.rglob("*.py")):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), date_time=(2026, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes())
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
            out.write(zipapp_bytes(Path(str(terms[0]))))
        Path(temporary).replace(target)
        return [str(target)]
