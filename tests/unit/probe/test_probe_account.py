import json

import pytest
from probe.account import Account
from probe.prompts import Shot
from probe.wire import Answer, BadAnswer, Events

from tests.unit.probe.kit import END, HEAD, event, text_event, usage_event, whole_stream

SHOT = Shot("measure", 8, 3, "ab" * 32, 528, 8, b"{}")


def account(*pieces, ended=True):
    """Feed pieces at 100, 200, 300... ns; return the record."""
    one = Account(SHOT, 10)
    one.sent_ns = 50
    for n, piece in enumerate(pieces):
        one.feed(piece, 100 * (n + 1))
    return one.record(9999, None if ended else {"kind": "timeout", "message": "too late"}, True)


def test_a_whole_answer_is_no_error_and_its_times_are_those_of_the_text():
    pieces = [HEAD, text_event(""), text_event(" a"), text_event(" b"), *[text_event(" c")] * 5, text_event(" d", "length"), usage_event(8), END]
    record = account(*pieces)
    assert record["error"] is None
    assert (record["first_byte_ns"], record["first_text_ns"], record["end_ns"]) == (100, 300, 1000)
    assert len(record["chunk_offsets_us"]) == 8
    assert record["output_head"] == [" a", " b", *[" c"] * 5, " d"]


def test_a_role_only_chunk_and_an_empty_chunk_are_not_the_first_text():
    role = event({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
    text = event({"choices": [{"delta": {"content": "hi"}, "finish_reason": "length"}]})
    record = account(HEAD, role, text_event(""), text, usage_event(8), END)
    assert record["first_text_ns"] == 400


@pytest.mark.parametrize("size", [1, 7, 64, 100000])
def test_the_account_does_not_depend_on_how_the_bytes_were_cut(size):
    data = whole_stream()
    one = Account(SHOT, 0)
    one.sent_ns = 1
    for start in range(0, len(data), size):
        one.feed(data[start : start + size], start + 2)
    record = one.record(9, None, True)
    assert record["error"] is None
    assert record["usage"]["completion_tokens"] == 8
    assert one.done


def kinds():
    error = event({"error": {"message": "KV load failed", "code": 500}})
    yield "stream_error", [HEAD, error, END]
    yield "stream_error", [HEAD, text_event(" a"), error, END]
    yield "stream_error", [HEAD, event({"message": "boom"}, "error"), END]
    yield "stream_error", [HEAD, text_event(" a", "abort"), usage_event(1), END]
    yield "stream_error", [b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"error":"no memory"}'[:-1] + b"}"]
    yield "empty_stream", [HEAD, END]
    yield "empty_stream", [HEAD, text_event(""), usage_event(0), END]
    yield "no_finish", [HEAD, text_event(" a"), text_event(" b"), usage_event(2), END]
    yield "short", [HEAD, text_event(" a"), text_event(" b", "stop"), usage_event(2), END]
    yield "short", [HEAD, text_event(" a"), text_event(" b", "stop"), END]
    yield "http", [b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nboom"]
    yield "connection", [HEAD, text_event(" a")]


@pytest.mark.parametrize(("kind", "pieces"), list(kinds()))
def test_each_failure_is_told_apart(kind, pieces):
    record = account(*pieces)
    assert record["error"]["kind"] == kind, record["error"]


def one_token(text="", finish="length", tokens=1):
    one = Account(SHOT._replace(max_tokens=1), 0)
    one.sent_ns = 1
    for n, piece in enumerate([HEAD, text_event(text, finish), usage_event(tokens), END], 2):
        one.feed(piece, n)
    return one.record(9, None, True)


def test_the_one_token_of_a_store_may_be_a_part_of_a_character_without_text_and_is_timed_by_nothing():
    record = one_token()
    assert (record["error"], record["first_text_ns"], record["output_sha256"]) == (None, None, None)
    for broken in (one_token(finish="stop"), one_token(tokens=0), one_token(finish=None)):
        assert broken["error"]["kind"] == "empty_stream"
    assert account(HEAD, text_event("", "length"), usage_event(8), END)["error"]["kind"] == "empty_stream"  # of eight tokens one has text


def test_what_the_server_said_explains_a_connection_that_broke_afterwards():
    assert account(HEAD, event({"error": "gone"}), ended=False)["error"]["kind"] == "stream_error"
    assert account(HEAD, text_event(" a"), ended=False)["error"]["kind"] == "timeout"


def test_bundled_tokens_are_counted_by_usage_and_not_by_chunks():
    record = account(HEAD, text_event(" a b c d"), text_event(" e f g h", "length"), usage_event(8), END)
    assert record["error"] is None
    assert len(record["chunk_offsets_us"]) == 2


def test_the_stamps_of_the_engine_and_its_cached_tokens_are_kept():
    last = event(
        {
            "choices": [],
            "usage": {"prompt_tokens": 528, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 512}},
            "server": {"recv_ns": 1, "first_ns": 2, "send_ns": 3},
        }
    )
    record = account(HEAD, text_event(" a", "length"), last, END)
    assert record["server"] == {"recv_ns": 1, "first_ns": 2, "send_ns": 3}
    assert record["usage"]["cached_tokens"] == 512


def test_the_output_hash_is_over_token_ids_where_the_engine_sends_them():
    ids = [event({"choices": [{"text": "x", "token_ids": [n], "finish_reason": None}]}) for n in (5, 6)]
    texts = [event({"choices": [{"text": "x", "finish_reason": None}]}) for _ in range(2)]
    import hashlib

    assert account(HEAD, *ids, END)["output_sha256"] == hashlib.sha256(b"5,6").hexdigest()
    assert account(HEAD, *texts, END)["output_sha256"] == hashlib.sha256(b"xx").hexdigest()


def test_bytes_that_are_not_http_are_named():
    with pytest.raises(BadAnswer, match="not with an HTTP"):
        Answer().feed(b"SSH-2.0-OpenSSH\r\n\r\n")
    with pytest.raises(BadAnswer, match="its size"):
        Answer().feed(HEAD + b"zz\r\nxx\r\n")


def test_events_with_comments_carriage_returns_and_several_data_lines_are_read():
    events = Events()
    assert events.feed(b": ping\n\nevent: error\r\ndata: a\r") == []
    found = events.feed(b"\ndata: b\r\n\r\n")
    assert [(e.name, e.data) for e in found] == [("error", "a\nb")]


def test_an_answer_with_a_length_ends_there_and_leaves_the_connection_open():
    answer = Answer()
    assert answer.feed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab") == b"ab"
    assert not answer.done
    assert answer.feed(b"c") == b"c"
    assert answer.done
    assert answer.keep_alive


def test_a_record_is_one_line_of_json():
    assert json.loads(json.dumps(account(whole_stream())))["prompt"] == 3
