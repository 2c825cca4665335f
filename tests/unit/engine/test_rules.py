"""The engine's pure rules: redaction, reconciliation, waiting times, offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.engine import durable, expected, policy, reconcile, samples
from app.engine.redact import Redactor
from app.targets.inventory import Inventory

SITE = Inventory(
    {"engine": ["gpu01", "gpu02"], "storage": ["array01"], "loadgen": [], "bmc": []},
    {name: {"ansible_connection": "local"} for name in ("gpu01", "gpu02", "array01")},
    addresses={"gpu01": "10.0.0.1:22"},
)


def result(**change: Any) -> dict[str, Any]:
    stats = {"ok": {"gpu01": 3, "gpu02": 3}, "dark": {}, "failures": {}}
    return {"status": "successful", "rc": 0, "stats": {**stats, **change.pop("stats", {})}, "failures": [], "problem": None, **change}


def codes(value: dict[str, Any], hosts: tuple[str, ...] = ("gpu01", "gpu02")) -> list[str]:
    return [t.code for t in reconcile.troubles(value, list(hosts), playbook="x.yml", addresses=SITE.addresses)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"stats": {"dark": {"gpu01": 1}}}, "unreachable"),
        ({"stats": {"failures": {"gpu02": 1}}, "rc": 2, "status": "failed"}, "task_failed"),
        ({"stats": {"ok": {"gpu01": 3}}}, "host_unmatched"),
        ({"stats": {"ok": {}}}, "no_hosts_matched"),
        ({"stats": {"ok": {"gpu01": 0, "gpu02": 0}}}, "no_hosts_matched"),
        ({"rc": 4, "status": "failed", "stats": {"ok": {}}}, "playbook_failed"),
        ({"rc": None, "status": "failed", "problem": "disk full"}, "playbook_failed"),
        ({"rc": 0, "status": "canceled"}, "playbook_failed"),
    ],
)
def test_nothing_but_ok_on_every_expected_host_is_fine(change: dict[str, Any], code: str) -> None:
    assert codes(result()) == []
    assert codes(result(**change)) == [code]


def test_a_run_without_expected_hosts_is_not_fine() -> None:
    assert codes(result(), ()) == ["no_hosts_matched"]


def test_the_hosts_that_a_playbook_covers_come_from_its_plays_and_from_the_expected_evidence(tmp_path: Path) -> None:
    book = tmp_path / "x.yml"
    book.write_text("- hosts: storage:bmc\n- hosts: [gpu02]\n- hosts: 'all:!storage'\n")
    assert reconcile.covered(book, SITE) == ["array01", "gpu02"]
    assert reconcile.covered(book, SITE, ["engine"]) == ["array01", "gpu02", "gpu01"]


@pytest.mark.parametrize("secret", ['pass"word\\1', "密码-四七一一", "line one\nline two"])
def test_redaction_finds_a_secret_in_the_spelling_of_json_too(secret: str) -> None:
    for ascii_only in (True, False):
        said = Redactor([secret]).text(f"ok: [gpu01] => {json.dumps({'msg': secret}, ensure_ascii=ascii_only)}")
        assert said == 'ok: [gpu01] => {"msg": "[hidden]"}'


def test_redaction_takes_secrets_and_leaves_what_people_need() -> None:
    hide = Redactor(["s3cret-value", "no"])
    tree = hide.tree(
        {
            "invocation": {"password": "x1", "api_key": "abc", "token": "t", "key_file": "/etc/k", "max_tokens": 64, "kv_bytes_per_token": "16"},
            "stdout": "it is s3cret-value, no? Authorization: Bearer abcdef password=tropical",
            "lines": ["-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----"],
            "odd": {1: object},
        }
    )
    assert tree["invocation"] == {
        "password": "[hidden]", "api_key": "[hidden]", "token": "[hidden]", "key_file": "/etc/k", "max_tokens": 64, "kv_bytes_per_token": "16",
    }  # fmt: skip
    assert tree["stdout"] == "it is [hidden], no? Authorization: [hidden] password=[hidden]"
    assert tree["lines"] == ["[hidden]"]


def test_silence_is_waited_out_ever_longer_up_to_five_minutes() -> None:
    assert [policy.back_off_s(n) for n in (1, 2, 3, 5, 6, 60)] == [10, 20, 40, 160, 300, 300]


def test_a_soak_is_polled_a_few_times_when_short_and_every_minute_when_long() -> None:
    assert policy.soak_poll_s(90, 60) == 18
    assert policy.soak_poll_s(30, 60) == 15
    assert policy.soak_poll_s(72 * 3600, 60) == 60
    assert policy.soak_poll_s(72 * 3600, 3600) == 300  # a lost target is asked no more often than that either


def test_a_chunk_that_does_not_join_what_was_fetched_is_passed_over() -> None:
    chunk = {"from": 10, "to": 30, "data": '{"seq": 1}\n{"seq": 2}\n'}
    assert samples.rows_of(chunk, 10) == ([(1, {"seq": 1}), (2, {"seq": 2})], 30)
    assert samples.rows_of(chunk, 0) == ([], 0)
    assert samples.rows_of({**chunk, "data": '{"seq": 1}\n{"se'}, 10) == ([], 10)


def test_the_length_of_a_run_is_told_by_the_target_or_learned_from_runs_of_the_same_work() -> None:
    params = {"kind": "run", "arm": "candidate", "store": True, "tiers": [8]}
    work = expected.work_of(params)
    base = {"arm": "baseline", "work": work, "store_s": 5.0, "rest_s": 20.0}
    assert expected.of_replies([{"expected_s": 12.5}, {"expected_s": 30}]) == 30
    assert expected.of_replies([{"expected_s": 12.5}, {"expected_s": None}]) is None
    assert expected.of_replies([]) is None
    assert expected.of_history(params, [base]) == 25
    assert expected.of_history({**params, "store": False}, [{**base, "arm": "candidate", "rest_s": 14.0}, base]) == 14
    assert expected.of_history({**params, "tiers": [16]}, [base]) is None


def test_a_result_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    durable.reserve(path)
    assert durable.read_json(path) is None
    durable.write_json(path, {"status": "成功", "events": 3})
    assert durable.read_json(path) == {"status": "成功", "events": 3}
    with pytest.raises(TypeError):
        durable.write_json(path, {"bad": object()})
    assert durable.read_json(path)["events"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]
