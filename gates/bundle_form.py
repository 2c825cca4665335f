"""What a bundle may hold: the form of its manifest, of its JSON documents and of its paths, and how much of each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from gates.canonical import has_broken_text
from gates.system_words import said
from gates.text import Text

MANIFEST, VERDICT, INPUTS = "manifest.json", "verdict.json", "evidence/inputs.json"
MAX_FILES = 20_000
MAX_FILE_BYTES = 2 * 1024**3
MAX_JOURNAL_BYTES = 128 * 1024**3  # a job's numbered lines, which are read line by line: of a fast soak more than any other file
MAX_TOTAL_BYTES = 512 * 1024**3
MAX_DOCUMENT_BYTES = 64 * 1024**2  # manifest.json, verdict.json, inputs.json
_PATH = re.compile(r"evidence/[^\x00-\x1f\\]{1,280}")
_KEYS = ("schema", "judge_version", "rules_hash", "plan", "plan_hash", "gate", "attempt", "simulated", "files")


class Unreadable(Exception):  # noqa: N818 - an error is named by what is wrong
    """A bundle that cannot be trusted; `text` says what is wrong with which file."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.text = Text(en, zh)


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise Unreadable unless a manifest has every key, one schema, and plain, ordered, bounded entries."""
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


def most_bytes(path: str) -> int:
    """Return how large the file of a bundle may be."""
    return MAX_JOURNAL_BYTES if path.endswith(".jsonl") else MAX_FILE_BYTES


def _check_entry(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        raise Unreadable(f"{MANIFEST}: an entry of files is not a map.", f"{MANIFEST}：files 中有非映射项。")
    path, size, digest = entry.get("path"), entry.get("size"), entry.get("sha256")
    if not isinstance(path, str) or not _PATH.fullmatch(path) or not stays_inside(path):
        raise Unreadable(f"{MANIFEST} lists the path {path!r}, which no bundle has.", f"{MANIFEST} 列出了非法路径 {path!r}。")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= most_bytes(path):
        raise Unreadable(f"{path}: the size {size!r} in the manifest is beyond reason.", f"{path}：清单中的大小 {size!r} 不合理。")
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise Unreadable(f"{path}: the manifest holds no SHA-256 of it.", f"{path}：清单中没有其 SHA-256。")
    return path


def stays_inside(path: str) -> bool:
    """Return whether a path is relative, without `.`, `..` or empty parts."""
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts and "." not in path.split("/") and "" not in path.split("/")


def match_members(manifest: Mapping[str, Any], members: Mapping[str, int]) -> None:
    """Raise Unreadable unless the files of a bundle (path -> bytes) are those of its manifest, each as long as stated."""
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


def document(raw: bytes, name: str) -> dict[str, Any]:
    """Return a JSON object, read strictly: no key twice, no NaN, no broken text. Raises Unreadable, naming the file."""

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
        raise Unreadable(f"{name} is not readable as JSON: {said(error).en}.", f"{name} 无法按 JSON 解析：{said(error).zh}。") from error
    if not isinstance(data, dict):
        raise Unreadable(f"{name} is not a JSON object.", f"{name} 不是 JSON 对象。")
    return data
