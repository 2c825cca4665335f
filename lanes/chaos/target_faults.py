"""What happens to a target and on the way to it: its job killed, a reboot, a connection that is lost. faults.py has all others."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lanes.chaos.soak import Soak
from lanes.chaos.strike import Strike
from tests.processes import mentions

CUTS = {"job_start.yml": "SSH cut in start", "job_poll.yml": "SSH cut in poll", "job_collect.yml": "SSH cut in collect"}


def _job_pid(soak: Soak) -> int | None:
    """Return the process of a job that has begun and not ended."""
    folder = _job_folder(soak)
    if (folder / "exit.json").exists() or not (folder / "started").exists() or "soak" not in soak.seen[0]:
        return None
    for pid in mentions(soak.root):
        with suppress(OSError):  # it ended meanwhile
            if b"--lock-fd" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    return None


def _job_folder(soak: Soak) -> Path:
    return soak.root / "jobs" / soak.job


def _under_load(soak: Soak) -> bool:
    """Tell whether load and telemetry of a soak are on its target's disk: a reboot before that is none of the soak."""
    with suppress(OSError):
        folder = _job_folder(soak)
        return b'"soak"' in (folder / "records.jsonl").read_bytes() and b"\n" in (folder / "telemetry.jsonl").read_bytes()
    return False


def _kill_before_its_end(soak: Soak, pid: int, beforehand: Callable[[], object] = lambda: None) -> bool:
    """SIGKILL a job that has not said its end yet: it is held first, so that it cannot say it between the look and the kill."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        if (_job_folder(soak) / "exit.json").exists():
            os.kill(pid, signal.SIGCONT)
            return False
        beforehand()
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def kill_probe(strike: Strike) -> bool:
    """SIGKILL of the job on the target. A fact for the verdict: it cannot pass any more."""
    pid = _job_pid(strike.soak) if strike.soak and not strike.soak.facts else None
    if strike.soak is None or pid is None or not _kill_before_its_end(strike.soak, pid):
        return False
    strike.soak.facts.add("probe")
    strike.whose = (strike.soak.id,)
    return True


def reboot_target(strike: Strike) -> bool:
    """Kill the job under its load and let the target be in another boot, where it goes on. A fact for the verdict, which wants the cause."""
    soak = strike.soak
    pid = _job_pid(soak) if soak and not soak.facts and _under_load(soak) else None
    if soak is None or pid is None:
        return False
    boot = str(uuid.UUID(int=strike.dice.getrandbits(128)))
    if not _kill_before_its_end(soak, pid, lambda: (soak.root / "boot_id").write_text(boot)):
        return False
    soak.facts.add("reboot")
    strike.whose = (soak.id,)
    return True


def kill_ssh(status: str) -> Callable[[Strike], bool]:
    """Return the fault that kills the connection of a real sshd while a job is in this status behind it."""

    def kill(strike: Strike) -> bool:
        soak, wire = strike.soak, strike.fleet.wire
        if soak is None or wire is None or not soak.real or soak.seen[0] != "soak" or not soak.seen[1].endswith(f"/{status}"):
            return False
        strike.whose = tuple(one.id for one in strike.fleet.open() if one.real)  # one server is before all of them, and a round asks several
        return wire.kill()

    kill.__doc__ = f"Kill the connection of a real sshd while a job is {status} behind it."
    return kill


def cut(playbook: str) -> Callable[[Strike], bool]:
    """Return the fault that loses the connection in a playbook."""

    def lose(strike: Strike) -> bool:
        soak = strike.soak
        if soak is None or soak.real or soak.facts or soak.seen[0] not in ("", "prepare", *soak.jobs):
            return False
        flag = soak.root / f"cut-{playbook}"
        if flag.exists():
            return False
        flag.write_text(strike.dice.choice(("before", "during", "after")))
        return True

    lose.__doc__ = f"Lose the connection in {playbook}: before anything was done, while it is done and brought home, or after it."
    return lose
