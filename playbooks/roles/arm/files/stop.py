"""Stop an attempt's jobs and its engine on the target, and say what could not be stopped.

`python3 -I - PROBE ROOT ATTEMPT FENCE [look|attempt|all [LEFT [TAKEN_OVER]]]`. `look` only prints {why}. With `all` every job below the root is
stopped, whoever started it (for a removal).
LEFT is a JSON list of Ansible's temporary directories (or ends of their paths) of playbooks that were ended on the controller: modules that run
from there go on.
TAKEN_OVER is what another host of the attempt said of it: polls of a new controller reach the client alone, and the engine may run elsewhere.
Prints {state, jobs, modules, engine, measured, known, why, could_not_stop: [sentences]}: `modules` counts the processes of such modules that were
ended; `known` are the ids of the attempt's jobs that this host has, whatever became of them;
`state` is `stopped`, `running` when something goes on, or `taken_over`: the host knows a higher fence of this very attempt, so another controller
has it now, and its job and engine are none of ours to stop (`why` says so); `measured` is false when no job of the attempt made a measured request
here, else true: also where that cannot be told.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

REFUSED = 3
MODULE_PATIENCE_S = 1.5
JOB_PATIENCE_S = "8"  # of a cancel; a removal has time
MEASURING = {"measure", "repeat", "soak"}


def probe(path: str, arguments: List[str], given: Optional[Dict[str, Any]] = None) -> Tuple[int, Dict[str, Any], str]:
    """Run one command of the probe. Return exit code, answer and sentence."""
    data = json.dumps(given).encode() if given is not None else b""
    done = subprocess.run([sys.executable, "-I", path, *arguments], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    return done.returncode, answer, done.stderr.decode("utf-8", "replace").strip()[-600:]


def taken_over(root: str, attempt: str, fence: int) -> str:
    """Return a sentence when the host has seen a higher fence of this attempt, else nothing. The probe asks again at each job."""
    try:
        with open(os.path.join(os.path.abspath(root), "hostlock.json"), encoding="utf-8") as stream:
            held = json.load(stream)
        if held["attempt"] == attempt and int(held["fence"]) > fence:
            seen = held["fence"]
            return f"Attempt {attempt} was taken over here with fencing number {seen}; this order carries {fence}. Nothing of it was stopped."
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no lock, or one that the probe refuses with its own sentence
    return ""


def stop_jobs(path: str, root: str, attempt: str, fence: str, everything: bool, troubles: List[str]) -> List[Dict[str, Any]]:
    """Stop the attempt's jobs (or all). A job that goes on, or that nobody can ask about, becomes a sentence."""
    holder = [] if everything else ["--attempt", attempt, "--fence", fence]
    code, listed, sentence = probe(path, ["job", "list", "--root", root])
    if code:
        troubles.append(f"The jobs below {root} cannot be listed: {sentence}")
    stopped = []
    for job in listed.get("jobs", []):
        if job["state"] != "running" or not (everything or job["job"].startswith(attempt + "-")):
            continue
        words = ["job", "stop", "--root", root, "--job", job["job"], *([] if everything else ["--wait", JOB_PATIENCE_S])]
        code, answer, sentence = probe(path, [*words, *holder])
        if code and holder and "unrecognized arguments" in sentence:  # the probe of an earlier version of us, which knows no fence here
            code, answer, sentence = probe(path, words)
        stopped.append({"job": job["job"], "state": answer.get("state", "unknown"), "killed": bool(answer.get("killed"))})
        if code or answer.get("state") == "running":
            troubles.append(f"The job {job['job']} goes on: {sentence or 'it did not end'}")
    return stopped


def measured(root: str, attempt: str) -> bool:
    """Tell whether a job of the attempt made a measured request, or may have. Read after the stop, from journals that nobody writes any more."""
    folder = os.path.join(os.path.abspath(root), "jobs")
    return any(_measured(os.path.join(folder, name)) for name in known(root, attempt))


def known(root: str, attempt: str) -> List[str]:
    """Return the ids of the attempt's jobs that this host has: one that it had and lost proves nothing."""
    folder = os.path.join(os.path.abspath(root), "jobs")
    return sorted(name for name in os.listdir(folder) if name.startswith(attempt + "-")) if os.path.isdir(folder) else []


def _measured(folder: str) -> bool:
    """Tell it of one job, by its phases: each is journaled at its end, also by a job that is stopped, and before any later request begins.

    An attendant makes no request: of what its driver did the driver's host tells.
    """
    try:
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
            if json.load(stream).get("kind") == "attend":
                return False
    except (OSError, ValueError, AttributeError):
        pass
    try:
        with open(os.path.join(folder, "phases.jsonl"), encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
    except FileNotFoundError:
        return any(name.startswith("started") for name in os.listdir(folder))  # begun, and nothing tells how far
    except (OSError, ValueError):
        return True
    seen = {str(row.get("phase")) for row in rows if isinstance(row, dict)}
    done = os.path.exists(os.path.join(folder, "exit.json"))  # without it the job was killed, and its last phase may be missing
    return bool(seen & MEASURING) or not done


def end_modules(left: List[str], troubles: List[str]) -> int:
    """End what runs from the temporary directories of ended playbooks, with its children. Return how many processes there were."""
    ended: Set[int] = set()
    for sign in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + MODULE_PATIENCE_S
        for pid in sorted({*_family(left), *(pid for pid in ended if _parent(pid) is not None)}):
            try:
                os.kill(pid, sign)
                ended.add(pid)
            except ProcessLookupError:
                pass
            except PermissionError as error:
                troubles.append(f"The process {pid} of an ended playbook goes on: {error.strerror}")
        while (going_on := [pid for pid in ended if _parent(pid) is not None]) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not going_on:
            break
    else:
        troubles.extend(f"The process {pid} of an ended playbook goes on: it did not end." for pid in going_on)
    return len(ended)


def _family(left: List[str]) -> List[int]:
    """Return the processes whose words name one of the directories, and all below them; never ourselves nor who started us."""
    parents = {int(name): parent for name in os.listdir("/proc") if name.isdigit() and (parent := _parent(int(name))) is not None}
    ours, pid = {os.getpid()}, os.getpid()
    while pid in parents:
        pid = parents[pid]
        ours.add(pid)
    found = {pid for pid in parents if any(os.fsencode(path) + b"/" in _words(pid) for path in left)} - ours
    while more := {pid for pid, parent in parents.items() if parent in found} - found - ours:
        found |= more
    return sorted(found)


def _words(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def _parent(pid: int) -> Optional[int]:
    """Return the parent of a living process, None when there is no such process or it is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[1])


def stop_engine(path: str, root: str, everything: bool, troubles: List[str]) -> str:
    """Stop the engine that the pid file names. Return its state. A removal lets it write back what it holds; after a cancel nobody reads that."""
    spec = {"name": "engine", "argv": [], "pid_file": f"{root}/engine/engine.pid"}
    if not os.path.isdir(f"{root}/engine"):
        return "absent"
    code, answer, sentence = probe(path, ["engine", "stop" if everything else "kill", "--spec", "/dev/stdin"], spec)
    if code and "invalid choice" in sentence:  # the probe of an earlier version of us, which knows one way only
        code, answer, sentence = probe(path, ["engine", "stop", "--spec", "/dev/stdin"], {**spec, "stop_timeout_s": 3})
    if code:
        troubles.append(f"The engine of {spec['pid_file']} goes on: {sentence}")
        return "running"
    return str(answer.get("state"))


def stop_far_ends(path: str, root: str, troubles: List[str]) -> None:
    """End what waits for the other end of an RDMA test (roles/rdma). It would end by itself, minutes later."""
    folder = os.path.join(root, "rdma")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".pid"):
            spec = {"name": name, "argv": [], "pid_file": os.path.join(folder, name)}
            code, _, sentence = probe(path, ["engine", "kill", "--spec", "/dev/stdin"], spec)
            if code:
                troubles.append(f"The far end of {spec['pid_file']} goes on: {sentence}")


def main(path: str, root: str, attempt: str, fence: str, what: str = "attempt", left: str = "[]", elsewhere: str = "") -> None:
    """Stop and print what became of it."""
    troubles: List[str] = []
    why = (taken_over(root, attempt, int(fence)) or elsewhere) if what != "all" else ""
    if what == "look":
        print(json.dumps({"why": why}))
        return
    modules = end_modules([str(folder) for folder in json.loads(left)], troubles)
    jobs: List[Dict[str, Any]] = []
    engine = "absent"
    if why:
        engine = "left alone"
    elif os.path.isfile(path):
        jobs = stop_jobs(path, root, attempt, fence, what == "all", troubles)
        stop_far_ends(path, root, troubles)
        code, _, sentence = (0, {}, "") if what == "all" else probe(path, ["lock", "take", "--root", root, "--attempt", attempt, "--fence", fence])
        if code == REFUSED:
            engine = "left alone"  # the host belongs to a later attempt, and so does the engine that runs there
        elif code:
            troubles.append(f"The host lock cannot be taken, so the engine was left alone: {sentence}")
        else:
            engine = stop_engine(path, root, what == "all", troubles)
            if what != "all":
                probe(path, ["lock", "release", "--root", root, "--attempt", attempt, "--fence", fence])
    state = "taken_over" if why else "running" if troubles else "stopped"
    answer = {"state": state, "why": why, "jobs": jobs, "modules": modules, "engine": engine, "could_not_stop": troubles}
    print(json.dumps({**answer, "measured": bool(why or troubles) or measured(root, attempt), "known": known(root, attempt)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
