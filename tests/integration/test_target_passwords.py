"""Sudo and passwords of targets: named in the engagement file, read from a private file or the environment, seen by nobody on the way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.attempts.models import StepEvent
from app.engagements.file import read_file
from app.engine.context import site_of
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Refused
from app.settings import settings
from app.targets.inventory import build
from gates.plan import load_yaml
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step
from tests.people import Cast
from tests.scenes import DEMO, engage

SECRET = "marzipan-canary-4711"
FAKE_SUDO = """#!/bin/sh
while [ $# -gt 0 ]; do case "$1" in -p) prompt=$2; shift 2;; -u) who=$2; shift 2;; -*) shift;; *) break;; esac; done
printf '%s' "$prompt" >&2
read -r given
for process in /proc/[0-9]*; do tr '\\0' ' ' < $process/cmdline; tr '\\0' ' ' < $process/environ; done >> "{log}" 2>/dev/null
[ "$given" = "$(cat "{expected}")" ] || {{ echo "Sorry, try again." >&2; exit 1; }}
echo "$who" >> "{log}.who"
exec "$@"
"""


def _with(host: dict[str, Any]) -> str:
    """Return the demo's engagement file with more keys for its host."""
    lines = "".join(f"      {key}: {value}\n" for key, value in host.items())
    name = next(iter(load_yaml(DEMO)["targets"]["hosts"]))
    head, _, tail = DEMO.partition(f"    {name}:")
    assert tail, "the demo's file changed its form"
    far = "    far01:\n      groups: [storage]\n      connection: ssh\n      address: 127.0.0.1\n      host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\n"
    return f"{head}{far}{lines}    {name}:{tail}"


def test_references_are_taken_and_a_secret_in_clear_is_refused_without_being_repeated() -> None:
    kept = read_file(_with({"become": "true", "become_password": "{env: QUADGATE_SECRET_FAR01}", "password": "{file: far01}"})).targets["hosts"][
        "far01"
    ]
    assert (kept["become_password"], kept["password"]) == ({"env": "QUADGATE_SECRET_FAR01"}, {"file": "far01"})
    for wrong in (SECRET, "{file: ../../etc/shadow}", "{env: HOME}", "{file: a, env: QUADGATE_SECRET_A}", f"{{value: {SECRET}}}", "{}"):
        with pytest.raises(BadInput) as caught:
            read_file(_with({"become": "true", "become_password": wrong}))
        assert "/targets/hosts/far01/become_password" in {e.pointer for e in caught.value.errors}
        assert SECRET not in str(caught.value)
    with pytest.raises(BadInput) as caught:
        read_file(_with({"become_user": "root"}))
    assert [e.pointer for e in caught.value.errors] == ["/targets/hosts/far01/become_user"]


def test_a_local_host_takes_no_key_that_only_ssh_would_read() -> None:
    text = _with({}).replace("connection: ssh\n", "connection: local\n")
    with pytest.raises(BadInput) as caught:
        read_file(text)
    assert {e.pointer for e in caught.value.errors} == {"/targets/hosts/far01/address", "/targets/hosts/far01/host_key"}


@pytest.mark.parametrize(("user", "root"), [("root", "/var/lib/quadgate"), ("quadgate", "/var/tmp/quadgate"), ("", "/var/tmp/quadgate")])
def test_what_root_puts_on_a_host_lies_where_systemd_ages_nothing_away(user: str, root: str, state: Path) -> None:
    host = {"groups": ["storage"], "connection": "ssh", "address": "192.0.2.1", "host_key": "ssh-ed25519 AAAA", **({"user": user} if user else {})}
    assert build(code="A", targets={"hosts": {"array01": host}}, state_dir=state).hostvars["array01"]["qg_root"] == root


def test_a_password_that_is_not_there_is_said_with_its_place(state: Path) -> None:
    folder = state / "credentials"
    folder.mkdir()
    (folder / "empty").touch(mode=0o600)
    ssh = {"groups": ["engine"], "connection": "ssh", "address": "127.0.0.1", "host_key": "ssh-ed25519 AAAA"}
    for reference, place in (
        ({"file": "gone"}, "credentials/gone"),
        ({"file": "empty"}, "credentials/empty"),
        ({"env": "QUADGATE_SECRET_X"}, "SECRET_X"),
    ):
        with pytest.raises(Refused, match=place):
            build(code="E", targets={"hosts": {"gpu01": {**ssh, "password": reference}}}, state_dir=state)
    (folder / "there").write_text(f"{SECRET}\n")
    (folder / "there").chmod(0o640)
    with pytest.raises(Refused, match="can be read by others"):
        build(code="E", targets={"hosts": {"gpu01": {**ssh, "password": {"file": "there"}}}}, state_dir=state)
    (folder / "there").chmod(0o600)
    made = build(code="E", targets={"hosts": {"gpu01": {**ssh, "password": {"file": "there"}}}}, state_dir=state)
    assert (made.hostvars["gpu01"]["ansible_password"], made.secrets) == (SECRET, (SECRET,))


@pytest.mark.parametrize(("given", "status"), [(SECRET, "finished"), ("wrong-canary-0815", "error")])
def test_a_playbook_becomes_another_user_by_the_password_and_nobody_sees_it(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, status: str
) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    log, expected = tmp_path / "log", tmp_path / "expected"
    expected.write_text(SECRET)
    (tmp_path / "sudo").write_text(FAKE_SUDO.format(log=log, expected=expected))
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    folder = state / "credentials"
    folder.mkdir()
    (folder / "sudo-gpu01").write_text(given)
    (folder / "sudo-gpu01").chmod(0o600)
    other = "nobody" if os.geteuid() == 0 else "root"  # who is somebody already need not become that
    host = {"groups": ["engine", "loadgen"], "connection": "local", "become": True, "become_user": other}
    host["become_password"] = {"file": "sudo-gpu01"}
    attempt_id = make_attempt(playbook_step(), hosts={"gpu01": host})
    drive(attempt_id, until=ended)
    problem = str(attempt_of(attempt_id).problem)
    assert attempt_of(attempt_id).status == status, problem
    (folder / "sudo-gpu01").unlink()
    with read_session() as s:
        events = "\n".join(f"{e.stdout} {e.data}" for e in s.scalars(select(StepEvent).where(StepEvent.attempt_id == attempt_id)))
    assert given not in events + problem + log.read_text()
    assert [str(path) for path in state.rglob("*") if path.is_file() and given.encode() in path.read_bytes()] == []
    if status == "finished":
        assert set(Path(f"{log}.who").read_text().split()) == {other}


def test_what_the_file_says_of_fabric_array_volume_and_offload_reaches_the_playbooks(cast: Cast) -> None:
    array = "{subsystem: nqn.2026-01.example:fx100, transport: rdma, portals: [{address: 10.0.0.1}], namespaces: 4}"
    volume = "{array: {kind: directory, mount: /mnt/kv}}"
    more = f"  fabric: {{mtu: 9000, priority: 3}}\n  array: {array}\n  volume: {volume}\n  offload: {{kind: lmcache}}\n"
    with write_session() as s:
        site = site_of(engage(s, cast, DEMO.replace("  hosts:\n", f"{more}  hosts:\n", 1), sealed=False), [])
    assert (site["fabric"], site["offload"], site["array"]["transport"]) == ({"mtu": 9000, "priority": 3}, {"kind": "lmcache"}, "rdma")
    assert "hosts" not in site
    with pytest.raises(BadInput) as caught:
        read_file(DEMO.replace("  hosts:\n", "  volume: md0\n  hosts:\n", 1))
    assert [e.pointer for e in caught.value.errors] == ["/targets/volume"]
