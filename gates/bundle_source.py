"""Where the bytes of a bundle lie: a directory or a zip, read as they are. Nothing is unpacked."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gates.bundle_form import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, Unreadable, most_bytes, stays_inside
from gates.system_words import said
from gates.zip_layout import check_layout

DAMAGE = (OSError, KeyError, EOFError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)  # of a zip, as Python names it
MAX_RATIO = 400  # of a zip member: text journals shrink about tenfold, a bomb a thousandfold
_END_RECORD = 22  # bytes of a zip's last record when it carries no comment


class Source(ABC):
    """Where the bytes of a bundle lie."""

    @abstractmethod
    def members(self) -> Iterator[tuple[str, int]]:
        """Yield every file with its size; raise Unreadable for anything that is no plain file inside the bundle."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the bytes of one file."""

    @abstractmethod
    def stream(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of one file in blocks."""

    def whole(self, name: str) -> bytes:
        """Return the bytes of one file. Raises Unreadable when they cannot be read."""
        try:
            return self.read(name)
        except DAMAGE as error:
            raise Unreadable(f"{name} cannot be read: {said(error).en}.", f"无法读取 {name}：{said(error).zh}。") from error

    def state(self, name: str) -> object | None:
        """Return what changes when anybody writes to the bytes of a file (device, inode, size, times of change), None when it cannot be told."""
        try:
            found = self.where(name).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    @abstractmethod
    def where(self, name: str) -> Path:
        """Return the file on disk that holds the bytes of one file."""

    @abstractmethod
    def check_container(self) -> None:
        """Raise Unreadable when what the files lie in holds anything beside them."""

    def verify(self, name: str, entry: Mapping[str, Any]) -> object | None:
        """Check one file against its manifest entry without holding it in memory; return its state, as it was throughout."""
        digest, size, before = hashlib.sha256(), 0, self.state(name)
        try:
            for block in self.stream(name):
                size += len(block)
                if size > entry["size"]:
                    break
                digest.update(block)
        except DAMAGE as error:
            raise Unreadable(f"{name} cannot be read: {said(error).en}.", f"无法读取 {name}：{said(error).zh}。") from error
        if size != entry["size"] or digest.hexdigest() != entry["sha256"]:
            raise Unreadable(f"{name} differs from the manifest (SHA-256).", f"{name} 与清单不一致（SHA-256）。")
        return before if before == self.state(name) else None


class _Directory(Source):
    def __init__(self, root: Path) -> None:
        self.root = root

    def check_container(self) -> None:
        pass  # its members are all that there is

    def where(self, name: str) -> Path:
        return self.root / name

    def members(self) -> Iterator[tuple[str, int]]:
        count = 0
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_symlink():
                raise Unreadable(f"{name} is a link; a bundle holds plain files only.", f"{name} 是链接；证据包只含普通文件。")
            if path.is_dir():
                continue
            if not path.is_file():
                raise Unreadable(f"{name} is not a plain file.", f"{name} 不是普通文件。")
            count += 1
            if count > MAX_FILES:
                raise Unreadable(f"The bundle holds more than {MAX_FILES} files.", f"证据包超过 {MAX_FILES} 个文件。")
            yield name, path.stat().st_size

    def read(self, name: str) -> bytes:
        path = self.root / name
        if path.stat().st_size > MAX_FILE_BYTES:
            raise Unreadable(f"{name} is larger than {MAX_FILE_BYTES} bytes.", f"{name} 超过 {MAX_FILE_BYTES} 字节。")
        return path.read_bytes()

    def stream(self, name: str) -> Iterator[bytes]:
        with (self.root / name).open("rb") as file:
            while block := file.read(1 << 20):
                yield block


class _Zip(Source):
    def __init__(self, path: Path) -> None:
        self.path, self.zip = path, zipfile.ZipFile(path)
        with path.open("rb") as file:
            begins = file.read(4)
            file.seek(-_END_RECORD, 2)
            ends = file.read(4)
        if begins != b"PK\x03\x04" or ends != b"PK\x05\x06":  # programs differ in what they take for the zip when something stands around it
            raise Unreadable(f"{path} holds something before or behind the zip.", f"{path} 在 zip 数据之前或之后还有其他内容。")

    def where(self, name: str) -> Path:  # noqa: ARG002 - one file holds them all
        return self.path

    def check_container(self) -> None:
        with self.path.open("rb") as file:
            check_layout(file)

    def members(self) -> Iterator[tuple[str, int]]:
        infos = self.zip.infolist()
        if len(infos) > MAX_FILES:
            raise Unreadable(f"The bundle holds more than {MAX_FILES} files.", f"证据包超过 {MAX_FILES} 个文件。")
        seen: set[str] = set()
        total = 0
        for info in infos:
            name = info.filename
            if not stays_inside(name.rstrip("/")) or "\\" in name:
                raise Unreadable(f"The path {name!r} leaves the bundle.", f"路径 {name!r} 越出证据包。")
            if info.is_dir():
                continue
            total += info.file_size
            if (info.external_attr >> 16) & 0o170000 == 0o120000:
                raise Unreadable(f"{name} is a link; a bundle holds plain files only.", f"{name} 是链接；证据包只含普通文件。")
            if name in seen:
                raise Unreadable(f"{name} stands twice in the zip.", f"{name} 在压缩包中重复。")
            if info.file_size > most_bytes(name) or total > MAX_TOTAL_BYTES or info.file_size > MAX_RATIO * max(info.compress_size, 1024):
                raise Unreadable(f"{name} unpacks to {info.file_size} bytes, beyond reason.", f"{name} 解压后为 {info.file_size} 字节，不合理。")
            seen.add(name)
            yield name, info.file_size

    def read(self, name: str) -> bytes:
        info = self.zip.getinfo(name)
        with self.zip.open(info) as file:
            data = file.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise Unreadable(f"{name} is not as long as the zip says.", f"{name} 的长度与压缩包所述不符。")
        return data

    def stream(self, name: str) -> Iterator[bytes]:
        with self.zip.open(name) as file:
            while block := file.read(1 << 20):
                yield block


def open_source(path: Path) -> Source:
    """Return the directory or zip at a path. Raises Unreadable when it is neither."""
    if path.is_dir():
        return _Directory(path)
    if not path.exists():
        raise Unreadable(f"{path} does not exist.", f"{path} 不存在。")
    try:
        return _Zip(path)
    except DAMAGE as error:
        what = said(error)
        raise Unreadable(
            f"{path} is neither a directory nor a readable zip: {what.en}.", f"{path} 既不是目录也不是可读的 zip：{what.zh}。"
        ) from error
