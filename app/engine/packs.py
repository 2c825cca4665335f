"""Packs: the tars a playbook brought into staging, checked against their pack.json before anything of them is believed."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.engine import words
from app.engine.outcome import Trouble
from gates.system_words import said
from gates.text import Text

OF_NAMES = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)  # what unpacking meets by the fault of a pack, not of this machine
_PACK = re.compile(r"([^/]+\.tar)(\.\d+)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*(/[A-Za-z0-9][A-Za-z0-9._@+-]*)*")


@dataclass(frozen=True)
class PackFile:
    """One file of a pack, whose bytes were compared with what the target wrote down."""

    host: str
    name: str
    path: Path  # unpacked
    meta: dict[str, Any]  # tool, tool_version, argv, exit_code, clocks: of the command whose output it is


def read_all(staging: Path, hosts: list[str], into: Path, still_ours: Callable[[], None] = lambda: None) -> tuple[list[PackFile], list[Trouble]]:
    """Return the files of all packs of the hosts, unpacked below `into`, and what is wrong with any pack.

    Each claim brings a folder of its own: one that lost its lease and does not know it yet may still read there.
    """
    files: list[PackFile] = []
    found: list[Trouble] = []
    for host in hosts:
        names: set[str] = set()
        for name, parts in _brought(staging / host).items():
            members, why = _unpack(parts, into / host / f"{name.removesuffix('.tar')}.d", still_ours)
            if why is None and (twice := names & set(members)):
                why = Text("it repeats {names} of another pack", "与另一证据包重复：{names}").fill(names=", ".join(sorted(twice)))
            if why is not None:
                found.append(words.bad_pack(host, name, why))
                continue
            names |= set(members)
            meta = commands(members["commands.json"].read_bytes() if "commands.json" in members else None)
            files += [PackFile(host, member, path, meta.get(member, {})) for member, path in sorted(members.items())]
    return files, found


def _brought(folder: Path) -> dict[str, list[Path]]:
    """Return the packs that a host brought: by name the files that are one tar, in order. A large one comes in parts (playbooks/job_collect.yml)."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.tar*")):
        if name := _PACK.fullmatch(path.name):
            found.setdefault(name[1], []).append(path)
    return found


def missing(files: list[PackFile], expects: Mapping[str, list[str] | tuple[str, ...]], members: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return, by host, the expected files that were not brought: by identity, not by count."""
    brought = {(file.host, file.name) for file in files}
    lacking: dict[str, list[str]] = {}
    for group, names in expects.items():
        for host in members.get(group, []):
            if absent := [name for name in names if (host, name) not in brought]:
                lacking.setdefault(host, []).extend(absent)
    return lacking


def commands(data: bytes | None) -> dict[str, dict[str, Any]]:
    """Return what commands.json of a survey says about each output file."""
    try:
        entries = json.loads(data or b"[]")
    except ValueError:
        return {}
    known: dict[str, dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        clocks = {key: entry.get(key) for key in ("started_wall_ns", "started_ns", "ended_ns", "boot_id")}
        about = {
            "tool": str(entry.get("tool") or "")[:60],
            "tool_version": str(entry.get("version") or "")[:120],
            "argv": entry.get("argv"),
            "exit_code": entry.get("exit_code"),
            "clocks": clocks,
        }
        for stream in ("stdout", "stderr"):
            if isinstance(entry.get(stream), str):
                known[entry[stream]] = about
    return known


class _Joined(io.RawIOBase):
    """The bytes of several files one behind the other, for reading once."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [path.open("rb") for path in paths]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._files:
            if size := self._files[0].readinto(buffer):
                return size
            self._files.pop(0).close()
        return 0

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


def _unpack(parts: Sequence[Path], folder: Path, still_ours: Callable[[], None]) -> tuple[dict[str, Path], Text | None]:
    """Unpack a tar. Returns its files, or why it cannot be used: it must hold exactly what its pack.json lists, byte for byte.

    What it holds cannot be larger than the tar itself (an entry with holes is refused), and how large that may be the job's quota decides.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    members: dict[str, Path] = {}
    digests: dict[str, tuple[int, str]] = {}
    try:
        with io.BufferedReader(_Joined(parts)) as source, tarfile.open(fileobj=source, mode="r|", bufsize=1 << 20) as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if member.isdir():
                    continue
                stream = tar.extractfile(member) if member.isfile() and not member.issparse() else None
                if stream is None or not _NAME.fullmatch(name) or name in members:
                    return {}, Text("it holds the entry {name}, which no pack may have", "含有不允许的条目 {name}").fill(name=repr(member.name)[:120])
                members[name] = folder / name
                digests[name] = _copy(stream, members[name], still_ours)
        listed = {str(entry["path"]): entry for entry in json.loads(members["pack.json"].read_bytes())["files"]}
    except tarfile.TarError as error:
        return {}, Text("it is no whole tar archive ({why})", "不是完整的 tar 归档（{why}）").fill(why=said(error))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # what was unpacked so far takes the room that a retry needs
        if error.errno not in OF_NAMES:
            raise  # this machine's trouble (its disk is full), not the target's
        return {}, Text("its names are in each other's way ({why})", "其中的文件名互相冲突（{why}）").fill(why=said(error))
    except (KeyError, ValueError, TypeError):
        return {}, Text("its pack.json is missing or does not parse", "缺少 pack.json 或无法解析")
    if differing := sorted(set(listed) ^ (set(members) - {"pack.json"})):
        return {}, Text("its pack.json and its content differ in {names}", "pack.json 与内容不一致：{names}").fill(names=", ".join(differing)[:300])
    for name, entry in listed.items():
        if (entry.get("size"), str(entry.get("sha256", "")).removeprefix("sha256:")) != digests[name]:
            return {}, Text("{name} differs from the size or SHA-256 in pack.json", "{name} 与 pack.json 中的大小或 SHA-256 不符").fill(name=name)
    return members, None


def _copy(source: IO[bytes], target: Path, still_ours: Callable[[], None]) -> tuple[int, str]:
    """Write a member and return its size and SHA-256."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with target.open("xb") as file:
        while chunk := source.read(1 << 20):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            still_ours()
    return size, digest.hexdigest()
