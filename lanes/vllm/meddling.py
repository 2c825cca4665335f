"""What somebody does to a measurement from outside, once the candidate of G3 has stored: nothing of the service knows of it but by its evidence."""

from __future__ import annotations

import json
import mmap
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from app.demo.medium import mounts

Deed = Callable[[Path], None]  # given the folder of the job; comes back when it is done
LOOK_S = 0.02


class Meddler:
    """Watches the jobs of a demo's local targets, and does one deed to the first of which `when` is true: by default, that stored on `disk`."""

    def __init__(self, out: Path, deed: Deed, when: Callable[[Path], bool] | None = None) -> None:
        self.done = False
        self._lab, self._deed, self._when = out / "state" / "lab", deed, when or has_stored
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Meddler:
        shutil.rmtree(self._lab, ignore_errors=True)  # jobs of an earlier demo are none of this one
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            job = next((job for job in self._lab.glob("*/*/jobs/*") if self._when(job)), None)
            if job is not None:
                self._deed(job)
                self.done = True
                return


def has_stored(job: Path) -> bool:
    """Tell whether a job stored the candidate's prefixes and goes on: its phase `store` stands in its journal."""
    try:
        of_the_candidate = read(job / "arm.json").get("mount_path") == "disk"
        return of_the_candidate and any('"store"' in line for line in (job / "phases.jsonl").read_text().splitlines())
    except (OSError, ValueError):  # it has only begun
        return False


def is_the_first_of_g3(job: Path) -> bool:
    """Tell whether a job is G3's first, of the baseline, which has no medium: the candidate's comes next."""
    try:
        given = read(job / "job.json")
    except (OSError, ValueError):
        return False
    return str(given["workload"]["set"]).startswith("g3") and not given["engine"]["kv_dirs"]


def unmount(job: Path) -> None:
    """Unmount every medium of the demo, as a reboot does with a mount that is not persistent."""
    for point in mounts(job.parents[4]):
        subprocess.run(["umount", point], check=True)


def keep_warm(job: Path) -> None:
    """Hold every page of the KV in the page cache until the job has ended, as a reader of the same files would: a mapped page cannot be dropped."""
    with ExitStack() as held:
        for file in _files(job):
            with file.open("rb") as stream:
                held.enter_context(mmap.mmap(stream.fileno(), 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ))
        pause = threading.Event()
        while not (job / "exit.json").exists() and job.exists():
            pause.wait(LOOK_S)


def delete_files(job: Path) -> None:
    """Delete all that was stored."""
    for folder in read(job / "job.json")["engine"]["kv_dirs"]:
        for entry in Path(folder).iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def change_the_hash_seed(job: Path) -> None:
    """Let the engine start under another PYTHONHASHSEED from now on, as an edited unit file would."""
    path = Path(read(job / "job.json")["engine"]["control"]["start"][-1])
    spec = read(path)
    spec["env"]["PYTHONHASHSEED"] = "20261130"
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(spec), encoding="utf-8")
    fresh.replace(path)


def _files(job: Path) -> Iterator[Path]:
    for folder in read(job / "job.json")["engine"]["kv_dirs"]:
        yield from (path for path in Path(folder).rglob("*") if path.is_file() and path.stat().st_size)


def read(path: Path) -> dict[str, Any]:
    """Return a JSON object."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
