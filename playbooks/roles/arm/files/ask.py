"""Ask a job how it stands, on the target: the probe's answer goes to stdout without the journals' chunks, which go to a file to be fetched.

`python3 -I - PROBE ROOT JOB poll CHUNKS_FILE OFFSETS_JSON ATTEMPT FENCE` or `... collect TAR_FILE {} ATTEMPT FENCE`. A controller that took the
job over from another makes its higher fence known by asking. Chunks can be a megabyte; on stdout they would go through
every event and log. `collect` packs the job's evidence when it does not run any more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Sequence

ENDED = ("exited", "dead")


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


def main(path: str, root: str, job: str, verb: str, out: str, offsets: str = "{}", attempt: str = "", fence: str = "0") -> None:
    """Print {job, state, heartbeat, exit, chunks: [names]} and, after `collect` of an ended job, `pack`."""
    largest = "1048576" if verb == "poll" else "0"
    answer = probe(
        path, ["job", "poll", "--root", root, "--job", job, "--from", offsets, "--max-bytes", largest], ["--attempt", attempt, "--fence", fence]
    )
    chunks = answer.pop("chunks", {})
    answer["packed"] = False
    if verb == "poll":
        write_whole(out, chunks)
    elif answer["state"] in ENDED:
        os.makedirs(os.path.dirname(out), mode=0o700, exist_ok=True)
        probe(path, ["pack", "--root", root, "--job", job, "--out", out])
        answer["packed"] = True
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
