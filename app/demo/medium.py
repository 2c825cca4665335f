"""Where a demo keeps KV: XFS on a loop device where this machine lets us make one, else a plain directory; and how all of it is taken away again.

The role `volume` makes and mounts the medium, as at a customer's site. A demo ends with its machine as it was, so it unmounts by itself, also after
Ctrl-C, when no playbook runs any more, and what a killed demo left is taken away by the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from gates.text import Text

KIND = "loop_xfs"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS = {"mkfs.xfs": "xfsprogs", "xfs_info": "xfsprogs", "losetup": "mount", "mount": "mount", "umount": "mount"}
_TRIAL_BYTES = 320 << 20  # the smallest XFS that mkfs makes is 300 MB; the file is sparse
PATIENCE_S = 5.0  # an engine that was ended gives its files back within that


def lacking(folder: Path) -> Text | None:
    """Return why no XFS on a loop device can be had for a file below `folder`, found out by doing it once; None where it can."""
    if os.geteuid() != 0:
        return Text("only root can mount a file system", "只有 root 才能挂载文件系统")
    for program, package in _PROGRAMS.items():
        if shutil.which(program, path=_PATH) is None:
            return Text("{p} is not on this machine (package {k})", "本机没有 {p}（软件包 {k}）").fill(p=program, k=package)
    trial = folder / "trial"
    try:
        return _try(trial)
    finally:
        release(trial)
        shutil.rmtree(trial, ignore_errors=True)


def _try(trial: Path) -> Text | None:
    (trial / "mnt").mkdir(parents=True)
    image = trial / "trial.img"
    with image.open("xb") as stream:
        stream.truncate(_TRIAL_BYTES)
    done = _run("losetup", "--find", "--show", "--direct-io=on", str(image))
    device = done.stdout.strip()
    for argv in ([], ["mkfs.xfs", "-q", device], ["mount", "-t", "xfs", device, str(trial / "mnt")]):
        if argv and done.returncode == 0:
            done = _run(*argv)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]
            return Text("this machine refused to make one: {w}", "本机无法建立：{w}").fill(w=why)
    return None


def wanted(targets: dict[str, Any]) -> list[str]:
    """Return the names of the media of a section `targets` that are to be XFS on a loop device."""
    return [name for name, medium in (targets.get("volume") or {}).items() if medium.get("kind") == KIND]


def plain(targets: dict[str, Any]) -> None:
    """Turn the media that would be XFS on a loop device into plain directories at the same place."""
    for name in wanted(targets):
        targets["volume"][name] = {"kind": "directory", "mount": targets["volume"][name]["mount"]}


def release(folder: Path, patience_s: float = PATIENCE_S) -> list[str]:
    """Unmount what is mounted below a folder, detach the loop devices whose files lie there, and remove those files. Returns what is left."""
    deadline = time.monotonic() + patience_s
    while True:
        for point in reversed(mounts(folder)):
            _run("umount", point)
        for device, image in loops(folder).items():
            if not any(line.startswith(f"{device} ") for line in _lines("/proc/self/mounts")) and _run("losetup", "--detach", device).returncode == 0:
                Path(image).unlink(missing_ok=True)
        left = [*mounts(folder), *(f"{device} ({image})" for device, image in loops(folder).items())]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)


def mounts(folder: Path) -> list[str]:
    """Return the mount points below a folder, in the order in which they were mounted."""
    root = f"{folder.resolve()}/"
    points = [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[4]) for line in _lines("/proc/self/mountinfo")]
    return [point for point in points if f"{point}/".startswith(root)]


def loops(folder: Path) -> dict[str, str]:
    """Return the loop devices whose files lie below a folder: {device: file}."""
    root, found = f"{folder.resolve()}/", {}
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        image = "".join(_lines(str(path))).removesuffix(" (deleted)")
        if image.startswith(root):
            found[f"/dev/{path.parts[3]}"] = image
    return found


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # a device that goes away while it is looked at
        return []


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env={**os.environ, "PATH": _PATH, "LC_ALL": "C"}, capture_output=True, text=True, check=False, timeout=60)
