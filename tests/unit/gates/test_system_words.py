"""What the operating system, zip and JSON say is said in Chinese too, with the words as a quotation; what is not known is quoted alone."""

from __future__ import annotations

import errno
import json
import os
import re
import zipfile
from pathlib import Path

import pytest

from gates.bundle import Unreadable, read_bundle
from gates.system_words import said

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.EADDRINUSE, errno.ECONNREFUSED, errno.EROFS, errno.EIO])
def test_an_error_of_the_system_is_said_in_chinese_and_quoted(number: int) -> None:
    told = said(OSError(number, os.strerror(number)))
    assert told.en == os.strerror(number)
    assert CHINESE.match(told.zh)
    assert told.zh.endswith(f"（{told.en}）")


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', '{"a": 1 "b": 2}', '{"a": 1,}', "[1, 2", '"open', '"\\q"', "1 2", "{a: 1}", '"a\nb"'])
def test_what_is_no_json_is_said_in_chinese_with_its_place(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(text)
    told = said(caught.value)
    assert re.search(r"line \d+ column \d+$", told.en)
    assert re.match(r"(JSON )?[\u4e00-\u9fff].*（第 \d+ 行第 \d+ 列：.+）$", told.zh), told.zh


def test_what_nobody_has_translated_is_quoted_in_both_languages() -> None:
    told = said(ValueError("the flux capacitor is cold."))
    assert (told.en, told.zh) == ("the flux capacitor is cold", "“the flux capacitor is cold”")
    assert said(EOFError()).zh == "数据提前结束"
    assert said(RecursionError("maximum recursion depth exceeded")).zh == "嵌套过深"
    assert said(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")).zh == "不是 UTF-8 文本（第 0 字节）"
    assert said(Unreadable("It is gone.", "已不存在。")).zh == "已不存在"


def damaged(path: Path, kind: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("manifest.json", "{}" * 100)
    data = path.read_bytes()
    start = data.index(b"manifest.json") + len("manifest.json")
    if kind == "cut":
        data = data[: len(data) // 2]
    elif kind == "content":
        data = data[:start] + b"x" + data[start + 1 :]
    elif kind == "header":
        data = b"PK\x03\x04" + b"\xff" * 20 + data[24:]
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", ["cut", "content", "header"])
def test_a_damaged_bundle_is_refused_in_chinese(tmp_path: Path, kind: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_bundle(damaged(tmp_path / "bundle.zip", kind))
    chinese = re.sub(r"（[^）]*）", "", caught.value.text.zh).replace(str(tmp_path), "")
    assert not re.search(r"[A-Za-z]{3,} [a-z]{3,}", chinese), chinese
