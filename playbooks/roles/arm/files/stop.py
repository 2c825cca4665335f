"""Stop an attempt's jobs and its engine on the target, and say what could not be stopped.

`python3 -I - PROBE ROOT ATTEMPT FENCE [all]`. With `all` every job below the root is stopped, whoever started it (for a removal).
Prints {state, jobs, engine, could_not_stop: [sentences]}: `state` is `stopped`, or `running` when something goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

REFUSED = 3


def probe(path: str, arguments: List[str], given: Optional[Dict[str, Any]] = None) -> Tuple[int, Dict[str, Any], str]:
    """Run one command of the probe. Return exit code, answer and sentence."""
    data = json.dumps(given).encode() if given is not None else b""
    done = subprocess.run([sys.executable, "-I", path, *arguments], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    return done.returncode, answer, done.stderr.decode("utf-8", "replace").strip()[-600:]


def stop_jobs(path: str, root: str, attempt: str, everything: bool, troubles: List[str]) -> List[Dict[str, Any]]:
    """Stop the attempt's jobs (or all). A job that goes on, or that nobody can ask about, becomes a sentence."""
    code, listed, sentence = probe(path, ["job", "list", "--root", root])
    if code:
        troubles.append(f"The jobs below {root} cannot be listed: {sentence}")
    stopped = []
    for job in listed.get("jobs", []):
        if job["state"] != "running" or not (everything or job["job"].startswith(attempt + "-")):
            continue
        code, answer, sentence = probe(path, ["job", "stop", "--root", root, "--job", job["job"]])
        stopped.append({"job": job["job"], "state": answer.get("state", "unknown"), "killed": bool(answer.get("killed"))})
        if code or answer.get("state") == "running":
            troubles.append(f"The job {job['job']} goes on: {sentence or 'it did not end'}")
    return stopped


def stop_engine(path: str, root: str, troubles: List[str]) -> str:
    """Stop the engine that the pid file names. Return its state."""
    spec = {"name": "engine", "argv": [], "pid_file": f"{root}/engine/engine.pid"}
    if not os.path.isdir(f"{root}/engine"):
        return "absent"
    code, answer, sentence = probe(path, ["engine", "stop", "--spec", "/dev/stdin"], spec)
    if code:
        troubles.append(f"The engine of {spec['pid_file']} goes on: {sentence}")
        return "running"
    return str(answer.get("state"))


def main(path: str, root: str, attempt: str, fence: str, what: str = "attempt") -> None:
    """Stop and print what became of it."""
    troubles: List[str] = []
    jobs: List[Dict[str, Any]] = []
    engine = "absent"
    if os.path.isfile(path):
        jobs = stop_jobs(path, root, attempt, what == "all", troubles)
        code, _, sentence = (0, {}, "") if what == "all" else probe(path, ["lock", "take", "--root", root, "--attempt", attempt, "--fence", fence])
        if code == REFUSED:
            engine = "left alone"  # the host belongs to a later attempt, and so does the engine that runs there
        elif code:
            troubles.append(f"The host lock cannot be taken, so the engine was left alone: {sentence}")
        else:
            engine = stop_engine(path, root, troubles)
            if what != "all":
                probe(path, ["lock", "release", "--root", root, "--attempt", attempt, "--fence", fence])
    print(json.dumps({"state": "running" if troubles else "stopped", "jobs": jobs, "engine": engine, "could_not_stop": troubles}))


if __name__ == "__main__":
    main(*sys.argv[1:])
