"""The injector: one function a fault. Each returns whether it struck; what is only armed strikes later, and is counted then (boundaries.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import redis

from app.engine import hints
from app.settings import ROOT, settings
from app.up import leftovers
from lanes.chaos import boundaries, scaled
from lanes.chaos.ends import FULL_S
from lanes.chaos.strike import Strike
from lanes.chaos.target_faults import CUTS, cut, kill_probe, kill_ssh, reboot_target
from lanes.chaos.wire import KILLED

STEPS_S = (-20, -7, 7, 20, 7_200, -7_200, 28_800)
FOR_GOOD_S = 3600
RARE = ("report", "manual")  # kinds of step that not every attempt has
ARMED_AT: Counter[tuple[str, str]] = Counter()  # cancels by kind and status of step, over all databases
MET_AT: Counter[tuple[str, str]] = Counter()  # those of them that were tried there


def _kill_part(strike: Strike, name: str) -> bool:
    pid = strike.fleet.supervisor.pids().get(name)
    if pid is None:
        return False
    os.kill(pid, signal.SIGKILL)
    return True


def kill_worker(strike: Strike) -> bool:
    """SIGKILL of the worker with its children."""
    return bool(strike.fleet.supervisor.kill_worker())


def kill_beat(strike: Strike) -> bool:
    """SIGKILL of the scheduler."""
    return _kill_part(strike, "beat")


def stop_beat(strike: Strike) -> bool:
    """SIGSTOP of the scheduler, which lives and sends nothing."""
    pid = strike.fleet.supervisor.pids().get("beat")
    if pid is None:
        return False
    os.kill(pid, signal.SIGSTOP)
    return True


def kill_web(strike: Strike) -> bool:
    """SIGKILL of the web server."""
    return _kill_part(strike, "web")


def kill_host(strike: Strike) -> bool:
    """SIGKILL of one playbook host; what it started lives on."""
    hosts = strike.fleet.supervisor.host_pids()
    if not hosts:
        return False
    pid = strike.dice.choice(hosts)
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        strike.whose = tuple(soak.id for soak in strike.fleet.soaks if soak.id in words)  # of a round there are several
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def cancel(strike: Strike) -> bool:
    """Arm a person's cancel for an attempt, at the state of a step that saw the fewest, and of these at one that few attempts come to."""
    soak, fleet = strike.soak, strike.fleet
    if soak is None or soak.facts or soak.id in fleet.armed:
        return False
    kinds: Counter[str] = Counter()
    for at, count in ARMED_AT.items():
        kinds[at[0]] += count
    mine = [at for at in boundaries.CANCELS if soak.meets(at[0])]
    kind, status = at = min(mine, key=lambda at: (MET_AT[at], ARMED_AT[at], at[0] not in RARE, kinds[at[0]]))
    ARMED_AT[at] += 1
    soak.cancel_at = f"{kind}/{status}"
    fleet.armed[soak.id] = soak
    boundaries.arm_cancel(fleet.flags, soak.id, kind, status)
    return True


def _die_at(slug: str) -> Callable[[Strike], bool]:
    def die(strike: Strike) -> bool:
        return boundaries.arm(strike.fleet.flags, slug)

    die.__doc__ = f"Let a worker process be killed at the boundary `{slug}`."
    return die


def flush(strike: Strike) -> bool:
    """FLUSHALL."""
    with suppress(redis.RedisError):
        return bool(strike.broker().flushall())
    return False


def restart_broker(strike: Strike) -> bool:
    """SIGKILL of the broker, which is started again from its append-only file."""
    return _kill_part(strike, "broker")


def reset_connections(strike: Strike) -> bool:
    """Cut every connection of the broker, several times in quick succession."""
    struck = False
    for _ in range(4):
        with suppress(redis.RedisError):
            strike.broker().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            struck = True
        time.sleep(strike.dice.uniform(0.1, 0.4))
    return struck


def restart_database(strike: Strike) -> bool:
    """Stop PostgreSQL as a crash would, and start it."""
    if strike.fleet.postgres is None:
        return False
    strike.fleet.postgres.stop_and_start()
    return True


def cut_commit(strike: Strike) -> bool:
    """Cut a connection after COMMIT was sent and done, so that its outcome is unknown to who sent it."""
    if strike.fleet.postgres is None:
        return False
    proxy = strike.fleet.postgres.proxy
    before, proxy.armed = proxy.cuts, 1
    deadline = time.monotonic() + 5
    while proxy.cuts == before and time.monotonic() < deadline:
        time.sleep(0.02)
    proxy.armed = 0
    return proxy.cuts > before


def two_beats(strike: Strike) -> bool:
    """Run a second scheduler for some seconds."""
    from app.up import supervisor

    environment = {**os.environ, leftovers.SUPERVISED: str(strike.fleet.folder), "QUADGATE_BROKER_URL": settings().broker_url}
    argv = supervisor.beat_argv(strike.fleet.folder / "second")
    (strike.fleet.folder / "second").mkdir(exist_ok=True)
    with (strike.fleet.folder / "second" / "log").open("ab") as log:
        beat = subprocess.Popen(argv, env=environment, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    _later(4.0, lambda: (beat.kill(), beat.wait()))
    return True


def deliver_twice(strike: Strike) -> bool:
    """Deliver every message of some seconds twice and older ones after it, and hints of generations that are gone or still to come."""
    flag = strike.fleet.flags / "twice"
    flag.touch()
    _later(3.0, lambda: flag.unlink(missing_ok=True))
    for soak in strike.fleet.open():
        for generation in strike.dice.sample(range(12), 3):
            hints.publish_advance(soak.id, generation, settings().node)
            hints.publish_advance(soak.id, None, settings().node)
    return True


def _fill(folder: Path) -> bool:
    if not folder.is_mount():
        return False
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while file.write(b"\0" * size) == size:
                    pass
    _later(FULL_S, lambda: ballast.unlink(missing_ok=True))
    return True


def fill_evidence(_: Strike) -> bool:
    """Fill the file system of the evidence store for some seconds."""
    return _fill(settings().evidence_dir)


def fill_runs(_: Strike) -> bool:
    """Fill the file system of the run directories for some seconds: events, packs and results find no room."""
    return _fill(settings().runs_dir)


def step_clock(strike: Strike) -> bool:
    """Set the controller's clock: by seconds and back again, as a correction would, or by hours for good, as when a machine wakes up."""
    flag, seconds = strike.fleet.flags / "clock", strike.dice.choice(STEPS_S)
    for_good = abs(seconds) >= FOR_GOOD_S
    strike.how = f"{seconds:+d} s {'for good' if for_good else 'and back'}"
    strike.fleet.clock_s += seconds if for_good else 0
    scaled.set_clock(flag, strike.fleet.clock_s + (0 if for_good else seconds))
    if not for_good:
        _later(1.5, lambda: scaled.set_clock(flag, strike.fleet.clock_s))
    return True


def _later(seconds: float, what: Callable[[], object]) -> None:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()


FAULTS: dict[str, Callable[[Strike], bool]] = {
    "SIGKILL worker": kill_worker,
    "SIGKILL beat": kill_beat,
    "SIGSTOP beat": stop_beat,
    "SIGKILL web": kill_web,
    "SIGKILL playbook host": kill_host,
    "SIGKILL probe": kill_probe,
    "Redis FLUSHALL": flush,
    "Redis SIGKILL and restart": restart_broker,
    "Redis connections reset": reset_connections,
    "PostgreSQL stop and start": restart_database,
    "PostgreSQL cut after COMMIT": cut_commit,
    "two beats": two_beats,
    "messages twice, out of order": deliver_twice,
    "evidence disk full": fill_evidence,
    "runs disk full": fill_runs,
    "controller clock step": step_clock,
    **{fault: cut(playbook) for playbook, fault in CUTS.items()},
    **{fault: kill_ssh(status) for status, fault in KILLED.items()},
    "target reboot": reboot_target,
    "cancel": cancel,
    **{fault: _die_at(slug) for fault, slug in boundaries.BOUNDARIES.items()},
}
ARMED = ("cancel", *CUTS.values(), *boundaries.BOUNDARIES)  # counted when they strike
