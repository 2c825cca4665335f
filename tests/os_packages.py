"""Tiny packages of a distribution, made on the spot, and a copy of this machine's own system in which they may be installed."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

COPY = """
mount --make-rprivate / || exit 99
for part in usr etc var; do
  mkdir -p "$1/upper/$part" "$1/work/$part" || exit 99
  mount -t overlay overlay -o "lowerdir=/$part,upperdir=$1/upper/$part,workdir=$1/work/$part" "/$part" || exit 99
done
shift
exec "$@"
"""


def copied_system(folder: Path) -> tuple[str, ...]:
    """Return the words before a command with which it sees a copy of /usr, /etc and /var: what it writes lies below `folder`, not on this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    return ("unshare", "--mount", "sh", "-c", COPY, "copy", str(folder))


def tiny_deb(folder: Path, name: str, version: str = "1.0", *, files: Mapping[str, str] | None = None, fails: bool = False, **fields: str) -> Path:
    """Build a .deb with dpkg-deb. `fields` are those of its control file, an underscore for a dash; `fails`: its set-up ends with an error."""
    told = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "Tests <tests@example.invalid>", "Description": "tiny"}
    told.update({key.replace("_", "-"): value for key, value in fields.items()})
    tree = folder / f".{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text("".join(f"{key}: {value}\n" for key, value in told.items()))
    if fails:
        (tree / "DEBIAN" / "postinst").write_text("#!/bin/sh\nexit 1\n")
        (tree / "DEBIAN" / "postinst").chmod(0o755)
    settings = [path for path in files or {} if path.startswith("/etc/")]
    if settings:
        (tree / "DEBIAN" / "conffiles").write_text("".join(f"{path}\n" for path in settings))
    for path, text in (files or {f"/usr/share/{name}/here": version}).items():
        (tree / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tree / path.lstrip("/")).write_text(text)
    made = folder / f"{name}_{version}_{told['Architecture']}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z0", "--build", str(tree), str(made)], check=True, capture_output=True)
    return made


def tiny_rpm(
    folder: Path, name: str, version: str = "1.0-1", *, needs: Sequence[str] = (), provides: Sequence[str] = (), files: Sequence[str] = ()
) -> Path:
    """Write lead, signature header and main header of an .rpm for x86_64, as far as a reader asks; nothing could be installed from it."""
    number, release = version.split("-")
    folders = sorted({f"{path.rpartition('/')[0]}/" for path in files})
    tags: list[tuple[int, int, list[str] | list[int]]] = [
        (1000, 6, [name]),
        (1001, 6, [number]),
        (1002, 6, [release]),
        (1022, 6, ["x86_64"]),
        (1047, 8, [name, *provides]),
        (1049, 8, list(needs)),
        (1116, 4, [folders.index(f"{path.rpartition('/')[0]}/") for path in files]),
        (1117, 8, [path.rpartition("/")[2] for path in files]),
        (1118, 8, folders),
    ]
    made = folder / f"{name}-{version}.x86_64.rpm"
    made.write_bytes(b"\xed\xab\xee\xdb".ljust(96, b"\0") + _header([(1000, 4, [7])]).ljust(40, b"\0") + _header([t for t in tags if t[2]]))
    return made


def _header(tags: Sequence[tuple[int, int, Sequence[str] | Sequence[int]]]) -> bytes:
    index, store = b"", b""
    for tag, kind, values in tags:
        store += b"\0" * (-len(store) % 4)
        index += struct.pack(">IIII", tag, kind, len(store), len(values))
        store += b"".join(struct.pack(">I", v) if isinstance(v, int) else v.encode() + b"\0" for v in values)
    return b"\x8e\xad\xe8\x01\0\0\0\0" + struct.pack(">II", len(tags), len(store)) + index + store
