"""A cancel over real SSH with the product's own stop: what answers is ended, what is cut is named and not waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine import marker
from tests.integration.cancel_lab import cancel_lab

pytestmark = pytest.mark.sshd


def test_a_host_that_is_cut_is_named_and_the_other_is_stopped_all_the_same(state: Path) -> None:
    with cancel_lab() as lab:
        attempt, _ = lab.cancel()
        assert attempt.status == "canceled"
        assert attempt.problem is not None
        for language in ("en", "zh-CN"):
            assert f"gpu02 ({lab.cut})" in attempt.problem[language].replace("（", " (").replace("）", ")").replace("  ", " ")
            assert "gpu01" not in attempt.problem[language]
        assert marker.state(lab.left.pid) in ("Z", "")
