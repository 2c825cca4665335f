"""Arms that load one and the same model from media of their own: equal work where the plan agrees to it and the model is shown to be the same."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Truth, g3_evidence, merged, small_plan
from tests.unit.gates.test_properties import TINY

AGREED = {"arms": {"allowed_difference": ["mount_path", "device", "transport", "model_dir"]}}
RUNS = {"run-1": "nfs", "run-2": "array", "run-3": "array", "run-4": "nfs", "recompute": "", "placebo": "array"}


def equal_work(plan: dict[str, Any], **digests: Any) -> str:
    """Return how equal work of the candidate stands; `digests`: model_config_sha256 of single media, where it is not the same everywhere."""
    evidence = g3_evidence(Truth(), small_plan(merged(TINY, plan)))
    for run, medium in RUNS.items():
        folder = f"/mnt/{medium or 'nfs'}/m"

        def loaded(data: dict[str, Any], folder: str = folder, medium: str = medium) -> None:
            data.update(config={"model": folder}, model_config_sha256=digests.get(medium or "nfs", "a" * 64))

        def given(data: dict[str, Any], folder: str = folder, medium: str = medium) -> None:
            arm = data.get("arm", data)
            arm.update({"model_dir": folder} if medium else {})

        evidence.json(run, "engine.json", loaded).json(run, "arm.json", given).json(run, "job.json", given)
    return next(c["status"] for c in judge(evidence.bundle())["claims"] if (c["claim"], c["arm"]) == ("equal_work", "candidate"))


def test_one_model_on_two_media_is_equal_work_where_the_plan_agrees() -> None:
    assert equal_work(AGREED) == "holds"


def test_without_the_agreement_it_is_not() -> None:
    assert equal_work({}) == "breached"


@pytest.mark.parametrize("digest", ["b" * 64, None])
def test_another_model_or_one_that_nobody_can_tell_is_not(digest: str | None) -> None:
    assert equal_work(AGREED, array=digest) == "breached"


def test_none_that_is_told_is_not_either() -> None:
    assert equal_work(AGREED, array=None, nfs=None) == "breached"
