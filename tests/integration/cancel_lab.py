"""An attempt on two hosts behind SSH whose job has begun: one answers, the other is cut so that it accepts a connection and then says nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.attempts.models import Attempt, Step
from app.engine import runs
from app.kit.clock import now
from app.kit.db import database_now, write_session
from app.settings import ROOT, settings
from tests.engine_kit import attempt_of, drive, ended, job_step, make_attempt, steps_of
from tests.integration.playbook_lab import PlaybookLab
from tests.integration.ssh_lab import ADDRESSES, ssh_lab

MODULE = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); open(sys.argv[1], 'w').close(); time.sleep(600)"


@dataclass
class CancelLab:
    """The attempt, and the process of an ended playbook that goes on on the host that answers."""

    attempt_id: str
    left: subprocess.Popen[bytes]
    cut: str  # address of the host that is cut

    def cancel(self) -> tuple[Attempt, float]:
        """Cancel the attempt as a person does; return how it ended and after how many seconds."""
        began = time.monotonic()
        with write_session() as s:
            row = s.get_one(Attempt, self.attempt_id)
            row.cancel_requested_at, row.cancel_reason, row.next_due_at = now(), "a person", database_now(s)
        drive(self.attempt_id, until=ended)
        return attempt_of(self.attempt_id), time.monotonic() - began


@contextmanager
def cancel_lab() -> Iterator[CancelLab]:
    """Make the hosts and the attempt; the state folder is the caller's. The playbooks are the product's."""
    with ExitStack() as stack:
        lab = stack.enter_context(ssh_lab())
        silent = stack.enter_context(socket.create_server((ADDRESSES["gpu02"], 0), backlog=64))  # the kernel accepts, and nobody reads
        settings().playbook_dir = ROOT / "playbooks"
        hosts = {name: _described(lab, name) for name in ADDRESSES}
        hosts["gpu02"]["port"] = silent.getsockname()[1]
        attempt_id = make_attempt(job_step(), hosts=hosts)
        with write_session() as s:
            attempt, step = s.get_one(Attempt, attempt_id), s.get_one(Step, steps_of(attempt_id)[0].id)
            attempt.status, step.status, step.job_id = "running", "running", f"{attempt_id}-run-1"
        left = stack.enter_context(_module(attempt_id, lab.folder))
        yield CancelLab(attempt_id, left, f"{ADDRESSES['gpu02']}:{hosts['gpu02']['port']}")


def _described(lab: PlaybookLab, name: str) -> dict[str, Any]:
    """Return a host of the lab as an engagement describes it."""
    known = lab.hosts[name]
    keys = Path(known["ansible_ssh_private_key_file"]).parent / "known_hosts"
    mark = f"[{known['ansible_host']}]:{known['ansible_port']} "
    pinned = next(line.removeprefix(mark) for line in keys.read_text().splitlines() if line.startswith(mark))
    return {
        "groups": ["engine", "loadgen"],
        "address": known["ansible_host"],
        "port": known["ansible_port"],
        "user": known["ansible_user"],
        "python": sys.executable,
        "root": known["qg_root"],
        "host_key": pinned,
        "credential": known["ansible_ssh_private_key_file"],
    }


@contextmanager
def _module(attempt_id: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Leave what a killed playbook leaves: its run without a result, and its module going on on a host."""
    run = runs.folder_of(attempt_id, "run-1", "start-1")
    run.mkdir(parents=True)
    for name in ("lock", "started"):
        (run / name).touch()
    where = folder / ".ansible" / "tmp" / runs.modules_of(run)  # as below the home of whoever connects
    program, told = where / "ansible-tmp-1" / "AnsiballZ_command.py", folder / "told"
    program.parent.mkdir(parents=True)
    program.write_text(MODULE)
    process = subprocess.Popen([sys.executable, str(program), str(told)], start_new_session=True)
    try:
        while not told.exists():
            assert process.poll() is None
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()
