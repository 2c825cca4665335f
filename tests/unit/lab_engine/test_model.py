"""The parts of the model by themselves: serial resources, variation, KV memory, blocks, prompts, configuration."""

from __future__ import annotations

import hashlib
import statistics

import pytest

from tests.unit.lab_engine import lab  # noqa: F401 - puts the engine's package on the path

from lab_engine import kv  # isort: skip
from lab_engine.clock import Serial, variation  # isort: skip
from lab_engine.completions import Completion, RequestError  # isort: skip
from lab_engine.config import Config, ConfigError, parse  # isort: skip
from lab_engine.faults import chosen  # isort: skip
from lab_engine.hbm import Hbm  # isort: skip
from lab_engine.prompt import Prompt  # isort: skip


def test_a_serial_resource_lets_the_second_wait_for_the_first() -> None:
    bus = Serial()
    assert bus.reserve(10.0, 2.0) == 12.0
    assert bus.reserve(11.0, 2.0) == 14.0
    assert bus.reserve(20.0, 2.0) == 22.0


def test_the_variation_of_service_times_has_mean_one_and_the_spread_that_was_asked_for() -> None:
    values = [variation(hashlib.blake2b(b"%d" % n, digest_size=16).digest(), 0.05) for n in range(4000)]
    assert abs(statistics.mean(values) - 1) < 0.003
    assert abs(statistics.stdev(values) - 0.05) < 0.003
    assert variation(b"abc", 0.0) == 1.0
    assert variation(b"abcdefghijkl", 0.05) == variation(b"abcdefghijkl", 0.05)


def test_kv_memory_never_takes_a_block_that_a_request_holds() -> None:
    hbm = Hbm(4)
    assert hbm.admit([], 3)
    for key in ("a", "b", "c"):
        assert hbm.put(key, key.encode())
    assert not hbm.admit([], 2)
    hbm.release(["a", "b", "c"], 0)
    assert hbm.hits(["a", "b", "c", "d"]) == [b"a", b"b", b"c"]
    assert hbm.admit([], 2)
    assert len(hbm.hits(["a", "b", "c"])) == 2  # the end of the prefix went first


def test_kv_memory_forgets_only_while_nothing_runs() -> None:
    hbm = Hbm(4)
    assert hbm.admit([], 1)
    hbm.put("a", b"a")
    assert not hbm.reset()
    hbm.release(["a"], 0)
    assert hbm.reset()
    assert hbm.hits(["a"]) == []


def test_a_block_is_named_by_all_the_tokens_before_it() -> None:
    root = kv.root_of("m", 2, 16)
    one, two = kv.chain(Prompt(b"1,2,3,4,5"), 2, root), kv.chain(Prompt(b"9,2,3,4,5"), 2, root)
    assert len(one) == 2
    assert not set(one) & set(two)
    assert kv.chain(Prompt(b"1,2,3,5"), 2, root)[0] == one[0]
    assert kv.root_of("m", 4, 16) != root


def test_a_salt_gives_other_names_to_the_same_content() -> None:
    digest = kv.chain(Prompt(b"1,2"), 2, b"r")[0]
    assert kv.key_of(digest, "") != kv.key_of(digest, "tenant")
    assert kv.content(digest, 100) == kv.content(digest, 100)
    assert len(kv.content(digest, 100)) == 100


def test_one_changed_byte_of_kv_changes_the_output() -> None:
    good = kv.content(b"d", 4096)
    bad = good[:2000] + bytes([good[2000] ^ 1]) + good[2001:]
    states = [kv.state_of([kv.fingerprint(data)], b"7,8", 0, 0.0) for data in (good, bad, good)]
    assert states[0] == states[2] != states[1]
    assert kv.output_tokens(states[0], 8) != kv.output_tokens(states[1], 8)


@pytest.mark.parametrize("text", [b"1,2,3,4,5", b"10,20,30,40,50", b"1,22,333,4,55555", b"7"])
def test_a_prompt_is_cut_at_the_same_tokens_whatever_their_width(text: bytes) -> None:
    parts = text.split(b",")
    prompt = Prompt(text)
    assert prompt.count == len(parts)
    for start in range(len(parts)):
        for end in range(start, len(parts) + 2):
            assert prompt.slice(start, end) == b",".join(parts[start:end])


@pytest.mark.parametrize("body", ['{"prompt":[1,22,3]}', '{ "prompt" : [ 1, 22,\n 3 ] }', '{"prompt": [1,22,3], "cache_salt": "]["}'])
def test_the_short_way_through_the_body_finds_what_the_parser_finds(body: str) -> None:
    assert Completion(body.encode(), 1, Config(), 0.0, 0).request.prompt.slice(0, 3) == b"1,22,3"


def test_brackets_inside_a_text_do_not_pass_for_a_prompt() -> None:
    body = b'{"cache_salt": "\\"prompt\\":[9,9]", "prompt": "hi"}'
    assert Completion(body, 1, Config(), 0.0, 0).request.prompt.slice(0, 9) == b"104,105"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'{"prompt": []}', "prompt"),
        (b'{"prompt": [1,,2]}', "JSON"),
        (b'{"prompt": [1,-2]}', "prompt"),
        (b'{"prompt": [1.5]}', "prompt"),
        (b'{"prompt": [1], "max_tokens": 0}', "max_tokens"),
        (b'{"prompt": [1], "temperature": "hot"}', "temperature"),
        (b'{"prompt": [1], "model": "other"}', "other"),
        (b'{"prompt": [1], "max_tokens": 99999999}', "exceed"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(body: bytes, word: str) -> None:
    with pytest.raises(RequestError, match=word):
        Completion(body, 1, Config(), 0.0, 0)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"speed": 1}, "speed is not a key"),
        ({"tier": {"path": "/x"}}, "read_bytes_per_s"),
        ({"tier": {"path": "/x", "read_bytes_per_s": 1, "depth": 2}}, "tier.depth"),
        ({"faults": {"leak": 1}}, "faults.leak"),
        ({"decode_base_s": 0}, "decode_base_s must be above 0"),
        ({"seed": "x"}, "seed must be a number"),
        ({"model": 3}, "model must be text"),
        ({"hbm_tokens": 10}, "not even one block"),
    ],
)
def test_a_wrong_configuration_is_refused_in_a_sentence_that_names_the_key(data: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        parse(data)


def test_a_fault_hits_its_share_of_keys_the_same_ones_at_each_start_and_others_with_another_seed() -> None:
    keys = [str(n) for n in range(4000)]
    hit = {key for key in keys if chosen("lost_kv", 1, key, 0.1)}
    assert abs(len(hit) / len(keys) - 0.1) < 0.02
    assert hit == {key for key in keys if chosen("lost_kv", 1, key, 0.1)}
    assert hit != {key for key in keys if chosen("lost_kv", 2, key, 0.1)}
    assert not any(chosen("lost_kv", 1, key, 0.0) for key in keys)
    assert all(chosen("lost_kv", 1, key, 1.0) for key in keys)
