"""Ask a job how it stands, on the target: the probe's answer goes to stdout without the journals' chunks, which go to a file to be fetched.

`python3 -I - PROBE ROOT JOB poll CHUNKS_FILE OFFSETS_JSON ATTEMPT FENCE` or `... collect TAR_FILE {} ATTEMPT FENCE`. A controller that took the
job over from another makes its higher fence known by asking. One that was
replaced by another learns that, and nothing else. Chunks can be a megabyte; on stdout they would go through
every event and log. `collect` packs the job's evidence when it does not run any more, and cuts a large pack into parts: where a host is entered by
an ordinary user, Ansible brings a file home whole in memory, on both sides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Sequence

ENDED = ("exited", "dead")
PART_BYTES = 32 << 20


def probe(path: str, arguments: List[str], holder: Sequence[str] = ()) -> Dict[str, Any]:
    """Run one command of the probe and return its answer; on a failure end with its sentence and its exit code."""
    done = subprocess.run([sys.executable, "-I", path, *arguments, *holder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode and holder and b"unrecognized arguments" in done.stderr:  # a job that was begun by an earlier version of us has its probe
        return probe(path, arguments)
    if done.returncode:
        sys.stderr.write(done.stderr.decode("utf-8", "replace"))
        raise SystemExit(done.returncode)
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def write_whole(path: str, data: Dict[str, Any]) -> None:
    """Write a JSON file by rename, readable by its owner only."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path + ".tmp", "w", encoding="utf-8") as stream:
        json.dump(data, stream)
    os.replace(path + ".tmp", path)


def journal_bytes(folder: str) -> int:
    """Return how many bytes the journals of a job hold now, which tells how long its pack will take to come home."""
    if not os.path.isdir(folder):
        return 0
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".jsonl"))


def parts_of(path: str, largest: int = PART_BYTES) -> List[str]:
    """Cut a file into parts PATH.0000, PATH.0001, ... from its end on, so that it takes one part of room more. Return their names in order.

    A file that is not larger than one part stays as it is.
    """
    folder, name = os.path.split(path)
    for old in os.listdir(folder):
        if old.startswith(name + ".") and old[len(name) + 1 :].isdigit():  # of a collect before this one
            os.unlink(os.path.join(folder, old))
    count = -(-os.path.getsize(path) // largest)
    if count <= 1:
        return [name]
    names = ["%s.%04d" % (name, n) for n in range(count)]
    with open(path, "r+b") as whole:
        for n in range(count - 1, 0, -1):
            whole.seek(n * largest)
            fd = os.open(os.path.join(folder, names[n]), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as part:
                part.write(whole.read(largest))
            whole.truncate(n * largest)
    os.rename(path, os.path.join(folder, names[0]))
    return names


def main(path: str, root: str, job: str, verb: str, out: str, offsets: str = "{}", attempt: str = "", fence: str = "0") -> None:
    """Print {job, state, heartbeat, exit, chunks: [names]} and, after `collect` of an ended job, `parts`: the files that are its pack."""
    largest = "1048576" if verb == "poll" else "0"
    answer = probe(
        path, ["job", "poll", "--root", root, "--job", job, "--from", offsets, "--max-bytes", largest], ["--attempt", attempt, "--fence", fence]
    )
    chunks = answer.pop("chunks", {})
    if answer["state"] == "taken_over":  # what lies there to be fetched is the other controller's
        print(json.dumps({**answer, "parts": []}))
        return
    answer.update(packed=False, journal_bytes=journal_bytes(os.path.join(root, "jobs", job)))
    if verb == "poll":
        write_whole(out, chunks)
    elif answer["state"] in ENDED:
        os.makedirs(os.path.dirname(out), mode=0o700, exist_ok=True)
        probe(path, ["pack", "--root", root, "--job", job, "--out", out])
        answer.update(packed=True, parts=parts_of(out))
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
