"""A gate whose plan says that the array is cold, at a site that could not prove it, is not begun; practice is."""

import pytest

from app.attempts.usecases import start_attempt
from app.engagements.views import overview
from app.kit.db import write_session
from app.kit.errors import Refused
from tests.people import Cast
from tests.scenes import DEMO, engage, run

COLD = DEMO.replace("plan:\n", "plan:\n  arms: {array_cache: cold}\n")


def test_a_gate_that_could_only_end_inconclusive_is_refused_with_what_is_missing(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, COLD)
        engine = {**engagement.targets["engine"], "kind": "vllm"}  # the simulated engine keeps the statistics of its array by itself
        engagement.targets = {**engagement.targets, "engine": engine}
        run(s, cast, engagement, "G1")
        told = overview(s, engagement_id=engagement.id, actor=cast.li_wei)["next"]
        assert "arms.array_cache: cold" in told["reason"]["en"]
        with pytest.raises(Refused) as refused:
            start_attempt(s, engagement_id=engagement.id, gate="G2", actor=cast.li_wei)
        assert refused.value.code == "cold_unproven"
        assert start_attempt(s, engagement_id=engagement.id, gate="G2", rehearsal=True, actor=cast.li_wei).rehearsal
