"""How long a reader takes: in proportion to its file, whatever stands in it. Measured as ratios of processor time in one process."""

from __future__ import annotations

import gc
import time

import pytest

from gates.readers.registry import READERS
from tests.unit.readers.test_hostile_files import SEEDS, answered


@pytest.mark.parametrize("name", sorted(READERS))
def test_time_grows_with_the_size_of_the_file_and_not_with_its_square(name: str) -> None:
    for whole in SEEDS[name][:1]:
        lines = whole.strip(b"\n") + b"\n"
        body = lines * max(1, 100_000 // len(lines))
        limit = 8 * 4 * max(spent(name, body), 0.02)
        large = spent(name, body * 8, enough=limit)
        assert large < limit, f"{name}: {large:.3f} s for {8 * len(body)} bytes, of which an eighth lets expect less than {limit:.3f} s"


@pytest.mark.parametrize("word", [b"nvme: ", b"AER: ", b"amdgpu ", b"[1.0] ", b"Keep Alive ", b"nvme0: Keep Alive "])
def test_a_kernel_log_of_lines_that_repeat_one_word_takes_no_longer_than_another(word: bytes) -> None:
    line = b"[    1.000000] " + word * (1900 // len(word)) + b"\n"
    other = b"[    1.000000] " + b"x " * (len(line) // 2) + b"\n"
    assert spent("kernel-log", line * 50) < 8 * max(spent("kernel-log", other * 50), 0.005)


def spent(name: str, data: bytes, enough: float = 0.0) -> float:
    """Return the processor time that a reader takes for a file, in seconds: the least of three, without the collector (others left it much).

    Below `enough` nothing is measured again.
    """
    times = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            begun = time.process_time()
            answered(name, data)
            times.append(time.process_time() - begun)
            if times[-1] < enough:
                break
    finally:
        gc.enable()
    return min(times)
