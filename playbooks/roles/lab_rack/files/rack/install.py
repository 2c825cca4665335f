"""Put the host's description and one small program per tool below a folder. Says on stdout whether anything changed."""

import json
import os
import sys
from typing import Any, Dict, List

import nodes
import sysfs


def main(argv: List[str], tools: List[str]) -> int:
    """Read the description from stdin; `argv[0]` is the folder that holds the zipapp."""
    folder = os.path.abspath(argv[0])
    description = json.dumps(json.load(sys.stdin), indent=1, sort_keys=True) + "\n"
    changed = _write(os.path.join(folder, "rack.json"), description, 0o644)
    os.makedirs(os.path.join(folder, "bin"), exist_ok=True)
    for tool in tools:
        text = '#!/bin/sh\nexec "%s" -S -E "%s" %s "$@"\n' % (sys.executable, os.path.join(folder, "rack.pyz"), tool)
        changed = _write(os.path.join(folder, "bin", tool), text, 0o755) or changed
    changed = sysfs.install(os.path.join(folder, "sys"), json.loads(description), _write) or changed
    changed = _drives(folder, json.loads(description)) or changed
    print(json.dumps({"changed": changed, "bin": os.path.join(folder, "bin")}))
    return 0


def _drives(folder: str, rack: Dict[str, Any]) -> bool:
    """Let the drives' namespaces be devices, with data on them; drives that are not described any more are gone."""
    local = [(drive, name) for drive in rack["drives"] for name in nodes.namespaces(drive)]
    gone = [name for name in nodes.shown(folder) if nodes.is_local(name, folder) and name not in [known for _, known in local]]
    for name in gone:
        nodes.hide(name, folder)
    shown = [
        nodes.show(name, nodes.local(drive["serial"], name), used=True, partitions=drive.get("partitions", 0), top=folder) for drive, name in local
    ]
    return bool(gone) or any(shown)


def _write(path: str, text: str, mode: int) -> bool:
    """Write a file by rename when it differs; tell whether it did."""
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text and os.stat(path).st_mode & 0o777 == mode:
                return False
    except OSError:
        pass
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path + ".tmp", mode)
    os.replace(path + ".tmp", path)
    return True
