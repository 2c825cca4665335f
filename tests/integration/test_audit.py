"""The audit chain shows an edit, a deletion, an insertion, a cut-off end and a rewrite."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from app.accounts.actor import SYSTEM
from app.audit.chain import Anchor, head, record, verify
from app.kit.db import read_session, write_session


@pytest.fixture
def rows(state: Path) -> int:
    with write_session() as s:
        for n in range(5):
            record(s, actor=SYSTEM, action="test", object_kind="thing", object_id=str(n), data={"n": n, "文": "字", "nested": [1, "2", None]})
    return 5


def _check(anchor: Anchor | None = None):
    with read_session() as s:
        return verify(s, anchor)


def _sql(*statements: str) -> None:
    with write_session() as s:
        for statement in statements:
            s.execute(text(statement))


def test_an_untouched_chain_is_whole_and_holds_its_anchor(rows: int) -> None:
    with read_session() as s:
        anchor = head(s)
    check = _check(anchor)
    assert (check.ok, check.rows, check.head) == (True, rows, anchor)


def test_an_empty_chain_is_whole(state: Path) -> None:
    assert _check().ok


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit_row SET data = '{\"n\": 99}' WHERE seq = 3",
        "UPDATE audit_row SET actor = 'somebody else' WHERE seq = 3",
        "UPDATE audit_row SET at = '2020-01-01 00:00:00.000000' WHERE seq = 3",
        "DELETE FROM audit_row WHERE seq = 3",
        "DELETE FROM audit_row WHERE seq = 1",
        "DELETE FROM audit_row WHERE seq = 5",
        "UPDATE audit_head SET seq = 4",
    ],
)
def test_every_single_change_behind_its_back_is_found(rows: int, change: str) -> None:
    _sql(change)
    assert not _check().ok


def test_a_cut_off_end_with_the_head_moved_back_is_only_found_by_an_anchor(rows: int) -> None:
    with read_session() as s:
        anchor = head(s)
    _sql(
        "DELETE FROM audit_row WHERE seq = 5",
        "UPDATE audit_head SET seq = 4, hash = (SELECT hash FROM audit_row WHERE seq = 4)",
    )
    assert _check().ok  # a chain alone cannot show it
    check = _check(anchor)
    assert not check.ok
    assert "cut off" in check.problems[0].en


def test_a_chain_rewritten_from_some_row_on_is_found_by_an_anchor(rows: int) -> None:
    with read_session() as s:
        anchor = head(s)
    _sql(
        "DELETE FROM audit_row WHERE seq = 5",
        "UPDATE audit_head SET seq = 4, hash = (SELECT hash FROM audit_row WHERE seq = 4)",
    )
    with write_session() as s:
        record(s, actor=SYSTEM, action="forged", object_kind="thing", object_id="5", data={})
    assert _check().ok
    assert not _check(anchor).ok


def test_a_row_exists_exactly_when_the_change_it_records_was_committed(rows: int) -> None:
    def change_and_fail() -> None:
        with write_session() as s:
            record(s, actor=SYSTEM, action="undone", object_kind="thing", object_id="x", data={})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()
    assert _check().rows == rows
    assert _check().ok


def test_writers_at_the_same_time_make_one_chain(state: Path) -> None:
    def write(who: int) -> None:
        for n in range(10):
            with write_session() as s:
                record(s, actor=SYSTEM, action="test", object_kind=f"writer-{who}", object_id=str(n), data={})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check = _check()
    assert check.ok
    assert check.rows == 30


@pytest.mark.sqlite  # which values of another kind a column takes is SQLite's own affair
@pytest.mark.parametrize(
    "edit",
    [
        "data = '{broken'",
        "data = '{\"a\": 1e999}'",
        "data = 'null'",
        "at = 'yesterday'",
        "actor = x'ff'",
        "actor = ''",
        "object_id = 5",
        "action = 'x'",
    ],
)
def test_a_row_that_holds_what_no_service_writes_is_named_by_its_number(rows: int, edit: str) -> None:
    _sql(f"UPDATE audit_row SET {edit} WHERE seq = 3")
    check = _check()
    assert [p.en.split()[:2] for p in check.problems] == [["Row", "3"]]
    assert check.rows == rows


def test_a_chain_without_its_end_marker_is_not_whole(rows: int) -> None:
    _sql("DELETE FROM audit_head")
    assert "is gone" in _check().problems[0].en
