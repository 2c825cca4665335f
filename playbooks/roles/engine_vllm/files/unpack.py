"""Verify an archive of `make target-archive` and unpack it: `python3 -I - ARCHIVE FOLDER SHA256 [PART]` prints {changed, manifest}.

PART is `os` for the distribution's packages alone, `engine` for all the rest; without it everything is unpacked. An empty FOLDER: only the manifest
is told, of a verified archive. Python 3.8, standard library. Nothing is unpacked before the whole archive has the digest that the engagement names,
and each file has the one that the manifest lists. What the manifest does not list, is listed twice or lies outside the folder is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tarfile
from typing import Any, Dict, List

BLOCK = 1 << 20


def main(argv: List[str]) -> int:
    """Do it, or print one sentence and return 1."""
    archive, folder, wanted, part = [*argv, ""][:4]
    done = os.path.join(folder, ".unpacked")
    try:
        with open(done, encoding="utf-8") as stream:
            kept = json.load(stream)
    except (OSError, ValueError):
        kept = {}
    try:
        if folder and kept.get("sha256") == wanted:
            print(json.dumps({"changed": False, "manifest": kept["manifest"]}))
            return 0
        manifest = unpack(archive, folder, wanted, part)
    except (OSError, ValueError, KeyError, tarfile.TarError) as error:
        sys.stderr.write("%s was not unpacked: %s\n" % (archive, error))
        return 1
    if not folder:
        print(json.dumps({"changed": False, "manifest": manifest}))
        return 0
    with open(done + ".tmp", "w", encoding="utf-8") as stream:
        json.dump({"sha256": wanted, "manifest": manifest}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(done + ".tmp", done)
    print(json.dumps({"changed": True, "manifest": manifest}))
    return 0


def unpack(archive: str, folder: str, wanted: str, part: str = "") -> Dict[str, Any]:
    """Unpack a part, or everything; return the manifest without its list of files. Raises ValueError with a sentence."""
    with open(archive, "rb") as stream:
        found = _digest(stream)
    if found != wanted:
        raise ValueError("its SHA-256 is %s and the engagement (archive_sha256) says %s. Carry the right one in." % (found, wanted))
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
    with tarfile.open(archive) as tar:
        first = tar.next()
        if first is None or first.name != "MANIFEST.json":
            raise ValueError("it does not begin with MANIFEST.json; make it by `make target-archive`.")
        manifest: Dict[str, Any] = json.loads(tar.extractfile(first).read())  # type: ignore[union-attr]
        listed = {row["path"]: row for row in manifest.pop("files")}
        for member in tar.getmembers()[1:]:
            row = listed.pop(member.name, None)
            if row is None or not member.isfile() or member.name.startswith("/") or ".." in member.name.split("/"):
                raise ValueError("%s in it is not a file that its manifest lists once." % member.name)
            if not folder or (part and (part == "os") != member.name.startswith("os/")):
                continue
            path = os.path.join(folder, member.name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            source = tar.extractfile(member)
            with open(path, "wb") as out:
                shutil.copyfileobj(source, out, BLOCK)  # type: ignore[arg-type]
            with open(path, "rb") as stream:
                if _digest(stream) != row["sha256"]:
                    raise ValueError("%s in it is not what its manifest says." % member.name)
    if listed:
        raise ValueError("its manifest lists %s, which is not in it." % ", ".join(sorted(listed)))
    return manifest


def _digest(stream: Any) -> str:
    made = hashlib.sha256()
    for block in iter(lambda: stream.read(BLOCK), b""):
        made.update(block)
    return made.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
