"""The engine's log over 72 h: bounded on the disk, whole at its head and its tail, and what was dropped is said in its place."""

import json
import os

import pytest
from probe.engine_log import BLOCK, bound, bound_of, compact

from tests.unit.probe.test_probe_cells import disk  # noqa: F401 - a folder on a real disk, where files can have holes

SIZES = {"head": 2 * BLOCK, "tail": 4 * BLOCK, "step": BLOCK}
LINE = 64


def written(folder, blocks):
    """Write numbered lines of 64 bytes, as many as so many blocks hold, with a descriptor that stays open as an engine's does."""
    path = os.path.join(folder, "engine.log")
    stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for start in range(0, blocks * BLOCK // LINE, 1024):
        os.write(stream, b"".join(b"%063d\n" % n for n in range(start, start + 1024)))
    os.fsync(stream)
    return path, stream


@pytest.mark.parametrize("holes", [True, False])
def test_head_and_tail_stay_and_the_engine_goes_on_writing_behind_them(disk, holes):  # noqa: F811
    path, stream = written(disk, 40)
    dropped = bound(path, **SIZES, holes=holes)
    assert dropped == {"from": 2 * BLOCK, "to": 36 * BLOCK}
    os.write(stream, b"the engine goes on\n")
    os.fsync(stream)
    with open(path, "rb") as file:
        content = file.read()
    last = 40 * BLOCK // LINE - 1
    assert content[: 2 * BLOCK].splitlines() == [b"%063d" % n for n in range(2 * BLOCK // LINE)]
    assert content.endswith(b"%063d\nthe engine goes on\n" % last)
    assert b"%063d\n" % (36 * BLOCK // LINE) in content
    assert b"bytes %d to %d were dropped" % (dropped["from"], dropped["to"]) in content
    assert os.stat(path).st_blocks * 512 <= 9 * BLOCK
    assert bound(path, **SIZES, holes=holes) is None  # nothing more to do


def test_it_is_bounded_again_and_again(disk):  # noqa: F811
    path, stream = written(disk, 40)
    for _ in range(5):
        os.write(stream, b"x" * (20 * BLOCK))
        os.fsync(stream)
        bound(path, **SIZES)
        assert os.stat(path).st_blocks * 512 <= 9 * BLOCK
    os.close(stream)


def test_a_short_log_is_left_alone_and_a_missing_one_is_no_error(disk):  # noqa: F811
    path, stream = written(disk, 2)
    os.close(stream)
    compact(path)
    assert bound(path, **SIZES) is None
    assert os.stat(path).st_size == 2 * BLOCK
    assert bound(path + ".absent") is None


def test_the_log_is_the_one_that_the_pid_file_names(tmp_path):
    (tmp_path / "pid").write_text(json.dumps({"pid": 1, "log": str(tmp_path / "no.log")}))
    (tmp_path / "plain").write_text("17")
    assert [bound_of(str(tmp_path / name)) for name in ("pid", "plain", "absent")] == [None] * 3
    assert bound_of(None) is None
