"""Read the packages of a distribution (.deb, .rpm) that an operator gives as a folder: what each is, what it needs, what it provides.

The formats are read here, since a controller need not be of the target's distribution: `ar` and control files (deb-control(5)), and the header of rpm
(its tags are numbered in rpmtag.h of rpm 4). Only a control file that is packed by zstd needs `dpkg-deb`, as Ubuntu's are.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Any

LABEL = re.compile(r"[A-Za-z0-9.]+-[A-Za-z0-9.]+")
AR = b"!<arch>\n"
RPM_LEAD, RPM_HEADER = b"\xed\xab\xee\xdb", b"\x8e\xad\xe8\x01"
NAME, VERSION, RELEASE, EPOCH, ARCH = 1000, 1001, 1002, 1003, 1022
PROVIDES, REQUIRES, SOURCE_PACKAGE, DIR_INDEXES, BASE_NAMES, DIR_NAMES = 1047, 1049, 1106, 1116, 1117, 1118


def gather(told: list[str], folder: Path) -> list[dict[str, Any]]:
    """Copy the packages of each DISTRIBUTION=FOLDER below `folder`/os and return a row for each, as the manifest lists them.

    Raises ValueError with a sentence for what is no package, for another machine's idea of a distribution, and for two versions of one package.
    """
    rows: list[dict[str, Any]] = []
    for one in told:
        distribution, _, given = one.partition("=")
        source = Path(given)
        if not LABEL.fullmatch(distribution) or not source.is_dir():
            raise ValueError(
                f"--os-packages {one}: say DISTRIBUTION=FOLDER, as in debian-12=packages (ID-VERSION_ID of the target's /etc/os-release)"
            )
        paths = sorted(path for path in source.iterdir() if path.suffix in (".deb", ".rpm"))
        if not paths:
            raise ValueError(f"--os-packages {one}: no .deb or .rpm is in this folder")
        for path in paths:
            row = read_deb(path) if path.suffix == ".deb" else read_rpm(path)
            there = folder / "os" / distribution / path.name
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)
            with there.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            row.update(path=there.relative_to(folder).as_posix(), distribution=distribution, size=there.stat().st_size, sha256=sha256)
            twin = next((r for r in rows if all(r[key] == row[key] for key in ("distribution", "name", "architecture"))), None)
            if twin:
                raise ValueError(f"{distribution} has {row['name']} twice ({twin['version']} and {row['version']}); keep one")
            rows.append(row)
    return _with_files(rows)


def read_deb(path: Path) -> dict[str, Any]:
    """Return {kind, name, version, architecture, needs, provides} of a .deb. Raises ValueError with a sentence."""
    fields: dict[str, str] = {}
    for line in _control(path).splitlines():
        if line[:1].isspace() or ":" not in line:
            continue
        key, _, value = line.partition(":")
        fields[key.lower()] = value.strip()
    missing = [key for key in ("package", "version", "architecture") if not fields.get(key)]
    if missing:
        raise ValueError(f"{path} is no package: its control file has no {', '.join(missing)}")
    needs = [
        [_bare(what) for what in group.split("|")] for key in ("pre-depends", "depends") for group in fields.get(key, "").split(",") if group.strip()
    ]
    provides = [_bare(what) for what in fields.get("provides", "").split(",") if what.strip()]
    known = {"name": fields["package"], "version": fields["version"], "architecture": fields["architecture"]}
    return {"kind": "deb", **known, "needs": needs, "provides": provides}


def read_rpm(path: Path) -> dict[str, Any]:
    """Return the same of an .rpm, and `files` for those that others may need by path. Raises ValueError with a sentence."""
    try:
        tags = _rpm_tags(path.read_bytes())
        name, version, release, architecture = (str(tags[tag][0]) for tag in (NAME, VERSION, RELEASE, ARCH))
    except (struct.error, KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{path} is no rpm package that can be read: {error}") from error
    if SOURCE_PACKAGE in tags:
        raise ValueError(f"{path} is a source package; give the built one")
    epoch = f"{tags[EPOCH][0]}:" if tags.get(EPOCH, [0])[0] else ""
    folders = [str(folder) for folder in tags.get(DIR_NAMES, [])]
    files = [folders[index] + str(base) for index, base in zip(tags.get(DIR_INDEXES, []), tags.get(BASE_NAMES, []), strict=True)]
    needs = sorted({str(what) for what in tags.get(REQUIRES, []) if not str(what).startswith(("rpmlib(", "config(", "("))})  # "(": rpm's own to judge
    known = {"name": name, "version": f"{epoch}{version}-{release}", "architecture": architecture}
    return {"kind": "rpm", **known, "needs": [[what] for what in needs], "provides": sorted({str(p) for p in tags.get(PROVIDES, [])}), "files": files}


def _control(path: Path) -> str:
    """Return the control file of a .deb."""
    data = path.read_bytes()
    if not data.startswith(AR):
        raise ValueError(f"{path} is no .deb: it does not begin as an ar archive does")
    place = len(AR)
    while place + 60 <= len(data):
        name = data[place : place + 16].decode("ascii", "replace").strip().rstrip("/")
        size = int(data[place + 48 : place + 58])
        if name in ("control.tar", "control.tar.gz", "control.tar.xz"):
            with tarfile.open(fileobj=io.BytesIO(data[place + 60 : place + 60 + size])) as tar:
                member = next((m for m in tar.getmembers() if m.name.lstrip("./") == "control"), None)
                stream = tar.extractfile(member) if member else None
                if stream is None:
                    raise ValueError(f"{path} has no control file")
                return stream.read().decode("utf-8")
        if name.startswith("control.tar"):
            return _by_dpkg(path, name)
        place += 60 + size + size % 2
    raise ValueError(f"{path} has no control file")


def _by_dpkg(path: Path, name: str) -> str:
    if not shutil.which("dpkg-deb"):
        raise ValueError(f"{path} holds {name}, which only dpkg-deb can read, and this machine has none (package dpkg); make the archive where it is")
    done = subprocess.run(["dpkg-deb", "--field", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"dpkg-deb cannot read {path}: {done.stderr.strip()}")
    return done.stdout


def _bare(what: str) -> str:
    """Return a package's name out of a relation: without its version, architecture and build profile."""
    return re.split(r"[\s(:\[<]", what.strip(), maxsplit=1)[0]


def _rpm_tags(data: bytes) -> dict[int, list[Any]]:
    """Return the tags of the main header, which follows the lead of 96 bytes and the header of signatures (padded to 8 bytes)."""
    if not data.startswith(RPM_LEAD):
        raise ValueError("it does not begin as one does")
    _, end = _rpm_header(data, 96)
    tags, _ = _rpm_header(data, end + -end % 8)
    return tags


def _rpm_header(data: bytes, place: int) -> tuple[dict[int, list[Any]], int]:
    """Return the tags of the header at a place, and where it ends. An index entry is tag, type, offset, count, each of 32 bits, big-endian."""
    if data[place : place + 4] != RPM_HEADER:
        raise ValueError(f"there is no header at byte {place}")
    count, size = struct.unpack_from(">II", data, place + 8)
    store = place + 16 + 16 * count
    found: dict[int, list[Any]] = {}
    for index in range(count):
        tag, kind, offset, number = struct.unpack_from(">IIII", data, place + 16 + 16 * index)
        at = store + offset
        if kind == 4:  # INT32
            found[tag] = list(struct.unpack_from(f">{number}I", data, at))
        elif kind in (6, 8, 9):  # STRING, STRING_ARRAY, I18NSTRING: each ends in a zero byte
            texts = []
            for _ in range(number):
                stop = data.index(b"\0", at)
                texts.append(data[at:stop].decode("utf-8", "replace"))
                at = stop + 1
            found[tag] = texts
    return found, store + size


def _with_files(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let a package provide those of its files that others of its distribution need by path, and drop the long lists."""
    wanted = {what for row in rows for group in row["needs"] for what in group if what.startswith("/")}
    return [
        {**{k: v for k, v in row.items() if k != "files"}, "provides": row["provides"] + sorted(wanted & set(row.get("files", [])))} for row in rows
    ]
