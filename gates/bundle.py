"""Evidence bundles: a directory or zip that holds plan, evidence and their hashes, and nothing else.

Reading is strict. A file that the manifest does not list, that differs from it or that is missing makes the whole bundle unreadable,
and so does anything that a bundle of ours never has: a path that leaves it, a link, a size beyond reason.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from gates.canonical import canonical_bytes, has_broken_text, sha256_hex
from gates.plan import InvalidPlan, Plan, load_plan
from gates.text import Text
from gates.version import JUDGE_VERSION, RULES_HASH

MANIFEST, VERDICT, INPUTS = "manifest.json", "verdict.json", "evidence/inputs.json"
MAX_FILES = 20_000
MAX_FILE_BYTES = 2 * 1024**3
MAX_TOTAL_BYTES = 8 * 1024**3
MAX_DOCUMENT_BYTES = 64 * 1024**2  # manifest.json, verdict.json, inputs.json
MAX_RATIO = 400  # of a zip member: text journals shrink about tenfold, a bomb a thousandfold
_PATH = re.compile(r"evidence/[^\x00-\x1f\\]{1,280}")
_DAMAGE = (OSError, KeyError, EOFError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)  # of a zip, as Python names it
_END_RECORD = 22  # bytes of a zip's last record when it carries no comment
_KEYS = ("schema", "judge_version", "rules_hash", "plan", "plan_hash", "gate", "attempt", "simulated", "files")


class Unreadable(Exception):  # noqa: N818 - an error is named by what is wrong
    """A bundle that cannot be trusted; `text` says what is wrong with which file."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.text = Text(en, zh)


class Bundle:
    """The evidence of one attempt: its manifest and the bytes of every listed file, checked when read.

    `read` gives the bytes of one path; it may read a directory, a zip, or the service's content-addressed store. `stream` gives them in
    blocks, for journals that are larger than memory should hold at once; without it a journal is read whole.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any],
        read: Callable[[str], bytes],
        *,
        stream: Callable[[str], Iterator[bytes]] | None = None,
        state: Callable[[str], object | None] | None = None,
        verdict: Mapping[str, Any] | None = None,
    ) -> None:
        self.manifest = dict(manifest)
        self._state: Callable[[str], object | None] = state or (lambda _: None)
        self._verified: dict[str, object | None] = {}
        self.stored_verdict = dict(verdict) if verdict is not None else None
        self._read, self._stream = read, stream
        self.files: dict[str, dict[str, Any]] = {entry["path"]: dict(entry) for entry in manifest["files"]}

    @property
    def gate(self) -> str:
        """Return G1, G2, G3 or G4."""
        return str(self.manifest["gate"])

    @cached_property
    def manifest_hash(self) -> str:
        """Return `sha256:<hex>` of the canonical manifest."""
        return "sha256:" + sha256_hex(canonical_bytes(self.manifest))

    @cached_property
    def plan(self) -> Plan:
        """Return the sealed plan. Raises Unreadable when it is no whole plan or its hash is another."""
        try:
            plan = load_plan(self.manifest["plan"])
        except InvalidPlan as error:
            first = error.problems[0].message
            raise Unreadable(f"The plan in the manifest cannot be used: {first.en}", f"清单中的计划不可用：{first.zh}") from None
        if plan.hash != self.manifest["plan_hash"]:
            raise Unreadable(
                f"The plan in the manifest has the hash {plan.hash}, but the manifest says {self.manifest['plan_hash']}.",
                f"清单中计划的哈希为 {plan.hash}，与清单所述 {self.manifest['plan_hash']} 不符。",
            )
        return plan

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Return evidence/inputs.json: what the engagement knows and no target can tell. Raises Unreadable when it is missing."""
        if INPUTS not in self.files:
            raise Unreadable(f"{INPUTS} is missing from the bundle.", f"证据包缺少 {INPUTS}。")
        return _document(self.bytes(INPUTS), INPUTS)

    def with_plan(self, plan: Plan) -> Bundle:
        """Return the same evidence under another plan, for looking only: its manifest is not what anybody sealed or signed."""
        manifest = {**self.manifest, "plan": plan.data, "plan_hash": plan.hash}
        other = Bundle(manifest, self._read, stream=self._stream, state=self._state)
        other._verified = self._verified
        return other

    def has(self, path: str) -> bool:
        """Return whether the manifest lists a path."""
        return path in self.files

    def bytes(self, path: str) -> bytes:
        """Return the bytes of a listed file. Raises Unreadable when they are not what the manifest says."""
        entry = self.files.get(path)
        if entry is None:
            raise Unreadable(f"{path} is not in the manifest.", f"{path} 不在清单中。")
        try:
            data = self._read(path)
        except _DAMAGE as error:
            raise Unreadable(f"{path} cannot be read: {error}.", f"无法读取 {path}：{error}。") from error
        if len(data) != entry["size"] or sha256_hex(data) != entry["sha256"]:
            raise Unreadable(f"{path} differs from the manifest (size or SHA-256).", f"{path} 与清单不一致（大小或 SHA-256）。")
        return data

    def blocks(self, path: str) -> Iterator[builtins.bytes]:
        """Yield the bytes of a listed file in blocks. Raises Unreadable, at the end at the latest, when they are not what the manifest says.

        Whoever uses the blocks must read to the end before relying on any of them.
        """
        if self._stream is None or path not in self.files:
            yield self.bytes(path)
            return
        entry, digest, size = self.files[path], hashlib.sha256(), 0
        before = self._state(path)
        untouched = before is not None and self._verified.get(path) == before
        try:
            for block in self._stream(path):
                size += len(block)
                if not untouched:
                    digest.update(block)
                yield block
        except _DAMAGE as error:
            raise Unreadable(f"{path} cannot be read: {error}.", f"无法读取 {path}：{error}。") from error
        if untouched and size == entry["size"] and self._state(path) == before:
            return  # hashed a moment ago, and the file system says that nobody has written to it since
        if size != entry["size"] or digest.hexdigest() != entry["sha256"]:
            raise Unreadable(f"{path} differs from the manifest (size or SHA-256).", f"{path} 与清单不一致（大小或 SHA-256）。")

    def text(self, path: str) -> str:
        """Return a listed file as UTF-8 text; bytes that are not UTF-8 show as U+FFFD, which no parser of ours takes for data."""
        return self.bytes(path).decode("utf-8", errors="replace")

    def under(self, prefix: str) -> tuple[str, ...]:
        """Return the listed paths below a prefix, in order."""
        return tuple(path for path in sorted(self.files) if path.startswith(prefix))

    def hosts(self, group: str) -> tuple[str, ...]:
        """Return the hosts of an inventory group, as the engagement states them."""
        groups = self.inputs.get("hosts")
        names = groups.get(group) if isinstance(groups, Mapping) else None
        return tuple(str(n) for n in names) if isinstance(names, list) else ()


def make_manifest(
    *,
    plan: Plan,
    gate: str,
    attempt: Mapping[str, Any],
    simulated: bool,
    created_at: str,
    files: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return a manifest, checked.

    `attempt` is {id, number, rehearsal, seed, status}; each file is {path, size, sha256, tool, version, argv, exit_code, host, step, clocks},
    of which path, size and sha256 are needed.
    """
    blank = {"tool": "", "version": "", "argv": None, "exit_code": None, "host": "", "step": "", "clocks": None}
    manifest = {
        "schema": 1,
        "judge_version": JUDGE_VERSION,
        "rules_hash": RULES_HASH,
        "plan": plan.data,
        "plan_hash": plan.hash,
        "gate": gate,
        "attempt": dict(attempt),
        "simulated": simulated,
        "created_at": created_at,
        "files": sorted(({**blank, **f} for f in files), key=lambda f: str(f["path"])),
    }
    data: dict[str, Any] = json.loads(canonical_bytes(manifest))
    _check_manifest(data)
    return data


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> str:
    """Write the canonical manifest.json below a directory, and return its hash."""
    data = canonical_bytes(manifest)
    (directory / MANIFEST).write_bytes(data)
    return "sha256:" + sha256_hex(data)


def read_bundle(path: Path | str, *, expect_manifest: str | None = None) -> Bundle:
    """Read and check a bundle, every byte of it. Raises Unreadable with a sentence. Nothing is unpacked."""
    path = Path(path)
    source = _open(path)
    members = dict(source.members())
    if MANIFEST not in members:
        raise Unreadable(f"{path} holds no {MANIFEST}, so it is not an evidence bundle.", f"{path} 中没有 {MANIFEST}，不是证据包。")
    raw = _bytes(source, MANIFEST)
    manifest = _document(raw, MANIFEST)
    _check_manifest(manifest)
    try:
        canonical = canonical_bytes(manifest)
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable(f"{MANIFEST} has no canonical form: {error}.", f"{MANIFEST} 无规范形式：{error}。") from error
    if canonical != raw:
        raise Unreadable(f"{MANIFEST} is not canonical JSON (RFC 8785).", f"{MANIFEST} 不是规范 JSON（RFC 8785）。")
    _match(manifest, members)
    verdict = _document(_bytes(source, VERDICT), VERDICT) if VERDICT in members else None
    bundle = Bundle(manifest, source.read, stream=source.stream, state=source.state, verdict=verdict)
    if expect_manifest is not None and bundle.manifest_hash != "sha256:" + expect_manifest.strip().lower().removeprefix("sha256:"):
        raise Unreadable(
            f"The manifest has the hash {bundle.manifest_hash}, not the expected {expect_manifest}.",
            f"清单哈希为 {bundle.manifest_hash}，与期望的 {expect_manifest} 不符。",
        )
    for name in bundle.files:
        bundle._verified[name] = source.verify(name, bundle.files[name])
    _ = bundle.plan  # its hash must hold before anybody relies on it
    return bundle


def _check_manifest(manifest: Mapping[str, Any]) -> None:
    missing = [k for k in _KEYS if k not in manifest]
    if missing:
        raise Unreadable(f"{MANIFEST} lacks {', '.join(missing)}.", f"{MANIFEST} 缺少 {', '.join(missing)}。")
    if manifest["schema"] != 1:
        raise Unreadable(f"{MANIFEST} has the schema {manifest['schema']!r}; this judge reads 1.", f"{MANIFEST} 的 schema 不受支持。")
    if not isinstance(manifest["plan"], Mapping) or not isinstance(manifest["attempt"], Mapping) or not isinstance(manifest["files"], list):
        raise Unreadable(f"{MANIFEST}: plan and attempt must be maps, files a list.", f"{MANIFEST}：plan、attempt 应为映射，files 应为列表。")
    paths = [_check_entry(entry) for entry in manifest["files"]]
    if paths != sorted(set(paths)):
        raise Unreadable(f"{MANIFEST} lists a path twice, or not in order.", f"{MANIFEST} 中路径重复或未排序。")
    if len(paths) > MAX_FILES or sum(e["size"] for e in manifest["files"]) > MAX_TOTAL_BYTES:
        raise Unreadable(f"{MANIFEST} lists more than a bundle may hold.", f"{MANIFEST} 列出的内容超出上限。")


def _check_entry(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        raise Unreadable(f"{MANIFEST}: an entry of files is not a map.", f"{MANIFEST}：files 中有非映射项。")
    path, size, digest = entry.get("path"), entry.get("size"), entry.get("sha256")
    if not isinstance(path, str) or not _PATH.fullmatch(path) or not _stays_inside(path):
        raise Unreadable(f"{MANIFEST} lists the path {path!r}, which no bundle has.", f"{MANIFEST} 列出了非法路径 {path!r}。")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_FILE_BYTES:
        raise Unreadable(f"{path}: the size {size!r} in the manifest is beyond reason.", f"{path}：清单中的大小 {size!r} 不合理。")
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise Unreadable(f"{path}: the manifest holds no SHA-256 of it.", f"{path}：清单中没有其 SHA-256。")
    return path


def _stays_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts and "." not in path.split("/") and "" not in path.split("/")


def _match(manifest: Mapping[str, Any], members: Mapping[str, int]) -> None:
    listed = {entry["path"]: entry["size"] for entry in manifest["files"]}
    for path, size in members.items():
        if path in (MANIFEST, VERDICT):
            continue
        if path not in listed:
            raise Unreadable(f"{path} is in the bundle, but not in the manifest.", f"{path} 在证据包中，但不在清单中。")
        if size != listed[path]:
            raise Unreadable(f"{path} has {size} bytes; the manifest says {listed[path]}.", f"{path} 为 {size} 字节；清单为 {listed[path]}。")
    for path in listed:
        if path not in members:
            raise Unreadable(f"{path} is in the manifest, but missing from the bundle.", f"{path} 在清单中，但证据包中缺失。")


def _document(raw: bytes, name: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return out

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    if len(raw) > MAX_DOCUMENT_BYTES:
        raise Unreadable(f"{name} is larger than {MAX_DOCUMENT_BYTES} bytes.", f"{name} 超过 {MAX_DOCUMENT_BYTES} 字节。")
    try:
        text = raw.decode("utf-8")
        data = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
        if has_broken_text(data, text):
            raise ValueError("it holds half of a surrogate pair, which is no text")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is not readable as JSON: {error}.", f"{name} 无法按 JSON 解析：{error}。") from error
    if not isinstance(data, dict):
        raise Unreadable(f"{name} is not a JSON object.", f"{name} 不是 JSON 对象。")
    return data


class _Source:
    """Where the bytes of a bundle lie."""

    def members(self) -> Iterator[tuple[str, int]]:
        """Yield every file with its size; raise Unreadable for anything that is no plain file inside the bundle."""
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """Return the bytes of one file."""
        raise NotImplementedError

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of one file in blocks."""
        raise NotImplementedError

    def state(self, name: str) -> object | None:
        """Return what changes when anybody writes to the bytes of a file (device, inode, size, times of change), None when it cannot be told."""
        try:
            found = self.where(name).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def where(self, name: str) -> Path:
        """Return the file on disk that holds the bytes of one file."""
        raise NotImplementedError

    def verify(self, name: str, entry: Mapping[str, Any]) -> object | None:
        """Check one file against its manifest entry without holding it in memory; return its state, as it was throughout."""
        digest, size, before = hashlib.sha256(), 0, self.state(name)
        try:
            for block in self.stream(name):
                size += len(block)
                if size > entry["size"]:
                    break
                digest.update(block)
        except _DAMAGE as error:
            raise Unreadable(f"{name} cannot be read: {error}.", f"无法读取 {name}：{error}。") from error
        if size != entry["size"] or digest.hexdigest() != entry["sha256"]:
            raise Unreadable(f"{name} differs from the manifest (SHA-256).", f"{name} 与清单不一致（SHA-256）。")
        return before if before == self.state(name) else None


class _Directory(_Source):
    def __init__(self, root: Path) -> None:
        self.root = root

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


class _Zip(_Source):
    def where(self, name: str) -> Path:  # noqa: ARG002 - one file holds them all
        return self.path

    def __init__(self, path: Path) -> None:
        self.path, self.zip = path, zipfile.ZipFile(path)
        with path.open("rb") as file:
            begins = file.read(4)
            file.seek(-_END_RECORD, 2)
            ends = file.read(4)
        if begins != b"PK\x03\x04" or ends != b"PK\x05\x06":  # programs differ in what they take for the zip when something stands around it
            raise Unreadable(f"{path} holds something before or behind the zip.", f"{path} 在 zip 数据之前或之后还有其他内容。")

    def members(self) -> Iterator[tuple[str, int]]:
        infos = self.zip.infolist()
        if len(infos) > MAX_FILES:
            raise Unreadable(f"The bundle holds more than {MAX_FILES} files.", f"证据包超过 {MAX_FILES} 个文件。")
        seen: set[str] = set()
        total = 0
        for info in infos:
            name = info.filename
            if not _stays_inside(name.rstrip("/")) or "\\" in name:
                raise Unreadable(f"The path {name!r} leaves the bundle.", f"路径 {name!r} 越出证据包。")
            if info.is_dir():
                continue
            total += info.file_size
            if (info.external_attr >> 16) & 0o170000 == 0o120000:
                raise Unreadable(f"{name} is a link; a bundle holds plain files only.", f"{name} 是链接；证据包只含普通文件。")
            if name in seen:
                raise Unreadable(f"{name} stands twice in the zip.", f"{name} 在压缩包中重复。")
            if info.file_size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES or info.file_size > MAX_RATIO * max(info.compress_size, 1024):
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


def _bytes(source: _Source, name: str) -> bytes:
    try:
        return source.read(name)
    except _DAMAGE as error:
        raise Unreadable(f"{name} cannot be read: {error}.", f"无法读取 {name}：{error}。") from error


def _open(path: Path) -> _Source:
    if path.is_dir():
        return _Directory(path)
    if not path.exists():
        raise Unreadable(f"{path} does not exist.", f"{path} 不存在。")
    try:
        return _Zip(path)
    except _DAMAGE as error:
        raise Unreadable(f"{path} is neither a directory nor a readable zip: {error}.", f"{path} 既不是目录也不是可读的 zip：{error}。") from error
