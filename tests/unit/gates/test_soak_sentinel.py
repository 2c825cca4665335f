"""The sentinel of a soak: the same prompts in every window must be answered as before."""

import pytest

from gates.judge import judge
from tests.bundles import g4_evidence


def sentinel(change):
    verdict = judge(g4_evidence().lines("soak", "events.jsonl", change).bundle())
    return verdict["verdict"], next(c["verdict"] for c in verdict["checks"] if c["id"] == "g4.sentinel_answers")


def test_answers_that_stay_the_same_pass():
    assert sentinel(lambda rows: None) == ("pass", "pass")


@pytest.mark.parametrize("key", ["other_answers", "hits_of_never_stored"])
def test_another_answer_or_a_hit_of_what_was_never_stored_is_told_and_stops_nothing_alone(key):
    def change(rows):
        rows[0]["detail"][key] = [161]

    assert sentinel(change) == ("pass", "fail")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.clear(),
        lambda rows: rows[0]["detail"].pop("other_answers"),
        lambda rows: rows[0]["detail"].update(compared=0),
        lambda rows: rows[0]["detail"].update(compared="16"),
        lambda rows: rows[0].update(detail=None),
    ],
)
def test_a_window_that_is_not_whole_tells_nothing(change):
    assert sentinel(change)[1] == "inconclusive"


def test_the_windows_are_a_series_of_the_report_and_no_mark_of_an_event():
    figures = judge(g4_evidence().bundle())["figures"]
    assert figures["sentinel"] == [{"hour": 0.0, "requests": 5, "failed": 0, "ttft_p50_ms": 5.0}]
    assert figures["events"] == []
