"""A zip is its files and nothing else, as both of its descriptions say."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from app.evidence.bundles import _entry
from gates.bundle_form import Unreadable
from gates.bundle_source import DAMAGE
from gates.zip_layout import check_layout

FILES = {"manifest.json": b"{}", "evidence/inputs.json": b"[1, 2, 3]" * 40, "evidence/run-1/gpu01/照片.jpg": b"\xff\xd8" * 9, "verdict.json": b""}


class Pipe(io.RawIOBase):
    """Where a writer cannot go back to: sizes then stand behind the data."""

    def __init__(self) -> None:
        self.kept = io.BytesIO()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        return self.kept.write(data)


def packed(entry: Callable[[str], zipfile.ZipInfo | str], into: io.BytesIO | Pipe | None = None) -> bytes:
    into = into or io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in FILES.items():
            out.writestr(entry(name), data)
    return (into.kept if isinstance(into, Pipe) else into).getvalue()


def looked_at(data: bytes) -> bool:
    """Return whether a zip is taken, every file of it read as judging a bundle does."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            same = {info.filename: found.read(info) for info in found.infolist()} == FILES
        check_layout(io.BytesIO(data))
    except (Unreadable, *DAMAGE):
        return False
    return same


def test_no_byte_of_a_zip_that_the_service_wrote_can_be_changed_unseen() -> None:
    whole = packed(_entry)
    assert looked_at(whole)
    for place in range(len(whole)):
        for bit in (1, 128):
            data = bytearray(whole)
            data[place] ^= bit
            assert not looked_at(bytes(data)), place


@pytest.mark.parametrize("into", [io.BytesIO, Pipe])
def test_a_zip_that_somebody_else_packed_is_taken(into: type[io.BytesIO | Pipe]) -> None:
    assert looked_at(packed(str, into()))


@pytest.mark.parametrize("more", [b"PK\x03\x04", b"#!/bin/sh\n", packed(_entry)])
def test_nothing_stands_before_or_between_the_files_whatever_it_looks_like(more: bytes) -> None:
    whole = packed(_entry)
    directory = whole.index(b"PK\x01\x02")
    for place in (0, directory):
        with pytest.raises(Unreadable):
            check_layout(io.BytesIO(whole[:place] + more + whole[place:]))
