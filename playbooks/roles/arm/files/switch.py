"""Switch the engine of this host to another arm: write its files, make room for its KV, and start it when there is something to store.

`python3 -I - ORDER` with ORDER a JSON object {probe, root, attempt, fence, job, files: {path: content}, spec, kv_dirs, media, store, kv_bytes}. A run
that only measures needs no engine yet: its job restarts the engine itself, to begin cold. Once the job is known, nothing is touched.
An attendant of another job that still waits for its driver is ended first: when it gave up, it would end the engine of this one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List

MARK = ".quadgate"  # in the folder `kv` of a medium; the hardware kit puts `owner` there


def write(path: str, content: Any) -> None:
    """Write one file by rename, readable by its owner only: a text as it is, all else as JSON."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    descriptor = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        if isinstance(content, str):
            stream.write(content)
        else:
            json.dump(content, stream, indent=1, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(path + ".tmp", path)


def enlist(kv_dir: str, root: str) -> None:
    """Make a KV directory and list it on its medium. One that is marked by nobody is not ours, or not mounted: nothing is written there."""
    medium = os.path.dirname(kv_dir)
    if not os.path.isfile(f"{medium}/{MARK}/owner") and not medium.startswith(f"{root}/kv/"):
        print(f"{medium} carries no mark of ours ({MARK}/owner): its medium is not mounted, or it is somebody else's. Deploy again.", file=sys.stderr)
        raise SystemExit(1)
    for folder in (f"{medium}/{MARK}/attempts/{os.path.basename(kv_dir)}", kv_dir):
        os.makedirs(folder, mode=0o700, exist_ok=True)


def make_room(kv_dir: str) -> None:
    """Remove the KV that earlier attempts left on this medium: those that are listed there, and nothing else."""
    medium = os.path.dirname(kv_dir)
    for name in os.listdir(f"{medium}/{MARK}/attempts"):
        if name != os.path.basename(kv_dir):
            for folder in (f"{medium}/{name}", f"{medium}/{MARK}/attempts/{name}"):
                shutil.rmtree(folder, onerror=_gone)


def _gone(_: Any, __: str, error: Any) -> None:
    """Let a file be gone already: on an export that hosts share, each of them makes room. Anything else that stays is an error."""
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def end_other_attendants(order: Dict[str, Any]) -> None:
    """Stop every running job of kind `attend` below the root. The lock was taken with our fence before, so they are nobody's any more."""
    folder = os.path.join(order["root"], "jobs")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            with open(os.path.join(folder, name, "job.json"), encoding="utf-8") as stream:
                attends = json.load(stream).get("kind") == "attend"
        except (OSError, ValueError, AttributeError):
            continue
        if attends and not os.path.exists(os.path.join(folder, name, "exit.json")):
            probe(order, "job", "stop", "--root", order["root"], "--job", name)


def probe(order: Dict[str, Any], *arguments: str) -> None:
    """Run one command of the probe; its sentence and its exit code become ours when that fails."""
    done = subprocess.run([sys.executable, "-I", order["probe"], *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        print(done.stderr.decode("utf-8", "replace").strip() or f"the probe's {' '.join(arguments[:2])} failed", file=sys.stderr)
        raise SystemExit(done.returncode)


def main(order: Dict[str, Any]) -> None:
    """Do what the order says, in an order in which a repetition is harmless. The probe refuses an older fence before anything is written."""
    probe(order, "lock", "take", "--root", order["root"], "--attempt", order["attempt"], "--fence", str(order["fence"]))
    if os.path.exists(f"{order['root']}/jobs/{order['job']}/job.json"):
        print(f"the job {order['job']} is known, so the engine is left alone")
        return
    end_other_attendants(order)
    for path, content in order["files"].items():
        write(path, content)
    kv_dirs: List[str] = order["kv_dirs"]
    for medium in order.get("media") or []:  # before any folder is made: one that is made where nothing is mounted lies on the system disk
        probe(order, "medium", "--dir", medium["dir"], "--declared", json.dumps(medium))
    for kv_dir in kv_dirs:
        enlist(kv_dir, order["root"])
    if order["store"]:
        for kv_dir in kv_dirs:
            make_room(kv_dir)
    for kv_dir in kv_dirs:
        # Refuses a medium that cannot be made cold, by its name, and one that is too full, with the numbers. The placebo, too, writes what it asks.
        probe(order, "room", "--dir", kv_dir, "--bytes", str(-(-int(order["kv_bytes"]) // len(kv_dirs))))
    if order["store"]:
        probe(order, "engine", "stop", "--spec", order["spec"])
        probe(order, "engine", "start", "--spec", order["spec"])
    print("switched")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
