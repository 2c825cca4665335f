"""What a run of a round gets of the one playbook: its own hosts' events under their own names, and no word about others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.engine import durable
from app.engine.shares import Share, document, ended


@pytest.fixture
def shares(tmp_path: Path) -> list[Share]:
    """Two runs whose engagements both call a host gpu01."""
    made = []
    for number in range(2):
        folder = tmp_path / f"run{number}"
        (folder / "private").mkdir(parents=True)
        inventory = {
            "all": {"hosts": {"gpu01": {"qg_root": f"/root{number}"}}, "children": {"loadgen": {"hosts": {"gpu01": {}}}, "bmc": {"hosts": {}}}}
        }
        (folder / "private" / "inventory.json").write_text(json.dumps(inventory))
        (folder / "private" / "vars.json").write_text(json.dumps({"job": {"id": f"job{number}"}, "staging": str(folder / "staging")}))
        job = {"short_dir": str(tmp_path / f"short{number}"), "control_dir": str(tmp_path / f"short{number}" / "cp")}
        made.append(Share(folder, job, number, {"s3cret-word"}))
    return made


def say(shares: list[Share], kind: str, text: str = "", **data: Any) -> None:
    for share in shares:
        share.event({"uuid": f"{kind}-{data.get('host')}", "event": kind, "counter": 99, "created": "", "stdout": text, "event_data": data})


def said(share: Share) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (share.folder / "events.jsonl").read_text().splitlines()]


def play(shares: list[Share], *, dark: dict[str, int] | None = None) -> None:
    say(shares, "playbook_on_start")
    for host in ("qg00~gpu01", "qg01~gpu01"):
        say(shares, "runner_on_ok", f"ok: [{host}] => s3cret-word", host=host, task="reply", res={"stdout": "{}", "dest": f"/x/{host}/chunks.json"})
    recap = "PLAY RECAP\nqg00~gpu01 : ok=1\nqg01~gpu01 : ok=1"
    say(shares, "playbook_on_stats", recap, ok={"qg00~gpu01": 1, "qg01~gpu01": 1}, failures={}, dark=dark or {})


def test_an_event_goes_to_the_run_whose_host_it_is_about_and_of_the_recap_each_sees_its_own_lines(shares: list[Share]) -> None:
    play(shares)
    for share in shares:
        rows = said(share)
        assert [(row["event"], row["counter"]) for row in rows] == [("playbook_on_start", 1), ("runner_on_ok", 2), ("playbook_on_stats", 3)]
        assert (rows[1]["stdout"], rows[1]["data"]["host"]) == ("ok: [gpu01] => [hidden]", "gpu01")
        assert rows[1]["data"]["res"]["dest"] == "/x/gpu01/chunks.json"
        assert (rows[2]["stdout"], rows[2]["data"]["ok"]) == ("PLAY RECAP\ngpu01 : ok=1", {"gpu01": 1})


def test_every_host_has_the_variables_of_its_own_run(shares: list[Share]) -> None:
    told = document(shares)["all"]
    assert {name: (own["job"]["id"], own["qg_root"]) for name, own in told["hosts"].items()} == {
        "qg00~gpu01": ("job0", "/root0"),
        "qg01~gpu01": ("job1", "/root1"),
    }
    assert list(told["children"]["loadgen"]["hosts"]) == ["qg00~gpu01", "qg01~gpu01"]
    assert len({own["ansible_remote_tmp"] for own in told["hosts"].values()}) == 2  # what a cancel ends by its path is one attempt's


def test_a_host_that_does_not_answer_is_told_to_its_own_run_alone(shares: list[Share]) -> None:
    play(shares, dark={"qg01~gpu01": 1})
    (shares[0].folder / "staging" / "qg00~gpu01").mkdir(parents=True)
    assert ended(shares, "failed", 4, None) == shares
    results = [durable.read_json(share.folder / "result.json") or {} for share in shares]
    assert [(one["status"], one["rc"], one["events"]) for one in results] == [("successful", 0, 3), ("failed", 4, 3)]
    assert [one["stats"]["dark"] for one in results] == [{}, {"gpu01": 1}]
    assert (shares[0].folder / "staging" / "gpu01").is_dir()


@pytest.mark.parametrize(("status", "rc"), [("timeout", 254), ("failed", 1), ("failed", 250), ("failed", None), ("canceled", 254)])
def test_where_nobody_can_say_whose_fault_it_was_no_run_has_a_result(shares: list[Share], status: str, rc: int | None) -> None:
    play(shares)
    assert ended(shares, status, rc, None) == []
    assert not any((share.folder / "result.json").exists() for share in shares)


def test_a_round_without_a_recap_has_no_result(shares: list[Share]) -> None:
    say(shares, "playbook_on_start")
    assert ended(shares, "successful", 0, None) == []


def test_an_event_that_cannot_be_shared_is_counted_as_lost(shares: list[Share]) -> None:
    for share in shares:
        share.event({"uuid": "x", "event": "runner_on_ok", "event_data": 7})
    assert [share.capture.lost for share in shares] == [1, 1]
