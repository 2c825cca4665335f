"""Start, poll and stop detached jobs. Starting is idempotent and may be killed at any instruction: there is never a second job.

Who is alive is told by a flock and by nothing else. The starter takes it and hands the descriptor to the job at spawn:

    lock held                        somebody starts it or it runs
    lock free, no `started`          it never ran; starting is safe
    lock free, `started`, exit.json  it ended by itself
    lock free, `started`, no exit    it died; it is never run again, since a measured request may have happened. Only a soak that a reboot of the
                                     host cut off goes on, in the new boot and behind its own journals; of two hosts, also beside the one
                                     that rebooted (probe.reboot)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from typing import Any, Dict, Optional, Tuple

from probe import proc, reboot
from probe.clock import boot_id
from probe.errors import ProbeError, Refused
from probe.files import canonical, read_json, sync_dir, write_json, write_whole
from probe.hostlock import adopt, replaced_by, require_fence, require_not_replaced
from probe.jobspec import JOB_ID, check
from probe.selfexec import clean_environment, command, pinned_copy


def job_dir(root: str, job: str) -> str:
    """Return the directory of a job; refuse a name that would lead elsewhere."""
    if not JOB_ID.fullmatch(job):
        raise ProbeError("spec", "%r is not a job id." % job)
    return os.path.join(os.path.abspath(root), "jobs", job)


def start(root: str, spec: Dict[str, Any], key: bytes = b"") -> Dict[str, Any]:
    """Start the job or adopt the one that is there. Return {job, state: started|adopted|resumed, job_state, expected_s, boots_before, kept}.

    `resumed`: a soak, or what attends to one, goes on after a reboot of its host or of the other. `boots_before`: in how many boots it ran
    before; `kept`: {journal: bytes}, how much of its journals was whole when the present boot took them over. `key`: that a job and its attendant
    share; it goes to the process, and into no file.
    """
    check(spec)
    folder, fence = job_dir(root, spec["job"]), int(spec["fence"])
    require_fence(root, fence, "Job %s" % spec["job"])
    os.makedirs(folder, exist_ok=True)
    lock = _try_lock(folder)
    _same_or_refuse(folder, spec, fence)
    answer = {"job": spec["job"], "state": "adopted", "expected_s": _expected(spec)}
    again = lock is not None and any(cut(folder, read_json(os.path.join(folder, "job.json"))) for cut in (reboot.rebooted, reboot.parted))
    if lock is None or (reboot.ever_started(folder) and not again):
        if lock is not None:
            os.close(lock)
        answer.update(job_state=state_of(folder), boots_before=reboot.boots_before(folder), kept=read_json(os.path.join(folder, "kept")))
        return answer
    if again:
        return dict(answer, state="resumed", job_state="running", **_go_on(folder, lock, key))
    try:
        write_json(os.path.join(folder, "job.json"), spec)
        write_whole(os.path.join(folder, "fence"), b"%d\n" % fence)
        sync_dir(os.path.dirname(folder))
        _spawn(folder, lock, key)
    finally:
        os.close(lock)
    answer.update(state="started", job_state="running")
    return answer


def _go_on(folder: str, lock: int, key: bytes) -> Dict[str, Any]:
    """Let a soak go on after a reboot: its journals end at whole lines before anybody writes to them again. Return {boots_before, kept}."""
    try:
        reboot.require_medium(folder)
        for name in reboot.sizes(folder):
            reboot.mend(os.path.join(folder, name))
        kept = reboot.sizes(folder)
        write_json(os.path.join(folder, "kept"), kept)
        reboot.put_mark_aside(folder)
        _spawn(folder, lock, key)
    finally:
        os.close(lock)
    return {"boots_before": reboot.boots_before(folder), "kept": kept}


def _spawn(folder: str, lock: int, key: bytes) -> None:
    """Run the job in a session of its own, in a new exec without marker variables, with the lock's descriptor and nothing else of ours."""
    argv = command(pinned_copy(folder), "job", "run", "--dir", folder, "--lock-fd", str(lock))
    log = os.open(os.path.join(folder, "job.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    stdin = subprocess.PIPE if key else subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            argv, env=clean_environment(), cwd="/", stdin=stdin, stdout=log, stderr=log, start_new_session=True, pass_fds=(lock,)
        )
        child.returncode = 0  # we never wait for it; this keeps the interpreter from warning about it
        if child.stdin:
            with contextlib.suppress(BrokenPipeError), child.stdin:
                child.stdin.write(key.hex().encode("ascii"))
    finally:
        os.close(log)


def _same_or_refuse(folder: str, spec: Dict[str, Any], fence: int) -> None:
    there = read_json(os.path.join(folder, "job.json"))
    if there is None:
        return
    if _without_fence(there) != _without_fence(spec):
        raise Refused(
            "other_spec",
            "Job %s exists on this host with another specification (%s). A job id names one specification for ever; use a new id."
            % (spec["job"], ", ".join(_changed_keys(there, spec)) or "unreadable"),
        )
    seen = _fence(folder, there)
    if fence < seen:
        raise Refused("fence", "Job %s was started with fencing number %d; %d is older and may not touch it." % (spec["job"], seen, fence))
    if fence > seen:
        write_whole(os.path.join(folder, "fence"), b"%d\n" % fence)


def _without_fence(spec: Dict[str, Any]) -> bytes:
    return canonical({k: v for k, v in spec.items() if k != "fence"})


def _changed_keys(there: Dict[str, Any], spec: Dict[str, Any]) -> list:
    return sorted(k for k in set(there) | set(spec) if k != "fence" and canonical(there.get(k)) != canonical(spec.get(k)))


def _fence(folder: str, spec: Dict[str, Any]) -> int:
    try:
        with open(os.path.join(folder, "fence"), encoding="ascii") as f:
            return max(int(f.read()), int(spec["fence"]))
    except (OSError, ValueError):
        return int(spec["fence"])


def _expected(spec: Dict[str, Any]) -> Optional[float]:
    """Return the least time the job takes by its specification, in s; None for a run, whose length is a count of requests."""
    return float(spec["soak"]["seconds"]) if spec["kind"] == "soak" else None


def _try_lock(folder: str) -> Optional[int]:
    """Return the locked descriptor, or None when a starter or the job holds it.

    A poll holds the lock shared for microseconds; only a lock that stays held is somebody's, so a few tries are made.
    """
    fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            time.sleep(0.01)
    os.close(fd)
    return None


def state_of(folder: str) -> str:
    """Return running, exited, dead or absent. It never waits and leaves no trace."""
    try:
        fd = os.open(os.path.join(folder, "lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "absent"
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "running"  # also in the moment between exit.json and the end of the process
    finally:
        os.close(fd)
    if _exit(folder):
        return "exited"
    return "dead" if reboot.ever_started(folder) else "absent"


def _exit(folder: str) -> Optional[Dict[str, Any]]:
    found = read_json(os.path.join(folder, "exit.json"))
    return found if isinstance(found, dict) and "outcome" in found else None


def poll(
    root: str, job: str, offsets: Optional[Dict[str, int]] = None, max_bytes: int = 1 << 20, holder: Optional[Tuple[str, int]] = None
) -> Dict[str, Any]:
    """Return state, heartbeat, exit and what the journals hold beyond `offsets` (bytes), each chunk ending at a line end.

    `rebooted`: the job is dead because the host rebooted, and is of a soak that goes on once it is started again. `parted`: it ended because it
    lost the other host of such a soak, and goes on beside that one.

    `max_bytes` bounds the sum of all chunks; a single longer line is still given whole, so that a poll always gets on.
    The state is taken before the journals are read: after `exited` or `dead` a poll that returns no data has seen all.
    `holder` is (attempt, fence) of who asks: a controller that took a running job over makes its higher fence known by this. One that was replaced
    gets nothing but the state `taken_over` and `why`: two that bring one job's evidence home would disturb each other, and judge it twice.
    """
    folder = job_dir(root, job)
    if holder is not None:
        adopt(root, *holder)
        seen = replaced_by(root, *holder)
        if seen is not None:
            why = "Attempt %s was taken over here with fencing number %d; this order carries %d." % (holder[0], seen, holder[1])
            return {"job": job, "state": "taken_over", "heartbeat": None, "exit": None, "chunks": {}, "why": why}
    state = state_of(folder)
    answer: Dict[str, Any] = {"job": job, "state": state, "heartbeat": None, "exit": None, "chunks": {}}
    if state == "absent":
        return answer
    answer["boots_before"] = reboot.boots_before(folder)
    spec = read_json(os.path.join(folder, "job.json"))
    answer.update(rebooted=state == "dead" and reboot.rebooted(folder, spec), parted=state == "exited" and reboot.parted(folder, spec))
    answer["heartbeat"], answer["exit"] = read_json(os.path.join(folder, "heartbeat.json")), _exit(folder)
    left = max_bytes
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jsonl"):
            chunk = read_lines(os.path.join(folder, name), int((offsets or {}).get(name, 0)), left)
            left -= len(chunk["data"])
            answer["chunks"][name] = chunk
    return answer


def read_lines(path: str, start: int, max_bytes: int) -> Dict[str, Any]:
    """Return {from, to, data} of whole lines. An offset beyond the end is refused: the file is not the one that was read before."""
    with open(path, "rb") as f:
        size = f.seek(0, os.SEEK_END)
        if start > size or start < 0:
            raise ProbeError("offset", "Offset %d lies beyond the %d bytes of %s; it is another file. Fetch it from 0." % (start, size, path))
        f.seek(start)
        data = f.read(max(0, max_bytes))
        cut = data.rfind(b"\n") + 1
        if cut == 0 and max_bytes > 0 and len(data) == max_bytes:
            data += f.readline()
            cut = len(data) if data.endswith(b"\n") else 0
    return {"from": start, "to": start + cut, "data": data[:cut].decode("ascii", "replace")}


def stop(root: str, job: str, wait_s: float = 20.0, holder: Optional[Tuple[str, int]] = None) -> Dict[str, Any]:
    """Ask the job to end (SIGTERM), wait, and kill it when it does not. Return {job, state, was, killed}. Stopping twice is fine.

    `holder` is (attempt, fence) of who orders it. Refused when the attempt was taken over with a higher fence.
    """
    folder = job_dir(root, job)
    if holder is not None:
        require_not_replaced(root, holder[0], holder[1], "Job %s" % job)
    was = state_of(folder)
    answer = {"job": job, "was": was, "state": was, "killed": False}
    if was != "running":
        return answer
    end = time.monotonic() + wait_s
    asked = False
    while state_of(folder) == "running" and time.monotonic() < end:
        process = _process(folder)
        if process and not asked:
            os.kill(process["pid"], signal.SIGTERM)
            asked = True
        time.sleep(0.05)
    process = _process(folder)
    if state_of(folder) == "running" and process:
        os.kill(process["pid"], signal.SIGKILL)
        answer["killed"] = True
        for _ in range(100):
            if state_of(folder) != "running":
                break
            time.sleep(0.05)
    answer["state"] = state_of(folder)
    return answer


def _process(folder: str) -> Optional[Dict[str, Any]]:
    """Return {pid, start_ticks} of the job's own process when exactly that one lives."""
    found = read_json(os.path.join(folder, "started"))
    if not found or found.get("boot_id") != boot_id() or not proc.is_alive(found["pid"], found["start_ticks"]):
        return None
    return dict(found)


def list_jobs(root: str) -> Dict[str, Any]:
    """Return {jobs: [{job, state}]} of everything below the root."""
    folder = os.path.join(os.path.abspath(root), "jobs")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {"jobs": [{"job": name, "state": state_of(os.path.join(folder, name))} for name in names]}
