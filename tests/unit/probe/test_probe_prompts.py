import hashlib
import json

import pytest
from probe.errors import ProbeError
from probe.prompts import Prompts

from tests.unit.probe.kit import job_spec

WORKLOAD = job_spec("j", 1)["workload"]


def prompts(**changes):
    return Prompts({**WORKLOAD, **changes}, "lab")


def test_the_same_seed_set_tier_and_index_give_the_same_tokens_in_every_process():
    # Derived here a second time by hand: a change of the derivation would part new runs from evidence that is already sealed.
    stream = hashlib.shake_256(b"quadgate/1|11|unit|c8|3|prefix").digest(2 * 512)
    by_hand = [str(100 + int.from_bytes(stream[n : n + 2], "little") % 900) for n in range(0, len(stream), 2)]
    assert prompts().prefix("c8", 3).split(",") == by_hand == prompts().prefix("c8", 3).split(",")


def test_a_different_seed_set_tier_or_index_gives_other_tokens():
    base = prompts().prefix("c8", 0)
    others = [prompts(seed=12).prefix("c8", 0), prompts(set="rehearsal").prefix("c8", 0), prompts().prefix("c16", 0), prompts().prefix("c8", 1)]
    assert len({base, *others}) == 5
    assert len({text.split(",", 16)[0:16].__repr__() for text in [base, *others]}) == 5


def test_every_token_is_inside_the_vocabulary_and_the_lengths_are_exact():
    for vocab in ([100, 1000], [0, 16], [5, 150000]):
        maker = prompts(vocab=vocab, context_tokens=4000)
        tokens = [int(t) for t in maker.prefix("c8", 0).split(",")]
        assert len(tokens) == 4000
        assert vocab[0] <= min(tokens)
        assert max(tokens) < vocab[1]


def test_the_stored_and_the_measured_request_share_the_prefix_and_nothing_of_the_suffix():
    maker = prompts()
    prefix = maker.prefix("c8", 0)
    stored, measured = (maker.shot("x", 8, 0, prefix, "c8", name, 1) for name in ("store", "m"))
    a, b = (shot.body.split(b"[")[1].split(b"]")[0].split(b",") for shot in (stored, measured))
    assert a[:512] == b[:512]
    assert a[512:] != b[512:]
    assert len(a) == len(b) == stored.tokens == 528


def test_a_prompt_that_begins_like_another_is_refused_and_not_measured():
    maker = prompts()
    maker.prefix("c8", 0)
    with pytest.raises(ProbeError, match="begins like another"):
        maker.prefix("c8", 0)


def test_a_body_is_json_that_asks_for_a_whole_stream_at_temperature_0():
    maker = prompts()
    body = json.loads(maker.shot("m", 8, 0, maker.prefix("c8", 0), "c8", "m", 8, salt="again").body)
    assert len(body["prompt"]) == 528
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["ignore_eos"] is True
    assert (body["temperature"], body["max_tokens"], body["cache_salt"]) == (0, 8, "again")
