"""An upgrade as docs/operations.md describes it: a stack of an earlier release with what it recorded, a backup, then `docker compose up -d`."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lanes.compose.people import Person, Program, automation, followed, sign_up
from lanes.compose.release import NO_HISTORY, PRESENT, Release, earlier, revisions
from lanes.compose.stack import PATIENCE_S, Stack, wait_until
from tests.ports import free_port

SERVICE = 10001  # the user id of the service in its image
OURS = ("web", "worker", "beat", "runner")  # what runs the service's own image


@dataclass
class Site:
    """A stack, the release that it began with, and who works with it."""

    stack: Stack
    old: Release
    people: dict[str, Person]
    program: Program
    engagement: str
    judged: str  # an attempt with a verdict
    waiting: str  # one that waits for a person
    backups: Path
    recorded: dict[str, Any]  # what stood in all of it before anything was upgraded
    anchor: str


@pytest.fixture(scope="module")
def at(site: Path, build: Path) -> Iterator[Site]:
    old = earlier(build)
    if old is None:
        pytest.skip(f"NOT RUN: {NO_HISTORY}")
    stack = Stack(site, old)
    try:
        stack.up()
        people = sign_up(stack)
        program = automation(stack)
        file = yaml.safe_load((old.tree / "app/demo/engagement.yaml").read_text(encoding="utf-8"))
        file["targets"]["engine"]["port"] = free_port()
        engagement = program.create(yaml.safe_dump(file, allow_unicode=True, sort_keys=False))
        assert people["chen.jing"].agree() == people["wang.fang"].agree() == 1
        judged = followed(program, people, program.start(engagement, "G1"))
        assert (judged["status"], judged["verdict"]) == ("finished", "pass"), judged["problem"]
        signed = people["chen.jing"].agree() + people["wang.fang"].agree()
        print(f"{signed} sign-offs of the first gate")
        waiting = program.start(engagement, "G1", rehearsal=True)
        wait_until(lambda: program.get(f"/attempts/{waiting}")["may"]["form"], PATIENCE_S, lambda: program.get(f"/attempts/{waiting}"))
        backups = site / "backups"
        backups.mkdir()
        os.chown(backups, SERVICE, SERVICE)
        recorded, anchor = everything(program, engagement, judged["id"]), stack.quadgate("audit", "head").strip()
        yield Site(stack, old, people, program, engagement, judged["id"], waiting, backups, recorded, anchor)
    finally:
        stack.down()


def everything(program: Program, engagement: str, attempt_id: str) -> dict[str, Any]:
    """Return what the API tells of an engagement and of an attempt: by content where a release may say it in other words."""
    shown, attempt = program.get(f"/engagements/{engagement}"), program.get(f"/attempts/{attempt_id}")
    judged = program.get(f"/attempts/{attempt_id}/verdict")
    bundle = zipfile.ZipFile(io.BytesIO(program.bytes(f"/attempts/{attempt_id}/evidence")))
    events, after = [], ""
    while after is not None:
        page = program.get(f"/attempts/{attempt_id}/events?limit=200" + (f"&cursor={after}" if after else ""))
        events += [event["id"] for event in page["items"]]
        after = page["next"]
    return {
        "engagement": {name: shown[name] for name in ("id", "code", "customer", "vendor", "site", "contract", "state")},
        "gates": [(row["gate"], row["verdict"], row["attempt_id"], row["attempts_used"], row["blocked_by"]) for row in shown["gates"]],
        "plan": program.get(f"/engagements/{engagement}/plan")["hash"],
        "attempt": {name: attempt[name] for name in ("id", "gate", "number", "rehearsal", "status", "verdict", "because", "plan_hash")},
        "judged": {name: judged[name] for name in ("hash", "document")},
        "steps": [(step["id"], step["key"], step["status"], step["try_no"]) for step in attempt["steps"]],
        "events": events,
        "evidence": {name: hashlib.sha256(bundle.read(name)).hexdigest() for name in bundle.namelist()},
        "reports": {report["id"]: hashlib.sha256(program.bytes(f"/reports/{report['id']}.pdf")).hexdigest() for report in attempt["reports"]},
    }


def whole(said: str) -> bool:
    return ("whole" in said or "完整" in said) and "NOT WHOLE" not in said


def test_the_backup_before_an_upgrade_is_whole_whichever_of_the_two_releases_makes_it(at: Site) -> None:
    assert at.stack.revision() == revisions(at.old.tree)[-1] != revisions(PRESENT.tree)[-1]
    assert whole(at.stack.run(at.backups, "backup", "/backup/by-the-old"))
    at.stack.carry_in(PRESENT)  # `docker compose build` comes first in the order of the page, and `run` then takes the new image
    assert whole(at.stack.run(at.backups, "backup", "/backup/by-the-new"))
    for name in ("by-the-old", "by-the-new"):
        assert whole(at.stack.run(at.backups, "backup", "--verify", f"/backup/{name}")), name
    assert at.stack.revision() == revisions(at.old.tree)[-1]  # to make a backup upgrades nothing


def test_up_brings_the_schema_and_every_service_to_the_new_release_and_all_that_was_recorded_is_there(at: Site) -> None:
    before = at.stack.started()
    at.stack.up()
    at.stack.all_healthy()
    wait_until(at.program.answers, PATIENCE_S, "the API answers after the upgrade")
    assert at.stack.revision() == revisions(PRESENT.tree)[-1]
    after = at.stack.started()
    for service in OURS:
        old, new = ({image for key, (_, image, _) in found.items() if key.startswith(f"{service} ")} for found in (before, after))
        assert (len(old), len(new), old & new) == (1, 1, set()), service
    assert everything(at.program, at.engagement, at.judged) == at.recorded
    assert whole(at.stack.quadgate("audit", "verify", "--anchor", at.anchor))
    assert "李伟" in at.people["li.wei"].get("/")  # nobody has to sign in again
    assert whole(at.stack.run(at.backups, "backup", "/backup/after"))  # every stored file that a row refers to is there as it was written


def test_an_attempt_that_waited_for_a_person_goes_on_in_the_new_release(at: Site) -> None:
    waited = at.program.get(f"/attempts/{at.waiting}")
    assert (waited["status"], waited["may"]["form"]) == ("waiting", True)
    ended = followed(at.program, at.people, at.waiting)
    assert (ended["status"], ended["verdict"]) == ("finished", None), ended["problem"]


def test_a_second_up_changes_nothing(at: Site) -> None:
    before, head = at.stack.started(), at.stack.quadgate("audit", "head")
    at.stack.up()
    assert at.stack.started() == before
    assert (at.stack.revision(), at.stack.quadgate("audit", "head")) == (revisions(PRESENT.tree)[-1], head)


def test_the_backup_before_the_upgrade_brings_the_earlier_release_back(at: Site) -> None:
    at.stack.wipe()
    at.stack.carry_in(at.old)
    at.stack.up("postgres")
    wait_until(lambda: at.stack.health("postgres") == {"healthy"}, PATIENCE_S, "the database is healthy")
    at.stack.run(at.backups, "restore", "/backup/by-the-new")
    at.stack.up()
    at.stack.all_healthy()
    wait_until(at.program.answers, PATIENCE_S, "the API answers after the way back")
    assert at.stack.revision() == revisions(at.old.tree)[-1]
    assert everything(at.program, at.engagement, at.judged) == at.recorded
    assert whole(at.stack.quadgate("audit", "verify", "--anchor", at.anchor))
