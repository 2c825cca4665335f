"""docker: load, pull, image inspect, ls and rm over a table of images. As the real one does, load forgets the digest that a registry gave."""

import hashlib
import json
import sys
import tarfile
from typing import Any, Dict, List, Optional

import state


def main(argv: List[str], _: Dict[str, Any]) -> int:
    """Answer one command."""
    words = [word for word in argv[1:] if not word.startswith("-")]
    if argv[1:2] == ["load"]:
        return _load(argv[argv.index("--input") + 1])
    if argv[1:2] == ["pull"]:
        return _pull(words[-1])
    if argv[1:3] == ["image", "ls"]:
        print("\n".join(state.changes().get("images", {})))
        return 0
    if argv[1:3] in (["image", "inspect"], ["image", "rm"]):
        return {"inspect": _inspect, "rm": _remove}[argv[2]](argv[-1])
    sys.stderr.write("docker: not simulated: %s\n" % " ".join(argv[1:]))
    return 1


def _load(path: str) -> int:
    """Take in an archive of `docker save`: the image's id is the SHA-256 of its configuration; names stay, digests do not."""
    with tarfile.open(path) as tar:
        listed = json.load(tar.extractfile("manifest.json") or sys.stdin)
        for row in listed:
            config = tar.extractfile(row["Config"])
            made = "sha256:" + hashlib.sha256(config.read() if config else b"").hexdigest()
            with state.changing() as now:
                now.setdefault("images", {})[made] = {"names": list(row.get("RepoTags") or [])}
            print("Loaded image: %s" % row["RepoTags"][0] if row.get("RepoTags") else "Loaded image ID: %s" % made)
    return 0


def _pull(name: str) -> int:
    made = "sha256:" + hashlib.sha256(name.encode()).hexdigest()
    with state.changing() as now:
        now.setdefault("images", {})[made] = {"names": [name]}
    print(name)
    return 0


def _find(name: str) -> Optional[str]:
    return next((made for made, row in state.changes().get("images", {}).items() if name == made or name in row["names"]), None)


def _inspect(name: str) -> int:
    made = _find(name)
    if made is None:
        sys.stderr.write("Error response from daemon: No such image: %s\n" % name)
        return 1
    print(made)
    return 0


def _remove(name: str) -> int:
    made = _find(name)
    if made is None:
        sys.stderr.write("Error response from daemon: No such image: %s\n" % name)
        return 1
    with state.changing() as now:
        del now["images"][made]
    print("Deleted: %s" % made)
    return 0
